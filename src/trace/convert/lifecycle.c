/* lifecycle.c - inference-perf's per_request_lifecycle_metrics.json, measured at the
 * client. Until 0.6 counts and times stood in `info`; since 0.7 they are in
 * info.request_metrics and info.response_metrics. */
#include <stdlib.h>

#include "trace/convert/convert.h"

/* ---- what else the run left ------------------------------------------- */

struct stage {
    uint32_t requests, concurrency;
};

struct report {
    struct vt_records *r;
    struct convert_prompts prompts;
    double *start; /* when requests were sent, ascending; failed ones too */
    size_t n;
    struct stage *stage; /* of a run with `load.type: concurrent`; else none */
    size_t n_stages;
};

/* The run's configuration beside its results says what load it was. Requests do not
 * name their stage, but each stage sends as many as it says before the next begins. */
static int read_stages(struct report *in, const char *path, struct vt_err *err)
{
    const struct vt_node *root, *load, *type, *list;
    struct vt_arena a = {0};
    int rc = path ? convert_beside(&a, path, "config.yaml", &root, err) : VT_OK;

    if (rc != VT_OK || !path)
        goto out;
    load = vt_get(root, "load");
    type = vt_get(load, "type");
    list = vt_get(load, "stages");
    if (!type || type->kind != VT_STR || strcmp(type->u.str, "concurrent") != 0 ||
        !list || list->kind != VT_LIST || list->n == 0)
        goto out;
    in->stage = calloc(list->n, sizeof(*in->stage));
    if (!in->stage) {
        rc = vt_nomem(err);
        goto out;
    }
    for (uint32_t i = 0; i < list->n && rc == VT_OK; i++) {
        const struct vt_node *s = &list->u.item[i];
        struct stage *to = &in->stage[in->n_stages++];
        char name[32];

        rc = vt_get_u32(s, "num_requests", VT_REQUIRED, 1, INT32_MAX, &to->requests,
                        err);
        if (rc == VT_OK)
            rc = vt_get_u32(s, "concurrency_level", VT_REQUIRED, 1, INT32_MAX,
                            &to->concurrency, err);
        snprintf(name, sizeof(name), "concurrent-%u", to->concurrency);
        if (rc == VT_OK)
            rc = convert_part(in->r, list->n > 1 ? name : NULL, to->concurrency, err);
        rc = vt_within(err, rc, "config.yaml");
    }
out:
    vt_arena_free(&a);
    return rc;
}

static int list_starts(struct report *in, const struct vt_node *root,
                       struct vt_err *err)
{
    in->start = malloc((root->n + 1) * sizeof(*in->start));
    if (!in->start)
        return vt_nomem(err);
    for (uint32_t i = 0; i < root->n; i++)
        if (convert_number(vt_get(&root->u.item[i], "start_time"), &in->start[in->n]))
            in->n++;
    vt_sort_f64(in->start, in->n);
    return VT_OK;
}

static uint32_t stage_of(const struct report *in, const struct vt_node *row)
{
    size_t before = 0, lo = 0, hi = in->n;
    double at = 0;

    (void)convert_number(vt_get(row, "start_time"), &at);
    while (lo < hi) { /* how many were sent sooner */
        size_t mid = (lo + hi) / 2;

        if (in->start[mid] < at)
            lo = mid + 1;
        else
            hi = mid;
    }
    for (size_t i = 0; i + 1 < in->n_stages; i++) {
        before += in->stage[i].requests;
        if (lo < before)
            return (uint32_t)i;
    }
    return in->n_stages > 0 ? (uint32_t)in->n_stages - 1 : 0;
}

/* ---- requests --------------------------------------------------------- */

/* What a row says, wherever its release puts it. */
struct row {
    uint32_t input, output, cached;
    const struct vt_node *times, *usage;
};

static int read_counts(struct row *w, const struct vt_node *info, struct vt_err *err)
{
    const struct vt_node *asked = vt_get(vt_get(info, "request_metrics"), "text");
    const struct vt_node *answer = vt_get_non_null(info, "response_metrics");
    const struct vt_node *details;
    int rc;

    *w = (struct row){.usage = vt_get_non_null(answer, "server_usage")};
    details = vt_get_non_null(w->usage, "prompt_tokens_details");
    w->times = vt_get_non_null(answer, "output_token_times");
    if (!w->times)
        w->times = vt_get_non_null(info, "output_token_times");
    /* Later ones count more: the server's own are exact. */
    const struct {
        const struct vt_node *map;
        const char *key;
        uint32_t *out;
    } count[] = {{info, "input_tokens", &w->input},
                 {asked, "input_tokens", &w->input},
                 {w->usage, "prompt_tokens", &w->input},
                 {info, "output_tokens", &w->output},
                 {answer, "output_tokens", &w->output},
                 {w->usage, "completion_tokens", &w->output},
                 {details, "cached_tokens", &w->cached}};

    for (size_t i = 0; i < VT_COUNT(count); i++)
        if ((rc = jsonl_get_u32(count[i].map, count[i].key, 0, TRACE_MAX_TOKENS,
                                count[i].out, err)))
            return rc;
    return VT_OK;
}

