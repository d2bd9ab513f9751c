/* hits.c - the longest prefix of a request that all groups can find again. */
#include "core/sched/sched.h"

struct search { /* of one kind of groups */
    struct vt_sched *s;
    struct slot *r;
    struct kind kind;
    const struct group *g; /* its first */
    uint32_t n;            /* blocks to look at */
    uint32_t step;         /* hits end at multiples of so many tokens */
    bool drop;             /* a draft head needs the last block computed again */
};

static bool reserve_hits(const struct search *x)
{
    for (uint32_t i = 0; i < x->kind.n; i++) {
        struct hit *h = &x->s->groups.group[x->kind.first + i].hit;

        if (x->n > h->cap &&
            vt_grow(&h->block, &h->cap, x->n, sizeof(*h->block), NULL) != VT_OK) {
            x->s->failed = true;
            return false;
        }
    }
    return true;
}

/* Whether every group of the kind has block i, which then is in its hit. */
static bool has_block(const struct search *x, uint32_t i)
{
    const struct groups *gs = &x->s->groups;
    uint64_t key;

    if (!content_key(&x->r->content, (i + 1) * x->g->units - 1, gs->unit, &key)) {
        x->s->failed = true;
        return false;
    }
    for (uint32_t k = x->kind.first; k < x->kind.first + x->kind.n; k++) {
        uint32_t b = pool_lookup(&x->s->pool, key, k);

        if (b == 0)
            return false;
        gs->group[k].hit.block[i] = b;
    }
    return true;
}

/* Whether a hit may end with so many blocks. */
static bool ends_well(const struct search *x, uint32_t blocks)
{
    return x->g->is.block_size == x->step ||
           (uint64_t)blocks * x->g->is.block_size % x->step == 0;
}

static uint32_t settle(const struct search *x, uint32_t first, uint32_t n)
{
    for (uint32_t k = x->kind.first; k < x->kind.first + x->kind.n; k++) {
        struct hit *h = &x->s->groups.group[k].hit;

        h->first = first < n ? first : n;
        h->n = n;
    }
    return n * x->g->is.block_size;
}

static uint32_t find_whole(const struct search *x)
{
    uint32_t bs = x->g->is.block_size, n = 0, tokens;

    while (n < x->n && has_block(x, n))
        n++;
    tokens = n * bs;
    if (x->drop && tokens > 0)
        tokens -= x->step < bs ? x->step : bs;
    tokens -= tokens % x->step;
    (void)settle(x, 0, group_blocks(x->g, tokens));
    return tokens;
}

/* From the right: the first run of cached blocks that fills a window. One that reaches
 * the first block is as good. */
static uint32_t find_window(const struct search *x)
{
    uint32_t need = x->g->span + x->drop, run = 0, i = x->n, n;

    need = need > 0 ? need : 1;
    while (i > 0 && run < need) {
        i--;
        if (!has_block(x, i))
            run = 0;
        else if (run > 0 || ends_well(x, x->drop ? i : i + 1))
            run++;
    }
    n = i + run;
    if (run < need)
        while (n > 0 && !ends_well(x, n))
            n--;
    if (x->drop && n > 0) {
        n--;
        while (n > 0 && !ends_well(x, n))
            n--;
    }
    return settle(x, i, n);
}

static uint32_t find_chunk(const struct search *x, uint32_t tokens)
{
    uint32_t first = group_skips(x->g, tokens) / x->g->is.block_size, n = first;

    while (n < x->n && has_block(x, n))
        n++;
    return settle(x, first, n);
}

static uint32_t find_state(const struct search *x)
{
    for (uint32_t n = x->n; n > 0; n--)
        if (has_block(x, n - 1) && ends_well(x, n))
            return settle(x, n - 1, n);
    return settle(x, 0, 0);
}

