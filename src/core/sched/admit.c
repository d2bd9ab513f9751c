/* admit.c - which waiting requests a step takes up. */
#include "core/sched/sched.h"

static bool lora_fits(const struct vt_sched *s, const struct slot *r)
{
    if (r->lora == 0 || s->c.max_loras == 0 || s->n_loras < s->c.max_loras)
        return true;
    for (uint32_t i = 0; i < s->n_loras; i++)
        if (s->loras[i] == r->lora)
            return true;
    return false;
}

static void note_lookup(struct vt_sched *s, struct slot *r, uint32_t hit_tokens)
{
    if (!s->c.enable_prefix_caching || r->skip_cache)
        return;
    if (r->n_preempted > 0) {
        s->cache.preempted_requests++;
        s->cache.preempted_queries += r->n_tokens;
        s->cache.preempted_hits += hit_tokens;
    } else {
        s->cache.requests++;
        s->cache.queries += r->n_tokens;
        s->cache.hits += hit_tokens;
    }
}

/* Whether a request that lacks one token is filled up with drafts, to keep a batch of
 * decodes uniform. */
static bool is_padded(const struct vt_sched *s, const struct admission *a,
                      uint32_t ready)
{
    if (s->c.num_spec_tokens == 0 || a->mid_prompt ||
        !(a->decodes || (s->rules.pads_after_hits && ready > 0)))
        return false;
    return !s->rules.pads_if_room ||
           (uint64_t)ready + s->c.num_spec_tokens + 2 <= s->c.max_model_len;
}

/* Tokens for the first waiting request; 0: nobody is admitted any more. */
static uint32_t waiting_share(const struct vt_sched *s, const struct slot *r,
                              const struct admission *a, uint32_t ready, bool *pad)
{
    uint32_t k = r->n_tokens - ready, budget = *a->budget, cut;

    *pad = k == 1 && is_padded(s, a, ready);
    if (*pad) {
        k = 1 + s->c.num_spec_tokens;
        if (k > budget || (!s->rules.pads_if_room && ready + k > s->c.max_model_len))
            return 0;
    }
    if (s->long_prefill > 0 && k > s->long_prefill)
        k = s->long_prefill;
    if (!s->c.enable_chunked_prefill && k > budget)
        return 0;
    k = k < budget ? k : budget;
    cut = s->groups.aligned ? sched_cut_at_block(s, r, ready, k) : k;
    if (cut < k && s->rules.pads_if_room)
        *pad = false;
    return cut;
}

static void admit(struct vt_sched *s, struct vt_step_plan *p, uint32_t slot, uint32_t k,
                  uint32_t ready, bool pad)
{
    struct slot *r = &s->slot[slot];
    struct vt_item *it;

    queue_remove(s, slot);
    sched_put_aside(s, slot, false);
    s->running[s->n_running++] = slot;
    r->computed = ready;
    if (s->connected && ready + k < r->n_tokens)
        sched_set_prefills(s, r, true);
    it = sched_plan_add(p, r, slot, k);
    it->origin = r->status == S_WAITING ? VT_NEW : VT_RESUMED;
    if (pad)
        it->spec = (uint16_t)s->c.num_spec_tokens;
    r->status = S_RUNNING;
}

/* Passes over a request that can't be admitted now; the next one is looked at. */
static void pass_over(struct vt_sched *s, struct admission *a, uint32_t slot)
{
    sched_put_aside(s, slot, true);
    queue_remove(s, slot);
    if (vt_grow(&s->aside, &s->cap_aside, (size_t)a->n_out + 1, sizeof(*s->aside),
                NULL) == VT_OK)
        s->aside[a->n_out++] = slot;
    else
        s->failed = true;
}

/* They come back in the order in which they were looked at: before all others, or,
 * where these are waiting like them, only if they hold blocks. */
static void put_back(struct vt_sched *s, const struct admission *a)
{
    for (uint32_t i = a->n_out; i-- > 0;) {
        const struct slot *r = &s->slot[s->aside[i]];
        bool holds = r->computed > 0 || r->status == S_LOADING;

        queue_push_front(s, s->aside[i], holds || !s->rules.aside_is_waiting);
    }
}

/* What it loaded is there: it can be found, and the rest is to be computed, the last
 * token in any case. */
