/* bench_page.c - a benchmark or a sweep as a page. */
#include <math.h>
#include <stdlib.h>

#include "cli/cmd/bench.h"
#include "cli/cmd/pages.h"

static void put_settings(struct vt_buf *b, const struct bench_job *j)
{
    const struct vt_load_about *q = &j->about;

    vt_page_section(b, "settings", "Settings", NULL);
    vt_page_facts_begin(b);
    vt_page_fact(b, "server", "%s", j->config.base_url ? j->config.base_url : "");
    vt_page_fact(b, "model", "%s", q->model ? q->model : "");
    vt_page_fact(b, "backend", "%s", q->backend ? q->backend : "");
    vt_page_fact(b, "dataset", "%s", bench_datasets[j->o->dataset]);
    vt_page_fact(b, "requests", "%zu", q->num_prompts);
    if (isinf(q->rate))
        vt_page_fact(b, "request rate", "all at once");
    else
        vt_page_fact(b, "request rate", "%g per second", q->rate);
    vt_page_fact(b, "burstiness", "%g", q->burstiness);
    if (q->max_concurrency > 0)
        vt_page_fact(b, "max concurrency", "%u", q->max_concurrency);
    vt_page_fact(b, "seed", "%lld", (long long)j->o->seed);
    pages_limits(b, &j->o->slo.at);
    vt_page_fact(b, "date", "%s", q->date ? q->date : "");
    vt_page_fact(b, "made by", "vtwin " VT_VERSION);
    vt_page_facts_end(b);
}

/* ---- one run ----------------------------------------------------------- */

static void put_answer(struct vt_buf *b, const struct vt_load_summary *s,
                       const struct vt_slo *slo)
{
    const struct vt_summary run = {.ttft = {.p99 = s->ttft.p99},
                                   .tpot = {.p99 = s->tpot.p99},
                                   .itl = {.p99 = s->itl.p99},
                                   .e2e = {.p99 = s->e2el.p99}};
    char broken[96], limits[160] = "", text[5][VT_PAGE_NUMBER];

    vt_slo_all_broken(broken, sizeof(broken), slo, &run);
    if (broken[0])
        snprintf(limits, sizeof(limits), " Broken: the limit of %s.", broken);
    pages_answer(
        b, &(struct pages_trust){.basis = "measured by a client"},
        "%zu requests served in %s s, %zu failed: first tokens within %s ms for "
        "99 of 100 (half within %s ms), then a token every %s ms, %s output "
        "tokens per second.%s",
        s->completed, vt_page_number(text[0], s->duration_s), s->failed,
        vt_page_number(text[1], s->ttft.p99), vt_page_number(text[2], s->ttft.median),
        vt_page_number(text[3], s->tpot.median),
        vt_page_number(text[4], s->output_throughput), limits);
}

static void put_numbers(struct vt_buf *b, const struct vt_load_summary *s)
{
    static const char *const head[] = {"<milliseconds", "mean",  "p50", "p90",
                                       "p99",           "least", "most"};
    const struct {
        const char *name;
        const struct vt_load_dist *d;
    } row[] = {{"TTFT", &s->ttft},
               {"TPOT", &s->tpot},
               {"ITL", &s->itl},
               {"E2E", &s->e2el},
               {"TTFT from when it was due", &s->ttft_planned},
               {"waited in the client", &s->waited}};
    struct vt_page_table t;

    vt_page_table_begin(&t, b, head, VT_COUNT(head));
    for (size_t i = 0; i < VT_COUNT(row); i++) {
        const struct vt_load_dist *d = row[i].d;
        const double v[] = {d->mean, d->p50, d->p90, d->p99, d->min, d->max};

        if (d->n == 0)
            continue;
        vt_page_row(&t, NULL);
        vt_page_cell(&t, "%s", row[i].name);
        for (size_t k = 0; k < VT_COUNT(v); k++)
            vt_page_cell(&t, "%.*f", v[k] < 1000 ? 2 : 0, v[k]);
    }
    vt_page_table_end(&t);
}

static int take_records(struct vt_run *run, const struct vt_load_records *r,
                        struct vt_err *err)
{
    vt_ns *at = NULL;
    size_t cap = 0;
    int rc = VT_OK;

