/* driver.c - engines under the wall clock: due times, parcels, requests by tag. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "live/live.h"

enum {
    ACTIONS = 64, /* of one engine, before others and new requests are looked at */
    KEEP_PLACES = 1024,
    PLACE_BITS = 20,
    MAX_REQUESTS = 1 << PLACE_BITS,
};

struct vt_driver {
    struct vt_driver_config c;
    struct vt_engine **engine;
    struct vt_late late;
    struct vt_slow slow;
    bool timed;      /* by a model that takes time: with none everything is late */
    vt_ns over_wall; /* VT_NEVER: not draining */

    struct vt_agenda due; /* parcels by number */
    char *parcel;         /* c.parcel_bytes each */
    size_t cap_parcels;
    struct vt_seats parcels;

    struct place { /* of a request */
        void *request;
        uint64_t tag;
    } *place;
    size_t cap_places;
    struct vt_seats places;
    uint64_t next_tag;
};

/* ---- life ------------------------------------------------------------- */

int vt_driver_open(struct vt_driver **out, const struct vt_driver_config *c,
                   struct vt_err *err)
{
    struct vt_driver *d = calloc(1, sizeof(*d));
    int rc = VT_OK;

    *out = d;
    if (!d)
        return vt_nomem(err);
    d->c = *c;
    d->over_wall = VT_NEVER;
    d->timed = c->model && strcmp(c->model->ops->name, "null") != 0;
    d->engine = calloc(c->n_engines + 1, sizeof(struct vt_engine *));
    if (!d->engine)
        rc = vt_nomem(err);
    for (uint32_t i = 0; i < c->n_engines && rc == VT_OK; i++) {
        struct vt_engine_config e = c->engine;

        e.seed = vt_hash2(c->seed, c->first_rank + i);
        rc = vt_engine_new(&d->engine[i], &e, c->model, err);
    }
    if (rc != VT_OK) {
        vt_driver_close(d);
        *out = NULL;
    }
    return rc;
}

void vt_driver_close(struct vt_driver *d)
{
    if (!d)
        return;
    for (size_t i = 0; d->c.ops->drop && i < d->parcels.n; i++)
        d->c.ops->drop(d->parcel + i * d->c.parcel_bytes);
    for (uint32_t i = 0; d->engine && i < d->c.n_engines; i++)
        vt_engine_free(d->engine[i]);
    vt_agenda_free(&d->due);
    free(d->engine);
    free(d->parcel);
    vt_seats_free(&d->parcels);
    free(d->place);
    vt_seats_free(&d->places);
    free(d);
}

struct vt_engine *vt_driver_engine(const struct vt_driver *d, uint32_t engine)
{
    return d->engine[engine];
}

const struct vt_late *vt_driver_late(const struct vt_driver *d)
{
    return &d->late;
}

struct vt_extent vt_driver_extent(const struct vt_driver *d)
{
    struct vt_extent all = {0};

    for (uint32_t i = 0; i < d->c.n_engines; i++) {
        struct vt_engine_totals t = vt_engine_totals(d->engine[i]);

        vt_extent_join(&all, &t.extent);
    }
    return all;
}

/* ---- steps ------------------------------------------------------------ */

static int step_engine(struct vt_driver *d, uint32_t engine, vt_ns now,
                       struct vt_err *err)
{
    const struct vt_step *done;
    int rc = vt_engine_step(d->engine[engine], now, &done, err);

    return rc == VT_OK ? d->c.ops->stepped(d->c.user, engine, done, err) : rc;
}

int vt_driver_catch_up(struct vt_driver *d, uint32_t engine, vt_ns now,
                       struct vt_err *err)
{
    int rc = VT_OK;

    while (rc == VT_OK && vt_engine_due(d->engine[engine]) <= now)
        rc = step_engine(d, engine, now, err);
    return rc;
}

int vt_driver_run(struct vt_driver *d, uint32_t engine, vt_ns now, struct vt_err *err)
{
    const struct vt_driver_ops *ops = d->c.ops;
    int rc = VT_OK;

    for (int i = 0; i < ACTIONS && vt_engine_due(d->engine[engine]) <= now; i++) {
        rc = step_engine(d, engine, now, err);
        vt_driver_flush(d, now);
        if (rc != VT_OK || (ops->interrupt && ops->interrupt(d->c.user)))
            break;
    }
    return rc;
}

int vt_driver_pass(struct vt_driver *d, vt_ns now, struct vt_err *err)
{
    int rc = VT_OK;

    vt_driver_flush(d, now);
    for (uint32_t i = 0; i < d->c.n_engines && rc == VT_OK; i++)
        rc = vt_driver_run(d, i, now, err);
    return rc;
}

vt_ns vt_driver_engines_due(const struct vt_driver *d)
{
    vt_ns at = VT_NEVER;

    for (uint32_t i = 0; i < d->c.n_engines; i++) {
        vt_ns due = vt_engine_due(d->engine[i]);

        at = due < at ? due : at;
    }
    return at;
}

vt_ns vt_driver_arrival(const struct vt_driver *d, uint32_t engine, vt_ns now)
{
    vt_ns due = vt_engine_due(d->engine[engine]);

    return due < now ? due : now;
}

