/* config.c - a model's sizes from its config.json.
 *
 * Each family names the same things differently; the first name that is there and not
 * null counts. Sizes of a multimodal model's language part stand in text_config, which
 * goes before the top level. */
#include "model/hf/arch.h"

#include <math.h>

enum {
    MAX_LAYERS = 2048,
    MAX_WIDTH = ARCH_MAX_WIDTH,
    MAX_VOCAB = 1 << 26,
    MAX_LEN = 1 << 30
};

const struct vt_node *arch_map_with(const struct arch_source *s, const char *key)
{
    if (vt_get_non_null(s->text, key))
        return s->text;
    return vt_get_non_null(s->top, key) ? s->top : NULL;
}

const struct vt_node *arch_field(const struct arch_source *s, const char *key)
{
    return vt_get_non_null(arch_map_with(s, key), key);
}

uint32_t arch_number(const struct arch_source *s, const char *key, uint32_t otherwise)
{
    uint32_t n = otherwise;

    if (vt_get_u32(arch_map_with(s, key), key, VT_OPTIONAL, 0, MAX_LEN, &n, NULL))
        return otherwise;
    return n;
}

/* ---- plain sizes ------------------------------------------------------ */

static const struct size_field {
    size_t offset;
    uint32_t lo, hi;
    bool required;
    const char *name[5]; /* in the order in which they count */
} fields[] = {
#define SIZE(field, lo, hi, required, ...)                 \
    {                                                      \
        offsetof(struct vt_arch, field), lo, hi, required, \
        {                                                  \
            __VA_ARGS__                                    \
        }                                                  \
    }
    SIZE(layers, 1, MAX_LAYERS, true, "num_hidden_layers", "num_layers", "n_layer",
         "n_layers"),
    SIZE(hidden, 1, MAX_WIDTH, true, "hidden_size", "n_embd", "d_model"),
    SIZE(heads, 1, MAX_WIDTH, true, "num_attention_heads", "n_head", "n_heads"),
    SIZE(kv_heads, 1, MAX_WIDTH, false, "num_key_value_heads", "num_kv_heads",
         "multi_query_group_num", "n_head_kv"),
    SIZE(head_dim, 1, MAX_WIDTH, false, "head_dim"),
    /* A draft head's own comes first: it also states the model's. */
    SIZE(vocab, 1, MAX_VOCAB, true, "draft_vocab_size", "vocab_size",
         "padded_vocab_size"),
    SIZE(max_len, 1, MAX_LEN, false, "max_position_embeddings", "n_positions",
         "seq_length", "max_seq_len"),
    SIZE(ffn, 1, MAX_WIDTH, false, "intermediate_size", "ffn_hidden_size", "ffn_dim",
         "n_inner"),
    SIZE(dense_ffn, 1, MAX_WIDTH, false, "intermediate_size_mlp"),
    SIZE(experts_per_token, 0, MAX_WIDTH, false, "num_experts_per_tok",
         "experts_per_token", "moe_topk", "moe_top_k", "top_k_experts"),
    SIZE(expert_ffn, 0, MAX_WIDTH, false, "moe_intermediate_size",
         "expert_ffn_hidden_size"),
    SIZE(shared_ffn, 0, MAX_WIDTH, false, "shared_expert_intermediate_size",
         "shared_intermediate_size", "moe_shared_expert_intermediate_size"),
    SIZE(moe_interleave, 0, MAX_LAYERS, false, "interleave_moe_layer_step"),
    SIZE(first_dense, 0, MAX_LAYERS, false, "first_k_dense_replace"),
    SIZE(kv_lora_rank, 0, MAX_WIDTH, false, "kv_lora_rank"),
    SIZE(q_lora_rank, 0, MAX_WIDTH, false, "q_lora_rank"),
    SIZE(rope_dim, 0, MAX_WIDTH, false, "qk_rope_head_dim"),
    SIZE(nope_dim, 0, MAX_WIDTH, false, "qk_nope_head_dim"),
    SIZE(v_dim, 0, MAX_WIDTH, false, "v_head_dim"),
    SIZE(index_topk, 0, MAX_LEN, false, "index_topk"),
    SIZE(index_heads, 0, MAX_WIDTH, false, "index_n_heads"),
    SIZE(index_dim, 0, MAX_WIDTH, false, "index_head_dim"),
#undef SIZE
};

