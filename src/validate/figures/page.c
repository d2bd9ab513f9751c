/* page.c - one HTML page with everything in it: figures, tables of errors, runtimes and
 * experiments. */
#include <math.h>

#include "validate/figures/figures.h"

static const char style[] =
    "body{font:15px/1.5 system-ui,sans-serif;color:#222;max-width:1100px;"
    "margin:2em auto;padding:0 1em}\n"
    "h1{font-size:1.5em;margin-bottom:0}h2{font-size:1.2em;margin-top:2em}"
    "h3{font-size:1em;margin-bottom:0}p.sub,p.left{color:#666;margin-top:.2em}\n"
    "div.wide{overflow-x:auto}\n"
    "table{border-collapse:collapse;margin:.6em 0 1.5em;font-size:.86em;"
    "font-variant-numeric:tabular-nums}\n"
    "th,td{padding:.22em .7em;text-align:right;border-bottom:1px solid #ddd;"
    "white-space:nowrap}\n"
    "th.l,td.l{text-align:left}thead th{border-bottom:2px solid #777}\n"
    "tr.new td{border-top:1px solid #777}td small{color:#888;margin-left:.45em}\n"
    "figure{margin:1.5em 0}figure svg{max-width:100%;height:auto}\n"
    "figure.narrow svg{max-width:520px}\n";

static void put_cell(struct vt_buf *b, const char *text)
{
    vt_buf_str(b, "<td class=l>");
    vt_html_text(b, text);
    vt_buf_str(b, "</td>");
}

static void put_head(struct vt_buf *b, const char *const *left, size_t n_left)
{
    vt_buf_str(b, "<div class=wide><table><thead><tr>");
    for (size_t i = 0; i < n_left; i++)
        vt_buf_printf(b, "<th class=l>%s</th>", left[i]);
}

static void put_end(struct vt_buf *b)
{
    vt_buf_str(b, "</tbody></table></div>\n");
}

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

static void put_number(struct vt_buf *b, double v, enum sign sign)
{
    int digits = fabs(v) < 100 ? 2 : fabs(v) < 1000 ? 1 : 0;

    if (!isfinite(v))
        vt_buf_str(b, v > 0 ? "&infin;" : "-&infin;");
    else if (sign == SIGNED)
        vt_buf_printf(b, "%+.*f", digits, v);
    else
        vt_buf_printf(b, "%.*f", digits, v);
}

/* Appends the cells of a row; *n gets how many experiments' values are in it. */
static int put_metrics(struct vt_buf *b, const struct rows *r, const char *key,
                       const char *simulator, size_t *n, struct vt_err *err)
{
    int rc = VT_OK;

    *n = 0;
    for (int m = 0; m < VT_ERROR_METRICS && rc == VT_OK; m++) {
        struct values x = {0};

        for (size_t i = 0; i < r->s->n_errors && rc == VT_OK; i++) {
            const struct fig_error *e = &r->s->error[i];

            if (e->metric == m &&
                (e->stage == FIG_SUMMARY) == (r->level == SUMMARIES) &&
                strcmp(key_of(r, e), key) == 0 &&
                strcmp(e->at.simulator, simulator) == 0)
                rc = values_add(&x, r->sign == SIGNED ? e->mpe : e->mape, err);
        }
        *n = x.n > *n ? x.n : *n;
        vt_buf_str(b, "<td>");
        if (x.n > 0) {
            put_number(b, values_quantile(&x, 50), r->sign);
            vt_buf_str(b, "<small>");
            put_number(b, values_mean(&x), r->sign);
            vt_buf_str(b, "</small>");
        }
        vt_buf_str(b, "</td>");
        free(x.v);
    }
    return rc;
}

static int put_rows(struct vt_buf *b, const struct rows *r, const char *key,
                    struct vt_err *err)
{
    bool first = r->key != BY_SIMULATOR;
    int rc = VT_OK;

    for (size_t k = 0; k < r->sims->n && rc == VT_OK; k++) {
        struct vt_buf cells = {0};
        size_t n = 0;

        rc = put_metrics(&cells, r, key, r->sims->of[k].name, &n, err);
        if (rc == VT_OK && n > 0) {
            vt_buf_printf(b, "<tr%s>", first ? " class=new" : "");
            if (r->key != BY_SIMULATOR)
                put_cell(b, first ? key : "");
            put_cell(b, r->sims->of[k].display);
            vt_buf_printf(b, "<td>%zu</td>%s</tr>\n", n,
                          cells.failed ? "" : cells.data);
            b->failed |= cells.failed;
            first = false;
        }
        vt_buf_free(&cells);
    }
    return rc;
}

static int put_table(struct vt_buf *b, const struct rows *r, struct vt_err *err)
{
    static const char *const head[][2] = {
        {"simulator", ""}, {"model", "simulator"}, {"workload", "simulator"}};
    struct keys k = {0};
    int rc = VT_OK;

    for (size_t i = 0; i < r->s->n_errors && rc == VT_OK; i++)
        rc = keys_add(&k, key_of(r, &r->s->error[i]), err);
    put_head(b, head[r->key], r->key == BY_SIMULATOR ? 1 : 2);
    vt_buf_str(b, "<th>n</th>");
    for (int m = 0; m < VT_ERROR_METRICS; m++)
        vt_buf_printf(b, "<th>%s</th>", vt_error_metric_names[m]);
    vt_buf_str(b, "</tr></thead><tbody>\n");
    for (size_t i = 0; i < k.n && rc == VT_OK; i++)
        rc = put_rows(b, r, k.key[i], err);
    put_end(b);
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

    vt_buf_str(b, "<h2>Errors</h2>\n<p class=sub>Percent, median and (small) mean over "
                  "experiments. MAPE has no sign; MPE has: above 0 the simulator says "
                  "too much.</p>\n");
    for (size_t i = 0; i < VT_COUNT(part) && rc == VT_OK; i++)
        for (int sign = UNSIGNED; sign <= SIGNED && rc == VT_OK; sign++) {
            struct rows r = {s, sims, part[i].key, (enum sign)sign, part[i].level};

            vt_buf_printf(b, "<h3>%s: %s</h3>\n", part[i].title,
                          sign == SIGNED ? "MPE (signed)" : "MAPE");
            rc = put_table(b, &r, err);
        }
    return rc;
}

