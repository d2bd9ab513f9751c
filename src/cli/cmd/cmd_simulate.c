/* cmd_simulate.c - vtwin simulate: predicts how an engine serves a workload. */
#include "cli/cmd/pages.h"
#include "cli/cmd/simulate.h"
#include "cli/progress.h"
#include "cli/signals.h"
#include "live/live.h"

/* In the order of their enums. */
static const char *const arrivals[] = {"recorded", "closed", "session", NULL};
static const char *const compats[] = {"vllm", "blis", NULL};

#define OPT_T struct simulate_options
static const struct opt_row input_rows[] = {
    OPT_TEXT(traffic.csv, "requests", "FILE", NULL, "", .now = "trace"),
    OPT_WORD(arrivals, "arrivals", "MODE", arrivals, NULL, "when requests arrive",
             .shown = "as the input says"),
    OPT_U32(concurrency, "concurrency", "N", 1, UINT32_MAX, NULL,
            "requests or sessions in flight", .shown = "as the input says"),
    {0},
};
static const struct opt_row output_rows[] = {
    OPT_I64(seed, "seed", "N", 0, INT64_MAX, "-1",
            "same seed and input, same bytes out", .shown = "the workload's"),
    OPT_FLAG(json, "json", "print JSON instead of a table"),
    OPT_FLAG(charts, "charts", "with --json: the page's charts over time, too"),
    OPT_TEXT(out, "out", "DIR", NULL,
             "write summary.json, requests.jsonl, steps.jsonl, report.html"),
    PAGES_ROW(report, .shown = "with --out, in it"),
    LIMITS_ROW(slo, .shown = "none; exit 1 if one is broken"),
    OPT_FLAG(compare, "compare", "with a measured trace: predicted against measured"),
    OPT_LIST(against, "against", "FLAGS",
             "side by side with the same under these flags: '--kv-cache-dtype fp8'",
             .flags = true),
    OPT_U32(seeds, "seeds", "N", 1, 1000, "5",
            "runs of each side, which tell noise apart"),
    OPT_WORD(clock, "clock", "WHOSE", vt_clock_names, NULL, "whose times are predicted",
             .shown = "engine; with --compare the trace's"),
    OPT_WORD(frontend, "frontend", "KIND", vt_front_names, NULL,
             "what stands before the engine", .shown = "the profile's, or python"),
    OPT_I64(warmed_for, "warmed-for", "N", 0, INT32_MAX, "-1",
            "requests in the largest full step before; 0: any",
            .shown = "0; with --compare the trace's"),
    OPT_LIST(oracle, "oracle", "FILE",
             "compare with a recorded run of vLLM's scheduler"),
    OPT_WORD(compat, "compat", "WHOSE", compats, "vllm",
             "whose rules: vLLM's or BLIS's"),
    PROGRESS_ROW(progress),
    OPT_FLAG(quiet, "quiet", "no progress line, no warnings"),
    {0},
};
static const struct opt_block blocks[] = {
    TRAFFIC_BLOCKS(struct simulate_options, traffic),
    OPT_ROWS(input_rows),
    ENGINE_BLOCKS(struct simulate_options, engine),
    OPT_BLOCK(lockstep_rows, struct simulate_options, engine),
    OPT_BLOCK(fleet_rows, struct simulate_options, fleet),
    OPT_ROWS(output_rows),
    {0},
};

/* ---- one run ---------------------------------------------------------- */

struct watch {
    struct simulate_out *out; /* NULL: none */
    struct vt_run *run;       /* for a page; NULL: none */
    struct simulate_job *job;
    vt_ns began_ns; /* wall clock */
};

static int on_request(void *user, const struct vt_served *s, struct vt_err *err)
{
    struct watch *w = user;

    w->job->within += w->job->limited && vt_slo_keeps(&w->job->slo, s);
    if (w->run) {
        int rc = vt_run_request(w->run, s, err);

        if (rc != VT_OK)
            return rc;
    }
    return w->out ? simulate_out_request(w->out, s, err) : VT_OK;
}