static int read_size(const struct arch_source *s, const struct size_field *f,
                     struct vt_arch *a, struct vt_err *err)
{
    uint32_t *to = (uint32_t *)(void *)((char *)a + f->offset);

    for (size_t i = 0; i < VT_COUNT(f->name) && f->name[i]; i++) {
        const struct vt_node *map = arch_map_with(s, f->name[i]);

        if (map)
            return vt_get_u32(map, f->name[i], VT_OPTIONAL, f->lo, f->hi, to, err);
    }
    if (f->required)
        return vt_fail(err, VT_EINPUT, "field '%s' is missing", f->name[0]);
    return VT_OK;
}

static int read_string(const struct arch_source *s, const char *key, const char **out,
                       struct vt_err *err)
{
    const struct vt_node *map = arch_map_with(s, key);

    *out = "";
    return !map ? VT_OK : vt_get_str(map, key, VT_REQUIRED, out, err);
}

bool arch_flag(const struct arch_source *s, const char *key, bool otherwise)
{
    const struct vt_node *n = arch_field(s, key);

    return n && n->kind == VT_BOOL ? n->u.boolean : otherwise;
}

/* ---- what the family implies ------------------------------------------ */

static bool begins_as_one_of(const char *type, const char *const *prefix)
{
    for (; *prefix; prefix++)
        if (strncmp(type, *prefix, strlen(*prefix)) == 0)
            return true;
    return false;
}

static int read_family(const struct arch_source *s, struct vt_arch *a,
                       struct vt_err *err)
{
    static const char *const tied[] = {"gemma", "cohere", "gpt2",   "opt",
                                       "bloom", "mpt",    "falcon", "gpt_bigcode",
                                       "olmo1", NULL};
    static const char *const ungated[] = {
        "gpt2",   "gpt_neox",   "gptj",        "opt",      "bloom",    "mpt",
        "falcon", "starcoder2", "gpt_bigcode", "nemotron", "phi-msft", NULL};
    static const char *const attention_gates[] = {"qwen3_next", "qwen3_5", NULL};
    const char *type = "";
    int rc = read_string(s, "model_type", &type, err);

    if (rc != VT_OK)
        return rc;
    (void)snprintf(a->type, sizeof(a->type), "%s", type);
    a->tied = arch_flag(s, "tie_word_embeddings", begins_as_one_of(type, tied));
    a->gated = !begins_as_one_of(type, ungated) && strcmp(type, "phi") != 0;
    a->gated_attention =
        arch_flag(s, "attn_output_gate", begins_as_one_of(type, attention_gates));
    if (a->kv_heads == 0)
        a->kv_heads = arch_flag(s, "multi_query", false) ? 1 : a->heads;
    if (a->head_dim == 0)
        a->head_dim = a->hidden / a->heads;
    if (a->ffn == 0) /* what the families without the field do */
        a->ffn = a->hidden <= MAX_WIDTH / 4 ? 4 * a->hidden : MAX_WIDTH;
    if (a->dense_ffn == 0)
        a->dense_ffn = a->ffn;
    if (a->head_dim == 0)
        return vt_fail(err, VT_EINPUT, "hidden_size %u is less than %u heads",
                       a->hidden, a->heads);
    if (a->kv_heads > a->heads)
        return vt_fail(err, VT_EINPUT, "%u KV heads for %u heads", a->kv_heads,
                       a->heads);
    return VT_OK;
}

/* ---- experts ---------------------------------------------------------- */

static int count_experts(const struct arch_source *s, struct vt_arch *a,
                         struct vt_err *err)
{
    static const char *const names[] = {"num_experts", "moe_num_experts",
                                        "n_routed_experts", "num_local_experts",
                                        "num_routed_experts"};