/* ---- runtimes ----------------------------------------------------------- */

static int put_runtime(struct vt_buf *b, const struct fig_set *s,
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
        vt_buf_str(b, "<tr>");
        put_cell(b, sim->display);
        vt_buf_printf(b,
                      "<td>%zu</td><td>%.3f</td><td>%.3f</td><td>%.3f</td><td>%.3f</td>"
                      "<td>%.3f</td><td>",
                      x.n, median, sum / (double)x.n, x.v[0], x.v[x.n - 1], sum);
        if (median > 0)
            vt_buf_printf(b, "%.*f&times;", real / median < 10, real / median);
        vt_buf_str(b, "</td></tr>\n");
    }
    free(x.v);
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

static void put_experiment(struct vt_buf *b, const struct fig_set *s,
                           const struct fig_simulators *sims, const struct fig_where *w)
{
    const char *name = strrchr(w->folder, '/'), *gap = "";
    size_t n = 0;

    for (size_t k = 0; k < sims->n; k++)
        n += has_run(s, w->folder, sims->of[k].name);
    vt_buf_str(b, "<tr>");
    if (w->exp_id >= 0)
        vt_buf_printf(b, "<td class=l>%lld</td>", (long long)w->exp_id);
    else
        vt_buf_str(b, "<td class=l></td>");
    put_cell(b, name && name[1] ? name + 1 : w->folder);
    put_cell(b, w->model);
    put_cell(b, w->workload);
    put_cell(b, w->hardware ? w->hardware : "");
    put_cell(b, w->tag);
    vt_buf_printf(b, "<td>%zu</td>", n);
    vt_buf_str(b, "<td class=l>");
    for (size_t k = 0; k < sims->n; k++)
        if (!has_run(s, w->folder, sims->of[k].name)) {
            vt_buf_str(b, gap);
            vt_html_text(b, sims->of[k].display);
            gap = ", ";
        }
    vt_buf_str(b, "</td></tr>\n");
}

static void put_experiments(struct vt_buf *b, const struct fig_set *s,
                            const struct fig_simulators *sims)
{
    static const char *const left[] = {"id",       "experiment", "model",
                                       "workload", "hardware",   "configuration"};

    vt_buf_str(b, "<h2>Experiments</h2>\n<p class=sub>A simulator without results was "
                  "skipped there (it cannot run it) or failed.</p>\n");
    put_head(b, left, VT_COUNT(left));
    vt_buf_str(b, "<th>simulators</th><th class=l>without results</th></tr></thead>"
                  "<tbody>\n");
    for (size_t i = 0; i < s->n_errors; i++) {
        size_t k = i;

        while (k > 0 && strcmp(s->error[k - 1].at.folder, s->error[i].at.folder) != 0)
            k--;
        if (k == 0) /* none before it is of the same folder */
            put_experiment(b, s, sims, &s->error[i].at);
    }
    put_end(b);
}

/* ---- the page ----------------------------------------------------------- */

int fig_page(struct vt_buf *b, const struct fig_set *s,
             const struct fig_simulators *sims, const struct fig_drawn *drawn, size_t n,
             struct vt_err *err)
{
    static const char *const left[] = {"simulator"};
    char subtitle[128];
    int rc;

    snprintf(subtitle, sizeof(subtitle),
             "by vtwin " VT_VERSION "; %zu error records of %zu simulators",
             s->n_errors, sims->n);
    vt_html_begin(b, "Simulators against reality", style, subtitle);
    for (size_t i = 0; i < n; i++) {
        const struct fig_drawn *d = &drawn[i];
        bool narrow = strcmp(d->name, "fig5_pareto") == 0;

        vt_buf_printf(b, "<h2 id=\"%s\">%s</h2>\n", d->name, d->title);
        if (!vt_html_figure(b, narrow ? " class=narrow" : "", &d->svg))
            vt_buf_str(b, "<p class=left>Not drawn: ");
        else if (*d->why)
            vt_buf_str(b, "<p class=left>In this figure ");
        else
            continue;
        vt_html_text(b, d->why);
        vt_buf_str(b, ".</p>\n");
    }
    if ((rc = put_errors(b, s, sims, err)) != VT_OK)
        return rc;
    vt_buf_str(b, "<h2>Runtime</h2>\n<p class=sub>Seconds an experiment.</p>\n");
    put_head(b, left, 1);
    vt_buf_str(b, "<th>runs</th><th>median</th><th>mean</th><th>least</th><th>most</th>"
                  "<th>total</th><th>against real time</th></tr></thead><tbody>\n");
    for (size_t k = 0; k < sims->n && rc == VT_OK; k++)
        rc = put_runtime(b, s, &sims->of[k], err);
    put_end(b);
    if (rc != VT_OK)
        return rc;
    put_experiments(b, s, sims);
    vt_html_end(b);
    return b->failed ? vt_nomem(err) : VT_OK;
}
