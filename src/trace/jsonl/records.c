/* records.c - a trace as records: reading them, names, order, concurrency. */
#include "trace/jsonl/jsonl.h"
#include "trace/otlp/otlp.h"

const struct vt_record records_nothing = {
    .arrival_ns = -1, .ttft_ns = -1, .queue_ns = -1, .e2e_ns = -1, .stage = UINT32_MAX};

int records_init(struct vt_records *r, const char *source, struct vt_err *err)
{
    *r = (struct vt_records){
        .meta = {.async_scheduling = -1, .enable_prefix_caching = -1}};
    return vt_arena_text(&r->arena, source, &r->source, err);
}

void vt_records_free(struct vt_records *r)
{
    vt_arena_free(&r->arena);
    free(r->rec);
    *r = (struct vt_records){0};
}

int records_add(struct vt_records *r, struct vt_record **out, struct vt_err *err)
{
    int rc;

    if (r->n >= TRACE_MAX_REQUESTS)
        return vt_fail(err, VT_EINPUT, "more than %d requests", TRACE_MAX_REQUESTS);
    rc = vt_grow(&r->rec, &r->cap, r->n + 1, sizeof(*r->rec), err);
    if (rc != VT_OK)
        return rc;
    *out = &r->rec[r->n++];
    **out = records_nothing;
    return VT_OK;
}

void records_skip(struct vt_records *r, uint32_t part)
{
    r->n_skipped++;
    if (part < r->n_parts)
        r->part[part].n_unanswered++;
    else
        r->n_unanswered++;
}

vt_ns vt_record_decode_ns(const struct vt_record *r)
{
    vt_ns sum = 0;

    for (uint32_t i = 0; i < r->n_gaps; i++)
        sum += vt_record_gap(r, i);
    return sum;
}

/* ---- order ------------------------------------------------------------ */

static int sort_records(struct vt_records *r, struct vt_err *err)
{
    struct trace_place *order = malloc(r->n * sizeof(*order));
    int rc;

    if (!order)
        return vt_nomem(err);
    for (size_t i = 0; i < r->n; i++)
        order[i] = (struct trace_place){
            r->rec[i].arrival_ns < 0 ? 0 : r->rec[i].arrival_ns, i};
    trace_sort_places(order, r->n);
    rc = trace_reorder(&r->rec, order, r->n, sizeof(*r->rec), err);
    r->cap = rc ? r->cap : r->n;
    free(order);
    return rc;
}

/* ---- what follows from the rest --------------------------------------- */

/* In flight at arrival: those that came before, less those that had ended. */
static int count_in_flight(struct vt_records *r, struct vt_err *err)
{
    struct trace_place *end;
    size_t ended = 0, unknown = 0;

    for (size_t i = 0; i < r->n; i++) {
        if (r->rec[i].concurrency > 0)
            continue;
        if (r->rec[i].arrival_ns < 0 || r->rec[i].ttft_ns < 0)
            return VT_OK; /* it cannot be known */
        unknown++;
    }
    if (unknown == 0)
        return VT_OK;
    end = malloc(r->n * sizeof(*end));
    if (!end)
        return vt_nomem(err);
    for (size_t i = 0; i < r->n; i++)
        end[i] = (struct trace_place){r->rec[i].arrival_ns + r->rec[i].ttft_ns +
                                          vt_record_decode_ns(&r->rec[i]),
                                      i};
    trace_sort_places(end, r->n);
    for (size_t i = 0; i < r->n; i++) {
        while (ended < i && end[ended].at <= r->rec[i].arrival_ns)
            ended++;
        if (r->rec[i].concurrency == 0)
            r->rec[i].concurrency = (uint32_t)(i + 1 - ended);
    }
    free(end);
    return VT_OK;
}

