/* layers.c - what each layer of a model keeps for the tokens to come, as vLLM reads it
 * from config.json.
 *
 * Newer files list `layer_types`. Where it is missing, a family has a pattern of its
 * own, which transformers fills in or the model's code in vLLM knows. What is not
 * understood is named in `puzzle`: nothing is taken for full attention on a guess. */
#include "model/hf/arch.h"

#include <stdarg.h>

enum keeps {
    KEEPS_ALL,
    KEEPS_WINDOW,
    KEEPS_CHUNK,
    KEEPS_STATE,
    KEEPS_BOTH, /* a state, and all tokens beside it */
    KEEPS_NOTHING
};

struct layers {
    const struct arch_source *s;
    struct vt_arch *a;
    const struct vt_node *types; /* layer_types, or NULL */
    const struct vt_node *list;  /* that the family's rule looks into, or NULL */
    uint32_t every, offset;      /* of a pattern */
    uint32_t window, chunk;      /* 0: none is used */
    uint32_t moe;                /* layers with experts, where letters tell */
};

static bool is_type(const struct vt_arch *a, const char *begin)
{
    return strncmp(a->type, begin, strlen(begin)) == 0;
}

VT_PRINTF(2, 3) static void puzzle(struct vt_arch *a, const char *fmt, ...)
{
    va_list args;

    if (a->puzzle[0] != '\0')
        return;
    va_start(args, fmt);
    (void)vsnprintf(a->puzzle, sizeof(a->puzzle), fmt, args);
    va_end(args);
}

/* ---- windows ------------------------------------------------------------ */

/* Whole numbers may be written with a point; null and 0 mean that there is none. */
static uint32_t window_in(const struct vt_node *n)
{
    if (n && n->kind == VT_INT && n->u.integer > 0 && n->u.integer < 1 << 30)
        return (uint32_t)n->u.integer;
    return 0;
}

static uint32_t first_window(const struct vt_node *list)
{
    uint32_t w = 0;

    for (uint32_t i = 0; i < list->n && w == 0; i++)
        w = window_in(&list->u.item[i]);
    return w;
}

/* Of families whose field is not used unless another one says so. */
static bool uses_windows(const struct layers *l)
{
    bool unless =
        !is_type(l->a, "qwen2") && !is_type(l->a, "qwen3") && !is_type(l->a, "smollm3");

    return arch_flag(l->s, "use_sliding_window", unless);
}

/* null is not the same as a missing field, for which families have a standard. */
static bool is_null(const struct arch_source *s, const char *key)
{
    return !arch_field(s, key) && (vt_get(s->text, key) || vt_get(s->top, key));
}

static uint32_t standard_window(const struct layers *l)
{
    static const struct {
        const char *type;
        uint32_t window;
    } known[] = {
        {"gemma2", 4096}, {"gemma3", 4096}, {"cohere2", 4096}, {"gpt_oss", 128}};

    for (size_t i = 0; i < VT_COUNT(known); i++)
        if (is_type(l->a, known[i].type) && !is_null(l->s, "sliding_window"))
            return known[i].window;
    return 0;
}

static void read_windows(struct layers *l)
{
    const struct vt_node *n = arch_field(l->s, "sliding_window");

    if (!n)
        n = arch_field(l->s, "sliding_window_size");
    l->chunk = is_null(l->s, "attention_chunk_size")
                   ? 0
                   : arch_number(l->s, "attention_chunk_size",
                                 is_type(l->a, "llama4") ? 8192 : 0);
    l->window = !uses_windows(l) ? 0 : n ? window_in(n) : standard_window(l);
}

/* ---- one layer ------------------------------------------------------------ */

