/* cmd_capacity.c - vtwin capacity: the highest request rate within latency limits. */
#include <math.h>

#include "cli/cmd/pages.h"
#include "cli/cmd/simulate.h"
#include "cli/cmd/trial.h"
#include "cli/progress.h"
#include "cli/signals.h"
#include "live/live.h"

struct capacity_options {
    const char *csv, *plot, *report;
    double tolerance;
    bool sketch;
    struct trial_options trial;
    struct engine_options engine;
    struct fleet_options fleet;
};

#define OPT_T struct capacity_options
static const struct opt_row rows[] = {
    OPT_F64(tolerance, "tolerance", "SHARE", 1e-4, 1, "0.02", "how close to search"),
    OPT_FLAG(sketch, "sketch", "a first look at once: a few hundred requests a run"),
    OPT_TEXT(csv, "csv", "FILE", NULL, "write the table as CSV"),
    OPT_TEXT(plot, "plot", "FILE", NULL, "draw it: .png, .svg or .pdf"),
    PAGES_ROW(report, .shown = "none"),
    {0},
};
static const struct opt_block blocks[] = {
    OPT_ROWS(rows),
    TRIAL_BLOCKS(struct capacity_options, trial),
    ENGINE_BLOCKS(struct capacity_options, engine),
    OPT_BLOCK(lockstep_rows, struct capacity_options, engine),
    OPT_BLOCK(fleet_rows, struct capacity_options, fleet),
    {0},
};

struct capacity_job {
    struct simulate_job one; /* engine and fleet; its workload is borrowed */
    struct traffic traffic;
    struct target_job target;
    struct vt_capacity_spec spec;
    struct vt_capacity found;
    double simulated; /* requests, so far */
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
    if (rc || (rc = engine_open(&one->engine, a, &o->engine, NULL, &w.meta,
                                o->engine.tp, err)))
        goto out;
    one->spec.engine = one->engine.config;
    one->spec.model = one->engine.model;
    if ((rc = vt_engine_config_check(&one->spec.engine, err)) ||
        (rc = simulate_fleet_open(one, a, &o->engine, &o->fleet, err)))
        goto out;
    t->engine = one->spec.engine;
    t->model = one->spec.model;
    t->fleet = one->spec.fleet;
    if (one->fleet.dp > 1 && !o->trial.quiet)
        engine_tell_ranks(one->fleet.fleet.ranks > 1, one->fleet.why);
out:
    vt_trial_workload_free(&w);
    return rc;
}

/* Before trials of a rate. How long they may take follows from those before them. */
static void tell_progress(void *user, double rate, uint32_t runs, uint32_t requests)
{
    struct capacity_job *j = user;
    double seconds = cli_progress_passed(), more = (double)runs * requests;

    if (j->simulated > 0)
        cli_progress("%.4g req/s: %u run%s of %u requests, about %.1f s; %.0f "
                     "requests simulated in %.1f s",
                     rate, runs, runs == 1 ? "" : "s", requests,
                     more / j->simulated * seconds, j->simulated, seconds);
    else
        cli_progress("%.4g req/s: %u run%s; %.1f s so far", rate, runs,
                     runs == 1 ? "" : "s", seconds);
    j->simulated += more;
}

static int open_job(struct capacity_job *j, const struct opt_args *a,
                    struct vt_err *err)
{
    const struct capacity_options *o = a->options;
    struct vt_capacity_spec *s = &j->spec;
    int rc = trial_traffic(&j->traffic, a, &o->trial, err);

    if (rc == VT_OK && o->sketch &&
        !(rc = opt_exclude(a, &o->sketch, &o->trial.once, err)))
        rc = opt_exclude(a, &o->sketch, &o->trial.target, err);
    *s = (struct vt_capacity_spec){
        .trial = {.workload = j->traffic.input.name,
                  .input = &j->traffic.input,
                  .requests = j->traffic.first,
                  .concurrency = j->traffic.concurrency,
                  .seed = (uint64_t)o->trial.seed},
        .slo = trial_limits(a, &o->trial),
        .rate = trial_rates(&o->trial, &s->n_rates),
        .n_rates = s->n_rates,
        .tolerance = o->tolerance,
        .seeds = o->trial.seeds,
        .workers = o->trial.jobs,
        .how = o->sketch       ? VT_CAPACITY_SKETCH
               : o->trial.once ? VT_CAPACITY_ONCE
                               : VT_CAPACITY_SURE,
        .progress = tell_progress,
        .user = j,
    };
    if (rc || (rc = simulate_fleet_check(a, &o->engine, &o->fleet, err)) ||
        (rc = open_trial(j, a, err)) ||
        (rc = target_open(&j->target, a, &o->trial, &s->slo, err)))
        return rc;
    if (!j->target.on)
        return VT_OK;
    s->trial.measure = vt_target_measure; /* a live server times the trials */
    s->trial.measure_user = &j->target.target;
    s->workers = 1;
    j->one.engine.timed_by = j->target.load.base_url;
    return VT_OK;
}

