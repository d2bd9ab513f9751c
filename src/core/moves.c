/* moves.c - a step's transfers beside it: to and from the host's memory, and from other
 * engines. What is over when the host looks is told with a step's result. */
#include "core/engine.h"
#include "core/sched/sched.h"

void moves_init(struct vt_engine *e)
{
    e->moves = e->c.offload.num_cpu_blocks > 0;
    e->connected = e->moves || e->c.remote.on;
    transfers_init(&e->transfers, &e->c.offload);
    pulls_init(&e->pulls, &e->c.remote);
    leases_init(&e->leases, &e->c.remote);
}

void moves_free(struct vt_engine *e)
{
    free(e->moved);
    free(e->pulled);
    transfers_free(&e->transfers);
    pulls_free(&e->pulls);
    leases_free(&e->leases);
}

static vt_ns sooner(vt_ns a, vt_ns b)
{
    return a < b ? a : b;
}

vt_ns moves_due(const struct vt_engine *e)
{
    vt_ns at = VT_NEVER;

    if (e->moves && e->ops->has_requests(e->sched))
        at = transfers_due(&e->transfers);
    if (e->c.remote.on)
        at = sooner(at, sooner(pulls_due(&e->pulls), leases_due(&e->leases)));
    return at > e->host_free ? at : e->host_free;
}

/* ---- a step ----------------------------------------------------------- */

int moves_begin(struct vt_engine *e, struct flight *f, struct vt_err *err)
{
    const struct vt_kv_moves *m = f->plan->moves;

    f->flushed_ns = f->sched_ns;
    if (!e->moves)
        return VT_OK;
    e->totals.offload.evicted_chunks += m->n_evicted;
    e->totals.offload.no_room += m->no_room;
    f->handover_us = transfers_host_us(&e->transfers, m);
    if (transfers_begin(&e->transfers, m, f->sched_ns, &f->flushed_ns, err) != VT_OK)
        return VT_ENOMEM;
    if (f->flushed_ns > e->gpu_free)
        e->gpu_free = f->flushed_ns;
    return VT_OK;
}

int moves_launch(struct vt_engine *e, struct flight *f, struct vt_err *err)
{
    vt_ns at = f->sched_end_ns > f->flushed_ns ? f->sched_end_ns : f->flushed_ns;
    int rc = VT_OK;

    f->polled_ns = e->host_free > f->flushed_ns ? e->host_free : f->flushed_ns;
    if (e->moves)
        rc = transfers_launch(&e->transfers, f->plan->moves, at, err);
    if (e->c.remote.on && rc == VT_OK)
        rc = pulls_launch(&e->pulls, f->plan, f->sched_ns, at, err);
    return rc;
}

/* ---- a result --------------------------------------------------------- */

static int take_moved(struct vt_engine *e, const struct flight *f, struct vt_err *err)
{
    struct vt_offload_totals *t = &e->totals.offload;
    uint32_t n;
    int rc = transfers_until(&e->transfers, f->polled_ns, &n, err);

    e->told.n_moved = 0;
    if (rc != VT_OK || n == 0)
        return rc;
    if ((rc = vt_grow(&e->moved, &e->cap_moved, n, sizeof(*e->moved), err)))
        return rc;
    memcpy(e->moved, e->transfers.done, n * sizeof(*e->moved));
    transfers_told(&e->transfers, n);
    for (uint32_t i = 0; i < n && rc == VT_OK; i++) {
        const struct vt_kv_moved *m = &e->moved[i];

        *(m->store ? &t->stores : &t->loads) += 1;
        *(m->store ? &t->store_bytes : &t->load_bytes) += m->bytes;
        *(m->store ? &t->stored_chunks : &t->loaded_chunks) += m->chunks;
        *(m->store ? &t->store_ns : &t->load_ns) += m->ended_ns - m->begun_ns;
        rc = vt_sched_moved(e->sched, &m->id, 1, err);
    }
    e->told.moved = e->moved;
    e->told.n_moved = n;
    e->stuck = false;
    return rc;
}

