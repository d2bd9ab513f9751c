/* autoscale.c - more and fewer engines by what they hold, as BLIS's analyzer decides.
 *
 * Supply is the KV cache of all serving engines, filled to a prudent share; demand is
 * what is in use and what the queues will ask for. A new engine is loading for a while
 * and counts as supply; one to be removed takes no new requests and ends its work. */
#include <math.h>

#include "sim/fleet/parts.h"

#define PRUDENT      0.8   /* share of a KV cache that is counted on */
#define QUEUE_TOKENS 512.0 /* what a waiting request is taken to need */

int autoscale_check(const struct vt_fleet *f, struct vt_err *err)
{
    const struct vt_autoscale *s = &f->autoscale;

    if (s->interval_ns == 0)
        return VT_OK;
    if (s->interval_ns < 0 || s->startup_ns < 0 || s->up_window_ns < 0 ||
        s->down_window_ns < 0)
        return vt_fail(err, VT_EINPUT, "a time of autoscaling is below 0");
    if (s->least < 1 || s->least > s->most || s->most > 65536)
        return vt_fail(err, VT_EINPUT, "autoscaling from %u to %u instances", s->least,
                       s->most);
    if (f->instances < s->least || f->instances > s->most)
        return vt_fail(err, VT_EINPUT,
                       "%u instances at the start, autoscaling keeps %u to %u",
                       f->instances, s->least, s->most);
    if (!(s->up > 0.0 && s->up <= 1.0) || !(s->down > 0.0 && s->down < s->up))
        return vt_fail(err, VT_EINPUT,
                       "autoscaling adds above %g and removes below %g; must be "
                       "0 < down < up <= 1",
                       s->up, s->down);
    if (f->replica)
        return vt_fail(err, VT_EINPUT,
                       "autoscaling of different replicas is not modelled");
    return VT_OK;
}

vt_ns autoscale_due(const struct fleet *f)
{
    vt_ns at = f->tick_ns;

    if (at == VT_NEVER)
        return VT_NEVER;
    for (uint32_t i = 0; i < f->n; i++)
        if (f->inst[i].state == LOADING && f->inst[i].ready_ns < at)
            at = f->inst[i].ready_ns;
    return at;
}

/* ---- the rule --------------------------------------------------------- */

struct balance { /* tokens of KV cache */
    double supply, pending, demand, each;
    uint32_t serving, loading;
};

static struct balance weigh_demand(const struct fleet *f, vt_ns now)
{
    struct balance b = {0};

    for (uint32_t i = 0; i < f->n; i++) {
        const struct instance *x = &f->inst[i];
        uint32_t longest = x->config->max_model_len;
        double room = (double)(x->config->num_gpu_blocks - 1) /
                      (double)vt_blocks_of_request(x->config, longest) * longest;
        struct vt_engine_state now_there;

        b.each = room * PRUDENT;
        b.loading += x->state == LOADING;
        if (x->state != SERVING)
            continue;
        now_there = vt_engine_state(x->engine, now);
        b.serving++;
        b.demand += now_there.kv_usage * room + now_there.waiting * QUEUE_TOKENS;
    }
    b.supply = b.serving * b.each;
    b.pending = b.loading * b.each;
    return b;
}

static uint32_t at_most(double wanted, uint32_t most)
{
    return wanted < (double)most ? (uint32_t)wanted : most;
}

/* How many engines to add (*more) and to remove (*fewer). */
static void decide_change(const struct fleet *f, vt_ns now, uint32_t *more,
                          uint32_t *fewer)
{
    const struct vt_autoscale *s = &f->f->autoscale;
    struct balance b = weigh_demand(f, now);
    double missing = b.demand / s->up - (b.supply + b.pending);
    double spare = b.supply - b.demand / s->down;

    *more = *fewer = 0;
    if (missing > 0.0)
        *more = at_most(ceil(missing / b.each), s->most - b.serving - b.loading);
    if (spare >= b.each && b.serving > s->least && b.loading == 0 &&
        b.demand / s->up <= b.supply - b.each)
        *fewer = at_most(floor(spare / b.each), b.serving - s->least);
}

/* Whether something has held for its window; acting on it starts the window anew. */
static bool has_held(vt_ns *since, bool holds, vt_ns now, vt_ns window)
{
    if (!holds) {
        *since = -1;
        return false;
    }
    if (*since < 0)
        *since = now;
    if (now - *since < window)
        return false;
    *since = -1;
    return true;
}

/* ---- doing it --------------------------------------------------------- */

int autoscale_act(struct fleet *f, vt_ns now, struct vt_err *err)
{
    const struct vt_autoscale *s = &f->f->autoscale;
    uint32_t more, fewer;
    int rc = VT_OK;

    for (uint32_t i = 0; i < f->n && rc == VT_OK; i++)
        if (f->inst[i].state == LOADING && f->inst[i].ready_ns <= now)
            rc = fleet_start(f, i, now, err);
    if (f->tick_ns > now || rc != VT_OK)
        return rc;
    f->tick_ns += s->interval_ns;
    decide_change(f, now, &more, &fewer);
    if (!has_held(&f->high_since, more > 0, now, s->up_window_ns))
        more = 0;
    if (!has_held(&f->low_since, fewer > 0, now, s->down_window_ns))
        fewer = 0;
    for (uint32_t i = 0; i < f->n && more > 0; i++)
        if (f->inst[i].state == OFF) {
            f->inst[i].state = LOADING;
            f->inst[i].ready_ns = now + s->startup_ns;
            more--;
        }
    for (uint32_t i = f->n; i-- > 0 && fewer > 0;)
        if (f->inst[i].state == SERVING) {
            f->inst[i].state = DRAINING;
            look_change(f);
            if (f->seen[i].in_flight == 0)
                fleet_stop(f, i, now);
            fewer--;
        }
    return VT_OK;
}