    for (size_t i = 0; i < VT_COUNT(names); i++) {
        uint32_t n = 0;
        int rc = vt_get_u32(arch_map_with(s, names[i]), names[i], VT_OPTIONAL, 0,
                            1 << 16, &n, err);

        if (rc != VT_OK)
            return rc;
        if (n >= 2) { /* one expert is no choice: a dense model */
            a->experts = n;
            return VT_OK;
        }
    }
    return VT_OK;
}

static bool is_listed(const struct vt_node *list, uint32_t i)
{
    for (uint32_t k = 0; k < list->n; k++)
        if (list->u.item[k].kind == VT_INT && list->u.item[k].u.integer == i)
            return true;
    return false;
}

static int read_every(const struct arch_source *s, const char *key, uint32_t *every,
                      struct vt_err *err)
{
    const struct vt_node *n = arch_field(s, key);

    *every = 1;
    if (!n || n->kind == VT_LIST)
        return VT_OK;
    return vt_get_u32(arch_map_with(s, key), key, VT_OPTIONAL, 1, MAX_LAYERS, every,
                      err);
}

/* Which layers have experts is told by a start, a stride, or a list. */
static int count_moe_layers(const struct arch_source *s, struct vt_arch *a,
                            struct vt_err *err)
{
    const struct vt_node *only = arch_field(s, "mlp_only_layers"),
                         *all = arch_field(s, "moe_layers");
    uint32_t step = 1, every = 1, period = 1, offset,
             stride = a->moe_interleave > 1 ? a->moe_interleave : 1;
    int rc = read_every(s, "decoder_sparse_step", &step, err);

    if (rc == VT_OK)
        rc = read_every(s, "moe_layer_freq", &every, err);
    if (rc != VT_OK)
        return rc;
    if (only && (only->kind != VT_LIST || only->n > a->layers))
        return vt_fail(err, VT_EINPUT, "field 'mlp_only_layers' is no list of layers");
    if (all && all->kind == VT_LIST && all->n > 0 && all->n <= a->layers) {
        a->moe_layers = all->n;
        return VT_OK;
    }
    if ((rc = read_every(s, "expert_layer_period", &period, err)))
        return rc;
    offset = arch_number(s, "expert_layer_offset", 0) % period;
    for (uint32_t i = a->first_dense; i < a->layers; i++)
        a->moe_layers += (i + 1) % step == 0 && (i + 1) % stride == 0 &&
                         i % every == 0 && i % period == offset &&
                         (!only || !is_listed(only, i));
    return VT_OK;
}

static int read_moe(const struct arch_source *s, struct vt_arch *a, struct vt_err *err)
{
    uint32_t n_shared = 0;
    int rc = count_experts(s, a, err);

    if (rc != VT_OK)
        return rc;
    if (a->experts == 0) {
        a->experts_per_token = 1;
        a->expert_ffn = a->shared_ffn = 0;
        return VT_OK;
    }
    if (a->experts_per_token == 0)
        return vt_fail(err, VT_EINPUT,
                       "%u experts, but field 'num_experts_per_tok' is missing",
                       a->experts);
    if (a->experts_per_token > a->experts)
        return vt_fail(err, VT_EINPUT, "%u of %u experts for each token",
                       a->experts_per_token, a->experts);
    if (a->expert_ffn == 0)
        a->expert_ffn = a->ffn;
    rc = vt_get_u32(arch_map_with(s, "n_shared_experts"), "n_shared_experts",
                    VT_OPTIONAL, 0, 1 << 10, &n_shared, err);
    if (rc != VT_OK)
        return rc;
    a->shared_stated = a->shared_ffn > 0 || n_shared > 0;
    if (a->shared_ffn == 0)
        a->shared_ffn = n_shared <= MAX_WIDTH / a->expert_ffn ? n_shared * a->expert_ffn
                                                              : MAX_WIDTH;
    if (!a->shared_stated && strncmp(a->type, "llama4", 6) == 0)
        a->shared_ffn = a->ffn; /* always there, stated nowhere */
    if (strncmp(a->type, "gemma4", 6) == 0)
        a->shared_ffn = a->ffn; /* the dense layer beside the experts */
    return count_moe_layers(s, a, err);
}

/* ---- number formats --------------------------------------------------- */

