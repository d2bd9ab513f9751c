/* cmd_bench_sweep.c - vtwin bench sweep: bench serve at one load after another. */
#include <math.h>

#include "cli/cmd/bench.h"
#include "cli/signals.h"
#include "page/page.h"

struct sweeping {
    const struct opt_args *a;
    const struct bench_options *o; /* of a */
    const char *dir;
    struct bench_job job;
    struct vt_sweep sweep;
    double *load; /* heap */
    size_t n_loads;
    struct vt_load_records *records; /* heap; of each run */
    struct vt_load_origin *origin;   /* heap; of each run */
    struct vt_load_stage *stage;     /* heap; of each run */
    size_t n_sessions;               /* of the whole plan */
    double seconds;                  /* of a run at a rate; 0: the whole plan */
    bool cannot_reset, told_of_cache;
    uint64_t cached_first; /* tokens that the first run found in the cache */
};

/* ---- files ----------------------------------------------------------- */

/* Numbers are there without gnuplot; its absence is told. */
static int draw_sweep(const struct sweeping *w, struct vt_err *err)
{
    static const char *const name[] = {"sweep.png", "sweep.svg"};
    const char *model = w->job.about.model, *slash = model ? strrchr(model, '/') : NULL;
    char title[256], length[40];
    int rc = VT_OK;

    if (w->seconds > 0 && w->sweep.of == VT_SWEEP_RATE)
        snprintf(length, sizeof(length), "%g s at each rate", w->seconds);
    else
        snprintf(length, sizeof(length), "%zu requests each", w->job.plan.n_turns);
    snprintf(title, sizeof(title), "%s, dataset %s, %s",
             slash   ? slash + 1
             : model ? model
                     : "",
             bench_datasets[w->o->dataset], length);
    for (size_t i = 0; i < VT_COUNT(name) && rc == VT_OK; i++) {
        struct vt_buf path = {0};

        vt_buf_printf(&path, "%s/%s", w->dir, name[i]);
        rc = path.failed
                 ? vt_nomem(err)
                 : vt_sweep_draw(&w->sweep, title, cli_scratch(), path.data, err);
        vt_buf_free(&path);
    }
    if (rc == VT_OK || rc == VT_ENOMEM)
        return rc;
    bench_tell("no picture: %s", err->msg);
    return VT_OK;
}

/* ---- one run --------------------------------------------------------- */

/* A cache that still holds the last run's prompts would flatter this one. */
static void reset_cache(struct sweeping *w)
{
    const struct vt_load_call call = {
        .path = "/reset_prefix_cache", .body = "", .timeout_ns = 30 * VT_SEC};
    struct vt_buf reply = {0};
    struct vt_err err = {0};
    int status = 0, rc;

    if (!w->o->reset_cache || w->cannot_reset)
        return;
    rc = vt_load_call(&w->job.config, &call, &status, &reply, &err);
    if (rc != VT_OK || status != 200) {
        w->cannot_reset = true;
        if (rc == VT_OK)
            snprintf(err.msg, sizeof(err.msg), "it answers with status %d", status);
        bench_tell(
            "the server does not reset its prefix cache, in which later runs may "
            "find their prompts: %s",
            err.msg);
    }
    vt_buf_free(&reply);
}

/* Requests that wait for others of their session, wherever in the plan these stand. */
static bool has_trees(const struct vt_load_plan *p)
{
    for (size_t i = 0; i < p->n; i++)
        if (p->session[i].root > 0)
            return true;
    return false;
}

/* A rate gets as much of the plan as it sends in the time given. */
static void set_load(struct sweeping *w, double load)
{
    struct bench_job *j = &w->job;
    struct vt_load_plan *p = &j->plan;
    double want = ceil(load * w->seconds);

    p->n = w->n_sessions;
    if (w->sweep.of == VT_SWEEP_RATE) {
        if (w->seconds > 0 && want < (double)p->n)
            p->n = (size_t)want;
        j->arrivals.rate = load;
        j->about.rate = load;
    } else {
        j->config.max_concurrency = (uint32_t)load;
        j->about.max_concurrency = (uint32_t)load;
        if (isinf(j->arrivals.rate) && j->arrivals.ramp == VT_RAMP_NONE)
            j->asks.steady_concurrency = (uint32_t)load;
    }
    p->n_turns = 0;
    for (size_t i = 0; i < p->n; i++)
        p->n_turns += p->session[i].n_turns;
    j->about.num_prompts = p->n_turns;
}

