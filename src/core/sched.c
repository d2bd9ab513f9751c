/* sched.c - vLLM 0.26's V1 scheduler: what the next step computes, and what its
 * result changes. Order matters everywhere here; the recorded runs of the real
 * scheduler in tests/cases hold every bit of it. */
#include "core/sched.h"

/* ---- life of a scheduler ---------------------------------------------- */

int vt_sched_new(struct vt_sched **out, const struct vt_engine_config *c,
                 struct vt_err *err)
{
    struct vt_sched *s = calloc(1, sizeof(*s));
    int rc = s == NULL ? vt_nomem(err) : VT_OK;

    *out = NULL;
    if (rc == VT_OK) {
        s->c = *c;
        s->lookahead = c->use_eagle ? c->num_spec_tokens : 0;
        s->watermark_blocks = (uint32_t)(c->watermark * c->num_gpu_blocks);
        s->waiting.by_priority = c->policy == VT_PRIORITY;
        s->running = malloc(c->max_num_seqs * sizeof(*s->running));
        rc = s->running == NULL
                 ? vt_nomem(err)
                 : pool_init(&s->pool, c->num_gpu_blocks, 1, c->enable_prefix_caching,
                             c->kv_events, err);
    }
    for (int i = 0; i < 2 && rc == VT_OK; i++)
        rc = vt_grow(&s->plan[i].plan.item, &s->plan[i].cap_items, c->max_num_seqs,
                     sizeof(struct vt_item), err);
    if (rc != VT_OK) {
        vt_sched_free(s);
        return rc;
    }
    *out = s;
    return VT_OK;
}

void vt_sched_free(struct vt_sched *s)
{
    if (s == NULL)
        return;
    for (size_t i = 0; i < s->n_slots; i++) {
        free(s->slot[i].blocks);
        content_free(&s->slot[i].content);
    }
    for (int i = 0; i < 2; i++) {
        free(s->plan[i].plan.item);
        free(s->plan[i].plan.preempted);
        free(s->plan[i].plan.finished);
    }
    pool_free(&s->pool);
    free(s->slot);
    free(s->spare);
    free(s->running);
    free(s->waiting.heap);
    free(s->finished);
    free(s->reset_tags);
    free(s->hit);
    free(s->update.row);
    free(s->update.first);
    free(s);
}

/* ---- requests come and go --------------------------------------------- */

static int spare_slot(struct vt_sched *s, uint32_t *slot, struct vt_err *err)
{
    if (s->n_spare > 0) {
        *slot = s->spare[--s->n_spare];
        return VT_OK;
    }
    if (vt_grow(&s->slot, &s->cap_slots, s->n_slots + 1, sizeof(*s->slot), err) !=
        VT_OK)
        return VT_ENOMEM;
    /* So that giving one back can't fail. */
    if (vt_grow(&s->spare, &s->cap_spare, s->n_slots + 1, sizeof(*s->spare), err) !=
        VT_OK)
        return VT_ENOMEM;
    memset(&s->slot[s->n_slots], 0, sizeof(*s->slot));
    *slot = (uint32_t)s->n_slots++;
    return VT_OK;
}

static uint32_t saturated(uint64_t v)
{
    return v < UINT32_MAX ? (uint32_t)v : UINT32_MAX;
}

/* The first number of tokens at which finish_of() may say yes. */
static uint32_t first_stop(const struct vt_sched *s, const struct slot *r)
{
    uint64_t from =
        r->max_total < s->c.max_model_len ? r->max_total : s->c.max_model_len;

    if (r->eos_at != VT_NO_STOP && (uint64_t)r->prompt + r->eos_at + 1 < from)
        from = (uint64_t)r->prompt + r->eos_at + 1;
    if (r->stop_at != VT_NO_STOP && (uint64_t)r->prompt + r->stop_at + 1 < from)
        from = (uint64_t)r->prompt + r->stop_at + 1;
    return (uint32_t)from;
}

int sched_prepare(struct vt_sched *s, const struct vt_request *r, uint32_t *slot,
                  struct vt_err *err)
{
    struct slot *x, old;
    int rc;

