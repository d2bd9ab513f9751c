/* schedule.c - what the next step computes, as vLLM decides it. Order matters
 * everywhere here; the recorded runs of the real scheduler in tests/cases hold every
 * bit of it. */
#include "core/sched/sched.h"

/* ---- preemption ------------------------------------------------------- */

static void note_preempted(struct vt_sched *s, struct plan_buf *pb, uint64_t tag)
{
    struct vt_step_plan *p = &pb->plan;

    if (vt_grow(&p->preempted, &pb->cap_preempted, (size_t)p->n_preempted + 1,
                sizeof(tag), NULL) != VT_OK) {
        s->failed = true;
        return;
    }
    p->preempted[p->n_preempted++] = tag;
}

/* What is in flight of a preempted request. Its tokens still count, unless they are
 * thrown away with the cache that they came from: 0.26 then lets as many results go by
 * as tokens were awaited, of which drafts make more than there are. */
static void mark_stale(struct vt_sched *s, struct slot *r, bool drop)
{
    if (s->rules.marks_stale) {
        r->drops_stale = drop || (r->drops_stale && r->stale > 0);
        r->stale = r->in_flight;
        r->placeholders = 0;
    } else if (drop) {
        r->stale = (uint32_t)r->placeholders;
        r->drops_stale = true;
        r->placeholders = 0;
    }
}

/* Back to the front of the queue without its blocks; what it produced is kept and
 * computed again. */
void sched_preempt(struct vt_sched *s, uint32_t slot, bool drop_results)
{
    struct slot *r = &s->slot[slot];

    kv_release(s, r);
    mark_stale(s, r, drop_results);
    r->status = S_PREEMPTED;
    r->computed = 0;
    r->n_spec = 0;
    r->given = 0;
    r->n_preempted++;
    queue_push_front(s, slot);
}

/* The least urgent running request; the first of equals. */
static uint32_t least_urgent(const struct vt_sched *s)
{
    uint32_t worst = s->running[0];

    for (uint32_t i = 1; i < s->n_running; i++) {
        const struct slot *x = &s->slot[s->running[i]], *w = &s->slot[worst];

        if (x->priority > w->priority ||
            (x->priority == w->priority && x->arrival > w->arrival))
            worst = s->running[i];
    }
    return worst;
}

/* A victim that this plan already holds gives its part back. */
static bool plan_drop(struct vt_step_plan *p, uint32_t slot, uint32_t *budget)
{
    for (uint32_t i = 0; i < p->n; i++) {
        if (p->item[i].slot != slot)
            continue;
        *budget += p->item[i].tokens;
        p->n--;
        memmove(&p->item[i], &p->item[i + 1], (p->n - i) * sizeof(*p->item));
        return true;
    }
    return false;
}

/* Frees blocks by preempting one request; *at follows the running list. */
static uint32_t preempt_one(struct vt_sched *s, struct plan_buf *pb, uint32_t *budget,
                            uint32_t *at)
{
    uint32_t victim;

    if (s->c.policy == VT_PRIORITY) {
        bool before, planned;

        victim = least_urgent(s);
        before = sched_stop_running(s, victim) < *at;
        planned = plan_drop(&pb->plan, victim, budget);
        if (s->rules.scan_follows ? before : planned)
            --*at;
    } else {
        victim = s->running[--s->n_running];
    }
    sched_preempt(s, victim, false);
    note_preempted(s, pb, s->slot[victim].tag);
    return victim;
}

/* ---- adapters: so many in one step at most ----------------------------- */

static bool lora_fits(const struct vt_sched *s, const struct slot *r)
{
    if (r->lora == 0 || s->c.max_loras == 0 || s->n_loras < s->c.max_loras)
        return true;
    for (uint32_t i = 0; i < s->n_loras; i++)
        if (s->loras[i] == r->lora)
            return true;
    return false;
}

static void note_lora(struct vt_sched *s, const struct slot *r)
{
    if (r->lora == 0 || s->c.max_loras == 0)
        return;
    for (uint32_t i = 0; i < s->n_loras; i++)
        if (s->loras[i] == r->lora)
            return;
    if (s->n_loras < s->c.max_loras) /* running ones may be more: all count as there */
        s->loras[s->n_loras++] = r->lora;
}

/* ---- schedule: running requests --------------------------------------- */

static struct vt_item *plan_add(struct vt_step_plan *p, const struct slot *r,
                                uint32_t slot, uint32_t tokens)
{
    struct vt_item *it = &p->item[p->n++];

    *it = (struct vt_item){
        .tag = r->tag,
        .slot = slot,
        .tokens = tokens,
        .computed = r->computed,
        .gen = r->gen,
    };
    return it;
}

