/* page.c - one HTML page with everything in it: figures, tables of errors, runtimes and
 * experiments. */
#include <math.h>

#include "page/page.h"
#include "validate/figures/figures.h"

/* ---- errors ------------------------------------------------------------- */

enum key { BY_SIMULATOR, BY_MODEL, BY_WORKLOAD };
enum sign { UNSIGNED, SIGNED };
enum level { SUMMARIES, STAGES };

struct rows { /* which error records a table is of */
    const struct fig_set *s;
    const struct fig_simulators *sims;
    enum key key;
    enum sign sign;
    enum level level;
};

static const char *key_of(const struct rows *r, const struct fig_error *e)
{
    if (r->key == BY_SIMULATOR)
        return "";
    return r->key == BY_MODEL ? e->at.model : e->at.workload;
}

static void write_number(char out[32], double v, enum sign sign)
{
    int digits = fabs(v) < 100 ? 2 : fabs(v) < 1000 ? 1 : 0;

    if (!isfinite(v))
        (void)snprintf(out, 32, "%s", v > 0 ? "infinite" : "-infinite");
    else
        (void)snprintf(out, 32, sign == SIGNED ? "%+.*f" : "%.*f", digits, v);
}

/* The values of one cell, sorted on demand; the caller frees x->v. */
static int take_values(struct values *x, const struct rows *r, const char *key,
                       const char *simulator, int metric, struct vt_err *err)
{
    int rc = VT_OK;

    for (size_t i = 0; i < r->s->n_errors && rc == VT_OK; i++) {
        const struct fig_error *e = &r->s->error[i];

        if (e->metric == metric &&
            (e->stage == FIG_SUMMARY) == (r->level == SUMMARIES) &&
            strcmp(key_of(r, e), key) == 0 && strcmp(e->at.simulator, simulator) == 0)
            rc = values_add(x, r->sign == SIGNED ? e->mpe : e->mape, err);
    }
    return rc;
}

static int put_row(struct vt_page_table *t, const struct rows *r, const char *key,
                   const struct fig_simulator *sim, bool *first, struct vt_err *err)
{
    struct values x[VT_ERROR_METRICS] = {0};
    size_t n = 0;
    int rc = VT_OK;

    for (int m = 0; m < VT_ERROR_METRICS && rc == VT_OK; m++) {
        rc = take_values(&x[m], r, key, sim->name, m, err);
        n = x[m].n > n ? x[m].n : n;
    }
    if (rc == VT_OK && n > 0) {
        vt_page_row(t, *first ? "new" : NULL);
        if (r->key != BY_SIMULATOR)
            vt_page_cell(t, "%s", *first ? key : "");
        vt_page_cell(t, "%s", sim->display);
        vt_page_cell(t, "%zu", n);
        *first = false;
    }
    for (int m = 0; m < VT_ERROR_METRICS; m++) {
        char median[32] = "", mean[32] = "";

        if (rc == VT_OK && n > 0 && x[m].n > 0) {
            write_number(median, values_quantile(&x[m], 50), r->sign);
            write_number(mean, values_mean(&x[m]), r->sign);
        }
        if (rc == VT_OK && n > 0)
            vt_page_cell_small(t, median, mean);
        free(x[m].v);
    }
    return rc;
}

static int put_table(struct vt_buf *b, const struct rows *r, struct vt_err *err)
{
    static const char *const left[][2] = {
        {"<simulator", "n"}, {"<model", "<simulator"}, {"<workload", "<simulator"}};
    const char *head[3 + VT_ERROR_METRICS];
    struct vt_page_table t;
    struct keys k = {0};
    size_t n = 0;
    int rc = VT_OK;

    for (size_t i = 0; i < r->s->n_errors && rc == VT_OK; i++)
        rc = keys_add(&k, key_of(r, &r->s->error[i]), err);
    head[n++] = left[r->key][0];
    head[n++] = left[r->key][1];
    if (r->key != BY_SIMULATOR)
        head[n++] = "n";
    for (int m = 0; m < VT_ERROR_METRICS; m++)
        head[n++] = vt_error_metric_names[m];
    vt_page_table_begin(&t, b, head, n);
    for (size_t i = 0; i < k.n && rc == VT_OK; i++) {
        bool first = r->key != BY_SIMULATOR;

        for (size_t q = 0; q < r->sims->n && rc == VT_OK; q++)
            rc = put_row(&t, r, k.key[i], &r->sims->of[q], &first, err);
    }
    vt_page_table_end(&t);
    free(k.key);
    return rc;
}