static void take_up_loaded(struct vt_sched *s, struct slot *r)
{
    r->loaded = false;
    if (r->computed == 0) /* nothing came: there may be hits by now */
        kv_release(s, r);
    else
        kv_register(s, r, r->computed);
    if (r->computed == r->n_tokens)
        r->computed--;
    r->status = r->n_preempted > 0 ? S_PREEMPTED : S_WAITING;
}

struct look {               /* at one waiting request */
    uint32_t hit, external; /* tokens that are found here, and behind them there */
    uint32_t ready;
    bool fresh; /* it holds no blocks yet */
};

/* False: it is to be passed over. */
static bool look_up(struct vt_sched *s, struct slot *r, struct look *l)
{
    bool wait = false;

    *l = (struct look){.fresh = r->computed == 0, .ready = r->computed};
    if (!l->fresh)
        return true;
    l->hit = kv_find_hit(s, r);
    if (!s->rules.counts_admissions)
        note_lookup(s, r, l->hit);
    if (s->off && r->given == 0) {
        l->external = tiers_match(s, r, l->hit, &wait);
        if (wait)
            return false;
    }
    if (r->remote == VT_DECODE_ONLY)
        l->external = remote_match(s, r, l->hit);
    if (r->n_preempted == 0) {
        r->first_cached = l->hit + l->external;
        r->first_external = l->external;
    }
    r->fetches = l->external > 0;
    l->ready = l->hit + l->external;
    if (r->given > l->ready)
        l->ready = r->given;
    return true;
}

static void note_external(struct vt_sched *s, const struct slot *r,
                          const struct look *l)
{
    uint32_t asked = r->n_tokens - l->hit;

    if (asked == 0)
        return;
    if (r->n_preempted > 0) {
        s->external.preempted_requests++;
        s->external.preempted_queries += asked;
        s->external.preempted_hits += l->external;
    } else {
        s->external.requests++;
        s->external.queries += asked;
        s->external.hits += l->external;
    }
}

static bool take_blocks(struct vt_sched *s, struct slot *r, const struct look *l,
                        uint32_t k)
{
    bool ok = l->external > 0 ? kv_admit_load(s, r, l->hit, l->external)
              : l->fresh      ? kv_admit(s, r, k, l->hit, l->ready - l->hit)
                              : kv_admit_loaded(s, r, k);

    if (!ok || !l->fresh)
        return ok;
    if (s->rules.counts_admissions)
        note_lookup(s, r, l->hit);
    if (s->connected)
        note_external(s, r, l);
    return true;
}

/* It waits for its load, holding the blocks. */
static void begin_load(struct vt_sched *s, struct admission *a, uint32_t slot,
                       const struct look *l)
{
    struct slot *r = &s->slot[slot];

    if (s->off)
        tiers_load(s, r, l->external);
    r->status = S_LOADING;
    r->computed = l->ready;
    if (r->remote == VT_DECODE_ONLY)
        remote_pull(s, a->plan, r);
    sched_set_prefills(s, r, true);
    pass_over(s, a, slot);
}

void sched_admit_waiting(struct vt_sched *s, struct admission *a)
{
    uint32_t most =
        s->c.max_num_active_seqs > 0 ? s->c.max_num_active_seqs : s->c.max_num_seqs;
    uint32_t slot;

    while (*a->budget > 0 && s->n_running < most && !s->failed &&
           (slot = queue_first(s)) != NO_SLOT) {
        struct slot *r = &s->slot[slot];
        struct look l;
        uint32_t k = 0;
        bool pad = false;

        if (!lora_fits(s, r) || (r->status == S_LOADING && !r->loaded)) {
            pass_over(s, a, slot);
            continue;
        }
        if (r->status == S_LOADING)
            take_up_loaded(s, r);
        if (!look_up(s, r, &l)) {
            pass_over(s, a, slot);
            continue;
        }
        if (l.external == 0) {
            if (a->defer && l.ready + 1 < r->n_tokens)
                break;
            k = waiting_share(s, r, a, l.ready, &pad);
            if (k == 0)
                break;
        }
        if (!take_blocks(s, r, &l, k))
            break;
        if (l.external > 0) {
            begin_load(s, a, slot, &l);
            continue;
        }
        if (r->remote == VT_DECODE_ONLY)
            remote_pull(s, a->plan, r);
        admit(s, a->plan, slot, k, l.ready, pad);
        sched_note_lora(s, r);
        *a->budget -= k;
    }
    put_back(s, a);
}