/* ---- for people ----------------------------------------------------------------- */

/* The command line that serves it so. */
static int put_serve(struct vt_buf *b, const struct capacity_job *j,
                     const struct opt_args *a, struct vt_err *err)
{
    const struct capacity_options *o = a->options;
    const struct engine_options *e = &o->engine;
    const struct vt_engine_config *c = &j->spec.trial.engine;
    const struct vt_fleet *f = j->spec.trial.fleet;
    struct vt_site site = {
        .kv = {.pp = e->pp, .element_bytes = engine_kv_bytes(e->kv_dtype)},
        .lockstep = f && f->ranks > 1};
    struct vt_setting s = {.max_num_seqs = c->max_num_seqs,
                           .max_num_batched_tokens = c->max_num_batched_tokens,
                           .gpu_memory_utilization = e->gpu_memory_utilization,
                           .tp = e->tp,
                           .dp = f ? f->instances : 1,
                           .routing = f ? f->routing : NULL,
                           .spec_tokens = c->num_spec_tokens,
                           .prefix_caching = c->enable_prefix_caching};
    int rc = s.tp > 0 ? VT_OK : engine_profile_tp(&j->one.engine, &s.tp, err);

    if (rc == VT_OK)
        engine_recommend(b, &j->one.engine, e, &site, c, &s);
    return rc;
}

/* What the engine's times may be off by: steps that take a tenth longer bear a tenth
 * less. 0: not known. */
static double model_error(const struct capacity_job *j)
{
    const struct vt_basis *b = &j->one.engine.trust;

    if (j->target.on || !b->has_expected)
        return 0;
    return fmax(b->expected[VT_TRUST_E2E], b->expected[VT_TRUST_THROUGHPUT]) / 100;
}

/* By the seeds and by the model. */
static void whole_interval(const struct capacity_job *j, double out[2])
{
    const struct vt_capacity *c = &j->found;
    double e = model_error(j);

    out[0] = (c->high > 0 ? c->low : c->rate) * fmax(0, 1 - e);
    out[1] = (c->high > 0 ? c->high : c->rate) * (1 + e);
}

/* " (95 % confidence 32.9 to 34.7; 31 to 37 with 5 % for the model)" */
static void put_interval(struct vt_buf *b, const struct capacity_job *j)
{
    const struct vt_capacity *c = &j->found;
    double e = model_error(j), whole[2];
    bool seeds = c->high > 0;

    whole_interval(j, whole);
    if (!(c->failed > 0) || (!seeds && !(e > 0)))
        return;
    vt_buf_str(b, " (");
    if (seeds)
        vt_buf_printf(b, "95 %% confidence %.4g to %.4g%s", c->low, c->high,
                      e > 0 ? "; " : "");
    if (e > 0)
        vt_buf_printf(b, "%.4g to %.4g with %.0f %% for the model", whole[0], whole[1],
                      100 * e);
    vt_buf_char(b, ')');
}

static void put_length(struct vt_buf *b, const struct vt_capacity *c, uint32_t runs)
{
    if (c->requests > 0)
        vt_buf_printf(b, "over %.0f s, %u requests in each of %u run%s\n", c->span_s,
                      c->requests, runs, runs == 1 ? "" : "s");
    else
        vt_buf_str(b,
                   "of these requests as they are: in the long run it may be less\n");
}

static void put_answer(struct vt_buf *b, const struct capacity_job *j)
{
    const struct vt_capacity *c = &j->found;
    double limit = vt_slo_at(&j->spec.slo, vt_slo_find(c->binding));

    if (!(c->rate > 0))
        return; /* the command's error says why */
    vt_buf_printf(b, "capacity %s%.4g req/s", c->failed > 0 ? "" : "at least ",
                  c->rate);
    put_interval(b, j);
    if (!c->binding)
        vt_buf_str(b, ": nothing breaks a limit up to there\n");
    else if (limit > 0)
        vt_buf_printf(b, ": %s is above %g ms at %.4g\n", c->binding, limit, c->failed);
    else
        vt_buf_printf(b, ": less than %.0f %% is borne at %.4g\n", 100 * c->borne,
                      c->failed);
    put_length(b, c, j->spec.how == VT_CAPACITY_SKETCH ? 1 : j->spec.seeds);
    if (j->spec.how == VT_CAPACITY_SKETCH)
        vt_buf_str(b, "a sketch by runs that are too short to be sure of\n");
}