static int put_errors(struct vt_buf *b, const struct fig_set *s,
                      const struct fig_simulators *sims, struct vt_err *err)
{
    static const struct {
        const char *title;
        enum key key;
        enum level level;
    } part[] = {{"By simulator", BY_SIMULATOR, SUMMARIES},
                {"By model", BY_MODEL, SUMMARIES},
                {"By workload", BY_WORKLOAD, SUMMARIES},
                {"By simulator, single stages", BY_SIMULATOR, STAGES}};
    int rc = VT_OK;

    vt_page_section(b, "errors", "Errors",
                    "Percent, median and (small) mean over experiments. MAPE has no "
                    "sign; MPE has: above 0 the simulator says too much.");
    for (size_t i = 0; i < VT_COUNT(part) && rc == VT_OK; i++)
        for (int sign = UNSIGNED; sign <= SIGNED && rc == VT_OK; sign++) {
            struct rows r = {s, sims, part[i].key, (enum sign)sign, part[i].level};

            vt_buf_printf(b, "<h3>%s: %s</h3>\n", part[i].title,
                          sign == SIGNED ? "MPE (signed)" : "MAPE");
            rc = put_table(b, &r, err);
        }
    return rc;
}

/* Medians of the main errors as bars: the page's first look. */
static int put_bars(struct vt_buf *b, const struct fig_set *s,
                    const struct fig_simulators *sims, struct vt_err *err)
{
    static const int metric[] = {FIG_E2E_MEAN, FIG_TTFT_MEAN, FIG_ITL_MEAN};
    const struct rows r = {s, sims, BY_SIMULATOR, UNSIGNED, SUMMARIES};
    double at[FIG_MAX_SIMS], v[VT_COUNT(metric)][FIG_MAX_SIMS];
    struct vt_plot_series series[VT_COUNT(metric)];
    const char *name[FIG_MAX_SIMS];
    double lowest = 1; /* where bars begin: a power of ten below all of them */
    int rc = VT_OK;

    for (size_t m = 0; m < VT_COUNT(metric); m++) {
        for (size_t k = 0; k < sims->n && rc == VT_OK; k++) {
            struct values x = {0};

            rc = take_values(&x, &r, "", sims->of[k].name, metric[m], err);
            v[m][k] = x.n > 0 ? values_quantile(&x, 50) : NAN;
            while (v[m][k] > 0 && v[m][k] <= lowest && lowest > 1e-6)
                lowest /= 10;
            at[k] = (double)k;
            name[k] = sims->of[k].display;
            free(x.v);
        }
        series[m] = (struct vt_plot_series){
            .name = vt_error_metric_names[metric[m]], .x = v[m], .y = at, .n = sims->n};
    }
    if (rc == VT_OK)
        vt_page_plot(b, &(struct vt_plot){
                            .id = "mape",
                            .kind = VT_PLOT_BARS,
                            .title = "Error of each simulator, median over experiments",
                            .note = "Shorter is nearer to what was measured; the scale "
                                    "is logarithmic.",
                            .x = {.label = "MAPE",
                                  .unit = "%",
                                  .log = true,
                                  .has_min = true,
                                  .min = lowest},
                            .y = {.category = name, .n_categories = sims->n},
                            .series = series,
                            .n = VT_COUNT(metric),
                        });
    return rc;
}

/* The least wrong one, and what all of it stands on. */
static int put_answer(struct vt_buf *b, const struct fig_set *s,
                      const struct fig_simulators *sims, struct vt_err *err)
{
    const struct rows r = {s, sims, BY_SIMULATOR, UNSIGNED, SUMMARIES};
    const char *best = NULL;
    double least = INFINITY;
    char text[256] = "There is no summary to judge.";
    int rc = VT_OK;

    for (size_t k = 0; k < sims->n && rc == VT_OK; k++) {
        struct values x = {0};

        rc = take_values(&x, &r, "", sims->of[k].name, FIG_E2E_MEAN, err);
        if (x.n > 0 && values_quantile(&x, 50) < least) {
            least = values_quantile(&x, 50);
            best = sims->of[k].display;
        }
        free(x.v);
    }
    if (best && sims->n > 1)
        snprintf(text, sizeof(text),
                 "Of %zu simulators %s is nearest to reality: its mean E2E is off by "
                 "%.3g %% (median over experiments).",
                 sims->n, best, least);
    else if (best)
        snprintf(text, sizeof(text),
                 "The mean E2E of %s is off by %.3g %% (median over experiments).",
                 best, least);
    vt_page_answer(b, text,
                   &(struct vt_page_trust){
                       .basis = "simulated against measured",
                       .about = "Predictions are the simulators', what they are held "
                                "against was measured at real engines."});
    return rc;
}

/* ---- runtimes ----------------------------------------------------------- */

static int put_runtime(struct vt_page_table *t, const struct fig_set *s,
                       const struct fig_simulator *sim, struct vt_err *err)
{
    struct values x = {0};
    double real = 0, sum = 0, median;
    int rc = fig_real_seconds(&real, s, sim->name, err);

    for (size_t i = 0; i < s->n_runtimes && rc == VT_OK; i++)
        if (strcmp(s->runtime[i].at.simulator, sim->name) == 0) {
            rc = values_add(&x, s->runtime[i].seconds, err);
            sum += s->runtime[i].seconds;
        }
    if (rc == VT_OK && x.n > 0) {
        median = values_quantile(&x, 50);
        vt_page_row(t, NULL);
        vt_page_cell(t, "%s", sim->display);
        vt_page_cell(t, "%zu", x.n);
        vt_page_cell(t, "%.3f", median);
        vt_page_cell(t, "%.3f", sum / (double)x.n);
        vt_page_cell(t, "%.3f", x.v[0]);
        vt_page_cell(t, "%.3f", x.v[x.n - 1]);
        vt_page_cell(t, "%.3f", sum);
        if (median > 0)
            vt_page_cell(t, "%.*f times", real / median < 10, real / median);
        else
            vt_page_cell(t, "%s", "");
    }
    free(x.v);
    return rc;
}

