/* roofline.c - the slower of computing and reading, as BLIS's roofline.
 *
 * Two matrices to a feed-forward layer, peaks scaled by a fixed utilisation for prompts
 * and for decodes, weights read once a step. Not modelled: communication, launches, and
 * anything on the host. */
#include "model/blis/blis.h"

#include <math.h>

static const struct analytic_spec spec = {.alpha_kind = ALPHA_PROMPT};

static double flops(const struct analytic *m, double tokens, double before)
{
    double ctx = tokens > 1 ? before + (tokens - 1) / 2 : before;
    double projections =
        2 * tokens * (m->d * m->d + 2 * m->d * m->dkv) + 2 * tokens * m->d * m->d;
    double attention = 4 * m->heads * tokens * ctx * m->h;
    double vectors = 5 * m->heads * tokens * ctx + 2 * tokens * m->d;
    double ffn =
        2 * tokens * 2 * m->d * (m->l_moe * m->f_moe * m->k + m->l_dense * m->f_dense);

    return m->l * (projections + attention) + ffn + m->l * vectors;
}

static double bytes(const struct analytic *m, double tokens, double before)
{
    double kv = 2 * m->l * m->dkv * m->element_bytes;

    return kv * tokens + kv * before + m->l * m->d * m->element_bytes * tokens;
}

static double weight_bytes(const struct analytic *m, double tokens)
{
    double elements = m->l * (m->d * (m->d + 2 * m->dkv) + m->d * m->d) +
                      2 * m->d * m->f_dense * m->l_dense;

    if (m->l_moe > 0) {
        /* Of n experts, those that at least one of the tokens picks, each k. */
        double met = m->experts * (1 - pow((m->experts - m->k) / m->experts, tokens));

        elements += 2 * m->d * m->f_moe * met * m->l_moe;
    }
    return elements * m->weight_bytes;
}

static void roofline_step(const struct vt_latency *base, const struct vt_step_shape *s,
                          struct vt_step_cost *cost)
{
    const struct analytic *m = (const struct analytic *)base;
    const struct vt_step_plan *p = s->plan;
    double compute = 0, moved = 0;

    for (uint32_t i = 0; i < p->n; i++) {
        const struct vt_item *it = &p->item[i];
        double mfu = it->prefill ? m->gpu.mfu_prefill : m->gpu.mfu_decode;
        /* What a new request found in the prefix cache is no context to BLIS yet. */
        double before = it->origin == VT_WAS_RUNNING ? it->computed : 0;

        compute += flops(m, it->tokens, before) / m->tp / (m->flop_us * mfu);
        moved += bytes(m, it->tokens, before) / m->tp;
    }
    moved += weight_bytes(m, (double)p->prefill_tokens + p->decode_tokens) / m->tp;
    cost->gpu_us = fmax(compute, moved / m->byte_us);
}

static const struct vt_latency_ops ops = {
    .name = "roofline",
    .step = roofline_step,
    .arrival_us = analytic_arrival,
};

static int roofline_open(struct vt_latency **out, const struct vt_node *params,
                         struct vt_err *err)
{
    return analytic_open(out, sizeof(struct analytic), &ops, params, &spec, err);
}

const struct vt_model_kind model_roofline = {
    .name = "roofline",
    .help = "FLOPs against the GPU's peak, bytes against its bandwidth (BLIS)",
    .example = "roofline:hf_config=llama-3.1-8b-instruct,gpu=H100",
    .open = roofline_open,
};
