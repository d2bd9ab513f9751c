/* law.c - a step's time from a model's sizes and a GPU's data sheet.
 *
 * Weights are read once a step, or multiplied with as many tokens as it has, whatever
 * takes longer; experts are read as far as tokens are sent to them; activations, logits
 * and the KV cache are read and written; and every layer has kernels that take a few
 * microseconds whatever they do. The host launches all that, layer by layer where no
 * graph does it at once. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "model/model.h"

#define TERM(field, start, pull) \
    {#field, offsetof(struct vt_law, field), 1, start, pull}
#define LIST(field, pull)                    \
    {#field, offsetof(struct vt_law, field), \
     sizeof(((struct vt_law *)0)->field) / sizeof(double), 1, pull}
#define READ(field) TERM(field, 0, 0)

static const struct vt_law_term terms[] = {
    TERM(bw, 0.82, 0.6),
    TERM(bw8, 0.9, 0.6),
    TERM(mfu, 0.70, 0.6),
    TERM(mfu8, 0.65, 0.3),
    TERM(half8, 250, 0.1),
    TERM(fill8, 1.5, 0.1),
    TERM(kv_bw, 0.98, 0.6),
    TERM(kv_bw8, 0.6, 0.3),
    TERM(attention_mfu, 0.6, 0.3),
    TERM(moe_bw, 0.9, 0.3),
    TERM(moe_mfu, 0.65, 0.3),
    TERM(moe_narrow, 350, 0.3),
    TERM(mx_bw, 0.68, 1.2), /* by kernels: a capture with random weights misleads */
    TERM(mx_mfu, 0.5, 0.6),
    TERM(moe_pad, 32, 0.1),
    TERM(smooth, 2.7, 0.5),
    TERM(activations, 1.3, 0.1),
    TERM(logits, 4.4, 0.1),
    TERM(step, 180, 0.05),
    TERM(layer, 34, 0.1),
    TERM(norm_layer, 5, 0.1),
    TERM(quant_layer, 12, 0.05),
    TERM(mla_layer, 20, 0.05),
    TERM(moe_layer, 1, 0.5),
    TERM(mixed_layer, 40, 0.05),
    TERM(eager_layer, 60, 0.05),
    TERM(prompt_layer, 3.5, 0.1),
    TERM(row_head, 0.025, 0.1),
    TERM(draft, 250, 0.05),
    LIST(context_factor, 0.3),
    LIST(graph_factor, 0.3),
    LIST(mixed_factor, 0.3),
    LIST(eager_factor, 0.3),
    TERM(launch_graph, 1900, 0.1),
    TERM(launch_mixed, 2000, 0.1),
    TERM(launch_mixed_layer, 300, 0.1),
    TERM(launch_eager, 3000, 0.1),
    TERM(launch_eager_layer, 750, 0.1),
    TERM(launch_eager_moe, 1000, 0.1),
    TERM(launch_eager_mla, 1000, 0.1),
    READ(launch_request),
    READ(tail),
    READ(lead),
    READ(arrive),
    READ(intake),
    READ(intake_ktoken),
    READ(wake),
    READ(nap),
    READ(sched),
    READ(sched_request),
    READ(sched_window_request),
    READ(done),
    READ(done_request),
    READ(done_end),
    READ(turnaround),
    READ(turnaround_request),
    READ(turnaround_next),
    READ(turnaround_noise),
    READ(launch_noise),
};

const struct vt_law_term *vt_law_terms(size_t *n)
{
    *n = VT_COUNT(terms);
    return terms;
}

void vt_law_init(struct vt_law *law)
{
    for (size_t i = 0; i < VT_COUNT(terms); i++)
        for (uint32_t k = 0; k < terms[i].n; k++)
            ((double *)(void *)((char *)law + terms[i].offset))[k] = terms[i].start;
    memcpy(law->context_factor, vt_tile_factors, sizeof(vt_tile_factors));
}

/* ---- sizes ------------------------------------------------------------- */

