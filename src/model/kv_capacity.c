/* kv_capacity.c - how many KV blocks a GPU has room for.
 *
 * vLLM loads the weights, runs one step of max-num-batched-tokens to see how much
 * memory that takes at its peak, and gives the KV cache what is then left of its share
 * of the GPU. The peak is estimated from what is alive at once in the widest place:
 * inside a feed-forward layer, or sampling. The constants are common to all models;
 * they are from the logs of vLLM 0.26.0 on an H200 (a dense 8B, a mixture of 30B, a 70B
 * in FP8), and what more than one GPU costs is BLIS's. A block's bytes are those of the
 * groups that vLLM makes of the layers. Of a pipeline the stage with most layers
 * counts, with one of the two embeddings. Not modelled: expert parallelism, LoRA slots,
 * what a draft head's own steps take at their peak. */
#include "model/model.h"

#include <math.h>

#define GIB 0x1p30

/* What vLLM needs in any case, GiB. */
#define COMPILE_GIB   0.5  /* of the peak, where the step is compiled at this start */
#define WORKSPACE_GIB 0.03 /* of the matrix library, within the peak */
#define CONTEXT_GIB   0.22 /* outside torch: CUDA context and libraries */
#define PEERS_GIB     0.45 /* the same for talking to other GPUs */

#define SAMPLER_COPIES    4      /* of the logits in float32, beside one in 16 bits */
#define GRAPH_LAYER_MIB   0.198  /* one CUDA graph's memory for each layer */
#define RESERVE_LAYER_MIB 0.1216 /* the same as vLLM estimates it beforehand */

void vt_kv_query_init(struct vt_kv_query *q)
{
    *q = (struct vt_kv_query){.kv = {.tp = 1}, .dp = 1, .gpu_memory_utilization = 0.9};
    vt_engine_config_init(&q->engine);
    q->engine.max_num_seqs = 256;
}

/* ---- vLLM ------------------------------------------------------------- */

/* Elements alive at once for each token: input, residual and output of the layer, and
 * inside it the widest of its parts. */
static double widest_layer(const struct vt_arch *a, double tp)
{
    double d = a->hidden, inside = 0;
    double experts = a->experts_per_token, wide = 2.0 * a->expert_ffn / tp;

    if (a->moe_layers < a->layers)
        inside = 3.0 * a->dense_ffn / tp;
    if (a->moe_layers > 0) /* every expert's output is as wide as the layer's */
        inside = fmax(inside, experts * (fmax(wide, d) + a->expert_ffn / tp));
    inside = fmax(inside, 2.0 * (a->heads + a->kv_heads) * a->head_dim / tp);
    return 3 * d + inside;
}

static double activations_gib(const struct vt_kv_query *q)
{
    const struct vt_arch *a = q->kv.arch;
    double tokens = q->engine.max_num_batched_tokens, seqs = q->engine.max_num_seqs;
    double element = vt_arch_plain_bytes(a);
    double layer = tokens * widest_layer(a, q->kv.tp) * element;
    double logit =
        q->sampler_bytes > 0 ? q->sampler_bytes : element + 4.0 * SAMPLER_COPIES;
    double sampler = tokens * a->hidden * element +
                     (seqs < tokens ? seqs : tokens) * a->vocab * logit;

    return fmax(layer, sampler) / GIB + COMPILE_GIB + WORKSPACE_GIB;
}

/* Of a stage with most layers, as a share of all. */
static double stage_share(const struct vt_kv_query *q)
{
    uint32_t layers = q->kv.arch->layers, pp = q->kv.pp > 0 ? q->kv.pp : 1;

    return (double)((layers + pp - 1) / pp) / layers;
}

static double graphs_gib(const struct vt_kv_query *q, double layer_mib)
{
    const struct vt_graphs *g = q->graphs;
    uint32_t seqs = q->engine.max_num_seqs, n;
    uint32_t largest = (uint32_t)vt_gpu_graph_limit(q->gpu, q->engine.vllm);
    uint32_t mixed = g && g->n > 0        ? UINT32_MAX
                     : g && g->most > 0   ? g->most
                     : seqs < largest / 2 ? 2 * seqs
                                          : largest;

    if (mixed > q->engine.max_num_batched_tokens)
        mixed = q->engine.max_num_batched_tokens;
    n = vt_graphs_up_to(g, mixed) + vt_graphs_up_to(g, seqs < mixed ? seqs : mixed);
    return n * layer_mib * q->kv.arch->layers * stage_share(q) / 1024;
}

