/* terms.c - what latencies are regressed on: features by name, and products of them.
 * What is fitted and what is simulated go through the same terms. */
#include "model/model.h"

#include <math.h>

const struct vt_feature vt_features[VT_FEATURES] = {
    [VT_F_NUM_PREFILL] = {"num_prefill", "prompt", VT_OF_STEP},
    [VT_F_NUM_DECODE] = {"num_decode", "request", VT_OF_STEP},
    [VT_F_PREFILL_TOKENS] = {"prefill_tokens", "token", VT_OF_STEP},
    [VT_F_DECODE_TOKENS] = {"decode_tokens", "token", VT_OF_STEP},
    [VT_F_SCHEDULED_TOKENS] = {"scheduled_tokens", "token", VT_OF_STEP},
    [VT_F_PREFILL_RATIO] = {"prefill_ratio", "1", VT_OF_STEP},
    [VT_F_DECODE_CONTEXT] = {"decode_context", "token", VT_OF_STEP},
    [VT_F_PREFILL_CONTEXT] = {"prefill_context", "token^2", VT_OF_STEP},
    [VT_F_KV_BLOCKS] = {"kv_blocks", "block", VT_OF_STEP},
    [VT_F_KV_RATIO] = {"kv_ratio", "1", VT_OF_STEP | VT_OF_REQUEST},
    [VT_F_RUNNING_DEPTH] = {"running_depth", "request", VT_OF_STEP | VT_OF_REQUEST},
    [VT_F_QUEUE_DEPTH] = {"queue_depth", "request", VT_OF_STEP | VT_OF_REQUEST},
    [VT_F_PROMPT_TOKENS] = {"prompt_tokens", "token", VT_OF_REQUEST},
    [VT_F_PREFIX_HIT_RATIO] = {"prefix_hit_ratio", "1", VT_OF_REQUEST},
    [VT_F_SINCE_SCHED_MS] = {"since_sched_ms", "ms", VT_OF_REQUEST},
    [VT_F_BATCH_FULLNESS] = {"batch_fullness", "1", VT_OF_REQUEST},
    [VT_F_MODEL_SIZE] = {"model_size", "1e9 weights", VT_OF_ENGINE},
    [VT_F_SIZE_PROXY] = {"size_proxy", "1", VT_OF_ENGINE},
    [VT_F_LAYERS] = {"layers", "layer", VT_OF_ENGINE},
    [VT_F_IS_MOE] = {"is_moe", "1", VT_OF_ENGINE},
    [VT_F_EXPERT_SHARE] = {"expert_share", "1", VT_OF_ENGINE},
    [VT_F_KV_HEAD_RATIO] = {"kv_head_ratio", "1", VT_OF_ENGINE},
    [VT_F_KV_BYTES] = {"kv_bytes_per_token", "byte", VT_OF_ENGINE},
    [VT_F_TP] = {"tp", "GPU", VT_OF_ENGINE},
    [VT_F_COMPUTE_TO_BANDWIDTH] = {"compute_to_bandwidth", "flop/byte", VT_OF_ENGINE},
    [VT_F_MEMORY_GB] = {"memory_gb", "GB", VT_OF_ENGINE},
    [VT_F_RELATIVE_FACTOR] = {"relative_factor", "1", VT_OF_ENGINE},
    [VT_F_WEIGHTS_US] = {"weights_us", "us", VT_OF_ENGINE},
    [VT_F_TOKEN_US] = {"token_us", "us", VT_OF_ENGINE},
    [VT_F_CONTEXT_US] = {"context_us", "us", VT_OF_ENGINE},
};

/* Other names that documents use. */
static const struct {
    const char *name;
    enum vt_feature_id is;
} aliases[] = {
    {"prompt_length", VT_F_PROMPT_TOKENS},  {"model_layers", VT_F_LAYERS},
    {"waiting_depth", VT_F_QUEUE_DEPTH},    {"kv_usage", VT_F_KV_RATIO},
    {"num_prefill_reqs", VT_F_NUM_PREFILL}, {"num_decode_reqs", VT_F_NUM_DECODE},
};

