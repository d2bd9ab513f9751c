/* row.c - one line of trace.jsonl as a record: every field that a capture of ours or of
 * vllm-vcr's has. Rules are those of docs/trace-format.md. */
#include <inttypes.h>

#include "trace/jsonl/jsonl.h"

struct reading { /* of one row */
    struct vt_arena *arena;
    const struct vt_node *row;
    bool lean;
    struct vt_record *q;
};

static int read_text(struct reading *r, const struct vt_node *n, const char **out,
                     struct vt_err *err)
{
    *out = r->lean ? n->u.str : vt_arena_copy(r->arena, n->u.str, n->n);
    return *out ? VT_OK : vt_nomem(err);
}

/* ---- timings ---------------------------------------------------------- */

static int read_u32_list(struct reading *r, const struct vt_node *list, const char *key,
                         uint32_t lo, const uint32_t **out, struct vt_err *err)
{
    uint32_t *v = vt_arena_alloc(r->arena, list->n * sizeof(*v));

    if (!v)
        return vt_nomem(err);
    for (uint32_t i = 0; i < list->n; i++)
        if (!jsonl_node_u32(&list->u.item[i], lo, &v[i]))
            return vt_fail(err, VT_EINPUT,
                           "line %u: field '%s' must hold integers from %u",
                           r->row->line, key, lo);
    *out = v;
    return VT_OK;
}

/* All of them, or their mean and number. */
static int read_gaps(struct reading *r, struct vt_err *err)
{
    const struct vt_node *list, *summary;
    vt_ns *gap;
    int rc = jsonl_get_list(r->row, "itl_ms", &list, err);

    if (rc != VT_OK)
        return rc;
    summary = list ? NULL : vt_get_non_null(r->row, "itl_summary");
    if (!list && !summary)
        return VT_OK;
    if (summary && (summary->kind != VT_MAP || !vt_get_non_null(summary, "mean_ms")))
        return jsonl_bad_field(r->row, "itl_summary", "needs 'mean_ms' and 'count'",
                               err);
    gap = vt_arena_alloc(r->arena, (list ? list->n : 1) * sizeof(*gap));
    if (!gap)
        return vt_nomem(err);
    r->q->gap = gap;
    if (summary) {
        r->q->by_mean = true;
        rc = jsonl_get_ms(summary, "mean_ms", gap, err);
        return rc ? rc
                  : vt_get_u32(summary, "count", VT_REQUIRED, 0, RECORDS_MAX_SUMMARY,
                               &r->q->n_gaps, err);
    }
    for (uint32_t i = 0; i < list->n; i++)
        if (!jsonl_node_ms(&list->u.item[i], &gap[i]))
            return jsonl_bad_field(r->row, "itl_ms", "must hold milliseconds from 0",
                                   err);
    r->q->n_gaps = list->n;
    return VT_OK;
}

static bool is_parallel(const struct reading *r, const struct vt_node *list)
{
    return list && list->kind == VT_LIST && !r->q->by_mean && list->n == r->q->n_gaps;
}

/* The first chunk holds at least one token that no gap accounts for. */
static int read_gap_tokens(struct reading *r, struct vt_err *err)
{
    struct vt_record *q = r->q;
    const struct vt_node *list;
    uint64_t sum = q->n_gaps;
    int rc = jsonl_get_list(r->row, "itl_tokens", &list, err);

    if (rc == VT_OK && list) {
        if (!is_parallel(r, list))
            return jsonl_bad_field(r->row, "itl_tokens", "is not parallel to 'itl_ms'",
                                   err);
        rc = read_u32_list(r, list, "itl_tokens", 1, &q->gap_tokens, err);
        sum = 0;
        for (uint32_t i = 0; rc == VT_OK && i < q->n_gaps; i++)
            sum += q->gap_tokens[i];
    }
    if (rc == VT_OK && sum > 0 && sum >= q->output_tokens)
        return vt_fail(err, VT_EINPUT,
                       "line %u: gaps of %" PRIu64
                       " tokens after the first do not fit in output_tokens %u",
                       r->row->line, sum, q->output_tokens);
    return rc;
}

/* ---- content ---------------------------------------------------------- */

/* One [name, tokens] or [name, tokens, offset]. */
static bool is_segment(const struct vt_node *n, uint32_t *tokens, uint32_t *offset)
{
    *offset = 0;
    return n->kind == VT_LIST && n->n >= 2 && n->n <= 3 &&
           n->u.item[0].kind == VT_STR && jsonl_node_u32(&n->u.item[1], 0, tokens) &&
           (n->n == 2 || jsonl_node_u32(&n->u.item[2], 0, offset));
}

