/* latency_knob.c - llm-d-inference-sim's knobs, in milliseconds, real-valued.
 *
 * A decode step lasts one draw of the inter-token latency; a prompt costs no step
 * time but delays its own request's output by the time to first token. Draws are
 * normal, clamped to [0.3, 1.7] of the mean, and both means grow with load. Not
 * modelled: prompts that slow other requests down. */
#include "model/params.h"

struct knob {
    struct vt_latency head;
    double ttft, ttft_sd, itl, itl_sd;
    double prefill_overhead, prefill_per_token, prefill_sd;
    double load_factor;
    double remote, transfer, transfer_sd, transfer_per_token, transfer_per_token_sd;
};

#define MS_MAX 1e7

static const struct param params[] = {
    {"time_to_first_token", offsetof(struct knob, ttft), 0, MS_MAX, "mean, ms"},
    {"time_to_first_token_std_dev", offsetof(struct knob, ttft_sd), 0, MS_MAX, "ms"},
    {"inter_token_latency", offsetof(struct knob, itl), 0, MS_MAX, "mean, ms"},
    {"inter_token_latency_std_dev", offsetof(struct knob, itl_sd), 0, MS_MAX, "ms"},
    {"prefill_overhead", offsetof(struct knob, prefill_overhead), 0, MS_MAX,
     "used when time_to_first_token is 0, ms"},
    {"prefill_time_per_token", offsetof(struct knob, prefill_per_token), 0, MS_MAX,
     "per uncached prompt token, ms"},
    {"prefill_time_std_dev", offsetof(struct knob, prefill_sd), 0, MS_MAX, "ms"},
    {"time_factor_under_load", offsetof(struct knob, load_factor), 1, 1e6,
     "factor on all times when max-num-seqs requests run"},
    {"remote_prefill", offsetof(struct knob, remote), 0, 1,
     "1: prompts are computed elsewhere and their KV cache arrives"},
    {"kv_cache_transfer_latency", offsetof(struct knob, transfer), 0, MS_MAX,
     "of such a prompt, mean, ms"},
    {"kv_cache_transfer_latency_std_dev", offsetof(struct knob, transfer_sd), 0, MS_MAX,
     "ms"},
    {"kv_cache_transfer_time_per_token", offsetof(struct knob, transfer_per_token), 0,
     MS_MAX, "used when that latency is 0, ms"},
    {"kv_cache_transfer_time_std_dev", offsetof(struct knob, transfer_per_token_sd), 0,
     MS_MAX, "ms"},
    {NULL, 0, 0, 0, NULL},
};

static double load_of(const struct knob *m, const struct vt_step_shape *s)
{
    double n = s->plan->running > 1 ? s->plan->running - 1.0 : 0.0;

    if (s->max_num_seqs <= 1)
        return 1.0;
    return 1.0 + (m->load_factor - 1.0) * n / (s->max_num_seqs - 1.0);
}

static double draw(double mean, double sd, uint64_t seed, uint64_t item, uint64_t k)
{
    double v;

    if (sd <= 0.0)
        return mean;
    v = mean + sd * vt_draw_normal(seed, item, k);
    if (v < 0.3 * mean)
        return 0.3 * mean;
    return v > 1.7 * mean ? 1.7 * mean : v;
}

static void knob_step(const struct vt_latency *base, const struct vt_step_shape *s,
                      struct vt_step_cost *cost)
{
    const struct knob *m = (const struct knob *)base;

    if (s->plan->n_decodes > 0)
        cost->gpu_us = 1e3 * draw(m->itl * load_of(m, s), m->itl_sd, s->seed,
                                  UINT64_C(0x17c), s->step);
}

static double knob_first_token(const struct vt_latency *base,
                               const struct vt_step_shape *s, uint64_t tag,
                               uint32_t prompt_tokens, uint32_t uncached)
{
    const struct knob *m = (const struct knob *)base;
    double load = load_of(m, s), mean = m->ttft * load, sd = m->ttft_sd;
    uint64_t purpose = UINT64_C(0x77f7);

    if (m->remote > 0) { /* load does not slow a transfer down */
        purpose = UINT64_C(0x7fe4);
        mean = m->transfer;
        sd = m->transfer_sd;
        if (mean <= 0.0 && sd <= 0.0) {
            mean = m->transfer_per_token * prompt_tokens;
            sd = m->transfer_per_token_sd;
        }
    } else if (m->ttft <= 0.0 && m->ttft_sd <= 0.0) {
        mean = m->prefill_overhead * load + uncached * m->prefill_per_token * load;
        sd = m->prefill_sd;
    }
    return 1e3 * draw(mean, sd, vt_hash2(s->seed, purpose), tag, 0);
}

static const struct vt_latency_ops ops = {
    .name = "knob",
    .step = knob_step,
    .first_token_us = knob_first_token,
};

static int knob_open(struct vt_latency **out, const struct vt_node *node,
                     struct vt_err *err)
{
    struct knob *m = calloc(1, sizeof(*m));
    int rc = VT_OK;

    if (!m)
        return vt_nomem(err);
    m->load_factor = 1.0;
    rc = params_read(node, params, NULL, m, err);
    if (rc != VT_OK) {
        free(m);
        return rc;
    }
    m->head.ops = &ops;
    *out = &m->head;
    return VT_OK;
}

const struct vt_model_kind model_knob = {
    .name = "knob",
    .help = "llm-d-inference-sim's knobs: TTFT and ITL mean and deviation, load factor "
            "(ms)",
    .example = "knob:time_to_first_token=132,inter_token_latency=11",
    .open = knob_open,
};
