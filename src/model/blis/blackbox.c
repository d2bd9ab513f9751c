/* blackbox.c - alpha and beta per (model, GPU, TP), as BLIS up to 0.7.10:
 * step = b0 + b1 * prefill tokens + b2 * decoding requests; arrival to queue =
 * a0 + a1 * prompt tokens; every output token costs a2 more outside the steps. */
#include "model/params.h"

struct blackbox {
    struct vt_latency head;
    double alpha[3], beta[3]; /* microseconds */
};

static void blackbox_step(const struct vt_latency *base, const struct vt_step_shape *s,
                          struct vt_step_cost *cost)
{
    const struct blackbox *m = (const struct blackbox *)base;

    cost->gpu_us = m->beta[0] + m->beta[1] * s->plan->prefill_tokens +
                   m->beta[2] * s->plan->n_decodes;
}

static double blackbox_arrival(const struct vt_latency *base, uint32_t prompt_tokens)
{
    const struct blackbox *m = (const struct blackbox *)base;

    return m->alpha[0] + m->alpha[1] * prompt_tokens;
}

static const struct vt_latency_ops ops = {
    .name = "blackbox",
    .step = blackbox_step,
    .arrival_us = blackbox_arrival,
};

static int blackbox_open(struct vt_latency **out, const struct vt_node *params,
                         struct vt_err *err)
{
    static const char *const known[] = {"alpha", "beta", NULL};
    struct blackbox *m = calloc(1, sizeof(*m));
    int rc = !m ? vt_nomem(err) : vt_only_keys(params, known, err);

    if (rc != VT_OK || (rc = params_list(params, "alpha", m->alpha, 3, err)) ||
        (rc = params_list(params, "beta", m->beta, 3, err))) {
        free(m);
        return rc;
    }
    m->head.ops = &ops;
    m->head.token_us = m->alpha[2];
    *out = &m->head;
    return VT_OK;
}

const struct vt_model_kind model_blackbox = {
    .name = "blackbox",
    .help = "alpha/beta coefficients: step = b0 + b1*prefill tokens + b2*decodes (us)",
    .example = "blackbox:alpha=1000,1,500,beta=5000,10,20",
    .open = blackbox_open,
};