static bool has_text(const struct vt_node *n, const char *text)
{
    return n && n->kind == VT_STR && strstr(n->u.str, text);
}

/* inference-perf calls a stream complete that tells of an error in its midst. It shows
 * in the stream, or in that the usage is missing which the request had asked for. */
static bool was_broken_off(const struct vt_node *row, const struct row *w)
{
    if (has_text(vt_get(row, "response"), "data: {\"error\""))
        return true;
    return !w->usage && w->times &&
           has_text(vt_get(row, "request"), "\"include_usage\": true");
}

static int add_times(struct vt_records *r, struct vt_record *q,
                     const struct vt_node *times, struct vt_err *err)
{
    vt_ns *gap = vt_arena_alloc(&r->arena, times->n * sizeof(*gap));
    vt_ns last = q->arrival_ns;

    if (!gap)
        return vt_nomem(err);
    for (uint32_t i = 0; i < times->n; i++) {
        vt_ns at;

        if (!convert_seconds(&times->u.item[i], &at) || at < last)
            return vt_fail(err, VT_EINPUT, "output_token_times are not ascending");
        if (i == 0)
            q->ttft_ns = at - last;
        else
            gap[i - 1] = at - last;
        last = at;
    }
    return convert_gaps(r, q, gap, times->n - 1, err);
}

static int add_request(struct report *in, const struct vt_node *row, struct vt_err *err)
{
    const struct vt_node *info = vt_get_non_null(row, "info");
    struct vt_records *r = in->r;
    struct vt_record *q;
    struct row w;
    vt_ns start;
    int rc;

    if (!convert_seconds(vt_get(row, "start_time"), &start) || !info)
        return vt_fail(err, VT_EINPUT, "needs 'start_time' and 'info'");
    if ((rc = read_counts(&w, info, err)))
        return rc;
    if (vt_get_non_null(row, "error") || w.input == 0 || w.output == 0 ||
        was_broken_off(row, &w) || convert_has_hole(w.times)) {
        records_skip(r, stage_of(in, row));
        return VT_OK;
    }
    if (!w.times || w.times->kind != VT_LIST || w.times->n == 0)
        return vt_fail(err, VT_EINPUT,
                       "no output_token_times: the run did not stream, so first tokens "
                       "were not seen");
    if ((rc = records_add(r, &q, err)))
        return rc;
    q->prompt_tokens = w.input;
    q->output_tokens = w.output;
    q->cached_tokens = w.cached < w.input ? w.cached : w.input;
    q->arrival_ns = start;
    q->part = stage_of(in, row);
    if ((rc = jsonl_copy_str(&r->arena, info, "lora_adapter", &q->lora, err)) ||
        (rc = convert_prompt_add(&in->prompts, vt_get_non_null(row, "request"),
                                 r->n - 1, err)))
        return rc;
    return add_times(r, q, w.times, err);
}

int convert_lifecycle_tree(struct vt_records *r, const struct vt_node *root,
                           const struct convert_from *from, struct vt_err *err)
{
    struct report in = {.r = r, .prompts.tokenizer = from ? from->tokenizer : NULL};
    int rc;

    if (root->kind != VT_LIST)
        return vt_fail(err, VT_EINPUT,
                       "not a list of requests (summaries and stages hold none; "
                       "per_request_lifecycle_metrics.json does)");
    if (!(rc = read_stages(&in, from ? from->path : NULL, err)))
        rc = list_starts(&in, root, err);
    for (uint32_t i = 0; i < root->n && rc == VT_OK; i++)
        rc = vt_within(err, add_request(&in, &root->u.item[i], err), "request %u", i);
    if (rc == VT_OK)
        rc = convert_prompts_share(&in.prompts, r, err);
    convert_prompts_free(&in.prompts);
    free(in.start);
    free(in.stage);
    return rc ? rc : convert_from_first(r, err);
}
