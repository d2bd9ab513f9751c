/* tune_page.c - a search or a plan as a page. */
#include <math.h>

#include "cli/cmd/pages.h"
#include "cli/cmd/tune.h"

enum { MOST_ROWS = 60 };

static void put_answer(struct vt_buf *b, const struct tune_job *j,
                       const struct vt_tune_result *r)
{
    const struct vt_tuned *t = r->best < r->n ? &r->tuned[r->best] : NULL;
    const struct pages_trust trust = {
        j->target.on ? NULL : &j->engine, t && !j->target.on ? &t->at.extent : NULL,
        t ? &t->known : NULL, j->target.on ? "measured at a live server" : NULL};
    char text[3][VT_PAGE_NUMBER];

    if (!t) {
        pages_answer(b, &trust, "No configuration of %zu keeps the limits.", r->n);
        return;
    }
    if (j->spec.goal == VT_TUNE_CAPACITY)
        pages_answer(b, &trust,
                     "The best of %zu configurations bears %.4g requests per second "
                     "within the limits: TTFT p99 %s ms, TPOT p99 %s ms there.",
                     r->n, t->rate, vt_page_number(text[0], t->at.ttft.p99),
                     vt_page_number(text[1], t->at.tpot.p99));
    else
        pages_answer(b, &trust,
                     "The best of %zu configurations serves %.4g requests per second: "
                     "TTFT p99 %s ms, TPOT p99 %s ms, E2E p99 %s ms.",
                     r->n, t->at.req_per_s, vt_page_number(text[0], t->at.ttft.p99),
                     vt_page_number(text[1], t->at.tpot.p99),
                     vt_page_number(text[2], t->at.e2e.p99));
}

int tune_page(struct vt_buf *b, const struct opt_args *a, const struct tune_job *j,
              const struct vt_tune_result *r, const char *recommended,
              struct vt_err *err)
{
    char title[256];
    int rc;

    snprintf(title, sizeof(title), "Settings of %.100s for %.100s",
             engine_name(&j->engine), j->spec.workload);
    pages_begin(b, a, title);
    put_answer(b, j, r);
    if (recommended[0]) {
        vt_buf_str(b, "<p><code>");
        vt_page_text(b, recommended);
        vt_buf_str(b, "</code></p>\n");
    }
    rc = vt_tune_page(b, &j->spec, r, MOST_ROWS, err);
    if (rc == VT_OK && !j->target.on)
        rc =
            pages_settings(b, &j->engine, &j->spec.site.engine, NULL, &j->traffic, err);
    else
        vt_page_facts_begin(b);
    pages_limits(b, &j->spec.slo);
    vt_page_fact(b, "objective", "%s",
                 j->spec.goal == VT_TUNE_CAPACITY ? "capacity" : "throughput");
    vt_page_fact(b, "configurations tried", "%zu of %zu", r->trials, r->n);
    vt_page_fact(b, j->target.on ? "runs" : "simulations", "%zu", r->runs);
    vt_page_fact(b, "seed", "%llu", (unsigned long long)j->spec.seed);
    vt_page_fact(b, "made by", "vtwin " VT_VERSION);
    vt_page_facts_end(b);
    if (!j->target.on)
        pages_profile(b, &j->engine);
    return rc;
}

/* ---- a plan ------------------------------------------------------------ */

static double rate_of(const struct vt_tuning_plan *p, const struct vt_tuning_result *r,
                      size_t i)
{
    return r->best[i] < p->n_rates ? p->rate[r->best[i]] : 0;
}