struct sizes { /* on one GPU; a step's tokens are shared by pp batches */
    double layers, moe_layers, norms;
    double dense_bytes, dense_flop, head_bytes, head_flop; /* flop: a token's */
    double expert_bytes, expert_flop;
    double experts, experts_per_token, expert_width;
    double activations, logits; /* bytes of a token */
    double state_bytes;         /* of a request, read and written in each step */
    double state_flop;          /* of a token: to change the states, and to read them */
    double attention_layers;
    double bandwidth, peak; /* bytes, flop in a microsecond: the data sheet's */
    double dense_bw, head_bw, expert_bw;          /* shares of bandwidth */
    double dense_flops, head_flops, expert_flops; /* in a microsecond */
    bool dense8, mla, quantised;
    double reduce_us; /* a short all-reduce of the tp GPUs */
    double links_us, links_eager_us, links_token_us; /* all that a step sends */
    double kv_heads;
    double expert_us;    /* of a layer's experts with nothing to do */
    double ranks;        /* whose tokens meet at these experts */
    double kernel_layer; /* what a layer's idle kernels take, over an H200's */
};

static double norms_of(const struct vt_arch *a)
{
    return strncmp(a->type, "gemma", 5) == 0   ? 2
           : strncmp(a->type, "qwen3", 5) == 0 ? 1
                                               : 0;
}

static double at_least_1(uint32_t n)
{
    return n > 0 ? n : 1;
}

/* Width of a stored element, as kernels tell them apart. */
enum width { BITS_16, BITS_8, BITS_4 };

static enum width width_of(double bytes)
{
    return bytes > 1.5 ? BITS_16 : bytes > 0.9 ? BITS_8 : BITS_4;
}

/* The tables know 2, 4 and 8 GPUs. */
static size_t link_index(double tp)
{
    return tp <= 2 ? 0 : tp <= 4 ? 1 : 2;
}

/* What no kernel goes beyond. */
static double share(double s)
{
    return fmin(s, 0.95);
}

static bool is_nvfp4(const struct vt_arch *a, const struct vt_gpu_reach *reach,
                     const struct vt_gpu *gpu)
{
    return !a->quant_experts_only && fabs(a->scale_bytes - 1.0 / 16) < 1e-9 &&
           gpu->fp4_tflops > 0 && reach->share_nvfp4_bw > 0;
}

/* How fast projections and dense layers are read and multiplied with. */
static void set_dense(struct sizes *s, const struct vt_law *law,
                      const struct vt_gpu_reach *reach,
                      const struct vt_estimate_query *q)
{
    enum width width = width_of(vt_arch_dense_bytes(q->arch));
    double plain_bw = share(law->bw * reach->bw);
    double plain_flops = s->peak * law->mfu * reach->mfu16;

    s->quantised = width != BITS_16;
    s->dense8 = vt_arch_fp8_kernels(q->arch, q->gpu);
    s->head_bw = s->dense_bw = plain_bw;
    s->head_flops = s->dense_flops = plain_flops;
    if (width == BITS_8)
        s->dense_bw = share(law->bw8 * reach->bw8);
    if (s->dense8)
        s->dense_flops = 1e6 * q->gpu->fp8_tflops * law->mfu8 * reach->mfu8;
    if (width != BITS_4)
        return;
    if (is_nvfp4(q->arch, reach, q->gpu)) {
        s->dense_bw = reach->share_nvfp4_bw;
        s->dense_flops = 1e6 * q->gpu->fp4_tflops * reach->share_nvfp4_mfu;
    } else {
        s->dense_bw = plain_bw * reach->int4_own_bw;
        s->dense_flops = plain_flops * reach->int4_own_mfu;
    }
}

