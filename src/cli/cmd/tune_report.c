/* tune_report.c - what a search or a plan leaves: files in a directory, a table. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cmd/settings.h"
#include "cli/cmd/tune.h"
#include "page/page.h"

enum { MOST_ROWS = 20 };

/* A missing gnuplot does not take the numbers with it. */
static int excuse_picture(int rc, const char *name, const struct vt_err *err)
{
    if (rc != VT_EIO && rc != VT_ECHECK)
        return rc;
    cli_say("vtwin: warning: no %s: %s\n", name, err->msg);
    return VT_OK;
}

/* ---- a search -------------------------------------------------------- */

/* As every result states them: those of the best, or of the first where none is. What a
 * live server is set to is not known. */
struct settled {
    const struct tune_job *job;
    size_t best;
};

static void put_settings(void *user, struct vt_jw *w)
{
    const struct settled *x = user;
    const struct vt_tune_spec *spec = &x->job->spec;
    struct vt_setting s = vt_tune_space_at(&spec->space, x->best);
    struct vt_deployment d;

    if (x->job->target.on)
        return;
    if (vt_deploy(&d, &spec->site, &s, NULL) == VT_OK)
        settings_json(w, &x->job->engine, &d.engine, &s, d.many ? &d.fleet : NULL,
                      &x->job->traffic);
    vt_undeploy(&d);
}

static void put_json(struct vt_buf *b, const struct tune_job *j,
                     const struct vt_tune_result *r)
{
    struct settled x = {j, r->best < r->n ? r->best : 0};

    vt_tune_json(b, &j->spec, r, j->engine.timed_by, put_settings, &x);
}

/* One run, in the lines that auto_tune looks for in `vllm bench serve`'s. */
static int write_run(const char *dir, const struct vt_setting *s,
                     const struct vt_iteration *i, struct vt_err *err)
{
    char rate[32] = "inf", name[128];
    struct vt_buf b = {0};

    if (!isinf(i->rate))
        (void)snprintf(rate, sizeof(rate), "%g", i->rate);
    (void)snprintf(name, sizeof(name), "bm_log_%u_%u_requestrate_%s.txt",
                   s->max_num_seqs, s->max_num_batched_tokens, rate);
    vt_buf_printf(&b,
                  "simulated by vtwin " VT_VERSION "%s\n"
                  "Request throughput (req/s): %.2f\n"
                  "Request goodput (req/s): %.2f\n"
                  "P99 TTFT (ms): %.2f\nP99 TPOT (ms): %.2f\n"
                  "P99 ITL (ms): %.2f\nP99 E2EL (ms): %.2f\n",
                  i->cut ? ", up to where it was clear that it breaks a limit" : "",
                  i->req_per_s, i->goodput, i->ttft_p99, i->tpot_p99, i->itl_p99,
                  i->e2e_p99);
    if (i->broken[0] != '\0')
        vt_buf_printf(&b, "breaks the limit of %s\n", i->broken);
    return cli_save(dir, name, &b, err);
}

/* auto_tune leaves a log of each server and of each run. */
static int write_logs(const struct tune_job *j, const struct vt_tune_result *r,
                      const char *dir, struct vt_err *err)
{
    int rc = VT_OK;

    for (size_t i = 0; i < r->n && rc == VT_OK; i++) {
        const struct vt_tuned *t = &r->tuned[i];
        struct vt_setting s = vt_tune_space_at(&j->spec.space, i);
        uint32_t runs = t->runs < VT_TUNE_ITERATIONS ? t->runs : VT_TUNE_ITERATIONS;
        struct vt_buf b = {0};
        char name[128];

        if (!t->tried)
            continue;
        (void)snprintf(name, sizeof(name), "vllm_log_%u_%u.txt", s.max_num_seqs,
                       s.max_num_batched_tokens);
        vt_buf_printf(&b,
                      "simulated by vtwin " VT_VERSION "\ngpu_memory_utilization %g\n"
                      "KV cache %.2f GiB, %u blocks\n%s%s",
                      s.gpu_memory_utilization, t->kv_gib, t->num_gpu_blocks,
                      t->problem, t->problem[0] ? "\n" : "");
        rc = cli_save(dir, name, &b, err);
        for (uint32_t k = 0; k < runs && rc == VT_OK; k++)
            rc = write_run(dir, &s, &t->iteration[k], err);
    }
    return rc;
}