static int take_pulled(struct vt_engine *e, const struct flight *f, struct vt_err *err)
{
    struct vt_remote_totals *t = &e->totals.remote;
    uint32_t n;
    int rc = pulls_until(&e->pulls, f->polled_ns, &n, err);

    e->apart.n_pulled = 0;
    if (rc != VT_OK || n == 0)
        return rc;
    if ((rc = vt_grow(&e->pulled, &e->cap_pulled, n, sizeof(*e->pulled), err)))
        return rc;
    memcpy(e->pulled, e->pulls.done, n * sizeof(*e->pulled));
    pulls_told(&e->pulls, n);
    for (uint32_t i = 0; i < n && rc == VT_OK; i++) {
        const struct vt_kv_pulled *x = &e->pulled[i];

        if (x->blocks == 0) /* it has not waited for it */
            continue;
        t->failed += x->failed;
        t->pulls += !x->failed;
        t->bytes += x->failed ? 0 : x->bytes;
        t->ns += x->failed ? 0 : x->ended_ns - x->begun_ns;
        rc = vt_sched_settled(e->sched, x->tag, x->failed, err);
    }
    e->apart.pulled = e->pulled;
    e->apart.n_pulled = n;
    e->stuck = false;
    return rc;
}

static int take_leases(struct vt_engine *e, const struct flight *f, struct vt_err *err)
{
    uint32_t n;
    int rc = leases_until(&e->leases, f->polled_ns, &n, err);

    e->apart.expired = 0;
    for (uint32_t i = 0; i < n && rc == VT_OK; i++) {
        const struct lease_over *x = &e->leases.over[i];

        e->apart.expired += x->expired;
        e->totals.remote.gave += !x->expired;
        rc = vt_sched_settled(e->sched, x->tag, false, err);
        e->stuck = false;
    }
    e->apart.told_late = e->told_late;
    e->told_late = 0;
    e->totals.remote.expired += e->apart.expired;
    leases_told(&e->leases, n);
    return rc;
}

int moves_take(struct vt_engine *e, const struct flight *f, struct vt_err *err)
{
    int rc = e->failed ? vt_nomem(err) : e->moves ? take_moved(e, f, err) : VT_OK;

    if (e->c.remote.on && rc == VT_OK)
        rc = take_pulled(e, f, err);
    if (e->c.remote.on && rc == VT_OK)
        rc = take_leases(e, f, err);
    return rc;
}

int moves_taken(struct vt_engine *e, const struct vt_update *u, vt_ns at,
                struct vt_err *err)
{
    int rc = VT_OK;

    e->done.external = u->external;
    if (e->moves) {
        e->totals.offload.found += u->found_outside;
        e->told.host = vt_sched_host(e->sched);
        e->told.host.no_room = e->totals.offload.no_room;
        e->done.offload = &e->told;
    }
    if (!e->c.remote.on)
        return VT_OK;
    if (!e->moves) {
        e->totals.cache_hits -= u->found_outside;
        e->totals.remote.tokens += u->found_outside;
    }
    for (uint32_t i = 0; i < u->n_rows && rc == VT_OK; i++)
        if (u->row[i].finish != VT_RUNNING_ON &&
            vt_sched_keeps(e->sched, u->row[i].tag))
            rc = leases_add(&e->leases, u->row[i].tag, at, err);
    e->done.remote = &e->apart;
    return rc;
}

/* ---- what other engines say ------------------------------------------- */

int vt_engine_gave(struct vt_engine *e, vt_ns now, uint64_t tag)
{
    return e->c.remote.on ? leases_pulled(&e->leases, tag, now) : VT_ECHECK;
}

int vt_engine_reached(struct vt_engine *e, vt_ns now, uint64_t tag, bool there,
                      struct vt_err *err)
{
    const struct vt_sched *s = vt_engine_sched(e);

    if (!e->c.remote.on || !s)
        return VT_OK;
    return pulls_reached(&e->pulls, tag, now, there,
                         vt_map_get(&s->by_tag, tag) != NULL, err);
}

void vt_engine_told_late(struct vt_engine *e)
{
    e->told_late += e->c.remote.on;
}

int vt_engine_renew(struct vt_engine *e, vt_ns now, uint64_t tag)
{
    return e->c.remote.on ? leases_renew(&e->leases, tag, now) : VT_ECHECK;
}