static void set_experts(struct sizes *s, const struct vt_law *law,
                        const struct vt_gpu_reach *reach,
                        const struct vt_estimate_query *q)
{
    enum width width = width_of(vt_arch_expert_bytes(q->arch));
    bool mx = q->arch->quant_experts_only && width == BITS_4;
    /* Activations of 8 bits beside it; on other GPUs vLLM takes those of 16. */
    bool mx8 = mx && q->gpu->fp4_tflops > 0 && q->gpu->capability / 10 != 12;
    double narrow = s->expert_width / (s->expert_width + law->moe_narrow);

    s->expert_bw = share(law->moe_bw * reach->moe_bw);
    s->expert_flops = s->peak * law->moe_mfu * reach->moe_mfu16 * narrow;
    s->expert_us = reach->moe_us;
    if (mx) {
        s->expert_bw = share(law->mx_bw * (mx8 ? reach->mx8_bw : reach->mx_bw));
        s->expert_flops =
            s->peak * law->mx_mfu * (mx8 ? reach->mx8_mfu : reach->mx_mfu);
        s->expert_us = mx8 ? reach->mx8_us : reach->mx_us;
    } else if (width == BITS_8) {
        s->expert_bw = share(law->moe_bw * reach->moe_bw8);
        s->expert_us = reach->moe8_us;
        if (q->gpu->fp8_tflops > 0)
            s->expert_flops =
                1e6 * q->gpu->fp8_tflops * law->moe_mfu * reach->moe_mfu8 * narrow;
    } else if (is_nvfp4(q->arch, reach, q->gpu)) {
        s->expert_bw = reach->share_nvfp4_bw;
        s->expert_flops = 1e6 * q->gpu->fp4_tflops * reach->share_nvfp4_mfu * narrow;
    } else if (width == BITS_4) {
        s->expert_bw *= reach->int4_own_bw;
        s->expert_flops *= reach->int4_own_mfu;
    }
}

/* So many all-reduces in a step, of so many bytes for each of its tokens. */
static void add_reduces(struct sizes *s, const struct vt_gpu_reach *reach, double gpus,
                        double times, double bytes)
{
    size_t k = link_index(gpus);

    s->links_us += times * reach->allreduce_us[k];
    s->links_eager_us += times * reach->allreduce_eager_us[k];
    s->links_token_us += times * (bytes / (1e3 * reach->allreduce_gbs[k]));
}

static struct sizes sizes_of(const struct vt_law *law, const struct vt_gpu_reach *reach,
                             const struct vt_estimate_query *q)
{
    const struct vt_arch *a = q->arch;
    double tp = at_least_1(q->tp), ranks = vt_arch_ranks(a, q->dp);
    struct vt_arch_elements e = vt_arch_elements(a, (uint32_t)tp);
    struct sizes s = {
        .layers = a->layers,
        .moe_layers = a->moe_layers,
        .norms = norms_of(a),
        .bandwidth = 1e6 * q->gpu->bandwidth_tbs,
        .peak = 1e6 * q->gpu->fp16_tflops,
        .dense_bytes = vt_arch_dense_bytes(a) * (e.attention + e.dense),
        .dense_flop = 2 * (e.attention + e.dense),
        .head_bytes = 2 * e.head,
        .head_flop = 2 * e.head,
        .experts = a->experts,
        .experts_per_token = a->experts > 0 ? a->experts_per_token : 0,
        .expert_width = a->expert_ffn / (q->expert_parallel ? 1 : tp * ranks),
        .ranks = ranks,
        .mla = a->kv_lora_rank > 0,
        .kv_heads = vt_arch_reads(a, (uint32_t)tp).kv_heads,
        .logits = 4.0 * a->vocab / tp,
        .state_bytes = 2 * vt_arch_state_bytes(a, (uint32_t)tp),
        .state_flop = 4 * vt_arch_state_layers(a) * a->state.elements / tp,
        .attention_layers = (double)a->layers - vt_arch_state_layers(a),
        .kernel_layer = reach->layer,
    };
    double widths =
        2 * (a->heads + 2.0 * a->kv_heads) * a->head_dim +
        3.0 * (a->experts > 0
                   ? (double)a->experts_per_token * a->expert_ffn + a->shared_ffn
                   : a->dense_ffn);

    s.activations = 2 * s.layers * (6.0 * a->hidden + widths / tp);
    set_dense(&s, law, reach, q);
    if (a->experts > 0) {
        set_experts(&s, law, reach, q);
        s.expert_bytes = vt_arch_expert_bytes(a) * e.experts / ranks;
        s.expert_flop = 2 * e.experts * s.experts_per_token / a->experts;
    }
    if (tp > 1) {
        s.reduce_us = reach->allreduce_us[link_index(tp)];
        add_reduces(&s, reach, tp, 2 * s.layers, 2.0 * a->hidden);
    }
    /* vLLM gathers all ranks' tokens before a layer's experts and sums their parts up
     * behind them, which takes what an all-reduce of all these tokens does. */
    if (ranks > 1)
        add_reduces(&s, reach, ranks, s.moe_layers, ranks * 2 * a->hidden);
    return s;
}