/* What is asked for of a run beside its result. Records that nobody needs any more
 * go. */
static int save_run(struct sweeping *w, size_t i, struct vt_err *err)
{
    const char *given = w->o->trace_out, *file = w->sweep.point[i].file;
    const char *slash = given ? strrchr(given, '/') : NULL;
    struct vt_buf path = {0};
    int rc = VT_OK;

    w->origin[i] = bench_job_origin(&w->job);
    w->stage[i] = (struct vt_load_stage){&w->records[i], &w->origin[i]};
    if (given) { /* a trace of each run is named after its result */
        vt_buf_printf(&path, "%s/%.*s.%s", w->dir,
                      (int)(strlen(file) - strlen(".json")), file,
                      slash ? slash + 1 : given);
        rc = path.failed
                 ? vt_nomem(err)
                 : bench_write_trace(&w->records[i], &w->origin[i], path.data, err);
        vt_buf_free(&path);
    }
    if (!w->o->lifecycle_out) {
        bool interrupted = w->records[i].interrupted;

        vt_load_records_free(&w->records[i]);
        w->records[i].interrupted = interrupted;
    }
    return rc;
}

static int run_one(struct sweeping *w, size_t i, struct vt_err *err)
{
    struct vt_load_summary s = {0};
    struct vt_load_records *r = &w->records[i];
    struct vt_buf b = {0};
    int rc;

    set_load(w, w->load[i]);
    reset_cache(w);
    bench_tell("run %zu of %zu: %s %g, %zu requests", i + 1, w->n_loads,
               w->sweep.of == VT_SWEEP_RATE ? "rate" : "concurrency", w->load[i],
               w->job.about.num_prompts);
    if ((rc = bench_job_run(&w->job, r, &s, err)) || (rc = bench_job_check(r, &s, err)))
        return rc;
    bench_job_json(&w->job, r, &s, NULL, &b);
    if (i == 0)
        w->cached_first = s.cached_tokens;
    /* All runs send the same prompts. */
    if (i > 0 && !w->told_of_cache &&
        s.cached_tokens >= w->cached_first + s.total_input / 10) {
        w->told_of_cache = true;
        bench_tell("%.0f %% of the prompts' tokens were in the server's prefix cache "
                   "since the run before",
                   100.0 * (double)s.cached_tokens / (double)s.total_input);
    }
    if (!w->job.about.goodput)
        s.request_goodput = NAN; /* nobody asked */
    rc = vt_sweep_add(&w->sweep, w->load[i], &s, r, err);
    vt_buf_char(&b, '\n');
    if (rc == VT_OK)
        rc = vt_write_file_in(w->dir, w->sweep.point[w->sweep.n - 1].file, &b, err);
    vt_buf_free(&b);
    return rc == VT_OK ? save_run(w, i, err) : rc;
}

static int run_all(struct sweeping *w, struct vt_err *err)
{
    for (size_t i = 0; i < w->n_loads; i++) {
        int rc = run_one(w, i, err);

        if (rc != VT_OK)
            return rc;
        if (w->records[i].interrupted) {
            bench_tell("stopped; this is what there is");
            break;
        }
        if (w->o->stop_when_saturated && w->sweep.point[w->sweep.n - 1].saturated) {
            bench_tell("saturated at %g: the sweep ends here", w->load[i]);
            break;
        }
    }
    return VT_OK;
}

/* ---- all of it ------------------------------------------------------- */

