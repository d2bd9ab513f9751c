/* crossmodel.c - four coefficients over four features of the model, as BLIS
 * 0.6.7 to 0.7.9. Not modelled: what a dense model's prompts cost. */
#include "model/blis/blis.h"

static const struct analytic_spec spec = {
    .alpha_kind = ALPHA_PROMPT,
    .alpha = {13732.0, 0.0, 860.6},
    .beta = {116.110, 1226.868, 19.943, 9445.157},
    .n_beta = 4,
    .min_betas = 4,
    .max_betas = 4,
};

static void crossmodel_step(const struct vt_latency *base,
                            const struct vt_step_shape *s, struct vt_step_cost *cost)
{
    const struct analytic *m = (const struct analytic *)base;
    double decode = s->plan->decode_tokens, all = decode + s->plan->prefill_tokens;

    cost->gpu_us =
        m->beta[0] * m->l + m->beta[1] * decode * (m->l * m->dkv / m->tp * 1e-6) +
        m->beta[2] * (m->experts > 0 ? all : 0) + m->beta[3] * (m->tp > 1 ? 1 : 0);
}

static const struct vt_latency_ops ops = {
    .name = "crossmodel",
    .step = crossmodel_step,
    .arrival_us = analytic_arrival,
};

static int crossmodel_open(struct vt_latency **out, const struct vt_node *params,
                           struct vt_err *err)
{
    return analytic_open(out, sizeof(struct analytic), &ops, params, &spec, err);
}

const struct vt_model_kind model_crossmodel = {
    .name = "crossmodel",
    .help =
        "layers, KV width, experts and tensor parallelism, fitted once (BLIS 0.7.9)",
    .example = "crossmodel:hf_config=llama-3.1-8b-instruct,gpu=H100",
    .open = crossmodel_open,
};