static enum keeps by_type(struct layers *l, uint32_t i)
{
    static const struct {
        const char *name;
        enum keeps keeps;
    } known[] = {
        {"full_attention", KEEPS_ALL},
        {"attention", KEEPS_ALL},
        {"global_attention", KEEPS_ALL},
        {"sliding_attention", KEEPS_WINDOW},
        {"chunked_attention", KEEPS_CHUNK},
        {"linear_attention", KEEPS_STATE},
        {"mamba", KEEPS_STATE},
        {"conv", KEEPS_STATE},
        {"mlp", KEEPS_NOTHING},
        {"moe", KEEPS_NOTHING},
    };
    const struct vt_node *n = &l->types->u.item[i];

    for (size_t k = 0; n->kind == VT_STR && k < VT_COUNT(known); k++)
        if (strcmp(n->u.str, known[k].name) == 0)
            return known[k].keeps;
    puzzle(l->a, "layer_types: '%.40s' is not known",
           n->kind == VT_STR ? n->u.str : "not a name");
    return KEEPS_ALL;
}

/* The family's rule, where the file does not list each layer's kind. */
typedef enum keeps layer_rule(struct layers *l, uint32_t i);

static enum keeps all_but_each(struct layers *l, uint32_t i)
{
    return (i + 1) % l->every == 0 ? KEEPS_ALL : KEEPS_WINDOW;
}

static enum keeps even_ones(struct layers *l, uint32_t i)
{
    (void)l;
    return i % 2 == 0 ? KEEPS_WINDOW : KEEPS_ALL;
}

static enum keeps from_some_on(struct layers *l, uint32_t i)
{
    return l->window > 0 && i >= l->offset ? KEEPS_WINDOW : KEEPS_ALL;
}

static enum keeps of_a_period(struct layers *l, uint32_t i)
{
    return i % l->every == l->offset ? KEEPS_ALL : KEEPS_STATE;
}

static enum keeps state_but_each(struct layers *l, uint32_t i)
{
    return (i + 1) % l->every == 0 ? KEEPS_ALL : KEEPS_STATE;
}

static enum keeps both(struct layers *l, uint32_t i)
{
    (void)l;
    (void)i;
    return KEEPS_BOTH;
}

static bool list_has(const struct vt_node *list, uint32_t i)
{
    for (uint32_t k = 0; list && list->kind == VT_LIST && k < list->n; k++)
        if (list->u.item[k].kind == VT_INT && list->u.item[k].u.integer == i)
            return true;
    return false;
}

static enum keeps listed_are_full(struct layers *l, uint32_t i)
{
    return list_has(l->list, i) ? KEEPS_ALL : KEEPS_STATE;
}

static enum keeps listed_are_states(struct layers *l, uint32_t i)
{
    return list_has(l->list, i + 1) ? KEEPS_STATE : KEEPS_ALL; /* counted from 1 */
}

/* One number for each layer: 0 stands for what `none` says. */
static enum keeps by_number(struct layers *l, uint32_t i, enum keeps none,
                            enum keeps some)
{
    const struct vt_node *n = l->list;

    if (n->kind != VT_LIST || i >= n->n || n->u.item[i].kind != VT_INT) {
        puzzle(l->a, "a list of layers has no number for each");
        return KEEPS_ALL;
    }
    return n->u.item[i].u.integer == 0 ? none : some;
}

static enum keeps zero_is_state(struct layers *l, uint32_t i)
{
    return by_number(l, i, KEEPS_STATE, KEEPS_ALL);
}

static enum keeps one_is_window(struct layers *l, uint32_t i)
{
    return by_number(l, i, KEEPS_ALL, KEEPS_WINDOW);
}

/* Llama 4: layers with rotary embeddings see their chunk only. */
static enum keeps rope_is_local(struct layers *l, uint32_t i)
{
    if (l->list && l->list->n > 0)
        return by_number(l, i, KEEPS_ALL, KEEPS_CHUNK);
    return (i + 1) % l->every == 0 ? KEEPS_ALL : KEEPS_CHUNK;
}

