/* wave.c - data-parallel ranks: what the coordinator is told of their load, and
 * the waves in which ranks of a mixture of experts start and stop together.
 *
 * Real ranks agree on the end of a wave every 32 steps, idle ones by dummy steps. All
 * ranks of a wave live in this process, so they know; they linger for about as long. */
#include "wire/play/engines.h"

static const vt_ns LINGER_NS = 50 * VT_MS;

int engines_wave_start(struct play_engines *k, struct rank *r, int64_t wave,
                       int64_t exclude)
{
    if (!k->p->c->waves || exclude == (int64_t)r->index || wave < r->wave)
        return VT_OK;
    r->wave = wave;
    r->awake = true;
    k->restless_ns = vt_axis_now(&k->p->axis);
    return VT_OK;
}

int engines_wave_request(struct play_engines *k, struct rank *r, int64_t wave,
                         struct vt_err *err)
{
    struct wire_outputs o = {.wave_complete = -1, .start_wave = -1};
    int rc = VT_OK;

    if (!k->p->c->waves || !r->coordinator)
        return VT_OK;
    if (wave > r->wave) {
        r->wave = wave;
    } else if (wave < r->wave && !r->awake) {
        /* It was sent before its frontend knew that the wave was over. */
        o.start_wave = r->wave;
        rc = engines_tell_coordinator(k, r, &o, err);
    }
    r->awake = true;
    return rc;
}

static bool any_awake(const struct play_engines *k)
{
    for (uint32_t i = 0; i < k->p->c->n_engines; i++)
        if (k->rank[i].awake)
            return true;
    return false;
}

vt_ns engines_wave_due(const struct play_engines *k)
{
    if (!k->p->c->waves || vt_driver_requests(k->driver) > 0 || !any_awake(k))
        return VT_NEVER;
    return k->restless_ns + LINGER_NS;
}

static int end_wave(struct play_engines *k, struct vt_err *err)
{
    struct wire_outputs o = {.wave_complete = 0, .start_wave = -1};
    int rc = VT_OK;

    for (uint32_t i = 0; i < k->p->c->n_engines; i++)
        if (k->rank[i].wave > o.wave_complete)
            o.wave_complete = k->rank[i].wave;
    if (k->p->c->first_rank == 0)
        rc = engines_tell_coordinator(k, &k->rank[0], &o, err);
    for (uint32_t i = 0; i < k->p->c->n_engines; i++) {
        k->rank[i].wave = o.wave_complete + 1;
        k->rank[i].step_counter = 0;
        k->rank[i].awake = false;
    }
    return rc;
}

int engines_coordinate(struct play_engines *k, vt_ns now, struct vt_err *err)
{
    int rc = VT_OK;

    for (uint32_t i = 0; i < k->p->c->n_engines && rc == VT_OK; i++) {
        struct rank *r = &k->rank[i];
        struct wire_outputs o = {
            .has_stats = true, .wave_complete = -1, .start_wave = -1};

        if (!r->coordinator)
            continue;
        o.stats = engines_stats(k, r);
        if (o.stats.waiting == r->told_waiting && o.stats.running == r->told_running)
            continue;
        r->told_waiting = o.stats.waiting;
        r->told_running = o.stats.running;
        rc = engines_tell_coordinator(k, r, &o, err);
    }
    if (rc != VT_OK || !k->p->c->waves || !any_awake(k))
        return rc;
    if (vt_driver_requests(k->driver) > 0) {
        k->restless_ns = now;
        return VT_OK;
    }
    return now >= engines_wave_due(k) ? end_wave(k, err) : VT_OK;
}
