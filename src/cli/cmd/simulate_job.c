/* simulate_job.c - from flags to everything that a run needs. */
#include "cli/cmd/simulate.h"

/* ---- the workload ----------------------------------------------------- */

static int load_workload(struct simulate_job *j, const struct opt_args *a,
                         struct vt_err *err)
{
    static const char moved[] = ": --compare is with requests as they were measured";
    const struct simulate_options *o = a->options;
    struct vt_workload *w = &j->workload;
    int rc = traffic_open(&j->traffic, a, &o->traffic, TRAFFIC_PACED, err);

    if (rc != VT_OK)
        return rc;
    j->traffic.input.seed = o->seed;
    /* What was measured of a streamed one is not kept. */
    rc = vt_workload_read(w, &j->traffic.input, o->compare ? VT_WHOLE : VT_SHORT, err);
    if (rc != VT_OK)
        return rc;
    if (o->compare && ((rc = opt_refuse(a, &o->traffic.rate, moved, err)) ||
                       (rc = opt_refuse(a, &o->traffic.num_prompts, moved, err)) ||
                       (rc = opt_refuse(a, &o->traffic.max_concurrency, moved, err))))
        return rc;
    if (o->compare && !w->measured)
        return vt_fail(err, VT_EINPUT,
                       "%s: --compare needs a trace with measured times", w->source);
    j->seed = o->seed >= 0 ? (uint64_t)o->seed : w->seed;
    j->spec.workload = w;
    return o->compare ? vt_summary_measured(&j->measured, w, err) : VT_OK;
}

static int choose_arrivals(struct simulate_job *j, const struct simulate_options *o,
                           struct vt_err *err)
{
    struct vt_workload *w = &j->workload;
    enum vt_arrivals mode =
        o->arrivals >= 0 ? (enum vt_arrivals)o->arrivals : w->arrivals;

    j->spec.arrivals = mode;
    j->spec.concurrency = o->concurrency > 0 ? o->concurrency : w->concurrency;
    /* Requests that were to come at their own times and are now to keep so many in
     * flight: the first ones start together, as clients of a closed loop do. */
    j->spec.start_together =
        mode == VT_ARRIVALS_CLOSED && w->arrivals != VT_ARRIVALS_CLOSED;
    j->spec.held_to = mode == VT_ARRIVALS_RECORDED ? w->held_to : 0;
    w->arrivals = mode; /* what the report's meta line states */
    w->concurrency = j->spec.concurrency;
    if (mode == VT_ARRIVALS_CLOSED && j->spec.concurrency == 0)
        return vt_fail(err, VT_EINPUT, "--arrivals closed needs --concurrency");
    if (mode == VT_ARRIVALS_RECORDED && o->concurrency > 0)
        return vt_fail(err, VT_EINPUT,
                       "--concurrency needs --arrivals closed or session");
    return VT_OK;
}

/* A comparison is made by the clock that the trace's times are by. What was learned
 * from clients' times predicts those, and nothing else. */
static int choose_clock(struct simulate_job *j, const struct simulate_options *o,
                        struct vt_err *err)
{
    const struct vt_front *stated = &j->engine.profile.frontend;
    bool clients = j->engine.profile.clock == VT_CLOCK_CLIENT;
    enum vt_clock c = VT_CLOCK_ENGINE;

    if (clients && (o->frontend >= 0 ||
                    (o->clock >= 0 && VT_CLOCK_ENGINE + o->clock != VT_CLOCK_CLIENT)))
        return vt_fail(err, VT_EINPUT,
                       "the profile's times are by the client's clock: what the "
                       "frontend adds is part of them, and not known by itself");
    if (clients)
        c = VT_CLOCK_CLIENT;
    else if (o->clock >= 0)
        c = (enum vt_clock)(VT_CLOCK_ENGINE + o->clock);
    else if (o->compare && j->workload.meta.clock != VT_CLOCK_UNSTATED)
        c = j->workload.meta.clock;
    j->spec.clock = c;
    j->spec.frontend = o->frontend >= 0 ? vt_front_find(vt_front_names[o->frontend])
                       : stated->name   ? stated
                                        : vt_front_find(VT_DEFAULT_FRONT);
    return VT_OK;
}

static void choose_warmth(struct simulate_job *j, const struct simulate_options *o)
{
    if (o->warmed_for >= 0)
        j->spec.engine.warmed_for = (uint32_t)o->warmed_for;
    else if (o->compare)
        vt_engine_config_replay(&j->spec.engine, &j->workload);
}

/* ---- all of it ------------------------------------------------------- */

int simulate_job_open(struct simulate_job *j, const struct opt_args *a,
                      struct vt_err *err)
{
    const struct simulate_options *o = a->options;
    struct vt_engine_config *c = &j->spec.engine;
    int rc;

    *j = (struct simulate_job){0};
    if ((rc = simulate_fleet_check(a, &o->engine, &o->fleet, err)) ||
        (rc = load_workload(j, a, err)) || (rc = choose_arrivals(j, o, err)) ||
        (rc = engine_open(&j->engine, a, &o->engine, NULL, &j->workload.meta,
                          o->engine.tp, err)))
        return rc;
    *c = j->engine.config;
    c->compat = o->compat;
    if (c->compat == VT_COMPAT_BLIS) {
        c->async_scheduling = false; /* BLIS schedules when the last step is over */
        c->n_kv_groups = 0;
    }
    c->seed = j->seed;
    j->slo = o->slo.at;
    j->limited = o->slo.given;
    j->spec.model = j->engine.model;
    if ((rc = choose_clock(j, o, err)))
        return rc;
    choose_warmth(j, o);
    rc = vt_engine_config_check(c, err);
    return rc == VT_OK ? simulate_fleet_open(j, a, &o->engine, &o->fleet, err) : rc;
}

void simulate_job_close(struct simulate_job *j)
{
    vt_buf_free(&j->charts);
    vt_workload_free(&j->workload);
    traffic_close(&j->traffic);
    simulate_fleet_close(&j->fleet);
    engine_close(&j->engine);
}
