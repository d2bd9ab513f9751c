/* csv.c - rows of error_records.csv, runtime.csv and a metadata CSV. */
#include <math.h>

#include "validate/figures/figures.h"

enum { MAX_COLUMNS = 64, MAX_ROWS = 1 << 18, MAX_FIELD = 4096 };

enum column {
    SIMULATOR,
    FOLDER,
    MODEL,
    WORKLOAD,
    STAGE,
    METRIC,
    PREDICTED,
    ACTUAL,
    MAPE,
    MPE,
    ABSOLUTE,
    SECONDS,
    EXP_ID,
    HARDWARE,
    DP,
    CPU_OFFLOAD,
    GPU_MEM,
    PRECISION,
    TP,
    MBT,
    N_COLUMNS
};

static const char *const column_names[N_COLUMNS] = {
    "simulator",
    "experiment_folder",
    "model",
    "workload",
    "stage_index",
    "metric_name",
    "predicted",
    "actual",
    "mape",
    "mpe",
    "absolute_error",
    "wall_clock_seconds",
    "exp_id",
    "hardware",
    "dp",
    "cpu_offload",
    "gpu_mem_util",
    "precision",
    "tp",
    "max_num_batched_tokens",
};

#define BIT(column) (1U << (column))
#define OF_BOTH     (BIT(SIMULATOR) | BIT(FOLDER) | BIT(MODEL) | BIT(WORKLOAD))
#define OF_ERRORS                                                                    \
    (OF_BOTH | BIT(STAGE) | BIT(METRIC) | BIT(PREDICTED) | BIT(ACTUAL) | BIT(MAPE) | \
     BIT(MPE) | BIT(ABSOLUTE))
#define OF_RUNTIMES (OF_BOTH | BIT(SECONDS))

struct sheet { /* a CSV in the middle of reading */
    struct vt_lines *lines;
    struct vt_arena *arena;
    int at[N_COLUMNS]; /* -1: not there */
    int n_columns;
    char *field[MAX_COLUMNS];
    const char *last[N_COLUMNS]; /* the text kept last: rows repeat each other */
};

/* ---- lines and cells ---------------------------------------------------- */

static int bad(const struct sheet *s, struct vt_err *err, int rc)
{
    return vt_within(err, rc, "%s: line %u", vt_lines_name(s->lines),
                     vt_lines_number(s->lines));
}

/* *more is false at the end of the file. Blank lines do not count. */
static int next_row(struct sheet *s, bool *more, struct vt_err *err)
{
    size_t len = 0;
    char *line;
    int n, rc;

    do {
        rc = vt_lines_next(s->lines, &line, &len, NULL, err);
        if (rc != VT_OK)
            return rc;
    } while (line && len == 0);
    *more = line != NULL;
    if (!line)
        return VT_OK;
    n = vt_csv_split(line, s->field, MAX_COLUMNS);
    if (n < 0)
        return bad(s, err,
                   vt_fail(err, VT_EINPUT,
                           "a quote is not closed, or more than %d "
                           "columns",
                           MAX_COLUMNS));
    if (s->n_columns > 0 && n != s->n_columns)
        return bad(s, err,
                   vt_fail(err, VT_EINPUT, "%d columns where the head has %d", n,
                           s->n_columns));
    s->n_columns = n;
    return VT_OK;
}

static int read_head(struct sheet *s, unsigned required, struct vt_err *err)
{
    bool more = false;
    int rc = next_row(s, &more, err);

    for (int c = 0; c < N_COLUMNS; c++) {
        s->at[c] = -1;
        for (int i = 0; rc == VT_OK && more && i < s->n_columns; i++)
            if (strcmp(s->field[i], column_names[c]) == 0)
                s->at[c] = i;
        if (rc == VT_OK && s->at[c] < 0 && (required & BIT(c)))
            rc = vt_fail(err, VT_EINPUT, "%s: there is no column '%s'",
                         vt_lines_name(s->lines), column_names[c]);
    }
    return rc;
}

static const char *cell(const struct sheet *s, enum column c)
{
    return s->at[c] < 0 ? "" : s->field[s->at[c]];
}

static int not_a(const struct sheet *s, enum column c, const char *what,
                 struct vt_err *err)
{
    return bad(s, err,
               vt_fail(err, VT_EINPUT, "column '%s' must be %s, not '%.40s'",
                       column_names[c], what, cell(s, c)));
}

static int get_text(struct sheet *s, enum column c, const char **out,
                    struct vt_err *err)
{
    const char *text = cell(s, c);
    size_t len = strlen(text);

