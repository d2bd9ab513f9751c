/* cmd_simulate.c - vtwin simulate: predicts how an engine serves a workload. */
#include <unistd.h>

#include "cli/cli.h"
#include "cli/cmd/simulate.h"
#include "cli/signals.h"

/* In the order of their enums. */
static const char *const arrivals[] = {"recorded", "closed", "session", NULL};
static const char *const compats[] = {"vllm", "blis", NULL};

static const struct cli_option options[] = {
    {"workload", CLI_VALUE, "FILE", NULL, "generate requests as this YAML file says",
     NULL},
    {"trace", CLI_VALUE, "FILE", NULL,
     "replay trace.jsonl, Azure or Mooncake records; .gz is fine", NULL},
    {"requests", CLI_VALUE, "FILE", NULL,
     "replay CSV: id,arrival_us,input_tokens,output_tokens", NULL},
    CLI_MODEL_OPTIONS,
    {"arrivals", CLI_VALUE, "MODE", "as the input says", "when requests arrive",
     arrivals},
    {"concurrency", CLI_VALUE, "N", "as the input says",
     "requests or sessions in flight", NULL},
    CLI_ENGINE_OPTIONS,
    SIMULATE_FLEET_OPTIONS,
    {"seed", CLI_VALUE, "N", "the workload's", "same seed and input, same bytes out",
     NULL},
    {"json", CLI_FLAG, NULL, NULL, "print JSON instead of a table", NULL},
    {"out", CLI_VALUE, "DIR", NULL, "write summary.json, requests.jsonl, steps.jsonl",
     NULL},
    {"compare", CLI_FLAG, NULL, NULL,
     "with a measured trace: predicted against measured", NULL},
    {"oracle", CLI_VALUE, "FILE", NULL,
     "compare with a recorded run of vLLM's scheduler", NULL},
    {"compat", CLI_VALUE, "WHOSE", "vllm", "whose rules: vLLM's or BLIS's", compats},
    {"quiet", CLI_FLAG, NULL, NULL, "no progress line, no warnings", NULL},
    {0},
};

/* ---- oracles ---------------------------------------------------------- */

static int check_oracles(const struct cli_args *a, struct vt_err *err)
{
    struct vt_buf b = {0};
    const char *path;
    size_t at = 0;
    int rc = VT_OK;

    while (rc == VT_OK && (path = cli_each(a, "oracle", &at)) != NULL) {
        struct vt_oracle_result r;

        rc = vt_oracle_check(path, &r, err);
        if (rc != VT_OK)
            break;
        vt_buf_printf(&b, "ok %s %u steps\n", r.name, r.steps);
        rc = cli_print(&b, err);
    }
    vt_buf_free(&b);
    return rc;
}

/* ---- one run ---------------------------------------------------------- */

struct run {
    struct simulate_out *out; /* NULL: none */
    struct simulate_progress progress;
};

static int on_request(void *user, const struct vt_served *s, struct vt_err *err)
{
    struct run *r = user;

    return simulate_out_request(r->out, s, err);
}

static int on_step(void *user, const struct vt_step_line *s, struct vt_err *err)
{
    struct run *r = user;

    return simulate_out_step(r->out, s, err);
}

static void on_progress(void *user, size_t finished, size_t total, vt_ns now)
{
    struct run *r = user;

    simulate_progress_show(&r->progress, finished, total, now);
}

/* A learned model is worth little far from what it has learned from. */
static void warn_beyond(const char *what, uint64_t run, uint64_t known)
{
    if (known > 0 && run > known + known / 2)
        fprintf(
            stderr,
            "vtwin: warning: %s reached %llu, but the profile was fitted up to %llu\n",
            what, (unsigned long long)run, (unsigned long long)known);
}

static void warn_extent(const struct vt_extent *run, const struct vt_extent *known)
{
    warn_beyond("tokens in a step", run->step_tokens, known->step_tokens);
    warn_beyond("running requests", run->running, known->running);
    warn_beyond("context in a step", run->context, known->context);
}

