/* trained_roofline.c - rooflines of prompts, decodes and weights with learned
 * factors, as BLIS 0.6.9 to 0.7.9. Weights count two bytes each, and a mixture's layers
 * are as wide as intermediate_size; communication costs nothing. */
#include "model/blis/blis.h"

#include <math.h>

struct trained_roofline {
    struct analytic a;
    struct bases_unit unit;
    double attention_us, ffn_us; /* of reading weights; ffn: of one expert */
};

static const struct analytic_spec spec = {
    .alpha_kind = ALPHA_POST,
    .alpha = {9315.338771116985, 1849.5902371340574, 1.7079389122469397},
    .beta = {0.7726491335309499, 1.127489556719325, 1.0559901872766853, 0.0,
             43.500541908701074, 48.80613214319187, 0.0},
    .n_beta = 7,
    .min_betas = 7,
    .max_betas = 7,
};

static void trained_roofline_step(const struct vt_latency *base,
                                  const struct vt_step_shape *s,
                                  struct vt_step_cost *cost)
{
    const struct trained_roofline *m = (const struct trained_roofline *)base;
    const double *beta = m->a.beta;
    const struct vt_step_plan *p = s->plan;
    struct bases b = bases_of(&m->unit, p);
    double tokens = (double)p->prefill_tokens + p->decode_tokens;
    /* Every token brings k experts, until all are there. */
    double met =
        m->a.experts > 0 ? fmin(m->a.experts, fmax(m->a.k, tokens * m->a.k)) : 1;
    double weights = m->attention_us + m->ffn_us * met;

    cost->gpu_us = beta[0] * fmax(b.prefill_compute, b.prefill_kv) +
                   beta[1] * fmax(b.decode_compute, b.decode_kv) + beta[2] * weights +
                   beta[4] * m->a.l + beta[5] * p->n + beta[6];
}

static const struct vt_latency_ops ops = {
    .name = "trained-roofline",
    .step = trained_roofline_step,
    .arrival_us = analytic_arrival,
};

static int trained_roofline_open(struct vt_latency **out, const struct vt_node *params,
                                 struct vt_err *err)
{
    struct trained_roofline *m;
    int rc = analytic_open(out, sizeof(*m), &ops, params, &spec, err);

    if (rc != VT_OK)
        return rc;
    m = (struct trained_roofline *)*out;
    m->unit = bases_unit_of(&m->a);
    m->unit.flop_us = m->a.gpu.fp16_tflops * 1e6;
    m->unit.ffn_flop = m->a.l * m->a.k * 6 * m->a.d * m->a.arch.ffn / m->a.tp;
    m->attention_us =
        m->a.l * m->a.d * (2 * m->a.d + 2 * m->a.dkv) * 2 / m->a.tp / m->unit.byte_us;
    m->ffn_us = m->a.l * 3 * m->a.d * m->a.arch.ffn * 2 / m->a.tp / m->unit.byte_us;
    return VT_OK;
}

const struct vt_model_kind model_trained_roofline = {
    .name = "trained-roofline",
    .help = "rooflines of prompts, decodes and weights, learned factors (BLIS 0.7.9)",
    .example = "trained-roofline:hf_config=llama-3.1-8b-instruct,gpu=H100",
    .open = trained_roofline_open,
};