/* A limit that nothing keeps: by how much, where there is least to do. */
static int tell_none(const struct capacity_job *j, struct vt_err *err)
{
    const struct vt_capacity *c = &j->found;
    const struct vt_capacity_point *p = NULL;
    const struct vt_slo *slo = &j->spec.slo;
    double limit = vt_slo_at(slo, vt_slo_find(c->binding)), by = 0;

    for (size_t i = c->n; i-- > 0;)
        if (c->point[i].rate <= c->failed)
            p = &c->point[i];
    if (!p || !(limit > 0))
        return vt_fail(err, VT_ECHECK, "no rate that was tried is borne");
    (void)vt_slo_nearest(slo, &p->mean, &by);
    return vt_fail(err, VT_ECHECK,
                   "no rate keeps the limits: %s is %.4g ms at %.4g req/s, the lowest "
                   "tried; its limit is %g ms",
                   c->binding, by * limit, p->rate, limit);
}

static void put_table(struct vt_buf *b, const struct capacity_job *j)
{
    vt_buf_printf(b, "%9s %9s %9s %9s %8s %8s %8s %8s  %s  %s\n", "req/s", "achieved",
                  "TTFT p50", "p99 ms", "TPOT p50", "p99", "ITL p50", "p99", "kept",
                  "broken");
    for (size_t i = 0; i < j->found.n; i++) {
        const struct vt_capacity_point *p = &j->found.point[i];
        const struct vt_summary *s = &p->mean;

        vt_buf_printf(b, "%9.4g %9.4g %9.1f %9.1f %8.2f %8.2f %8.2f %8.2f  %u/%u  %s\n",
                      p->rate, p->achieved, s->ttft.p50, s->ttft.p99, s->tpot.p50,
                      s->tpot.p99, s->itl.p50, s->itl.p99, p->passed, p->runs,
                      p->broken      ? p->broken
                      : p->saturated ? "rate"
                                     : "-");
    }
    vt_buf_char(b, '\n');
    if (!j->target.on)
        vt_buf_printf(b, "scheduler of vLLM 0.%u\n", j->spec.trial.engine.vllm);
    if (!j->target.on)
        vt_basis_table(b, &j->one.engine.trust);
    put_answer(b, j);
}

/* ---- for programs --------------------------------------------------------------- */

static void put_point(struct vt_jw *w, const struct vt_capacity_point *p)
{
    vt_jw_row(w, NULL);
    vt_jw_f64(w, "rate", p->rate);
    vt_jw_f64(w, "achieved", p->achieved);
    vt_jw_u64(w, "runs", p->runs);
    vt_jw_u64(w, "passed", p->passed);
    vt_jw_bool(w, "saturated", p->saturated);
    vt_jw_str(w, "broken", p->broken);
    for (size_t row = 0; row < VT_N_MEASURED; row++) {
        vt_jw_row(w, vt_stat_rows[row].key);
        for (size_t part = 0; part < VT_N_PARTS; part++)
            vt_jw_f64(w, vt_parts[part].key,
                      vt_part_of(vt_stat_of(&p->mean, row), part));
        vt_jw_end(w);
    }
    vt_jw_f64(w, "output_tok_per_s", p->mean.output_tok_per_s);
    vt_jw_f64(w, "prefix_hit_rate", p->mean.prefix_hit_rate);
    vt_jw_f64(w, "kv_usage_peak", p->mean.kv_usage_peak);
    vt_jw_end(w);
}

