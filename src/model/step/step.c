/* step.c - step time from what the batch holds, and the host beside the GPU.
 *
 * Three ways to launch a step. A pure decode batch runs as one CUDA graph; a batch with
 * a prompt, as long as there are graphs of its size, as a graph for each piece between
 * attention layers; a larger one kernel by kernel (eager). The last two keep the host
 * busy for milliseconds, whatever their size.
 *
 * GPU time is a sum of physical parts (weights, KV cache, experts, arithmetic), times a
 * factor that a fit may learn for each size: kernels change with the batch, and no
 * formula knows how. Reading the KV cache has factors of its own, by the number of
 * requests that decode: few of them leave a part of the GPU without work. */
#include "model/params.h"

#include <math.h>

#define PARAM(field, hi) {#field, offsetof(struct vt_step_params, field), 0, hi}
#define US(field)        PARAM(field, PARAM_MAX)

static const struct param params[] = {
    PARAM(graph_limit, 1e6),       /* largest graph, tokens */
    PARAM(graph_stated, 1),        /* 1: whatever can decode at once */
    PARAM(experts, 1e6),           /* of a mixture; 0: dense */
    PARAM(experts_per_token, 1e6), /* active ones */
    PARAM(expert_spread, 1),       /* share of the experts that tokens are sent to */
    PARAM(window, 1e9),            /* of sliding attention, tokens; 0: none */
    PARAM(window_share, 1),        /* of the KV cache's bytes, in layers that have it */
    PARAM(depth_share, 1),         /* of prompts' look back; 0: as window_share */
    US(base),                      /* every step: weights, launch of kernels */
    US(expert),         /* all experts' weights; a step pays the share it touches */
    US(context_ktoken), /* 1,000 tokens of decoding requests' context */
    US(graph_token),    /* each token, padded, of a decode step */
    US(mixed),          /* every step with a prompt, within the graphs */
    US(mixed_token),    /* each token, padded, of it */
    US(row),            /* each request in a step with a prompt */
    US(fill_row),       /* each row missing to a full tile of the weights' kernels */
    US(eager),          /* every larger step */
    US(eager_token),    /* each token of it */
    US(prefill),        /* each prompt in a step */
    US(depth_mtoken),   /* 1,000,000 products of a prompt token and its depth */
    US(host_arrive),    /* arrival to the input thread */
    US(host_intake),    /* that thread, for each request, */
    US(host_intake_ktoken),  /* and for 1,000 tokens of its prompt */
    US(host_wake),           /* an engine at rest, until it schedules */
    US(host_nap),            /* nothing to schedule, until it looks for requests */
    US(host_sched),          /* each schedule call */
    US(host_sched_request),  /* each running request in it */
    US(host_lead),           /* scheduled to started on an idle GPU */
    US(host_launch_graph),   /* launching one graph */
    US(host_launch_mixed),   /* launching graphs piece by piece */
    US(host_launch_eager),   /* launching kernel by kernel */
    US(host_launch_request), /* each request in a launch */
    US(host_tail),           /* end of such a launch to the GPU's earliest end */
    US(host_done),           /* result available to handed out */
    US(host_done_request),   /* each request in it */
    US(host_done_end),       /* each that it ended */
    US(host_turnaround),     /* a closed-loop client's pause before its next request */
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
static const double mixed_knots[VT_STEP_MIXED_KNOTS] = {32,  64,  128, 192, 256,
                                                        320, 400, 512, 1024};
static const double eager_knots[VT_STEP_EAGER_KNOTS] = {256,  512,  768,  1024, 1536,
                                                        2048, 4096, 8192, 16384};
const double vt_tiles[VT_TILES] = {8, 16, 24, 32, 48, 64, 96, 128, 256};
const double vt_tile_factors[VT_TILES] = {1.3,  1.17, 1.4,  1.45, 1.55,
                                          0.97, 1.05, 1.05, 0.93};
const double vt_step_context_knots[VT_STEP_CONTEXT_KNOTS] = {1, 2,  3,  4, 6,
                                                             8, 12, 16, 32};

static const struct {
    const double *knot;
    size_t n;
} knots[] = {[VT_STEP_GRAPH] = {graph_knots, VT_STEP_GRAPH_KNOTS},
             [VT_STEP_MIXED] = {mixed_knots, VT_STEP_MIXED_KNOTS},
             [VT_STEP_EAGER] = {eager_knots, VT_STEP_EAGER_KNOTS}};

const double *vt_step_knots(enum vt_step_mode mode, size_t *n)
{
    *n = knots[mode].n;
    return knots[mode].knot;
}

struct step {
    struct vt_latency head;
    struct vt_step_params p;
};

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
    {"context_factor", offsetof(struct vt_step_params, context_factor),
     VT_STEP_CONTEXT_KNOTS},
};