    if (r->prompt_tokens == 0 || r->prompt_tokens > s->c.max_model_len)
        return vt_fail(err, VT_EINPUT, "a prompt of %u tokens, max-model-len is %u",
                       r->prompt_tokens, s->c.max_model_len);
    rc = spare_slot(s, slot, err);
    if (rc != VT_OK)
        return rc;
    x = &s->slot[*slot];
    old = *x;
    *x = (struct slot){
        .n_tokens = r->prompt_tokens,
        .prompt = r->prompt_tokens,
        .next_cache = s->c.block_size,
        .status = S_PENDING,
        .skip_cache = r->skip_cache,
        .gen = old.gen + 1,
        .tag = r->tag,
        .blocks = old.blocks,
        .cap_blocks = old.cap_blocks,
        .max_total = saturated((uint64_t)r->prompt_tokens + r->max_tokens),
        .min_tokens = r->min_tokens,
        .max_tokens = r->max_tokens,
        .eos_at = r->eos_at,
        .stop_at = r->stop_at,
        .priority = r->priority,
        .arrival = r->arrival,
        .content = old.content,
    };
    x->stop_from = first_stop(s, x);
    rc = content_init(&x->content, r, err);
    if (rc == VT_OK) /* so that pushing a preempted request can't fail */
        rc = queue_reserve(&s->waiting, (uint32_t)s->n_slots, err);
    if (rc != VT_OK) {
        x->status = S_FREE;
        s->spare[s->n_spare++] = *slot;
        return rc;
    }
    s->n_live++;
    return VT_OK;
}

void sched_enqueue(struct vt_sched *s, uint32_t slot)
{
    s->slot[slot].status = S_WAITING;
    queue_push(s, slot);
}

int vt_sched_add(struct vt_sched *s, const struct vt_request *r, uint32_t *slot,
                 struct vt_err *err)
{
    int rc = sched_prepare(s, r, slot, err);

    if (rc == VT_OK)
        sched_enqueue(s, *slot);
    return rc;
}

static void note_finished(struct vt_sched *s, uint64_t tag)
{
    if (vt_grow(&s->finished, &s->cap_finished, s->n_finished + 1, sizeof(tag), NULL) !=
        VT_OK) {
        s->failed = true;
        return;
    }
    s->finished[s->n_finished++] = tag;
}

/* The caller has taken it out of the queue or the running list. */
static void end_request(struct vt_sched *s, uint32_t slot)
{
    struct slot *r = &s->slot[slot];

    kv_release(s, r);
    note_finished(s, r->tag);
    r->status = S_FREE;
    s->spare[s->n_spare++] = slot;
    s->n_live--;
}

static void running_remove(struct vt_sched *s, uint32_t slot)
{
    uint32_t i = 0;

    while (s->running[i] != slot)
        i++;
    s->n_running--;
    memmove(&s->running[i], &s->running[i + 1],
            (s->n_running - i) * sizeof(*s->running));
}

void vt_sched_abort(struct vt_sched *s, uint32_t slot)
{
    switch (s->slot[slot].status) {
    case S_RUNNING:
        running_remove(s, slot);
        break;
    case S_WAITING:
    case S_PREEMPTED:
        queue_remove(s, slot);
        break;
    default:
        break;
    }
    end_request(s, slot);
}

bool vt_sched_has_requests(const struct vt_sched *s)
{
    if (s->n_finished > 0)
        return true;
    if (s->pause == VT_PAUSE_ALL)
        return false;
    return s->n_running > 0 || (s->pause == VT_RUN && s->waiting.n > 0);
}

uint32_t vt_sched_unfinished(const struct vt_sched *s)
{
    return s->n_running + s->waiting.n;
}

/* ---- preemption ------------------------------------------------------- */

static void note_preempted(struct vt_sched *s, struct plan_buf *pb, uint64_t tag)
{
    struct vt_plan *p = &pb->plan;

    if (vt_grow(&p->preempted, &pb->cap_preempted, (size_t)p->n_preempted + 1,
                sizeof(tag), NULL) != VT_OK) {
        s->failed = true;
        return;
    }
    p->preempted[p->n_preempted++] = tag;
}

