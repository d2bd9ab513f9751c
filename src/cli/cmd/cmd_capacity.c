/* cmd_capacity.c - vtwin capacity: the highest request rate within latency limits. */
#include "cli/cmd/capacity.h"
#include "cli/cmd/simulate.h"
#include "cli/ranks.h"
#include "live/live.h"

struct capacity_options {
    const char *workload, *trace, *csv, *plot;
    double tolerance;
    struct trial_options trial;
    struct engine_options engine;
    struct fleet_options fleet;
};

#define OPT_T struct capacity_options
static const struct opt_row rows[] = {
    OPT_TEXT(workload, "workload", "NAME|FILE", "default-workload",
             "a workload file, or multiturn-starters"),
    OPT_TEXT(trace, "trace", "FILE", NULL,
             "requests of a trace or CSV, at other rates"),
    OPT_F64(tolerance, "tolerance", "SHARE", 1e-4, 1, "0.02", "how close to search"),
    OPT_TEXT(csv, "csv", "FILE", NULL, "write the table as CSV"),
    OPT_TEXT(plot, "plot", "FILE", NULL, "draw it: .png, .svg or .pdf"),
    {0},
};
static const struct opt_block blocks[] = {
    OPT_ROWS(rows),
    OPT_BLOCK(trial_rows, struct capacity_options, trial),
    ENGINE_BLOCKS(struct capacity_options, engine),
    OPT_BLOCK(fleet_rows, struct capacity_options, fleet),
    {0},
};

struct capacity_job {
    struct simulate_job one; /* engine and fleet; its workload is borrowed */
    struct target_job target;
    struct vt_capacity_spec spec;
};

/* ---- flags --------------------------------------------------------------------- */

/* A trace may say of which engine it is. */
static int open_trial(struct capacity_job *j, const struct opt_args *a,
                      struct vt_err *err)
{
    const struct capacity_options *o = a->options;
    struct simulate_job *one = &j->one;
    struct vt_trial *t = &j->spec.trial;
    struct vt_workload w;
    int rc = vt_trials_new(&t->kept, err);

    if (rc != VT_OK)
        return rc;
    t->rate = 1;
    rc = vt_trial_workload(t, &w, err);
    one->workload.meta = w.meta;
    if (rc || (rc = engine_open(&one->engine, a, &o->engine, NULL, &w.meta, err)))
        goto out;
    one->spec.engine = one->engine.config;
    one->spec.model = one->engine.model;
    if ((rc = vt_engine_config_check(&one->spec.engine, err)) ||
        (rc = simulate_fleet_open(one, a, &o->engine, &o->fleet, err)))
        goto out;
    t->engine = one->spec.engine;
    t->model = one->spec.model;
    t->fleet = one->spec.fleet;
out:
    vt_trial_workload_free(&w);
    return rc;
}

static int open_job(struct capacity_job *j, const struct opt_args *a,
                    struct vt_err *err)
{
    const struct capacity_options *o = a->options;
    struct vt_capacity_spec *s = &j->spec;
    int rc = opt_exclude(a, &o->workload, &o->trace, err);

    *s = (struct vt_capacity_spec){
        .trial = {.workload = o->trace ? o->trace : o->workload,
                  .requests = o->trial.requests,
                  .seed = (uint64_t)o->trial.seed},
        .slo = o->trial.slo,
        .rate = o->trial.rates.at,
        .n_rates = o->trial.rates.n,
        .tolerance = o->tolerance,
        .seeds = o->trial.seeds,
        .workers = o->trial.jobs,
    };
    if (rc || (rc = simulate_fleet_check(a, &o->engine, &o->fleet, err)) ||
        (rc = open_trial(j, a, err)) ||
        (rc = target_open(&j->target, a, &o->trial, &s->slo, err)))
        return rc;
    if (!j->target.on)
        return cli_ranks_join(err);
    s->trial.measure = vt_target_measure; /* a live server times the trials */
    s->trial.measure_user = &j->target.target;
    s->workers = 1;
    j->one.engine.timed_by = j->target.load.base_url;
    return VT_OK;
}

/* ---- the run --------------------------------------------------------------------- */

static int find_capacity(const struct opt_args *a, struct vt_err *err)
{
    const struct capacity_options *o = a->options;
    struct vt_capacity found = {0};
    struct capacity_job j = {0};
    struct capacity_answer answer = {&found, &j.spec, NULL, NULL};
    struct vt_buf b = {0};
    vt_ns began = vt_wall_ns();
    int rc = open_job(&j, a, err);

    if (rc || (rc = vt_capacity_find(&found, &j.spec, err)))
        goto out;
    answer.timed_by = j.one.engine.timed_by;
    answer.known = j.target.on ? NULL : &j.spec.trial.model->known;
    if (answer.known && !o->trial.quiet)
        engine_warn_extent(&found.extent, answer.known, "");
    if ((o->csv && (rc = capacity_csv(&answer, o->csv, err))) ||
        (o->plot && (rc = capacity_plot(&answer, o->plot, err))))
        goto out;
    if (o->trial.json)
        capacity_json(&b, &answer);
    else
        capacity_table(&b, &answer);
    rc = cli_print(&b, err);
    if (rc == VT_OK)
        trial_tell_time(&o->trial, found.trials, "trials", began);
out:
    vt_capacity_free(&found);
    target_close(&j.target);
    simulate_fleet_close(&j.one.fleet);
    engine_close(&j.one.engine);
    vt_trials_free(j.spec.trial.kept);
    return rc;
}

static const char *const examples[] = {
    "./run capacity",
    "./run capacity --workload multiturn-starters --requests 100 --rates 1,2,4 "
    "--seeds 1",
    NULL,
};

const struct opt_command cmd_capacity = {
    .name = "capacity",
    .summary = "find the highest request rate within latency limits",
    .usage = "[--workload NAME|FILE | --trace FILE] [FLAGS]",
    .about =
        "Simulates a workload at one rate after another, each with several seeds, and\n"
        "says how many requests per second can be borne before a limit is broken: by\n"
        "doubling or halving, then by bisection.",
    .blocks = blocks,
    .size = sizeof(struct capacity_options),
    .examples = examples,
    .run = find_capacity,
};