static int put_json(struct vt_buf *b, const struct capacity_job *j,
                    const struct opt_args *a, struct vt_err *err)
{
    const struct vt_slo *slo = &j->spec.slo;
    const struct vt_notes notes = engine_notes(&j->one.engine);
    const struct vt_capacity *c = &j->found;
    struct vt_buf serve = {0};
    double whole[2];
    struct vt_jw w;
    int rc = j->target.on ? VT_OK : put_serve(&serve, j, a, err);

    whole_interval(j, whole);
    vt_jw_init(&w, b, &vt_json_pretty);
    vt_jw_map(&w, NULL);
    vt_jw_f64(&w, "capacity", c->rate);
    vt_jw_f64(&w, "failed_rate", c->failed);
    vt_jw_bool(&w, "at_least", c->rate > 0 && !(c->failed > 0));
    if (j->spec.how == VT_CAPACITY_SKETCH)
        vt_jw_bool(&w, "sketch", true);
    vt_jw_f64_list(&w, "confidence_95", (const double[]){c->low, c->high}, 2);
    vt_jw_f64_list(&w, "interval", whole, 2);
    vt_jw_u64(&w, "run_requests", c->requests);
    vt_jw_f64(&w, "run_s", c->span_s);
    vt_jw_str(&w, "binding", c->binding);
    vt_jw_row(&w, "slo_ms");
    vt_jw_f64(&w, "ttft_p99", slo->ttft_p99);
    vt_jw_f64(&w, "tpot_p99", slo->tpot_p99);
    vt_jw_f64(&w, "itl_p99", slo->itl_p99);
    vt_jw_f64(&w, "e2e_p99", slo->e2e_p99);
    vt_jw_end(&w);
    vt_jw_str(&w, "profile", j->one.engine.timed_by);
    vt_jw_str(&w, "workload", j->spec.trial.workload);
    vt_jw_u64(&w, "seed", j->spec.trial.seed);
    vt_jw_u64(&w, "trials", c->trials);
    vt_jw_list(&w, "points");
    for (size_t i = 0; i < c->n; i++)
        put_point(&w, &c->point[i]);
    vt_jw_end(&w);
    vt_jw_str(&w, "version", VT_VERSION);
    if (!j->target.on) {
        vt_release_json(&w, j->spec.trial.engine.vllm);
        vt_basis_members(&w, &j->one.engine.trust);
        settings_json(&w, &j->one.engine, &j->spec.trial.engine, &j->one.engine.setting,
                      j->spec.trial.fleet, &j->traffic);
        vt_outside_json(&w, &c->extent, &j->spec.trial.model->known, &notes);
        vt_jw_str(&w, "vllm_serve", serve.data);
    }
    vt_jw_end(&w);
    vt_buf_char(b, '\n');
    vt_buf_free(&serve);
    return rc;
}

static int write_csv(const struct capacity_job *j, const char *path, struct vt_err *err)
{
    struct vt_buf b = {0};
    int rc;

    vt_buf_str(&b, "rate,achieved,ttft_p50_ms,ttft_p99_ms,tpot_p50_ms,tpot_p99_ms,"
                   "itl_p50_ms,itl_p99_ms,e2e_p50_ms,e2e_p99_ms,output_tok_per_s,runs,"
                   "passed,saturated,broken\n");
    for (size_t i = 0; i < j->found.n; i++) {
        const struct vt_capacity_point *p = &j->found.point[i];
        const struct vt_summary *s = &p->mean;
        const double value[] = {p->rate,     p->achieved,        s->ttft.p50,
                                s->ttft.p99, s->tpot.p50,        s->tpot.p99,
                                s->itl.p50,  s->itl.p99,         s->e2e.p50,
                                s->e2e.p99,  s->output_tok_per_s};

        for (size_t k = 0; k < VT_COUNT(value); k++) {
            vt_buf_f64(&b, value[k]);
            vt_buf_char(&b, ',');
        }
        vt_buf_printf(&b, "%u,%u,%d,%s\n", p->runs, p->passed, p->saturated,
                      p->broken ? p->broken : "");
    }
    rc = vt_write_file(path, &b, err);
    vt_buf_free(&b);
    return rc;
}

/* ---- the figure ------------------------------------------------------ */

/* What both figures show; the caller frees its points. */
static int make_curve(const struct capacity_job *j, struct vt_load_curve *curve,
                      struct vt_err *err)
{
    const struct vt_capacity *c = &j->found;
    struct vt_load_point *point = calloc(c->n + 1, sizeof(*point));

