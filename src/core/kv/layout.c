/* layout.c - groups of layers, as vLLM forms them. */
#include "core/kv/kv.h"

#include "core/release.h"

const char *vt_attention_name(enum vt_attention a)
{
    static const char *const name[] = {"full_attention", "mla_attention",
                                       "sliding_window", "chunked_local_attention",
                                       "mamba"};

    return name[a];
}

const struct vt_kv_group *layout_groups(const struct vt_engine_config *c,
                                        struct vt_kv_group *one, uint32_t *n)
{
    *n = c->n_kv_groups > 0 ? c->n_kv_groups : 1;
    if (c->n_kv_groups > 0)
        return c->kv_group;
    *one = (struct vt_kv_group){
        .type = VT_ATTENTION_FULL, .block_size = c->block_size, .layers = 1};
    return one;
}

bool layout_same_rules(const struct vt_kv_group *a, const struct vt_kv_group *b)
{
    return a->type == b->type && a->block_size == b->block_size &&
           a->window == b->window && a->page_bytes == b->page_bytes &&
           a->unit_bytes == b->unit_bytes && a->saves_inside == b->saves_inside;
}

bool layout_needs_all(const struct vt_kv_group *g)
{
    return g->type == VT_ATTENTION_FULL || g->type == VT_ATTENTION_MLA;
}

uint32_t layout_alike(const struct vt_kv_group *g, uint32_t n)
{
    uint32_t same = 1;

    while (same < n && layout_same_rules(&g[0], &g[same]))
        same++;
    return same;
}

void vt_kv_groups_text(const struct vt_engine_config *c, char *out, size_t size)
{
    const struct vt_kv_group *g = c->kv_group;
    size_t at = 0;

    out[0] = '\0';
    for (uint32_t i = 0, n; c->n_kv_groups > 1 && i < c->n_kv_groups && at < size;
         i += n) {
        char times[16] = "", window[16] = "";

        n = layout_alike(&g[i], c->n_kv_groups - i);
        if (n > 1)
            (void)snprintf(times, sizeof(times), "%u x ", n);
        if (g[i].window > 0)
            (void)snprintf(window, sizeof(window), " %u", g[i].window);
        at += (size_t)snprintf(out + at, size - at, "%s%s%s%s", i > 0 ? ", " : "",
                               times, vt_attention_name(g[i].type), window);
    }
}

/* ---- block sizes of all groups together ------------------------------- */

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
    while (b != 0) {
        uint64_t rest = a % b;

        a = b;
        b = rest;
    }
    return a;
}

uint32_t vt_scheduler_block_size(const struct vt_engine_config *c)
{
    struct vt_kv_group one;
    uint32_t n;
    const struct vt_kv_group *g = layout_groups(c, &one, &n);
    uint64_t step = 1;

    for (uint32_t i = 0; i < n; i++) {
        step *= g[i].block_size / common_divisor(step, g[i].block_size);
        if (step > UINT32_MAX)
            return 0;
    }
    return (uint32_t)step;
}

uint32_t vt_hash_block_size(const struct vt_engine_config *c)
{
    struct vt_kv_group one;
    uint32_t n;
    const struct vt_kv_group *g = layout_groups(c, &one, &n);
    uint64_t unit = 0;
    bool odd_state = false;

    for (uint32_t i = 0; i < n; i++) {
        unit = common_divisor(unit, g[i].block_size);
        odd_state |=
            g[i].type == VT_ATTENTION_MAMBA && g[i].block_size != c->block_size;
    }
    if (n > 1 &&
        ((!c->enable_prefix_caching && c->offload.num_cpu_blocks == 0) || odd_state))
        return vt_scheduler_block_size(c);
    return (uint32_t)unit;
}

/* ---- what a request holds --------------------------------------------- */

uint32_t layout_most_blocks(const struct vt_engine_config *c,
                            const struct vt_kv_group *g)
{
    uint64_t flying =
        (uint64_t)c->max_num_batched_tokens * (c->async_scheduling ? 2 : 1);
    uint64_t tokens = flying + g->window, bs = g->block_size;
    bool sliding = g->type == VT_ATTENTION_SLIDING;

    if (!sliding && g->type != VT_ATTENTION_CHUNKED)
        return UINT32_MAX;
    if (sliding)
        tokens--;
    if (tokens > c->max_model_len)
        tokens = c->max_model_len;
    return (uint32_t)((tokens + bs - 1) / bs + sliding);
}