/* Nemotron-H: one letter for each layer, which is only one of all these things. */
static enum keeps by_letter(struct layers *l, uint32_t i)
{
    const char *text = l->list->kind == VT_STR ? l->list->u.str : "";
    char c = i < strlen(text) ? text[i] : '\0';

    l->a->bare_layers += c == 'M' || c == '*';
    l->moe += c == 'E';
    if (c == 'M')
        return KEEPS_STATE;
    if (c == '*')
        return KEEPS_ALL;
    if (c != '-' && c != 'E')
        puzzle(l->a, "hybrid_override_pattern: no layer of a known kind at %u", i);
    return KEEPS_NOTHING;
}

static enum keeps by_windows(struct layers *l, uint32_t i) /* numbers and nulls */
{
    const struct vt_node *n = &l->list->u.item[i % l->list->n];
    uint32_t w = window_in(n);

    if (w == 0)
        return KEEPS_ALL;
    if (l->window > 0 && w != l->window)
        puzzle(l->a, "windows of %u and %u tokens", l->window, w);
    return KEEPS_WINDOW;
}

static enum keeps everyone(struct layers *l, uint32_t i)
{
    (void)i;
    return l->window > 0 ? KEEPS_WINDOW : KEEPS_ALL;
}

/* ---- which rule ----------------------------------------------------------- */

/* vLLM refuses such a file, and so does the twin. */
static void refuse_part(struct layers *l)
{
    if (l->window > 0 && l->offset > 0 && l->offset < l->a->layers)
        puzzle(l->a,
               "a sliding window from layer %u of %u on, which vLLM does not "
               "support",
               l->offset, l->a->layers);
}

static layer_rule *rule_of_family(struct layers *l)
{
    static const struct {
        const char *type, *list;
        enum vt_kind kind;
        layer_rule *rule;
    } lists[] = {
        {"nemotron_h", "hybrid_override_pattern", VT_STR, by_letter},
        {"bamba", "attn_layer_indices", VT_LIST, listed_are_full},
        {"lfm2", "full_attn_idxs", VT_LIST, listed_are_full},
        {"minimax", "attn_type_list", VT_LIST, zero_is_state},
        {"mimo_v2", "hybrid_layer_pattern", VT_LIST, one_is_window},
        {"", "interleaved_sliding_window", VT_LIST, by_windows},
        {"", "sliding_window", VT_LIST, by_windows},
    };
    const struct arch_source *s = l->s;
    const struct vt_arch *a = l->a;

    if (is_type(a, "llama4")) {
        l->list = arch_field(s, "no_rope_layers");
        l->every = arch_number(s, "no_rope_layer_interval", 4);
        return rope_is_local;
    }
    if (is_type(a, "gpt_oss"))
        return even_ones;
    if (is_type(a, "falcon_h1"))
        return both;
    if (is_type(a, "kimi_linear")) {
        l->list = vt_get_non_null(arch_field(s, "linear_attn_config"), "kda_layers");
        return listed_are_states;
    }
    for (size_t i = 0; i < VT_COUNT(lists); i++) {
        const struct vt_node *n =
            is_type(a, lists[i].type) ? arch_field(s, lists[i].list) : NULL;

        if (!n || n->kind != lists[i].kind || n->n == 0)
            continue;
        l->list = n;
        if (lists[i].rule == by_windows)
            l->window = uses_windows(l) ? first_window(n) : 0;
        return lists[i].rule;
    }
    if (is_type(a, "jamba")) {
        l->every = arch_number(s, "attn_layer_period", 8);
        l->offset = arch_number(s, "attn_layer_offset", 4);
        return of_a_period;
    }
    return NULL;
}

