/* guidellm.c - requests of a guidellm report (0.6 to 0.8). It measures at the
 * client and keeps of each request its first and last token only, so gaps are known by
 * their mean. A report tells of several benchmarks, one after the other; each is a load
 * of its own. */
#include "trace/convert/convert.h"

struct report {
    size_t unseen; /* requests without times of tokens */
    struct vt_records *r;
    struct convert_prompts prompts;
    uint32_t streams; /* of the benchmark being read */
    bool alone;       /* it is the only one */
};

/* How many were in flight by the strategy's own account; 0: it does not say. */
static uint32_t streams_of(const struct vt_node *benchmark)
{
    const struct vt_node *strategy = vt_get(vt_get(benchmark, "config"), "strategy");
    const char *kind = "";
    uint32_t n = 0;
    struct vt_err ignored;

    (void)!jsonl_get_str(strategy, "type_", &kind, &ignored);
    if (strcmp(kind, "synchronous") == 0)
        return 1;
    if (strcmp(kind, "concurrent") == 0)
        (void)!jsonl_get_u32(strategy, "streams", 1, INT32_MAX, &n, &ignored);
    else if (strcmp(kind, "throughput") == 0)
        (void)!jsonl_get_u32(strategy, "max_concurrency", 1, INT32_MAX, &n, &ignored);
    return n;
}

static int number_or(const struct vt_node *row, const char *key, double *out,
                     struct vt_err *err)
{
    const struct vt_node *n = vt_get_non_null(row, key);

    if (n && !convert_number(n, out))
        return vt_fail(err, VT_EINPUT, "line %u: field '%s' is not a number", n->line,
                       key);
    return VT_OK;
}

static int note_turn(struct vt_records *r, struct vt_record *q,
                     const struct vt_node *info, struct vt_err *err)
{
    int rc;

    if (!info || info->kind != VT_MAP)
        return VT_OK;
    rc = jsonl_copy_str(&r->arena, info, "conversation_id", &q->session, err);
    return rc ? rc : jsonl_get_u32(info, "turn_index", 0, INT32_MAX, &q->turn, err);
}

static int add_request(struct report *in, const struct vt_node *row, struct vt_err *err)
{
    struct vt_records *r = in->r;
    const struct vt_node *start = vt_get_non_null(row, "request_start_time");
    double ttft = -1, itl = -1;
    uint32_t prompt = 0, output = 0, cached = 0;
    struct vt_record *q;
    int rc;

    if ((rc = jsonl_get_u32(row, "prompt_tokens", 0, TRACE_MAX_TOKENS, &prompt, err)) ||
        (rc = jsonl_get_u32(row, "output_tokens", 0, TRACE_MAX_TOKENS, &output, err)) ||
        (rc = jsonl_get_u32(row, "cached_tokens", 0, TRACE_MAX_TOKENS, &cached, err)) ||
        (rc = number_or(row, "time_to_first_token_ms", &ttft, err)) ||
        (rc = number_or(row, "inter_token_latency_ms", &itl, err)))
        return rc;
    if (prompt == 0 || output == 0) {
        records_skip(r, r->n_parts > 0 ? r->n_parts - 1 : 0);
        return VT_OK;
    }
    if (ttft < 0 || (output > 1 && itl < 0)) {
        in->unseen++;
        records_skip(r, r->n_parts > 0 ? r->n_parts - 1 : 0);
        return VT_OK;
    }
    if ((rc = records_add(r, &q, err)) ||
        (rc = jsonl_copy_str(&r->arena, row, "request_id", &q->id, err)) ||
        (rc = note_turn(r, q, vt_get_non_null(row, "info"), err)) ||
        (rc = convert_prompt_add(&in->prompts, vt_get_non_null(row, "request_args"),
                                 r->n - 1, err)))
        return rc;
    q->prompt_tokens = prompt;
    q->output_tokens = output;
    q->cached_tokens = cached < prompt ? cached : prompt;
    q->part = r->n_parts > 0 ? r->n_parts - 1 : 0;
    q->concurrency = start ? 0 : in->streams; /* times tell better */
    q->ttft_ns = vt_ns_from_ms(ttft);
    if (start && !convert_seconds(start, &q->arrival_ns))
        return vt_fail(err, VT_EINPUT, "line %u: 'request_start_time' is no time",
                       start->line);
    return convert_mean(r, q, vt_ns_from_ms(itl > 0 ? itl : 0), output - 1, err);
}

