/* cmd_tune.c - vtwin tune: the engine settings that bear the most. */
#include "cli/cmd/pages.h"
#include "cli/cmd/tune.h"
#include "cli/progress.h"
#include "cli/signals.h"
#include "live/live.h"

/* In the order of their enums. */
static const char *const objectives[] = {"throughput", "capacity", NULL};
static const char *const searches[] = {"grid", "smart", NULL};

#define OPT_T struct tune_options
static const struct opt_row rows[] = {
    OPT_TEXT(plan, "plan", "FILE", NULL,
             "carry out a plan instead; tuning-plan.yaml is built in"),
    OPT_TEXT(auto_tune, "auto-tune", "FILE|env", NULL,
             "INPUT_LEN, NUM_SEQS_LIST, ... as auto_tune.sh has them, and its layout"),
    OPT_WORD(goal, "objective", "WHAT", objectives, "throughput",
             "most requests per second, or highest rate within the limits"),
    OPT_WORD(search, "search", "HOW", searches, "grid", "all of them, or far fewer"),
    OPT_READ(trial.slo.e2e_p99, "max-latency-allowed-ms", "MS", opt_read_limit, NULL,
             "limit on E2E p99", .shown = "0: none"),
    OPT_READ(trial.slo.ttft_p99, "slo-ttft-p99", "MS", opt_read_limit, NULL,
             "limit; 0: none", .shown = "capacity: 1000"),
    OPT_READ(trial.slo.tpot_p99, "slo-tpot-p99", "MS", opt_read_limit, NULL,
             "limit; 0: none", .shown = "capacity: 60"),
    OPT_READ(engine.acceptance, "speculative-acceptance", "P[,P]",
             engine_read_acceptance, "0.7",
             "chance of each draft, or a share for each place"),
    OPT_F64(engine.config.spec_draft_us, "speculative-draft-us", "US", 0, 1e9, NULL,
            "GPU time of one pass of the draft model",
            .shown = "an EAGLE-3 head's, estimated", .unit = VT_US),
    OPT_MS(staleness_ns, "staleness-ms", 0, 1e9, "0", "age of the router's view"),
    OPT_TEXT(restart, "restart-cmd", "COMMAND", NULL,
             "starts it with {max_num_seqs}, {max_num_batched_tokens}, ...",
             .shown = "it stays as it is"),
    OPT_SECONDS(ready_timeout_ns, "ready-timeout", 0, 1e6, "600",
                "how long its start may take"),
    OPT_TEXT(out, "out", "DIR", NULL,
             "write result.txt, result.json, trials.csv, pareto.png, report.html"),
    PAGES_ROW(report, .shown = "with --out, in it"),
    {0},
};
static const struct opt_block blocks[] = {
    OPT_ROWS(rows),
    OPT_ROWS(tune_axis_rows),
    TRIAL_BLOCKS(struct tune_options, trial),
    ENGINE_BLOCKS(struct tune_options, engine),
    OPT_BLOCK(lockstep_rows, struct tune_options, engine),
    {0},
};

/* What was found when a signal ended the search. */
static int tell_how_far(const struct vt_tune_spec *spec, const struct vt_tune_result *r,
                        struct vt_err *err)
{
    struct vt_setting s;

    if (r->trials == 0)
        return vt_fail(err, VT_EIO, "stopped before a configuration was tried");
    if (r->best == r->n)
        return vt_fail(err, VT_EIO,
                       "stopped after %zu of %zu configurations: none so far keeps the "
                       "limits",
                       r->trials, r->n);
    s = vt_tune_space_at(&spec->space, r->best);
    return vt_fail(err, VT_EIO,
                   "stopped after %zu of %zu configurations: the best so far serves "
                   "%.2f req/s (max-num-seqs %u, max-num-batched-tokens %u, "
                   "gpu-memory-utilization %g, TP %u, DP %u)",
                   r->trials, r->n, r->tuned[r->best].at.req_per_s, s.max_num_seqs,
                   s.max_num_batched_tokens, s.gpu_memory_utilization, s.tp, s.dp);
}

static int tune(const struct opt_args *a, struct vt_err *err)
{
    const struct tune_options *o = a->options;
    struct vt_tune_result r = {0};
    struct tune_job j;
    vt_ns began = vt_wall_ns();
    int rc;

    if (o->plan && o->trial.target)
        return vt_fail(err, VT_EINPUT, "--plan is simulated: not with --target");
    cli_signals_stop();
    if (o->plan) {
        if ((rc = opt_refuse(a, &o->engine.release,
                             ": a plan follows the release of its profile", err)))
            return rc;
        rc = cli_workers_open(a, o->trial.workers, o->trial.jobs, err);
        if (rc == VT_OK)
            rc = tune_plan(a, err);
        cli_workers_close();
        return rc;
    }
    if ((rc = cli_workers_open(a, o->trial.workers, o->trial.jobs, err)))
        return rc;
    rc = tune_job_open(&j, a, err);
    if (rc == VT_OK)
        rc = vt_tune(&r, &j.spec, err);
    cli_progress_end();
    cli_workers_close();
    if (rc != VT_OK && cli_signal_caught())
        rc = tell_how_far(&j.spec, &r, err);
    if (rc == VT_OK && r.best < r.n && !j.target.on) {
        struct vt_setting best = vt_tune_space_at(&j.spec.space, r.best);

        rc = engine_trust(&j.engine, &j.spec.site, &best, err);
    }
    if (rc == VT_OK) {
        trial_tell_time(&o->trial, r.trials, "configurations", began);
        rc = tune_report(&j, &r, a, err);
    }
    vt_tune_result_free(&r);
    tune_job_close(&j);
    return rc;
}

static const char *const examples[] = {
    "./run tune --max-latency-allowed-ms 4000 --search smart",
    "./run tune --plan tuning-plan.yaml --num-prompts 50 --rates 1,2 --seeds 1",
    NULL,
};

const struct opt_command cmd_tune = {
    .name = "tune",
    .summary = "find the engine settings that bear the most",
    .usage =
        "[MODEL] [--plan FILE | --workload NAME|FILE | --dataset-name NAME] [FLAGS]",
    .about =
        "Simulates a workload under every combination of the lists, or under far "
        "fewer\n"
        "with --search smart, and keeps what serves most within the limits. "
        "Throughput\n"
        "is found as vLLM's auto_tune finds it: all requests at once, then slower "
        "until\n"
        "the limits hold. With --plan it carries out a tuning plan and puts what was\n"
        "measured beside it.",
    .blocks = blocks,
    .size = sizeof(struct tune_options),
    .most = 1,
    .examples = examples,
    .rewrite = auto_tune_rewrite,
    .run = tune,
};
