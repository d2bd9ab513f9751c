/* cmd_capacity.c - vtwin capacity: the highest request rate within latency limits. */
#include <stdlib.h>
#include <unistd.h>

#include "cli/cmd/capacity.h"
#include "cli/cmd/simulate.h"
#include "cli/cmd/tune_target.h"
#include "cli/ranks.h"
#include "live/live.h"

#define DEFAULT_WORKLOAD "default-workload"

enum { MAX_RATES = 256 };

static const struct cli_option options[] = {
    {"workload", CLI_VALUE, "NAME|FILE", DEFAULT_WORKLOAD,
     "a workload file, or multiturn-starters", NULL},
    {"trace", CLI_VALUE, "FILE", NULL, "requests of a trace or CSV, at other rates",
     NULL},
    {"requests", CLI_VALUE, "N", "all", "the first so many of them", NULL},
    CLI_MODEL_OPTIONS,
    {"slo-ttft-p99", CLI_VALUE, "MS", "1000", "limit; 0: none", NULL},
    {"slo-tpot-p99", CLI_VALUE, "MS", "60", "limit; 0: none", NULL},
    {"slo-itl-p99", CLI_VALUE, "MS", "0", "limit; 0: none", NULL},
    {"slo-e2e-p99", CLI_VALUE, "MS", "0", "limit; 0: none", NULL},
    {"rates", CLI_VALUE, "LIST", "searched for", "try these: 0.5,1,1.5", NULL},
    {"seeds", CLI_VALUE, "N", "3", "runs of each rate", NULL},
    {"seed", CLI_VALUE, "N", "1", "the first of them", NULL},
    {"tolerance", CLI_VALUE, "SHARE", "0.02", "how close to search", NULL},
    {"jobs", CLI_VALUE, "N", "all cores", "processes; the answer is the same", NULL},
    CLI_ENGINE_OPTIONS,
    CLI_TARGET_OPTIONS,
    SIMULATE_FLEET_OPTIONS,
    {"json", CLI_FLAG, NULL, NULL, "print JSON instead of a table", NULL},
    {"csv", CLI_VALUE, "FILE", NULL, "write the table as CSV", NULL},
    {"plot", CLI_VALUE, "FILE", NULL, "draw it: .png, .svg or .pdf", NULL},
    {"quiet", CLI_FLAG, NULL, NULL, "no word on how long it took", NULL},
    {0},
};

struct capacity_job {
    struct simulate_job one; /* engine and fleet; its workload is borrowed */
    struct vt_trials *kept;
    double rate[MAX_RATES];
    struct vt_capacity_spec spec;
};

/* ---- flags --------------------------------------------------------------------- */

/* Numbers with commas between them, ascending. */
static int read_rates(struct capacity_job *j, const char *text, struct vt_err *err)
{
    size_t n = 0;

    while (text != NULL) {
        const char *comma = strchr(text, ',');
        size_t len = comma ? (size_t)(comma - text) : strlen(text);
        double v;

        if (n == MAX_RATES || !vt_parse_f64(text, len, &v) || !(v > 0 && v <= 1e6) ||
            (n > 0 && v <= j->rate[n - 1]))
            return vt_fail(err, VT_EINPUT,
                           "--rates: '%.*s' is not a rate above the one before it (at "
                           "most %d, up to 1e6)",
                           (int)len, text, MAX_RATES);
        j->rate[n++] = v;
        text = comma ? comma + 1 : NULL;
    }
    j->spec.rate = j->rate;
    j->spec.n_rates = n;
    return VT_OK;
}

static int read_limits(struct vt_slo *slo, const struct cli_args *a, struct vt_err *err)
{
    const struct {
        const char *name;
        double *to;
    } row[] = {
        {"slo-ttft-p99", &slo->ttft_p99},
        {"slo-tpot-p99", &slo->tpot_p99},
        {"slo-itl-p99", &slo->itl_p99},
        {"slo-e2e-p99", &slo->e2e_p99},
    };
    int rc = VT_OK;

    *slo = (struct vt_slo){.ttft_p99 = 1000, .tpot_p99 = 60};
    for (size_t i = 0; i < VT_COUNT(row) && rc == VT_OK; i++)
        rc = cli_f64(a, row[i].name, 0, 1e9, row[i].to, err);
    return rc;
}

static int read_flags(struct capacity_job *j, const struct cli_args *a,
                      struct vt_err *err)
{
    struct vt_capacity_spec *s = &j->spec;
    int64_t seed = 1;
    int rc = read_limits(&s->slo, a, err);

    if (cli_has(a, "workload") && cli_has(a, "trace"))
        return vt_fail(err, VT_EINPUT, "--workload and --trace: give one of them");
    s->seeds = 3;
    s->tolerance = 0.02;
    s->trial.workload =
        cli_str_or(a, "trace", cli_str_or(a, "workload", DEFAULT_WORKLOAD));
    if (rc == VT_OK && cli_has(a, "rates"))
        rc = read_rates(j, cli_str(a, "rates"), err);
    if (rc == VT_OK)
        rc = cli_u32(a, "seeds", 1, 1000, &s->seeds, err);
    if (rc == VT_OK)
        rc = cli_u32(a, "requests", 2, UINT32_MAX, &s->trial.requests, err);
    if (rc == VT_OK)
        rc = cli_u32(a, "jobs", 1, 4096, &s->workers, err);
    if (rc == VT_OK)
        rc = cli_f64(a, "tolerance", 1e-4, 1, &s->tolerance, err);
    if (rc == VT_OK)
        rc = cli_i64(a, "seed", 0, INT64_MAX - 1000, &seed, err);
    s->trial.seed = (uint64_t)seed;
    if (rc == VT_OK)
        rc = engine_job_check(a, err);
    return rc == VT_OK ? simulate_fleet_check(a, err) : rc;
}