    *curve = (struct vt_load_curve){
        .point = point,
        .n = c->n,
        .axis = VT_LOAD_BY_RATE,
        .limit = {j->spec.slo.ttft_p99, j->spec.slo.tpot_p99, j->spec.slo.itl_p99},
        .answer = c->rate,
        .scratch = cli_scratch(),
    };
    if (!point)
        return vt_nomem(err);
    for (size_t i = 0; i < c->n; i++) {
        const struct vt_summary *s = &c->point[i].mean;

        point[i] = (struct vt_load_point){
            .load = c->point[i].rate,
            .ttft = {s->ttft.p50, s->ttft.p99},
            .tpot = {s->tpot.p50, s->tpot.p99},
            .itl = {s->itl.p50, s->itl.p99},
            .req_per_s = c->point[i].achieved,
            /* Of a run that was given up only the lateness means something. */
            .output_tok_per_s = c->point[i].passed > 0 ? s->output_tok_per_s : NAN,
            .saturated = c->point[i].saturated,
        };
    }
    return VT_OK;
}

static int draw_curve(const struct capacity_job *j, const char *path,
                      struct vt_err *err)
{
    struct vt_load_curve curve;
    char title[256];
    int rc = make_curve(j, &curve, err);

    engine_caption(title, sizeof(title), &j->one.engine, j->spec.trial.workload);
    curve.title = title;
    if (rc == VT_OK)
        rc = vt_load_curve_draw(&curve, path, err);
    free((void *)(uintptr_t)curve.point);
    return rc;
}

/* ---- the page -------------------------------------------------------- */

static void put_page_answer(struct vt_buf *b, const struct capacity_job *j)
{
    const struct pages_trust trust = {
        j->target.on ? NULL : &j->one.engine, &j->found.extent,
        j->target.on ? NULL : &j->spec.trial.model->known,
        j->target.on ? "measured at a live server" : NULL};
    struct vt_buf text = {0};
    struct vt_err why;

    put_answer(&text, j);
    if (!(j->found.rate > 0) && tell_none(j, &why) != VT_OK)
        vt_buf_str(&text, why.msg);
    for (size_t i = 0; i < text.len; i++) /* its lines become one sentence */
        if (text.data[i] == '\n')
            text.data[i] = i + 1 < text.len ? ' ' : '.';
    if (text.len > 0)
        pages_answer(b, &trust, "%c%s", text.data[0] - 'a' + 'A', text.data + 1);
    vt_buf_free(&text);
}

static void put_page_table(struct vt_buf *b, const struct vt_capacity *c)
{
    static const char *const head[] = {
        "req/s",    "achieved", "TTFT p50",     "TTFT p99", "TPOT p50",
        "TPOT p99", "ITL p99",  "output tok/s", "kept",     "<broken"};
    struct vt_page_table t;

    vt_page_table_begin(&t, b, head, VT_COUNT(head));
    for (size_t i = 0; i < c->n; i++) {
        const struct vt_capacity_point *p = &c->point[i];
        const struct vt_summary *s = &p->mean;

        vt_page_row(&t, p->rate >= c->rate && p->rate <= c->rate ? "best" : NULL);
        vt_page_cell(&t, "%.4g", p->rate);
        vt_page_cell(&t, "%.4g", p->achieved);
        vt_page_cell(&t, "%.1f", s->ttft.p50);
        vt_page_cell(&t, "%.1f", s->ttft.p99);
        vt_page_cell(&t, "%.2f", s->tpot.p50);
        vt_page_cell(&t, "%.2f", s->tpot.p99);
        vt_page_cell(&t, "%.2f", s->itl.p99);
        vt_page_cell(&t, "%.0f", s->output_tok_per_s);
        vt_page_cell(&t, "%u of %u", p->passed, p->runs);
        vt_page_cell(&t, "%s", p->broken ? p->broken : p->saturated ? "rate" : "");
    }
    vt_page_table_end(&t);
}

static int write_page(const struct capacity_job *j, const struct opt_args *a,
                      const char *path, struct vt_err *err)
{
    const struct engine_job *e = &j->one.engine;
    struct vt_load_curve curve;
    struct vt_buf b = {0};
    char title[256];
    int rc = make_curve(j, &curve, err);

    snprintf(title, sizeof(title), "How much of %.100s can %.100s bear?",
             j->spec.trial.workload, engine_name(e));
    pages_begin(&b, a, title);
    put_page_answer(&b, j);
    vt_page_section(&b, "load", "Latency against load",
                    j->target.on ? "Measured at a live server, rate by rate."
                                 : "All rates that were simulated; the red line across "
                                   "is the limit, the one upwards the answer.");
    if (rc == VT_OK)
        rc = vt_load_curve_page(&b, &curve, err);
    put_page_table(&b, &j->found);
    if (rc == VT_OK && !j->target.on)
        rc = pages_settings(&b, e, &j->spec.trial.engine, j->spec.trial.fleet,
                            &j->traffic, err);
    else
        vt_page_facts_begin(&b);
    pages_limits(&b, &j->spec.slo);
    vt_page_fact(&b, "seeds", "%u from %llu on", j->spec.seeds,
                 (unsigned long long)j->spec.trial.seed);
    vt_page_fact(&b, "runs", "%zu", j->found.trials);
    vt_page_fact(&b, "made by", "vtwin " VT_VERSION);
    vt_page_facts_end(&b);
    if (!j->target.on)
        pages_profile(&b, e);
    free((void *)(uintptr_t)curve.point);
    return vt_page_write(&b, rc, path, err);
}