/* Mamba states are kept at block ends, so that a prompt's pieces have to end there: its
 * k tokens from `start` on, cut. 0: they end before the next block does. */
static uint32_t cut_at_block(const struct vt_sched *s, const struct slot *r,
                             uint32_t start, uint32_t k)
{
    uint32_t bs = s->c.block_size, end = start + k;
    uint32_t whole = prefill_end(r);
    uint32_t spare = s->rules.leaves_last_token && !s->c.use_eagle;
    uint32_t last = place_before(r->n_tokens - spare, bs, s->c.use_eagle);
    uint32_t next = (start / bs + 1) * bs;
    uint32_t stop[3] = {0}, first;
    bool saves =
        s->groups.saves && end >= whole &&
        groups_saves_at(&s->groups, start, end,
                        groups_state_before(&s->groups, whole, s->c.use_eagle), bs);

    if (start >= whole)
        return k;
    if (saves)
        last = 0;
    if (s->rules.mamba_whole_blocks) {
        uint32_t most = s->c.long_prefill_token_threshold;

        most = most > 0 && most < s->budget ? most : s->budget;

        if (end < whole && (end / bs * bs > start || bs <= most))
            end = end / bs * bs;
    } else if (end < last) {
        end = end / bs * bs;
    }
    if (start % bs != 0 && !saves && (s->rules.mamba_whole_blocks || next <= last))
        stop[0] = next;
    stop[1] = last;
    if (start < r->junction && r->junction < end)
        stop[2] = start + (r->junction - start) / bs * bs;
    first = end;
    for (size_t i = 0; i < VT_COUNT(stop); i++)
        if (stop[i] > start && stop[i] < first)
            first = stop[i];
    return first > start ? first - start : 0;
}

/* How many tokens a running request gets; 0: none this time. */
static uint32_t running_share(const struct vt_sched *s, const struct slot *r,
                              uint32_t budget)
{
    int64_t k = (int64_t)r->n_tokens + r->n_spec + r->placeholders - r->computed;
    int64_t space = (int64_t)s->c.max_model_len - r->computed - 1;

    /* Its last token is already being computed (async scheduling). */
    if (r->placeholders > 0 &&
        (int64_t)r->computed + 2 - r->placeholders >= (int64_t)r->max_total)
        return 0;
    if (s->long_prefill > 0 && k > s->long_prefill)
        k = s->long_prefill;
    if (k > budget)
        k = budget;
    if (k > space)
        k = space;
    if (k <= 0)
        return 0;
    return s->groups.aligned ? cut_at_block(s, r, r->computed, (uint32_t)k)
                             : (uint32_t)k;
}

static uint16_t drafts_in(const struct slot *r, uint32_t tokens)
{
    int64_t d = (int64_t)tokens + r->computed - r->n_tokens - r->placeholders;

    if (d <= 0)
        return 0;
    return (uint16_t)(d < r->n_spec ? d : r->n_spec);
}

/* Whether the request's next token needs nothing but a place in the plan. */
static inline bool is_plain_decode(const struct slot *r, uint32_t lookahead,
                                   uint32_t max_model_len)
{
    uint32_t end = r->computed + 1;
    uint32_t left = end + 1 - (uint32_t)r->placeholders; /* of its last step */

    return end == r->n_tokens + (uint32_t)r->placeholders && !r->chunk &&
           r->n_spec == 0 && end < max_model_len && left < r->max_total &&
           end + lookahead <= r->room && end < r->next_cache && end < r->next_drop;
}

/* Plans running requests from `at` on while they are such: of a long run nearly all
 * are. Returns the first that is not. */
static uint32_t plan_plain_decodes(const struct vt_sched *s, struct vt_step_plan *p,
                                   uint32_t at, uint32_t *budget)
{
    uint32_t left = at < s->n_running ? s->n_running - at : 0;
    uint32_t n = left < *budget ? left : *budget;
    uint32_t lookahead = s->lookahead, max_model_len = s->c.max_model_len, i = 0;
    const uint32_t *running = s->running + at;
    struct vt_item *item = p->item + p->n;
    const struct slot *slots = s->slot;

    if (s->groups.aligned || s->adapted)
        return at;
    for (; i < n; i++) {
        const struct slot *r = &slots[running[i]];

        if (!is_plain_decode(r, lookahead, max_model_len))
            break;
        item[i] = (struct vt_item){.tag = r->tag,
                                   .slot = running[i],
                                   .tokens = 1,
                                   .computed = r->computed,
                                   .gen = r->gen};
    }
    p->n += i;
    *budget -= i;
    return at + i;
}

