/* register.c - which of a request's blocks become findable, and when. */
#include "core/sched/sched.h"

/* Places from which a later request can go on after this one's prompt. */
static uint32_t resume_places(const struct vt_sched *s, const struct slot *r,
                              uint32_t at[3])
{
    uint32_t step = s->groups.step, n = 0;

    if (s->rules.eagle_resends && s->c.use_eagle) {
        for (uint32_t back = 0; back < 2; back++)
            at[n++] = place_before(r->prompt - back, step, true);
    } else {
        at[n++] = r->prompt - 1;
    }
    if (r->junction > 0)
        at[n++] = r->junction;
    return n;
}

struct keeping { /* which of a group's blocks are registered */
    bool all;
    uint32_t every;        /* blocks; of so many the last `n` stay; 0: none */
    uint32_t n, shift;     /* and `shift` further on */
    uint32_t end[3], ends; /* those before these places stay as well */
};

static struct keeping what_to_keep(const struct vt_sched *s, const struct slot *r,
                                   const struct group *g)
{
    const struct groups *gs = &s->groups;
    bool dense = gs->retention == VT_RETENTION_DENSE;
    uint32_t bs = g->is.block_size, at[3];
    struct keeping k = {.all = g->whole || g->is.type == VT_ATTENTION_CHUNKED};

    if (k.all)
        return k;
    k.every = (dense ? gs->step : gs->retention) / bs;
    if (g->is.type == VT_ATTENTION_SLIDING) {
        k.shift = s->c.use_eagle;
        k.n = g->span + k.shift;
        k.all = k.every > 0 && k.n >= k.every;
    } else {
        k.n = 1;
        k.all = dense || (gs->retention > 0 && k.every <= 1);
    }
    if (k.all || dense)
        return k;
    k.ends = resume_places(s, r, at);
    for (uint32_t i = 0; i < k.ends; i++)
        k.end[i] = at[i] / gs->step * gs->step / bs + k.shift;
    return k;
}

static bool is_kept(const struct keeping *k, uint32_t j)
{
    if (k->all ||
        (k->every > 0 && j >= k->shift && (j - k->shift) % k->every >= k->every - k->n))
        return true;
    for (uint32_t i = 0; i < k->ends; i++)
        if (j < k->end[i] && j + k->n >= k->end[i])
            return true;
    return false;
}

/* Makes the keys of blocks [first, end) and asks for their memory, so that a large pool
 * costs one wait and not one for each block. */
static bool make_keys(struct vt_sched *s, struct slot *r, uint32_t group,
                      uint32_t first, uint32_t end)
{
    uint32_t units = s->groups.group[group].units;
    uint64_t key;

    for (uint32_t j = first; j < end; j++) {
        if (!content_key(&r->content, (j + 1) * units - 1, s->groups.unit, &key)) {
            s->failed = true;
            return false;
        }
        pool_expect(&s->pool, key, group);
    }
    return true;
}

static void note_state(struct vt_sched *s, uint64_t key, uint32_t group)
{
    if (!vt_map_put(&s->groups.fresh_states, pool_key(key, group)))
        s->failed = true;
}

static bool register_block(struct vt_sched *s, struct slot *r, uint32_t group,
                           uint32_t j, const struct keeping *keep)
{
    const struct group *g = &s->groups.group[group];
    struct holding *h = &r->held[group];
    uint64_t key = r->content.key[(j + 1) * g->units - 1];

    if (h->block[j] == 0 || !is_kept(keep, j))
        return false;
    pool_register(&s->pool, h->block[j], key, group);
    if (g->is.type == VT_ATTENTION_MAMBA)
        note_state(s, key, group);
    if (h->tail > j * g->is.block_size)
        h->tail = 0;
    return true;
}

static void register_up_to(struct vt_sched *s, struct slot *r, uint32_t group,
                           uint32_t end)
{
    const struct group *g = &s->groups.group[group];
    struct holding *h = &r->held[group];
    uint32_t first = h->n_seen;
    struct keeping keep;

    if (!make_keys(s, r, group, first, end))
        return;
    h->n_seen = end;
    if (s->groups.n == 1 && g->whole && !s->pool.log_events) { /* nearly always */
        for (uint32_t j = first; j < end; j++)
            pool_register(&s->pool, h->block[j], r->content.key[j], 0);
        return;
    }
    keep = what_to_keep(s, r, g);
    for (uint32_t j = first; j < end; j++) {
        bool kept = register_block(s, r, group, j, &keep);

        pool_stored(&s->pool,
                    (struct vt_kv_event){
                        .tag = r->tag,
                        .index = j,
                        .group = (uint8_t)group,
                        .key = kept ? r->content.key[(j + 1) * g->units - 1] : 0,
                        .joins = j > first});
    }
}

/* The part of a block up to that token is told of, with its last key. */
static void tell_part(struct vt_sched *s, const struct slot *r, uint32_t group,
                      uint32_t end, uint64_t key)
{
    pool_stored(&s->pool, (struct vt_kv_event){.tag = r->tag,
                                               .index = end / s->groups.unit - 1,
                                               .group = (uint8_t)group,
                                               .key = key,
                                               .part = true});
}

/* A block of several keys that a prompt's last key lies in is registered for it, before
 * it is full. No hit uses it here, but it goes to the pool's back, and subscribers know
 * it by that key, too. */