static int read_segments(struct reading *r, struct vt_err *err)
{
    struct vt_record *q = r->q;
    struct vt_record_segment *named = NULL;
    struct vt_segment *run = NULL;
    const struct vt_node *list;
    uint64_t sum = 0;
    int rc = jsonl_get_list(r->row, "segments", &list, err);

    if (rc != VT_OK || !list)
        return rc;
    if (r->lean)
        run = vt_arena_alloc(r->arena, list->n * sizeof(*run));
    else
        named = vt_arena_alloc(r->arena, list->n * sizeof(*named));
    if (!run && !named)
        return vt_nomem(err);
    for (uint32_t i = 0; i < list->n; i++) {
        const struct vt_node *n = &list->u.item[i], *name = n->u.item;
        uint32_t tokens, offset;

        if (!is_segment(n, &tokens, &offset) ||
            (r->lean && offset > UINT32_MAX - tokens))
            return jsonl_bad_field(r->row, "segments",
                                   "must hold [name, tokens] or [name, tokens, offset]",
                                   err);
        sum += tokens;
        if (r->lean) {
            run[i] = (struct vt_segment){vt_content_named(name->u.str, name->n), offset,
                                         tokens};
            continue;
        }
        named[i] = (struct vt_record_segment){.tokens = tokens, .offset = offset};
        rc = read_text(r, name, &named[i].name, err);
        if (rc != VT_OK)
            return rc;
    }
    if (sum != q->prompt_tokens)
        return vt_fail(err, VT_EINPUT,
                       "line %u: field 'segments' sums to %" PRIu64
                       " tokens, but prompt_tokens is %u",
                       r->row->line, sum, q->prompt_tokens);
    q->segment = named;
    q->run = run;
    q->n_segments = list->n;
    return VT_OK;
}

static int read_hashes(struct reading *r, struct vt_err *err)
{
    const struct vt_node *list;
    uint64_t *v;
    int rc = jsonl_get_list(r->row, "block_hashes", &list, err);

    if (rc != VT_OK || !list || r->q->run)
        return rc;
    v = vt_arena_alloc(r->arena, list->n * sizeof(*v));
    if (!v)
        return vt_nomem(err);
    for (uint32_t i = 0; i < list->n; i++)
        if (!vt_node_u64(&list->u.item[i], UINT64_MAX, &v[i]))
            return jsonl_bad_field(r->row, "block_hashes",
                                   "must hold unsigned 64-bit integers", err);
    r->q->block_hash = v;
    r->q->n_block_hashes = list->n;
    return VT_OK;
}

static int read_token_ids(struct reading *r, struct vt_err *err)
{
    const struct vt_node *list;
    int rc;

    if (r->lean)
        return VT_OK;
    rc = jsonl_get_list(r->row, "output_token_ids", &list, err);
    if (rc != VT_OK || !list)
        return rc;
    if (list->n != r->q->output_tokens)
        return vt_fail(err, VT_EINPUT,
                       "line %u: field 'output_token_ids' has %u ids, but "
                       "output_tokens is %u",
                       r->row->line, list->n, r->q->output_tokens);
    return read_u32_list(r, list, "output_token_ids", 0, &r->q->token_id, err);
}

/* ---- requests --------------------------------------------------------- */

static int read_sizes(struct reading *r, struct vt_err *err)
{
    const struct vt_node *row = r->row;
    struct vt_record *q = r->q;
    int64_t priority = 0;
    int rc;

    if ((rc = vt_get_u32(row, "prompt_tokens", VT_REQUIRED, 1, TRACE_MAX_TOKENS,
                         &q->prompt_tokens, err)) ||
        (rc = jsonl_get_u32(row, "cached_tokens", 0, q->prompt_tokens,
                            &q->cached_tokens, err)) ||
        (rc = vt_get_u32(row, "output_tokens", VT_REQUIRED, 1, TRACE_MAX_TOKENS,
                         &q->output_tokens, err)) ||
        (rc = jsonl_get_u32(row, "concurrency", 0, INT32_MAX, &q->concurrency, err)) ||
        (rc = jsonl_get_u32(row, "max_tokens", 1, UINT32_MAX, &q->max_tokens, err)))
        return rc;
    if (vt_get_non_null(row, "priority"))
        rc = vt_get_i64(row, "priority", VT_REQUIRED, INT32_MIN, INT32_MAX, &priority,
                        err);
    q->priority = (int32_t)priority;
    return rc;
}

