/* arch.c - what a model's sizes add up to. */
#include "model/hf/arch.h"

#include <math.h>

/* The release that began to count the token itself in Cohere's windows. */
enum { WIDER_WINDOWS = 29 };

#define MOST_BYTES 1e12 /* of a token, or of a state: sums stay within 64 bits */

/* ---- parameters ------------------------------------------------------- */

/* Latent attention compresses keys and values, and maybe queries, before the heads
 * share them out; the compressing matrices are whole on every GPU. */
static double latent_attention(const struct vt_arch *a, double tp)
{
    double d = a->hidden, heads = a->heads / tp, qk = (double)a->nope_dim + a->rope_dim;
    double q = a->q_lora_rank > 0 ? d * a->q_lora_rank + a->q_lora_rank * heads * qk
                                  : d * heads * qk;

    /* An indexer is whole on every GPU: queries, a key, and weights of its heads. */
    if (a->index_topk > 0)
        q += ((double)a->q_lora_rank * a->index_dim + d) * a->index_heads +
             d * a->index_dim;
    return q + d * ((double)a->kv_lora_rank + a->rope_dim) +
           a->kv_lora_rank * heads * ((double)a->nope_dim + a->v_dim) +
           heads * a->v_dim * d;
}

/* Projections of one layer whose heads are so wide. */
static double attention_elements(const struct vt_arch *a, double tp, double kv_heads,
                                 double k_dim, double v_dim)
{
    double d = a->hidden, heads = a->heads / tp;

    if (a->kv_lora_rank > 0)
        return latent_attention(a, tp);
    return d * heads * ((a->gated_attention ? 2 : 1) * k_dim + v_dim) +
           d * fmax(kv_heads / tp, 1) * (k_dim + v_dim);
}

/* Of all layers; those that use another's KV cache project as the others do. */
static double all_attention(const struct vt_arch *a, double tp)
{
    double sum = 0, l_state = 0, rest = a->layers;

    for (uint32_t i = 0; i < a->n_sorts; i++) {
        const struct vt_arch_layers *l = &a->sort[i];

        if (l->type == VT_ATTENTION_MAMBA) {
            l_state = l->n;
            continue;
        }
        sum += l->n * attention_elements(a, tp, l->kv_heads, l->k_dim, l->v_dim);
        rest -= l->n;
    }
    if (l_state > 0)
        return sum + l_state * a->state.params / tp;
    return sum + fmax(rest, 0) *
                     attention_elements(a, tp, a->kv_heads, a->head_dim, a->head_dim);
}

/* n experts to a layer with them. */
static struct vt_arch_elements count_elements(const struct vt_arch *a, double tp,
                                              double n)
{
    double d = a->hidden, l = a->layers, matrices = a->gated ? 3 : 2;
    double l_moe = a->moe_layers, l_dense = fmax(l - l_moe - a->bare_layers, 0);

    return (struct vt_arch_elements){
        .plain = a->vocab * d * (a->tied ? 1 : 2) / tp + (2 * l + 1) * d +
                 l_moe * a->experts * d,
        .head = a->vocab * d / tp,
        .attention = all_attention(a, tp),
        .dense = matrices * d * (l_dense * a->dense_ffn + l_moe * a->shared_ffn) / tp,
        .experts = l_moe * n * matrices * d * a->expert_ffn / tp,
    };
}

double vt_arch_params(const struct vt_arch *a)
{
    struct vt_arch_elements e = count_elements(a, 1, a->experts);

    return e.plain + e.attention + e.dense + e.experts;
}

double vt_arch_active_params(const struct vt_arch *a)
{
    struct vt_arch_elements e =
        count_elements(a, 1, a->experts > 0 ? a->experts_per_token : 0);

    return e.plain + e.attention + e.dense + e.experts;
}

static bool same_real(double a, double b)
{
    return !(a < b) && !(a > b);
}