/* ---- the law ----------------------------------------------------------- */

static double smooth_max(double a, double b, double sharp)
{
    double hi = fmax(a, b), lo = fmin(a, b);

    return hi > 0 ? hi * pow(1 + pow(lo / hi, sharp), 1 / sharp) : 0;
}

/* Routing is taken as even. */
static double touched(const struct sizes *s, double tokens)
{
    return vt_experts_touched(s->experts, s->experts_per_token, 1, tokens);
}

static double dense_time(const struct vt_law *law, const struct sizes *s, double tokens,
                         double rows)
{
    double memory = s->dense_bytes / (s->bandwidth * s->dense_bw);
    double slow = s->dense8 ? 1 + law->half8 / (tokens + law->half8) : 1;
    double arithmetic = tokens * s->dense_flop * slow / s->dense_flops;
    double head = smooth_max(s->head_bytes / (s->bandwidth * s->head_bw),
                             rows * s->head_flop / s->head_flops, law->smooth);

    return smooth_max(memory, arithmetic, law->smooth) + head;
}

static double expert_time(const struct vt_law *law, const struct sizes *s,
                          double tokens)
{
    double in_use = touched(s, s->ranks * tokens);
    double padded;

    if (s->experts <= 0)
        return 0;
    padded =
        tokens + law->moe_pad * s->experts / s->ranks * in_use / s->experts_per_token;
    return smooth_max(s->expert_bytes * in_use / (s->bandwidth * s->expert_bw),
                      padded * s->expert_flop / s->expert_flops, law->smooth);
}

static double fixed_time(const struct vt_law *law, const struct sizes *s,
                         enum vt_step_mode mode)
{
    double layer = law->layer + law->norm_layer * s->norms +
                   (s->mla ? law->mla_layer : 0) +
                   (s->quantised ? law->quant_layer : 0) +
                   (mode == VT_STEP_MIXED   ? law->mixed_layer
                    : mode == VT_STEP_EAGER ? law->eager_layer
                                            : 0);

    return law->step + s->kernel_layer * s->layers * layer +
           s->moe_layers * law->moe_layer * s->expert_us +
           (mode == VT_STEP_EAGER ? s->links_eager_us : s->links_us);
}

/* GPU time of a step without attention. */
static double step_time(const struct vt_law *law, const struct sizes *s,
                        enum vt_step_mode mode, double tokens, double rows)
{
    return dense_time(law, s, tokens, rows) + expert_time(law, s, tokens) +
           fixed_time(law, s, mode) +
           law->activations * tokens * s->activations / s->bandwidth +
           tokens * s->state_flop / (s->peak * law->attention_mfu) +
           s->links_token_us * tokens;
}

/* Of each request in it: its share of attention's kernels, its logits, its states. */
static double row_time(const struct vt_law *law, const struct sizes *s)
{
    return s->layers * s->kv_heads * law->row_head +
           law->logits * s->logits / s->bandwidth +
           s->state_bytes / (s->bandwidth * law->kv_bw);
}

/* ---- as the step model's parameters ------------------------------------ */

/* The line that goes through the points best, by ratios. */
static void line_through(const double *x, const double *y, size_t n, double *at_zero,
                         double *slope)
{
    double w = 0, wx = 0, wy = 0, wxx = 0, wxy = 0;

    for (size_t i = 0; i < n; i++) {
        double weight = 1 / (y[i] * y[i]);

        w += weight;
        wx += weight * x[i];
        wy += weight * y[i];
        wxx += weight * x[i] * x[i];
        wxy += weight * x[i] * y[i];
    }
    *slope = fmax((w * wxy - wx * wy) / (w * wxx - wx * wx), 0);
    *at_zero = (wy - *slope * wx) / w;
}

/* Requests in a step of so many tokens: what captures had, about. */
static double usual_rows(enum vt_step_mode mode, double tokens)
{
    return mode == VT_STEP_GRAPH   ? tokens
           : mode == VT_STEP_MIXED ? fmin(tokens / 4, 64)
                                   : 32;
}

