/* arrive.c - how requests come to the scheduler, from which schedule calls took them.
 *
 * A log says when each schedule call was and whom it took, a trace when requests
 * arrived. One that a call did not take was not ready then, one that the next call took
 * was ready by then: hundreds of such bounds tell how long the way into the queue is,
 * although no log says when a request was ready. */
#include "fit/internal.h"

#include <math.h>

/* ---- what a capture says ---------------------------------------------- */

/* What bounds the time at which a request of step i was ready. */
static void bound(struct join *j, const struct vt_steps *s, size_t i, bool first)
{
    const struct vt_step_line *x = &s->step[i], *before = i > 0 ? x - 1 : NULL;
    bool rested = !before || before->out_ns < x->sched_ns;

    j->joined = in_ms(x->sched_ns);
    if (rested && first)
        j->rested = before ? in_ms(before->done_ns) : -INFINITY;
    /* Who was left in the queue may have been ready long before. */
    if (before && in_ms(before->sched_ns) > j->arrival) {
        j->missed = in_ms(before->sched_ns);
        j->queued = before->waiting > before->n_prefill;
    }
}

int arrive_note(struct capture *c, const struct vt_steps *s,
                const struct vt_workload *w, struct vt_err *err)
{
    c->join = calloc(w->n + 1, sizeof(*c->join));
    if (!c->join)
        return vt_nomem(err);
    c->n_joins = w->n;
    for (size_t k = 0; k < w->n; k++)
        c->join[k] = (struct join){.arrival = in_ms(w->req[k].arrival_ns),
                                   .ktokens = 1e-3 * w->req[k].prompt_tokens,
                                   .joined = -INFINITY,
                                   .missed = -INFINITY,
                                   .rested = NAN};
    for (size_t i = 0; i < s->n; i++) {
        bool first = true;

        for (uint32_t k = 0; k < s->step[i].n_prefill; k++) {
            const struct vt_step_prefill *p = &s->step[i].prefill[k];
            size_t r = find_request(w, p->id, s->step[i].sched_ns);

            if (r == w->n || c->join[r].joined > -INFINITY)
                continue;
            bound(&c->join[r], s, i, first);
            first = false;
        }
    }
    return VT_OK;
}

/* ---- what all of them say --------------------------------------------- */

struct way { /* into the queue; milliseconds */
    double arrive, intake, intake_ktoken;
};

/* What is looked at, and from where on a bound says nothing: nothing takes that long.
 */
enum { N_ARRIVE = 13, N_INTAKE = 6, N_KTOKEN = 6 };
static const double ARRIVE_MS = 0.1, INTAKE_MS = 0.05, KTOKEN_MS = 0.1, LONG_MS = 3;

static struct way way_at(int i)
{
    return (struct way){ARRIVE_MS * (i % N_ARRIVE),
                        INTAKE_MS * (i / N_ARRIVE % N_INTAKE),
                        KTOKEN_MS * (i / N_ARRIVE / N_INTAKE)};
}

static double ready_after(const struct way *w, const struct join *j, double free)
{
    return fmax(j->arrival + w->arrive, free) + w->intake +
           w->intake_ktoken * j->ktokens;
}

static bool tells(const struct join *j)
{
    return j->joined > -INFINITY && !j->queued &&
           (j->missed > -INFINITY || j->joined - j->arrival < LONG_MS);
}

/* Requests of the capture that came into the queue between the call that went without
 * them and the one that took them. */
static size_t count_right(const struct capture *c, const struct way *w)
{
    double free = -INFINITY;
    size_t n = 0;

    for (size_t i = 0; i < c->n_joins; i++) {
        const struct join *j = &c->join[i];

        free = ready_after(w, j, free);
        n += tells(j) && j->missed < free && free <= j->joined;
    }
    return n;
}

static size_t count_telling(const struct vt_fit *f, size_t left_out)
{
    size_t n = 0;

    for (size_t k = 0; k < f->n; k++)
        for (size_t i = 0; capture_used(f, k, left_out) && i < f->capture[k].n_joins;
             i++)
            n += tells(&f->capture[k].join[i]);
    return n;
}

/* The middle of all ways that are right as often as any, but for what chance does. */
static struct way find_way(const struct vt_fit *f, size_t left_out)
{
    enum { N = N_ARRIVE * N_INTAKE * N_KTOKEN };
    size_t right[N], best = 0, n = 0;
    struct way sum = {0};
    double least;

    for (int i = 0; i < N; i++) {
        struct way w = way_at(i);

        right[i] = 0;
        for (size_t k = 0; k < f->n; k++)
            if (capture_used(f, k, left_out))
                right[i] += count_right(&f->capture[k], &w);
        best = right[i] > best ? right[i] : best;
    }
    least = (double)best - 0.5 * sqrt((double)(count_telling(f, left_out) - best + 1));
    for (int i = 0; i < N && best > 0; i++) {
        struct way w = way_at(i);

        if ((double)right[i] < least)
            continue;
        sum.arrive += w.arrive;
        sum.intake += w.intake;
        sum.intake_ktoken += w.intake_ktoken;
        n++;
    }
    if (n == 0)
        return sum;
    return (struct way){sum.arrive / (double)n, sum.intake / (double)n,
                        sum.intake_ktoken / (double)n};
}

/* After a rest: from ready to scheduled. Or, where it was ready before the last result
 * was handed out, from there. */
static int note_rests(const struct capture *c, const struct way *w, struct pairs *wake,
                      struct pairs *nap, struct vt_err *err)
{
    double free = -INFINITY;
    int rc = VT_OK;

    for (size_t i = 0; i < c->n_joins && rc == VT_OK; i++) {
        const struct join *j = &c->join[i];

        free = ready_after(w, j, free);
        if (isnan(j->rested) || j->joined < free)
            continue;
        if (free > j->rested)
            rc = pairs_add(wake, 0, j->joined - free, err);
        else
            rc = pairs_add(nap, 0, j->joined - j->rested, err);
    }
    return rc;
}

static double median(struct pairs *p, double none)
{
    double *y = malloc((p->n + 1) * sizeof(*y)), m = none;

    for (size_t i = 0; y && i < p->n; i++)
        y[i] = p->p[i].y;
    if (y && p->n > 0) {
        vt_sort_f64(y, p->n);
        m = vt_quantile(y, p->n, 50);
    }
    free(y);
    return m;
}

int arrive_costs(const struct vt_fit *f, size_t left_out, struct vt_step_params *p,
                 struct vt_err *err)
{
    /* Few logs show an engine that is asked again before it could rest. It sleeps for a
     * millisecond, and some time passes until it runs again. */
    static const double NAP_MS = 1.2;
    struct way w = find_way(f, left_out);
    struct pairs wake = {0}, nap = {0};
    int rc = VT_OK;

    for (size_t k = 0; k < f->n && rc == VT_OK; k++)
        if (capture_used(f, k, left_out))
            rc = note_rests(&f->capture[k], &w, &wake, &nap, err);
    p->host_arrive = 1e3 * w.arrive;
    p->host_intake = 1e3 * w.intake;
    p->host_intake_ktoken = 1e3 * w.intake_ktoken;
    p->host_wake = 1e3 * median(&wake, 0);
    p->host_nap = 1e3 * median(&nap, wake.n > 0 ? NAP_MS : 0);
    free(wake.p);
    free(nap.p);
    return rc;
}