bool vt_arch_same(const struct vt_arch *a, const struct vt_arch *b)
{
    const uint32_t size[][2] = {
        {a->layers, b->layers},
        {a->hidden, b->hidden},
        {a->heads, b->heads},
        {a->vocab, b->vocab},
        {a->dense_ffn, b->dense_ffn},
        {a->experts, b->experts},
        {a->expert_ffn, b->expert_ffn},
        {a->experts_per_token, b->experts_per_token},
        {a->shared_ffn, b->shared_ffn},
        {a->moe_layers, b->moe_layers},
        {a->n_sorts, b->n_sorts},
        {a->q_lora_rank, b->q_lora_rank},
        {a->index_topk, b->index_topk},
        {a->index_heads, b->index_heads},
        {a->block_scales, b->block_scales},
        {a->gated, b->gated},
        {a->gated_attention, b->gated_attention},
        {a->tied, b->tied},
        {a->quant_experts_only, b->quant_experts_only},
    };

    for (size_t i = 0; i < VT_COUNT(size); i++)
        if (size[i][0] != size[i][1])
            return false;
    for (uint32_t i = 0; i < a->n_sorts; i++) {
        const struct vt_arch_layers *x = &a->sort[i], *y = &b->sort[i];

        if (x->type != y->type || x->n != y->n || x->window != y->window ||
            x->kv_heads != y->kv_heads || x->k_dim != y->k_dim ||
            x->v_dim != y->v_dim || x->index_bytes != y->index_bytes)
            return false;
    }
    return same_real(a->weight_bytes, b->weight_bytes) &&
           same_real(a->kv_bytes, b->kv_bytes) &&
           same_real(a->dtype_bytes, b->dtype_bytes);
}

bool vt_arch_related(const struct vt_arch *a, const struct vt_arch *b)
{
    return strcmp(a->type, b->type) == 0 && (a->experts > 0) == (b->experts > 0) &&
           (a->kv_lora_rank > 0) == (b->kv_lora_rank > 0);
}

int vt_arch_check_tp(const struct vt_arch *a, uint32_t tp, struct vt_err *err)
{
    if (a->heads % tp != 0)
        return vt_fail(err, VT_EINPUT, "%u attention heads can't be shared by %u GPUs",
                       a->heads, tp);
    if (a->kv_heads % tp != 0 && tp % a->kv_heads != 0)
        return vt_fail(err, VT_EINPUT, "%u KV heads can't be shared by %u GPUs",
                       a->kv_heads, tp);
    return VT_OK;
}

struct vt_arch_elements vt_arch_elements(const struct vt_arch *a, uint32_t tp)
{
    return count_elements(a, tp, a->experts);
}

uint32_t vt_arch_ranks(const struct vt_arch *a, uint32_t dp)
{
    return a->experts > 0 && dp > 1 ? dp : 1;
}

double vt_arch_plain_bytes(const struct vt_arch *a)
{
    return a->dtype_bytes > 2 ? 2 : a->dtype_bytes; /* vLLM loads no float32 */
}

double vt_arch_expert_bytes(const struct vt_arch *a)
{
    return fmin(a->weight_bytes + a->scale_bytes, vt_arch_plain_bytes(a));
}

double vt_arch_dense_bytes(const struct vt_arch *a)
{
    return a->quant_experts_only ? vt_arch_plain_bytes(a) : vt_arch_expert_bytes(a);
}

bool vt_arch_fp8_kernels(const struct vt_arch *a, const struct vt_gpu *gpu)
{
    double bytes = vt_arch_dense_bytes(a);

    return bytes > 0.9 && bytes <= 1.5 && gpu->fp8_tflops > 0;
}

struct vt_arch vt_arch_eagle3(const struct vt_arch *a)
{
    enum { DRAFT_VOCAB = 32000 }; /* of the heads that are published */
    struct vt_arch head = *a;
    uint32_t ffn = a->dense_ffn > 0 ? a->dense_ffn
                   : a->ffn > 0     ? a->ffn
                                    : 4 * a->hidden;

    head.layers = 1;
    head.experts = head.moe_layers = head.bare_layers = 0;
    head.experts_per_token = 1;
    head.expert_ffn = head.shared_ffn = 0;
    head.ffn = head.dense_ffn = ffn;
    head.vocab = DRAFT_VOCAB;
    head.tied = head.quant_experts_only = false;
    head.weight_bytes = head.dtype_bytes;
    head.scale_bytes = 0;
    head.quant[0] = '\0';
    head.n_sorts = a->n_sorts > 0;
    head.sort[0].n = 1;
    return head;
}

double vt_arch_weight_bytes(const struct vt_arch *a, uint32_t tp)
{
    struct vt_arch_elements e = vt_arch_elements(a, tp);

    return vt_arch_plain_bytes(a) * e.plain + vt_arch_expert_bytes(a) * e.experts +
           vt_arch_dense_bytes(a) * (e.attention + e.dense);
}

/* ---- the KV cache ------------------------------------------------------ */

