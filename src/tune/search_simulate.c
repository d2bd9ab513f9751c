/* search_simulate.c - one simulation within limits; it ends when it can't keep them: it
 * could say nothing else, so results stay as they are. */
#include "tune/trial.h"
#include "tune/tune_search.h"

struct watch {
    struct limit_watch limits;
    bool stop_early;
    const char *broken;
};

static int on_request(void *user, const struct vt_served *s, struct vt_err *err)
{
    struct watch *w = user;
    const char *broken = watch_add(&w->limits, s, served_e2e(s));

    if (!broken || !w->stop_early)
        return VT_OK;
    w->broken = broken;
    return vt_fail(err, VT_ECHECK, "%s is above its limit", broken);
}

/* At a live server, which ends hopeless runs itself. */
static int measure_at_server(struct search_outcome *r, const struct vt_trial *t,
                             const struct vt_slo *slo, struct vt_err *err)
{
    const struct vt_target *x = t->measure_user;
    int rc;

    *r = (struct search_outcome){0};
    rc = vt_trial_run(t, &r->s, err);
    r->good = x->good;
    r->broken = vt_slo_broken(slo, &r->s, NULL);
    return rc;
}

int search_simulate(struct search_outcome *r, const struct vt_trial *t,
                    const struct vt_slo *slo, bool stop_early, struct vt_err *err)
{
    struct watch watch = {.stop_early = stop_early};
    struct vt_sim_sink sink = {.user = &watch, .request = on_request};
    struct vt_workload w = {0};
    struct vt_sim_spec spec = trial_spec(t, &w, t->fleet, &sink);
    int rc;

    if (t->measure)
        return measure_at_server(r, t, slo, err);
    *r = (struct search_outcome){0};
    rc = vt_trial_workload(t, &w, err);
    if (rc != VT_OK)
        return rc;
    watch_start(&watch.limits, slo, w.n);
    rc = vt_sim_run(&spec, &r->s, err);
    vt_trial_workload_free(&w);
    r->good = watch.limits.good;
    r->hopeless = watch.broken != NULL;
    if (r->hopeless) {
        r->s = (struct vt_summary){0};
        rc = VT_OK;
    }
    r->broken = r->hopeless ? watch.broken : vt_slo_broken(slo, &r->s, NULL);
    return rc;
}
