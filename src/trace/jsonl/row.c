/* row.c - one line of trace.jsonl as a record: every field that a capture of
 * ours or of vllm-vcr's has. Rules are those of docs/trace-format.md. */
#include <inttypes.h>

#include "trace/jsonl/jsonl.h"

/* ---- lists ------------------------------------------------------------ */

static int read_u32_list(struct vt_records *r, const struct vt_node *row,
                         const struct vt_node *list, const char *key, uint32_t lo,
                         const uint32_t **out, struct vt_err *err)
{
    uint32_t *v = vt_arena_alloc(&r->arena, list->n * sizeof(*v));

    if (!v)
        return vt_nomem(err);
    for (uint32_t i = 0; i < list->n; i++)
        if (!jsonl_node_u32(&list->u.item[i], lo, &v[i]))
            return vt_fail(err, VT_EINPUT,
                           "line %u: field '%s' must hold integers from %u", row->line,
                           key, lo);
    *out = v;
    return VT_OK;
}

static int read_gap_list(struct vt_records *r, const struct vt_node *row,
                         const struct vt_node *list, struct vt_record *q,
                         struct vt_err *err)
{
    vt_ns *gap = vt_arena_alloc(&r->arena, list->n * sizeof(*gap));

    if (!gap)
        return vt_nomem(err);
    for (uint32_t i = 0; i < list->n; i++)
        if (!jsonl_node_ms(&list->u.item[i], &gap[i]))
            return jsonl_bad_field(row, "itl_ms", "must hold milliseconds from 0", err);
    q->gap = gap;
    q->n_gaps = list->n;
    return VT_OK;
}

/* ---- timings ---------------------------------------------------------- */

static int read_summary(struct vt_records *r, const struct vt_node *row,
                        struct vt_record *q, struct vt_err *err)
{
    const struct vt_node *summary = jsonl_field(row, "itl_summary");
    vt_ns *mean;
    int rc;

    if (!summary)
        return VT_OK;
    if (summary->kind != VT_MAP || !jsonl_field(summary, "mean_ms"))
        return jsonl_bad_field(row, "itl_summary", "needs 'mean_ms' and 'count'", err);
    mean = vt_arena_alloc(&r->arena, sizeof(*mean));
    if (!mean)
        return vt_nomem(err);
    q->by_mean = true;
    q->gap = mean;
    rc = jsonl_get_ms(summary, "mean_ms", mean, err);
    return rc == VT_OK ? vt_get_u32(summary, "count", VT_REQUIRED, 0,
                                    RECORDS_MAX_SUMMARY, &q->n_gaps, err)
                       : rc;
}

static int read_tokens(struct vt_records *r, const struct vt_node *row,
                       struct vt_record *q, struct vt_err *err)
{
    const struct vt_node *list;
    uint64_t sum = q->n_gaps;
    int rc = jsonl_get_list(row, "itl_tokens", &list, err);

    if (rc == VT_OK && list) {
        if (q->by_mean || list->n != q->n_gaps)
            return jsonl_bad_field(row, "itl_tokens", "is not parallel to 'itl_ms'",
                                   err);
        rc = read_u32_list(r, row, list, "itl_tokens", 1, &q->gap_tokens, err);
        sum = 0;
        for (uint32_t i = 0; rc == VT_OK && i < q->n_gaps; i++)
            sum += q->gap_tokens[i];
    }
    if (rc == VT_OK && sum > 0 && sum >= q->output_tokens)
        return vt_fail(err, VT_EINPUT,
                       "line %u: gaps of %" PRIu64
                       " tokens after the first do not fit in output_tokens %u",
                       row->line, sum, q->output_tokens);
    return rc;
}

static int read_ctx(struct vt_records *r, const struct vt_node *row,
                    struct vt_record *q, struct vt_err *err)
{
    const struct vt_node *ctx = jsonl_field(row, "itl_ctx");
    const struct vt_node *running = vt_get(ctx, "num_running");
    const struct vt_node *prefill = vt_get(ctx, "prefill_tokens");
    int rc;

