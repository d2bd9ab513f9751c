/* offload.c - a connector's life, requests that come and go, and its events. */
#include "core/offload/parts.h"

/* ---- life ------------------------------------------------------------- */

static void init_kinds(struct offload *o, const struct vt_engine_config *c)
{
    struct vt_kv_group one;
    const struct vt_kv_group *is = layout_groups(c, &one, &o->n_groups);
    bool several = false;
    uint32_t largest = 0;

    for (uint32_t g = 0; g < o->n_groups; g++) {
        struct off_kind *k = &o->kind[g];

        k->is = is[g];
        k->chunk = is[g].block_size * o->c.blocks_per_chunk;
        k->units = k->chunk / o->unit;
        if (is[g].type == VT_ATTENTION_SLIDING)
            k->window = (is[g].window + k->chunk - 1) / k->chunk;
        else if (is[g].type == VT_ATTENTION_MAMBA)
            k->window = 1;
        largest = k->chunk > largest ? k->chunk : largest;
        if (k->window > 0)
            continue;
        several |= o->whole != 0 && o->whole != k->chunk;
        o->whole = k->chunk;
    }
    o->aligned = several ? 0 : o->whole != 0 ? o->whole : largest;
    if (several)
        o->whole = 0;
    for (uint32_t g = 0; g < o->n_groups; g++) {
        struct off_kind *k = &o->kind[g];
        uint32_t per = o->whole / k->chunk;

        if (k->window > 0 && o->whole > k->chunk && k->window < per)
            k->segment = per;
    }
}

/* Groups that need every token first, then windows, the widest first. */
static void sort_groups(struct offload *o)
{
    uint32_t n = 0;

    for (uint32_t g = 0; g < o->n_groups; g++)
        if (o->kind[g].window == 0)
            o->order[n++] = g;
    o->n_windows = o->n_groups - n;
    for (uint32_t g = 0; g < o->n_groups; g++) {
        uint32_t at = n;

        if (o->kind[g].window == 0)
            continue;
        for (; at > o->n_groups - o->n_windows &&
               o->kind[o->order[at - 1]].window < o->kind[g].window;
             at--)
            o->order[at] = o->order[at - 1];
        o->order[at] = g;
        n++;
    }
}

int offload_open(struct offload **out, const struct vt_engine_config *c,
                 const struct pool *pool, struct vt_err *err)
{
    struct offload *o = calloc(1, sizeof(*o));

    *out = NULL;
    if (!o)
        return vt_nomem(err);
    o->c = c->offload;
    o->c.blocks_per_chunk += o->c.blocks_per_chunk == 0;
    o->caching = c->enable_prefix_caching;
    o->log_events = c->kv_events;
    o->pool = pool;
    o->unit = vt_hash_block_size(c);
    o->plan = 1;
    if (o->c.store_threshold >= 2)
        o->tracker.most = o->c.max_tracker_size > 0 ? o->c.max_tracker_size : 64000;
    init_kinds(o, c);
    sort_groups(o);
    o->watch_of = vt_table_alloc(pool->n, sizeof(*o->watch_of));
    o->taken_at = vt_table_alloc(pool->n, sizeof(*o->taken_at));
    if (!o->watch_of || !o->taken_at || tier_init(&o->tier, &o->c, NULL) != VT_OK) {
        offload_close(o);
        return vt_nomem(err);
    }
    *out = o;
    return VT_OK;
}

static void free_requests(struct off_request *r, uint32_t n_groups)
{
    while (r) {
        struct off_request *next = r->next;

        for (uint32_t g = 0; g < n_groups; g++) {
            free(r->part[g].key);
            free(r->part[g].fate);
            free(r->part[g].block);
        }
        free(r);
        r = next;
    }
}

void offload_close(struct offload *o)
{
    if (!o)
        return;
    free_requests(o->known, o->n_groups);
    free_requests(o->unused, o->n_groups);
    for (uint32_t i = 1; i <= o->seats.n; i++) {
        free(o->job[i].gpu);
        free(o->job[i].cpu);
        free(o->job[i].node);
    }
    vt_table_free(o->watch_of, o->pool->n, sizeof(*o->watch_of));
    vt_table_free(o->taken_at, o->pool->n, sizeof(*o->taken_at));
    tier_free(&o->tier);
    tracker_free(&o->tracker);
    vt_seats_free(&o->seats);
    vt_map_free(&o->by_id);
    vt_map_free(&o->described);
    free(o->job);
    free(o->watch);
    free(o->taken);
    free(o->ended);
    free(o->offer);
    free(o->offer_at);
    free(o->load);
    free(o->store);
    free(o->out);
    free(o->flush);
    free(o->evict);
    free(o->event);
    free(o->asked.size);
    free(o->told.size);
    free(o);
}

