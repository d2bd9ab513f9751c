#include "core/transfer.h"

#include <math.h>

#include "core/told.h"

void transfers_init(struct transfers *t, const struct vt_offload *o)
{
    *t = (struct transfers){
        .setup_ns = o->setup_us * 1e3,
        .duplex = o->duplex > 0 ? o->duplex : 1,
        .host_us = o->host_us,
        .host_block_us = o->host_block_us,
        .block_bytes = o->block_bytes,
        .lane = {{.rate = o->load_gbs}, {.rate = o->store_gbs}}, /* GB/s is bytes/ns */
    };
}

void transfers_free(struct transfers *t)
{
    free(t->lane[0].job);
    free(t->lane[1].job);
    free(t->late);
    free(t->done);
}

static bool is_busy(const struct lane *l)
{
    return l->first < l->n;
}

static double rate_of(const struct transfers *t, int i)
{
    return t->lane[i].rate * (is_busy(&t->lane[!i]) ? t->duplex : 1);
}

/* Nanoseconds until the lane's first job is over, if nothing changes. */
static double left_ns(const struct transfers *t, int i)
{
    const struct lane *l = &t->lane[i];
    const struct lane_job *j = &l->job[l->first];

    return j->setup_ns + (l->rate > 0 ? j->bytes / rate_of(t, i) : 0);
}

static void pass_ns(const struct transfers *t, int i, double ns)
{
    const struct lane *l = &t->lane[i];
    struct lane_job *j = &l->job[l->first];
    double setup = ns < j->setup_ns ? ns : j->setup_ns;

    j->setup_ns -= setup;
    j->bytes -= (ns - setup) * rate_of(t, i);
    if (j->bytes < 0)
        j->bytes = 0;
}

static int finish_first(struct transfers *t, int i, struct vt_err *err)
{
    struct lane *l = &t->lane[i];
    int rc = vt_grow(&t->done, &t->cap_done, t->n_done + 1, sizeof(*t->done), err);

    if (rc != VT_OK)
        return rc;
    t->done[t->n_done] = l->job[l->first++].is;
    t->done[t->n_done++].ended_ns = t->now;
    if (!is_busy(l))
        l->first = l->n = 0;
    else
        l->job[l->first].is.begun_ns = t->now;
    return VT_OK;
}

/* The lane whose first job is over soonest, and in how many whole nanoseconds; -1:
 * nothing is under way. */
static int soonest(const struct transfers *t, double *in)
{
    int best = -1;

    for (int i = 0; i < 2; i++) {
        double ns = is_busy(&t->lane[i]) ? ceil(left_ns(t, i)) : INFINITY;

        if (ns < (best < 0 ? INFINITY : *in)) {
            best = i;
            *in = ns;
        }
    }
    return best;
}

static int advance(struct transfers *t, vt_ns to, struct vt_err *err)
{
    for (;;) {
        double in = 0, most = (double)(to - t->now);
        int i = soonest(t, &in), rc;

        if (i < 0 || in > most) {
            for (int k = 0; k < 2 && to > t->now; k++)
                if (is_busy(&t->lane[k]))
                    pass_ns(t, k, most);
            if (to > t->now)
                t->now = to;
            return VT_OK;
        }
        if (is_busy(&t->lane[!i]))
            pass_ns(t, !i, in);
        t->now += (vt_ns)in;
        if ((rc = finish_first(t, i, err)))
            return rc;
    }
}

static int hand_over(struct transfers *t, struct vt_kv_moved m, struct vt_err *err)
{
    struct lane *l = &t->lane[m.store];
    int rc = vt_grow(&l->job, &l->cap, l->n + 1, sizeof(*l->job), err);

    m.given_ns = m.begun_ns = t->now; /* the latter: or when those before are over */
    if (rc == VT_OK)
        l->job[l->n++] =
            (struct lane_job){m, t->setup_ns, l->rate > 0 ? (double)m.bytes : 0};
    return rc;
}

