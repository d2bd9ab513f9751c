/* sched.c - a scheduler's life, requests that come and go, and views of it. */
#include "core/sched/sched.h"

#include <assert.h>

#include "core/rules.h"

/* ---- life of a scheduler ---------------------------------------------- */

bool vt_sched_follow(struct vt_sched *s, uint32_t vllm)
{
    if (s->by_tag.n > 0)
        return false;
    s->c.vllm = vllm;
    s->rules = release_rules(vllm);
    s->rules.frees_to_back &= !s->c.enable_prefix_caching;
    groups_follow(&s->groups, &s->rules, s->c.prefix_cache_retention_interval);
    if (s->off)
        offload_follow(s->off, &s->rules, s->groups.retention);
    return true;
}

int vt_sched_new(struct vt_sched **out, const struct vt_engine_config *c,
                 struct vt_err *err)
{
    struct vt_sched *s = calloc(1, sizeof(*s));

    *out = NULL;
    if (!s)
        return vt_nomem(err);
    s->c = *c;
    s->budget = c->max_num_scheduled_tokens > 0 ? c->max_num_scheduled_tokens
                                                : c->max_num_batched_tokens;
    s->lookahead = c->use_eagle ? c->num_spec_tokens : 0;
    s->watermark_blocks = (uint32_t)(c->watermark * c->num_gpu_blocks);
    s->waiting.by_priority = s->apart.by_priority = c->policy == VT_PRIORITY;
    s->connected = c->offload.num_cpu_blocks > 0 || c->remote.on;
    s->late.on = (c->offload.num_cpu_blocks > 0 || (c->remote.on && c->remote.pulls)) &&
                 c->async_scheduling;
    s->running = malloc(c->max_num_seqs * sizeof(*s->running));
    s->loras = malloc((c->max_loras + 1) * sizeof(*s->loras));
    for (int i = 0; i < 2; i++)
        s->plan[i].plan.item = malloc(c->max_num_seqs * sizeof(struct vt_item));
    if (!s->running || !s->loras || !s->plan[0].plan.item || !s->plan[1].plan.item ||
        groups_init(&s->groups, c, NULL) != VT_OK ||
        pool_init(&s->pool, c->num_gpu_blocks, 1, c->enable_prefix_caching,
                  c->kv_events, NULL) != VT_OK ||
        (s->groups.n > 1 && pool_tell_groups(&s->pool, NULL) != VT_OK) ||
        (c->offload.num_cpu_blocks > 0 &&
         offload_open(&s->off, c, &s->pool, NULL) != VT_OK)) {
        vt_sched_free(s);
        return vt_nomem(err);
    }
    (void)vt_sched_follow(s, c->vllm);
    *out = s;
    return VT_OK;
}

#ifndef NDEBUG
/* A block's count is that of the requests that hold it; the others are free. */
static bool blocks_are_conserved(const struct vt_sched *s)
{
    uint64_t held = 0, refs = 0, n_free = 0;

    if (!s->pool.block)
        return true;
    for (size_t i = 0; i < s->late.n_blocks; i++)
        held += s->late.block[i] != 0;
    for (uint32_t i = 0; i < s->seats.n * s->groups.n; i++) {
        const struct holding *h = s->slot[i / s->groups.n].held;

        for (uint32_t k = 0; h && k < h[i % s->groups.n].n; k++)
            held += h[i % s->groups.n].block[k] != 0;
    }
    for (uint32_t b = 1; b < s->pool.n; b++) {
        refs += s->pool.block[b].ref;
        n_free += s->pool.block[b].ref == 0;
    }
    return held == refs && n_free == s->pool.n_free;
}
#endif

static void free_slot(const struct vt_sched *s, struct slot *r)
{
    for (uint32_t i = 0; r->held && i < s->groups.n; i++)
        free(r->held[i].block);
    free(r->held);
    content_free(&r->content);
}

void vt_sched_free(struct vt_sched *s)
{
    if (!s)
        return;
    assert(blocks_are_conserved(s));
    for (uint32_t i = 0; i < s->seats.n; i++)
        free_slot(s, &s->slot[i]);
    for (int i = 0; i < 2; i++) {
        free(s->plan[i].plan.item);
        free(s->plan[i].plan.preempted);
        free(s->plan[i].plan.finished);
        free(s->plan[i].plan.pull);
    }
    offload_close(s->off);
    pool_free(&s->pool);
    groups_free(&s->groups);
    free(s->slot);
    vt_seats_free(&s->seats);
    vt_map_free(&s->by_tag);
    free(s->running);
    free(s->waiting.heap);
    free(s->apart.heap);
    vt_map_free(&s->kept);
    free(s->settled);
    free(s->moved);
    free(s->late.block);
    free(s->late.part);
    free(s->aside);
    free(s->loras);
    free(s->finished);
    free(s->reset_tags);
    free(s->update.row);
    free(s->update.first);
    free(s);
}

/* ---- requests come and go --------------------------------------------- */

static int take_slot(struct vt_sched *s, uint64_t tag, uint32_t *slot,
                     struct vt_err *err)
{
    uint32_t n = s->seats.n;
    uint64_t *place;

