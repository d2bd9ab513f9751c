/* csv.c - rows of error_records.csv, runtime.csv and a metadata CSV. */
#include <assert.h>
#include <float.h>
#include <math.h>
#include <stddef.h>

#include "validate/figures/figures.h"
#include "validate/sheet.h"

enum { MAX_ROWS = 1 << 18, MAX_FIELD = 4096 };

enum file { ERRORS = 1, RUNTIMES = 2, METADATA = 4, RESULTS = 3, ALL = 7 };

enum kind { /* those from NAME on must be there */
            TEXT,
            COUNT, /* pandas writes whole numbers of a column with gaps as 2.0 */
            ID,
            FLAG,
            SHARE, /* a number, or nothing */
            NAME,
            NUMBER, /* as Python writes it, infinite ones too */
            STAGE,
            METRIC,
};

static_assert(offsetof(struct fig_error, at) == 0 &&
                  offsetof(struct fig_runtime, at) == 0,
              "rows begin with what all files have");
#define OF_ALL(member) offsetof(struct fig_where, member)

static const struct column {
    const char *name;
    enum kind kind;
    unsigned files; /* that have it */
    size_t offset;  /* in the file's row */
    double lo, hi;  /* of numbers */
    const char *must;
} columns[] = {
    {"simulator", NAME, RESULTS, OF_ALL(simulator)},
    {"experiment_folder", NAME, ALL, OF_ALL(folder)},
    {"model", NAME, RESULTS, OF_ALL(model)},
    {"workload", NAME, RESULTS, OF_ALL(workload)},
    {"stage_index", STAGE, ERRORS, offsetof(struct fig_error, stage)},
    {"metric_name", METRIC, ERRORS, offsetof(struct fig_error, metric)},
    {"predicted", NUMBER, ERRORS, offsetof(struct fig_error, predicted), -INFINITY,
     INFINITY},
    {"actual", NUMBER, ERRORS, offsetof(struct fig_error, actual), -INFINITY, INFINITY},
    {"mape", NUMBER, ERRORS, offsetof(struct fig_error, mape), 0, INFINITY,
     "at least 0"},
    {"mpe", NUMBER, ERRORS, offsetof(struct fig_error, mpe), -INFINITY, INFINITY},
    {"absolute_error", NUMBER, ERRORS, offsetof(struct fig_error, absolute), -INFINITY,
     INFINITY},
    {"wall_clock_seconds", NUMBER, RUNTIMES, offsetof(struct fig_runtime, seconds), 0,
     DBL_MAX, "a time"},
    {"exp_id", ID, ALL, OF_ALL(exp_id)},
    {"hardware", TEXT, ALL, OF_ALL(hardware)},
    {"dp", COUNT, ALL, OF_ALL(dp)},
    {"cpu_offload", FLAG, ALL, OF_ALL(cpu_offload)},
    {"gpu_mem_util", SHARE, ALL, OF_ALL(gpu_mem), 0, 1, "from 0 to 1"},
    {"precision", TEXT, ALL, OF_ALL(precision)},
    {"tp", COUNT, ALL, OF_ALL(tp)},
    {"max_num_batched_tokens", COUNT, ALL, OF_ALL(mbt)},
};

struct reader {
    struct sheet sheet;
    struct vt_arena *arena;
    int at[VT_COUNT(columns)]; /* in the file; -1: not there */
    const char
        *last[VT_COUNT(columns)]; /* the text kept last: rows repeat each other */
};

/* ---- cells -------------------------------------------------------------- */

/* Each returns NULL, or what the text must be. */

static const char *read_whole(const char *text, int64_t *out)
{
    double v;

    if (*text == '\0')
        return NULL;
    if (!vt_parse_f64(text, strlen(text), &v) || v < 0 || v > 1e9 || v != floor(v))
        return "a whole number or empty";
    *out = (int64_t)v;
    return NULL;
}

static const char *read_flag(const char *text, bool *out)
{
    static const char *const known[] = {"False", "false", "0", "", "True", "true", "1"};

    for (size_t i = 0; i < VT_COUNT(known); i++)
        if (strcmp(text, known[i]) == 0) {
            *out = i > 3;
            return NULL;
        }
    return "True or False";
}

static const char *read_number(const char *text, const struct column *c, double *out)
{
    if (c->kind == SHARE && *text == '\0')
        return NULL;
    if (strcmp(text, "inf") == 0 || strcmp(text, "-inf") == 0)
        *out = text[0] == '-' ? -(double)INFINITY : (double)INFINITY;
    else if (!vt_parse_f64(text, strlen(text), out))
        return "a number";
    return *out >= c->lo && *out <= c->hi ? NULL : c->must;
}

static const char *read_metric(const char *text, int *out)
{
    for (*out = 0; *out < VT_ERROR_METRICS; (*out)++)
        if (strcmp(text, vt_error_metric_names[*out]) == 0)
            return NULL;
    return "one of the nine metrics (e2e_mean, ttft_p90, ...)";
}