static int write_files(const struct tune_job *j, const struct vt_tune_result *r,
                       const char *dir, bool logs, struct vt_err *err)
{
    char path[4096], title[256];
    struct vt_buf b = {0};
    int rc = vt_make_dirs(dir, NULL, err);

    if (rc != VT_OK)
        return rc;
    vt_tune_result_txt(&b, &j->spec, r, "vtwin-" VT_VERSION, dir);
    if ((rc = cli_save(dir, "result.txt", &b, err)))
        return rc;
    put_json(&b, j, r);
    if ((rc = cli_save(dir, "result.json", &b, err)))
        return rc;
    vt_tune_csv(&b, &j->spec, r);
    if ((rc = cli_save(dir, "trials.csv", &b, err)) ||
        (logs && (rc = write_logs(j, r, dir, err))))
        return rc;
    snprintf(path, sizeof(path), "%.4000s/pareto.png", dir);
    engine_caption(title, sizeof(title), &j->engine, j->spec.workload);
    rc = vt_tune_plot(&j->spec, r, title, cli_scratch(), path, err);
    return excuse_picture(rc, "pareto.png", err);
}

/* The command line, for the model that was asked about. What the pool's size makes of
 * max-model-len is known once it is deployed. */
static void put_recommended(struct vt_buf *b, const struct tune_job *j,
                            const struct vt_tune_result *r,
                            const struct tune_options *o)
{
    struct vt_setting s = vt_tune_space_at(&j->spec.space, r->best);
    struct vt_deployment d;

    if (vt_deploy(&d, &j->spec.site, &s, NULL) != VT_OK)
        d.engine = j->spec.site.engine; /* a live server has started with it */
    engine_recommend(b, &j->engine, &o->engine, &j->spec.site, &d.engine, &s);
    vt_undeploy(&d);
}

static void put_best(struct vt_buf *b, const struct tune_job *j,
                     const struct vt_tune_result *r, const struct tune_options *o)
{
    const struct vt_tuned *t = &r->tuned[r->best];
    struct vt_outside way[VT_OUTSIDE];
    size_t n = j->target.on ? 0 : vt_outside(&t->at.extent, &t->known, way);

    for (size_t i = 0; i < n; i++)
        vt_buf_printf(b, "outside      %s reached %llu, fitted up to %llu\n",
                      way[i].what, (unsigned long long)way[i].reached,
                      (unsigned long long)way[i].fitted);
    if (t->sure)
        vt_buf_printf(b,
                      "capacity %.4g req/s, over %.0f s, %u requests in each of %u "
                      "runs; the others by short runs\n",
                      t->rate, t->run_s, t->run_requests, j->spec.seeds);
    vt_buf_str(b, "recommended:\n  ");
    put_recommended(b, j, r, o);
    vt_buf_char(b, '\n');
}

/* By how much the one that comes nearest misses them. */
static int tell_none(const struct tune_job *j, const struct vt_tune_result *r,
                     struct vt_err *err)
{
    const struct vt_tuned *nearest = NULL;
    double least = 0;
    char why[96];

    for (size_t i = 0; i < r->n; i++) {
        const struct vt_tuned *t = &r->tuned[i];
        double share;

        if (!t->tried || t->problem[0] != '\0')
            continue;
        (void)vt_slo_nearest(&j->spec.slo, &t->at, &share);
        if (!nearest || share < least) {
            nearest = t;
            least = share;
        }
    }
    if (!nearest)
        return vt_fail(err, VT_ECHECK, "no configuration can run: %s",
                       r->n > 0 ? r->tuned[0].problem : "there is none");
    return vt_fail(
        err, VT_ECHECK,
        "no configuration keeps the limits; of the one that comes nearest %s",
        vt_tune_why(why, sizeof(why), &j->spec.slo, nearest));
}

/* A page, in the directory of --out and where --report says. */
static int write_page(struct vt_buf *page, int rc, const struct tune_options *o,
                      struct vt_err *err)
{
    vt_page_end(page);
    if (rc == VT_OK && page->failed)
        rc = vt_nomem(err);
    if (rc == VT_OK && o->out)
        rc = vt_write_file_in(o->out, "report.html", page, err);
    if (rc == VT_OK && o->report)
        rc = vt_write_file(o->report, page, err);
    vt_buf_free(page);
    return rc;
}

static int search_page(const struct tune_job *j, const struct vt_tune_result *r,
                       const struct opt_args *a, struct vt_err *err)
{
    const struct tune_options *o = a->options;
    struct vt_buf page = {0}, line = {0};
    int rc;

    if (!o->out && !o->report)
        return VT_OK;
    vt_buf_str(&line, "");
    if (r->best < r->n)
        put_recommended(&line, j, r, o);
    rc = line.failed ? vt_nomem(err)
                     : tune_page(&page, a, j, r, line.data ? line.data : "", err);
    vt_buf_free(&line);
    return write_page(&page, rc, o, err);
}