/* Back to the front of the queue without its blocks; what it produced is kept and
 * computed again. */
static void preempt(struct vt_sched *s, uint32_t slot)
{
    struct slot *r = &s->slot[slot];

    kv_release(s, r);
    r->status = S_PREEMPTED;
    r->computed = 0;
    r->n_spec = 0;
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
static bool plan_drop(struct vt_plan *p, uint32_t slot, uint32_t *budget)
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
        running_remove(s, victim);
        if (plan_drop(&pb->plan, victim, budget))
            --*at;
    } else {
        victim = s->running[--s->n_running];
    }
    preempt(s, victim);
    note_preempted(s, pb, s->slot[victim].tag);
    return victim;
}

/* ---- schedule: running requests --------------------------------------- */

static struct vt_item *plan_add(struct vt_plan *p, const struct slot *r, uint32_t slot,
                                uint32_t tokens)
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
    struct vt_plan *p = &pb->plan;
    bool mid_prompt = false;

    for (uint32_t at = 0; at<s->n_running && * budget> 0; at++) {
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
                              uint32_t hit_tokens, uint32_t budget, bool uniform,
                              bool *pad)
{
    uint32_t k = r->n_tokens - hit_tokens;

    *pad = s->c.num_spec_tokens > 0 && k == 1 && uniform;
    if (*pad) {
        k = 1 + s->c.num_spec_tokens;
        if (k > budget || hit_tokens + k > s->c.max_model_len)
            return 0;
    }
    if (s->c.long_prefill_token_threshold > 0 && k > s->c.long_prefill_token_threshold)
        k = s->c.long_prefill_token_threshold;
    if (!s->c.enable_chunked_prefill && k > budget)
        return 0;
    return k < budget ? k : budget;
}

static void admit(struct vt_sched *s, struct vt_plan *p, uint32_t slot, uint32_t k,
                  uint32_t hit_tokens, bool pad)
{
    struct slot *r = &s->slot[slot];
    struct vt_item *it;

    queue_remove(s, slot);
    s->running[s->n_running++] = slot;
    r->computed = hit_tokens;
    it = plan_add(p, r, slot, k);
    it->n_new_blocks = r->n_blocks;
    it->origin = r->status == S_WAITING ? VT_NEW : VT_RESUMED;
    if (pad)
        it->spec = (uint16_t)s->c.num_spec_tokens;
    r->status = S_RUNNING;
}

static void schedule_waiting(struct vt_sched *s, struct vt_plan *p, bool defer,
                             bool uniform, uint32_t *budget)
{
    while (s->waiting.n > 0 && *budget > 0 && s->n_running < s->c.max_num_seqs) {
        uint32_t slot = queue_first(s), n_hit, hit_tokens, k;
        struct slot *r = &s->slot[slot];
        bool pad;

        n_hit = kv_find_hit(s, r);
        hit_tokens = n_hit * s->c.block_size;
        note_lookup(s, r, hit_tokens);
        if (r->n_preempted == 0)
            r->first_cached = hit_tokens;
        if (defer && hit_tokens + 1 < r->n_tokens)
            break;
        k = waiting_share(s, r, hit_tokens, *budget, uniform, &pad);
        if (k == 0 || !kv_admit(s, r, k, n_hit))
            break;
        admit(s, p, slot, k, hit_tokens, pad);
        *budget -= k;
    }
    if (!defer)
        s->capacity_bound = s->waiting.n > 0;
}

/* ---- schedule --------------------------------------------------------- */

/* Moves every scheduled request on and tells what kind of work it is. */
static void advance(struct vt_sched *s, struct vt_plan *p)
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
    struct vt_plan *p = &pb->plan;

    p->n = p->n_decodes = p->n_prefills = 0;
    p->decode_tokens = p->prefill_tokens = 0;
    p->decode_ctx = 0;
    p->n_preempted = p->n_finished = 0;
    p->waiting = s->waiting.n;
    return pb;
}

