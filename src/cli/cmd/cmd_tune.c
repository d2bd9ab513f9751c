/* cmd_tune.c - vtwin tune: the engine settings that bear the most. */
#include <unistd.h>

#include "cli/cmd/engine_job.h"
#include "cli/cmd/tune.h"
#include "cli/cmd/tune_target.h"
#include "cli/ranks.h"
#include "live/live.h"

/* In the order of their enums. */
static const char *const objectives[] = {"throughput", "capacity", NULL};
static const char *const searches[] = {"grid", "smart", NULL};

static const struct cli_option options[] = {
    {"plan", CLI_VALUE, "FILE", NULL,
     "carry out a plan instead; tuning-plan.yaml is built in", NULL},
    {"workload", CLI_VALUE, "NAME|FILE", "default-workload",
     "a workload file, a trace, or multiturn-starters", NULL},
    {"requests", CLI_VALUE, "N", "all", "the first so many of them", NULL},
    CLI_MODEL_OPTIONS,
    TUNE_SPACE_OPTIONS,
    {"objective", CLI_VALUE, "WHAT", "throughput",
     "most requests per second, or highest rate within the limits", objectives},
    {"search", CLI_VALUE, "HOW", "grid", "all of them, or far fewer", searches},
    {"max-latency-allowed-ms", CLI_VALUE, "MS", "0: none", "limit on E2E p99", NULL},
    {"slo-ttft-p99", CLI_VALUE, "MS", "capacity: 1000", "limit; 0: none", NULL},
    {"slo-tpot-p99", CLI_VALUE, "MS", "capacity: 60", "limit; 0: none", NULL},
    {"slo-itl-p99", CLI_VALUE, "MS", "0", "limit; 0: none", NULL},
    {"rates", CLI_VALUE, "LIST", "searched for", "try these only: 0.5,1,1.5", NULL},
    {"hf-config", CLI_VALUE, "NAME|FILE", "the profile's model",
     "sizes of the model, for the KV cache", NULL},
    {"gpu", CLI_VALUE, "NAME", "the profile's", "what it runs on", NULL},
    {"hw", CLI_VALUE, "FILE", NULL, "GPUs that are not built in", NULL},
    {"max-model-len", CLI_VALUE, "N", "32768", "prompt and output together", NULL},
    {"block-size", CLI_VALUE, "N", "16", "tokens in a KV block", NULL},
    {"num-gpu-blocks", CLI_VALUE, "N", "computed", "the same KV pool for all", NULL},
    {"speculative-acceptance", CLI_VALUE, "P", "0.7",
     "chance of each draft, given those before it", NULL},
    {"speculative-draft-us", CLI_VALUE, "US", "450", "one pass of the draft model",
     NULL},
    {"staleness-ms", CLI_VALUE, "MS", "0", "age of the router's view", NULL},
    {"seeds", CLI_VALUE, "N", "3", "runs of each rate, for capacity", NULL},
    {"seed", CLI_VALUE, "N", "1", "the first of them", NULL},
    {"jobs", CLI_VALUE, "N", "all cores", "processes; the answer is the same", NULL},
    CLI_TARGET_OPTIONS,
    CLI_RESTART_OPTIONS,
    {"json", CLI_FLAG, NULL, NULL, "print JSON instead of a table", NULL},
    {"out", CLI_VALUE, "DIR", NULL,
     "write result.txt, result.json, trials.csv, pareto.png", NULL},
    {"quiet", CLI_FLAG, NULL, NULL, "no word on how long it took", NULL},
    {0},
};

static int search(const struct cli_args *a, struct vt_err *err)
{
    struct vt_tune_result r = {0};
    struct target_job target = {0};
    struct tune_job j;
    vt_ns began = vt_wall_ns();
    int rc = tune_job_open(&j, a, err);

    if (rc == VT_OK)
        rc = target_job_tune(&target, a, &j.spec, &j.timed_by, err);
    if (rc == VT_OK && !target.on)
        rc = cli_ranks_join(err);
    if (rc == VT_OK)
        rc = vt_tune(&r, &j.spec, err);
    if (rc == VT_OK && !cli_has(a, "quiet") && isatty(STDERR_FILENO))
        fprintf(stderr, "%zu configurations in %.2f s\n", r.trials,
                (double)(vt_wall_ns() - began) / 1e9);
    if (rc == VT_OK)
        rc = tune_report(&j, &r, a, err);
    vt_tune_result_free(&r);
    target_job_close(&target);
    tune_job_close(&j);
    return rc;
}

static int run(const struct cli_args *a, struct vt_err *err)
{
    int rc = cli_operands(a, &cmd_tune, 0, 0, err);

    if (rc == VT_OK && cli_has(a, "plan") && cli_has(a, "target"))
        rc = vt_fail(err, VT_EINPUT, "--plan is simulated: not with --target");
    if (rc == VT_OK && cli_has(a, "plan"))
        rc = cli_ranks_join(err);
    if (rc != VT_OK)
        return rc;
    return cli_has(a, "plan") ? tune_plan(a, err) : search(a, err);
}

static const char *const operands[] = {NULL};
static const char *const examples[] = {
    "./run tune --max-latency-allowed-ms 4000 --search smart",
    "./run tune --plan tuning-plan.yaml --requests 50 --rates 1,2 --seeds 1",
    NULL,
};

const struct cli_command cmd_tune = {
    .name = "tune",
    .summary = "find the engine settings that bear the most",
    .usage = "[--plan FILE | --workload NAME|FILE] [FLAGS]",
    .about =
        "Simulates a workload under every combination of the lists, or under far "
        "fewer\n"
        "with --search smart, and keeps what serves most within the limits. "
        "Throughput\n"
        "is found as vLLM's auto_tune finds it: all requests at once, then slower "
        "until\n"
        "the limits hold. With --plan it carries out a tuning plan and puts what was\n"
        "measured beside it.",
    .options = options,
    .operands = operands,
    .examples = examples,
    .run = run,
};
