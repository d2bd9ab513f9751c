/* sim.c - whole workloads under a virtual clock. */
#include "lib/lib.h"

/* ---- what is simulated ------------------------------------------------------- */

int lib_site_open(struct lib_site *s, const struct vtwin_model *m,
                  const struct vtwin_sim_options *o, struct vt_err *err)
{
    int rc;

    *s = (struct lib_site){0};
    rc = lib_struct_in(&s->o, sizeof(s->o), o, "vtwin_sim_options", err);
    if (rc != VT_OK)
        return rc;
    rc = lib_engine_config(&s->engine, m, s->o.engine, err);
    if (rc != VT_OK)
        return rc;
    s->engine.seed = s->o.seed;
    if (!s->o.workload)
        s->o.workload = "default-workload";
    if (!s->o.routing)
        s->o.routing = "round-robin";
    if (s->o.instances > 1)
        s->fleet = (struct vt_fleet){
            .instances = s->o.instances,
            .routing = s->o.routing,
            .seed = s->o.seed,
        };
    return vt_routing_check(s->o.routing, err);
}

/* ---- what came of it ----------------------------------------------------------- */

static void copy_parts(double to[VTWIN_PARTS], const struct vt_stat *s)
{
    to[VTWIN_MEAN] = s->mean;
    to[VTWIN_P50] = s->p50;
    to[VTWIN_P90] = s->p90;
    to[VTWIN_P95] = s->p95;
    to[VTWIN_P99] = s->p99;
}

void lib_summary_out(struct vtwin_summary *theirs, const struct vt_summary *s,
                     const struct vtwin_model *m)
{
    struct vt_outside beyond[VT_OUTSIDE];
    struct vtwin_summary own = {
        .requests = s->requests,
        .prompt_tokens = s->prompt_tokens,
        .output_tokens = s->output_tokens,
        .cached_tokens = s->cached_tokens,
        .preemptions = s->preemptions,
        .steps = s->steps,
        .duration_s = s->duration_s,
        .requests_per_s = s->req_per_s,
        .output_tokens_per_s = s->output_tok_per_s,
        .prefix_hit_rate = s->prefix_hit_rate,
        .kv_usage_peak = s->kv_usage_peak,
        .most_step_tokens = s->extent.step_tokens,
        .most_running = s->extent.running,
        .most_context_tokens = s->extent.context,
        .outside = vt_outside(&s->extent, &m->latency->known, beyond) > 0,
    };

    copy_parts(own.ttft_ms, &s->ttft);
    copy_parts(own.tpot_ms, &s->tpot);
    copy_parts(own.itl_ms, &s->itl);
    copy_parts(own.e2e_ms, &s->e2e);
    copy_parts(own.queue_ms, &s->queue);
    lib_struct_out(theirs, &own, sizeof(own));
}

static int hand_out_served(void *user, const struct vt_served *s, struct vt_err *err)
{
    const struct vtwin_sim_options *o = user;
    vt_ns e2e = s->ttft_ns;
    struct vtwin_served served;

    (void)err;
    for (uint32_t i = 0; i < s->n_gaps; i++)
        e2e += s->gap[i];
    served = (struct vtwin_served){
        VTWIN_INIT(served),
        .id = s->req->id,
        .arrival_ms = (double)s->arrival_ns / 1e6,
        .ttft_ms = (double)s->ttft_ns / 1e6,
        .e2e_ms = (double)e2e / 1e6,
        .queue_ms = (double)s->queue_ns / 1e6,
        .prompt_tokens = s->req->prompt_tokens,
        .output_tokens = s->output_tokens,
        .cached_tokens = s->cached_tokens,
        .preemptions = s->preemptions,
    };
    o->served(o->user, &served);
    return VT_OK;
}

/* ---- the run --------------------------------------------------------------------- */

static int run_workload(const struct vtwin_model *m, struct lib_site *s,
                        const struct vt_workload *w, enum vt_arrivals arrivals,
                        struct vt_summary *out, struct vt_err *err)
{
    struct vt_sim_sink sink = {.user = &s->o, .request = hand_out_served};
    struct vt_sim_spec spec = {
        .workload = w,
        .engine = s->engine,
        .model = m->latency,
        .arrivals = arrivals,
        .concurrency = w->concurrency,
        .held_to = w->held_to,
        .sink = s->o.served ? &sink : NULL,
        .fleet = s->fleet.instances > 0 ? &s->fleet : NULL,
    };

    return vt_sim_run(&spec, out, err);
}

/* As the workload states it, or at the rate that is asked for. */
static int run_site(const struct vtwin_model *m, struct lib_site *s,
                    struct vt_summary *out, struct vt_err *err)
{
    struct vt_trial t = {
        .workload = s->o.workload,
        .rate = s->o.rate,
        .requests = s->o.requests,
        .seed = s->o.seed,
    };
    struct vt_workload w = {0};
    int rc;

    if (!(s->o.rate > 0)) {
        if ((rc = vt_workload_open(&w, s->o.workload, s->o.seed, VT_SHORT, err)))
            return rc;
        rc = run_workload(m, s, &w, w.arrivals, out, err);
        vt_workload_free(&w);
        return rc;
    }
    if ((rc = vt_trials_new(&t.kept, err)))
        return rc;
    rc = vt_trial_workload(&t, &w, err);
    if (rc == VT_OK)
        rc = run_workload(m, s, &w, VT_ARRIVALS_RECORDED, out, err);
    vt_trial_workload_free(&w);
    vt_trials_free(t.kept);
    return rc;
}

int vtwin_simulate(const struct vtwin_model *m, const struct vtwin_sim_options *o,
                   struct vtwin_summary *out, struct vtwin_error *err)
{
    struct vt_err why = {0};
    struct vt_summary s = {0};
    struct lib_site site;
    int rc = lib_site_open(&site, m, o, &why);

    if (rc == VT_OK)
        rc = run_site(m, &site, &s, &why);
    if (rc == VT_OK)
        lib_summary_out(out, &s, m);
    return lib_end(err, rc, &why);
}
