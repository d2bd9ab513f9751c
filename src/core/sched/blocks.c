/* blocks.c - a request's KV blocks: prefix hits, growth, registration, release. */
#include "core/sched/sched.h"

uint32_t kv_find_hit(struct vt_sched *s, struct slot *r)
{
    uint32_t bs = s->c.block_size, n = 0, max = (r->n_tokens - 1) / bs;
    uint64_t key;

    if (!s->c.enable_prefix_caching || r->skip_cache)
        return 0;
    /* Never the whole prompt: its last token must be computed to get a next one. */
    for (; n < max; n++) {
        uint32_t b;

        if (!content_key(&r->content, n, bs, &key) ||
            vt_grow(&s->hit, &s->cap_hit, n + 1, sizeof(*s->hit), NULL) != VT_OK) {
            s->failed = true;
            return 0;
        }
        b = pool_lookup(&s->pool, key);
        if (b == 0)
            break;
        s->hit[n] = b;
    }
    /* EAGLE's draft head needs the hidden states of the last matched block. */
    if (s->c.use_eagle && n > 0)
        n--;
    return n;
}

static bool reserve_blocks(struct vt_sched *s, struct slot *r, uint32_t n)
{
    if (vt_grow(&r->blocks, &r->cap_blocks, n, sizeof(*r->blocks), NULL) == VT_OK)
        return true;
    s->failed = true;
    return false;
}

static void set_blocks(const struct vt_sched *s, struct slot *r, uint32_t n)
{
    r->n_blocks = n;
    r->room = n * s->c.block_size;
}

static void set_cached(const struct vt_sched *s, struct slot *r, uint32_t n)
{
    r->n_cached = n;
    r->next_cache = (n + 1) * s->c.block_size;
}

static uint32_t slots_wanted(const struct vt_sched *s, uint32_t tokens)
{
    uint32_t n = tokens + s->lookahead;

    return n < s->c.max_model_len ? n : s->c.max_model_len;
}

static void take_up_to(struct vt_sched *s, struct slot *r, uint32_t n)
{
    for (uint32_t i = r->n_blocks; i < n; i++)
        r->blocks[i] = pool_take(&s->pool);
    set_blocks(s, r, n);
}

/* Makes the keys of blocks [first, full) and asks for their memory, so that a large
 * pool costs one wait and not one for each block. */
static bool make_keys(struct vt_sched *s, struct slot *r, uint32_t first, uint32_t full)
{
    uint64_t key;

    for (uint32_t j = first; j < full; j++) {
        if (!content_key(&r->content, j, s->c.block_size, &key)) {
            s->failed = true;
            return false;
        }
        pool_expect(&s->pool, key);
    }
    return true;
}

void kv_register_blocks(struct vt_sched *s, struct slot *r, uint32_t n_tokens)
{
    uint32_t first = r->n_cached, full;

    if (!s->c.enable_prefix_caching)
        return;
    full = n_tokens / s->c.block_size;
    if (!make_keys(s, r, first, full))
        return;
    for (uint32_t j = first; j < full; j++) {
        pool_register(&s->pool, r->blocks[j], r->content.key[j]);
        pool_stored(&s->pool, r->tag, j, r->content.key[j], j > first);
    }
    set_cached(s, r, full);
}

bool kv_extend(struct vt_sched *s, struct slot *r, uint32_t n_new, uint32_t *n_blocks)
{
    uint32_t end = r->computed + n_new, want = slots_wanted(s, end), old = r->n_blocks;

    if (want > r->room) {
        uint32_t n = blocks_for(s, want);

        if (n - old > s->pool.n_free || !reserve_blocks(s, r, n))
            return false;
        take_up_to(s, r, n);
    }
    *n_blocks = r->n_blocks - old;
    kv_register(s, r, end < r->n_tokens ? end : r->n_tokens);
    return true;
}

/* Free blocks that holding `tokens` would use up, the hits among them included. */
static uint64_t blocks_needed(const struct vt_sched *s, uint32_t tokens, uint32_t n_hit,
                              uint32_t n_hit_free)
{
    uint32_t n = blocks_for(s, tokens);

    return (n > n_hit ? n - n_hit : 0) + n_hit_free;
}

bool kv_admit(struct vt_sched *s, struct slot *r, uint32_t n_new, uint32_t n_hit)
{
    uint32_t bs = s->c.block_size, end = n_hit * bs + n_new, n_hit_free = 0, want, n;
    uint64_t keep = s->n_running > 0 ? s->watermark_blocks : 0;
    uint32_t whole =
        r->n_tokens < s->c.max_model_len ? r->n_tokens : s->c.max_model_len;

    for (uint32_t i = 0; i < n_hit; i++)
        n_hit_free += s->pool.block[s->hit[i]].ref == 0;
    if (s->c.scheduler_reserve_full_isl &&
        blocks_needed(s, whole, n_hit, n_hit_free) + keep > s->pool.n_free)
        return false;
    want = slots_wanted(s, end);
    if (blocks_needed(s, want, n_hit, n_hit_free) + keep > s->pool.n_free)
        return false;
    n = blocks_for(s, want);
    if (!reserve_blocks(s, r, n > n_hit ? n : n_hit))
        return false;
    for (uint32_t i = 0; i < n_hit; i++) {
        pool_touch(&s->pool, s->hit[i]);
        r->blocks[i] = s->hit[i];
    }
    set_blocks(s, r, n_hit);
    set_cached(s, r, n_hit);
    take_up_to(s, r, n > n_hit ? n : n_hit);
    kv_register(s, r, end < r->n_tokens ? end : r->n_tokens);
    return true;
}

void kv_release(struct vt_sched *s, struct slot *r)
{
    pool_give(&s->pool, r->blocks, r->n_blocks, r->n_cached);
    set_blocks(s, r, 0);
    set_cached(s, r, 0);
}
