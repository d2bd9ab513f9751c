/* tracev2_itl.c - TraceV2's chunk times: exact gaps instead of their mean. */
#include "trace/convert/tracev2.h"

struct named {
    const char *id;
    size_t record;
};

struct chunks {
    struct vt_records *r;
    struct named *named;  /* all records, by id */
    struct vt_record *of; /* whose times are collected; NULL: of none that is known */
    char *id;             /* as the file names it */
    vt_ns *at;
    size_t n, cap;
};

static int by_id(const void *pa, const void *pb)
{
    const struct named *a = pa, *b = pb;

    return strcmp(a->id, b->id);
}

/* Turns the times collected so far into gaps. Where they cannot be right, the mean that
 * the request's row states stays. */
static int end_request(struct chunks *c, struct vt_err *err)
{
    struct vt_record *q = c->of;
    size_t n = c->n;
    vt_ns *gap;

    c->n = 0;
    if (!q || n == 0 || n > q->output_tokens || c->at[0] < q->arrival_ns)
        return VT_OK;
    gap = vt_arena_alloc(&c->r->arena, (n - 1) * sizeof(*gap));
    if (!gap)
        return vt_nomem(err);
    q->ttft_ns = c->at[0] - q->arrival_ns;
    for (size_t i = 0; i + 1 < n; i++) {
        if (c->at[i + 1] < c->at[i])
            return vt_fail(err, VT_EINPUT, "chunks of '%.80s' are not in order", q->id);
        gap[i] = c->at[i + 1] - c->at[i];
    }
    q->by_mean = false;
    q->gap = gap;
    q->n_gaps = (uint32_t)(n - 1);
    return VT_OK;
}

static int begin_request(struct chunks *c, const char *id, struct vt_err *err)
{
    struct named key = {id, 0};
    const struct named *found;
    int rc = end_request(c, err);

    if (rc != VT_OK)
        return rc;
    free(c->id);
    c->id = strdup(id);
    if (!c->id)
        return vt_nomem(err);
    found = bsearch(&key, c->named, c->r->n, sizeof(*c->named), by_id);
    c->of = found ? &c->r->rec[found->record] : NULL;
    return VT_OK;
}

static int read_chunk(void *user, struct trace_reader *in, struct vt_err *err)
{
    struct chunks *c = user;
    char *field[3];
    double at;
    int rc = VT_OK;

    if (vt_csv_split(in->line, field, 3) != 3 ||
        !vt_parse_f64(field[2], strlen(field[2]), &at) || at < 0 ||
        at > TRACE_MAX_MS * 1e3)
        return vt_fail(err, VT_EINPUT, "a row is request_id,chunk_index,timestamp_us");
    if (!c->id || strcmp(c->id, field[0]) != 0)
        rc = begin_request(c, field[0], err);
    if (rc || (rc = vt_grow(&c->at, &c->cap, c->n + 1, sizeof(*c->at), err)))
        return rc;
    c->at[c->n++] = (vt_ns)at * VT_US;
    return VT_OK;
}

int tracev2_read_chunks(struct vt_records *r, struct vt_lines *lines,
                        struct vt_err *err)
{
    struct trace_reader in = {.lines = lines, .name = vt_lines_name(lines)};
    struct chunks c = {.r = r, .named = malloc((r->n + 1) * sizeof(*c.named))};
    int rc;

    if (!c.named)
        return vt_nomem(err);
    for (size_t i = 0; i < r->n; i++)
        c.named[i] = (struct named){r->rec[i].id, i};
    qsort(c.named, r->n, sizeof(*c.named), by_id);
    if (!(rc = trace_reader_next(&in, err)) && /* the header */
        !(in.line && (rc = trace_reader_lines(&in, read_chunk, &c, err))))
        rc = vt_within(err, end_request(&c, err), "%s", in.name);
    free(c.named);
    free(c.id);
    free(c.at);
    return rc;
}