static void hand_over_finished(struct vt_sched *s, struct plan_buf *pb)
{
    struct vt_plan *p = &pb->plan;

    if (s->n_finished == 0)
        return;
    if (vt_grow(&p->finished, &pb->cap_finished, s->n_finished, sizeof(*p->finished),
                NULL) != VT_OK) {
        s->failed = true;
        return;
    }
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

const struct vt_plan *vt_sched_schedule(struct vt_sched *s, bool throttle)
{
    struct plan_buf *pb = next_plan(s);
    struct vt_plan *p = &pb->plan;
    uint32_t budget = s->pause == VT_PAUSE_ALL ? 0 : s->c.max_num_batched_tokens;
    bool defer = throttle && !s->capacity_bound && decodes_run(s);
    bool mid_prompt = schedule_running(s, pb, defer, &budget);

    if (p->n_preempted == 0 && s->pause == VT_RUN)
        schedule_waiting(s, p, defer, p->n > 0 && !mid_prompt, &budget);
    p->kv_usage = vt_sched_kv_usage(s);
    p->running = s->n_running;
    hand_over_finished(s, pb);
    advance(s, p);
    return s->failed || s->pool.failed ? NULL : p;
}

/* ---- update ----------------------------------------------------------- */

static enum vt_finish finish_of(const struct vt_sched *s, const struct slot *r)
{
    uint32_t n_out = r->n_tokens - r->prompt;

    if (r->n_tokens < r->stop_from || n_out < r->min_tokens)
        return VT_RUNNING_ON;
    if (n_out - 1 == r->eos_at)
        return VT_STOPPED_EOS;
    if (n_out - 1 == r->stop_at)
        return VT_STOPPED_TOKEN;
    if (r->n_tokens >= s->c.max_model_len || n_out >= r->max_tokens)
        return VT_LENGTH;
    return VT_RUNNING_ON;
}

static void note_first(struct vt_sched *s, struct slot *r)
{
    struct vt_update *u = &s->update;
    uint32_t done = r->n_cached * s->c.block_size;

    if (vt_grow(&u->first, &s->cap_first, (size_t)u->n_first + 1, sizeof(*u->first),
                NULL) != VT_OK) {
        s->failed = true;
        return;
    }
    if (done > r->prompt)
        done = r->prompt;
    u->first[u->n_first++] = (struct vt_first){
        .tag = r->tag,
        .prompt_tokens = r->prompt,
        .cached_tokens = r->first_cached,
        .cache_creation_tokens = done > r->first_cached ? done - r->first_cached : 0,
    };
}

/* Drafts that were not accepted take their KV slots back. */
static void reject_drafts(struct slot *r, uint32_t spec, uint32_t sampled)
{
    uint32_t rejected = spec - (sampled - 1);

    if (r->computed > 0)
        r->computed -= rejected;
    if (r->placeholders > 0)
        r->placeholders -= (int32_t)rejected;
}

/* Returns true if the request is over. */
static bool take_result(struct vt_sched *s, const struct vt_item *it, uint32_t sampled)
{
    struct slot *r = &s->slot[it->slot];
    struct vt_row *row = &s->update.row[s->update.n_rows];
    enum vt_finish fin = VT_RUNNING_ON;
    uint32_t before = r->n_tokens, kept;

    if (sampled == 0)
        return false;
    if (it->spec > 0)
        reject_drafts(r, it->spec, sampled);
    for (uint32_t k = 0; k < sampled && fin == VT_RUNNING_ON; k++) {
        r->n_tokens++;
        fin = finish_of(s, r);
    }
    kept = r->n_tokens - before;
    if (s->c.async_scheduling) {
        r->placeholders -= (int32_t)kept;
        if (r->status == S_RUNNING)
            kv_register(s, r, (uint32_t)((int64_t)r->computed - r->placeholders));
    }
    *row = (struct vt_row){
        .tag = r->tag,
        .slot = it->slot,
        .first_index = before - r->prompt,
        .new_tokens = kept,
        .finish = (uint8_t)fin,
        .first = !r->had_output,
    };
    if (!r->had_output)
        note_first(s, r);
    r->had_output = true;
    s->update.n_rows++;
    return fin != VT_RUNNING_ON;
}

static void leave(struct vt_sched *s, uint32_t slot, bool *from_running)
{
    if (s->slot[slot].status == S_RUNNING)
        *from_running = true;
    else
        queue_remove(s, slot);
    end_request(s, slot);
}

static void compact_running(struct vt_sched *s)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < s->n_running; i++)
        if (s->slot[s->running[i]].status == S_RUNNING)
            s->running[n++] = s->running[i];
    s->n_running = n;
}