/* An EAGLE head has no embeddings of its own; its first layer looks at a token and at
 * the model's last layer together, and three of the model's layers become that. */
static double draft_bytes(const struct vt_arch *a, uint32_t tp)
{
    double d = a->hidden, element = vt_arch_plain_bytes(a);
    double seen = d * ((double)a->heads + 2.0 * a->kv_heads) * a->head_dim / tp;
    double own = vt_arch_params(a) - a->vocab * d * (a->tied ? 1 : 2);

    return (own / tp + seen + 3 * d * d) * element;
}

/* Weights of one stage: its layers, and the embedding of the first or of the last. */
static double stage_bytes(const struct vt_kv_query *q)
{
    const struct vt_arch *a = q->kv.arch;
    double experts = vt_arch_expert_bytes(a) * vt_arch_elements(a, q->kv.tp).experts;
    double all = vt_arch_weight_bytes(a, q->kv.tp) -
                 experts * (1 - 1.0 / vt_arch_ranks(a, q->dp));
    double element = vt_arch_plain_bytes(a);
    double one = 1.0 * a->vocab * a->hidden * element / q->kv.tp;

    if (q->kv.pp < 2)
        return all;
    return (all - one * (a->tied ? 1 : 2)) * stage_share(q) + one;
}

/* What loading takes: weights, and the tables of rotary embeddings, which are whole on
 * every GPU. */
static double loaded_gib(const struct vt_kv_query *q)
{
    const struct vt_arch *a = q->kv.arch;
    double element = vt_arch_plain_bytes(a);
    double turned = a->kv_lora_rank > 0 ? a->rope_dim : a->head_dim;
    double bytes = stage_bytes(q) + a->rope_rows * turned * element;

    if (q->kv.draft)
        bytes += draft_bytes(q->kv.draft, q->kv.tp);
    return bytes / GIB;
}

/* vLLM 0.26 runs mixtures with its first model runner, which sets the graphs' estimate
 * aside, and other models with the second, which captures them beside its share. */
static void vllm_memory(const struct vt_kv_query *q, struct vt_kv_capacity *c)
{
    c->total = q->gpu->usable_gib;
    c->budget = c->total * q->gpu_memory_utilization;
    c->weights = loaded_gib(q);
    c->activations = activations_gib(q);
    c->context = CONTEXT_GIB +
                 (q->kv.tp > 1 || vt_arch_ranks(q->kv.arch, q->dp) > 1 ? PEERS_GIB : 0);
    if (q->kv.arch->experts > 0)
        c->graphs = graphs_gib(q, RESERVE_LAYER_MIB);
    else
        c->graphs_outside = graphs_gib(q, GRAPH_LAYER_MIB);
    c->cache = c->budget - c->weights - c->activations - c->context - c->graphs;
    c->token_bytes = vt_arch_kv_bytes(
        q->kv.arch, q->kv.tp, vt_arch_kv_element(q->kv.arch, q->kv.element_bytes));
}

/* ---- BLIS ------------------------------------------------------------- */

/* Every weight as large as the quantised ones; interleaved layers all have experts. */
static double blis_weight_bytes(const struct vt_arch *a)
{
    double d = a->hidden, l = a->layers, kv = (double)a->kv_heads * a->head_dim;
    double l_dense = a->experts > 0 ? a->first_dense : a->layers;
    double shared = a->shared_stated ? a->shared_ffn : 0;
    double dense = 3 * d * (a->experts > 0 ? a->dense_ffn : a->ffn);
    double moe = 3 * d * a->expert_ffn * a->experts + 3 * d * shared + a->experts * d;

    if (l_dense > l)
        l_dense = l;
    return floor((a->vocab * d * (a->tied ? 1 : 2) + d +
                  l * (d * (d + 2 * kv) + d * d + 2 * d) + l_dense * dense +
                  (l - l_dense) * moe) *
                 a->weight_bytes);
}

static void blis_memory(const struct vt_kv_query *q, struct vt_kv_capacity *c)
{
    const struct vt_arch *a = q->kv.arch;

    c->total = q->gpu->blis_gib * q->kv.tp;
    c->budget = q->gpu->blis_gib * q->gpu_memory_utilization * q->kv.tp;
    c->weights = blis_weight_bytes(q->kv.arch) / GIB;
    c->activations = q->kv.arch->experts > 0 ? 8.0 : 5.5;
    c->context = (q->kv.tp == 1 ? 0.15 : 0.6) * q->kv.tp;
    c->cache = c->budget - (c->weights + c->activations + c->context);
    c->token_bytes = /* counts KV heads as if they could be split */
        a->kv_lora_rank > 0
            ? vt_arch_kv_bytes(a, 1, a->dtype_bytes)
            : a->layers * 2.0 * a->head_dim * a->kv_heads * a->dtype_bytes / q->kv.tp;
}

