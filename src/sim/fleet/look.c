/* look.c - what the router sees of engines, late as it may be, and its choice.
 *
 * No request asks every engine: who may have its prompt is looked up, and who serves is
 * listed anew only when that has changed. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "sim/fleet/parts.h"

/* ---- life --------------------------------------------------------------- */

int look_open(struct fleet *f, struct vt_err *err)
{
    f->seen_ns = -1;
    f->seen = calloc(f->n, sizeof(*f->seen));
    f->hit = calloc(f->n, sizeof(*f->hit));
    f->hit_at = calloc(f->n, sizeof(*f->hit_at));
    if (!f->seen || !f->hit || !f->hit_at)
        return vt_nomem(err);
    for (unsigned pool = 0; pool < N_POOLS; pool++) {
        struct choices *c = &f->choices[pool];

        c->candidate = calloc(f->n, sizeof(*c->candidate));
        c->place = calloc(f->n, sizeof(*c->place));
        if (!c->candidate || !c->place)
            return vt_nomem(err);
    }
    f->indexed = true;
    return VT_OK;
}

void look_close(struct fleet *f)
{
    for (uint32_t i = 0; f->inst && i < f->n; i++)
        key_view_free(&f->inst[i].view);
    for (unsigned pool = 0; pool < N_POOLS; pool++) {
        free(f->choices[pool].candidate);
        free(f->choices[pool].place);
    }
    holders_free(&f->holders);
    free(f->seen);
    free(f->hit);
    free(f->hit_at);
}

void look_start(struct fleet *f, uint32_t i)
{
    struct key_view *v = &f->inst[i].view;

    key_view_clear(v);
    holders_forget(&f->holders, i);
    v->units = vt_engine_key_units(f->inst[i].engine, &v->group);
    if (v->units != f->inst[0].view.units)
        f->indexed = false; /* what is one's first block is not the other's */
    f->seen[i] = (struct seen){0};
    look_change(f);
}

void look_change(struct fleet *f)
{
    f->look++;
    for (unsigned pool = 0; pool < N_POOLS; pool++)
        f->choices[pool].known = false;
}

/* ---- queues ------------------------------------------------------------- */

bool look_is_due(const struct fleet *f, vt_ns now)
{
    return (router_wants(f->router) & WANT_STATE) != 0 &&
           (f->seen_ns < 0 || now - f->seen_ns >= f->f->staleness_ns);
}

static void see_engines(struct fleet *f, vt_ns now)
{
    f->seen_ns = now;
    f->look++;
    for (uint32_t i = 0; i < f->n; i++) {
        struct vt_engine_state x;

        if (!f->inst[i].engine)
            continue;
        x = vt_engine_state(f->inst[i].engine, now);
        f->seen[i].waiting = x.waiting;
        f->seen[i].running = x.running;
        f->seen[i].kv_usage = x.kv_usage;
    }
}

/* ---- caches ------------------------------------------------------------- */

int look_tell(struct instance *x, vt_ns at, struct vt_err *err)
{
    uint32_t n;
    const struct vt_kv_event *e = vt_engine_kv_events(x->engine, &n);
    bool good = n == 0 || key_view_tell(&x->view, at, e, n);

    vt_engine_kv_events_clear(x->engine);
    return good ? VT_OK : vt_nomem(err);
}

int look_hear(struct fleet *f, uint32_t i, struct vt_err *err)
{
    struct key_view *v = &f->inst[i].view;

    return v->n_firsts == 0 || holders_hear(&f->holders, v, i) ? VT_OK : vt_nomem(err);
}

/* As vt_engine_cached_blocks(), of some time ago. */
static uint32_t cached_before(const struct instance *x, const struct ask *a)
{
    uint32_t units = x->view.units, n = 0;

    while (n + units <= a->n_keys) {
        uint64_t key = a->key[n + units - 1];

        if (!key_view_had(&x->view, key, vt_engine_blocks_of(x->engine, key)))
            break;
        n += units;
    }
    return n;
}