void vt_driver_tell_plan(const struct vt_driver *d, const struct vt_step *s,
                         vt_driver_told *told)
{
    const struct vt_step_plan *plan = s->plan;

    for (uint32_t i = 0; i < plan->n_preempted; i++) {
        void *request = vt_driver_find(d, plan->preempted[i]);

        if (request)
            told(request, true, s);
    }
    for (uint32_t i = 0; i < plan->n; i++) {
        const struct vt_item *item = &plan->item[i];
        void *request =
            item->origin != VT_WAS_RUNNING ? vt_driver_find(d, item->tag) : NULL;

        if (request)
            told(request, false, s);
    }
}

const struct vt_first *vt_step_first(const struct vt_step *s, uint64_t tag,
                                     uint32_t *hint)
{
    for (uint32_t i = 0; i < s->n_first; i++) {
        uint32_t k = (*hint + i) % s->n_first;

        if (s->first[k].tag == tag) {
            *hint = k + 1;
            return &s->first[k];
        }
    }
    return NULL;
}

/* ---- parcels ---------------------------------------------------------- */

static void note_lateness(struct vt_driver *d, vt_ns at)
{
    const struct vt_driver_ops *ops = d->c.ops;
    vt_ns wall = vt_wall_ns(), late = wall - vt_axis_wall(&d->c.axis, at);

    vt_late_add(&d->late, late);
    if (d->timed && vt_slow_note(&d->slow, wall, late) && ops->slow)
        ops->slow(d->c.user, &d->slow);
}

static bool take_parcel(struct vt_driver *d, uint32_t *number, struct vt_err *err)
{
    size_t bytes = d->c.parcel_bytes, old = d->cap_parcels;

    if (vt_grow(&d->parcel, &d->cap_parcels, (size_t)d->parcels.n + 1, bytes, err) !=
        VT_OK)
        return false;
    memset(d->parcel + old * bytes, 0, (d->cap_parcels - old) * bytes);
    return vt_seats_take(&d->parcels, number, err) == VT_OK;
}

void *vt_driver_post(struct vt_driver *d, vt_ns at, struct vt_err *err)
{
    uint32_t number;

    if (!take_parcel(d, &number, err))
        return NULL;
    if (vt_agenda_push(&d->due, at, number, err) != VT_OK) {
        vt_seats_give(&d->parcels, number);
        return NULL;
    }
    return d->parcel + number * d->c.parcel_bytes;
}

vt_ns vt_driver_parcels_due(const struct vt_driver *d)
{
    return d->due.n > 0 ? d->due.due[0].at : VT_NEVER;
}

void vt_driver_flush(struct vt_driver *d, vt_ns now)
{
    while (d->due.n > 0 && d->due.due[0].at <= now) {
        uint32_t number = (uint32_t)d->due.due[0].item;
        vt_ns at = d->due.due[0].at;

        vt_agenda_remove(&d->due, 0);
        if (d->c.ops->leave(d->c.user, d->parcel + number * d->c.parcel_bytes, at))
            note_lateness(d, at);
        vt_seats_give(&d->parcels, number);
        assert(d->due.n == d->parcels.n_taken);
    }
}

/* ---- requests --------------------------------------------------------- */

int vt_driver_add(struct vt_driver *d, void *request, uint64_t *tag, struct vt_err *err)
{
    uint32_t place = 0;
    int rc;

    if (d->places.n_taken == MAX_REQUESTS)
        return vt_fail(err, VT_EINPUT, "there are %d requests already", MAX_REQUESTS);
    rc = vt_grow(&d->place, &d->cap_places, (size_t)d->places.n + 1, sizeof(*d->place),
                 err);
    if (rc == VT_OK)
        rc = vt_seats_take(&d->places, &place, err);
    if (rc != VT_OK)
        return rc;
    *tag = ++d->next_tag << PLACE_BITS | place;
    d->place[place] = (struct place){request, *tag};
    return VT_OK;
}

void *vt_driver_find(const struct vt_driver *d, uint64_t tag)
{
    size_t place = tag & (MAX_REQUESTS - 1);

    return place < d->places.n && d->place[place].tag == tag ? d->place[place].request
                                                             : NULL;
}

void vt_driver_remove(struct vt_driver *d, uint64_t tag)
{
    uint32_t place = tag & (MAX_REQUESTS - 1);

    if (!vt_driver_find(d, tag))
        return;
    d->place[place] = (struct place){0};
    vt_seats_give(&d->places, place);
    if (vt_seats_cut(&d->places, KEEP_PLACES, 4) > 0) /* after a crowd, bit by bit */
        vt_shrink(&d->place, &d->cap_places, d->places.n, sizeof(*d->place));
}

uint32_t vt_driver_requests(const struct vt_driver *d)
{
    return d->places.n_taken;
}

void *vt_driver_each(const struct vt_driver *d, size_t *at)
{
    while (*at < d->places.n) {
        void *request = d->place[(*at)++].request;

        if (request)
            return request;
    }
    return NULL;
}

/* ---- the end ---------------------------------------------------------- */

void vt_driver_drain(struct vt_driver *d, double seconds)
{
    if (d->over_wall == VT_NEVER)
        d->over_wall = vt_wall_ns() + (vt_ns)((seconds < 1e9 ? seconds : 1e9) * 1e9);
}

bool vt_driver_draining(const struct vt_driver *d)
{
    return d->over_wall != VT_NEVER;
}

bool vt_driver_over(const struct vt_driver *d, uint32_t n_requests)
{
    return vt_driver_draining(d) && (n_requests == 0 || vt_wall_ns() >= d->over_wall);
}

vt_ns vt_driver_over_wall(const struct vt_driver *d)
{
    return d->over_wall;
}