static int on_step(void *user, const struct vt_step_line *s, struct vt_err *err)
{
    struct watch *w = user;
    int rc = vt_run_step(w->run, s, err);

    return rc == VT_OK && w->out ? simulate_out_step(w->out, s, err) : rc;
}

static void on_progress(void *user, size_t finished, size_t total, vt_ns now)
{
    const struct watch *w = user;
    double passed;

    if (!cli_progress_due())
        return;
    passed = (double)(vt_wall_ns() - w->began_ns) / 1e9;
    cli_progress("%zu of %zu requests, %.1f s simulated, about %.0f s left", finished,
                 total, (double)now / 1e9,
                 finished > 0 ? passed * (double)(total - finished) / (double)finished
                              : 0);
}

/* What the summary says of how it was made. */
static void sign_summary(struct vt_summary *s, const struct simulate_job *j,
                         const struct simulate_options *o)
{
    s->profile = j->engine.timed_by;
    s->in_sample =
        o->compare && j->engine.has_profile &&
        vt_profile_saw(&j->engine.profile, j->workload.source, &j->workload.meta);
    s->workload = j->workload.source;
    s->seed = j->seed;
    s->version = VT_VERSION;
    if (j->spec.clock != VT_CLOCK_ENGINE) {
        s->clock = vt_clock_name(j->spec.clock);
        s->frontend = j->spec.frontend->name;
    }
}

/* The page, and the files of --out, which appear together. */
static int leave_report(struct watch *w, const struct opt_args *a,
                        const struct vt_summary *s, struct vt_err *err)
{
    const struct simulate_options *o = a->options;
    struct vt_buf page = {0};
    int rc = simulate_page(&page, a, w->job, s, w->run, err);

    vt_page_end(&page);
    if (rc == VT_OK && page.failed)
        rc = vt_nomem(err);
    if (rc == VT_OK && w->out) {
        rc = simulate_out_commit(w->out, s, &page, err);
        w->out = NULL;
    }
    if (rc == VT_OK && o->report)
        rc = vt_write_file(o->report, &page, err);
    vt_buf_free(&page);
    return rc;
}

/* For simulate_json(), when the run is no more. */
static int keep_charts(struct simulate_job *j, struct vt_run *run, struct vt_err *err)
{
    struct vt_jw w;
    int rc;

    vt_jw_init(&w, &j->charts, NULL);
    rc = vt_run_charts_json(&w, NULL, run, err);
    return rc == VT_OK && j->charts.failed ? vt_nomem(err) : rc;
}

int simulate_run(struct simulate_job *j, const struct opt_args *a, struct vt_summary *s,
                 struct vt_err *err)
{
    const struct simulate_options *o = a->options;
    struct watch w = {.job = j, .began_ns = vt_wall_ns()};
    struct vt_sim_sink sink = {.user = &w, .progress = on_progress};
    int rc = VT_OK;

    if (j->limited)
        sink.request = on_request;
    if (o->out || o->report || o->charts) {
        rc = vt_run_new(&w.run, j->fleet.on ? j->fleet.n : 0, err);
        sink.request = on_request;
        sink.step = on_step;
    }
    if (o->out && rc == VT_OK) {
        cli_signals_catch();
        rc = simulate_out_open(&w.out, o->out, j, err);
    }
    if (rc == VT_OK) {
        j->spec.sink = &sink;
        rc = vt_sim_run(&j->spec, s, err);
        j->reached = s->extent;
        cli_progress_end();
    }
    if (rc == VT_OK && !o->quiet)
        engine_warn_extent(&j->reached, &j->spec.model->known, "");
    sign_summary(s, j, o);
    if (rc == VT_OK && o->charts)
        rc = keep_charts(j, w.run, err);
    if (rc == VT_OK && (o->out || o->report))
        rc = leave_report(&w, a, s, err);
    simulate_out_abandon(w.out);
    vt_run_free(w.run);
    return rc;
}

/* Times of another clock are no errors of the prediction. */
static void warn_clock(const struct simulate_job *j)
{
    enum vt_clock c = j->workload.meta.clock;

    if (c != VT_CLOCK_UNSTATED && c != j->spec.clock)
        cli_say("vtwin: warning: %s: its times are by the %s's clock, those predicted "
                "by the %s's\n",
                j->workload.source, vt_clock_name(c), vt_clock_name(j->spec.clock));
}

