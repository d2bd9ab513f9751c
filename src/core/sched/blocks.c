/* blocks.c - a request's KV blocks in every group: growth, what is given back on the
 * way, release. */
#include "core/sched/sched.h"

/* ---- how many --------------------------------------------------------- */

struct demand {      /* what a request is to have room for */
    uint32_t tokens; /* its own and, beyond them, a draft's */
    uint32_t own;
    uint32_t ready; /* of these: found or given */
    uint32_t start; /* what is computed begins here */
    bool capped;    /* an admission counts windows as far as they can grow */
    bool alone;     /* what was found is somebody else's */
};

/* Whether what is computed leaves a state in the middle. While only prompts' ends are
 * kept, the piece that ends one alone does. */
static bool saves_inside(const struct vt_sched *s, const struct slot *r,
                         const struct group *g, const struct holding *h,
                         const struct demand *d)
{
    uint32_t place = group_blocks(g, d->own); /* from 1: of the last one */

    if (!g->saves || (s->groups.retention == 0 && d->own < prefill_end(r)) ||
        !groups_saves_at(&s->groups, d->start, d->own,
                         groups_state_before(&s->groups, d->own, s->c.use_eagle),
                         g->is.block_size))
        return false;
    return place - 2 >= h->n || h->block[place - 2] == 0;
}

static uint32_t more_blocks(const struct vt_sched *s, const struct slot *r,
                            const struct group *g, struct holding *h,
                            const struct demand *d)
{
    uint32_t have = h->n, want = group_blocks(g, g->aligned ? d->own : d->tokens);

    if (g->aligned) { /* the running state, and one that is saved */
        bool saves = saves_inside(s, r, g, h, d);

        if (!d->capped)
            h->saves = saves;
        if (h->saves) {
            h->saved_at = groups_state_before(&s->groups, d->own, s->c.use_eagle);
            h->saved_place = want - 2;
        }
        have += d->alone ? 0 : g->hit.n;
        return want <= have ? 0 : want == have + 1 ? 1 : 1 + saves;
    }
    if (d->capped && want > g->most)
        want = g->most;
    if (have == 0) { /* it is being admitted */
        have = group_skips(g, d->ready) / g->is.block_size;
        have = have > g->hit.n || d->alone ? have : g->hit.n;
    }
    return want > have ? want - have : 0;
}

/* Free blocks that the demand uses up, those found among them included. */
static uint64_t blocks_needed(const struct vt_sched *s, const struct slot *r,
                              const struct demand *d)
{
    uint64_t n = 0;

    for (uint32_t i = 0; i < s->groups.n; i++)
        n += more_blocks(s, r, &s->groups.group[i], &r->held[i], d) +
             (d->alone ? 0 : s->groups.group[i].hit.n_free);
    return n;
}

static uint32_t slots_wanted(const struct vt_sched *s, uint32_t tokens)
{
    uint32_t n = tokens + s->lookahead;

    return n < s->c.max_model_len ? n : s->c.max_model_len;
}

/* ---- growing ---------------------------------------------------------- */

static bool reserve_places(struct vt_sched *s, struct holding *h, uint32_t n)
{
    if (n <= h->cap || vt_grow(&h->block, &h->cap, n, sizeof(*h->block), NULL) == VT_OK)
        return true;
    s->failed = true;
    return false;
}

/* Places up to n without memory. */
static void skip_up_to(struct holding *h, uint32_t n)
{
    while (h->n < n)
        h->block[h->n++] = 0;
}

static void take_up_to(struct vt_sched *s, struct holding *h, uint32_t n)
{
    while (h->n < n)
        h->block[h->n++] = pool_take(&s->pool);
}

/* The demand was met with: blocks for it, group by group. */
static bool take_blocks(struct vt_sched *s, struct slot *r, const struct demand *d)
{
    uint64_t room = UINT32_MAX;

    for (uint32_t i = 0; i < s->groups.n; i++) {
        const struct group *g = &s->groups.group[i];
        struct holding *h = &r->held[i];
        uint32_t n = group_blocks(g, g->aligned ? d->own : d->tokens);

        if (!reserve_places(s, h, n))
            return false;
        if (g->aligned && n > h->n) {
            h->state = h->n;
            skip_up_to(h, n - 1 - h->saves);
        }
        take_up_to(s, h, n);
        if ((uint64_t)h->n * g->is.block_size < room)
            room = (uint64_t)h->n * g->is.block_size;
    }
    r->room = (uint32_t)room;
    return true;
}

static void give_blocks(struct vt_sched *s, const uint32_t *block, uint32_t n,
                        uint32_t n_keyed)
{
    if (s->rules.frees_to_back)
        pool_give_back(&s->pool, block, n);
    else
        pool_give(&s->pool, block, n, n_keyed);
}