    *out = NULL;
    if (len == 0)
        return VT_OK;
    if (len > MAX_FIELD)
        return bad(s, err,
                   vt_fail(err, VT_EINPUT, "column '%s' is longer than %d bytes",
                           column_names[c], MAX_FIELD));
    if (!s->last[c] || strcmp(s->last[c], text) != 0)
        s->last[c] = vt_arena_copy(s->arena, text, len);
    *out = s->last[c];
    return *out ? VT_OK : vt_nomem(err);
}

static int need_text(struct sheet *s, enum column c, const char **out,
                     struct vt_err *err)
{
    int rc = get_text(s, c, out, err);

    return rc == VT_OK && !*out ? not_a(s, c, "stated", err) : rc;
}

/* As Python writes numbers, infinite ones too. */
static int need_number(struct sheet *s, enum column c, double *out, struct vt_err *err)
{
    const char *text = cell(s, c);

    if (strcmp(text, "inf") == 0 || strcmp(text, "-inf") == 0)
        *out = text[0] == '-' ? -(double)INFINITY : (double)INFINITY;
    else if (!vt_parse_f64(text, strlen(text), out))
        return not_a(s, c, "a number", err);
    return VT_OK;
}

/* pandas writes whole numbers of a column with gaps as 2.0. */
static int get_count(struct sheet *s, enum column c, uint32_t *out, struct vt_err *err)
{
    const char *text = cell(s, c);
    double v;

    *out = 0;
    if (*text == '\0')
        return VT_OK;
    if (!vt_parse_f64(text, strlen(text), &v) || v < 0 || v > 1e9 || v != floor(v))
        return not_a(s, c, "a whole number or empty", err);
    *out = (uint32_t)v;
    return VT_OK;
}

static int get_flag(struct sheet *s, enum column c, bool *out, struct vt_err *err)
{
    static const char *const yes[] = {"True", "true", "1"};
    static const char *const no[] = {"False", "false", "0", ""};

    for (size_t i = 0; i < VT_COUNT(yes); i++)
        if (strcmp(cell(s, c), yes[i]) == 0) {
            *out = true;
            return VT_OK;
        }
    *out = false;
    for (size_t i = 0; i < VT_COUNT(no); i++)
        if (strcmp(cell(s, c), no[i]) == 0)
            return VT_OK;
    return not_a(s, c, "True or False", err);
}

/* ---- rows --------------------------------------------------------------- */

/* What both files and the metadata may say about an experiment. */
static int get_experiment(struct sheet *s, struct fig_where *w, struct vt_err *err)
{
    uint32_t id;
    int rc = need_text(s, FOLDER, &w->folder, err);

    if (rc == VT_OK)
        rc = get_text(s, HARDWARE, &w->hardware, err);
    if (rc == VT_OK)
        rc = get_text(s, PRECISION, &w->precision, err);
    if (rc == VT_OK)
        rc = get_count(s, DP, &w->dp, err);
    if (rc == VT_OK)
        rc = get_count(s, TP, &w->tp, err);
    if (rc == VT_OK)
        rc = get_count(s, MBT, &w->mbt, err);
    if (rc == VT_OK)
        rc = get_flag(s, CPU_OFFLOAD, &w->cpu_offload, err);
    if (rc == VT_OK && *cell(s, GPU_MEM) != '\0')
        rc = need_number(s, GPU_MEM, &w->gpu_mem, err);
    if (rc == VT_OK && !(w->gpu_mem >= 0 && w->gpu_mem <= 1))
        rc = not_a(s, GPU_MEM, "from 0 to 1", err);
    if (rc == VT_OK)
        rc = get_count(s, EXP_ID, &id, err);
    if (rc == VT_OK)
        w->exp_id = *cell(s, EXP_ID) == '\0' ? -1 : (int64_t)id;
    return rc;
}

static int get_where(struct sheet *s, struct fig_where *w, struct vt_err *err)
{
    int rc = need_text(s, SIMULATOR, &w->simulator, err);

    if (rc == VT_OK)
        rc = need_text(s, MODEL, &w->model, err);
    if (rc == VT_OK)
        rc = need_text(s, WORKLOAD, &w->workload, err);
    return rc == VT_OK ? get_experiment(s, w, err) : rc;
}

