/* told.c - reading what a server says of itself. */
#include "learn/told.h"

#include <string.h>

/* ---- counters ----------------------------------------------------------- */

void told_counters(struct told_counters *t, const char *metrics, size_t len)
{
    const char *end = metrics + len;
    struct vt_load_sample s;

    *t = (struct told_counters){0};
    while (vt_load_sample_next(&metrics, end, &s)) {
        if (!(s.value >= 0 && s.value < 1e15))
            continue;
        if (vt_load_sample_is(&s, "vllm:num_requests_running")) {
            t->running += (uint32_t)s.value;
            t->found = true;
        } else if (vt_load_sample_is(&s, "vllm:num_requests_waiting")) {
            t->waiting += (uint32_t)s.value;
        } else if (vt_load_sample_is(&s, "vllm:request_success_total")) {
            t->ended += (uint64_t)s.value;
        } else if (vt_load_sample_is(&s, "vllm:num_preemptions_total")) {
            t->preemptions += (uint64_t)s.value;
        } else if (vt_load_sample_is(&s, "vllm:spec_decode_num_drafts_total")) {
            t->drafts = true;
        }
    }
}

/* ---- limits ------------------------------------------------------------- */

static uint32_t label_u32(const struct vt_load_sample *s, const char *key)
{
    char text[32];
    double v = 0;

    vt_load_sample_label(s, key, text, sizeof(text));
    return vt_parse_f64(text, strlen(text), &v) && v >= 0 && v < INT32_MAX ? (uint32_t)v
                                                                           : 0;
}

static int label_flag(const struct vt_load_sample *s, const char *key)
{
    char text[32];

    vt_load_sample_label(s, key, text, sizeof(text));
    return strcmp(text, "True") == 0 ? 1 : strcmp(text, "False") == 0 ? 0 : -1;
}

int told_cache(struct vt_meta *m, const char *metrics, size_t len, struct vt_err *err)
{
    const char *at = metrics, *end = metrics + len;
    struct vt_load_sample s;
    uint32_t engines = 0;

    while (vt_load_sample_next(&at, end, &s)) {
        if (!vt_load_sample_is(&s, "vllm:cache_config_info"))
            continue;
        engines++;
        m->num_gpu_blocks = label_u32(&s, "num_gpu_blocks");
        m->block_size = label_u32(&s, "block_size");
        m->enable_prefix_caching = label_flag(&s, "enable_prefix_caching");
    }
    if (engines == 0)
        return vt_fail(err, VT_ECHECK,
                       "/metrics has no vllm:cache_config_info: this is not vLLM, or "
                       "it runs with --disable-log-stats");
    if (engines > 1)
        return vt_fail(err, VT_ECHECK,
                       "%u engines answer at this address; learn from one of them",
                       (unsigned)engines);
    return VT_OK;
}

static const struct vt_node *find(const struct vt_node *at, const char *key)
{
    const struct vt_node *found = at->kind == VT_MAP ? vt_get(at, key) : NULL;

    for (uint32_t i = 0;
         !found && (at->kind == VT_MAP || at->kind == VT_LIST) && i < at->n; i++)
        found = find(&at->u.item[i], key);
    return found;
}

static void find_u32(const struct vt_node *root, const char *key, uint32_t *out)
{
    uint64_t v = 0;

    if (vt_node_u64(find(root, key), INT32_MAX, &v) && v > 0)
        *out = (uint32_t)v;
}

void told_config(struct vt_meta *m, const struct vt_node *root)
{
    const struct vt_node *async = find(root, "async_scheduling");

    find_u32(root, "max_num_seqs", &m->max_num_seqs);
    find_u32(root, "max_num_batched_tokens", &m->max_num_batched_tokens);
    find_u32(root, "tensor_parallel_size", &m->tp);
    if (async && async->kind == VT_BOOL)
        m->async_scheduling = async->u.boolean;
}