static void put_rates(struct vt_buf *b, const struct vt_tuning_plan *p,
                      const struct vt_tuning_result *r)
{
    double at[VT_TUNING_ROWS], simulated[VT_TUNING_ROWS], measured[VT_TUNING_ROWS];
    const char *name[VT_TUNING_ROWS];
    const struct vt_plot_series series[] = {
        {.name = "simulated", .x = simulated, .y = at, .n = p->n},
        {.name = "measured", .x = measured, .y = at, .n = p->n},
    };
    bool any = false;

    for (size_t i = 0; i < p->n; i++) {
        at[i] = (double)i;
        name[i] = p->row[i].name;
        simulated[i] = rate_of(p, r, i);
        measured[i] = p->row[i].measured.rate > 0 ? p->row[i].measured.rate : NAN;
        any |= p->row[i].measured.rate > 0;
    }
    vt_page_plot(b, &(struct vt_plot){
                        .id = "rates",
                        .kind = VT_PLOT_BARS,
                        .title = "Highest rate within the limits",
                        .note = any ? "Longer is better; measured bars are of the real "
                                      "engine."
                                    : "Longer is better; all of it is simulated.",
                        .x = {.label = "requests per second for each engine"},
                        .y = {.category = name, .n_categories = p->n},
                        .series = series,
                        .n = any ? 2 : 1,
                    });
}

static void put_known(struct vt_page_table *t, double v) /* 0: not measured */
{
    if (v > 0)
        vt_page_cell(t, "%g", v);
    else
        vt_page_cell(t, "%s", "");
}

static void put_rows(struct vt_buf *b, const struct vt_tuning_plan *p,
                     const struct vt_tuning_result *r)
{
    static const char *const head[] = {"<row",     "KV GiB",       "measured",
                                       "rate",     "measured",     "TTFT p99",
                                       "TPOT p99", "<broken above"};
    struct vt_page_table t;

    vt_page_section(b, "rows", "Rows", "Latencies in milliseconds, at the rate kept.");
    vt_page_table_begin(&t, b, head, VT_COUNT(head));
    for (size_t i = 0; i < p->n; i++) {
        size_t k = r->best[i] < p->n_rates ? r->best[i] : 0;
        size_t above = r->best[i] < p->n_rates ? r->best[i] + 1 : 0;
        const struct vt_tuning_cell *c = &r->at[i * p->n_rates + k];
        const struct vt_tuning_measured *m = &p->row[i].measured;

        vt_page_row(&t, NULL);
        vt_page_cell(&t, "%s", p->row[i].name);
        vt_page_cell(&t, "%.2f", r->kv_gib[i]);
        put_known(&t, m->kv_gib);
        vt_page_cell(&t, "%g", rate_of(p, r, i));
        put_known(&t, m->rate);
        vt_page_cell(&t, "%.0f", c->mean.ttft.p99);
        vt_page_cell(&t, "%.1f", c->mean.tpot.p99);
        vt_page_cell(&t, "%s",
                     above < p->n_rates ? r->at[i * p->n_rates + above].broken : "");
    }
    vt_page_table_end(&t);
}

int tune_plan_page(struct vt_buf *b, const struct opt_args *a,
                   const struct vt_tuning_plan *p, const struct vt_tuning_result *r,
                   struct vt_err *err)
{
    size_t best = 0;

    (void)err;
    for (size_t i = 1; i < p->n; i++)
        best = rate_of(p, r, i) > rate_of(p, r, best) ? i : best;
    pages_begin(b, a, p->name);
    pages_answer(b, &(struct pages_trust){.basis = "simulated"},
                 "'%s' bears the most: %g requests per second for each engine within "
                 "the limits.",
                 p->row[best].name, rate_of(p, r, best));
    put_rates(b, p, r);
    put_rows(b, p, r);
    vt_page_section(b, "settings", "Settings", NULL);
    vt_page_facts_begin(b);
    vt_page_fact(b, "profile", "%s", p->profile);
    vt_page_fact(b, "workload", "%s", p->workload);
    vt_page_fact(b, "requests", "%u", p->requests);
    vt_page_fact(b, "seeds", "%u", p->seeds);
    pages_limits(b, &p->slo);
    vt_page_fact(b, "made by", "vtwin " VT_VERSION);
    vt_page_facts_end(b);
    return VT_OK;
}
