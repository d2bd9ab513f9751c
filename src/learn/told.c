/* told.c - reading what a server says of itself. */
#include "learn/told.h"

#include <math.h>
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
            t->drafts += (uint64_t)s.value;
        } else if (vt_load_sample_is(&s, "vllm:prefix_cache_queries_total")) {
            t->prefix_queries += (uint64_t)s.value;
        } else if (vt_load_sample_is(&s, "vllm:kv_cache_usage_perc")) {
            t->kv_usage = s.value;
            t->engines++;
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

int told_cache(struct vt_meta *m, bool *there, const char *metrics, size_t len,
               struct vt_err *err)
{
    const char *at = metrics, *end = metrics + len;
    struct told_counters t;
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
    *there = engines > 0;
    if (!*there) {
        told_counters(&t, metrics, len);
        engines = t.engines;
    }
    if (engines == 0)
        return vt_fail(err, VT_ECHECK,
                       "/metrics tells nothing of a KV cache: this is not vLLM, or it "
                       "runs with --disable-log-stats");
    if (engines > 1)
        return vt_fail(err, VT_ECHECK,
                       "%u engines answer at this address; learn from one of them",
                       (unsigned)engines);
    return VT_OK;
}

/* ---- a KV cache of which nothing is told -------------------------------- */

/* Where a block more is in use than before: looks with usages that rise. */
static size_t find_rises(const struct told_usage *look, size_t n,
                         struct told_usage *rise, size_t cap)
{
    double before = 0;
    size_t found = 0;

    for (size_t i = 0; i < n && found < cap; i++)
        if (look[i].usage > before + 1e-9) {
            rise[found++] = look[i];
            before = look[i].usage;
        }
    return found;
}

/* Blocks have 16 tokens or a multiple, or fewer: powers of two. */
static uint32_t usual_block(double tokens)
{
    return tokens >= 12 ? 16 * (uint32_t)lround(tokens / 16)
                        : 1u << (uint32_t)lround(log2(fmax(tokens, 1)));
}

/* All usages are whole numbers of so many blocks. */
static bool is_shared(const struct told_usage *rise, size_t n, double blocks)
{
    for (size_t i = 0; i < n; i++) {
        double used = rise[i].usage * blocks;

        if (fabs(used - round(used)) > 0.02)
            return false;
    }
    return true;
}

/* The fewest blocks that explain the usages. Between two looks several blocks may have
 * been taken: the smallest rise is of 1, or of a few. 0: nothing explains them. */
static uint32_t find_blocks(const struct told_usage *rise, size_t n)
{
    enum { MOST_AT_ONCE = 8 };
    const double top = rise[n - 1].usage;
    double least = 1;

    for (size_t i = 1; i < n; i++)
        least = fmin(least, rise[i].usage - rise[i - 1].usage);
    for (int at_once = 1; at_once <= MOST_AT_ONCE; at_once++) {
        double blocks = round(round(at_once * top / least) / top);

        if (blocks < INT32_MAX && is_shared(rise, n, blocks))
            return (uint32_t)blocks;
    }
    return 0;
}

bool told_pool(struct vt_meta *m, const struct told_usage *look, size_t n)
{
    struct told_usage rise[64];
    size_t met = find_rises(look, n, rise, VT_COUNT(rise));
    uint32_t blocks = met >= TOLD_USAGES ? find_blocks(rise, met) : 0;
    double size = INFINITY;

    if (blocks == 0)
        return false;
    /* A block was taken when those before it were full, some tokens ago. */
    for (size_t i = 1; i < met; i++)
        size = fmin(size, (double)rise[i].tokens /
                              fmax(round(rise[i].usage * blocks) - 1, 1));
    m->num_gpu_blocks = blocks + 1; /* one is nobody's */
    m->block_size = usual_block(size);
    return true;
}

/* ---- the configuration -------------------------------------------------- */

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