/* So that times can be added up. */
static int check_times(const struct vt_records *r, struct vt_err *err)
{
    const vt_ns most = vt_ns_from_ms(TRACE_MAX_MS);

    for (size_t i = 0; i < r->n; i++) {
        const struct vt_record *q = &r->rec[i];
        vt_ns sum = q->ttft_ns > 0 ? q->ttft_ns : 0;

        for (uint32_t k = 0; k < q->n_gaps && sum <= most; k++)
            sum += vt_record_gap(q, k);
        if (sum > most || q->arrival_ns > most) {
            vt_fail(err, VT_EINPUT, "a request arrives too late or takes too long");
            return q->line ? vt_within(err, VT_EINPUT, "line %u", q->line) : VT_EINPUT;
        }
    }
    return VT_OK;
}

static int name_record(struct vt_records *r, struct vt_record *q, size_t number,
                       struct vt_err *err)
{
    char id[32];

    if (q->id)
        return VT_OK;
    snprintf(id, sizeof(id), "request-%zu", number);
    return vt_arena_text(&r->arena, id, &q->id, err);
}

int records_finish(struct vt_records *r, struct vt_err *err)
{
    int rc;

    if (r->n == 0)
        return vt_fail(err, VT_EINPUT, "there are no requests");
    rc = check_times(r, err);
    for (size_t i = 0; i < r->n && rc == VT_OK; i++)
        rc = name_record(r, &r->rec[i], i, err);
    if (rc || (rc = sort_records(r, err)))
        return rc;
    return count_in_flight(r, err);
}

/* ---- trace.jsonl ------------------------------------------------------ */

int records_read_line(struct vt_records *r, const struct vt_node *row, bool first,
                      struct vt_err *err)
{
    size_t number = r->n + r->n_skipped;
    const struct vt_node *meta;
    struct vt_record *q = NULL;
    int rc = jsonl_find_meta(row, first, &meta, err);

    if (rc != VT_OK)
        return rc;
    if (meta)
        return jsonl_read_meta(&r->meta, &r->arena, meta, err);
    if (jsonl_has_no_output(row)) {
        if (jsonl_was_given_up(row))
            records_skip(r, 0);
        else
            r->n_skipped++;
        return VT_OK;
    }
    rc = vt_within(err, records_add(r, &q, err), "line %u", row->line);
    if (rc || (rc = jsonl_read_row(q, &r->arena, row, false, err)))
        return rc;
    return name_record(r, q, number, err);
}

static int read_row(void *user, struct trace_reader *in, const struct vt_node *row,
                    struct vt_err *err)
{
    struct vt_records *r = user;
    bool first = in->n_rows == 0;
    const char *from, *to;
    int rc = records_read_line(r, row, first, err);

    if (rc != VT_OK || !first || row->n != 1 || !vt_get(row, "meta"))
        return rc;
    /* Kept as it stands: the object after "meta":, without the line's own braces. */
    from = strchr(in->line, ':');
    to = strrchr(in->line, '}');
    if (!from || !to || to <= from)
        return VT_OK;
    from += 1 + strspn(from + 1, " \t");
    while (to > from && (to[-1] == ' ' || to[-1] == '\t'))
        to--;
    r->meta_json = vt_arena_copy(&r->arena, from, (size_t)(to - from));
    return r->meta_json ? VT_OK : vt_nomem(err);
}

int records_read(void *records, struct vt_lines *lines, struct vt_err *err)
{
    struct vt_records *r = records;
    struct trace_reader in = {.lines = lines, .name = vt_lines_name(lines)};
    int rc;

    if ((rc = records_init(r, in.name, err)) || (rc = trace_reader_next(&in, err)) ||
        (rc = trace_reader_rows(&in, read_row, r, err)) ||
        (rc = vt_within(err, records_finish(r, err), "%s", in.name)))
        vt_records_free(r);
    return rc;
}

int vt_records_load(struct vt_records *r, const char *path, struct vt_err *err)
{
    *r = (struct vt_records){0};
    return otlp_load_as(r, path, OTLP_AS_TRACE, records_read, err);
}