/* How many leading blocks of the prompt it has, as far as the router knows. */
static int ask_cache(struct fleet *f, const struct ask *a, uint32_t i, vt_ns now,
                     uint32_t *cached, struct vt_err *err)
{
    struct instance *x = &f->inst[i];

    if (f->f->staleness_ns == 0) {
        *cached = vt_engine_cached_blocks(x->engine, a->key, a->n_keys);
        return VT_OK;
    }
    if (!key_view_see(&x->view, now))
        return vt_nomem(err);
    *cached = cached_before(x, a);
    return VT_OK;
}

static int see_cache(struct fleet *f, struct ask *a, uint32_t i, vt_ns now,
                     struct vt_err *err)
{
    uint32_t *cached = &f->seen[i].cached;
    int rc = ask_cache(f, a, i, now, cached, err);

    if (rc == VT_OK && *cached > 0) {
        f->hit_at[f->n_hits] = i;
        f->hit[f->n_hits++] = a->place[i];
    }
    return rc;
}

#ifndef NDEBUG
/* Nobody has a block whom the index did not name; asked where that takes no time. */
static bool others_have_none(struct fleet *f, const struct ask *a, vt_ns now)
{
    enum { FEW = 64 };

    for (uint32_t k = 0, hit = 0; k < a->n && a->n <= FEW; k++) {
        uint32_t cached;

        if (hit < f->n_hits && f->hit[hit] == k)
            hit++;
        else if (ask_cache(f, a, a->candidate[k], now, &cached, NULL) == VT_OK &&
                 cached > 0)
            return false;
    }
    return true;
}
#endif

static int see_caches(struct fleet *f, struct ask *a, vt_ns now, struct vt_err *err)
{
    uint32_t units = f->inst[0].view.units, n = 0;
    const struct holder *x = NULL;
    int rc = VT_OK;

    for (uint32_t k = 0; k < f->n_hits; k++)
        f->seen[f->hit_at[k]].cached = 0;
    f->n_hits = 0;
    holders_expire(&f->holders, now - f->f->staleness_ns);
    if (f->indexed && a->n_keys >= units)
        x = holders_of(&f->holders, a->key[units - 1], &n);
    for (uint32_t k = 0; k < n && rc == VT_OK; k++)
        if (a->place[x[k].instance] != NO_PLACE)
            rc = see_cache(f, a, x[k].instance, now, err);
    for (uint32_t k = 0; !f->indexed && k < a->n && rc == VT_OK; k++)
        rc = see_cache(f, a, a->candidate[k], now, err);
    a->hit = f->hit;
    a->n_hits = f->n_hits;
    assert(rc != VT_OK || others_have_none(f, a, now));
    return rc;
}

/* ---- the choice ----------------------------------------------------------- */

static const struct choices *list_choices(struct fleet *f, unsigned pool)
{
    uint32_t split = f->f->prefill_instances, first = pool == POOL_DECODE ? split : 0;
    uint32_t end = pool == POOL_MAIN && split > 0 ? split : f->n;
    struct choices *c = &f->choices[pool];

    if (c->known)
        return c;
    c->known = true;
    c->n = 0;
    for (uint32_t i = 0; i < f->n; i++) {
        c->place[i] = NO_PLACE;
        if (i < first || i >= end || f->inst[i].state != SERVING)
            continue;
        c->place[i] = c->n;
        c->candidate[c->n++] = i;
    }
    return c;
}

int fleet_route(struct fleet *f, size_t req, vt_ns now, unsigned pool,
                struct vt_err *err)
{
    unsigned wants = router_wants(f->router);
    struct live *l = window_live(&f->r->window, req);
    const struct choices *c = list_choices(f, pool);
    struct ask a = {.seen = f->seen,
                    .session = window_work(&f->r->window, req)->session,
                    .pool = pool,
                    .candidate = c->candidate,
                    .place = c->place,
                    .n = c->n};
    int rc;

    if (look_is_due(f, now))
        see_engines(f, now);
    a.look = f->look;
    if (wants & WANT_KEYS) {
        struct vt_request q = run_request(window_piece(&f->r->window, req)->w,
                                          window_work(&f->r->window, req), req);

        a.key = vt_keys_of(f->keys, &q, &a.n_keys);
        if (!a.key)
            return vt_nomem(err);
    }
    if (((wants & WANT_CACHED) && (rc = see_caches(f, &a, now, err))) ||
        (rc = router_pick(f->router, &a, &l->instance, err)))
        return rc;
    f->seen[l->instance].in_flight++;
    return VT_OK;
}
