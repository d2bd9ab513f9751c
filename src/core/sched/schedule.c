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
    sched_set_prefills(s, r, false);
    if (s->off)
        offload_preempted(s->off, r->off);
    mark_stale(s, r, drop_results);
    r->status = S_PREEMPTED;
    r->computed = 0;
    r->n_spec = 0;
    r->given = 0;
    r->n_preempted++;
    queue_push_front(s, slot, false);
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

/* Whether its blocks would come back too late to help. */
static bool is_held_up(const struct vt_sched *s, uint32_t slot)
{
    return s->late.on && s->rules.waits_for_blocks &&
           s->slot[slot].last_seq > s->late.done;
}

/* Frees blocks by preempting one request; *at follows the running list. NO_SLOT: that
 * would free none now. */
static uint32_t preempt_one(struct vt_sched *s, struct plan_buf *pb, uint32_t *budget,
                            uint32_t *at)
{
    bool by_priority = s->c.policy == VT_PRIORITY;
    uint32_t victim = by_priority ? least_urgent(s) : s->running[s->n_running - 1];

    if (is_held_up(s, victim))
        return NO_SLOT;
    if (by_priority) {
        bool before = sched_stop_running(s, victim) < *at;
        bool planned = plan_drop(&pb->plan, victim, budget);

        if (s->rules.scan_follows ? before : planned)
            --*at;
    } else {
        s->n_running--;
    }
    sched_preempt(s, victim, false);
    note_preempted(s, pb, s->slot[victim].tag);
    return victim;
}

void sched_note_lora(struct vt_sched *s, const struct slot *r)
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

struct vt_item *sched_plan_add(struct vt_step_plan *p, const struct slot *r,
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

uint32_t sched_cut_at_block(const struct vt_sched *s, const struct slot *r,
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
    return s->groups.aligned ? sched_cut_at_block(s, r, r->computed, (uint32_t)k)
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
        uint32_t slot, k;
        bool fits;
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
        while (!(fits = kv_extend(s, r, k)) && !s->failed) {
            uint32_t victim = preempt_one(s, pb, budget, &at);

            if (victim == slot || victim == NO_SLOT)
                break;
        }
        if (!fits)
            break;
        it = sched_plan_add(p, r, slot, k);
        mid_prompt |= r->chunk;
        sched_note_lora(s, r);
        *budget -= k;
        if (r->n_spec > 0) {
            it->spec = drafts_in(r, k);
            r->n_spec = 0;
        }
    }
    return mid_prompt;
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
    p->n_preempted = p->n_finished = p->n_pulls = 0;
    p->waiting = sched_n_waiting(s);
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
    uint32_t n = s->n_running + sched_n_waiting(s);
    uint32_t most = s->c.long_prefill_token_threshold;

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
        sched_admit_waiting(s, &(struct admission){.plan = p,
                                                   .budget = &budget,
                                                   .defer = defer,
                                                   .mid_prompt = mid_prompt,
                                                   .decodes = p->n > 0});
    if (p->n_preempted == 0 && looks_at_queue(s) && !defer)
        s->capacity_bound = sched_n_waiting(s) > s->n_aside;
    p->kv_usage = pool_usage(&s->pool);
    p->running = s->n_running;
    hand_over_finished(s, pb);
    advance(s, p);
    if (s->connected)
        late_plan(s, p);
    if (s->off)
        tiers_plan(s, p);
    return s->failed || s->pool.failed ? NULL : p;
}