static int print_result(const struct simulate_job *j, const struct simulate_options *o,
                        const struct vt_summary *s, struct vt_err *err)
{
    struct vt_buf b = {0};

    if (o->json && o->compare) {
        vt_compare_json(&b, s, &j->measured);
    } else if (o->json) {
        simulate_json(&b, s, j);
    } else {
        vt_summary_table(&b, s);
        if (j->limited)
            limits_table(
                &b, &j->slo,
                &(struct limits_kept){s, s->requests, j->within, s->duration_s});
        if (engine_tells_trust(&j->engine))
            vt_basis_table(&b, &j->engine.trust);
        simulate_fleet_table(&b, &j->fleet);
        if (o->compare) {
            vt_buf_char(&b, '\n');
            vt_compare_table(&b, s, &j->measured);
        }
        if (o->out)
            vt_buf_printf(&b,
                          "\nreport: %s/ (report.html, summary.json, requests.jsonl, "
                          "steps.jsonl)\n",
                          o->out);
    }
    return cli_print(&b, err);
}

static int simulate(const struct opt_args *a, struct vt_err *err)
{
    const struct simulate_options *o = a->options;
    struct vt_summary s = {0};
    struct vt_oracle_result r;
    struct vt_buf b = {0};
    struct simulate_job j;
    int rc = VT_OK;

    for (size_t i = 0; i < o->oracle.n && rc == VT_OK; i++) {
        if ((rc = vt_oracle_check(o->oracle.value[i], &r, err)))
            return rc;
        vt_buf_printf(&b, "ok %s %u steps\n", r.name, r.steps);
        rc = cli_print(&b, err);
    }
    if (o->oracle.n > 0)
        return rc;
    if ((!o->json && (rc = opt_refuse(a, &o->charts, " needs --json", err))) ||
        (rc = opt_exclude(a, &o->charts, &o->against, err)) ||
        (rc = opt_exclude(a, &o->charts, &o->compare, err)))
        return rc;
    cli_progress_begin(o->progress, o->quiet);
    if (o->against.n > 0)
        return simulate_against(a, err);
    if ((rc = opt_refuse(a, &o->seeds, " needs --against", err)))
        return rc;
    rc = simulate_job_open(&j, a, err);
    if (rc == VT_OK && !o->quiet && j.fleet.fleet.ranks < 2)
        engine_warn_interval(&o->engine, ENGINE_ALONE);
    if (rc == VT_OK)
        rc = simulate_run(&j, a, &s, err);
    if (rc == VT_OK && o->compare && !o->quiet)
        warn_clock(&j);
    if (rc == VT_OK)
        rc = print_result(&j, o, &s, err);
    if (rc == VT_OK && j.limited)
        rc = limits_check(&j.slo, &s, err);
    simulate_job_close(&j);
    return rc;
}

static const char *const examples[] = {
    "./run simulate --arrivals closed --concurrency 32",
    "./run simulate --max-num-batched-tokens 2048 --json",
    "./run simulate --instances 4 --routing precise-prefix-cache:2,queue-depth:1",
    "./run simulate --max-num-seqs 8 --against '--max-num-seqs 64' --num-prompts 100",
    NULL,
};

const struct opt_command cmd_simulate = {
    .name = "simulate",
    .summary = "predict latency and throughput without a GPU",
    .usage =
        "[MODEL] [--workload NAME|FILE | --trace FILE | --dataset-name NAME] [FLAGS]",
    .about =
        "Offers a workload to a twin of one vLLM engine, or of many behind a router, "
        "under\na virtual clock, or with --against several of them side by side. "
        "Without\n"
        "an input it takes the built-in workload. Engine flags are named as vLLM "
        "names\n"
        "them; what no flag says comes from the trace's meta line, then the profile,\n"
        "then vLLM's defaults (shown in brackets).",
    .blocks = blocks,
    .size = sizeof(struct simulate_options),
    .most = 1,
    .examples = examples,
    .run = simulate,
};