static double *factor_list(struct vt_step_params *p, size_t i)
{
    return (double *)(void *)((char *)p + factors[i].offset);
}

void vt_step_params_init(struct vt_step_params *p)
{
    *p =
        (struct vt_step_params){.graph_limit = VT_STEP_GRAPH_LIMIT, .expert_spread = 1};
    for (size_t i = 0; i < VT_COUNT(factors); i++)
        for (uint32_t k = 0; k < factors[i].n; k++)
            factor_list(p, i)[k] = 1;
}

/* ---- what a step is made of ------------------------------------------- */

/* Tokens the GPU computes: padded to the next graph size. */
static uint32_t padded(const struct vt_step_params *p, uint32_t tokens)
{
    uint32_t lo = 0, hi = p->n_graph_sizes;

    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;

        if (p->graph_size[mid] < tokens)
            lo = mid + 1;
        else
            hi = mid;
    }
    if (p->n_graph_sizes > 0)
        return lo < p->n_graph_sizes ? p->graph_size[lo] : tokens;
    if (tokens <= 2)
        return tokens;
    if (tokens <= 4)
        return 4;
    return tokens <= 256 ? (tokens + 7) / 8 * 8 : (tokens + 15) / 16 * 16;
}

/* Rows that are missing to a full tile. vLLM's FP8 kernels are made for 16, 64 and 128
 * rows and for multiples of 256, and the emptier the last tile is, the longer they
 * take: 257 rows more than 512. Three models on an H200. */
static double missing_rows(double tokens)
{
    double full = tokens <= 16    ? tokens
                  : tokens <= 64  ? 64
                  : tokens <= 128 ? 128
                                  : 256 * ceil(tokens / 256);

    return full - tokens;
}

struct vt_step_place vt_knots_place(const double *knot, size_t n, double at)
{
    size_t i = 0;
    double share;

    while (i + 2 < n && at > knot[i + 1])
        i++;
    share = (at - knot[i]) / (knot[i + 1] - knot[i]);
    return (struct vt_step_place){.knot = (uint32_t)i,
                                  .share = share < 0   ? 0
                                           : share > 1 ? 1
                                                       : share};
}

double vt_knots_between(const double *value, struct vt_step_place at)
{
    return value[at.knot] * (1 - at.share) + value[at.knot + 1] * at.share;
}

double vt_experts_touched(double experts, double per_token, double spread,
                          double tokens)
{
    double used = fmin(fmax(spread * experts, per_token), experts);

    return used > 0 ? used / experts * (1 - pow(1 - per_token / used, tokens)) : 0;
}

/* What vLLM makes graphs for: twice what can decode at once, 512 at most; a model or
 * user that asks for a size gets that. */
static double largest_graph(const struct vt_step_params *p, uint32_t most_decode_tokens)
{
    return p->graph_limit > VT_STEP_GRAPH_LIMIT || p->graph_stated > 0
               ? p->graph_limit
               : fmin(2.0 * most_decode_tokens, p->graph_limit);
}

/* Tokens of one request's cache that a layer reads, the mean over layers. */
static double tokens_read(const struct vt_step_params *p, double context)
{
    return context - p->window_share * fmax(context - p->window, 0);
}

/* The sum of what each of a prompt's tokens looks back at. */
static double look_back(const struct vt_step_params *p, double computed, double tokens)
{
    double whole = tokens * (computed + 0.5 * tokens);
    /* Tokens beyond the window look back no further than it. */
    double over = fmin(fmax(computed + tokens - p->window, 0), tokens);
    double share = p->depth_share > 0 ? p->depth_share : p->window_share;

    if (share <= 0)
        return whole;
    return whole - share * over * (computed + tokens - 0.5 * over - p->window);
}