static layer_rule *rule_without_types(struct layers *l)
{
    const struct arch_source *s = l->s;
    const struct vt_arch *a = l->a;

    if (is_type(a, "gemma2"))
        return even_ones;
    if (is_type(a, "qwen3_next") || is_type(a, "qwen3_5")) {
        l->every = arch_number(s, "full_attention_interval", 4);
        return state_but_each;
    }
    if (is_type(a, "gemma3") || is_type(a, "cohere2") ||
        arch_field(s, "sliding_window_pattern")) {
        l->every =
            arch_number(s, "sliding_window_pattern", is_type(a, "cohere2") ? 4 : 6);
        if (arch_field(s, "sliding_window_pattern") &&
            arch_number(s, "sliding_window_pattern", 0) == 0)
            puzzle(l->a, "sliding_window_pattern is no number");
        return all_but_each;
    }
    if (arch_field(s, "max_window_layers")) {
        l->offset = arch_number(s, "max_window_layers", 0);
        refuse_part(l);
        return from_some_on;
    }
    if (window_in(arch_field(s, "interleaved_sliding_window")) > 0)
        l->window = window_in(arch_field(s, "interleaved_sliding_window"));
    return everyone;
}

/* As DeepSeek V3.2: beside a latent vector, an indexer's key. */
static bool is_sparse(const struct vt_arch *a)
{
    return a->kv_lora_rank > 0 && a->q_lora_rank > 0 && a->index_topk > 0 &&
           a->index_heads > 0 && a->index_dim > 0 && a->n_sorts == 1;
}

/* Fields of models whose layers keep things that are not known here. */
static void find_puzzles(struct layers *l)
{
    static const char *const odd[] = {
        "index_topk",
        "compress_ratios",
        "layers_block_type",
        "rwkv_version",
        "ssm_cfg",
        "d_inner",
        "mamba_num_heads",
        "mamba_d_state",
        "linear_num_value_heads",
        "conv_L_cache",
        "linear_attn_config",
        "attn_type_list",
    };
    bool stateful = false;

    for (uint32_t i = 0; i < l->a->n_sorts; i++)
        stateful |= l->a->sort[i].type == VT_ATTENTION_MAMBA;
    if (arch_flag(l->s, "is_encoder_decoder", false))
        puzzle(l->a, "an encoder's tokens are looked at by every layer");
    for (size_t i = 0; i < VT_COUNT(odd) && (i < 2 || !stateful); i++)
        if (i == 0 && is_sparse(l->a))
            continue;
        else if (arch_field(l->s, odd[i]) && arch_field(l->s, odd[i]) != l->list)
            puzzle(l->a, "model_type '%s' with field '%s' is not known", l->a->type,
                   odd[i]);
}

/* ---- sorts ---------------------------------------------------------------- */

static void add_layer(struct vt_arch *a, const struct vt_arch_layers *is)
{
    for (uint32_t i = 0; i < a->n_sorts; i++) {
        struct vt_arch_layers *x = &a->sort[i];

        if (x->type == is->type && x->window == is->window &&
            x->kv_heads == is->kv_heads && x->k_dim == is->k_dim &&
            x->v_dim == is->v_dim) {
            x->n++;
            return;
        }
    }
    if (a->n_sorts == VT_ARCH_SORTS)
        puzzle(a, "more than %d sorts of layers", VT_ARCH_SORTS);
    else
        a->sort[a->n_sorts++] = *is;
}

/* Families whose layers with and without a window have other heads. */
static void size_heads(const struct layers *l, struct vt_arch_layers *is)
{
    const struct arch_source *s = l->s;
    bool sliding = is->type == VT_ATTENTION_SLIDING;

    if (is_type(l->a, "mimo_v2")) {
        is->kv_heads = sliding ? arch_number(s, "swa_num_key_value_heads", is->kv_heads)
                               : is->kv_heads;
        is->k_dim = sliding ? arch_number(s, "swa_head_dim", is->k_dim) : is->k_dim;
        is->v_dim =
            arch_number(s, sliding ? "swa_v_head_dim" : "v_head_dim", is->k_dim);
    } else if (is_type(l->a, "gemma4") && !sliding) {
        is->k_dim = is->v_dim = arch_number(s, "global_head_dim", is->k_dim);
        if (arch_flag(s, "attention_k_eq_v", false))
            is->kv_heads = arch_number(s, "num_global_key_value_heads", is->kv_heads);
    }
    if (is->kv_heads < 1 || is->k_dim < 1 || is->kv_heads > ARCH_MAX_WIDTH ||
        is->k_dim > ARCH_MAX_WIDTH || is->v_dim > ARCH_MAX_WIDTH)
        puzzle(l->a, "heads without a size");
}