static int open_engine(struct capacity_job *j, const struct cli_args *a,
                       struct vt_err *err)
{
    struct simulate_job *one = &j->one;
    int rc = engine_job_open(&one->engine, a, &one->workload.meta, err);

    if (rc != VT_OK)
        return rc;
    one->spec.engine = one->engine.config;
    one->spec.model = one->engine.model;
    one->timed_by = one->engine.timed_by;
    rc = vt_engine_config_check(&one->spec.engine, err);
    return rc == VT_OK ? simulate_fleet_open(one, a, err) : rc;
}

/* A trace may say of which engine it is. */
static int open_trial(struct capacity_job *j, const struct cli_args *a,
                      struct vt_err *err)
{
    struct vt_trial *t = &j->spec.trial;
    struct vt_workload w;
    int rc;

    t->kept = j->kept;
    t->rate = 1;
    rc = vt_trial_workload(t, &w, err);
    if (rc == VT_OK) {
        j->one.workload.meta = w.meta;
        rc = open_engine(j, a, err);
    }
    vt_trial_workload_free(&w);
    t->engine = j->one.spec.engine;
    t->model = j->one.spec.model;
    t->fleet = j->one.spec.fleet;
    return rc;
}

static int open_job(struct capacity_job *j, const struct cli_args *a,
                    struct vt_err *err)
{
    int rc;

    *j = (struct capacity_job){0};
    rc = read_flags(j, a, err);
    if (rc == VT_OK)
        rc = vt_trials_new(&j->kept, err);
    return rc == VT_OK ? open_trial(j, a, err) : rc;
}

static void close_job(struct capacity_job *j)
{
    simulate_fleet_close(&j->one.fleet);
    engine_job_close(&j->one.engine);
    vt_trials_free(j->kept);
}

/* ---- the run --------------------------------------------------------------------- */

static int show(const struct capacity_answer *answer, const struct cli_args *a,
                struct vt_err *err)
{
    struct vt_buf b = {0};
    int rc = VT_OK;

    if (cli_has(a, "csv"))
        rc = capacity_csv(answer, cli_str(a, "csv"), err);
    if (rc == VT_OK && cli_has(a, "plot"))
        rc = capacity_plot(answer, cli_str(a, "plot"), err);
    if (rc != VT_OK)
        return rc;
    if (cli_has(a, "json"))
        capacity_json(&b, answer);
    else
        capacity_table(&b, answer);
    rc = cli_print(&b, err);
    vt_buf_free(&b);
    return rc;
}

/* A live server times the trials then. */
static int open_target(struct target_job *t, struct capacity_job *j,
                       const struct cli_args *a, struct vt_err *err)
{
    int rc = target_job_open(t, a, &j->spec.slo, err);

    target_job_use(t, &j->spec.trial, &j->spec.workers);
    if (t->on)
        j->one.timed_by = t->load.base_url;
    return rc;
}

static int run(const struct cli_args *a, struct vt_err *err)
{
    struct capacity_job j = {0};
    struct target_job target = {0};
    struct vt_capacity found = {0};
    vt_ns began = vt_wall_ns();
    double took;
    int rc = cli_operands(a, &cmd_capacity, 0, 0, err);

    if (rc == VT_OK)
        rc = open_job(&j, a, err);
    if (rc == VT_OK)
        rc = open_target(&target, &j, a, err);
    if (rc == VT_OK && !target.on)
        rc = cli_ranks_join(err);
    if (rc == VT_OK)
        rc = vt_capacity_find(&found, &j.spec, err);
    took = (double)(vt_wall_ns() - began) / 1e9;
    if (rc == VT_OK)
        rc = show(&(struct capacity_answer){&found, &j.spec, j.one.timed_by}, a, err);
    if (rc == VT_OK && !cli_has(a, "quiet") && isatty(STDERR_FILENO))
        fprintf(stderr, "%zu trials in %.2f s\n", found.trials, took);
    vt_capacity_free(&found);
    target_job_close(&target);
    close_job(&j);
    return rc;
}

static const char *const operands[] = {NULL};
static const char *const examples[] = {
    "./run capacity",
    "./run capacity --workload multiturn-starters --requests 100 --rates 1,2,4 "
    "--seeds 1",
    NULL,
};

const struct cli_command cmd_capacity = {
    .name = "capacity",
    .summary = "find the highest request rate within latency limits",
    .usage = "[--workload NAME|FILE | --trace FILE] [FLAGS]",
    .about =
        "Simulates a workload at one rate after another, each with several seeds, and\n"
        "says how many requests per second can be borne before a limit is broken: by\n"
        "doubling or halving, then by bisection.",
    .options = options,
    .operands = operands,
    .examples = examples,
    .run = run,
};