/* ---- the run --------------------------------------------------------------------- */

/* What was found when a signal ended the search. */
static int tell_how_far(const struct vt_capacity *c, struct vt_err *err)
{
    char rest[64] = "";

    if (c->n == 0)
        return vt_fail(err, VT_EIO,
                       "stopped before a rate was tried with all its seeds");
    if (c->failed > 0)
        snprintf(rest, sizeof(rest), ", not at %.4g", c->failed);
    if (!(c->rate > 0))
        return vt_fail(err, VT_EIO,
                       "stopped after %zu trials: no rate so far keeps the limits%s",
                       c->trials, rest);
    return vt_fail(
        err, VT_EIO,
        "stopped after %zu trials: so far the limits are kept at %.4g req/s%s",
        c->trials, c->rate, rest);
}

static int find_capacity(const struct opt_args *a, struct vt_err *err)
{
    const struct capacity_options *o = a->options;
    struct capacity_job j = {0};
    struct vt_buf b = {0};
    vt_ns began = vt_wall_ns();
    int rc;

    cli_signals_stop();
    trial_progress_begin(&o->trial);
    rc = cli_workers_open(a, o->trial.workers, o->trial.jobs, err);
    if (rc == VT_OK)
        rc = open_job(&j, a, err);
    if (rc == VT_OK)
        rc = vt_capacity_find(&j.found, &j.spec, err);
    cli_progress_end();
    cli_workers_close();
    if (rc != VT_OK) {
        if (cli_signal_caught())
            rc = tell_how_far(&j.found, err);
        goto out;
    }
    if (!j.target.on && !o->trial.quiet && j.one.fleet.fleet.ranks < 2)
        engine_warn_interval(&o->engine, ENGINE_ALONE);
    if (!j.target.on && !o->trial.quiet)
        engine_warn_extent(&j.found.extent, &j.spec.trial.model->known, "");
    if ((o->csv && (rc = write_csv(&j, o->csv, err))) ||
        (o->plot && (rc = draw_curve(&j, o->plot, err))) ||
        (o->report && (rc = write_page(&j, a, o->report, err))))
        goto out;
    if (o->trial.json)
        rc = put_json(&b, &j, a, err);
    else
        put_table(&b, &j);
    rc = cli_print_end(&b, rc, err);
    if (rc == VT_OK)
        trial_tell_time(&o->trial, j.found.trials, "trials", began);
    if (rc == VT_OK && !(j.found.rate > 0))
        rc = tell_none(&j, err);
out:
    vt_capacity_free(&j.found);
    vt_target_close(&j.target.target);
    simulate_fleet_close(&j.one.fleet);
    engine_close(&j.one.engine);
    vt_trials_free(j.spec.trial.kept);
    traffic_close(&j.traffic);
    return rc;
}

static const char *const examples[] = {
    "./run capacity",
    "./run capacity --workload multiturn-starters --num-prompts 100 --rates 1,2,4 "
    "--seeds 1 --once",
    NULL,
};

const struct opt_command cmd_capacity = {
    .name = "capacity",
    .summary = "find the highest request rate within latency limits",
    .usage =
        "[MODEL] [--workload NAME|FILE | --trace FILE | --dataset-name NAME] [FLAGS]",
    .about = "Simulates a workload at one rate after another and says how many "
             "requests per\n"
             "second can be borne in the long run before a limit is broken. Runs go on "
             "for as\n"
             "long as that takes, however long the workload is: a generator goes on "
             "drawing,\n"
             "recorded requests come again. Exit status 1: no rate keeps the limits.",
    .blocks = blocks,
    .size = sizeof(struct capacity_options),
    .most = 1,
    .examples = examples,
    .run = find_capacity,
};