static struct vt_kv_moved move_of(const struct transfers *t, const struct vt_kv_job *j,
                                  vt_ns at)
{
    return (struct vt_kv_moved){.id = j->id,
                                .tag = j->tag,
                                .chunks = j->n_cpu,
                                .bytes = j->n_gpu * t->block_bytes,
                                .store = j->store,
                                .asked_ns = at};
}

static bool is_flushed(const struct vt_kv_moves *m, uint64_t id)
{
    for (uint32_t i = 0; i < m->n_flush; i++)
        if (m->flush[i] == id)
            return true;
    return false;
}

/* Runs on until no job of these is under way: those that are not known are over. */
static int wait_for(struct transfers *t, const struct vt_kv_moves *m,
                    struct vt_err *err)
{
    bool found = true;
    int rc = VT_OK;

    while (found && rc == VT_OK) {
        double in = 0;

        found = false;
        for (int k = 0; k < 2; k++)
            for (size_t i = t->lane[k].first; i < t->lane[k].n; i++)
                found |= is_flushed(m, t->lane[k].job[i].is.id);
        if (found && soonest(t, &in) >= 0)
            rc = advance(t, t->now + (vt_ns)in, err);
    }
    return rc;
}

static double host_us(const struct transfers *t, double blocks)
{
    return t->host_us + t->host_block_us * blocks;
}

double transfers_host_us(const struct transfers *t, const struct vt_kv_moves *m)
{
    double us = 0;

    for (size_t i = 0; i < t->n_late; i++)
        us += host_us(t, t->block_bytes > 0
                             ? (double)t->late[i].bytes / (double)t->block_bytes
                             : 0);
    for (uint32_t i = 0; m->n_flush > 0 && i < m->n_store; i++)
        if (is_flushed(m, m->store[i].id))
            us += host_us(t, m->store[i].n_gpu);
    for (uint32_t i = 0; i < m->n_load; i++)
        us += host_us(t, m->load[i].n_gpu);
    return us;
}

int transfers_begin(struct transfers *t, const struct vt_kv_moves *m, vt_ns at,
                    vt_ns *flushed, struct vt_err *err)
{
    int rc = advance(t, at, err);

    for (size_t i = 0; i < t->n_late && rc == VT_OK; i++)
        rc = hand_over(t, t->late[i], err);
    t->n_late = 0;
    for (uint32_t i = 0; m->n_flush > 0 && i < m->n_store && rc == VT_OK; i++)
        if (is_flushed(m, m->store[i].id))
            rc = hand_over(t, move_of(t, &m->store[i], at), err);
    if (rc == VT_OK && m->n_flush > 0)
        rc = wait_for(t, m, err);
    *flushed = t->now > at ? t->now : at;
    return rc;
}

int transfers_launch(struct transfers *t, const struct vt_kv_moves *m, vt_ns at,
                     struct vt_err *err)
{
    int rc = advance(t, at, err);

    for (uint32_t i = 0; i < m->n_load && rc == VT_OK; i++)
        rc = hand_over(t, move_of(t, &m->load[i], at), err);
    for (uint32_t i = 0; i < m->n_store && rc == VT_OK; i++) {
        if (is_flushed(m, m->store[i].id))
            continue;
        rc = vt_grow(&t->late, &t->cap_late, t->n_late + 1, sizeof(*t->late), err);
        if (rc == VT_OK)
            t->late[t->n_late++] = move_of(t, &m->store[i], at);
    }
    return rc;
}

int transfers_until(struct transfers *t, vt_ns at, uint32_t *n, struct vt_err *err)
{
    int rc = advance(t, at, err);

    *n = told_until(t->done, t->n_done, sizeof(*t->done),
                    offsetof(struct vt_kv_moved, ended_ns), at);
    return rc;
}

void transfers_told(struct transfers *t, uint32_t n)
{
    told_drop(t->done, &t->n_done, n, sizeof(*t->done));
}

vt_ns transfers_due(const struct transfers *t)
{
    double in = 0;

    if (t->n_late > 0)
        return t->now;
    if (t->n_done > 0)
        return t->done[0].ended_ns;
    return soonest(t, &in) < 0 ? VT_NEVER : t->now + (vt_ns)in;
}