/* Runs the job and, with --out, leaves its report. */
static int execute(const struct simulate_job *j, const struct cli_args *a,
                   struct vt_summary *s, struct vt_err *err)
{
    struct run r = {.progress.on = !cli_has(a, "quiet") && isatty(STDERR_FILENO)};
    struct vt_sim_sink sink = {.user = &r, .progress = on_progress};
    struct vt_sim_spec spec = j->spec;
    struct vt_extent extent = {0};
    int rc = VT_OK;

    if (cli_has(a, "out")) {
        cli_signals_catch();
        rc = simulate_out_open(&r.out, cli_str(a, "out"), j, err);
        sink.request = on_request;
        sink.step = on_step;
    }
    if (rc != VT_OK)
        return rc;
    spec.sink = &sink;
    spec.extent = &extent;
    rc = vt_sim_run(&spec, s, err);
    simulate_progress_erase(&r.progress);
    if (rc == VT_OK && !cli_has(a, "quiet"))
        warn_extent(&extent, &spec.model->known);
    s->profile = j->timed_by;
    s->workload = j->workload.source;
    s->seed = j->seed;
    s->version = VT_VERSION;
    if (rc == VT_OK && r.out)
        return simulate_out_commit(r.out, s, err);
    simulate_out_abandon(r.out);
    return rc;
}

static int show(const struct simulate_job *j, const struct cli_args *a,
                const struct vt_summary *s, struct vt_err *err)
{
    bool json = cli_has(a, "json"), compare = cli_has(a, "compare");
    struct vt_buf b = {0};
    int rc;

    if (json && compare) {
        vt_compare_json(&b, s, &j->measured);
    } else if (json) {
        simulate_json(&b, s, &j->fleet);
    } else {
        vt_summary_table(&b, s);
        simulate_fleet_table(&b, &j->fleet);
        if (compare) {
            vt_buf_char(&b, '\n');
            vt_compare_table(&b, s, &j->measured);
        }
        if (cli_has(a, "out"))
            vt_buf_printf(&b,
                          "\nreport: %s/ (summary.json, requests.jsonl, steps.jsonl)\n",
                          cli_str(a, "out"));
    }
    rc = cli_print(&b, err);
    vt_buf_free(&b);
    return rc;
}

static int run(const struct cli_args *a, struct vt_err *err)
{
    struct vt_summary s = {0};
    struct simulate_job j;
    int rc = cli_operands(a, &cmd_simulate, 0, 0, err);

    if (rc != VT_OK)
        return rc;
    if (cli_has(a, "oracle"))
        return check_oracles(a, err);
    rc = simulate_job_open(&j, a, err);
    if (rc == VT_OK)
        rc = execute(&j, a, &s, err);
    if (rc == VT_OK)
        rc = show(&j, a, &s, err);
    simulate_job_close(&j);
    return rc;
}

static const char *const operands[] = {NULL};
static const char *const examples[] = {
    "./run simulate --arrivals closed --concurrency 32",
    "./run simulate --max-num-batched-tokens 2048 --json",
    "./run simulate --instances 4 --routing precise-prefix-cache:2,queue-depth:1",
    NULL,
};

const struct cli_command cmd_simulate = {
    .name = "simulate",
    .summary = "predict latency and throughput without a GPU",
    .usage = "[--workload FILE | --trace FILE | --requests FILE] [FLAGS]",
    .about =
        "Offers a workload to a twin of one vLLM engine, or of many behind a router, "
        "under\na virtual clock. Without\n"
        "an input it takes the built-in workload. Engine flags are named as vLLM "
        "names\n"
        "them; what no flag says comes from the trace's meta line, then the profile,\n"
        "then vLLM's defaults (shown in brackets).",
    .options = options,
    .operands = operands,
    .examples = examples,
    .run = run,
};