/* Returns whether a running request was in the middle of its prompt. */
static bool schedule_running(struct vt_sched *s, struct plan_buf *pb, bool defer,
                             uint32_t *budget)
{
    struct vt_step_plan *p = &pb->plan;
    bool mid_prompt = false;

    for (uint32_t at = 0;; at++) {
        uint32_t slot, victim = NO_SLOT, k;
        struct slot *r;
        struct vt_item *it;

        at = plan_plain_decodes(s, p, at, budget);
        if (at >= s->n_running || *budget == 0) /* beyond it: see scan_follows */
            break;
        slot = s->running[at];
        r = &s->slot[slot];
        if (defer && r->chunk)
            continue;
        k = running_share(s, r, *budget);
        if (k == 0)
            continue;
        while (!kv_extend(s, r, k) && !s->failed) {
            victim = preempt_one(s, pb, budget, &at);
            if (victim == slot)
                break;
        }
        if (victim == slot || s->failed)
            break;
        it = plan_add(p, r, slot, k);
        mid_prompt |= r->chunk;
        note_lora(s, r);
        *budget -= k;
        if (r->n_spec > 0) {
            it->spec = drafts_in(r, k);
            r->n_spec = 0;
        }
    }
    return mid_prompt;
}

/* ---- schedule: waiting requests --------------------------------------- */

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

struct admission { /* of waiting requests, in one step */
    struct vt_step_plan *plan;
    uint32_t *budget;
    bool defer;      /* prompts wait for a later step */
    bool mid_prompt; /* a running request computes a piece of its prompt, */
    bool decodes;    /* or at least one was planned */
    uint32_t n_out;  /* taken out of the heap while others are looked at */
};

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
    cut = s->groups.aligned ? cut_at_block(s, r, ready, k) : k;
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
    it = plan_add(p, r, slot, k);
    it->origin = r->status == S_WAITING ? VT_NEW : VT_RESUMED;
    if (pad)
        it->spec = (uint16_t)s->c.num_spec_tokens;
    r->status = S_RUNNING;
}

/* Passes over a request that can't be admitted now; the next one, NO_SLOT: none. */
static uint32_t pass_over(struct vt_sched *s, struct admission *a, uint32_t slot)
{
    sched_put_aside(s, slot, true);
    if (!s->waiting.by_priority)
        return queue_after(s, slot);
    if (vt_grow(&s->aside, &s->cap_aside, (size_t)a->n_out + 1, sizeof(*s->aside),
                NULL) != VT_OK) {
        s->failed = true;
        return NO_SLOT;
    }
    queue_remove(s, slot);
    s->aside[a->n_out++] = slot;
    return s->waiting.n > 0 ? queue_first(s) : NO_SLOT;
}

static void schedule_waiting(struct vt_sched *s, struct admission *a)
{
    uint32_t most =
        s->c.max_num_active_seqs > 0 ? s->c.max_num_active_seqs : s->c.max_num_seqs;
    uint32_t slot = s->waiting.n > 0 ? queue_first(s) : NO_SLOT, next;

    for (; slot != NO_SLOT && *a->budget > 0 && s->n_running < most; slot = next) {
        uint32_t hit, ready, k;
        struct slot *r = &s->slot[slot];
        bool pad;

        if (!lora_fits(s, r)) {
            next = pass_over(s, a, slot);
            continue;
        }
        hit = kv_find_hit(s, r);
        if (!s->rules.counts_admissions)
            note_lookup(s, r, hit);
        if (r->n_preempted == 0)
            r->first_cached = hit;
        ready = r->given > hit ? r->given : hit;
        if (a->defer && ready + 1 < r->n_tokens)
            break;
        k = waiting_share(s, r, a, ready, &pad);
        if (k == 0 || !kv_admit(s, r, k, hit, ready - hit))
            break;
        if (s->rules.counts_admissions)
            note_lookup(s, r, hit);
        next = s->waiting.by_priority ? NO_SLOT : queue_after(s, slot);
        admit(s, a->plan, slot, k, ready, pad);
        note_lora(s, r);
        *a->budget -= k;
        if (s->waiting.by_priority && s->waiting.n > 0)
            next = queue_first(s);
    }
    for (uint32_t i = 0; i < a->n_out; i++)
        queue_push(s, s->aside[i]);
}

/* ---- schedule --------------------------------------------------------- */