void vt_step_features(const struct vt_step_params *p, const struct vt_step_plan *plan,
                      uint32_t most_decode_tokens, struct vt_step_features *f)
{
    uint32_t tokens = plan->prefill_tokens + plan->decode_tokens;
    bool windows = p->window_share > 0;
    double depth = 0, context = windows ? 0 : (double)plan->decode_ctx;

    for (uint32_t i = 0; i < plan->n && (plan->n_prefills > 0 || windows); i++) {
        const struct vt_item *it = &plan->item[i];

        if (it->prefill)
            depth += look_back(p, it->computed, it->tokens);
        else if (windows)
            context += tokens_read(p, it->computed);
    }
    *f = (struct vt_step_features){
        .mode = tokens > largest_graph(p, most_decode_tokens) ? VT_STEP_EAGER
                : plan->n_prefills > 0                        ? VT_STEP_MIXED
                                                              : VT_STEP_GRAPH,
        .context_k = 1e-3 * context,
        .depth_m = 1e-6 * depth,
        .prefills = plan->n_prefills,
        .prompt_tokens = plan->prefill_tokens,
        .running = plan->running,
        .requests = plan->n_prefills + plan->n_decodes,
    };
    f->tokens = f->mode == VT_STEP_EAGER ? tokens : padded(p, tokens);
    f->missing = missing_rows(f->tokens);
    f->size = vt_knots_place(knots[f->mode].knot, knots[f->mode].n, f->tokens);
    f->decoding =
        vt_knots_place(vt_step_context_knots, VT_STEP_CONTEXT_KNOTS, plan->n_decodes);
}

/* ---- what it costs ---------------------------------------------------- */

/* GPU time without the learned factor. */
static double raw_time(const struct vt_step_params *p, const struct vt_step_features *f)
{
    double memory = p->base +
                    p->expert * vt_experts_touched(p->experts, p->experts_per_token,
                                                   p->expert_spread, f->tokens) +
                    vt_knots_between(p->context_factor, f->decoding) *
                        p->context_ktoken * f->context_k +
                    p->fill_row * f->missing;
    double prompts =
        p->prefill * f->prefills + p->depth_mtoken * f->depth_m + p->row * f->requests;

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
    for (size_t i = 0; i < knots[mode].n; i++) {
        struct vt_step_features f = {.mode = mode, .tokens = knots[mode].knot[i]};

        cost[i] = raw_time(p, &f);
    }
    return knots[mode].n;
}

/* Where factors say that more work takes less time, neighbours share the mean (pool
 * adjacent violators). */
static void make_monotone(double *factor, const double *cost, size_t n)
{
    double sum[VT_STEP_GRAPH_KNOTS];
    size_t size[VT_STEP_GRAPH_KNOTS], m = 0, k = 0;

    for (size_t i = 0; i < n; i++) {
        sum[m] = factor[i] * cost[i];
        size[m++] = 1;
        for (; m > 1 &&
               sum[m - 2] / (double)size[m - 2] > sum[m - 1] / (double)size[m - 1];
             m--) {
            sum[m - 2] += sum[m - 1];
            size[m - 2] += size[m - 1];
        }
    }
    for (size_t i = 0; i < m; i++)
        for (size_t j = 0; j < size[i]; j++, k++)
            factor[k] = sum[i] / (double)size[i] / cost[k];
}

void vt_step_make_monotone(struct vt_step_params *p)
{
    double cost[VT_STEP_GRAPH_KNOTS],
        *factor[] = {p->graph_factor, p->mixed_factor, p->eager_factor};

    for (enum vt_step_mode mode = VT_STEP_GRAPH; mode <= VT_STEP_EAGER; mode++) {
        size_t n = vt_step_knot_costs(p, mode, cost);

        make_monotone(factor[mode], cost, n);
    }
}

void vt_step_cost(const struct vt_step_params *p, const struct vt_step_features *f,
                  struct vt_step_cost *cost)
{
    const double *factor = f->mode == VT_STEP_GRAPH   ? p->graph_factor
                           : f->mode == VT_STEP_MIXED ? p->mixed_factor
                                                      : p->eager_factor;

    cost->sched_us = p->host_sched + p->host_sched_request * f->running;
    cost->lead_us = p->host_lead;
    cost->launch_us = p->host_launch_request * f->requests +
                      (f->mode == VT_STEP_GRAPH   ? p->host_launch_graph
                       : f->mode == VT_STEP_MIXED ? p->host_launch_mixed
                                                  : p->host_launch_eager);
    cost->tail_us = f->mode == VT_STEP_GRAPH ? 0 : p->host_tail;
    cost->gpu_us = vt_knots_between(factor, f->size) * raw_time(p, f);
    cost->done_us = p->host_done + p->host_done_request * f->requests;
}

static void step_step(const struct vt_latency *base, const struct vt_step_shape *s,
                      struct vt_step_cost *cost)
{
    const struct vt_step_params *p = &((const struct step *)base)->p;
    struct vt_step_features f;

    vt_step_features(p, s->plan, s->most_decode_tokens, &f);
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

/* Knots were added at the end since: a shorter list's last factor goes on. */
static int read_factors(struct vt_step_params *p, const struct vt_node *node, size_t i,
                        struct vt_err *err)
{
    const struct vt_node *list = vt_get(node, factors[i].name);
    uint32_t n = factors[i].n;
    int rc;

