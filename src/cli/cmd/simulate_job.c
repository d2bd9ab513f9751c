/* simulate_job.c - from flags to everything that a run needs. */
#include "cli/cmd/simulate.h"

/* ---- the workload ----------------------------------------------------- */

static int one_input(const struct cli_args *a, struct vt_err *err)
{
    static const char *const names[] = {"workload", "trace", "requests"};
    const char *first = NULL;

    for (size_t i = 0; i < VT_COUNT(names); i++) {
        if (!cli_has(a, names[i]))
            continue;
        if (first)
            return vt_fail(err, VT_EINPUT, "--%s and --%s: give one of them", first,
                           names[i]);
        first = names[i];
    }
    return VT_OK;
}

static int load_builtin(struct vt_workload *w, int64_t seed, struct vt_err *err)
{
    const struct vt_builtin *f = vt_builtin_find(VT_DEFAULT_WORKLOAD);

    if (!f)
        return vt_fail(err, VT_EINPUT,
                       "no built-in workload; give --workload, --trace or "
                       "--requests");
    return vt_workload_generate_text(w, f->name, f->text, f->len, seed, err);
}

static int load_workload(struct simulate_job *j, const struct cli_args *a,
                         struct vt_err *err)
{
    int64_t seed = -1;
    int rc = one_input(a, err);

    if (rc == VT_OK)
        rc = cli_i64(a, "seed", 0, INT64_MAX, &seed, err);
    if (rc != VT_OK)
        return rc;
    if (cli_has(a, "workload"))
        rc = vt_workload_generate(&j->workload, cli_str(a, "workload"), seed, err);
    else if (cli_has(a, "trace"))
        rc = vt_trace_load(&j->workload, cli_str(a, "trace"), err);
    else if (cli_has(a, "requests"))
        rc = vt_requests_load(&j->workload, cli_str(a, "requests"), err);
    else
        rc = load_builtin(&j->workload, seed, err);
    if (rc != VT_OK)
        return rc;
    if (cli_has(a, "compare") && !j->workload.measured)
        return vt_fail(err, VT_EINPUT,
                       "%s: --compare needs a trace with measured times",
                       j->workload.source);
    j->seed = seed >= 0 ? (uint64_t)seed : j->workload.seed;
    j->spec.workload = &j->workload;
    return cli_has(a, "compare") ? vt_summary_measured(&j->measured, &j->workload, err)
                                 : VT_OK;
}

/* Requests that were to come at their own times and are now to keep `concurrency` in
 * flight: the first ones start together, as clients of a closed loop do. */
static void start_together(struct vt_workload *w, uint32_t concurrency)
{
    for (size_t i = 1; i < w->n && i < concurrency; i++)
        w->req[i].arrival_ns = w->req[0].arrival_ns;
}

static int choose_arrivals(struct simulate_job *j, const struct cli_args *a,
                           struct vt_err *err)
{
    int mode = (int)j->workload.arrivals;
    int rc = cli_word(a, "arrivals", &mode, err);

    j->spec.concurrency = j->workload.concurrency;
    if (rc == VT_OK)
        rc = cli_u32(a, "concurrency", 1, UINT32_MAX, &j->spec.concurrency, err);
    if (rc != VT_OK)
        return rc;
    j->spec.arrivals = (enum vt_arrivals)mode;
    if (mode == VT_ARRIVALS_CLOSED && j->workload.arrivals != VT_ARRIVALS_CLOSED)
        start_together(&j->workload, j->spec.concurrency);
    j->workload.arrivals = j->spec.arrivals; /* what the report's meta line states */
    j->workload.concurrency = j->spec.concurrency;
    if (mode == VT_ARRIVALS_CLOSED && j->spec.concurrency == 0)
        return vt_fail(err, VT_EINPUT, "--arrivals closed needs --concurrency");
    if (mode == VT_ARRIVALS_RECORDED && cli_has(a, "concurrency"))
        return vt_fail(err, VT_EINPUT,
                       "--concurrency needs --arrivals closed or session");
    return VT_OK;
}

/* ---- the engine ------------------------------------------------------- */

static int configure(struct simulate_job *j, const struct cli_args *a,
                     struct vt_err *err)
{
    struct vt_engine_config *c = &j->spec.engine;
    int compat = VT_COMPAT_VLLM, rc;

    rc = engine_job_open(&j->engine, a, &j->workload.meta, err);
    if (rc == VT_OK)
        rc = cli_word(a, "compat", &compat, err);
    if (rc != VT_OK)
        return rc;
    *c = j->engine.config;
    c->compat = (enum vt_compat)compat;
    if (c->compat == VT_COMPAT_BLIS)
        c->async_scheduling = false; /* BLIS schedules when the last step is over */
    c->seed = j->seed;
    j->spec.model = j->engine.model;
    j->timed_by = j->engine.timed_by;
    rc = vt_engine_config_check(c, err);
    return rc == VT_OK ? simulate_fleet_open(j, a, err) : rc;
}

/* Bad numbers are told before anything large is read. */
static int check_flags(const struct cli_args *a, struct vt_err *err)
{
    uint32_t concurrency = 0;
    int arrivals = 0, compat = 0;
    int rc = engine_job_check(a, err);

    if (rc == VT_OK)
        rc = cli_word(a, "compat", &compat, err);
    if (rc == VT_OK)
        rc = cli_word(a, "arrivals", &arrivals, err);
    if (rc == VT_OK)
        rc = cli_u32(a, "concurrency", 1, UINT32_MAX, &concurrency, err);
    return rc == VT_OK ? simulate_fleet_check(a, err) : rc;
}

int simulate_job_open(struct simulate_job *j, const struct cli_args *a,
                      struct vt_err *err)
{
    int rc;

    *j = (struct simulate_job){0};
    rc = check_flags(a, err);
    if (rc == VT_OK)
        rc = load_workload(j, a, err);
    if (rc == VT_OK)
        rc = choose_arrivals(j, a, err);
    if (rc == VT_OK)
        rc = configure(j, a, err);
    return rc;
}

void simulate_job_close(struct simulate_job *j)
{
    vt_workload_free(&j->workload);
    simulate_fleet_close(&j->fleet);
    engine_job_close(&j->engine);
}