/* Tokens, at most so many, that the kind's groups can find. */
static uint32_t find_kind(struct vt_sched *s, struct slot *r, struct kind kind,
                          uint32_t tokens, uint32_t step, bool drop)
{
    const struct group *g = &s->groups.group[kind.first];
    uint32_t keys = r->n_tokens / s->groups.unit / g->units;
    struct search x = {.s = s,
                       .r = r,
                       .kind = kind,
                       .g = g,
                       .n = tokens / g->is.block_size,
                       .step = step,
                       .drop = drop};

    if (x.n > keys)
        x.n = keys;
    if (!reserve_hits(&x))
        return 0;
    switch ((enum vt_attention)g->is.type) {
    case VT_ATTENTION_SLIDING:
        return find_window(&x);
    case VT_ATTENTION_CHUNKED:
        return find_chunk(&x, tokens);
    case VT_ATTENTION_MAMBA:
        return find_state(&x);
    default:
        return find_whole(&x);
    }
}

/* How far a kind is searched: for a draft head one block more, which is lost again. */
static uint32_t reach(const struct vt_sched *s, const struct slot *r,
                      const struct group *g, uint32_t tokens, bool drop)
{
    uint32_t most = s->rules.eagle_sees_whole
                        ? r->n_tokens / s->groups.unit * s->groups.unit
                        : r->n_tokens - 1;

    if (!drop || g->is.type == VT_ATTENTION_MAMBA)
        return tokens;
    tokens += g->is.block_size;
    return tokens < most ? tokens : most;
}

static void cut_hits(const struct groups *gs, struct kind kind, uint32_t tokens)
{
    for (uint32_t i = kind.first; i < kind.first + kind.n; i++) {
        uint32_t n = group_blocks(&gs->group[i], tokens);

        if (gs->group[i].hit.n > n)
            gs->group[i].hit.n = n;
    }
}

/* Every kind shortens what those before it found, until all agree. */
static uint32_t find_common(struct vt_sched *s, struct slot *r, uint32_t tokens)
{
    const struct groups *gs = &s->groups;
    bool dropped[VT_KV_GROUPS] = {false}, once;
    uint32_t whole[VT_KV_GROUPS], n_whole = 0, longest = 0, now = tokens;

    while (n_whole < gs->n_kinds && gs->group[gs->kind[n_whole].first].whole)
        whole[n_whole++] = UINT32_MAX;
    once = gs->n_kinds == 2 && n_whole > 0;
    do {
        tokens = now;
        for (uint32_t k = 0; k < gs->n_kinds; k++) {
            const struct group *g = &gs->group[gs->kind[k].first];
            bool drop = s->c.use_eagle && !dropped[k];
            uint32_t found;

            if (k < n_whole && whole[k] != UINT32_MAX) {
                now = whole[k] < now ? whole[k] : now;
                continue;
            }
            found =
                find_kind(s, r, gs->kind[k], reach(s, r, g, now, drop), gs->step, drop);
            if (drop)
                dropped[k] = true;
            else if (found < now)
                memset(dropped, 0, sizeof(dropped));
            now = found;
            if (k < n_whole)
                whole[k] = found;
            longest = now > longest ? now : longest;
        }
    } while (now < tokens && !once);
    now = now < tokens ? now : tokens;
    r->junction = longest > now ? longest : 0;
    n_whole = n_whole > 1 && !s->rules.cuts_all_whole ? 1 : n_whole;
    for (uint32_t k = 0; k < n_whole; k++)
        cut_hits(gs, gs->kind[k], now);
    return now;
}

uint32_t kv_find_hit(struct vt_sched *s, struct slot *r)
{
    const struct groups *gs = &s->groups;
    /* Never the whole prompt: its last token must be computed to get a next one. */
    uint32_t most = r->n_tokens - 1;

    r->junction = 0;
    for (uint32_t i = 0; i < gs->n; i++)
        gs->group[i].hit.first = gs->group[i].hit.n = 0;
    if (!s->c.enable_prefix_caching || r->skip_cache)
        return 0;
    if (gs->n == 1)
        return find_kind(s, r, gs->kind[0], most, gs->step, s->c.use_eagle);
    return find_common(s, r, most);
}
