/* bench.c - what `vllm bench serve --save-detailed` and inference-perf report
 * of single requests. Both measured at the client. */
#include "trace/convert/convert.h"

#define MAX_GAP (1000 * 1000 * VT_SEC)

static int bad_request(const char *what, size_t i, struct vt_err *err)
{
    return vt_fail(err, VT_EINPUT, "request %zu: %s", i, what);
}

/* ---- vllm bench ------------------------------------------------------- */

struct bench {
    const struct vt_node *input, *output, *ttft, *itl, *start;
};

static int find_arrays(const struct vt_node *root, struct bench *b, struct vt_err *err)
{
    b->input = vt_get(root, "input_lens");
    b->output = vt_get(root, "output_lens");
    b->ttft = vt_get(root, "ttfts");
    b->itl = vt_get(root, "itls");
    b->start = vt_get(root, "start_times");
    if (!b->input || !b->output || !b->ttft || !b->itl)
        return vt_fail(err, VT_EINPUT,
                       "the result holds summaries only; `vllm bench serve "
                       "--save-detailed` keeps what single requests took");
    if (b->input->kind != VT_LIST || b->output->kind != VT_LIST ||
        b->ttft->kind != VT_LIST || b->itl->kind != VT_LIST ||
        b->output->n != b->input->n || b->ttft->n != b->input->n ||
        b->itl->n != b->input->n)
        return vt_fail(
            err, VT_EINPUT,
            "input_lens, output_lens, ttfts and itls are not parallel lists");
    if (b->start && (b->start->kind != VT_LIST || b->start->n != b->input->n))
        b->start = NULL;
    return VT_OK;
}

static int add_bench(struct vt_records *r, const struct bench *b, uint32_t i,
                     struct vt_err *err)
{
    const struct vt_node *itl = &b->itl->u.item[i];
    uint32_t input, output;
    vt_ns ttft, start = -1, sum = 0, *gap;
    struct vt_record *q;
    int rc;

    if (!jsonl_node_u32(&b->input->u.item[i], 0, &input) ||
        !jsonl_node_u32(&b->output->u.item[i], 0, &output) ||
        !convert_seconds(&b->ttft->u.item[i], &ttft) || itl->kind != VT_LIST)
        return bad_request("lengths, ttft or itls are not numbers", i, err);
    if (b->start && !convert_seconds(&b->start->u.item[i], &start))
        return bad_request("start_times holds no number", i, err);
    if (output == 0 || input == 0) {
        r->n_skipped++;
        return VT_OK;
    }
    rc = records_add(r, &q, err);
    gap = vt_arena_alloc(&r->arena, itl->n * sizeof(*gap));
    if (rc || !gap)
        return vt_within(err, rc ? rc : vt_nomem(err), "request %u", i);
    for (uint32_t k = 0; k < itl->n; k++) {
        if (!convert_seconds(&itl->u.item[k], &gap[k]) || gap[k] > MAX_GAP)
            return bad_request("a gap is not a number of seconds", i, err);
        if (sum < INT64_MAX / 2)
            sum += gap[k]; /* a longer request is refused later */
    }
    q->prompt_tokens = input;
    q->output_tokens = output;
    q->ttft_ns = ttft;
    q->arrival_ns = start;
    if (itl->n < output) {
        q->gap = gap;
        q->n_gaps = itl->n;
    } else if (output > 1) { /* chunks may hold no token, or parts of one */
        rc = convert_mean(r, q, sum / (output - 1), output - 1, err);
    }
    return vt_within(err, rc, "request %u", i);
}

int convert_bench_tree(struct vt_records *r, const struct vt_node *root,
                       struct vt_err *err)
{
    struct bench b;
    int rc = find_arrays(root, &b, err);

    if (rc == VT_OK)
        rc = jsonl_copy_str(&r->arena, root, "model_id", &r->meta.model, err);
    for (uint32_t i = 0; rc == VT_OK && i < b.input->n; i++)
        rc = add_bench(r, &b, i, err);
    return rc ? rc : convert_from_first(r, err);
}

/* ---- inference-perf --------------------------------------------------- */

/* Events are stamped, not tokens: there may be two for each token. */
static int add_events(struct vt_records *r, struct vt_record *q,
                      const struct vt_node *times, struct vt_err *err)
{
    vt_ns *gap = vt_arena_alloc(&r->arena, times->n * sizeof(*gap));
    vt_ns first = 0, last = q->arrival_ns;

    if (!gap)
        return vt_nomem(err);
    for (uint32_t i = 0; i < times->n; i++) {
        vt_ns at;

        if (!convert_seconds(&times->u.item[i], &at) || at < last)
            return vt_fail(err, VT_EINPUT, "output_token_times are not ascending");
        if (i == 0)
            first = at;
        else
            gap[i - 1] = at - last;
        last = at;
    }
    q->ttft_ns = first - q->arrival_ns;
    if (times->n == q->output_tokens) {
        q->gap = gap;
        q->n_gaps = times->n - 1;
        return VT_OK;
    }
    if (q->output_tokens < 2)
        return VT_OK;
    return convert_mean(r, q, (last - first) / (q->output_tokens - 1),
                        q->output_tokens - 1, err);
}

static int add_lifecycle(struct vt_records *r, const struct vt_node *row,
                         struct vt_err *err)
{
    const struct vt_node *info = vt_get(row, "info");
    const struct vt_node *times = vt_get(info, "output_token_times");
    uint32_t input = 0, output = 0;
    struct vt_record *q;
    vt_ns start;
    int rc;

    if (!convert_seconds(vt_get(row, "start_time"), &start) || !info)
        return vt_fail(err, VT_EINPUT, "needs 'start_time' and 'info'");
    if ((rc = jsonl_get_u32(info, "input_tokens", 0, TRACE_MAX_TOKENS, &input, err)) ||
        (rc = jsonl_get_u32(info, "output_tokens", 0, TRACE_MAX_TOKENS, &output, err)))
        return rc;
    if (vt_get_non_null(row, "error") || input == 0 || output == 0) {
        r->n_skipped++;
        return VT_OK;
    }
    if (!times || times->kind != VT_LIST || times->n == 0)
        return vt_fail(err, VT_EINPUT,
                       "no output_token_times: the run did not stream, so first tokens "
                       "were not seen");
    rc = records_add(r, &q, err);
    if (rc != VT_OK)
        return rc;
    q->prompt_tokens = input;
    q->output_tokens = output;
    q->arrival_ns = start;
    return add_events(r, q, times, err);
}

int convert_lifecycle_tree(struct vt_records *r, const struct vt_node *root,
                           struct vt_err *err)
{
    int rc = VT_OK;

    if (root->kind != VT_LIST)
        return vt_fail(err, VT_EINPUT,
                       "not a list of requests (summaries and stages hold none; "
                       "per_request_lifecycle_metrics.json does)");
    for (uint32_t i = 0; i < root->n && rc == VT_OK; i++)
        rc = vt_within(err, add_lifecycle(r, &root->u.item[i], err), "request %u", i);
    return rc ? rc : convert_from_first(r, err);
}
