/* timings.c - what a line of trace.jsonl says of its request's timing. */
#include <inttypes.h>

#include "trace/jsonl/jsonl.h"

/* So that a short line cannot ask for much memory. */
enum { MAX_SUMMARY_GAPS = 1000000 };

struct gaps { /* itl_ms and what is parallel to it; NULL: absent */
    const struct vt_node *ms, *tokens;
    bool by_mean; /* itl_summary instead: so many gaps of so much */
    vt_ns mean_ns;
    uint32_t count;
};

static int check_ctx(const struct vt_node *row, const struct gaps *g,
                     struct vt_err *err)
{
    static const char *const keys[] = {"num_running", "prefill_tokens"};
    const struct vt_node *ctx = jsonl_field(row, "itl_ctx");
    uint32_t ignored;

    if (!ctx)
        return VT_OK;
    for (size_t k = 0; k < VT_COUNT(keys); k++) {
        const struct vt_node *list = vt_get(ctx, keys[k]);

        if (!list || list->kind != VT_LIST || !g->ms || list->n != g->ms->n)
            return jsonl_bad_field(row, "itl_ctx", "is not parallel to 'itl_ms'", err);
        for (uint32_t i = 0; i < list->n; i++)
            if (!jsonl_node_u32(&list->u.item[i], 0, &ignored))
                return jsonl_bad_field(row, "itl_ctx", "must hold integers from 0",
                                       err);
    }
    return VT_OK;
}

/* The first chunk holds at least one token that no gap accounts for. */
static int check_tokens(const struct vt_node *row, const struct gaps *g,
                        uint32_t output_tokens, struct vt_err *err)
{
    uint64_t sum = g->count;

    if (g->tokens) {
        if (!g->ms || g->tokens->n != g->ms->n)
            return jsonl_bad_field(row, "itl_tokens", "is not parallel to 'itl_ms'",
                                   err);
        sum = 0;
        for (uint32_t i = 0; i < g->tokens->n; i++) {
            uint32_t tokens;

            if (!jsonl_node_u32(&g->tokens->u.item[i], 1, &tokens))
                return jsonl_bad_field(row, "itl_tokens", "must hold integers from 1",
                                       err);
            sum += tokens;
        }
    }
    if (sum > 0 && sum >= output_tokens)
        return vt_fail(err, VT_EINPUT,
                       "line %u: gaps of %" PRIu64
                       " tokens after the first do not fit in output_tokens %u",
                       row->line, sum, output_tokens);
    return VT_OK;
}

static int find_gaps(const struct vt_node *row, struct gaps *g, struct vt_err *err)
{
    const struct vt_node *summary = jsonl_field(row, "itl_summary");
    int rc = jsonl_get_list(row, "itl_ms", &g->ms, err);

    if (rc == VT_OK)
        rc = jsonl_get_list(row, "itl_tokens", &g->tokens, err);
    if (rc != VT_OK)
        return rc;
    if (g->ms) {
        g->count = g->ms->n;
        return VT_OK;
    }
    if (!summary)
        return VT_OK;
    if (summary->kind != VT_MAP || !jsonl_field(summary, "mean_ms"))
        return jsonl_bad_field(row, "itl_summary", "needs 'mean_ms' and 'count'", err);
    g->by_mean = true;
    rc = jsonl_get_ms(summary, "mean_ms", &g->mean_ns, err);
    if (rc == VT_OK)
        rc = vt_get_u32(summary, "count", VT_REQUIRED, 0, MAX_SUMMARY_GAPS, &g->count,
                        err);
    return rc;
}

static int add_gaps(struct jsonl *f, const struct vt_node *row, const struct gaps *g,
                    struct vt_err *err)
{
    int rc = VT_OK;

    for (uint32_t i = 0; i < g->count && rc == VT_OK; i++) {
        vt_ns gap_ns = g->mean_ns;
        uint32_t tokens = 1;

        if (g->ms && !jsonl_node_ms(&g->ms->u.item[i], &gap_ns))
            return jsonl_bad_field(row, "itl_ms", "must hold milliseconds from 0", err);
        if (g->tokens)
            (void)jsonl_node_u32(&g->tokens->u.item[i], 1,
                                 &tokens); /* checked before */
        if (!f->b->untimed)
            rc = vt_within(err, trace_build_gap(f->b, gap_ns, tokens, err), "line %u",
                           row->line);
    }
    return rc;
}

int jsonl_read_timings(struct jsonl *f, const struct vt_node *row,
                       uint32_t cached_tokens, struct vt_err *err)
{
    const struct vt_work *q = &f->b->w->req[f->b->w->n - 1];
    struct gaps g = {0};
    vt_ns ttft_ns = 0;
    int rc = find_gaps(row, &g, err);

    if (rc == VT_OK)
        rc = check_tokens(row, &g, q->output_tokens, err);
    if (rc == VT_OK)
        rc = check_ctx(row, &g, err);
    if (rc == VT_OK)
        rc = jsonl_get_ms(row, "ttft_ms", &ttft_ns, err);
    if (rc != VT_OK)
        return rc;
    if (!jsonl_field(row, "ttft_ms") || !(g.ms || g.by_mean || q->output_tokens == 1))
        f->b->untimed = true;
    if (!f->b->untimed)
        rc = trace_build_measured(f->b, ttft_ns, cached_tokens, err);
    if (rc == VT_OK && (g.ms || !f->b->untimed))
        rc = add_gaps(f, row, &g, err);
    return rc;
}