static const char *read_plain(const char *text, const struct column *c, void *to)
{
    int64_t whole = c->kind == ID ? -1 : 0;
    const char *must = NULL;

    switch (c->kind) {
    case COUNT:
        must = read_whole(text, &whole);
        *(uint32_t *)to = (uint32_t)whole;
        return must;
    case ID:
        must = read_whole(text, &whole);
        *(int64_t *)to = whole;
        return must;
    case FLAG:
        return read_flag(text, to);
    case STAGE:
        return vt_parse_i64(text, strlen(text), to) && *(int64_t *)to >= FIG_SUMMARY
                   ? NULL
                   : "a stage, or -1 for the whole run";
    case METRIC:
        return read_metric(text, to);
    default:
        return read_number(text, c, to);
    }
}

static int read_text(struct reader *r, size_t c, const char *text, const char **out,
                     struct vt_err *err)
{
    size_t len = strlen(text);

    *out = NULL;
    if (len == 0)
        return VT_OK;
    if (len > MAX_FIELD)
        return sheet_within(&r->sheet, err,
                            vt_fail(err, VT_EINPUT,
                                    "column '%s' is longer than %d bytes",
                                    columns[c].name, MAX_FIELD));
    if (!r->last[c] || strcmp(r->last[c], text) != 0)
        r->last[c] = vt_arena_copy(r->arena, text, len);
    *out = r->last[c];
    return *out ? VT_OK : vt_nomem(err);
}

static int read_cell(struct reader *r, size_t c, char *row, struct vt_err *err)
{
    const char *text = r->at[c] < 0 ? "" : r->sheet.field[r->at[c]], *must;
    void *to = row + columns[c].offset;

    if (columns[c].kind == NAME || columns[c].kind == TEXT) {
        must = columns[c].kind == NAME && *text == '\0' ? "stated" : NULL;
        if (!must)
            return read_text(r, c, text, to, err);
    } else {
        must = read_plain(text, &columns[c], to);
    }
    if (!must)
        return VT_OK;
    return sheet_within(&r->sheet, err,
                        vt_fail(err, VT_EINPUT, "column '%s' must be %s, not '%.40s'",
                                columns[c].name, must, text));
}

/* ---- files -------------------------------------------------------------- */

/* rows: the address of an array's pointer. */
static int read_rows(struct fig_set *set, struct vt_lines *l, enum file file,
                     void *rows, size_t *n, size_t *cap, size_t size,
                     struct vt_err *err)
{
    struct reader r = {.arena = &set->arena};
    union {
        struct fig_error error;
        struct fig_runtime runtime;
        struct fig_where where;
    } row;
    char *first;
    int rc = sheet_begin(&r.sheet, l, err);

    for (size_t c = 0; c < VT_COUNT(columns) && rc == VT_OK; c++) {
        r.at[c] = sheet_column(&r.sheet, columns[c].name);
        if (r.at[c] < 0 && columns[c].kind >= NAME && (columns[c].files & file))
            rc = vt_fail(err, VT_EINPUT, "%s: there is no column '%s'",
                         vt_lines_name(l), columns[c].name);
    }
    if (file != RUNTIMES)
        set->has_mbt |= sheet_column(&r.sheet, "max_num_batched_tokens") >= 0;
    while (sheet_next(&r.sheet, &rc, err)) {
        memset(&row, 0, sizeof(row));
        for (size_t c = 0; c < VT_COUNT(columns) && rc == VT_OK; c++)
            if (columns[c].files & file)
                rc = read_cell(&r, c, (char *)&row, err);
        if (rc == VT_OK && *n == MAX_ROWS)
            rc = sheet_within(&r.sheet, err,
                              vt_fail(err, VT_EINPUT, "more than %d rows", MAX_ROWS));
        if (rc != VT_OK || (rc = vt_grow(rows, cap, *n + 1, size, err)) != VT_OK)
            break;
        memcpy(&first, rows, sizeof(first));
        memcpy(first + (*n)++ * size, &row, size);
    }
    sheet_end(&r.sheet);
    return rc;
}

int fig_read_errors(struct fig_set *s, struct vt_lines *l, struct vt_err *err)
{
    return read_rows(s, l, ERRORS, &s->error, &s->n_errors, &s->cap_errors,
                     sizeof(*s->error), err);
}

int fig_read_runtimes(struct fig_set *s, struct vt_lines *l, struct vt_err *err)
{
    return read_rows(s, l, RUNTIMES, &s->runtime, &s->n_runtimes, &s->cap_runtimes,
                     sizeof(*s->runtime), err);
}

int fig_read_metadata(struct fig_set *s, struct vt_lines *l, struct vt_err *err)
{
    return read_rows(s, l, METADATA, &s->metadata, &s->n_metadata, &s->cap_metadata,
                     sizeof(*s->metadata), err);
}

void fig_set_free(struct fig_set *s)
{
    free(s->error);
    free(s->runtime);
    free(s->metadata);
    free(s->truth);
    vt_arena_free(&s->arena);
    *s = (struct fig_set){0};
}