    if (!ctx)
        return VT_OK;
    if (!running || running->kind != VT_LIST || running->n != q->n_gaps || !prefill ||
        prefill->kind != VT_LIST || prefill->n != q->n_gaps || q->by_mean)
        return jsonl_bad_field(row, "itl_ctx", "is not parallel to 'itl_ms'", err);
    rc = read_u32_list(r, row, running, "itl_ctx", 0, &q->gap_running, err);
    return rc == VT_OK
               ? read_u32_list(r, row, prefill, "itl_ctx", 0, &q->gap_prefill, err)
               : rc;
}

static int read_timings(struct vt_records *r, const struct vt_node *row,
                        struct vt_record *q, struct vt_err *err)
{
    const struct vt_node *gaps;
    int rc = jsonl_get_list(row, "itl_ms", &gaps, err);

    if (rc == VT_OK)
        rc = gaps ? read_gap_list(r, row, gaps, q, err) : read_summary(r, row, q, err);
    if (rc == VT_OK)
        rc = read_tokens(r, row, q, err);
    if (rc == VT_OK)
        rc = read_ctx(r, row, q, err);
    if (rc == VT_OK)
        rc = jsonl_get_ms(row, "ttft_ms", &q->ttft_ns, err);
    if (rc == VT_OK && q->ttft_ns < 0)
        q->n_gaps = 0; /* half a measurement */
    return rc;
}

/* ---- content ---------------------------------------------------------- */

static bool read_segment(struct vt_records *r, const struct vt_node *n,
                         struct vt_record_segment *out)
{
    if (n->kind != VT_LIST || n->n < 2 || n->n > 3 || n->u.item[0].kind != VT_STR)
        return false;
    out->name = vt_arena_copy(&r->arena, n->u.item[0].u.str, n->u.item[0].n);
    return jsonl_node_u32(&n->u.item[1], 0, &out->tokens) &&
           (n->n == 2 || jsonl_node_u32(&n->u.item[2], 0, &out->offset));
}

static int read_segments(struct vt_records *r, const struct vt_node *row,
                         struct vt_record *q, struct vt_err *err)
{
    struct vt_record_segment *s;
    const struct vt_node *list;
    uint64_t sum = 0;
    int rc = jsonl_get_list(row, "segments", &list, err);

    if (rc != VT_OK || !list)
        return rc;
    s = vt_arena_alloc(&r->arena, list->n * sizeof(*s));
    if (!s)
        return vt_nomem(err);
    for (uint32_t i = 0; i < list->n; i++) {
        if (!read_segment(r, &list->u.item[i], &s[i]))
            return jsonl_bad_field(row, "segments",
                                   "must hold [name, tokens] or [name, tokens, offset]",
                                   err);
        if (!s[i].name)
            return vt_nomem(err);
        sum += s[i].tokens;
    }
    if (sum != q->prompt_tokens)
        return vt_fail(err, VT_EINPUT,
                       "line %u: field 'segments' sums to %" PRIu64
                       " tokens, but prompt_tokens is %u",
                       row->line, sum, q->prompt_tokens);
    q->segment = s;
    q->n_segments = list->n;
    return VT_OK;
}

static int read_hashes(struct vt_records *r, const struct vt_node *row,
                       struct vt_record *q, struct vt_err *err)
{
    const struct vt_node *list;
    uint64_t *v;
    int rc = jsonl_get_list(row, "block_hashes", &list, err);

    if (rc != VT_OK || !list)
        return rc;
    v = vt_arena_alloc(&r->arena, list->n * sizeof(*v));
    if (!v)
        return vt_nomem(err);
    for (uint32_t i = 0; i < list->n; i++) {
        const struct vt_node *hash = &list->u.item[i];

        if (hash->kind != VT_INT || (hash->u.integer < 0 && !hash->is_u64))
            return jsonl_bad_field(row, "block_hashes",
                                   "must hold unsigned 64-bit integers", err);
        v[i] = (uint64_t)hash->u.integer;
    }
    q->block_hash = v;
    q->n_block_hashes = list->n;
    return VT_OK;
}

static int read_token_ids(struct vt_records *r, const struct vt_node *row,
                          struct vt_record *q, struct vt_err *err)
{
    const struct vt_node *list;
    int rc = jsonl_get_list(row, "output_token_ids", &list, err);

