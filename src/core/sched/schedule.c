/* schedule.c - what the next step computes, as vLLM 0.26 decides it. Order matters
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

/* Back to the front of the queue without its blocks; what it produced is kept and
 * computed again. */
void sched_preempt(struct vt_sched *s, uint32_t slot)
{
    struct slot *r = &s->slot[slot];

    kv_release(s, r);
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
        victim = least_urgent(s);
        sched_stop_running(s, victim);
        if (plan_drop(&pb->plan, victim, budget))
            --*at;
    } else {
        victim = s->running[--s->n_running];
    }
    sched_preempt(s, victim);
    note_preempted(s, pb, s->slot[victim].tag);
    return victim;
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
    if (s->c.long_prefill_token_threshold > 0 && k > s->c.long_prefill_token_threshold)
        k = s->c.long_prefill_token_threshold;
    if (k > budget)
        k = budget;
    if (k > space)
        k = space;
    return k > 0 ? (uint32_t)k : 0;
}

static uint16_t drafts_in(const struct slot *r, uint32_t tokens)
{
    int64_t d = (int64_t)tokens + r->computed - r->n_tokens - r->placeholders;

    if (d <= 0)
        return 0;
    return (uint16_t)(d < r->n_spec ? d : r->n_spec);
}

/* Returns whether a running request was in the middle of its prompt. */
static bool schedule_running(struct vt_sched *s, struct plan_buf *pb, bool defer,
                             uint32_t *budget)
{
    struct vt_step_plan *p = &pb->plan;
    bool mid_prompt = false;

    for (uint32_t at = 0; at < s->n_running && *budget > 0; at++) {
        uint32_t slot = s->running[at], n_new = 0, victim = NO_SLOT, k;
        struct slot *r = &s->slot[slot];
        struct vt_item *it;

        if (defer && r->chunk)
            continue;
        k = running_share(s, r, *budget);
        if (k == 0)
            continue;
        while (!kv_extend(s, r, k, &n_new) && !s->failed) {
            victim = preempt_one(s, pb, budget, &at);
            if (victim == slot)
                break;
        }
        if (victim == slot || s->failed)
            break;
        it = plan_add(p, r, slot, k);
        it->n_new_blocks = n_new;
        mid_prompt |= r->chunk;
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

/* Tokens for the first waiting request; 0: nobody is admitted any more. `pad` is
 * set when a one-token request is filled up with drafts to keep a decode batch
 * uniform. */
static uint32_t waiting_share(const struct vt_sched *s, const struct slot *r,
                              uint32_t ready, uint32_t budget, bool uniform, bool *pad)
{
    uint32_t k = r->n_tokens - ready;

    *pad = s->c.num_spec_tokens > 0 && k == 1 && uniform;
    if (*pad) {
        k = 1 + s->c.num_spec_tokens;
        if (k > budget || ready + k > s->c.max_model_len)
            return 0;
    }
    if (s->c.long_prefill_token_threshold > 0 && k > s->c.long_prefill_token_threshold)
        k = s->c.long_prefill_token_threshold;
    if (!s->c.enable_chunked_prefill && k > budget)
        return 0;
    return k < budget ? k : budget;
}

static void admit(struct vt_sched *s, struct vt_step_plan *p, uint32_t slot, uint32_t k,
                  uint32_t ready, bool pad)
{
    struct slot *r = &s->slot[slot];
    struct vt_item *it;

    queue_remove(s, slot);
    s->running[s->n_running++] = slot;
    r->computed = ready;
    it = plan_add(p, r, slot, k);
    it->n_new_blocks = r->n_blocks;
    it->origin = r->status == S_WAITING ? VT_NEW : VT_RESUMED;
    if (pad)
        it->spec = (uint16_t)s->c.num_spec_tokens;
    r->status = S_RUNNING;
}

static void schedule_waiting(struct vt_sched *s, struct vt_step_plan *p, bool defer,
                             bool uniform, uint32_t *budget)
{
    while (s->waiting.n > 0 && *budget > 0 && s->n_running < s->c.max_num_seqs) {
        uint32_t slot = queue_first(s), n_hit, hit_tokens, ready, k;
        struct slot *r = &s->slot[slot];
        bool pad;

        n_hit = kv_find_hit(s, r);
        hit_tokens = n_hit * s->c.block_size;
        note_lookup(s, r, hit_tokens);
        if (r->n_preempted == 0)
            r->first_cached = hit_tokens;
        ready = r->given > hit_tokens ? r->given : hit_tokens;
        if (defer && ready + 1 < r->n_tokens)
            break;
        k = waiting_share(s, r, ready, *budget, uniform, &pad);
        if (k == 0 || !kv_admit(s, r, ready - hit_tokens + k, n_hit))
            break;
        admit(s, p, slot, k, ready, pad);
        *budget -= k;
    }
    if (!defer)
        s->capacity_bound = s->waiting.n > 0;
}

/* ---- schedule --------------------------------------------------------- */

/* Moves every scheduled request on and tells what kind of work it is. */
static void advance(struct vt_sched *s, struct vt_step_plan *p)
{
    for (uint32_t i = 0; i < p->n; i++) {
        struct vt_item *it = &p->item[i];
        struct slot *r = &s->slot[it->slot];
        uint32_t known = r->n_tokens + (uint32_t)r->placeholders;

        it->prefill = it->computed < r->prompt || it->computed + 1 < known;
        it->known = r->n_tokens;
        it->prompt_tokens = r->prompt;
        r->computed += it->tokens;
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
            p->n_decodes++;
            p->decode_tokens += it->tokens;
            p->decode_ctx += it->computed;
        }
    }
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

static bool decodes_run(const struct vt_sched *s)
{
    for (uint32_t i = 0; i < s->n_running; i++)
        if (!s->slot[s->running[i]].chunk)
            return true;
    return false;
}

const struct vt_step_plan *vt_sched_schedule(struct vt_sched *s, bool throttle)
{
    enum { CUT_SLOTS = 4096 }; /* at a step: what follows a crowd takes no time */
    struct plan_buf *pb = next_plan(s);
    struct vt_step_plan *p = &pb->plan;
    uint32_t budget = s->pause == VT_PAUSE_ALL ? 0 : s->c.max_num_batched_tokens;
    bool defer = throttle && !s->capacity_bound && decodes_run(s);
    bool mid_prompt = schedule_running(s, pb, defer, &budget);

    sched_cut_slots(s, CUT_SLOTS);
    if (p->n_preempted == 0 && s->pause == VT_RUN)
        schedule_waiting(s, p, defer, p->n > 0 && !mid_prompt, &budget);
    p->kv_usage = pool_usage(&s->pool);
    p->running = s->n_running;
    hand_over_finished(s, pb);
    advance(s, p);
    return s->failed || s->pool.failed ? NULL : p;
}