void offload_follow(struct offload *o, const struct release *rules, uint32_t retention)
{
    o->rules = *rules;
    o->retention = retention;
    o->tier.by_request = rules->offload_by_request;
}

struct vt_host_state offload_state(struct offload *o)
{
    const struct tier *t = &o->tier;
    uint32_t used = t->fresh - t->n_freed - t->n_idle;
    struct vt_host_state h = {.used = (double)used / t->cap,
                              .written = (double)t->n_written / t->cap,
                              .lookups = o->lookups,
                              .skipped = o->skipped,
                              .asked = o->asked.size,
                              .n_asked = (uint32_t)o->asked.n};
    struct off_sizes told = o->asked;

    o->asked = o->told; /* the other one's memory */
    o->asked.n = 0;
    o->told = told;
    o->lookups = o->skipped = 0;
    return h;
}

bool offload_failed(const struct offload *o)
{
    return o->failed || o->tier.failed || o->tracker.failed;
}

/* ---- requests --------------------------------------------------------- */

struct off_request *offload_add(struct offload *o, uint64_t tag, uint32_t slot)
{
    struct off_request *r = o->unused;

    if (r) {
        o->unused = r->next;
        for (uint32_t g = 0; g < o->n_groups; g++) {
            struct off_part *p = &r->part[g];

            *p = (struct off_part){.key = p->key,
                                   .fate = p->fate,
                                   .block = p->block,
                                   .cap_keys = p->cap_keys,
                                   .cap_fates = p->cap_fates,
                                   .cap_blocks = p->cap_blocks};
        }
    } else {
        r = calloc(1, sizeof(*r) + o->n_groups * sizeof(r->part[0]));
        if (!r)
            return NULL;
    }
    r->tag = tag;
    r->slot = slot;
    r->local = r->first_job = r->last_job = 0;
    r->over = r->aborted = r->told = false;
    r->prev = NULL;
    r->next = o->known;
    if (r->next)
        r->next->prev = r;
    o->known = r;
    return r;
}

void offload_preempted(struct offload *o, struct off_request *r)
{
    for (uint32_t i = r->first_job; i != 0; i = o->job[i].next)
        off_flush(o, &o->job[i]);
}

void offload_end(struct offload *o, struct off_request *r, const struct off_view *v,
                 bool aborted)
{
    off_make_keys(o, r, v);
    r->over = true;
    r->aborted = aborted;
    r->last = *v;
    r->last.content = NULL;
    for (uint32_t i = r->first_job; i != 0; i = o->job[i].next) {
        struct job *j = &o->job[i];

        if (j->is.store && !j->watched) {
            off_watch(o, j, false);
            j->watched = true;
        }
    }
    if (off_room(o, &o->ended, &o->cap_ended, o->n_ended + 1, sizeof(r)))
        o->ended[o->n_ended++] = r;
}

/* ---- events ----------------------------------------------------------- */

/* Whether tokens are told with it. A chunk that was given up and stored again before
 * the first is told loses its description with that, as in vLLM. */
static bool is_described(struct offload *o, const struct off_event *x)
{
    uint64_t *place = vt_map_get(&o->described, x->key);

    if (place && x->removed)
        vt_map_drop(&o->described, place);
    return place != NULL;
}

void offload_tell(struct offload *o, struct pool *pool)
{
    for (size_t i = 0; i < o->n_events; i++) {
        const struct off_event *x = &o->event[i];
        struct vt_kv_event e = {
            .kind = x->removed ? VT_KV_REMOVED : VT_KV_STORED,
            .key = pool_key(x->key, x->group),
            .tag = x->tag,
            .index = x->index,
            .group = x->group,
            .joins = x->joins,
            .medium = VT_MEDIUM_CPU,
            .bare = !is_described(o, x),
        };

        pool_tell(pool, e);
    }
    o->n_events = 0;
}