static const struct {
    const char *name; /* what the field's text begins with */
    double bytes;
} dtypes[] = {
    {"bfloat16", 2}, {"float16", 2}, {"half", 2},  {"float32", 4}, {"float8", 1},
    {"fp8", 1},      {"int8", 1},    {"uint8", 1}, {"int4", 1},    {"nf4", 1},
};

double arch_dtype_bytes(const char *name)
{
    if (strncmp(name, "torch.", 6) == 0)
        name += 6;
    for (size_t i = 0; i < VT_COUNT(dtypes); i++)
        if (strncmp(name, dtypes[i].name, strlen(dtypes[i].name)) == 0)
            return dtypes[i].bytes;
    return 0;
}

static int read_dtype(const struct arch_source *s, struct vt_arch *a,
                      struct vt_err *err)
{
    const char *key = arch_map_with(s, "torch_dtype") ? "torch_dtype" : "dtype";
    const char *text;
    int rc = read_string(s, key, &text, err);

    a->dtype_bytes = 2; /* what vLLM takes where nothing is stated */
    if (rc != VT_OK || *text == '\0')
        return rc;
    a->dtype_bytes = arch_dtype_bytes(text);
    if (a->dtype_bytes > 0)
        return VT_OK;
    return vt_fail(err, VT_EINPUT, "field '%s': unknown number format '%.40s'", key,
                   text);
}

/* ---- rotary embeddings -------------------------------------------------- */

/* vLLM keeps a table of sines and cosines for every position, longer where positions
 * are stretched, and one for each kind of layer whose base differs. */
static void read_rope(const struct arch_source *s, struct vt_arch *a)
{
    const struct vt_node *scaling = arch_field(s, "rope_scaling");
    const char *type = "";
    double factor = 1, original = 0;

    if (scaling && scaling->kind == VT_MAP) {
        const char *key = vt_get_non_null(scaling, "rope_type") ? "rope_type" : "type";

        if (vt_get_str(scaling, key, VT_OPTIONAL, &type, NULL) ||
            vt_get_f64(scaling, "factor", VT_OPTIONAL, 1, 1e4, &factor, NULL) ||
            vt_get_f64(scaling, "original_max_position_embeddings", VT_OPTIONAL, 1, 1e9,
                       &original, NULL))
            factor = 1;
    }
    a->rope_rows = a->max_len;
    if (type && strcmp(type, "linear") == 0)
        a->rope_rows *= factor;
    else if (type && strcmp(type, "yarn") == 0 && original > 0)
        a->rope_rows = original * factor;
    if (arch_field(s, "rope_local_base_freq"))
        a->rope_rows += a->max_len;
}

int arch_read(struct vt_arch *a, const struct arch_source *s, struct vt_err *err)
{
    const struct vt_node *quant;
    int rc;

    *a = (struct vt_arch){0};
    for (size_t i = 0; i < VT_COUNT(fields); i++)
        if ((rc = read_size(s, &fields[i], a, err)) != VT_OK)
            return rc;
    if ((rc = read_family(s, a, err)) || (rc = read_moe(s, a, err)) ||
        (rc = read_dtype(s, a, err)))
        return rc;
    a->weight_bytes = a->dtype_bytes;
    a->kv_bytes = vt_arch_plain_bytes(a);
    quant = arch_field(s, "quantization_config");
    if (!quant)
        quant = arch_field(s, "compression_config");
    if (quant && (rc = arch_read_quant(a, quant, err)))
        return rc;
    arch_read_layers(a, s);
    read_rope(s, a);
    return VT_OK;
}

int vt_arch_read(struct vt_arch *a, const struct vt_node *config, struct vt_err *err)
{
    static const char *const inner[] = {"text_config", "llm_config", "language_config"};
    struct arch_source s = {.top = config};

    *a = (struct vt_arch){0};
    if (!config || config->kind != VT_MAP)
        return vt_fail(err, VT_EINPUT, "a model's config is an object");
    for (size_t i = 0; i < VT_COUNT(inner) && !s.text; i++)
        s.text = vt_get_non_null(config, inner[i]);
    if (s.text && s.text->kind != VT_MAP)
        s.text = NULL;
    return arch_read(a, &s, err);
}
