/* kv_groups.c - a model's KV groups, and the settings that vLLM derives from its
 * layers: block sizes, prefix caching and which states are kept. */
#include "model/model.h"

/* Releases that changed what a model with states gets. */
enum {
    STATES_CACHE = 28,  /* prefixes are cached, and states kept at block ends */
    LATENT_ALIGNS = 27, /* latent attention: blocks of whole 128 tokens */
    RETENTION_FLAG = 29 /* the interval is a setting, and sparse the standard */
};

enum { LATENT_BLOCK = 128, KERNEL_BLOCK = 16 };

struct model_layers {
    struct vt_kv_layer layer[2 * VT_ARCH_SORTS]; /* of the model, of a draft model */
    uint32_t n;
};

static const struct vt_kv_layer *find(const struct model_layers *m,
                                      enum vt_attention type)
{
    for (uint32_t i = 0; i < m->n; i++)
        if (m->layer[i].type == type)
            return &m->layer[i];
    return NULL;
}

static int read_layers(struct model_layers *m, const struct vt_kv_wish *w,
                       const struct vt_engine_config *c, struct vt_err *err)
{
    uint32_t tp = w->tp > 0 ? w->tp : 1, more = 0;
    double element = vt_arch_kv_element(w->arch, w->element_bytes);
    int rc = vt_arch_kv_layers(w->arch, tp, element, c->vllm, m->layer, &m->n, err);

    if (rc != VT_OK || !w->draft)
        return rc;
    rc = vt_arch_kv_layers(w->draft, tp, element, c->vllm, m->layer + m->n, &more, err);
    m->n += more;
    return vt_within(err, rc, "the draft model");
}

/* ---- states ------------------------------------------------------------ */

static int choose_mode(struct vt_engine_config *c, const struct vt_kv_wish *w,
                       struct vt_err *err)
{
    enum vt_mamba_wish ask = w->mamba;

    if (!w->caching_stated && c->vllm < STATES_CACHE)
        c->enable_prefix_caching = false;
    c->mamba_cache_mode = VT_MAMBA_NONE;
    if (!c->enable_prefix_caching)
        return VT_OK;
    if (c->vllm < STATES_CACHE && w->arch->state.checkpoints_all &&
        (ask == VT_MAMBA_AUTO || ask == VT_MAMBA_ASK_NONE))
        ask = VT_MAMBA_ASK_ALL;
    if (ask == VT_MAMBA_ASK_ALL && w->arch->state.checkpoints_all)
        return vt_fail(err, VT_EINPUT,
                       "vLLM 0.%u would keep the state at every block's end "
                       "(mamba-cache-mode all), which is not modelled; ask for align",
                       c->vllm);
    if (!c->enable_chunked_prefill)
        return vt_fail(err, VT_EINPUT,
                       "chunked prefill is required for mamba-cache-mode align");
    c->mamba_cache_mode = VT_MAMBA_ALIGN;
    return VT_OK;
}

/* Attention blocks grow until a page of them holds a state. */
static int choose_block_size(struct vt_engine_config *c, const struct model_layers *m,
                             struct vt_err *err)
{
    const struct vt_kv_layer *state = find(m, VT_ATTENTION_MAMBA);
    const struct vt_kv_layer *token = find(m, VT_ATTENTION_MLA);
    uint64_t unit = c->block_size > KERNEL_BLOCK ? c->block_size : KERNEL_BLOCK, size;

    if (token && c->vllm >= LATENT_ALIGNS && unit < LATENT_BLOCK)
        unit = LATENT_BLOCK;
    if (!token)
        token = find(m, VT_ATTENTION_FULL);
    if (!token)
        token = find(m, VT_ATTENTION_SLIDING);
    if (!token || token->bytes == 0)
        return VT_OK;
    size = unit * ((state->bytes + unit * token->bytes - 1) / (unit * token->bytes));
    if (size > c->block_size && size <= 1u << 16)
        c->block_size = (uint32_t)size;
    else if (size > c->block_size)
        return vt_fail(err, VT_EINPUT,
                       "a state of %llu bytes would need blocks of %llu tokens",
                       (unsigned long long)state->bytes, (unsigned long long)size);
    if (c->vllm < LATENT_ALIGNS && c->mamba_cache_mode == VT_MAMBA_ALIGN &&
        c->block_size > c->max_num_batched_tokens)
        return vt_fail(err, VT_EINPUT,
                       "mamba-cache-mode align: block-size %u must be at most "
                       "max-num-batched-tokens %u",
                       c->block_size, c->max_num_batched_tokens);
    return VT_OK;
}

