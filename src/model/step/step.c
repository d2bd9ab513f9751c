/* step.c - step time from what the batch holds, and the host beside the GPU.
 *
 * Three ways to launch a step. A pure decode batch runs as one CUDA graph; a batch with
 * a prompt, of up to min(2 * max-num-seqs, graph_limit) tokens, as a graph for each
 * piece between attention layers; a larger one kernel by kernel (eager). Graphs exist
 * for 1, 2, 4 and multiples of 8 tokens, and a smaller step is padded to the next size.
 * The last two keep the host busy for milliseconds, whatever their size.
 *
 * GPU time is a sum of physical parts (weights, KV cache, experts, arithmetic), times a
 * factor that a fit may learn for each size: kernels change with the batch, and no
 * formula knows how. */
#include "model/params.h"

#include <math.h>

#define PARAM(field, hi) {#field, offsetof(struct vt_step_params, field), 0, hi}
#define US(field)        PARAM(field, PARAM_MAX)

static const struct param params[] = {
    PARAM(graph_limit, 1e6),       /* largest graph, tokens */
    PARAM(experts, 1e6),           /* of a mixture; 0: dense */
    PARAM(experts_per_token, 1e6), /* active ones */
    US(base),                      /* every step: weights, launch of kernels */
    US(expert),             /* all experts' weights; a step pays the share it touches */
    US(context_ktoken),     /* 1,000 tokens of decoding requests' context */
    US(graph_token),        /* each token, padded, of a decode step */
    US(mixed),              /* every step with a prompt, within the graphs */
    US(mixed_token),        /* each token, padded, of it */
    US(eager),              /* every larger step */
    US(eager_token),        /* each token of it */
    US(prefill),            /* each prompt in a step */
    US(depth_mtoken),       /* 1,000,000 products of a prompt token and its depth */
    US(host_arrive),        /* arrival to the input thread */
    US(host_intake),        /* that thread, for each request, */
    US(host_intake_ktoken), /* and for 1,000 tokens of its prompt */
    US(host_wake),          /* an engine at rest, until it schedules */
    US(host_nap),           /* nothing to schedule, until it looks for requests */
    US(host_sched),         /* each schedule call */
    US(host_sched_request), /* each running request in it */
    US(host_lead),          /* scheduled to started on an idle GPU */
    US(host_launch_graph),  /* launching one graph */
    US(host_launch_mixed),  /* launching graphs piece by piece */
    US(host_launch_eager),  /* launching kernel by kernel */
    US(host_tail),          /* end of such a launch to the GPU's earliest end */
    US(host_hold_tokens),   /* launches this large end with the GPU; 0: none */
    US(host_done),          /* result available to handed out */
    US(host_done_request),  /* each request in it */
    US(host_turnaround),    /* a closed-loop client's pause before its next request */
    US(host_turnaround_request), /* each request in the step that ended the last one */
    US(host_turnaround_next),    /* each client that this step let go before */
    PARAM(turnaround_noise, 3),  /* standard deviation of the pauses' logarithm */
    PARAM(launch_noise, 3),      /* standard deviation of the launch times' logarithm */
    PARAM(seen_step_tokens, 1e9),     /* most tokens in a step that was fitted */
    PARAM(seen_running, 1e9),         /* most running requests */
    PARAM(seen_context_ktokens, 1e9), /* most context of a step, 1,000 tokens */
    {NULL, 0, 0, 0},
};

/* Sizes at which the learned factors stand; between them the factor is interpolated. */
static const double graph_knots[VT_STEP_GRAPH_KNOTS] = {1,  2,  4,   8,   16,
                                                        32, 64, 128, 256, 512};
static const double mixed_knots[VT_STEP_MIXED_KNOTS] = {32,  64,  128, 192,
                                                        256, 320, 400, 512};
static const double eager_knots[VT_STEP_EAGER_KNOTS] = {256,  512,  768,  1024,
                                                        1536, 2048, 4096, 8192};

struct step {
    struct vt_latency head;
    struct vt_step_params p;
};

void vt_step_params_init(struct vt_step_params *p)
{
    *p = (struct vt_step_params){.graph_limit = 512};
    for (size_t i = 0; i < VT_STEP_GRAPH_KNOTS; i++)
        p->graph_factor[i] = 1;
    for (size_t i = 0; i < VT_STEP_MIXED_KNOTS; i++)
        p->mixed_factor[i] = 1;
    for (size_t i = 0; i < VT_STEP_EAGER_KNOTS; i++)
        p->eager_factor[i] = 1;
}

/* ---- what a step is made of ------------------------------------------- */

/* Tokens the GPU computes: padded to the next graph size. */
static uint32_t padded(uint32_t tokens)
{
    if (tokens <= 2)
        return tokens;
    return tokens <= 4 ? 4 : (tokens + 7) / 8 * 8;
}

static void place_between(const double *knot, size_t n, struct vt_step_features *f)
{
    size_t i = 0;
    double share;

    while (i + 2 < n && f->tokens > knot[i + 1])
        i++;
    share = (f->tokens - knot[i]) / (knot[i + 1] - knot[i]);
    f->knot = (uint32_t)i;
    f->share = share < 0 ? 0 : share > 1 ? 1 : share;
}