    if (rc != VT_OK || !list)
        return rc;
    if (list->n != q->output_tokens)
        return vt_fail(err, VT_EINPUT,
                       "line %u: field 'output_token_ids' has %u ids, but "
                       "output_tokens is %u",
                       row->line, list->n, q->output_tokens);
    return read_u32_list(r, row, list, "output_token_ids", 0, &q->token_id, err);
}

/* ---- requests --------------------------------------------------------- */

static int read_session(struct vt_records *r, const struct vt_node *row,
                        struct vt_record *q, struct vt_err *err)
{
    const struct vt_node *session = jsonl_field(row, "session");
    char number[24];

    if (!session)
        return VT_OK;
    if (session->kind == VT_INT) {
        snprintf(number, sizeof(number), "%" PRId64, session->u.integer);
        q->session = records_text(r, number);
    } else if (session->kind == VT_STR) {
        q->session = records_text(r, session->u.str);
    } else {
        return jsonl_bad_field(row, "session", "must be a string or an integer", err);
    }
    if (!q->session)
        return vt_nomem(err);
    return vt_get_u32(row, "turn", VT_REQUIRED, 0, INT32_MAX, &q->turn, err);
}

static int read_sizes(const struct vt_node *row, struct vt_record *q,
                      struct vt_err *err)
{
    int64_t priority = 0;
    int rc = vt_get_u32(row, "prompt_tokens", VT_REQUIRED, 1, TRACE_MAX_TOKENS,
                        &q->prompt_tokens, err);

    if (rc == VT_OK)
        rc = jsonl_get_u32(row, "cached_tokens", 0, q->prompt_tokens, &q->cached_tokens,
                           err);
    if (rc == VT_OK)
        rc = vt_get_u32(row, "output_tokens", VT_REQUIRED, 1, TRACE_MAX_TOKENS,
                        &q->output_tokens, err);
    if (rc == VT_OK)
        rc = jsonl_get_u32(row, "concurrency", 0, INT32_MAX, &q->concurrency, err);
    if (rc == VT_OK)
        rc = jsonl_get_u32(row, "max_tokens", 1, UINT32_MAX, &q->max_tokens, err);
    if (rc == VT_OK && jsonl_field(row, "priority"))
        rc = vt_get_i64(row, "priority", VT_REQUIRED, INT32_MIN, INT32_MAX, &priority,
                        err);
    q->priority = (int32_t)priority;
    return rc;
}

static int read_id(struct vt_records *r, const struct vt_node *row, struct vt_record *q,
                   struct vt_err *err)
{
    char id[32];
    int rc = records_copy_str(r, row, "id", &q->id, err);

    if (rc != VT_OK || q->id)
        return rc;
    snprintf(id, sizeof(id), "request-%zu", r->n - 1 + r->n_skipped);
    q->id = records_text(r, id);
    return q->id ? VT_OK : vt_nomem(err);
}

static bool has_no_output(const struct vt_node *row)
{
    const struct vt_node *output = vt_get(row, "output_tokens");
    const struct vt_node *finish = vt_get(row, "finish_reason");

    return output && output->kind == VT_INT && output->u.integer == 0 && finish &&
           finish->kind == VT_STR;
}

int records_read_row(struct vt_records *r, const struct vt_node *row,
                     struct vt_err *err)
{
    struct vt_record *q;
    int rc;

    if (has_no_output(row)) {
        r->n_skipped++;
        return VT_OK;
    }
    rc = vt_within(err, records_add(r, &q, err), "line %u", row->line);
    if (rc != VT_OK)
        return rc;
    q->line = row->line;
    if ((rc = read_id(r, row, q, err)) || (rc = read_sizes(row, q, err)) ||
        (rc = jsonl_get_ms(row, "arrival_ms", &q->arrival_ns, err)) ||
        (rc = jsonl_get_ms(row, "think_ms", &q->think_ns, err)) ||
        (rc = records_copy_str(r, row, "finish_reason", &q->finish_reason, err)) ||
        (rc = read_session(r, row, q, err)) || (rc = read_segments(r, row, q, err)) ||
        (rc = read_hashes(r, row, q, err)) || (rc = read_token_ids(r, row, q, err)))
        return rc;
    return read_timings(r, row, q, err);
}