    for (size_t i = 0; i < r->n && rc == VT_OK; i++) {
        const struct vt_load_record *q = &r->record[i];
        struct vt_run_tokens one = {q->begun, NULL, q->n_stamps, q->output_tokens};

        if (!q->ok || q->n_stamps == 0)
            continue;
        rc = vt_grow(&at, &cap, q->n_stamps, sizeof(*at), err);
        for (uint32_t k = 0; rc == VT_OK && k < q->n_stamps; k++)
            at[k] = q->stamp[k] - q->begun;
        one.at = at;
        if (rc == VT_OK)
            rc = vt_run_tokens(run, &one, err);
    }
    free(at);
    return rc;
}

int bench_page(const struct bench_job *j, const struct vt_load_records *r,
               const struct vt_load_summary *s, const char *path, struct vt_err *err)
{
    struct vt_shown_run shown = {.label = "measured"};
    struct pages_lines limits;
    struct vt_buf b = {0};
    char title[256];
    int rc = vt_run_new(&shown.run, 0, err);

    if (rc == VT_OK)
        rc = take_records(shown.run, r, err);
    pages_lines(&limits, &j->o->slo.at);
    snprintf(title, sizeof(title), "%.100s at %.100s",
             j->about.model ? j->about.model : "A server",
             j->config.base_url ? j->config.base_url : "");
    pages_begin(&b, j->args, title);
    put_answer(&b, s, &j->o->slo.at);
    vt_page_section(&b, "latencies", "How long requests took",
                    "Measured by this client, from when each request was its turn.");
    if (rc == VT_OK)
        rc = vt_page_latencies(&b, &shown, 1, limits.line, limits.n, err);
    put_numbers(&b, s);
    vt_page_section(&b, "time", "What happened when",
                    "Drag over a chart to zoom all of them; double click to return.");
    if (rc == VT_OK)
        rc = vt_page_timelines(&b, &shown, 1, err);
    put_settings(&b, j);
    vt_run_free(shown.run);
    return vt_page_write(&b, rc, path, err);
}

/* ---- a sweep ----------------------------------------------------------- */

static void put_points(struct vt_buf *b, const struct vt_sweep *w)
{
    static const char *const head[] = {
        "load",     "req/s",    "output tok/s", "failed",  "TTFT p50",
        "TTFT p99", "TPOT p50", "TPOT p99",     "ITL p99", "<"};
    struct vt_page_table t;

    vt_page_table_begin(&t, b, head, VT_COUNT(head));
    for (size_t i = 0; i < w->n; i++) {
        const struct vt_sweep_point *p = &w->point[i];
        const double v[] = {p->s.ttft.median, p->s.ttft.p99, p->s.tpot.median,
                            p->s.tpot.p99, p->s.itl.p99};

        vt_page_row(&t, NULL);
        vt_page_cell(&t, "%g", p->load);
        vt_page_cell(&t, "%.2f", p->s.request_throughput);
        vt_page_cell(&t, "%.0f", p->s.output_throughput);
        vt_page_cell(&t, "%zu", p->s.failed);
        for (size_t k = 0; k < VT_COUNT(v); k++)
            vt_page_cell(&t, "%.*f", v[k] < 100 ? 2 : 0, v[k]);
        vt_page_cell(&t, "%s", p->saturated ? "saturated" : "");
    }
    vt_page_table_end(&t);
}

int bench_sweep_page(struct vt_buf *b, const struct bench_job *j,
                     const struct vt_sweep *w, struct vt_err *err)
{
    const struct vt_sweep_point *most = NULL;
    char title[256], text[3][VT_PAGE_NUMBER];
    int rc;

    for (size_t i = 0; i < w->n; i++)
        if (!w->point[i].saturated && (!most || w->point[i].load > most->load))
            most = &w->point[i];
    snprintf(title, sizeof(title), "%.100s at %.100s, load by load",
             j->about.model ? j->about.model : "A server",
             j->config.base_url ? j->config.base_url : "");
    pages_begin(b, j->args, title);
    if (most)
        pages_answer(b, &(struct pages_trust){.basis = "measured by a client"},
                     "Borne up to %g %s: %s output tokens per second, TTFT p99 %s ms, "
                     "TPOT p99 %s ms.",
                     most->load,
                     w->of == VT_SWEEP_RATE ? "requests per second"
                                            : "requests at a time",
                     vt_page_number(text[0], most->s.output_throughput),
                     vt_page_number(text[1], most->s.ttft.p99),
                     vt_page_number(text[2], most->s.tpot.p99));
    else
        pages_answer(b, &(struct pages_trust){.basis = "measured by a client"},
                     "No load that was tried was borne.");
    vt_page_section(b, "load", "Latency against load", "Measured by this client.");
    rc = vt_sweep_page(b, w, err);
    put_points(b, w);
    put_settings(b, j);
    return rc;
}