static double experts_touched(const struct vt_step_params *p, double tokens)
{
    return p->experts > 0 ? 1 - pow(1 - p->experts_per_token / p->experts, tokens) : 0;
}

void vt_step_features(const struct vt_step_params *p, const struct vt_step_plan *plan,
                      uint32_t max_num_seqs, struct vt_step_features *f)
{
    uint32_t tokens = plan->prefill_tokens + plan->decode_tokens;
    double limit =
        2.0 * max_num_seqs < p->graph_limit ? 2.0 * max_num_seqs : p->graph_limit;
    double depth = 0; /* sum over prompts of tokens times their mean depth */

    for (uint32_t i = 0; i < plan->n && plan->n_prefills > 0; i++) {
        const struct vt_item *it = &plan->item[i];

        if (it->prefill)
            depth += it->tokens * (it->computed + 0.5 * it->tokens);
    }
    *f = (struct vt_step_features){
        .mode = tokens > limit         ? VT_STEP_EAGER
                : plan->n_prefills > 0 ? VT_STEP_MIXED
                                       : VT_STEP_GRAPH,
        .context_k = 1e-3 * (double)plan->decode_ctx,
        .depth_m = 1e-6 * depth,
        .prefills = plan->n_prefills,
        .prompt_tokens = plan->prefill_tokens,
        .running = plan->running,
        .requests = plan->n_prefills + plan->n_decodes,
    };
    f->tokens = f->mode == VT_STEP_EAGER ? tokens : padded(tokens);
    f->experts = experts_touched(p, f->tokens);
    if (f->mode == VT_STEP_GRAPH)
        place_between(graph_knots, VT_STEP_GRAPH_KNOTS, f);
    else if (f->mode == VT_STEP_MIXED)
        place_between(mixed_knots, VT_STEP_MIXED_KNOTS, f);
    else
        place_between(eager_knots, VT_STEP_EAGER_KNOTS, f);
}

/* ---- what it costs ---------------------------------------------------- */

/* GPU time without the learned factor. */
static double raw_time(const struct vt_step_params *p, const struct vt_step_features *f)
{
    double memory = p->base + p->expert * f->experts + p->context_ktoken * f->context_k;
    double prompts = p->prefill * f->prefills + p->depth_mtoken * f->depth_m;

    switch (f->mode) {
    case VT_STEP_GRAPH:
        return memory + p->graph_token * f->tokens;
    case VT_STEP_MIXED:
        return memory + p->mixed + p->mixed_token * f->tokens + prompts;
    default:
        return memory + p->eager + p->eager_token * f->tokens + prompts;
    }
}

size_t vt_step_knot_costs(const struct vt_step_params *p, enum vt_step_mode mode,
                          double *cost)
{
    static const double *const knots[] = {graph_knots, mixed_knots, eager_knots};
    static const size_t n[] = {VT_STEP_GRAPH_KNOTS, VT_STEP_MIXED_KNOTS,
                               VT_STEP_EAGER_KNOTS};

    for (size_t i = 0; i < n[mode]; i++) {
        struct vt_step_features f = {.mode = mode, .tokens = knots[mode][i]};

        f.experts = experts_touched(p, f.tokens);
        cost[i] = raw_time(p, &f);
    }
    return n[mode];
}

void vt_step_cost(const struct vt_step_params *p, const struct vt_step_features *f,
                  struct vt_step_cost *cost)
{
    const double *factor = f->mode == VT_STEP_GRAPH   ? p->graph_factor
                           : f->mode == VT_STEP_MIXED ? p->mixed_factor
                                                      : p->eager_factor;

    cost->sched_us = p->host_sched + p->host_sched_request * f->running;
    cost->lead_us = p->host_lead;
    cost->launch_us = f->mode == VT_STEP_GRAPH   ? p->host_launch_graph
                      : f->mode == VT_STEP_MIXED ? p->host_launch_mixed
                                                 : p->host_launch_eager;
    cost->tail_us = f->mode == VT_STEP_GRAPH ? 0 : p->host_tail;
    cost->gpu_us = (factor[f->knot] * (1 - f->share) + factor[f->knot + 1] * f->share) *
                   raw_time(p, f);
    cost->holds = p->host_hold_tokens > 0 && f->mode == VT_STEP_EAGER &&
                  f->tokens >= p->host_hold_tokens;
    cost->done_us = p->host_done + p->host_done_request * f->requests;
}

static void step_step(const struct vt_latency *base, const struct vt_step_shape *s,
                      struct vt_step_cost *cost)
{
    const struct vt_step_params *p = &((const struct step *)base)->p;
    struct vt_step_features f;

    vt_step_features(p, s->plan, s->max_num_seqs, &f);
    vt_step_cost(p, &f, cost);
    if (p->launch_noise > 0 && f.mode != VT_STEP_GRAPH) {
        double z = vt_draw_normal(s->seed, UINT64_C(0x57e9), s->step);

        /* Minus half the variance keeps the mean. */
        cost->launch_us *=
            exp(p->launch_noise * z - 0.5 * p->launch_noise * p->launch_noise);
    }
}

