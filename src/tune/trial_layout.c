/* trial_layout.c - when the requests of a trial arrive.
 *
 * Rates are those of requests, and the offered one is exactly what was asked for: the
 * workload's gaps keep their shape and are scaled to it. So runs at several rates
 * differ in nothing else, and a rate that was not borne is the engine's doing. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tune/trial.h"

static bool is_generated(const struct vt_workload *w)
{
    return w->req[0].line == 0;
}

/* Recorded turns keep the order in which they came. */
static bool made_sessions(const struct vt_workload *w)
{
    return is_generated(w) && w->arrivals == VT_ARRIVALS_SESSION;
}

/* ---- gaps ------------------------------------------------------------------ */

/* Distances between the arrivals that the workload has: of requests, or of sessions. */
static size_t own_gaps(double *gap, const struct vt_work *req, size_t n, bool sessions)
{
    vt_ns last = req[0].arrival_ns;
    size_t m = 0;

    for (size_t i = 1; i < n; i++) {
        if (sessions && !req[i].first_turn)
            continue;
        gap[m++] = (double)(req[i].arrival_ns - last);
        last = req[i].arrival_ns;
    }
    return m;
}

/* n - 1 gaps in any unit. Sessions have fewer of their own: they come round again. A
 * recorded workload is the same for each seed, so its gaps are shuffled. Where all
 * arrive at once (a closed loop) they are drawn as a Poisson process makes them. */
static void shape_gaps(double *gap, size_t n, const struct vt_workload *w,
                       uint64_t seed)
{
    size_t m = own_gaps(gap, w->req, n, made_sessions(w));
    struct vt_rng rng;
    double sum = 0;

    vt_rng_init(&rng, seed, "trial gaps");
    for (size_t i = 0; i < m; i++)
        sum += gap[i];
    if (!(sum > 0) || w->arrivals == VT_ARRIVALS_CLOSED) {
        for (size_t i = 0; i + 1 < n; i++)
            gap[i] = vt_rng_exp(&rng);
        return;
    }
    for (size_t i = m; i > 1 && !is_generated(w) && seed > 0; i--) {
        size_t k = (size_t)vt_rng_below(&rng, i);
        double last = gap[i - 1];

        gap[i - 1] = gap[k];
        gap[k] = last;
    }
    for (size_t i = m; i + 1 < n; i++)
        gap[i] = gap[i - m];
}

/* Arrival times of n requests from 0 on; n - 1 gaps take (n - 1) / rate. */
static void place_slots(vt_ns *at, const double *gap, size_t n, double rate)
{
    double sum = 0, upto = 0, span = (double)(n - 1) / rate * (double)VT_SEC;

    for (size_t i = 0; i + 1 < n; i++)
        sum += gap[i];
    at[0] = 0;
    for (size_t i = 0; i + 1 < n; i++) {
        upto += gap[i];
        at[i + 1] = (vt_ns)llround(sum > 0 ? span * (upto / sum) : 0);
    }
}

/* ---- sessions ---------------------------------------------------------------- */

struct turn_order { /* scratch for one layout */
    const struct vt_work *req;
    size_t n;
    size_t next_session;      /* index of its first turn; n: all have begun */
    struct vt_agenda waiting; /* next turns, by when their user is ready */
};

/* Who speaks at `at`: whose user has been ready for longest, else a new session, else
 * whose user would be ready soonest. */
static size_t next_speaker(struct turn_order *o, vt_ns at)
{
    bool ready = o->waiting.n > 0 && o->waiting.due[0].at <= at;
    size_t i = o->next_session;

    if (!ready && i < o->n) {
        do
            o->next_session++;
        while (o->next_session < o->n && !o->req[o->next_session].first_turn);
        return i;
    }
    i = o->waiting.due[0].item;
    vt_agenda_remove(&o->waiting, 0);
    return i;
}

/* A turn's next one is the next in the list: generated sessions are laid out so, and
 * cutting the list cuts the last one. */
static int order_turns(struct vt_work *out, size_t slots, const struct vt_work *req,
                       size_t n, const vt_ns *at, struct vt_err *err)
{
    struct turn_order o = {.req = req, .n = n};
    int rc = VT_OK;

    for (size_t slot = 0; slot < slots && rc == VT_OK; slot++) {
        size_t i = next_speaker(&o, at[slot]);

        out[slot] = req[i];
        out[slot].arrival_ns = at[slot];
        out[slot].next_turn = VT_NO_TURN;
        if (i + 1 < n && !req[i + 1].first_turn)
            rc = vt_agenda_push(&o.waiting, at[slot] + req[i + 1].think_ns, i + 1, err);
    }
    vt_agenda_free(&o.waiting);
    return rc;
}

/* ---- the whole ------------------------------------------------------------------ */

static int lay_out(struct vt_workload *out, const struct vt_workload *w,
                   const struct vt_trial *t, struct vt_err *err)
{
    double *gap = malloc(out->n * sizeof(*gap));
    vt_ns *at = malloc(out->n * sizeof(*at));
    int rc = VT_OK;

    out->req = malloc(out->n * sizeof(*out->req));
    if (!gap || !at || !out->req)
        rc = vt_nomem(err);
    if (rc == VT_OK) {
        shape_gaps(gap, out->n, w, t->seed);
        place_slots(at, gap, out->n, t->rate);
        if (made_sessions(w))
            /* Of those that go on, some have only begun when the last speaks. */
            rc = order_turns(out->req, out->n, w->req, t->go_on > 0 ? w->n : out->n, at,
                             err);
        for (size_t i = 0; i < out->n && !made_sessions(w); i++) {
            out->req[i] = w->req[i];
            out->req[i].arrival_ns = at[i];
            out->req[i].next_turn = VT_NO_TURN;
        }
    }
    free(gap);
    free(at);
    return rc;
}

uint32_t trial_rounds(const struct vt_workload *w, const struct vt_trial *t)
{
    return t->go_on > 0 && w->round > 0
               ? (uint32_t)((t->go_on + w->round / 2) / w->round)
               : 0;
}

double trial_session_s(const struct vt_workload *w)
{
    double think_s = 0, sessions = 0;

    for (size_t i = 0; i < w->n && made_sessions(w); i++) {
        think_s += (double)w->req[i].think_ns / 1e9;
        sessions += w->req[i].first_turn;
    }
    return sessions > 0 ? think_s / sessions : 0;
}

int trial_layout(struct vt_workload *out, const struct vt_workload *w,
                 const struct vt_trial *t, struct vt_err *err)
{
    int rc;

    if (t->go_on == 0 && t->requests > w->n)
        return vt_fail(err, VT_EINPUT, "%s: has %zu requests, not %u", w->source, w->n,
                       t->requests);
    *out = *w;
    out->n = t->go_on > 0 ? t->go_on : t->requests > 0 ? t->requests : w->n;
    out->cap = out->n;
    out->measured = NULL;
    out->arrivals = VT_ARRIVALS_RECORDED;
    out->concurrency = 0;
    rc = lay_out(out, w, t, err);
    if (rc != VT_OK) {
        free(out->req);
        out->req = NULL;
    }
    return rc;
}
