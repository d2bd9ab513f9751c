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

#define MS(name, field) {name, offsetof(struct knob, field), 0, 1e7}

static const struct param params[] = {
    MS("time_to_first_token", ttft), /* mean */
    MS("time_to_first_token_std_dev", ttft_sd),
    MS("inter_token_latency", itl), /* mean */
    MS("inter_token_latency_std_dev", itl_sd),
    MS("prefill_overhead", prefill_overhead), /* where time_to_first_token is 0 */
    MS("prefill_time_per_token", prefill_per_token), /* uncached ones of the prompt */
    MS("prefill_time_std_dev", prefill_sd),
    /* Factor on all times when max-num-seqs requests run. */
    {"time_factor_under_load", offsetof(struct knob, load_factor), 1, 1e6},
    /* 1: prompts are computed elsewhere and their KV cache arrives. */
    {"remote_prefill", offsetof(struct knob, remote), 0, 1},
    MS("kv_cache_transfer_latency", transfer), /* of such a prompt, mean */
    MS("kv_cache_transfer_latency_std_dev", transfer_sd),
    MS("kv_cache_transfer_time_per_token", transfer_per_token), /* where that is 0 */
    MS("kv_cache_transfer_time_std_dev", transfer_per_token_sd),
    {NULL, 0, 0, 0},
};

static double load_of(const struct knob *m, const struct vt_step_shape *s)
{
    double n = s->plan->running > 1 ? s->plan->running - 1.0 : 0.0;

    if (s->max_num_seqs <= 1)
        return 1.0;
    return 1.0 + (m->load_factor - 1.0) * n / (s->max_num_seqs - 1.0);
}

static double draw_clamped(double mean, double sd, uint64_t seed, uint64_t item,
                           uint64_t k)
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
        cost->gpu_us = 1e3 * draw_clamped(m->itl * load_of(m, s), m->itl_sd, s->seed,
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
    return 1e3 * draw_clamped(mean, sd, vt_hash2(s->seed, purpose), tag, 0);
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