enum { MOST_KNOTS = 10 };

/* What steps of a mode's sizes take, without attention. */
static void knot_times(const struct vt_law *law, const struct sizes *s,
                       enum vt_step_mode mode, double *want)
{
    const double *factor = mode == VT_STEP_GRAPH   ? law->graph_factor
                           : mode == VT_STEP_MIXED ? law->mixed_factor
                                                   : law->eager_factor;
    size_t n;
    const double *knot = vt_step_knots(mode, &n);

    for (size_t i = 0; i < n; i++) {
        double rows = usual_rows(mode, knot[i]);
        double t = step_time(law, s, mode, knot[i], rows);

        if (mode == VT_STEP_GRAPH)
            t += rows * row_time(law, s);
        want[i] = factor[i] * t;
    }
}

/* Lines through what a mode's sizes take beside experts' weights, and factors for the
 * rest: what p says of experts and of prompts must stand. */
static void set_mode(struct vt_step_params *p, enum vt_step_mode mode,
                     const double *want)
{
    double *factor[] = {p->graph_factor, p->mixed_factor, p->eager_factor};
    double *token[] = {&p->graph_token, &p->mixed_token, &p->eager_token};
    double *fixed[] = {&p->base, &p->mixed, &p->eager};
    double net[MOST_KNOTS], raw[MOST_KNOTS], at_zero;
    struct vt_step_params experts_only;
    size_t n;
    const double *knot = vt_step_knots(mode, &n);

    vt_step_params_init(&experts_only);
    experts_only.experts = p->experts;
    experts_only.experts_per_token = p->experts_per_token;
    experts_only.expert_spread = p->expert_spread;
    experts_only.expert = p->expert;
    vt_step_knot_costs(&experts_only, mode, net);
    for (size_t i = 0; i < n; i++)
        net[i] = fmax(want[i] - net[i], 1e-3 * want[i]);
    line_through(knot, net, n, &at_zero, token[mode]);
    *fixed[mode] = fmax(at_zero - (mode == VT_STEP_GRAPH ? 0 : p->base), 1);
    vt_step_knot_costs(p, mode, raw);
    for (size_t i = 0; i < n; i++)
        factor[mode][i] = want[i] / raw[i];
}

static void gpu_params(const struct vt_law *law, const struct sizes *s,
                       struct vt_step_params *p)
{
    double want[MOST_KNOTS];

    p->expert = s->experts > 0 ? s->expert_bytes / (s->bandwidth * s->expert_bw) : 0;
    p->row = row_time(law, s);
    p->fill_row = s->dense8 ? law->fill8 * s->dense_flop / s->dense_flops : 0;
    for (enum vt_step_mode mode = VT_STEP_GRAPH; mode <= VT_STEP_EAGER; mode++) {
        knot_times(law, s, mode, want);
        set_mode(p, mode, want);
    }
    vt_step_make_monotone(p);
}

static void attention_params(const struct vt_law *law, const struct vt_gpu_reach *reach,
                             const struct vt_estimate_query *q, const struct sizes *s,
                             struct vt_step_params *p)
{
    const struct vt_arch *a = q->arch;
    uint32_t tp = q->tp > 0 ? q->tp : 1;
    double element = vt_arch_kv_element(a, q->kv_bytes);
    double flop = s->mla ? 2.0 * a->heads * (a->nope_dim + a->rope_dim + a->v_dim)
                         : 4.0 * a->heads * a->head_dim;
    struct vt_arch_reads reads = vt_arch_reads(a, tp);

    /* Sparse: heads multiply with the latent vectors of what an indexer, which is whole
     * on every GPU and has 8 bits, has chosen. */
    double index = (q->gpu->fp8_tflops > 0 ? 1.0 : 2.0) * a->index_heads * a->index_dim;