uint64_t vt_blocks_of_request(const struct vt_engine_config *c, uint64_t tokens)
{
    struct vt_kv_group one;
    uint32_t n;
    const struct vt_kv_group *g = layout_groups(c, &one, &n);
    uint64_t sum = 0;

    for (uint32_t i = 0; i < n; i++) {
        uint64_t blocks = (tokens + g[i].block_size - 1) / g[i].block_size;
        uint64_t most = layout_most_blocks(c, &g[i]);

        if (g[i].type == VT_ATTENTION_MAMBA)
            most = c->mamba_cache_mode == VT_MAMBA_ALIGN
                       ? 2U + (g[i].saves_inside &&
                               release_rules(c->vllm).mamba_saves_inside)
                       : 1;
        sum += blocks < most ? blocks : most;
    }
    return sum;
}

/* ---- what is told of them ---------------------------------------------- */

struct vt_kv_facts vt_kv_facts(const struct vt_engine_config *c)
{
    struct vt_kv_group one;
    uint32_t n, least = UINT32_MAX;
    const struct vt_kv_group *g = layout_groups(c, &one, &n);
    bool differ = false;
    struct vt_kv_facts f = {
        .window = n == 1 && g->type == VT_ATTENTION_SLIDING ? g->window : 0,
        .max_concurrency = (double)c->num_gpu_blocks /
                           (double)vt_blocks_of_request(c, c->max_model_len),
    };

    for (uint32_t i = 0; i < n; i++) {
        least = g[i].block_size < least ? g[i].block_size : least;
        if (g[i].type == VT_ATTENTION_MAMBA)
            f.state_block_size = g[i].block_size;
        if (!layout_needs_all(&g[i]))
            continue;
        differ |= f.whole_block_size != 0 && f.whole_block_size != g[i].block_size;
        f.whole_block_size = g[i].block_size;
    }
    f.block_size = least;
    f.whole_block_size = differ ? 0 : f.whole_block_size;
    f.tokens = (uint64_t)(f.max_concurrency * c->max_model_len);
    return f;
}

/* Of a chunk of the host's memory. */
static struct vt_kv_message chunk_message(const struct vt_engine_config *c,
                                          const struct vt_kv_event *e,
                                          struct vt_kv_message m, uint32_t unit)
{
    uint32_t bpc = c->offload.blocks_per_chunk > 0 ? c->offload.blocks_per_chunk : 1;
    uint32_t units = m.block_size / unit * bpc;

    m.medium = VT_MEDIUM_CPU;
    m.bare = e->bare;
    m.n_events = 1;
    m.n_kept = m.bare ? 1 : units;
    m.first_hash = (e->index + 1) * units - m.n_kept;
    m.first_token = e->index * units * unit;
    m.n_tokens = m.bare ? 0 : units * unit;
    m.block_size = m.bare ? 0 : unit;
    m.units = units;
    m.window = 0;
    if (m.bare)
        m.kind = NULL;
    return m;
}

struct vt_kv_message vt_kv_message(const struct vt_engine_config *c,
                                   const struct vt_kv_event *e, uint32_t n)
{
    struct vt_kv_group one;
    uint32_t n_groups, unit = vt_hash_block_size(c);
    const struct vt_kv_group *g = layout_groups(c, &one, &n_groups) + e->group;
    struct vt_kv_message m = {
        .block_size = e->part ? unit : g->block_size,
        .kind = vt_attention_name(g->type),
        .window = g->type == VT_ATTENTION_SLIDING ? g->window : 0,
    };

    if (e->medium == VT_MEDIUM_CPU)
        return chunk_message(c, e, m, unit);
    do
        m.n_kept += e[m.n_events++].key != 0;
    while (m.n_events < n && e[m.n_events].kind == VT_KV_STORED && e[m.n_events].joins);
    m.units = m.block_size / unit;
    m.first_token = e->index * m.block_size;
    m.n_tokens = m.n_events * m.block_size;
    return m;
}

/* ---- the longest request ----------------------------------------------- */