/* ---- values ------------------------------------------------------------ */

void vt_features_of_step(double v[VT_FEATURES], const struct vt_step_batch *s)
{
    v[VT_F_NUM_PREFILL] = s->prefills;
    v[VT_F_NUM_DECODE] = s->decodes;
    v[VT_F_PREFILL_TOKENS] = s->prefill_tokens;
    v[VT_F_DECODE_TOKENS] = s->decode_tokens;
    v[VT_F_SCHEDULED_TOKENS] = (double)s->prefill_tokens + s->decode_tokens;
    v[VT_F_PREFILL_RATIO] =
        (double)s->prefill_tokens / (s->decode_tokens > 1 ? s->decode_tokens : 1);
    v[VT_F_DECODE_CONTEXT] = s->decode_context;
    v[VT_F_PREFILL_CONTEXT] = s->prefill_context;
    v[VT_F_KV_BLOCKS] = s->kv_blocks;
    v[VT_F_KV_RATIO] = s->kv_ratio;
    v[VT_F_RUNNING_DEPTH] = s->running;
    v[VT_F_QUEUE_DEPTH] = s->waiting;
}

/* The H100 of the GPU table: what others are so many times as fast as. */
static const double H100_TBS = 3.35;

void vt_features_of_engine(double v[VT_FEATURES], const struct vt_arch *a,
                           const struct vt_gpu *g, uint32_t tp)
{
    v[VT_F_TP] = tp;
    if (a) {
        v[VT_F_MODEL_SIZE] = vt_arch_params(a) / 1e9;
        v[VT_F_SIZE_PROXY] = (double)a->hidden * a->layers;
        v[VT_F_LAYERS] = a->layers;
        v[VT_F_IS_MOE] = a->experts > 0;
        v[VT_F_EXPERT_SHARE] =
            a->experts > 0 ? (double)a->experts_per_token / a->experts : 1;
        v[VT_F_KV_HEAD_RATIO] = a->heads > 0 ? (double)a->kv_heads / a->heads : 0;
        v[VT_F_KV_BYTES] = vt_arch_kv_bytes(a, 1, a->kv_bytes);
    }
    if (g) {
        v[VT_F_COMPUTE_TO_BANDWIDTH] = g->fp16_tflops / g->bandwidth_tbs;
        v[VT_F_MEMORY_GB] = g->memory_gb;
        v[VT_F_RELATIVE_FACTOR] = g->bandwidth_tbs / H100_TBS;
    }
    if (a && g) {
        double bytes_us = g->bandwidth_tbs * 1e6;

        v[VT_F_WEIGHTS_US] = vt_arch_weight_bytes(a, tp) * vt_arch_active_params(a) /
                             vt_arch_params(a) / bytes_us;
        v[VT_F_TOKEN_US] = 2 * vt_arch_active_params(a) / tp / (g->fp16_tflops * 1e6);
        v[VT_F_CONTEXT_US] = vt_arch_kv_bytes(a, tp, a->kv_bytes) / bytes_us;
    }
}

/* ---- terms ------------------------------------------------------------- */

static int find_feature(const char *name, size_t len)
{
    for (int i = 0; i < VT_FEATURES; i++)
        if (strlen(vt_features[i].name) == len &&
            memcmp(vt_features[i].name, name, len) == 0)
            return i;
    for (size_t i = 0; i < VT_COUNT(aliases); i++)
        if (strlen(aliases[i].name) == len && memcmp(aliases[i].name, name, len) == 0)
            return (int)aliases[i].is;
    return -1;
}