static int put_runtimes(struct vt_buf *b, const struct fig_set *s,
                        const struct fig_simulators *sims, struct vt_err *err)
{
    static const char *const head[] = {
        "<simulator", "runs", "median", "mean",
        "least",      "most", "total",  "real time over it"};
    struct vt_page_table t;
    int rc = VT_OK;

    vt_page_section(b, "runtime", "Runtime", "Seconds an experiment.");
    vt_page_table_begin(&t, b, head, VT_COUNT(head));
    for (size_t k = 0; k < sims->n && rc == VT_OK; k++)
        rc = put_runtime(&t, s, &sims->of[k], err);
    vt_page_table_end(&t);
    return rc;
}

/* ---- experiments -------------------------------------------------------- */

static bool has_run(const struct fig_set *s, const char *folder, const char *simulator)
{
    for (size_t i = 0; i < s->n_errors; i++)
        if (strcmp(s->error[i].at.folder, folder) == 0 &&
            strcmp(s->error[i].at.simulator, simulator) == 0)
            return true;
    return false;
}

static void put_experiment(struct vt_page_table *t, const struct fig_set *s,
                           const struct fig_simulators *sims, const struct fig_where *w)
{
    const char *name = strrchr(w->folder, '/');
    struct vt_buf without = {0};
    size_t n = 0;

    for (size_t k = 0; k < sims->n; k++) {
        bool ran = has_run(s, w->folder, sims->of[k].name);

        n += ran;
        if (!ran)
            vt_buf_printf(&without, "%s%s", without.len > 0 ? ", " : "",
                          sims->of[k].display);
    }
    vt_page_row(t, NULL);
    if (w->exp_id >= 0)
        vt_page_cell(t, "%lld", (long long)w->exp_id);
    else
        vt_page_cell(t, "%s", "");
    vt_page_cell(t, "%s", name && name[1] ? name + 1 : w->folder);
    vt_page_cell(t, "%s", w->model);
    vt_page_cell(t, "%s", w->workload);
    vt_page_cell(t, "%s", w->hardware ? w->hardware : "");
    vt_page_cell(t, "%s", w->tag);
    vt_page_cell(t, "%zu", n);
    vt_page_cell(t, "%s", without.len > 0 ? without.data : "");
    t->b->failed |= without.failed;
    vt_buf_free(&without);
}

static void put_experiments(struct vt_buf *b, const struct fig_set *s,
                            const struct fig_simulators *sims)
{
    static const char *const head[] = {
        "<id",       "<experiment",    "<model",     "<workload",
        "<hardware", "<configuration", "simulators", "<without results"};
    struct vt_page_table t;

    vt_page_section(b, "experiments", "Experiments",
                    "A simulator without results was skipped there (it cannot run it) "
                    "or failed.");
    vt_page_table_begin(&t, b, head, VT_COUNT(head));
    for (size_t i = 0; i < s->n_errors; i++) {
        size_t k = i;

        while (k > 0 && strcmp(s->error[k - 1].at.folder, s->error[i].at.folder) != 0)
            k--;
        if (k == 0) /* none before it is of the same folder */
            put_experiment(&t, s, sims, &s->error[i].at);
    }
    vt_page_table_end(&t);
}

/* ---- the page ----------------------------------------------------------- */

int fig_page(struct vt_buf *b, const struct fig_set *s,
             const struct fig_simulators *sims, const struct fig_drawn *drawn, size_t n,
             struct vt_err *err)
{
    char subtitle[128];
    int rc;

    snprintf(subtitle, sizeof(subtitle),
             "by vtwin " VT_VERSION "; %zu error records of %zu simulators",
             s->n_errors, sims->n);
    vt_page_begin(b, "vtwin validate", "Simulators against reality", subtitle);
    if ((rc = put_answer(b, s, sims, err)) != VT_OK ||
        (rc = put_bars(b, s, sims, err)) != VT_OK)
        return rc;
    for (size_t i = 0; i < n; i++) {
        const struct fig_drawn *d = &drawn[i];

        vt_page_section(b, d->name, d->title, NULL);
        vt_page_svg(b, NULL, strcmp(d->name, "fig5_pareto") == 0, &d->svg, d->why);
        if (d->svg.len > 0 && *d->why)
            vt_page_para(b, VT_PAGE_QUIET, "In this figure %s.", d->why);
    }
    if ((rc = put_errors(b, s, sims, err)) != VT_OK ||
        (rc = put_runtimes(b, s, sims, err)) != VT_OK)
        return rc;
    put_experiments(b, s, sims);
    vt_page_end(b);
    return b->failed ? vt_nomem(err) : VT_OK;
}