void vt_set_max_model_len(struct vt_engine_config *c, uint32_t tokens)
{
    c->max_model_len = tokens;
    for (uint32_t i = 0; i < c->n_kv_groups; i++)
        if (c->kv_group[i].type == VT_ATTENTION_MAMBA &&
            c->mamba_cache_mode == VT_MAMBA_NONE)
            c->kv_group[i].block_size = tokens; /* its one state is for all of them */
}

uint32_t vt_longest_request(const struct vt_engine_config *c)
{
    struct vt_engine_config try = *c;
    uint32_t least = 0, most = UINT32_MAX / 2; /* fits; does not */

    while (most - least > 1) {
        uint32_t half = least + (most - least) / 2;

        vt_set_max_model_len(&try, half);
        if (vt_blocks_of_request(&try, half) < c->num_gpu_blocks)
            least = half;
        else
            most = half;
    }
    return least;
}

/* ---- forming ----------------------------------------------------------- */

struct sort { /* layers of equal rules and sizes, in order of their first one */
    struct vt_kv_group is;
    uint32_t n;
};

struct sorting {
    struct sort sort[VT_KV_GROUPS];
    uint32_t n;
};

static int add_layers(struct sorting *to, const struct vt_kv_group *is, uint32_t n,
                      struct vt_err *err)
{
    uint32_t i = 0;

    while (i < to->n && !layout_same_rules(&to->sort[i].is, is))
        i++;
    if (i == VT_KV_GROUPS)
        return vt_fail(err, VT_EINPUT, "more than %d kinds of layers", VT_KV_GROUPS);
    if (i == to->n)
        to->sort[to->n++] = (struct sort){.is = *is};
    to->sort[i].n += n;
    return VT_OK;
}

/* window: what layers whose windows are not used are said to have. */
static struct vt_kv_group group_of(const struct vt_engine_config *c,
                                   const struct vt_kv_layer *l, bool hybrid,
                                   uint32_t window)
{
    struct vt_kv_group g = {.type = (uint8_t)l->type,
                            .block_size = c->block_size,
                            .window = l->window,
                            .saves_inside = l->saves_inside,
                            .page_bytes = l->bytes * c->block_size,
                            .unit_bytes = l->bytes};

    if (l->type == VT_ATTENTION_MAMBA) {
        g.page_bytes = l->bytes;
        if (c->mamba_cache_mode == VT_MAMBA_NONE)
            g.block_size = c->max_model_len;
    } else if (!hybrid && l->type != VT_ATTENTION_MLA) {
        g.type = VT_ATTENTION_FULL;
        g.window = window;
    }
    return g;
}

/* Every block of every group is one page of the same size: layers with smaller ones
 * keep more tokens in theirs; states, and since 0.29 pages that do not divide it, leave
 * some of it unused. */
static int unify_page(struct vt_kv_group *g, uint64_t largest, uint32_t vllm,
                      struct vt_err *err)
{
    uint64_t times = largest / g->page_bytes;
    bool pads = g->type == VT_ATTENTION_MAMBA ||
                (release_rules(vllm).pads_pages && g->type != VT_ATTENTION_MLA);

    if (g->type != VT_ATTENTION_MAMBA && largest % g->page_bytes == 0 &&
        g->block_size * times <= UINT32_MAX)
        g->block_size *= (uint32_t)times;
    else if (!pads)
        return vt_fail(err, VT_EINPUT,
                       "layers whose blocks take %llu and %llu bytes can't share a "
                       "KV cache: one must be a multiple of the other",
                       (unsigned long long)g->page_bytes, (unsigned long long)largest);
    g->page_bytes = largest;
    return VT_OK;
}

/* Layers that hold the same tokens, only with heads of other numbers or sizes, are one
 * group: a block of it has a page of its own size for each. */
static bool same_tokens(const struct vt_kv_group *a, const struct vt_kv_group *b)
{
    return a->block_size == b->block_size &&
           ((layout_needs_all(a) && layout_needs_all(b)) ||
            (a->type == b->type && a->window == b->window));
}

/* Groups have about as many layers as the rarest sort has, or one could not use
 * another's blocks. */