static int settle_states(struct vt_engine_config *c, const struct vt_kv_wish *w,
                         const struct model_layers *m, struct vt_err *err)
{
    int rc;

    if (!find(m, VT_ATTENTION_MAMBA))
        return VT_OK;
    if (c->num_spec_tokens > 0)
        return vt_fail(err, VT_EINPUT,
                       "drafts for a model whose layers have states are not modelled");
    rc = choose_mode(c, w, err);
    return rc == VT_OK ? choose_block_size(c, m, err) : rc;
}

/* ---- the manager and retention ----------------------------------------- */

/* Chunks and a draft head's hits do not go together: vLLM then ignores windows. */
static int use_windows(const struct vt_engine_config *c, const struct vt_kv_wish *w,
                       const struct model_layers *m, bool *use, struct vt_err *err)
{
    bool can = !(find(m, VT_ATTENTION_CHUNKED) && c->use_eagle);

    *use = can && w->hybrid != VT_HYBRID_OFF;
    if (!can && w->hybrid == VT_HYBRID_ON)
        return vt_fail(err, VT_EINPUT,
                       "the hybrid KV cache manager can't be used for chunked local "
                       "attention with a draft head");
    return VT_OK;
}

static int check_retention(const struct vt_engine_config *c, struct vt_err *err)
{
    uint32_t every = c->prefix_cache_retention_interval;
    bool keeps = false;

    if (every == VT_RETENTION_DEFAULT || every == VT_RETENTION_DENSE ||
        vt_scheduler_block_size(c) == 0)
        return VT_OK;
    for (uint32_t i = 0; i < c->n_kv_groups; i++)
        keeps |= c->kv_group[i].type == VT_ATTENTION_SLIDING ||
                 c->kv_group[i].type == VT_ATTENTION_MAMBA;
    if (!keeps && (every > 0 || c->vllm < RETENTION_FLAG))
        return vt_fail(err, VT_EINPUT,
                       "prefix-cache-retention-interval is set, but no layer of the "
                       "model has a sliding window or a state");
    if (keeps && every % vt_scheduler_block_size(c) != 0)
        return vt_fail(err, VT_EINPUT,
                       "prefix-cache-retention-interval %u must be a multiple of %u, "
                       "at which the blocks of all groups end",
                       every, vt_scheduler_block_size(c));
    return VT_OK;
}

int vt_kv_groups(struct vt_engine_config *c, const struct vt_kv_wish *w,
                 uint64_t *block_bytes, struct vt_err *err)
{
    struct model_layers m = {.n = 0};
    bool windows;
    int rc;

    *block_bytes = 0;
    c->n_kv_groups = 0;
    if ((rc = read_layers(&m, w, c, err)) || (rc = settle_states(c, w, &m, err)) ||
        (rc = use_windows(c, w, &m, &windows, err)) ||
        (rc = vt_kv_groups_form(c, m.layer, m.n, windows, block_bytes, err)))
        return rc;
    if (c->n_kv_groups == 1 && c->kv_group[0].type == VT_ATTENTION_FULL)
        c->n_kv_groups = 0;
    for (uint32_t i = 0; i < c->n_kv_groups; i++) /* vLLM tells the smallest */
        if (i == 0 || c->kv_group[i].block_size < c->block_size)
            c->block_size = c->kv_group[i].block_size;
    return check_retention(c, err);
}

int vt_kv_groups_resize(struct vt_engine_config *c, struct vt_err *err)
{
    uint32_t smallest = UINT32_MAX;

    for (uint32_t i = 0; i < c->n_kv_groups; i++) {
        const struct vt_kv_group *g = &c->kv_group[i];

        if (g->type == VT_ATTENTION_MAMBA)
            return vt_fail(err, VT_EINPUT,
                           "block-size of a model whose layers have states follows "
                           "from the model: name it with --hf-config");
        smallest = g->block_size < smallest ? g->block_size : smallest;
    }
    for (uint32_t i = 0; i < c->n_kv_groups; i++) {
        struct vt_kv_group *g = &c->kv_group[i];
        uint64_t tokens = (uint64_t)g->block_size * c->block_size;
        uint64_t bytes = g->page_bytes / smallest;

        if (tokens % smallest != 0 || g->page_bytes % smallest != 0 ||
            tokens / smallest > UINT32_MAX || bytes > UINT64_MAX / c->block_size)
            return vt_fail(err, VT_EINPUT,
                           "block-size %u: the profile's KV groups have blocks of %u "
                           "tokens and more, which can't grow or shrink to that alike",
                           c->block_size, smallest);
        g->block_size = (uint32_t)(tokens / smallest);
        g->page_bytes = bytes * c->block_size;
    }
    return check_retention(c, err);
}