    if (vt_grow(&s->slot, &s->cap_slots, (size_t)n + 1, sizeof(*s->slot), err) ||
        vt_seats_take(&s->seats, slot, err))
        return VT_ENOMEM;
    if (*slot == n)
        memset(&s->slot[n], 0, sizeof(*s->slot));
    assert(!vt_map_get(&s->by_tag, tag)); /* tags are new */
    place = vt_map_put(&s->by_tag, tag);
    if (!place) {
        vt_seats_give(&s->seats, *slot);
        return vt_nomem(err);
    }
    *place = *slot;
    return VT_OK;
}

/* parked: its seat stays taken. */
static void give_slot(struct vt_sched *s, uint32_t slot, bool parked)
{
    struct slot *r = &s->slot[slot];

    r->status = parked ? S_PARKED : S_FREE;
    vt_map_drop(&s->by_tag, vt_map_get(&s->by_tag, r->tag));
    if (!parked)
        vt_seats_give(&s->seats, slot);
}

void sched_unpark(struct vt_sched *s, uint32_t slot)
{
    struct slot *r = &s->slot[slot];

    kv_release(s, r);
    r->status = S_FREE;
    vt_seats_give(&s->seats, slot);
}

void sched_cut_more_slots(struct vt_sched *s, uint32_t most)
{
    uint32_t n = vt_seats_cut(&s->seats, SCHED_SLOTS, most);

    if (n == 0)
        return;
    while (n-- > 0)
        free_slot(s, &s->slot[s->seats.n + n]);
    vt_shrink(&s->slot, &s->cap_slots, s->seats.n, sizeof(*s->slot));
    vt_shrink(&s->finished, &s->cap_finished, s->n_finished, sizeof(*s->finished));
    vt_shrink(&s->waiting.heap, &s->waiting.cap_heap, s->seats.n,
              sizeof(*s->waiting.heap));
    vt_shrink(&s->apart.heap, &s->apart.cap_heap, s->seats.n, sizeof(*s->apart.heap));
    vt_map_fit(&s->by_tag);
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
    uint32_t back = s->c.remote.on && r->apart == VT_PREFILL_ONLY && !r->skip_cache
                        ? remote_backoff(s)
                        : 0;
    uint32_t prompt = r->prompt_tokens > back ? r->prompt_tokens - back : 1;
    uint32_t max_tokens = prompt < r->prompt_tokens ? 1 : r->max_tokens;
    uint64_t total = (uint64_t)prompt + max_tokens;
    struct slot *x, old;
    int rc;

    if (r->prompt_tokens == 0 || r->prompt_tokens > s->c.max_model_len)
        return vt_fail(err, VT_EINPUT, "a prompt of %u tokens, max-model-len is %u",
                       r->prompt_tokens, s->c.max_model_len);
    rc = take_slot(s, r->tag, slot, err);
    if (rc != VT_OK)
        return rc;
    x = &s->slot[*slot];
    old = *x;
    *x = (struct slot){
        .n_tokens = prompt,
        .prompt = prompt,
        .next_drop = UINT32_MAX,
        .status = S_PENDING,
        .skip_cache = r->skip_cache,
        .gen = ++s->next_gen,
        .tag = r->tag,
        .held = old.held,
        .max_total = total < UINT32_MAX ? (uint32_t)total : UINT32_MAX,
        .min_tokens = r->min_tokens,
        .max_tokens = max_tokens,
        .eos_at = r->eos_at,
        .stop_at = r->stop_at,
        .given = r->given_tokens,
        .remote = s->c.remote.on ? r->apart : VT_TOGETHER,
        .unsure = r->unsure,
        .lora = r->lora,
        .priority = r->priority,
        .arrival = r->arrival,
        .id = r->id,
        .content = old.content,
    };
    x->stop_from = first_stop(s, x);
    s->adapted |= r->lora > 0 && s->c.max_loras > 0;
    if (!x->held)
        x->held = calloc(s->groups.n, sizeof(*x->held));
    rc = x->held ? content_init(&x->content, r, err) : vt_nomem(err);
    if (rc == VT_OK) /* so that pushing a preempted request can't fail */
        rc = queue_reserve(&s->waiting, s->seats.n, err);
    if (rc == VT_OK)
        rc = queue_reserve(&s->apart, s->seats.n, err);
    if (rc == VT_OK && s->off && !(x->off = offload_add(s->off, r->tag, *slot)))
        rc = vt_nomem(err);
    if (rc != VT_OK)
        give_slot(s, *slot, false);
    return rc;
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

/* The caller has taken it out of the queue or the running list. */
void sched_end(struct vt_sched *s, uint32_t slot, bool aborted)
{
    struct slot *r = &s->slot[slot];
    bool keeps = remote_keeps(s, r, aborted);
    bool parked = keeps || (r->status == S_LOADING && !r->loaded);

    if (s->connected) {
        sched_set_prefills(s, r, false);
        kv_drop_behind(s, r);
    }
    if (s->off)
        tiers_end(s, r, aborted);
    if (!parked)
        kv_release(s, r);
    else if (!s->off)
        remote_park(s, slot);
    sched_put_aside(s, slot, false);
    if (vt_grow(&s->finished, &s->cap_finished, s->n_finished + 1, sizeof(r->tag),
                NULL) == VT_OK)
        s->finished[s->n_finished++] = r->tag;
    else
        s->failed = true;
    give_slot(s, slot, parked);
}

uint32_t sched_stop_running(struct vt_sched *s, uint32_t slot)
{
    uint32_t i = 0;

    while (s->running[i] != slot)
        i++;
    s->n_running--;
    memmove(&s->running[i], &s->running[i + 1],
            (s->n_running - i) * sizeof(*s->running));
    return i;
}

void vt_sched_abort(struct vt_sched *s, uint32_t slot)
{
    switch (s->slot[slot].status) {
    case S_RUNNING:
        (void)sched_stop_running(s, slot);
        break;
    case S_WAITING:
    case S_PREEMPTED:
    case S_LOADING:
        queue_remove(s, slot);
        break;
    default:
        break;
    }
    sched_end(s, slot, true);
    sched_cut_slots(s, 4); /* as many as have come, in a few rounds */
}

bool vt_sched_has_unfinished(const struct vt_sched *s)
{
    if (s->pause == VT_PAUSE_ALL)
        return false;
    return s->n_running > 0 || (s->pause == VT_RUN && sched_n_waiting(s) > 0);
}

bool vt_sched_has_requests(const struct vt_sched *s)
{
    return s->n_finished > 0 || vt_sched_has_unfinished(s);
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

        sched_preempt(s, slot, true);
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

uint32_t vt_sched_apart(const struct vt_sched *s)
{
    return s->apart.n;
}

const uint32_t *vt_sched_blocks(const struct vt_sched *s, uint32_t slot, uint32_t group,
                                uint32_t *n)
{
    const struct holding *h = &s->slot[slot].held[group];

    *n = h->n;
    return h->block;
}

uint32_t vt_sched_computed(const struct vt_sched *s, uint32_t slot)
{
    return s->slot[slot].computed;
}

uint32_t vt_sched_groups(const struct vt_sched *s)
{
    return s->groups.n;
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
    return pool_usage(&s->pool);
}

uint32_t vt_sched_common_prefix_blocks(const struct vt_sched *s, uint32_t group)
{
    uint32_t holders = 0, n = 0;
    const struct holding *first;

    if (s->n_running == 0 || !s->c.enable_prefix_caching ||
        !s->groups.group[group].whole)
        return 0;
    for (uint32_t i = 0; i < s->seats.n; i++)
        holders += s->slot[i].status != S_FREE && s->slot[i].held[group].n > 0;
    first = &s->slot[s->running[0]].held[group];
    while (n < first->n && s->pool.block[first->block[n]].ref == holders)
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

/* ---- as an engine asks ------------------------------------------------ */

static int ops_open(void **s, const struct vt_engine_config *c, struct vt_err *err)
{
    struct vt_sched *made;
    int rc = vt_sched_new(&made, c, err);

    *s = made;
    return rc;
}

static void ops_close(void *s)
{
    vt_sched_free(s);
}

static int ops_prepare(void *s, const struct vt_request *r, uint32_t *slot,
                       struct vt_err *err)
{
    return sched_prepare(s, r, slot, err);
}

static void ops_enqueue(void *s, uint32_t slot)
{
    sched_enqueue(s, slot);
}

static bool ops_has_requests(const void *s)
{
    return vt_sched_has_requests(s);
}

static const struct vt_step_plan *ops_schedule(void *s, bool throttle)
{
    return vt_sched_schedule(s, throttle);
}

static const struct vt_update *ops_update(void *s, const struct vt_step_plan *p,
                                          const uint32_t *sampled)
{
    return vt_sched_update(s, p, sampled);
}

static struct pool *ops_pool(void *s)
{
    return &((struct vt_sched *)s)->pool;
}

static void ops_count(const void *s, uint32_t *waiting, uint32_t *running)
{
    const struct vt_sched *x = s;

    *waiting = sched_n_waiting(x);
    *running = x->n_running;
}

static bool ops_find(const void *s, uint64_t tag, uint32_t *slot)
{
    const uint64_t *place = vt_map_get(&((const struct vt_sched *)s)->by_tag, tag);

    if (place)
        *slot = (uint32_t)*place;
    return place != NULL;
}

static void ops_abort(void *s, uint32_t slot)
{
    vt_sched_abort(s, slot);
}

const struct sched_ops sched_vllm = {
    .open = ops_open,
    .close = ops_close,
    .prepare = ops_prepare,
    .enqueue = ops_enqueue,
    .has_requests = ops_has_requests,
    .schedule = ops_schedule,
    .update = ops_update,
    .find = ops_find,
    .abort = ops_abort,
    .pool = ops_pool,
    .count = ops_count,
    .least_us = 1e-3,
    .overlaps = true,
    .rests = true,
};