static void add_attention(struct layers *l, enum keeps k)
{
    struct vt_arch *a = l->a;
    struct vt_arch_layers is = {.type = VT_ATTENTION_FULL,
                                .n = 1,
                                .kv_heads = a->kv_heads,
                                .k_dim = a->head_dim,
                                .v_dim = a->head_dim};

    if (k == KEEPS_CHUNK && is_type(a, "rnj1"))
        k = KEEPS_WINDOW; /* calls it so */
    if (k == KEEPS_WINDOW && l->window > 0)
        is.type = VT_ATTENTION_SLIDING;
    else if (k == KEEPS_CHUNK && l->chunk > 0)
        is.type = VT_ATTENTION_CHUNKED;
    if (is.type != VT_ATTENTION_FULL)
        is.window = k == KEEPS_CHUNK ? l->chunk : l->window;
    if (a->kv_lora_rank > 0) {
        if (is.type != VT_ATTENTION_FULL)
            puzzle(a, "latent attention within a window");
        is = (struct vt_arch_layers){.type = VT_ATTENTION_MLA,
                                     .n = 1,
                                     .kv_heads = 1,
                                     .k_dim = a->kv_lora_rank + a->rope_dim};
        if (a->index_topk > 0) { /* 8 bits, and a scale of four bytes for 128 */
            is.index_bytes = a->index_dim + a->index_dim / 128 * 4;
            is.wide_dim = a->rope_dim;
        }
    } else {
        size_heads(l, &is);
    }
    add_layer(a, &is);
}

static void add_state(struct layers *l)
{
    const struct vt_arch_layers is = {.type = VT_ATTENTION_MAMBA, .n = 1};

    if (l->a->state.elements <= 0 && l->a->state.width <= 0 &&
        !arch_read_state(l->a, l->s))
        puzzle(l->a, "model_type '%s': the size of a layer's state is not known",
               l->a->type);
    add_layer(l->a, &is);
}

void arch_read_layers(struct vt_arch *a, const struct arch_source *s)
{
    struct layers l = {.s = s, .a = a, .types = arch_field(s, "layer_types")};
    layer_rule *rule;
    uint32_t own;

    read_windows(&l);
    if (l.types && (l.types->kind != VT_LIST || l.types->n < a->layers)) {
        puzzle(a, "layer_types has no entry for each of %u layers", a->layers);
        l.types = NULL;
    }
    rule = rule_of_family(&l);
    if (!rule && !l.types)
        rule = rule_without_types(&l);
    if (l.every == 0)
        l.every = 1;
    /* The last layers of some look into earlier ones' cache. */
    own = arch_number(s, "num_kv_shared_layers", 0);
    own = own < a->layers ? a->layers - own : 0;
    for (uint32_t i = 0; i < own; i++) {
        enum keeps k = rule ? rule(&l, i) : by_type(&l, i);

        if (k == KEEPS_STATE || k == KEEPS_BOTH)
            add_state(&l);
        if (k != KEEPS_STATE && k != KEEPS_NOTHING)
            add_attention(&l, k);
    }
    if (rule == by_letter && a->experts > 0)
        a->moe_layers = l.moe;
    a->wider_window = is_type(a, "cohere2");
    if (a->n_sorts == 0)
        puzzle(a, "no layer keeps anything");
    find_puzzles(&l);
}
