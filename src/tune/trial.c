/* trial.c - one simulation at one rate. */
#include <math.h>
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

/* ---- what is borne ------------------------------------------------------------ */

static void growth_start(struct growth *g, const struct vt_workload *w)
{
    *g = (struct growth){.span = w->req[w->n - 1].arrival_ns - w->req[0].arrival_ns};
    for (size_t i = 0; i < w->n; i++)
        g->mean_tokens += w->req[i].output_tokens;
    g->mean_tokens /= (double)w->n;
}

int growth_add(void *user, const struct vt_served *s, struct vt_err *err)
{
    struct growth *g = user;
    vt_ns quarter = g->span / 4, decode = 0;
    struct growth_quarter *q = &g->q[s->arrival_ns >= 3 * quarter];

    (void)err;
    if (s->arrival_ns < 2 * quarter)
        return VT_OK;
    for (uint32_t i = 0; i < s->n_gaps; i++)
        decode += s->gap[i];
    q->n++;
    q->arrived += (double)s->arrival_ns / 1e9;
    q->waited += (double)s->ttft_ns / 1e9;
    if (s->output_tokens > 1)
        q->decoded +=
            (double)decode / 1e9 / (s->output_tokens - 1) * (g->mean_tokens - 1);
    return VT_OK;
}

/* Arrivals at `rate` of which each takes g seconds longer per second leave at
 * rate / (1 + g). */
double growth_rate(const struct growth *g, double rate)
{
    const struct growth_quarter *a = &g->q[0], *b = &g->q[1];
    double apart, longer;

    if (!(a->n > 0 && b->n > 0))
        return rate;
    apart = b->arrived / b->n - a->arrived / a->n;
    longer = fmax(0, b->waited / b->n - a->waited / a->n) +
             fmax(0, b->decoded / b->n - a->decoded / a->n);
    return apart > 0 ? rate / (1 + longer / apart) : rate;
}

/* ---- a run ---------------------------------------------------------- */

int trial_simulate(const struct vt_trial *t, const struct vt_workload *w,
                   const struct vt_fleet *fleet, const struct vt_sim_sink *sink,
                   struct vt_summary *out, struct vt_err *err)
{
    struct vt_sim_spec spec = {
        .workload = w,
        .engine = t->engine,
        .model = t->model,
        .arrivals = VT_ARRIVALS_RECORDED,
        .fleet = fleet,
        .sink = sink,
    };

    spec.engine.seed = t->seed;
    return vt_sim_run(&spec, out, err);
}

static int simulate_and_measure(const struct vt_trial *t, struct vt_summary *out,
                                double *achieved, struct vt_err *err)
{
    struct vt_fleet fleet = t->fleet ? *t->fleet : (struct vt_fleet){0};
    struct vt_workload w;
    struct growth g;
    struct vt_sim_sink sink = {.user = &g, .request = growth_add};
    int rc = vt_trial_workload(t, &w, err);

    if (rc != VT_OK)
        return rc;
    fleet.seed = t->seed;
    growth_start(&g, &w);
    rc = trial_simulate(t, &w, t->fleet ? &fleet : NULL, achieved ? &sink : NULL, out,
                        err);
    out->workload = t->workload;
    out->seed = t->seed;
    if (rc == VT_OK && achieved)
        *achieved = growth_rate(&g, t->rate);
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
