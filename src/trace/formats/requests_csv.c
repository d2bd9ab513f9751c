/* requests_csv.c - request lists: one request for each row of a CSV file.
 *
 *     id,arrival_us,input_tokens,output_tokens,prefix_group,prefix_tokens
 *     a,0,700,32,chat,512
 *
 * Columns may stand in any order. input_tokens includes the prefix; rows of one
 * prefix group begin with the same tokens. */
#include "trace/formats/formats.h"

#define MAX_ARRIVAL_US (TRACE_MAX_MS * 1e3)

enum column { ID, ARRIVAL, INPUT, OUTPUT, GROUP, PREFIX, PRIORITY, LORA, N_COLUMNS };

static const struct {
    const char *name;
    enum column column;
    bool required;
} columns[] = {
    {"id", ID, true},
    {"arrival_us", ARRIVAL, true},
    {"input_tokens", INPUT, true},
    {"prompt_tokens", INPUT, false}, /* another name of it */
    {"output_tokens", OUTPUT, true},
    {"prefix_group", GROUP, false},
    {"prefix_tokens", PREFIX, false},
    {"priority", PRIORITY, false},
    {"lora", LORA, false},
};

struct list { /* being read */
    struct trace_build *b;
    int at[N_COLUMNS]; /* field of a row; -1: the file has no such column */
    int n;             /* columns of the file; 0: the header is yet to be read */
};

/* ---- header ----------------------------------------------------------- */

static int find_column(const char *name, enum column *out, struct vt_err *err)
{
    const char *known[VT_COUNT(columns) + 1] = {NULL};

    for (size_t i = 0; i < VT_COUNT(columns); i++) {
        known[i] = columns[i].name;
        if (strcmp(name, columns[i].name) == 0) {
            *out = columns[i].column;
            return VT_OK;
        }
    }
    return vt_fail_unknown(err, "column", name, 40, known);
}

static int read_header(struct list *l, char *line, struct vt_err *err)
{
    char *name[N_COLUMNS];

    for (int c = 0; c < N_COLUMNS; c++)
        l->at[c] = -1;
    l->n = vt_csv_split(line, name, N_COLUMNS);
    if (l->n < 0)
        return vt_fail(err, VT_EINPUT, "the header has more than %d columns",
                       N_COLUMNS);
    for (int i = 0; i < l->n; i++) {
        enum column c = ID;
        int rc = find_column(name[i], &c, err);

        if (rc != VT_OK)
            return rc;
        if (l->at[c] >= 0)
            return vt_fail(err, VT_EINPUT, "column '%s' is there twice", name[i]);
        l->at[c] = i;
    }
    for (size_t i = 0; i < VT_COUNT(columns); i++)
        if (columns[i].required && l->at[columns[i].column] < 0)
            return vt_fail(err, VT_EINPUT, "column '%s' is missing", columns[i].name);
    if ((l->at[GROUP] < 0) != (l->at[PREFIX] < 0))
        return vt_fail(err, VT_EINPUT,
                       "'prefix_group' and 'prefix_tokens' go together");
    return VT_OK;
}

/* ---- rows ------------------------------------------------------------- */

int trace_column_u32(const char *column, const char *text, uint32_t lo, uint32_t hi,
                     uint32_t *out, struct vt_err *err)
{
    uint64_t v;

    if (!vt_parse_u64(text, strlen(text), &v) || v < lo || v > hi)
        return vt_fail(err, VT_EINPUT,
                       "column '%s': '%.40s' is not an integer in [%u, %u]", column,
                       text, lo, hi);
    *out = (uint32_t)v;
    return VT_OK;
}

static int parse_arrival(const char *text, vt_ns *out, struct vt_err *err)
{
    size_t len = strlen(text);
    uint64_t whole;
    double us;

    if (vt_parse_u64(text, len, &whole) && whole <= (uint64_t)MAX_ARRIVAL_US) {
        *out = (vt_ns)whole * VT_US;
        return VT_OK;
    }
    if (!vt_parse_f64(text, len, &us) || us < 0 || us > MAX_ARRIVAL_US)
        return vt_fail(err, VT_EINPUT,
                       "column 'arrival_us': '%.40s' is not a number in [0, 1e15]",
                       text);
    *out = vt_ns_from_us(us);
    return VT_OK;
}

static int read_row(void *user, struct trace_reader *r, struct vt_err *err)
{
    const struct list *l = user;
    struct trace_build *b = l->b;
    char *text[N_COLUMNS];
    const char *f[N_COLUMNS];
    struct vt_work *q;
    uint32_t prefix_tokens = 0;
    int64_t priority = 0;
    int rc;

    b->line = r->number;
    if (vt_csv_split(r->line, text, l->n) != l->n)
        return vt_fail(err, VT_EINPUT, "a row needs %d columns, as the header has",
                       l->n);
    for (int c = 0; c < N_COLUMNS; c++)
        f[c] = l->at[c] < 0 ? "" : text[l->at[c]];
    if ((rc = trace_build_add(b, f[ID], strlen(f[ID]), &q, err)) ||
        (rc = parse_arrival(f[ARRIVAL], &q->arrival_ns, err)) ||
        (rc = trace_column_u32("input_tokens", f[INPUT], 1, TRACE_MAX_TOKENS,
                               &q->prompt_tokens, err)) ||
        (rc = trace_column_u32("output_tokens", f[OUTPUT], 1, TRACE_MAX_TOKENS,
                               &q->output_tokens, err)) ||
        (*f[PREFIX] && (rc = trace_column_u32("prefix_tokens", f[PREFIX], 0,
                                              q->prompt_tokens, &prefix_tokens, err))))
        return rc;
    if (*f[PRIORITY] && (!vt_parse_i64(f[PRIORITY], strlen(f[PRIORITY]), &priority) ||
                         priority < INT32_MIN || priority > INT32_MAX))
        return vt_fail(err, VT_EINPUT,
                       "column 'priority': '%.40s' is not a 32-bit integer",
                       f[PRIORITY]);
    q->priority = (int32_t)priority;
    q->max_tokens = q->output_tokens;
    if ((rc = trace_build_lora(b, f[LORA], err)))
        return rc;
    if (!*f[GROUP]) /* outside every group, so shared with nobody */
        prefix_tokens = 0;
    rc = trace_build_segment(b, trace_content_prefix(f[GROUP], strlen(f[GROUP])), 0,
                             prefix_tokens, err);
    return rc ? rc : trace_build_own(b, q->prompt_tokens - prefix_tokens, err);
}

static int read_rows(struct trace_build *b, struct trace_reader *r, void *state,
                     struct vt_err *err)
{
    struct list *l = state;
    int rc;

    l->b = b;
    if (l->n == 0 && (rc = read_header(l, r->line, err)))
        return vt_within(err, rc, "%s: line %u", r->name, r->number);
    return trace_reader_lines(r, read_row, l, err);
}

const struct trace_format trace_format_requests = {
    .name = "requests",
    .read = read_rows,
    .state_size = sizeof(struct list),
};