static int get_metric(struct sheet *s, struct fig_error *e, struct vt_err *err)
{
    const char *stage = cell(s, STAGE);

    for (e->metric = 0; e->metric < VT_ERROR_METRICS; e->metric++)
        if (strcmp(cell(s, METRIC), vt_error_metric_names[e->metric]) == 0)
            break;
    if (e->metric == VT_ERROR_METRICS)
        return not_a(s, METRIC, "one of the nine metrics (e2e_mean, ttft_p90, ...)",
                     err);
    if (!vt_parse_i64(stage, strlen(stage), &e->stage) || e->stage < FIG_SUMMARY)
        return not_a(s, STAGE, "a stage, or -1 for the whole run", err);
    return VT_OK;
}

static int get_error(struct sheet *s, struct fig_error *e, struct vt_err *err)
{
    int rc = get_where(s, &e->at, err);

    if (rc == VT_OK)
        rc = get_metric(s, e, err);
    if (rc == VT_OK)
        rc = need_number(s, PREDICTED, &e->predicted, err);
    if (rc == VT_OK)
        rc = need_number(s, ACTUAL, &e->actual, err);
    if (rc == VT_OK)
        rc = need_number(s, MAPE, &e->mape, err);
    if (rc == VT_OK && e->mape < 0)
        rc = not_a(s, MAPE, "at least 0", err);
    if (rc == VT_OK)
        rc = need_number(s, MPE, &e->mpe, err);
    if (rc == VT_OK)
        rc = need_number(s, ABSOLUTE, &e->absolute, err);
    return rc;
}

static int get_runtime(struct sheet *s, struct fig_runtime *r, struct vt_err *err)
{
    int rc = get_where(s, &r->at, err);

    if (rc == VT_OK)
        rc = need_number(s, SECONDS, &r->seconds, err);
    if (rc == VT_OK && !(r->seconds >= 0 && isfinite(r->seconds)))
        rc = not_a(s, SECONDS, "a time", err);
    return rc;
}

static int too_many(const struct sheet *s, size_t n, struct vt_err *err)
{
    return n < MAX_ROWS
               ? VT_OK
               : bad(s, err, vt_fail(err, VT_EINPUT, "more than %d rows", MAX_ROWS));
}

/* ---- files -------------------------------------------------------------- */

int fig_read_errors(struct fig_set *set, struct vt_lines *l, struct vt_err *err)
{
    struct sheet s = {.lines = l, .arena = &set->arena};
    bool more = true;
    int rc = read_head(&s, OF_ERRORS, err);

    set->has_mbt |= rc == VT_OK && s.at[MBT] >= 0;
    while (rc == VT_OK) {
        struct fig_error e = {0};

        rc = next_row(&s, &more, err);
        if (rc != VT_OK || !more)
            break;
        rc = get_error(&s, &e, err);
        if (rc == VT_OK)
            rc = too_many(&s, set->n_errors, err);
        if (rc == VT_OK)
            rc = vt_grow(&set->error, &set->cap_errors, set->n_errors + 1, sizeof(e),
                         err);
        if (rc == VT_OK)
            set->error[set->n_errors++] = e;
    }
    return rc;
}

int fig_read_runtimes(struct fig_set *set, struct vt_lines *l, struct vt_err *err)
{
    struct sheet s = {.lines = l, .arena = &set->arena};
    bool more = true;
    int rc = read_head(&s, OF_RUNTIMES, err);

    while (rc == VT_OK) {
        struct fig_runtime r = {0};

        rc = next_row(&s, &more, err);
        if (rc != VT_OK || !more)
            break;
        rc = get_runtime(&s, &r, err);
        if (rc == VT_OK)
            rc = too_many(&s, set->n_runtimes, err);
        if (rc == VT_OK)
            rc = vt_grow(&set->runtime, &set->cap_runtimes, set->n_runtimes + 1,
                         sizeof(r), err);
        if (rc == VT_OK)
            set->runtime[set->n_runtimes++] = r;
    }
    return rc;
}

int fig_read_metadata(struct fig_set *set, struct vt_lines *l, struct vt_err *err)
{
    struct sheet s = {.lines = l, .arena = &set->arena};
    bool more = true;
    int rc = read_head(&s, BIT(FOLDER), err);

    set->has_mbt |= rc == VT_OK && s.at[MBT] >= 0;
    while (rc == VT_OK) {
        struct fig_where w = {0};

        rc = next_row(&s, &more, err);
        if (rc != VT_OK || !more)
            break;
        rc = get_experiment(&s, &w, err);
        if (rc == VT_OK)
            rc = too_many(&s, set->n_metadata, err);
        if (rc == VT_OK)
            rc = vt_grow(&set->metadata, &set->cap_metadata, set->n_metadata + 1,
                         sizeof(w), err);
        if (rc == VT_OK)
            set->metadata[set->n_metadata++] = w;
    }
    return rc;
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