static void register_tail(struct vt_sched *s, struct slot *r, uint32_t group,
                          uint32_t tokens)
{
    const struct group *g = &s->groups.group[group];
    struct holding *h = &r->held[group];
    uint32_t unit = s->groups.unit, bs = g->is.block_size;
    uint32_t spare = s->rules.leaves_last_token && !s->c.use_eagle;
    uint32_t end = place_before(r->prompt - spare, unit, false);
    uint32_t j = end / bs;
    uint64_t key, known;

    if (!g->whole || bs == unit || end == 0 || end > tokens || end % bs == 0 ||
        j >= h->n)
        return;
    known = s->pool.block[h->block[j]].key;
    if (known != 0 && !s->pool.log_events)
        return;
    if (!content_key(&r->content, end / unit - 1, unit, &key)) {
        s->failed = true;
        return;
    }
    if (known == 0) {
        pool_register(&s->pool, h->block[j], key, group);
        h->tail = end;
    } else if (known == pool_key(key, group) ||
               !pool_add_alias(&s->pool, h->block[j], key)) {
        return;
    }
    tell_part(s, r, group, end, key);
}

/* What a piece leaves in its middle is of that place, whatever its block was registered
 * for; or of none, where nobody could go on from it. */
static void register_saved(struct vt_sched *s, struct slot *r, uint32_t group)
{
    const struct group *g = &s->groups.group[group];
    const struct holding *h = &r->held[group];
    uint32_t at = h->saved_at, b = h->block[h->saved_place], bs = g->is.block_size;
    struct keeping keep = what_to_keep(s, r, g);
    uint64_t key;

    keep.ends = 0;
    if (at != groups_state_before(&s->groups, r->prompt, s->c.use_eagle) &&
        at != r->junction && !(at % bs == 0 && is_kept(&keep, at / bs - 1))) {
        pool_forget(&s->pool, b);
        return;
    }
    if (!content_key(&r->content, at / s->groups.unit - 1, s->groups.unit, &key)) {
        s->failed = true;
        return;
    }
    if (s->pool.block[b].key == pool_key(key, group))
        return;
    pool_register(&s->pool, b, key, group);
    tell_part(s, r, group, at, key);
    note_state(s, key, group);
}

/* A prompt that stands at the last place from which another could go on holds its
 * state: nobody can have it in this step. */
static void mark_state(struct vt_sched *s, struct slot *r, uint32_t group,
                       uint32_t tokens)
{
    const struct group *g = &s->groups.group[group];
    struct holding *h = &r->held[group];
    uint32_t unit = s->groups.unit, bs = g->is.block_size, j;
    uint32_t end = place_before(r->prompt - !s->c.use_eagle, unit, s->c.use_eagle);
    uint64_t key;

    if (tokens == 0 || tokens != end)
        return;
    j = group_blocks(g, tokens) - 1;
    if (j >= h->n || h->block[j] == 0)
        return;
    if (!content_key(&r->content, tokens / unit - 1, unit, &key)) {
        s->failed = true;
        return;
    }
    if (s->pool.block[h->block[j]].key == 0) {
        pool_register(&s->pool, h->block[j], key, group);
        h->tail = tokens % bs != 0 ? tokens : 0;
        tell_part(s, r, group, tokens, key);
    }
    note_state(s, key, group);
}

/* When the group has the next block to register, in tokens of the request. */
static uint32_t next_to_register(const struct groups *gs, uint32_t group,
                                 const struct holding *h)
{
    uint64_t at = ((uint64_t)h->n_seen + 1) * gs->group[group].is.block_size;

    at = (at + gs->step - 1) / gs->step * gs->step;
    return at < UINT32_MAX ? (uint32_t)at : UINT32_MAX;
}

void kv_register_blocks(struct vt_sched *s, struct slot *r, uint32_t n_tokens)
{
    const struct groups *gs = &s->groups;
    uint32_t whole = gs->n > 1 ? n_tokens / gs->step * gs->step : n_tokens;

    r->next_cache = UINT32_MAX;
    if (!s->c.enable_prefix_caching)
        return;
    for (uint32_t i = 0; i < gs->n; i++) {
        const struct group *g = &gs->group[i];
        uint32_t end = whole, next;

        if (gs->n > 1 && s->c.use_eagle && whole > 0)
            end = n_tokens - whole < g->is.block_size ? n_tokens
                                                      : whole + g->is.block_size;
        if (end / g->is.block_size > r->held[i].n_seen)
            register_up_to(s, r, i, end / g->is.block_size);
        if (!g->aligned)
            register_tail(s, r, i, end);
        else if (r->held[i].saves)
            register_saved(s, r, i);
        else if (s->rules.mamba_marks_ends)
            mark_state(s, r, i, end);
        next = next_to_register(gs, i, &r->held[i]);
        r->next_cache = next < r->next_cache ? next : r->next_cache;
    }
    if (gs->always)
        r->next_cache = 0;
}

uint32_t kv_findable(const struct vt_sched *s, const struct slot *r)
{
    uint32_t least = UINT32_MAX;

    for (uint32_t i = 0; i < s->groups.n && s->c.enable_prefix_caching; i++) {
        const struct holding *h = &r->held[i];
        uint32_t bs = s->groups.group[i].is.block_size, n = h->n, tokens;

        while (n > 0 && s->pool.block[h->block[n - 1]].key == 0)
            n--;
        tokens = n > 0 && h->tail > (n - 1) * bs                      ? h->tail
                 : h->saved_at > 0 && n == (size_t)h->saved_place + 1 ? h->saved_at
                                                                      : n * bs;
        least = tokens < least ? tokens : least;
    }
    return s->c.enable_prefix_caching ? least : 0;
}