static void set_next_drop(struct vt_sched *s, struct slot *r, uint32_t computed)
{
    r->next_drop = s->groups.aligned ? 0 : UINT32_MAX;
    for (uint32_t i = 0; i < s->groups.n; i++) {
        uint32_t next = group_next_skip(&s->groups.group[i], computed);

        r->next_drop = next < r->next_drop ? next : r->next_drop;
    }
}

/* Gives back what lies behind the windows when so many tokens are computed. Content
 * stays findable until a block is taken again. */
static void drop_behind(struct vt_sched *s, struct slot *r, uint32_t computed)
{
    for (uint32_t i = 0; i < s->groups.n; i++) {
        const struct group *g = &s->groups.group[i];
        struct holding *h = &r->held[i];
        uint32_t end = group_skips(g, computed) / g->is.block_size, first, at;
        bool over_gaps = g->aligned && s->rules.mamba_skips_gaps;

        end = end < h->n ? end : h->n;
        for (first = end; first > h->gone; first--)
            if (h->block[first - 1] == 0 && !over_gaps)
                break;
        give_blocks(s, h->block + first, end - first, 0);
        memset(h->block + first, 0, (end - first) * sizeof(*h->block));
        h->gone = end > h->gone ? end : h->gone;
        at = h->state;
        if (g->aligned && at > 0 && at < group_blocks(g, computed)) {
            give_blocks(s, &h->block[at - 1], 1, 0);
            h->block[at - 1] = 0;
        }
    }
    set_next_drop(s, r, computed);
}

void kv_drop_behind(struct vt_sched *s, struct slot *r)
{
    uint32_t known = r->computed > r->in_flight ? r->computed - r->in_flight : 0;

    if (known >= r->next_drop)
        drop_behind(s, r, known);
}

bool kv_extend(struct vt_sched *s, struct slot *r, uint32_t n_new)
{
    uint32_t end = r->computed + n_new;
    struct demand d = {
        .tokens = slots_wanted(s, end), .own = end, .start = r->computed};

    for (uint32_t i = 0; s->groups.saves && i < s->groups.n; i++)
        r->held[i].saves = false;
    kv_drop_behind(s, r);
    if (d.tokens > r->room) {
        for (uint32_t i = 0; i < s->groups.n; i++)
            s->groups.group[i].hit.n = s->groups.group[i].hit.n_free = 0;
        if (blocks_needed(s, r, &d) > s->pool.n_free || !take_blocks(s, r, &d))
            return false;
    }
    kv_register(s, r, end < r->n_tokens ? end : r->n_tokens);
    return true;
}

/* ---- admission -------------------------------------------------------- */

/* Counts the found blocks that nobody holds. False: one is a state that this very step
 * computes. */
static bool weigh_hits(struct vt_sched *s, uint32_t ready)
{
    for (uint32_t i = 0; i < s->groups.n; i++) {
        struct group *g = &s->groups.group[i];
        struct hit *x = &g->hit;
        uint32_t from = g->aligned ? 0 : group_skips(g, ready) / g->is.block_size;

        x->n_free = 0;
        for (uint32_t k = from > x->first ? from : x->first; k < x->n; k++)
            x->n_free += s->pool.block[x->block[k]].ref == 0;
        if (g->is.type == VT_ATTENTION_MAMBA && x->n > 0 &&
            vt_map_get(&s->groups.fresh_states, s->pool.block[x->block[x->n - 1]].key))
            return false;
    }
    return true;
}

/* What was found becomes the request's, of windows only what they still need. */
static bool hold_hits(struct vt_sched *s, struct slot *r, uint32_t ready)
{
    for (uint32_t i = 0; i < s->groups.n; i++) {
        const struct group *g = &s->groups.group[i];
        struct holding *h = &r->held[i];
        uint32_t skipped = group_skips(g, ready) / g->is.block_size;
        uint32_t first = skipped > g->hit.first ? skipped : g->hit.first;

        if (!reserve_places(s, h, first > g->hit.n ? first : g->hit.n))
            return false;
        if (first >= g->hit.n)
            first = skipped > g->hit.n ? skipped : g->hit.n;
        skip_up_to(h, first);
        for (uint32_t k = first; k < g->hit.n; k++) {
            pool_touch(&s->pool, g->hit.block[k]);
            h->block[h->n++] = g->hit.block[k];
        }
        h->n_seen = h->n;
    }
    return true;
}

/* Even where all groups together have nothing: see cuts_all_whole. */
static bool any_hit(const struct vt_sched *s)
{
    for (uint32_t i = 0; i < s->groups.n; i++)
        if (s->groups.group[i].hit.n > 0)
            return true;
    return false;
}