int tune_report(const struct tune_job *j, const struct vt_tune_result *r,
                const struct opt_args *a, struct vt_err *err)
{
    const struct tune_options *o = a->options;
    struct vt_buf b = {0};
    int rc = o->out ? write_files(j, r, o->out, o->auto_tune != NULL, err) : VT_OK;

    if (rc != VT_OK || (rc = search_page(j, r, a, err)))
        return rc;
    if (r->best < r->n && !o->trial.quiet && !j->target.on)
        engine_warn_extent(&r->tuned[r->best].at.extent, &r->tuned[r->best].known, "");
    if (o->trial.json) {
        put_json(&b, j, r);
        return cli_print(&b, err);
    }
    vt_tune_table(&b, &j->spec, r, MOST_ROWS);
    vt_buf_printf(&b, "\n%zu of %zu configurations tried, %zu simulations", r->trials,
                  r->n, r->runs);
    if (j->target.on)
        vt_buf_char(&b, '\n');
    else
        vt_buf_printf(&b, ", scheduler of vLLM 0.%u\n", j->engine.config.vllm);
    if (!j->target.on)
        vt_basis_table(&b, &j->engine.trust);
    if (r->best < r->n)
        put_best(&b, j, r, o);
    rc = cli_print(&b, err);
    return rc || r->best < r->n ? rc : tell_none(j, r, err);
}

/* ---- a plan ---------------------------------------------------------- */

static int write_plan(const struct vt_tuning_plan *p, const struct vt_tuning_result *r,
                      const char *dir, struct vt_err *err)
{
    static const struct {
        const char *name;
        void (*put)(struct vt_buf *b, const struct vt_tuning_plan *p,
                    const struct vt_tuning_result *r);
    } file[] = {{"plan.txt", vt_tuning_table},
                {"plan.json", vt_tuning_json},
                {"plan.csv", vt_tuning_csv}};
    struct vt_buf b = {0};
    char path[4096];
    int rc = vt_make_dirs(dir, NULL, err);

    for (size_t i = 0; i < VT_COUNT(file) && rc == VT_OK; i++) {
        file[i].put(&b, p, r);
        rc = cli_save(dir, file[i].name, &b, err);
    }
    if (rc != VT_OK)
        return rc;
    snprintf(path, sizeof(path), "%.4000s/plan.png", dir);
    return excuse_picture(vt_tuning_plot(p, r, cli_scratch(), path, err), "plan.png",
                          err);
}

/* A row's answer stands on the highest rate that it kept, or on the lowest tried. */
static void warn_rows(const struct vt_tuning_plan *p, const struct vt_tuning_result *r)
{
    for (size_t i = 0; i < p->n; i++) {
        size_t k = r->best[i] < p->n_rates ? r->best[i] : 0;
        const struct vt_tuning_cell *c = &r->at[i * p->n_rates + k];
        char whose[160];

        snprintf(whose, sizeof(whose), "row '%.100s': ", p->row[i].name);
        engine_warn_extent(&c->mean.extent, &c->known, whose);
    }
}

static int plan_page(const struct vt_tuning_plan *p, const struct vt_tuning_result *r,
                     const struct opt_args *a, struct vt_err *err)
{
    const struct tune_options *o = a->options;
    struct vt_buf page = {0};

    if (!o->out && !o->report)
        return VT_OK;
    return write_page(&page, tune_plan_page(&page, a, p, r, err), o, err);
}

int tune_plan(const struct opt_args *a, struct vt_err *err)
{
    const struct tune_options *o = a->options;
    struct vt_tuning_plan *p = malloc(sizeof(*p));
    const struct trial_options *t = &o->trial;
    struct vt_tuning_result r = {0};
    struct vt_buf b = {0};
    int rc = p ? vt_tuning_plan_load(p, o->plan, err) : vt_nomem(err);

    if (rc != VT_OK) {
        free(p);
        return rc;
    }
    if (t->rates.n > VT_TUNING_RATES) {
        rc = vt_fail(err, VT_EINPUT, "--rates: more than %d", VT_TUNING_RATES);
        goto out;
    }
    /* Flags beat the file where they make it shorter or longer. */
    if (t->rates.n > 0) {
        memcpy(p->rate, t->rates.at, sizeof(p->rate));
        p->n_rates = t->rates.n;
    }
    if (opt_given(a, &t->seeds))
        p->seeds = t->seeds;
    if (t->traffic.num_prompts > 0)
        p->requests = t->traffic.num_prompts;
    if ((rc = vt_tuning_plan_run(&r, p, (uint64_t)t->seed, t->jobs, err)) ||
        (o->out && (rc = write_plan(p, &r, o->out, err))) ||
        (rc = plan_page(p, &r, a, err)))
        goto out;
    engine_warn_profile(p->profile);
    if (!t->quiet)
        warn_rows(p, &r);
    if (t->json)
        vt_tuning_json(&b, p, &r);
    else
        vt_tuning_table(&b, p, &r);
    rc = cli_print(&b, err);
out:
    vt_tuning_result_free(&r);
    vt_tuning_plan_free(p);
    free(p);
    return rc;
}