    if (a->index_topk > 0) {
        double chosen = 2.0 * a->heads * (2.0 * a->kv_lora_rank + a->rope_dim);

        flop = chosen + tp * index;
        p->depth_share = chosen / flop;
    }
    p->window = reads.window;
    p->window_share = reads.window_share;
    p->context_ktoken = 1e3 * vt_arch_kv_bytes(a, tp, element) /
                        (s->bandwidth * (element < 1.5 ? law->kv_bw8 * reach->kv_bw8
                                         : s->mla      ? law->kv_bw * reach->mla_bw
                                                       : law->kv_bw * reach->kv_bw));
    p->prefill = s->layers * law->prompt_layer;
    p->depth_mtoken =
        1e6 * s->attention_layers * flop / tp /
        (s->peak * law->attention_mfu * (s->mla ? reach->mla_mfu : reach->attn_mfu));
    for (size_t i = 0; i < VT_STEP_CONTEXT_KNOTS; i++)
        p->context_factor[i] =
            s->kv_heads > 1 ? vt_knots_between(law->context_factor,
                                               vt_knots_place(vt_tiles, VT_TILES,
                                                              vt_step_context_knots[i] *
                                                                  s->kv_heads))
                            : 1;
}

static void host_params(const struct vt_law *law, const struct sizes *s, double speed,
                        struct vt_step_params *p)
{
    double moe = s->moe_layers * law->launch_eager_moe +
                 (s->mla ? s->layers * law->launch_eager_mla : 0);

    p->host_launch_graph = law->launch_graph / speed;
    p->host_launch_mixed =
        (law->launch_mixed + s->layers * law->launch_mixed_layer) / speed;
    p->host_launch_eager =
        (law->launch_eager + s->layers * law->launch_eager_layer + moe) / speed;
    p->host_launch_request = law->launch_request / speed;
    p->host_tail = law->tail / speed;
    p->host_lead = law->lead / speed;
    p->host_arrive = law->arrive / speed;
    p->host_intake = law->intake / speed;
    p->host_intake_ktoken = law->intake_ktoken / speed;
    p->host_wake = law->wake / speed;
    p->host_nap = law->nap;
    p->host_sched = law->sched / speed;
    p->host_sched_request = (p->window_share > 0 && !s->mla ? law->sched_window_request
                                                            : law->sched_request) /
                            speed;
    p->host_done = law->done / speed;
    p->host_done_request = law->done_request / speed;
    p->host_done_end = law->done_end / speed;
    p->host_turnaround = law->turnaround;
    p->host_turnaround_request = law->turnaround_request;
    p->host_turnaround_next = law->turnaround_next;
    p->turnaround_noise = law->turnaround_noise;
    p->launch_noise = law->launch_noise;
}

double vt_law_draft_us(const struct vt_law *law, const struct vt_gpu_reach *reach,
                       const struct vt_estimate_query *q)
{
    struct vt_estimate_query alone = *q;
    struct sizes s;

    alone.arch = q->draft;
    s = sizes_of(law, reach, &alone);
    return law->draft + dense_time(law, &s, 1, 1) + s.layers * law->layer;
}

/* What stood at a batch's size stands at as many times that as there are batches. */
static void spread_knots(double *value, const double *knot, size_t n, double times)
{
    double was[VT_STEP_GRAPH_KNOTS + VT_STEP_MIXED_KNOTS];

    assert(n <= VT_COUNT(was));
    memcpy(was, value, n * sizeof(*was));
    for (size_t i = 0; i < n; i++)
        value[i] = vt_knots_between(was, vt_knots_place(knot, n, knot[i] / times));
}

/* pp batches are in flight, each with its part of a step's tokens, and each GPU reads
 * its layers' weights for every one of them: what tokens cost is shared out, what a
 * step costs is not. A batch goes from stage to stage as an all-reduce's message would.
 */
static void share_stages(struct vt_step_params *p, const struct sizes *s, double pp)
{
    double *const of_tokens[] = {&p->graph_token, &p->mixed_token,    &p->eager_token,
                                 &p->row,         &p->context_ktoken, &p->prefill,
                                 &p->depth_mtoken};

    double *const factor[] = {[VT_STEP_GRAPH] = p->graph_factor,
                              [VT_STEP_MIXED] = p->mixed_factor,
                              [VT_STEP_EAGER] = p->eager_factor};

    for (size_t i = 0; i < VT_COUNT(of_tokens); i++)
        *of_tokens[i] /= pp;
    for (size_t i = 0; i < VT_COUNT(factor); i++) {
        size_t n;
        const double *knot = vt_step_knots((enum vt_step_mode)i, &n);

        spread_knots(factor[i], knot, n, pp);
    }
    spread_knots(p->context_factor, vt_step_context_knots, VT_STEP_CONTEXT_KNOTS, pp);
    p->base += (pp - 1) * s->reduce_us;
}

