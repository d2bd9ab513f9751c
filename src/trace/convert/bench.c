/* bench.c - what `vllm bench serve --save-detailed` reports of single requests,
 * measured at the client. */
#include "trace/convert/convert.h"

#define MAX_GAP (1000 * 1000 * VT_SEC)

static int bad_request(const char *what, size_t i, struct vt_err *err)
{
    return vt_fail(err, VT_EINPUT, "request %zu: %s", i, what);
}

/* ---- vllm bench ------------------------------------------------------- */

struct bench {
    const struct vt_node *input, *output, *ttft, *itl;
    const struct vt_node *start, *error; /* NULL: not there */
};

static const struct vt_node *parallel_list(const struct vt_node *root, const char *key,
                                           uint32_t n)
{
    const struct vt_node *list = vt_get(root, key);

    return list && list->kind == VT_LIST && list->n == n ? list : NULL;
}

static int find_arrays(const struct vt_node *root, struct bench *b, struct vt_err *err)
{
    b->input = vt_get(root, "input_lens");
    b->output = vt_get(root, "output_lens");
    b->ttft = vt_get(root, "ttfts");
    b->itl = vt_get(root, "itls");
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
    b->start = parallel_list(root, "start_times", b->input->n);
    b->error = parallel_list(root, "errors", b->input->n);
    return VT_OK;
}

/* What went wrong is a text; "" where nothing did. */
static bool has_failed(const struct bench *b, uint32_t i)
{
    return b->error && b->error->u.item[i].kind == VT_STR && b->error->u.item[i].n > 0;
}

/* Null, or NaN, where a number should be: it was not measured. */
static bool lacks_number(const struct bench *b, uint32_t i)
{
    const struct vt_node *const lists[] = {b->input, b->output, b->ttft, b->start};

    for (size_t k = 0; k < VT_COUNT(lists); k++)
        if (lists[k] && lists[k]->u.item[i].kind == VT_NULL)
            return true;
    return convert_has_hole(&b->itl->u.item[i]);
}

static int add_bench(struct vt_records *r, const struct bench *b, uint32_t i,
                     struct vt_err *err)
{
    const struct vt_node *itl = &b->itl->u.item[i];
    uint32_t input, output;
    vt_ns ttft, start = -1, *gap;
    struct vt_record *q;
    int rc;

    if (lacks_number(b, i)) {
        records_skip(r, 0);
        return VT_OK;
    }
    if (!jsonl_node_u32(&b->input->u.item[i], 0, &input) ||
        !jsonl_node_u32(&b->output->u.item[i], 0, &output) ||
        !convert_seconds(&b->ttft->u.item[i], &ttft) || itl->kind != VT_LIST)
        return bad_request("lengths, ttft or itls are not numbers", i, err);
    if (b->start && !convert_seconds(&b->start->u.item[i], &start))
        return bad_request("start_times holds no number", i, err);
    if (output == 0 || input == 0 || has_failed(b, i)) {
        records_skip(r, 0);
        return VT_OK;
    }
    rc = records_add(r, &q, err);
    gap = vt_arena_alloc(&r->arena, itl->n * sizeof(*gap));
    if (rc || !gap)
        return vt_within(err, rc ? rc : vt_nomem(err), "request %u", i);
    for (uint32_t k = 0; k < itl->n; k++)
        if (!convert_seconds(&itl->u.item[k], &gap[k]) || gap[k] > MAX_GAP)
            return bad_request("a gap is not a number of seconds", i, err);
    q->prompt_tokens = input;
    q->output_tokens = output;
    q->ttft_ns = ttft;
    q->arrival_ns = start;
    rc = convert_gaps(r, q, gap, itl->n, err);
    return vt_within(err, rc, "request %u", i);
}

/* Without a rate of its own a limit of requests in flight makes a closed loop. */
static int add_load(struct vt_records *r, const struct vt_node *root,
                    struct vt_err *err)
{
    const struct vt_node *rate = vt_get_non_null(root, "request_rate");
    uint32_t limit = 0;
    int rc = jsonl_get_u32(root, "max_concurrency", 1, INT32_MAX, &limit, err);

    if (rc != VT_OK || limit == 0 || !rate || rate->kind != VT_STR)
        return rc;
    return convert_part(r, NULL, limit, err);
}

int convert_bench_tree(struct vt_records *r, const struct vt_node *root,
                       const struct convert_from *from, struct vt_err *err)
{
    struct bench b = {0};
    int rc = find_arrays(root, &b, err);

    (void)from;
    if (rc || (rc = jsonl_copy_str(&r->arena, root, "model_id", &r->meta.model, err)) ||
        (rc = add_load(r, root, err)))
        return rc;
    for (uint32_t i = 0; rc == VT_OK && i < b.input->n; i++)
        rc = add_bench(r, &b, i, err);
    return rc ? rc : convert_from_first(r, err);
}