static double token_bytes(const struct vt_arch_layers *l, uint32_t tp, double element)
{
    /* vLLM's 8-bit format for sparse attention: a scale for 128 elements, and what is
     * turned by position in 16 bits. */
    if (l->type == VT_ATTENTION_MLA && l->index_bytes > 0 && element < 1.5)
        return (l->k_dim - l->wide_dim) * (1 + 4.0 / 128) + 2.0 * l->wide_dim +
               l->index_bytes;
    if (l->type == VT_ATTENTION_MLA)
        return l->k_dim * element + l->index_bytes;
    return fmax((double)l->kv_heads / tp, 1) * ((double)l->k_dim + l->v_dim) * element;
}

/* Groups of heads that are shared out unevenly are made as many as there are GPUs. */
static double state_bytes(const struct vt_arch_state *x, uint32_t tp)
{
    uint32_t groups = x->groups % tp == 0 ? x->groups : tp;

    return x->rows * (x->width + groups * x->group_width) / tp * x->row_bytes +
           x->elements / tp * x->bytes;
}

double vt_arch_kv_element(const struct vt_arch *a, double stated)
{
    return stated > 0 ? stated : a->kv_bytes;
}

double vt_kv_dtype_bytes(const char *dtype)
{
    if (!dtype)
        return 0;
    return strncmp(dtype, "fp8", 3) == 0 ? 1 : strstr(dtype, "float16") ? 2 : 0;
}

double vt_arch_kv_bytes(const struct vt_arch *a, uint32_t tp, double element_bytes)
{
    double sum = 0;

    for (uint32_t i = 0; i < a->n_sorts; i++)
        if (a->sort[i].type != VT_ATTENTION_MAMBA)
            sum += a->sort[i].n * token_bytes(&a->sort[i], tp, element_bytes);
    return sum;
}

uint32_t vt_arch_state_layers(const struct vt_arch *a)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < a->n_sorts; i++)
        n += a->sort[i].type == VT_ATTENTION_MAMBA ? a->sort[i].n : 0;
    return n;
}

double vt_arch_state_bytes(const struct vt_arch *a, uint32_t tp)
{
    return vt_arch_state_layers(a) * state_bytes(&a->state, tp);
}

/* Of several windows the one that most bytes lie behind: none in use has two that
 * differ much. */
struct vt_arch_reads vt_arch_reads(const struct vt_arch *a, uint32_t tp)
{
    double all = vt_arch_kv_bytes(a, tp, 1), most = 0;
    struct vt_arch_reads r = {.kv_heads = 1};

    for (uint32_t i = 0; i < a->n_sorts; i++) {
        const struct vt_arch_layers *l = &a->sort[i];
        double bytes = l->type == VT_ATTENTION_MAMBA ? 0 : l->n * token_bytes(l, tp, 1);

        if (l->kv_heads / tp > r.kv_heads)
            r.kv_heads = l->kv_heads / tp;
        if (l->index_bytes > 0) { /* all of their indexer's keys, some of the others */
            double own = token_bytes(l, tp, a->kv_bytes);

            r.window = a->index_topk;
            r.window_share = 1 - l->index_bytes / own;
        }
        if (l->window == 0 || bytes <= 0)
            continue;
        r.window_share += bytes / all;
        if (bytes > most) {
            most = bytes;
            r.window = l->window;
        }
    }
    return r;
}

double vt_arch_graph_limit(const struct vt_arch *a)
{
    /* vLLM asks for more graphs for this one model. */
    return strcmp(a->type, "gpt_oss") == 0 ? 1024 : VT_STEP_GRAPH_LIMIT;
}

int vt_arch_kv_layers(const struct vt_arch *a, uint32_t tp, double element_bytes,
                      uint32_t vllm, struct vt_kv_layer *layer, uint32_t *n,
                      struct vt_err *err)
{
    *n = 0;
    if (a->puzzle[0] != '\0')
        return vt_fail(err, VT_EINPUT, "what the model's layers keep is not known: %s",
                       a->puzzle);
    for (uint32_t i = 0; i < a->n_sorts; i++) {
        const struct vt_arch_layers *l = &a->sort[i];
        bool state = l->type == VT_ATTENTION_MAMBA;
        bool wider =
            a->wider_window && vllm >= WIDER_WINDOWS && l->type == VT_ATTENTION_SLIDING;

        double bytes =
            state ? state_bytes(&a->state, tp) : token_bytes(l, tp, element_bytes);

        if (!(bytes <= MOST_BYTES))
            return vt_fail(err, VT_EINPUT, "%.3g bytes in a layer's KV cache", bytes);
        layer[(*n)++] =
            (struct vt_kv_layer){.type = l->type,
                                 .n = l->n,
                                 .window = l->window + wider,
                                 .saves_inside = state && a->state.saves_inside,
                                 .bytes = (uint64_t)bytes};
    }
    return VT_OK;
}