static int open_all(struct sweeping *w, struct vt_err *err)
{
    const struct bench_options *o = w->o;
    const char *list = o->rates ? o->rates : o->concurrencies;
    const char *flag = o->rates ? "rates" : "concurrencies";
    int rc;

    if (!o->rates == !o->concurrencies)
        return vt_fail(err, VT_EINPUT,
                       "sweep over what? --rates 1,2,4 or --concurrencies 1,2,4");
    if (o->rates ? opt_given(w->a, &o->arrivals.rate) : o->c.max_concurrency > 0)
        return vt_fail(err, VT_EINPUT, "--%s says what --%s would", flag,
                       o->rates ? "request-rate" : "max-concurrency");
    if (o->rates && o->ramp >= 0)
        return vt_fail(err, VT_EINPUT, "--rates says what --ramp-up-strategy would");
    if (o->dry_run)
        return vt_fail(err, VT_EINPUT, "--dry-run is for bench serve");
    w->sweep.of = o->rates ? VT_SWEEP_RATE : VT_SWEEP_CONCURRENCY;
    rc = vt_sweep_parse(list, w->sweep.of, &w->load, &w->n_loads, err);
    if (rc != VT_OK)
        return vt_within(err, rc, "--%s", flag);
    w->records = calloc(w->n_loads, sizeof(*w->records));
    w->origin = calloc(w->n_loads, sizeof(*w->origin));
    w->stage = calloc(w->n_loads, sizeof(*w->stage));
    if (!w->records || !w->origin || !w->stage)
        return vt_nomem(err);
    rc = bench_job_open(&w->job, w->a, err);
    if (rc == VT_OK && w->job.plan.timed && w->sweep.of == VT_SWEEP_RATE)
        rc = vt_fail(err, VT_EINPUT,
                     "--rates: this dataset has its own times (--no-self-timed)");
    if (rc == VT_OK)
        rc = bench_job_warm(&w->job, err);
    w->n_sessions = w->job.plan.n;
    if (w->seconds > 0 && w->sweep.of == VT_SWEEP_RATE && has_trees(&w->job.plan)) {
        cli_say("vtwin bench: sessions that are trees are not cut: each rate gets the "
                "whole plan, however long that takes\n");
        w->seconds = 0;
    }
    if (!opt_given(w->a, &w->o->about.metrics))
        w->job.about.metrics = "ttft,tpot,itl,e2el";
    return rc == VT_OK ? vt_make_dirs(w->dir, NULL, err) : rc;
}

static int write_page(const struct sweeping *w, struct vt_err *err)
{
    struct vt_buf page = {0};
    int rc = bench_sweep_page(&page, &w->job, &w->sweep, err);

    vt_page_end(&page);
    if (rc == VT_OK && page.failed)
        rc = vt_nomem(err);
    if (rc == VT_OK)
        rc = vt_write_file_in(w->dir, "report.html", &page, err);
    if (rc == VT_OK && w->o->compare.report)
        rc = vt_write_file(w->o->compare.report, &page, err);
    vt_buf_free(&page);
    return rc;
}

static int report_sweep(struct sweeping *w, struct vt_err *err)
{
    struct vt_buf b = {0};
    int rc;

    vt_sweep_csv(&b, &w->sweep);
    if ((rc = cli_save(w->dir, "summary.csv", &b, err)))
        return rc;
    vt_sweep_json(&b, &w->sweep);
    if ((rc = cli_save(w->dir, "summary.json", &b, err)) ||
        (w->o->lifecycle_out &&
         (rc = vt_load_write_lifecycle(w->stage, w->sweep.n, w->o->lifecycle_out,
                                       err))) ||
        (rc = draw_sweep(w, err)) || (rc = write_page(w, err)))
        return rc;
    vt_sweep_table(&b, &w->sweep);
    vt_buf_printf(
        &b, "results, report.html, summary.csv, summary.json and sweep.png are in %s\n",
        w->dir);
    return cli_print(&b, err);
}

int bench_sweep(const struct opt_args *a, struct vt_err *err)
{
    const struct bench_options *o = a->options;
    struct sweeping w = {.a = a, .o = o, .dir = o->output_dir, .seconds = o->seconds};
    int rc;

    cli_signals_catch();
    rc = open_all(&w, err);
    if (rc == VT_OK)
        rc = run_all(&w, err);
    w.job.plan.n = w.n_sessions; /* of which a run may have had fewer */
    if (w.sweep.n > 0) {         /* a run that failed does not undo those before it */
        struct vt_err other = {0};
        int told = report_sweep(&w, rc == VT_OK ? err : &other);

        rc = rc == VT_OK ? told : rc;
    }
    for (size_t i = 0; w.records && i < w.n_loads; i++)
        vt_load_records_free(&w.records[i]);
    bench_job_close(&w.job);
    vt_sweep_free(&w.sweep);
    free(w.records);
    free(w.origin);
    free(w.stage);
    free(w.load);
    return rc;
}