/* ---- both ------------------------------------------------------------- */

/* Memory, groups and blocks; blocks below 2 are no error yet. */
static int find_room(const struct vt_kv_query *q, struct vt_kv_capacity *out,
                     double *blocks, struct vt_err *err)
{
    bool blis = q->compat == VT_COMPAT_BLIS;
    int rc = vt_arch_check_tp(q->kv.arch, q->kv.tp, err);

    *out = (struct vt_kv_capacity){.engine = q->engine};
    if (rc != VT_OK)
        return rc;
    if (q->kv.pp > q->kv.arch->layers)
        return vt_fail(err, VT_EINPUT, "%u layers can't be shared by %u stages",
                       q->kv.arch->layers, q->kv.pp);
    if (blis) {
        blis_memory(q, out);
        out->engine.n_kv_groups = 0;
        out->block_bytes = (uint64_t)(out->token_bytes * q->engine.block_size);
    } else {
        vllm_memory(q, out);
        if ((rc = vt_kv_groups(&out->engine, &q->kv, &out->block_bytes, err)))
            return rc;
        out->block_bytes = (uint64_t)ceil((double)out->block_bytes * stage_share(q));
    }
    *blocks = out->block_bytes > 0
                  ? floor(floor(out->cache * GIB) / (double)out->block_bytes)
                  : 0;
    if (blis && q->kv.arch->experts > 0)
        *blocks *= q->dp;
    out->engine.num_gpu_blocks = *blocks >= 2 ? (uint32_t)fmin(*blocks, 0x1p30) : 0;
    return VT_OK;
}

/* ---- what would make it fit ------------------------------------------------ */

static bool holds(const struct vt_kv_query *q, uint32_t tokens)
{
    struct vt_kv_capacity c;
    double blocks;

    return find_room(q, &c, &blocks, NULL) == VT_OK && blocks >= 2 &&
           vt_longest_request(&c.engine) >= tokens;
}

static void add_advice(char out[VT_KV_ADVICE], const char *flag, double value)
{
    size_t n = strlen(out);

    (void)snprintf(out + n, VT_KV_ADVICE - n, "%s%s %g", n > 0 ? " or " : "", flag,
                   value);
}

void vt_kv_advice(char out[VT_KV_ADVICE], const struct vt_kv_query *q, uint32_t tokens)
{
    enum { MOST_GPUS = 64 };
    static const double shares[] = {0.92, 0.95, 0.98};
    struct vt_kv_query other = *q;

    out[0] = '\0';
    for (other.kv.tp = 2 * q->kv.tp; other.kv.tp <= MOST_GPUS; other.kv.tp *= 2)
        if (holds(&other, tokens)) {
            add_advice(out, "--tensor-parallel-size", other.kv.tp);
            break;
        }
    other = *q;
    for (size_t i = 0; i < VT_COUNT(shares); i++) {
        other.gpu_memory_utilization = shares[i];
        if (shares[i] > q->gpu_memory_utilization && holds(&other, tokens)) {
            add_advice(out, "--gpu-memory-utilization", shares[i]);
            break;
        }
    }
    other = *q;
    other.kv.element_bytes = 1;
    if (holds(&other, tokens) && !holds(q, tokens)) {
        size_t n = strlen(out);

        (void)snprintf(out + n, VT_KV_ADVICE - n, "%s--kv-cache-dtype fp8",
                       n > 0 ? " or " : "");
    }
}

int vt_kv_capacity(const struct vt_kv_query *q, struct vt_kv_capacity *out,
                   struct vt_err *err)
{
    char advice[VT_KV_ADVICE];
    double blocks = 0;
    int rc = find_room(q, out, &blocks, err);

    if (rc != VT_OK)
        return rc;
    if (!(blocks >= 2)) {
        vt_kv_advice(advice, q, 1);
        return vt_fail(
            err, VT_EINPUT,
            "no room for a KV cache: of %.2f GiB on %u x %s, weights take %.2f, "
            "activations %.2f and the rest %.2f%s%s",
            out->budget, q->kv.tp, q->gpu->name, out->weights, out->activations,
            out->context + out->graphs, advice[0] ? "; it would fit with " : "",
            advice);
    }
    out->tokens = vt_kv_facts(&out->engine).tokens;
    return VT_OK;
}