/* "concurrent-4", "poisson-2", ...: how the load is called where there are several. */
static int add_load(struct report *in, const struct vt_node *benchmark, uint32_t number,
                    struct vt_err *err)
{
    const struct vt_node *strategy = vt_get(vt_get(benchmark, "config"), "strategy");
    struct vt_err ignored;
    const char *kind = "benchmark";
    char name[64];

    in->streams = streams_of(benchmark);
    if (in->alone && in->streams == 0)
        return VT_OK;
    (void)!jsonl_get_str(strategy, "type_", &kind, &ignored);
    snprintf(name, sizeof(name), "%.40s-%u", kind,
             in->streams > 0 ? in->streams : number);
    return convert_part(in->r, in->alone ? NULL : name, in->streams, err);
}

static size_t length_of(const struct vt_node *list)
{
    return list && list->kind == VT_LIST ? list->n : 0;
}

static int add_benchmark(struct report *in, const struct vt_node *benchmark,
                         uint32_t number, struct vt_err *err)
{
    const struct vt_node *requests = vt_get(benchmark, "requests");
    const struct vt_node *list = vt_get(requests, "successful");
    const struct vt_node *model =
        vt_get(vt_get(vt_get(benchmark, "config"), "backend"), "model");
    int rc = VT_OK;

    if (!list)
        list = vt_get(requests, "completed");
    if (!list || list->kind != VT_LIST)
        return vt_fail(
            err, VT_EINPUT,
            "no list requests.successful (or completed): the report was made "
            "without its requests");
    if (!in->r->meta.model && model && model->kind == VT_STR && model->n > 0)
        rc = vt_arena_text(&in->r->arena, model->u.str, &in->r->meta.model, err);
    if (rc || (rc = add_load(in, benchmark, number, err)))
        return rc;
    for (uint32_t i = 0; i < list->n && rc == VT_OK; i++)
        rc = add_request(in, &list->u.item[i], err);
    for (size_t i = length_of(vt_get(requests, "errored")); i > 0; i--)
        records_skip(in->r, in->r->n_parts > 0 ? in->r->n_parts - 1 : 0);
    in->r->n_skipped += length_of(vt_get(requests, "incomplete")); /* at its end */
    return rc;
}

int convert_guidellm_tree(struct vt_records *r, const struct vt_node *root,
                          const struct convert_from *from, struct vt_err *err)
{
    const struct vt_node *list = vt_get(root, "benchmarks");
    const struct vt_node *model = vt_get(vt_get(root, "args"), "model");
    struct report in = {.r = r, .prompts.tokenizer = from ? from->tokenizer : NULL};
    int rc = VT_OK;

    if (!list || list->kind != VT_LIST)
        return vt_fail(err, VT_EINPUT, "no list 'benchmarks'");
    in.alone = list->n == 1;
    if (model && model->kind == VT_STR)
        rc = vt_arena_text(&r->arena, model->u.str, &r->meta.model, err);
    for (uint32_t i = 0; i < list->n && rc == VT_OK; i++)
        rc = vt_within(err, add_benchmark(&in, &list->u.item[i], i, err),
                       "benchmark %u", i);
    if (rc == VT_OK)
        rc = convert_need_times(
            r, in.unseen, "time_to_first_token_ms or inter_token_latency_ms", err);
    if (rc == VT_OK)
        rc = convert_prompts_share(&in.prompts, r, err);
    if (rc == VT_OK)
        rc = convert_sessions(r, err);
    convert_prompts_free(&in.prompts);
    return rc ? rc : convert_from_first(r, err);
}
