/* roofline.c - the slower of computing and reading, as BLIS's roofline.
 *
 * Two matrices to a feed-forward layer, peaks scaled by a fixed utilisation for prompts
 * and for decodes, weights read once a step. Not modelled: communication, launches, and
 * anything on the host. */
#include "model/blis/blis.h"

#include <math.h>

static const struct analytic_spec spec = {.alpha_kind = ALPHA_PROMPT,
                                          .also = "release"};

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

/* ---- as of March 2026 --------------------------------------------------- */

/* Prompts and decodes were two phases, one after the other, each of which read all
 * weights; three matrices to a feed-forward layer, experts not told apart; and there
 * was a price for each layer, for joining what GPUs computed, and for the step. One fit
 * for all GPUs. */
#define EARLY_MFU_PREFILL   0.65
#define EARLY_MFU_DECODE    0.12
#define EARLY_VECTOR        0.10 /* of the peak, for what is no product of matrices */
#define EARLY_BANDWIDTH     0.72
#define EARLY_STEP_US       500.0
#define EARLY_LAYER_US      20.0
#define EARLY_ALL_REDUCE_US 20.0

static double early_ffn(const struct analytic *m)
{
    double f = m->l_dense > 0 ? m->f_dense : m->f_moe;

    return f > 0 ? f : 4 * m->d;
}

static double early_phase(const struct analytic *m, const struct vt_step_plan *p,
                          bool prefill)
{
    double f = early_ffn(m), products = 0, vectors = 0, moved = 0;
    double peak = m->gpu.fp16_tflops * 1e6;

    for (uint32_t i = 0; i < p->n; i++) {
        const struct vt_item *it = &p->item[i];
        double n = it->tokens;
        double before = it->origin == VT_WAS_RUNNING ? it->computed : 0;
        double ctx = n > 1 ? before + (n - 1) / 2 : before;

        if (it->prefill != prefill)
            continue;
        products += m->l * (2 * n * (2 * m->d * m->d + 2 * m->d * m->dkv) +
                            4 * m->heads * n * ctx * m->h + 6 * n * m->d * f);
        vectors += m->l * (5 * m->heads * n * ctx + 2 * n * m->d);
        moved += bytes(m, n, before);
    }
    moved +=
        m->l * (2 * m->d * m->d + 2 * m->d * m->dkv + 3 * m->d * f) * m->element_bytes;
    return fmax((products / (prefill ? EARLY_MFU_PREFILL : EARLY_MFU_DECODE) +
                 vectors / EARLY_VECTOR) /
                    (m->tp * peak),
                moved / (m->tp * m->byte_us * EARLY_BANDWIDTH));
}

static void early_step(const struct vt_latency *base, const struct vt_step_shape *s,
                       struct vt_step_cost *cost)
{
    const struct analytic *m = (const struct analytic *)base;
    double us = EARLY_STEP_US + m->l * EARLY_LAYER_US;

    if (m->tp > 1)
        us += m->l * 2 * EARLY_ALL_REDUCE_US;
    if (s->plan->n_prefills > 0)
        us += early_phase(m, s->plan, true);
    if (s->plan->n_decodes > 0)
        us += early_phase(m, s->plan, false);
    cost->gpu_us = floor(us + 0.5); /* the others are cut */
}

static const struct vt_latency_ops early_ops = {
    .name = "roofline",
    .step = early_step,
    .arrival_us = analytic_arrival,
};

/* ---- either --------------------------------------------------------------- */

static const struct vt_latency_ops ops = {
    .name = "roofline",
    .step = roofline_step,
    .arrival_us = analytic_arrival,
};

static int roofline_open(struct vt_latency **out, const struct vt_node *params,
                         struct vt_err *err)
{
    const char *release = NULL;
    int rc = vt_get_str(params, "release", VT_OPTIONAL, &release, err);

    *out = NULL;
    if (rc == VT_OK && release && strcmp(release, "b05154c") != 0)
        rc = vt_fail(err, VT_EINPUT, "field 'release' must be b05154c, or not stated");
    return rc ? rc
              : analytic_open(out, sizeof(struct analytic), release ? &early_ops : &ops,
                              params, &spec, err);
}

const struct vt_model_kind model_roofline = {
    .name = "roofline",
    .help = "FLOPs against the GPU's peak, bytes against its bandwidth (BLIS)",
    .example = "roofline:hf_config=llama-3.1-8b-instruct,gpu=H100",
    .open = roofline_open,
};