const struct vt_update *vt_sched_update(struct vt_sched *s, const struct vt_plan *p,
                                        const uint32_t *sampled)
{
    struct vt_update *u = &s->update;
    bool from_running = false;

    u->n_rows = u->n_first = 0;
    if (vt_grow(&u->row, &s->cap_rows, p->n, sizeof(*u->row), NULL) != VT_OK)
        return NULL;
    for (uint32_t i = 0; i < p->n; i++) {
        const struct vt_item *it = &p->item[i];
        struct slot *r = &s->slot[it->slot];
        uint32_t n = sampled != NULL ? sampled[i] : it->samples;

        if (r->gen != it->gen || r->status == S_FREE)
            continue;
        if (take_result(s, it, n))
            leave(s, it->slot, &from_running);
        else if (n > 0 && !s->c.async_scheduling && !r->chunk)
            r->n_spec = s->c.num_spec_tokens;
    }
    if (from_running)
        compact_running(s);
    u->cache = s->cache;
    s->cache = (struct vt_cache_stats){0};
    return s->failed || s->pool.failed ? NULL : u;
}

/* ---- pause and reset -------------------------------------------------- */

void vt_sched_pause(struct vt_sched *s, enum vt_pause p)
{
    s->pause = p;
}

bool vt_sched_reset_cache(struct vt_sched *s, bool do_preempt, const uint64_t **tags,
                          uint32_t *n)
{
    *n = 0;
    if (vt_grow(&s->reset_tags, &s->cap_reset_tags, s->n_running, sizeof(uint64_t),
                NULL) != VT_OK) {
        s->failed = true;
        return false;
    }
    while (do_preempt && s->n_running > 0) {
        uint32_t slot = s->running[--s->n_running];

        preempt(s, slot);
        s->reset_tags[(*n)++] = s->slot[slot].tag;
    }
    *tags = s->reset_tags;
    if (s->pool.n_free != s->pool.n - 1)
        return false;
    pool_clear(&s->pool);
    s->cache.reset = true;
    return true;
}

/* ---- views ------------------------------------------------------------ */

const uint32_t *vt_sched_running(const struct vt_sched *s, uint32_t *n)
{
    *n = s->n_running;
    return s->running;
}

uint32_t vt_sched_waiting(const struct vt_sched *s, uint32_t *slots, uint32_t max)
{
    return queue_list(s, slots, max);
}

const uint32_t *vt_sched_blocks(const struct vt_sched *s, uint32_t slot, uint32_t *n)
{
    *n = s->slot[slot].n_blocks;
    return s->slot[slot].blocks;
}

uint64_t vt_sched_tag(const struct vt_sched *s, uint32_t slot)
{
    return s->slot[slot].tag;
}

uint32_t vt_sched_free_blocks(const struct vt_sched *s)
{
    return s->pool.n_free;
}

double vt_sched_kv_usage(const struct vt_sched *s)
{
    return 1.0 - (double)s->pool.n_free / (double)(s->pool.n - 1);
}

uint32_t vt_sched_common_prefix_blocks(const struct vt_sched *s)
{
    uint32_t holders = 0, n = 0;
    const struct slot *first;

    if (s->n_running == 0 || !s->c.enable_prefix_caching)
        return 0;
    for (size_t i = 0; i < s->n_slots; i++)
        holders += s->slot[i].status != S_FREE && s->slot[i].n_blocks > 0;
    first = &s->slot[s->running[0]];
    while (n < first->n_blocks && s->pool.block[first->blocks[n]].ref == holders)
        n++;
    return n;
}

const struct vt_kv_event *vt_sched_kv_events(const struct vt_sched *s, uint32_t *n)
{
    *n = (uint32_t)s->pool.n_events;
    return s->pool.event;
}

void vt_sched_kv_events_clear(struct vt_sched *s)
{
    s->pool.n_events = 0;
}