/* A text without NUL, or (for sessions) an integer. */
static int read_name(struct reading *r, const char *key, const char *whose,
                     const char **out, struct vt_err *err)
{
    const struct vt_node *n = vt_get_non_null(r->row, key);
    char number[24];

    if (!n)
        return VT_OK;
    if (n->kind == VT_INT && out == &r->q->session) {
        int len = snprintf(number, sizeof(number), "%" PRId64, n->u.integer);

        *out = vt_arena_copy(r->arena, number, (size_t)len);
        return *out ? VT_OK : vt_nomem(err);
    }
    if (n->kind != VT_STR)
        return jsonl_bad_field(r->row, key,
                               out == &r->q->session ? "must be a string or an integer"
                                                     : "is not a string",
                               err);
    if (memchr(n->u.str, '\0', n->n))
        return vt_fail(err, VT_EINPUT, "line %u: %s holds a NUL character",
                       r->row->line, whose);
    return read_text(r, n, out, err);
}

bool jsonl_is_abort(const char *finish_reason)
{
    static const char *const words[] = {"abort",     "aborted", "error",
                                        "cancelled", "timeout", NULL};

    return finish_reason && vt_is_one_of(finish_reason, words);
}

bool jsonl_has_no_output(const struct vt_node *row)
{
    const struct vt_node *output = vt_get_non_null(row, "output_tokens");
    const struct vt_node *finish = vt_get(row, "finish_reason");

    if (!finish || finish->kind != VT_STR)
        return false;
    if (!output)
        return jsonl_is_abort(finish->u.str);
    return output->kind == VT_INT && output->u.integer == 0;
}

bool jsonl_was_given_up(const struct vt_node *row)
{
    const struct vt_node *by = vt_get(row, "aborted_by");

    return !by || by->kind != VT_STR || strcmp(by->u.str, "tap") != 0;
}

int jsonl_read_row(struct vt_record *q, struct vt_arena *a, const struct vt_node *row,
                   bool lean, struct vt_err *err)
{
    struct reading r = {.arena = a, .row = row, .lean = lean, .q = q};
    const struct vt_node *ctx = vt_get_non_null(row, "itl_ctx");
    const struct vt_node *running = vt_get(ctx, "num_running");
    const struct vt_node *prefill = vt_get(ctx, "prefill_tokens");
    const char *finish = NULL;
    int rc;

    *q = records_nothing;
    q->line = row->line;
    if ((rc = jsonl_get_str(row, "finish_reason", &finish, err)) ||
        (finish && (rc = read_text(&r, vt_get_non_null(row, "finish_reason"),
                                   &q->finish_reason, err))) ||
        (rc = read_name(&r, "id", "an id", &q->id, err)) ||
        (rc = jsonl_get_ms(row, "arrival_ms", &q->arrival_ns, err)) ||
        (rc = read_sizes(&r, err)) ||
        (rc = read_name(&r, "session", "a session's name", &q->session, err)) ||
        (q->session &&
         (rc = vt_get_u32(row, "turn", VT_REQUIRED, 0, INT32_MAX, &q->turn, err))) ||
        (rc = jsonl_get_ms(row, "think_ms", &q->think_ns, err)) ||
        (rc = read_name(&r, "lora", "an adapter's name", &q->lora, err)) ||
        (rc = read_segments(&r, err)) || (rc = read_hashes(&r, err)) ||
        (rc = read_token_ids(&r, err)) || (rc = read_gaps(&r, err)) ||
        (rc = read_gap_tokens(&r, err)))
        return rc;
    if (ctx && (!is_parallel(&r, running) || !is_parallel(&r, prefill)))
        return jsonl_bad_field(row, "itl_ctx", "is not parallel to 'itl_ms'", err);
    if ((ctx &&
         ((rc = read_u32_list(&r, running, "itl_ctx", 0, &q->gap_running, err)) ||
          (rc = read_u32_list(&r, prefill, "itl_ctx", 0, &q->gap_prefill, err)))) ||
        (rc = jsonl_get_ms(row, "ttft_ms", &q->ttft_ns, err)) ||
        (rc = jsonl_get_ms(row, "queue_ms", &q->queue_ns, err)))
        return rc;
    if (q->ttft_ns < 0)
        q->n_gaps = 0; /* half a measurement */
    return VT_OK;
}