static void set_graphs(struct vt_step_params *p, const struct vt_estimate_query *q)
{
    const struct vt_graphs *g = q->graphs;

    p->graph_limit =
        fmax(vt_arch_graph_limit(q->arch),
             fmin(2.0 * q->most_decode, vt_gpu_graph_limit(q->gpu, q->vllm)));
    if (!g || !(g->none || g->most > 0 || g->n > 0))
        return;
    if (!g->none)
        for (uint32_t i = 0; i < g->n; i++)
            if (q->budget == 0 || g->size[i] <= q->budget)
                p->graph_size[p->n_graph_sizes++] = g->size[i];
    p->graph_limit = g->none                ? 0
                     : p->n_graph_sizes > 0 ? p->graph_size[p->n_graph_sizes - 1]
                     : g->n > 0             ? 0
                                            : g->most;
    p->graph_stated = p->graph_limit > 0;
}

void vt_law_params(const struct vt_law *law, const struct vt_gpu_reach *reach,
                   const struct vt_estimate_query *q, struct vt_step_params *out)
{
    struct sizes s = sizes_of(law, reach, q);

    vt_step_params_init(out);
    set_graphs(out, q);
    out->experts = s.experts;
    out->experts_per_token = s.experts_per_token;
    gpu_params(law, &s, out);
    if (q->draft)
        out->base += q->drafts * vt_law_draft_us(law, reach, q);
    attention_params(law, reach, q, &s, out);
    host_params(law, &s, q->host_speed > 0 ? q->host_speed : 1, out);
    if (q->pp > 1)
        share_stages(out, &s, q->pp);
}

/* ---- from what was measured ---------------------------------------------- */

/* What a mode's sizes take by a step model, without attention. */
static void model_times(const struct vt_step_params *p, enum vt_step_mode mode,
                        double *t)
{
    const double *factor = mode == VT_STEP_GRAPH   ? p->graph_factor
                           : mode == VT_STEP_MIXED ? p->mixed_factor
                                                   : p->eager_factor;
    size_t n = vt_step_knot_costs(p, mode, t);

    for (size_t i = 0; i < n; i++)
        t[i] *= factor[i];
}

/* x times what the law says that there is more of it here than there. */
static double carried(double x, double there, double here)
{
    return there > 0 && x > 0 ? x * here / there : here;
}

#define CARRY(field) out->field = carried(out->field, there->field, here->field)

void vt_step_transfer(const struct vt_step_params *measured,
                      const struct vt_step_params *there,
                      const struct vt_step_params *here, struct vt_step_params *out)
{
    double was[MOST_KNOTS], will[MOST_KNOTS], own[MOST_KNOTS];

    *out = *measured;
    out->graph_limit = here->graph_limit;
    out->graph_stated = here->graph_stated;
    out->n_graph_sizes = here->n_graph_sizes;
    memcpy(out->graph_size, here->graph_size, sizeof(out->graph_size));
    out->experts = here->experts;
    out->experts_per_token = here->experts_per_token;
    out->window = here->window;
    out->window_share = here->window_share;
    out->depth_share = here->depth_share;
    CARRY(expert);
    CARRY(context_ktoken);
    CARRY(row);
    CARRY(fill_row);
    CARRY(prefill);
    CARRY(depth_mtoken);
    CARRY(host_launch_graph);
    CARRY(host_launch_mixed);
    CARRY(host_launch_eager);
    for (size_t i = 0; i < VT_STEP_CONTEXT_KNOTS; i++)
        CARRY(context_factor[i]);
    for (enum vt_step_mode mode = VT_STEP_GRAPH; mode <= VT_STEP_EAGER; mode++) {
        size_t n;

        (void)vt_step_knots(mode, &n);
        model_times(there, mode, was);
        model_times(here, mode, will);
        model_times(measured, mode, own);
        for (size_t i = 0; i < n; i++)
            own[i] *= will[i] / was[i];
        set_mode(out, mode, own);
    }
    vt_step_make_monotone(out);
}
