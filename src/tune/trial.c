/* trial.c - one simulation at one rate. */
#include <stdlib.h>

#include "tune/trial.h"

int vt_trial_workload(const struct vt_trial *t, struct vt_workload *out,
                      struct vt_err *err)
{
    const struct vt_workload *w;
    int rc;

    *out = (struct vt_workload){0};
    if (!(t->rate > 0 && t->rate <= 1e9))
        return vt_fail(err, VT_EINPUT, "rate %g: not between 0 and 1e9", t->rate);
    rc = trial_load(t, &w, err);
    return rc == VT_OK ? trial_layout(out, w, t, err) : rc;
}

void vt_trial_workload_free(struct vt_workload *w)
{
    free(w->req);
    w->req = NULL;
}

/* ---- a run ---------------------------------------------------------- */

struct vt_sim_spec trial_spec(const struct vt_trial *t, const struct vt_workload *w,
                              const struct vt_fleet *fleet,
                              const struct vt_sim_sink *sink)
{
    struct vt_sim_spec spec = {
        .workload = w,
        .engine = t->engine,
        .model = t->model,
        .arrivals = VT_ARRIVALS_RECORDED,
        .held_to = t->concurrency,
        .fleet = fleet,
        .sink = sink,
    };

    spec.engine.seed = t->seed;
    return spec;
}

/* What a run is watched for. */
struct run_watch {
    struct backlog backlog;
    struct limit_watch limits;
    vt_ns from, until; /* arrivals between are judged */
    bool gives_up;
    uint64_t served;
    vt_ns last; /* when the last of them ended */
    const char *hopeless;
};

static int on_request(void *user, const struct vt_served *s, struct vt_err *err)
{
    struct run_watch *w = user;
    vt_ns due = s->req->arrival_ns; /* whom the client keeps is behind as well */
    vt_ns e2e = served_e2e(s);
    const char *broken = NULL;

    w->served++;
    w->last = s->arrival_ns + e2e;
    backlog_add(&w->backlog, due, w->last);
    if (w->gives_up && due >= w->from && due < w->until)
        broken = watch_add(&w->limits, s, e2e);
    if (!broken)
        return VT_OK;
    w->hopeless = broken;
    return vt_fail(err, VT_ECHECK, "%s is above its limit", broken);
}

/* Stages are judged by as many of each as of any other: one round, two thirds of it at
 * the beginning, is not. Where rounds are left in pairs, half of them are set against
 * the others. */
static void watch_rounds(struct run_watch *x, vt_ns span, uint32_t rounds)
{
    vt_ns round = span / rounds;

    x->from = round / 3 * 2;
    x->until = x->from + round * (rounds - 1);
    x->backlog = (struct backlog){.from = x->from, .part = (x->until - x->from) / 2};
}

/* The first arrivals find an empty engine, and the last leave one behind. */
static void watch_run(struct run_watch *x, const struct vt_trial *t,
                      const struct vt_workload *w)
{
    vt_ns span = w->req[w->n - 1].arrival_ns - w->req[0].arrival_ns;
    uint32_t rounds = trial_rounds(w, t);
    size_t judged = 0;

    *x = (struct run_watch){
        .backlog = backlog_of(span), .until = VT_NEVER, .gives_up = t->give_up != NULL};
    if (rounds > 1) {
        watch_rounds(x, span, rounds);
    } else if (t->go_on > 0) {
        x->from = span / 8;
        x->until = span - span / 16;
    }
    for (size_t i = 0; i < w->n; i++)
        judged += w->req[i].arrival_ns >= x->from && w->req[i].arrival_ns < x->until;
    if (t->give_up)
        watch_start(&x->limits, t->give_up, judged);
}

/* A run that was given up has come to where `last` is. */
static double borne_rate(const struct run_watch *x, const struct vt_workload *w,
                         double rate)
{
    size_t arrived = 0;

    if (!x->hopeless)
        return backlog_rate(&x->backlog, rate);
    while (arrived < w->n && w->req[arrived].arrival_ns <= x->last)
        arrived++;
    return rate * (double)x->served / (double)arrived;
}

static int simulate_and_measure(const struct vt_trial *t, struct vt_summary *out,
                                double *achieved, struct vt_err *err)
{
    struct vt_fleet fleet = t->fleet ? *t->fleet : (struct vt_fleet){0};
    struct vt_workload w = {0};
    struct run_watch x;
    struct vt_sim_sink sink = {.user = &x, .request = on_request};
    struct vt_sim_spec spec =
        trial_spec(t, &w, t->fleet ? &fleet : NULL, achieved ? &sink : NULL);
    int rc = vt_trial_workload(t, &w, err);

    if (rc != VT_OK)
        return rc;
    fleet.seed = t->seed;
    watch_run(&x, t, &w);
    spec.count_from = x.from;
    spec.count_until = x.until;
    rc = vt_sim_run(&spec, out, err);
    if (rc == VT_ECHECK && x.hopeless)
        rc = VT_OK;
    out->workload = t->workload;
    out->seed = t->seed;
    if (rc == VT_OK && achieved)
        *achieved = borne_rate(&x, &w, t->rate);
    vt_trial_workload_free(&w);
    return rc;
}

int vt_trial_measure(const struct vt_trial *t, struct vt_summary *out, double *achieved,
                     struct vt_err *err)
{
    struct vt_trial own = *t;
    int rc = VT_OK;

    *out = (struct vt_summary){0};
    if (!t->kept)
        rc = vt_trials_new(&own.kept, err);
    if (rc == VT_OK)
        rc = t->measure ? t->measure(t->measure_user, &own, out, achieved, err)
                        : simulate_and_measure(&own, out, achieved, err);
    if (!t->kept)
        vt_trials_free(own.kept);
    return rc;
}

int vt_trial_run(const struct vt_trial *t, struct vt_summary *out, struct vt_err *err)
{
    return vt_trial_measure(t, out, NULL, err);
}