/* Moves every scheduled request on and tells what kind of work it is. */
static void advance(struct vt_sched *s, struct vt_step_plan *p)
{
    uint32_t n = p->n, decode_tokens = 0, decodes = 0;
    struct slot *slots = s->slot;
    uint64_t ctx = 0;

    for (struct vt_item *it = p->item, *end = it + n; it < end; it++) {
        struct slot *r = &slots[it->slot];
        uint32_t known = r->n_tokens + (uint32_t)r->placeholders;

        it->prefill = it->computed < r->prompt || it->computed + 1 < known;
        it->known = r->n_tokens;
        it->prompt_tokens = r->prompt;
        r->computed += it->tokens;
        r->in_flight += it->tokens;
        r->chunk = r->computed < known;
        it->samples = !r->chunk;
        if (it->samples && s->c.async_scheduling) {
            r->placeholders += 1 + it->spec;
            r->n_spec = s->c.num_spec_tokens;
        }
        if (it->prefill) {
            p->n_prefills++;
            p->prefill_tokens += it->tokens;
        } else {
            decodes++;
            decode_tokens += it->tokens;
            ctx += it->computed;
        }
    }
    p->n_decodes = decodes;
    p->decode_tokens = decode_tokens;
    p->decode_ctx = ctx;
}

static struct plan_buf *next_plan(struct vt_sched *s)
{
    struct plan_buf *pb = &s->plan[s->turn++ & 1];
    struct vt_step_plan *p = &pb->plan;

    p->n = p->n_decodes = p->n_prefills = 0;
    p->decode_tokens = p->prefill_tokens = 0;
    p->decode_ctx = 0;
    p->n_preempted = p->n_finished = 0;
    p->waiting = s->waiting.n;
    return pb;
}

static void hand_over_finished(struct vt_sched *s, struct plan_buf *pb)
{
    struct vt_step_plan *p = &pb->plan;

    if (s->n_finished == 0)
        return;
    if (vt_grow(&p->finished, &pb->cap_finished, s->n_finished, sizeof(*p->finished),
                NULL) != VT_OK) {
        s->failed = true;
        return;
    }
    vt_shrink(&p->finished, &pb->cap_finished, s->n_finished, sizeof(*p->finished));
    memcpy(p->finished, s->finished, s->n_finished * sizeof(*p->finished));
    p->n_finished = (uint32_t)s->n_finished;
    s->n_finished = 0;
}

/* In this step. */
static uint32_t long_prefill(const struct vt_sched *s)
{
    uint32_t n = s->n_running + s->waiting.n, most = s->c.long_prefill_token_threshold;

    if (n <= 1 && s->rules.lone_prompt_uncut)
        return 0;
    if (most > 0 && s->c.long_prefill_token_threshold_adaptive &&
        most < s->c.max_num_batched_tokens / n)
        return s->c.max_num_batched_tokens / n;
    return most;
}

static bool decodes_run(const struct vt_sched *s)
{
    for (uint32_t i = 0; i < s->n_running; i++)
        if (!s->slot[s->running[i]].chunk)
            return true;
    return false;
}

/* Whether this step does, even if it admits nobody. */
static bool looks_at_queue(const struct vt_sched *s)
{
    return s->pause == VT_RUN || (s->pause == VT_PAUSE_NEW && s->rules.looks_in_pause);
}

const struct vt_step_plan *vt_sched_schedule(struct vt_sched *s, bool throttle)
{
    enum { CUT_SLOTS = 4096 }; /* at a step: what follows a crowd takes no time */
    struct plan_buf *pb = next_plan(s);
    struct vt_step_plan *p = &pb->plan;
    uint32_t budget = s->pause == VT_PAUSE_ALL ? 0 : s->budget;
    bool defer = throttle && !s->capacity_bound && decodes_run(s);
    bool mid_prompt;

    s->n_loras = 0;
    s->long_prefill = long_prefill(s);
    if (s->groups.aligned)
        vt_map_clear(&s->groups.fresh_states);
    mid_prompt = schedule_running(s, pb, defer, &budget);
    sched_cut_slots(s, CUT_SLOTS);
    if (p->n_preempted == 0 && s->pause == VT_RUN)
        schedule_waiting(s, &(struct admission){.plan = p,
                                                .budget = &budget,
                                                .defer = defer,
                                                .mid_prompt = mid_prompt,
                                                .decodes = p->n > 0});
    if (p->n_preempted == 0 && looks_at_queue(s) && !defer)
        s->capacity_bound = s->waiting.n > s->n_aside;
    p->kv_usage = pool_usage(&s->pool);
    p->running = s->n_running;
    hand_over_finished(s, pb);
    advance(s, p);
    return s->failed || s->pool.failed ? NULL : p;
}