static uint32_t group_size(const struct sorting *s)
{
    uint32_t least = UINT32_MAX, most = 0;

    for (uint32_t i = 0; i < s->n; i++) {
        least = s->sort[i].n < least ? s->sort[i].n : least;
        most = s->sort[i].n > most ? s->sort[i].n : most;
    }
    return most < least * 1.5 ? most : least;
}

static int deal_groups(struct vt_engine_config *c, const struct sorting *s,
                       struct vt_err *err)
{
    uint32_t size = group_size(s);

    c->n_kv_groups = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        uint32_t n = (s->sort[i].n + size - 1) / size;

        if (n > VT_KV_GROUPS - c->n_kv_groups)
            return vt_fail(err, VT_EINPUT, "more than %d KV groups", VT_KV_GROUPS);
        for (uint32_t k = 0; k < n; k++) { /* as cards are dealt */
            struct vt_kv_group *g = &c->kv_group[c->n_kv_groups++];

            *g = s->sort[i].is;
            g->layers = s->sort[i].n / n + (k < s->sort[i].n % n);
        }
    }
    return VT_OK;
}

/* To the scheduler such a group is what its first layer is. */
static void form_one(struct vt_engine_config *c, const struct vt_kv_layer *layer,
                     uint32_t n_layers, struct vt_kv_group is, uint64_t *block_bytes)
{
    *block_bytes = 0;
    is.layers = 0;
    for (uint32_t i = 0; i < n_layers; i++) {
        uint32_t tokens = layer[i].type == VT_ATTENTION_MAMBA ? 1 : c->block_size;

        is.layers += layer[i].n;
        *block_bytes += layer[i].n * layer[i].bytes * tokens;
    }
    c->kv_group[0] = is;
    c->n_kv_groups = 1;
}

static int form_many(struct vt_engine_config *c, const struct sorting *s,
                     uint64_t page_bytes, uint64_t *block_bytes, struct vt_err *err)
{
    uint32_t most = 0;
    int rc = deal_groups(c, s, err);

    if (rc != VT_OK)
        return rc;
    for (uint32_t i = 0; i < c->n_kv_groups; i++)
        most = c->kv_group[i].layers > most ? c->kv_group[i].layers : most;
    *block_bytes = page_bytes * most;
    return VT_OK;
}

int vt_kv_groups_form(struct vt_engine_config *c, const struct vt_kv_layer *layer,
                      uint32_t n_layers, bool hybrid, uint64_t *block_bytes,
                      struct vt_err *err)
{
    struct sorting s = {0};
    struct vt_kv_group first = {0};
    uint64_t largest = 0;
    uint32_t window = 0;
    bool any_full = false, alike = true, one_page = true;
    int rc;

    for (uint32_t i = 0; i < n_layers; i++) {
        any_full |= layer[i].type == VT_ATTENTION_FULL;
        if (window == 0 && layer[i].type == VT_ATTENTION_SLIDING)
            window = layer[i].window;
    }
    for (uint32_t i = 0; i < n_layers; i++) {
        struct vt_kv_group g = group_of(c, &layer[i], hybrid || !any_full, window);

        if (i == 0)
            first = g;
        if (g.page_bytes == 0 || layer[i].n == 0 ||
            (g.window == 0 &&
             (g.type == VT_ATTENTION_SLIDING || g.type == VT_ATTENTION_CHUNKED)))
            return vt_fail(err, VT_EINPUT, "layers without a size");
        alike &= same_tokens(&g, &first);
        one_page &= g.page_bytes == first.page_bytes;
        largest = g.page_bytes > largest ? g.page_bytes : largest;
    }
    if (n_layers == 0)
        return vt_fail(err, VT_EINPUT, "a model without layers");
    if (alike) {
        form_one(c, layer, n_layers, first, block_bytes);
        return VT_OK;
    }
    if (!hybrid)
        return vt_fail(err, VT_EINPUT,
                       "without the hybrid KV cache manager all layers must hold the "
                       "same tokens, or be made to by ignoring their windows");
    for (uint32_t i = 0; i < n_layers; i++) {
        struct vt_kv_group g = group_of(c, &layer[i], hybrid, window);

        if ((!one_page && (rc = unify_page(&g, largest, c->vllm, err))) ||
            (rc = add_layers(&s, &g, layer[i].n, err)))
            return rc;
    }
    return form_many(c, &s, largest, block_bytes, err);
}
