/* latency_linear.c - a step as a sum of what is in it, in microseconds. */
#include "model/params.h"

struct linear {
    struct vt_latency head;
    double queue, post, out;
    double base, request, prefill_token, decode, context_token;
};

#define US(field) {#field, offsetof(struct linear, field), 0, PARAM_MAX}

static const struct param params[] = {
    US(queue),         /* arrival to queue */
    US(post),          /* after the last token */
    US(out),           /* each output token */
    US(base),          /* every step */
    US(request),       /* each request in it */
    US(prefill_token), /* each prompt token */
    US(decode),        /* each decoding request */
    US(context_token), /* each token of the decoding requests' context */
    {NULL, 0, 0, 0},
};

static void linear_step(const struct vt_latency *base, const struct vt_step_shape *s,
                        struct vt_step_cost *cost)
{
    const struct linear *m = (const struct linear *)base;
    const struct vt_step_plan *p = s->plan;

    cost->gpu_us = m->base + m->request * (double)(p->n_prefills + p->n_decodes) +
                   m->prefill_token * p->prefill_tokens + m->decode * p->n_decodes +
                   m->context_token * (double)p->decode_ctx;
}

static double linear_arrival(const struct vt_latency *base, uint32_t prompt_tokens)
{
    (void)prompt_tokens;
    return ((const struct linear *)base)->queue;
}

static const struct vt_latency_ops ops = {
    .name = "linear",
    .step = linear_step,
    .arrival_us = linear_arrival,
};

static int linear_open(struct vt_latency **out, const struct vt_node *node,
                       struct vt_err *err)
{
    struct linear *m = calloc(1, sizeof(*m));
    int rc = !m ? vt_nomem(err) : params_read(node, params, NULL, m, err);

    if (rc != VT_OK) {
        free(m);
        return rc;
    }
    m->head.ops = &ops;
    m->head.token_us = m->out;
    m->head.post_us = m->post;
    *out = &m->head;
    return VT_OK;
}

const struct vt_model_kind model_linear = {
    .name = "linear",
    .help =
        "step = base + request*n + prefill_token*tokens + decode*n + context_token*ctx "
        "(us)",
    .example = "linear:base=4000,request=25,prefill_token=8,context_token=0.02",
    .open = linear_open,
};