static bool hold_given(struct vt_sched *s, struct slot *r, uint32_t ready)
{
    for (uint32_t i = 0; i < s->groups.n; i++) {
        uint32_t n = group_blocks(&s->groups.group[i], ready);

        if (!reserve_places(s, &r->held[i], n))
            return false;
        take_up_to(s, &r->held[i], n);
    }
    return true;
}

/* All of a request that goes on from `ready`. */
static struct demand whole_request(const struct vt_sched *s, const struct slot *r,
                                   uint32_t ready)
{
    uint32_t all = r->n_tokens < s->c.max_model_len ? r->n_tokens : s->c.max_model_len;

    return (struct demand){
        .tokens = all, .own = all, .ready = ready, .start = ready, .capped = true};
}

/* What unfinished prompts and loads will still need. */
static uint64_t promised(const struct vt_sched *s)
{
    uint64_t n = 0;

    for (uint32_t i = 0, left = s->n_prefills; i < s->seats.n && left > 0; i++) {
        const struct slot *r = &s->slot[i];
        struct demand d;

        if (r->status == S_FREE || !r->prefills)
            continue;
        d = whole_request(s, r, r->computed);
        d.alone = true;
        n += blocks_needed(s, r, &d);
        left--;
    }
    return n;
}

static bool fits(const struct vt_sched *s, const struct slot *r, const struct demand *d,
                 uint64_t reserved)
{
    uint64_t keep = s->n_running > 0 ? s->watermark_blocks : 0;

    return blocks_needed(s, r, d) + keep + reserved <= s->pool.n_free;
}

/* Whether there is room for what an admission has to look at beyond this step. */
static bool whole_fits(const struct vt_sched *s, const struct slot *r,
                       const struct demand *d)
{
    struct demand whole = whole_request(s, r, d->ready);

    whole.alone = d->alone;
    return !s->c.scheduler_reserve_full_isl || fits(s, r, &whole, 0);
}

bool kv_admit_loaded(struct vt_sched *s, struct slot *r, uint32_t n_new)
{
    uint32_t end = r->computed + n_new;
    struct demand d = {.tokens = slots_wanted(s, end),
                       .own = end,
                       .ready = r->computed,
                       .start = r->computed,
                       .alone = true};

    if (!whole_fits(s, r, &d))
        return false;
    kv_drop_behind(s, r);
    if (!fits(s, r, &d, 0) || !take_blocks(s, r, &d))
        return false;
    kv_register(s, r, end < r->n_tokens ? end : r->n_tokens);
    return true;
}

/* What was found is held, and room is made for the rest. */
static bool hold(struct vt_sched *s, struct slot *r, const struct demand *d,
                 uint32_t given)
{
    if ((d->ready > 0 || any_hit(s)) &&
        (!hold_hits(s, r, d->ready) || (given > 0 && !hold_given(s, r, d->ready))))
        return false;
    if (!take_blocks(s, r, d))
        return false;
    set_next_drop(s, r, d->ready);
    return true;
}

bool kv_admit_load(struct vt_sched *s, struct slot *r, uint32_t hit, uint32_t given)
{
    uint32_t end = hit + given;
    struct demand d = {.tokens = end, .own = end, .ready = end, .start = end};

    if (d.tokens > s->c.max_model_len)
        d.tokens = s->c.max_model_len;
    return weigh_hits(s, end) && whole_fits(s, r, &d) && fits(s, r, &d, promised(s)) &&
           hold(s, r, &d, given);
}

bool kv_admit(struct vt_sched *s, struct slot *r, uint32_t n_new, uint32_t hit,
              uint32_t given)
{
    uint32_t ready = hit + given, end = ready + n_new;
    struct demand d = {
        .tokens = slots_wanted(s, end), .own = end, .ready = ready, .start = ready};

    if (!weigh_hits(s, ready) || !whole_fits(s, r, &d) || !fits(s, r, &d, 0) ||
        !hold(s, r, &d, given))
        return false;
    kv_register(s, r, end < r->n_tokens ? end : r->n_tokens);
    return true;
}

/* ---- the end ---------------------------------------------------------- */

void kv_give(struct vt_sched *s, const uint32_t *block, uint32_t n)
{
    give_blocks(s, block, n, 0);
}

void kv_release(struct vt_sched *s, struct slot *r)
{
    bool late = s->late.on && late_release(s, r);

    for (uint32_t i = 0; i < s->groups.n; i++) {
        struct holding *h = &r->held[i];

        if (!late)
            give_blocks(s, h->block, h->n, s->groups.group[i].whole ? h->n_seen : 0);
        *h = (struct holding){.block = h->block, .cap = h->cap};
    }
    r->room = r->next_cache = 0;
    r->next_drop = UINT32_MAX;
}