static int unknown_feature(const char *name, size_t len, struct vt_err *err)
{
    const char *names[VT_FEATURES + 1] = {NULL}, *near;
    char word[64];

    for (int i = 0; i < VT_FEATURES; i++)
        names[i] = vt_features[i].name;
    (void)snprintf(word, sizeof(word), "%.*s", (int)(len < 60 ? len : 60), name);
    near = vt_nearest(word, names);
    return vt_fail(err, VT_EINPUT, "unknown feature '%s'%s%s%s", word,
                   near ? " (did you mean '" : "", near ? near : "", near ? "'?)" : "");
}

/* One factor, "name" or "name^2", joined with the same feature's if it is there. */
static int add_factor(struct vt_term *t, const char *text, size_t len,
                      struct vt_err *err)
{
    const char *hat = memchr(text, '^', len);
    size_t name = hat ? (size_t)(hat - text) : len;
    int id = find_feature(text, name);
    uint64_t power = 1;
    uint8_t i = 0;

    if (id < 0)
        return unknown_feature(text, name, err);
    if (hat && (!vt_parse_u64(hat + 1, len - name - 1, &power) || power < 1 ||
                power > VT_TERM_POWER))
        return vt_fail(err, VT_EINPUT, "'%.*s': a power is 1 to %d", (int)len, text,
                       VT_TERM_POWER);
    while (i < t->n && t->factor[i].feature != id)
        i++;
    if (i == VT_TERM_FACTORS ||
        (i < t->n && t->factor[i].power + power > VT_TERM_POWER))
        return vt_fail(err, VT_EINPUT, "'%.*s': too many factors", (int)len, text);
    t->n = i < t->n ? t->n : (uint8_t)(i + 1);
    t->factor[i].feature = (uint8_t)id;
    t->factor[i].power = (uint8_t)(t->factor[i].power + power);
    return VT_OK;
}

int vt_term_parse(struct vt_term *t, const char *text, size_t len, struct vt_err *err)
{
    int rc = VT_OK;

    *t = (struct vt_term){0};
    while (rc == VT_OK) {
        const char *star = memchr(text, '*', len);
        size_t part = star ? (size_t)(star - text) : len;

        rc = add_factor(t, text, part, err);
        if (!star)
            break;
        text += part + 1;
        len -= part + 1;
    }
    return rc;
}

void vt_term_name(char out[VT_TERM_NAME], const struct vt_term *t)
{
    size_t used = 0;

    out[0] = '\0';
    for (uint8_t i = 0; i < t->n && used < VT_TERM_NAME; i++) {
        const char *name = vt_features[t->factor[i].feature].name;
        unsigned power = t->factor[i].power;
        int n = power > 1 ? snprintf(out + used, VT_TERM_NAME - used, "%s%s^%u",
                                     i ? "*" : "", name, power)
                          : snprintf(out + used, VT_TERM_NAME - used, "%s%s",
                                     i ? "*" : "", name);

        used += n > 0 ? (size_t)n : 0;
    }
}

unsigned vt_term_of(const struct vt_term *t)
{
    unsigned of = VT_OF_STEP | VT_OF_REQUEST;
    bool varies = false;

    for (uint8_t i = 0; i < t->n; i++) {
        unsigned f = vt_features[t->factor[i].feature].of;

        if (f & VT_OF_ENGINE)
            continue;
        of &= f;
        varies = true;
    }
    return varies ? of : VT_OF_STEP | VT_OF_REQUEST | VT_OF_ENGINE;
}

double vt_term_value(const struct vt_term *t, const double v[VT_FEATURES])
{
    double x = 1;

    for (uint8_t i = 0; i < t->n; i++)
        for (uint8_t k = 0; k < t->factor[i].power; k++)
            x *= v[t->factor[i].feature];
    return x;
}

double vt_terms_value(const struct vt_terms *s, const double v[VT_FEATURES])
{
    double y = s->intercept;

    for (size_t i = 0; i < s->n; i++)
        if (s->coefficient[i] < 0 || s->coefficient[i] > 0)
            y += s->coefficient[i] * vt_term_value(&s->term[i], v);
    return y;
}
