/* jobs.c - transfers that were asked for, and the blocks that must wait for them. */
#include "core/offload/parts.h"

bool off_room(struct offload *o, void *array, size_t *cap, size_t need, size_t cell)
{
    if (vt_grow(array, cap, need, cell, NULL) == VT_OK)
        return true;
    o->failed = true;
    return false;
}

/* ---- jobs ------------------------------------------------------------- */

static uint32_t number_of(const struct offload *o, const struct job *j)
{
    return (uint32_t)(j - o->job);
}

struct job *off_job(struct offload *o, struct off_request *r, bool store)
{
    uint32_t n = o->seats.n, seat;
    uint64_t *place;
    struct job *j;

    if (!off_room(o, &o->job, &o->cap_jobs, (size_t)n + 2, sizeof(*o->job)))
        return NULL;
    place = vt_map_put(&o->by_id, o->next_id);
    if (!place || vt_seats_take(&o->seats, &seat, NULL) != VT_OK) {
        o->failed = true;
        return NULL;
    }
    *place = ++seat; /* from 1 */
    j = &o->job[seat];
    if (seat > n)
        memset(j, 0, sizeof(*j));
    j->is = (struct vt_kv_job){.id = o->next_id++, .tag = r->tag, .store = store};
    j->of = r;
    j->n_nodes = j->next = 0;
    j->watched = false;
    if (r->last_job != 0)
        o->job[r->last_job].next = seat;
    else
        r->first_job = seat;
    r->last_job = seat;
    return j;
}

static void unlink_job(const struct offload *o, struct job *j)
{
    struct off_request *r = j->of;
    uint32_t n = number_of(o, j), before = 0;

    for (uint32_t i = r->first_job; i != n; i = o->job[i].next)
        before = i;
    if (before != 0)
        o->job[before].next = j->next;
    else
        r->first_job = j->next;
    if (r->last_job == n)
        r->last_job = before;
}

/* ---- blocks that stores read ------------------------------------------ */

static void watch_block(struct offload *o, const struct job *j, uint32_t block)
{
    uint32_t i = o->unused_watch;

    if (i != 0) {
        o->unused_watch = o->watch[i].next;
    } else {
        o->n_watches += o->n_watches == 0; /* 0 is none */
        if (!off_room(o, &o->watch, &o->cap_watches, o->n_watches + 1,
                      sizeof(*o->watch)))
            return;
        i = (uint32_t)o->n_watches++;
    }
    o->watch[i] = (struct watch){number_of(o, j), o->watch_of[block]};
    o->watch_of[block] = i;
}

static void unwatch_block(struct offload *o, const struct job *j, uint32_t block)
{
    uint32_t *at = &o->watch_of[block];

    while (*at != 0 && o->watch[*at].job != number_of(o, j))
        at = &o->watch[*at].next;
    if (*at != 0) {
        uint32_t i = *at;

        *at = o->watch[i].next;
        o->watch[i].next = o->unused_watch;
        o->unused_watch = i;
    }
}

static void each_block(struct offload *o, const struct job *j, bool windows,
                       void (*act)(struct offload *, const struct job *, uint32_t))
{
    uint32_t at = 0;

    for (uint32_t g = 0; g < o->n_groups; g++)
        for (uint32_t i = 0; i < j->per_group[g]; i++, at++)
            if ((o->kind[g].window > 0) == windows)
                act(o, j, j->gpu[at]);
}

void off_watch(struct offload *o, const struct job *j, bool windows)
{
    each_block(o, j, windows, watch_block);
}

static void unwatch(struct offload *o, const struct job *j)
{
    each_block(o, j, true, unwatch_block);
    if (j->watched)
        each_block(o, j, false, unwatch_block);
}

void off_flush(struct offload *o, const struct job *j)
{
    for (size_t i = 0; i < o->n_flush; i++)
        if (o->flush[i] == j->is.id)
            return;
    if (off_room(o, &o->flush, &o->cap_flush, o->n_flush + 1, sizeof(*o->flush)))
        o->flush[o->n_flush++] = j->is.id;
}

void off_took(struct offload *o, uint32_t block)
{
    if (block == 0 || off_was_taken(o, block) ||
        !off_room(o, &o->taken, &o->cap_taken, o->n_taken + 1, sizeof(*o->taken)))
        return;
    o->taken_at[block] = o->plan;
    o->taken[o->n_taken++] = block;
}

/* ---- what is done ----------------------------------------------------- */

static void tell_stored(struct offload *o, const struct tier_node *x)
{
    if (o->log_events &&
        off_room(o, &o->event, &o->cap_events, o->n_events + 1, sizeof(*o->event)))
        o->event[o->n_events++] = (struct off_event){
            .key = x->key, .tag = x->tag, .index = x->index, .group = x->group};
}

static void settle(struct offload *o, const struct job *j)
{
    for (uint32_t i = 0; i < j->n_nodes; i++) {
        struct tier_node *x = &o->tier.node[j->node[i]];

        if (j->is.store) {
            tier_written(&o->tier, x);
            tell_stored(o, x);
        } else {
            x->loading = false;
            tier_unuse(&o->tier, x);
        }
    }
}

void off_forget(struct offload *o, struct off_request *r)
{
    if (r->prev)
        r->prev->next = r->next;
    else
        o->known = r->next;
    if (r->next)
        r->next->prev = r->prev;
    r->next = o->unused;
    o->unused = r;
}

/* 0.26 forgets who has ended with the last job of his, before the plan that would
 * store the rest. */
static void forget_early(struct offload *o, struct off_request *r)
{
    size_t n = 0;

    for (size_t i = 0; i < o->n_ended; i++)
        if (o->ended[i] != r)
            o->ended[n++] = o->ended[i];
    o->n_ended = n;
    r->told = true;
}

bool offload_done(struct offload *o, uint64_t id, uint32_t *slot)
{
    uint64_t *place = vt_map_get(&o->by_id, id);
    struct off_request *r;
    struct job *j;

    if (!place)
        return false;
    j = &o->job[*place];
    r = j->of;
    settle(o, j);
    if (j->is.store)
        unwatch(o, j);
    unlink_job(o, j);
    vt_seats_give(&o->seats, number_of(o, j) - 1);
    vt_map_drop(&o->by_id, place);
    *slot = r->slot;
    if (r->first_job == 0 && r->over && !o->rules.offload_hears_ends)
        forget_early(o, r);
    if (r->first_job == 0 && r->told)
        off_forget(o, r);
    return !j->is.store;
}