static double step_arrival(const struct vt_latency *base, uint32_t prompt_tokens)
{
    (void)prompt_tokens;
    return ((const struct step *)base)->p.host_arrive;
}

static const struct vt_latency_ops ops = {
    .name = "step",
    .step = step_step,
    .arrival_us = step_arrival,
};

/* ---- reading and writing ---------------------------------------------- */

static const struct {
    const char *name;
    size_t offset;
    uint32_t n;
} factors[] = {
    {"graph_factor", offsetof(struct vt_step_params, graph_factor),
     VT_STEP_GRAPH_KNOTS},
    {"mixed_factor", offsetof(struct vt_step_params, mixed_factor),
     VT_STEP_MIXED_KNOTS},
    {"eager_factor", offsetof(struct vt_step_params, eager_factor),
     VT_STEP_EAGER_KNOTS},
};

static double *factor_list(struct vt_step_params *p, size_t i)
{
    return (double *)(void *)((char *)p + factors[i].offset);
}

int vt_step_params_read(struct vt_step_params *p, const struct vt_node *node,
                        struct vt_err *err)
{
    static const char *const also[] = {"graph_factor", "mixed_factor", "eager_factor",
                                       NULL};
    int rc = params_read(node, params, also, p, err);

    for (size_t i = 0; i < VT_COUNT(factors) && rc == VT_OK; i++)
        if (vt_get(node, factors[i].name))
            rc = params_list(node, factors[i].name, factor_list(p, i), factors[i].n,
                             err);
    if (rc == VT_OK && p->experts_per_token > p->experts)
        rc = vt_fail(err, VT_EINPUT, "field 'experts_per_token' is above 'experts'");
    return rc;
}

static void put_number(struct vt_buf *b, double v)
{
    vt_buf_f64(b, round(v * 1e4) / 1e4);
}

void vt_step_params_write(struct vt_buf *b, const struct vt_step_params *p,
                          const char *indent)
{
    struct vt_step_params copy = *p;

    for (const struct param *x = params; x->name; x++) {
        double v;

        memcpy(&v, (const char *)p + x->offset, sizeof(v));
        vt_buf_printf(b, "%s\"%s\": ", indent, x->name);
        put_number(b, v);
        vt_buf_str(b, ",\n");
    }
    for (size_t i = 0; i < VT_COUNT(factors); i++) {
        vt_buf_printf(b, "%s\"%s\": [", indent, factors[i].name);
        for (uint32_t k = 0; k < factors[i].n; k++) {
            vt_buf_str(b, k > 0 ? ", " : "");
            put_number(b, factor_list(&copy, i)[k]);
        }
        vt_buf_str(b, i + 1 < VT_COUNT(factors) ? "],\n" : "]\n");
    }
}

void vt_step_scale(struct vt_step_params *p, const struct vt_step_scaling *s)
{
    double *const shared[] = {&p->base,        &p->expert,      &p->graph_token,
                              &p->mixed,       &p->mixed_token, &p->eager,
                              &p->eager_token, &p->prefill,     &p->depth_mtoken};

    for (size_t i = 0; i < VT_COUNT(shared); i++)
        *shared[i] *= s->share;
    p->context_ktoken *= s->context;
    p->base += s->step_us; /* which a step of any mode pays, and pays once */
    p->graph_token += s->token_us;
    p->mixed_token += s->token_us;
    p->eager_token += s->token_us;
}

int vt_step_open(struct vt_latency **out, const struct vt_step_params *p,
                 struct vt_err *err)
{
    struct step *m = calloc(1, sizeof(*m));

    *out = NULL;
    if (!m)
        return vt_nomem(err);
    m->p = *p;
    m->head = (struct vt_latency){
        .ops = &ops,
        .known = {.step_tokens = (uint32_t)p->seen_step_tokens,
                  .running = (uint32_t)p->seen_running,
                  .context = (uint64_t)(1e3 * p->seen_context_ktokens)},
        .intake_us = p->host_intake,
        .intake_ktoken_us = p->host_intake_ktoken,
        .wake_us = p->host_wake,
        .nap_us = p->host_nap,
        .turnaround_us = p->host_turnaround,
        .turnaround_request_us = p->host_turnaround_request,
        .turnaround_next_us = p->host_turnaround_next,
        .turnaround_noise = p->turnaround_noise,
    };
    *out = &m->head;
    return VT_OK;
}

static int step_open(struct vt_latency **out, const struct vt_node *node,
                     struct vt_err *err)
{
    struct vt_step_params p;
    int rc;

    vt_step_params_init(&p);
    rc = vt_step_params_read(&p, node, err);
    return rc == VT_OK ? vt_step_open(out, &p, err) : rc;
}

const struct vt_model_kind model_step = {
    .name = "step",
    .help = "batch composition, context, CUDA-graph limits and host costs (us)",
    .example = "step:base=5000,graph_token=10,eager_token=18,host_launch_eager=26000",
    .open = step_open,
};