    if (!list)
        return VT_OK;
    if (list->kind == VT_LIST && list->n + 1 == n)
        n--;
    rc = params_list(node, factors[i].name, factor_list(p, i), n, err);
    if (rc == VT_OK && n < factors[i].n)
        factor_list(p, i)[n] = factor_list(p, i)[n - 1];
    return rc;
}

/* Steps beyond the last one have no graph, whatever graph_limit says. An inline list of
 * one is the number itself. */
static int read_graph_sizes(struct vt_step_params *p, const struct vt_node *node,
                            struct vt_err *err)
{
    const struct vt_node *list = vt_get(node, "graph_sizes");
    uint32_t n = !list ? 0 : list->kind == VT_LIST ? list->n : 1;

    if (!list)
        return VT_OK;
    if (n == 0 || n > VT_MOST_GRAPHS)
        return vt_fail(err, VT_EINPUT, "field 'graph_sizes' must hold 1 to %d numbers",
                       VT_MOST_GRAPHS);
    for (uint32_t i = 0; i < n; i++) {
        const struct vt_node *x = list->kind == VT_LIST ? &list->u.item[i] : list;
        double v = x->kind == VT_INT    ? (double)x->u.integer
                   : x->kind == VT_REAL ? x->u.real
                                        : 0;
        uint32_t least = i > 0 ? p->graph_size[i - 1] + 1 : 1;

        if (!(v >= least && v <= 1e6) || v > floor(v))
            return vt_fail(err, VT_EINPUT,
                           "field 'graph_sizes': element %u must be a whole number of "
                           "%u to 1000000",
                           i, least);
        p->graph_size[i] = (uint32_t)v;
    }
    p->n_graph_sizes = n;
    p->graph_limit = p->graph_size[n - 1];
    p->graph_stated = 1;
    return VT_OK;
}

int vt_step_params_read(struct vt_step_params *p, const struct vt_node *node,
                        struct vt_err *err)
{
    /* host_hold_tokens was written by 0.1.0: a first-use stall, taken for a law. */
    static const char *const also[] = {"graph_factor",
                                       "mixed_factor",
                                       "eager_factor",
                                       "context_factor",
                                       "host_hold_tokens",
                                       "graph_sizes",
                                       NULL};
    int rc = params_read(node, params, also, p, err);

    for (size_t i = 0; i < VT_COUNT(factors) && rc == VT_OK; i++)
        rc = read_factors(p, node, i, err);
    if (rc == VT_OK)
        rc = read_graph_sizes(p, node, err);
    if (rc == VT_OK && p->experts_per_token > p->experts)
        rc = vt_fail(err, VT_EINPUT, "field 'experts_per_token' is above 'experts'");
    return rc;
}

static void put_number(struct vt_buf *b, double v, enum vt_step_digits digits)
{
    vt_buf_f64(b, digits == VT_STEP_EXACT ? v : round(v * 1e4) / 1e4);
}

void vt_step_params_write(struct vt_buf *b, const struct vt_step_params *p,
                          const char *indent, enum vt_step_digits digits)
{
    struct vt_step_params copy = *p;

    for (const struct param *x = params; x->name; x++) {
        double v;

        memcpy(&v, (const char *)p + x->offset, sizeof(v));
        if ((x->offset == offsetof(struct vt_step_params, graph_stated) ||
             x->offset == offsetof(struct vt_step_params, depth_share)) &&
            !(v > 0))
            continue; /* of few */
        vt_buf_printf(b, "%s\"%s\": ", indent, x->name);
        put_number(b, v, digits);
        vt_buf_str(b, ",\n");
    }
    for (uint32_t i = 0; i < p->n_graph_sizes; i++) {
        if (i == 0)
            vt_buf_printf(b, "%s\"graph_sizes\": [", indent);
        vt_buf_printf(b, i + 1 < p->n_graph_sizes ? "%u, " : "%u],\n",
                      p->graph_size[i]);
    }
    for (size_t i = 0; i < VT_COUNT(factors); i++) {
        vt_buf_printf(b, "%s\"%s\": [", indent, factors[i].name);
        for (uint32_t k = 0; k < factors[i].n; k++) {
            vt_buf_str(b, k > 0 ? ", " : "");
            put_number(b, factor_list(&copy, i)[k], digits);
        }
        vt_buf_str(b, i + 1 < VT_COUNT(factors) ? "],\n" : "]\n");
    }
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
        .end_us = p->host_done_end,
        .turnaround_us = p->host_turnaround,
        .turnaround_request_us = p->host_turnaround_request,
        .turnaround_next_us = p->host_turnaround_next,
        .turnaround_noise = p->turnaround_noise,
        .holds_new = true,
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
