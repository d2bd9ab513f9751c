/* simulate_page.c - a simulation as a page. */
#include "cli/cmd/pages.h"
#include "cli/cmd/simulate.h"

/* ---- the answer -------------------------------------------------------- */

static void put_answer(struct vt_buf *b, const struct simulate_job *j,
                       const struct vt_summary *s)
{
    const struct pages_trust trust = {&j->engine, &j->reached, &j->spec.model->known,
                                      NULL};
    char broken[96] = "", limits[160] = "", text[5][VT_PAGE_NUMBER];

    vt_slo_all_broken(broken, sizeof(broken), &j->slo, s);
    if (j->limited && broken[0])
        snprintf(limits, sizeof(limits), " Broken: the limit of %s.", broken);
    else if (j->limited)
        snprintf(limits, sizeof(limits), " All limits are kept.");
    pages_answer(
        b, &trust,
        "%llu requests in %s s: first tokens within %s ms for 99 of 100 (half "
        "within %s ms), then a token every %s ms, %s output tokens per "
        "second.%s",
        (unsigned long long)s->requests, vt_page_number(text[0], s->duration_s),
        vt_page_number(text[1], s->ttft.p99), vt_page_number(text[2], s->ttft.p50),
        vt_page_number(text[3], s->tpot.p50),
        vt_page_number(text[4], s->output_tok_per_s), limits);
}

static void put_figures(struct vt_buf *b, const struct simulate_job *j,
                        const struct vt_summary *s)
{
    char text[8][VT_PAGE_NUMBER];
    const struct vt_page_figure figure[] = {
        {text[0], "ms", "TTFT p99",
         j->slo.ttft_p99 > 0 && s->ttft.p99 > j->slo.ttft_p99},
        {text[1], "ms", "TPOT p99",
         j->slo.tpot_p99 > 0 && s->tpot.p99 > j->slo.tpot_p99},
        {text[2], "ms", "E2E p99", j->slo.e2e_p99 > 0 && s->e2e.p99 > j->slo.e2e_p99},
        {text[3], "req/s", "throughput", false},
        {text[4], "tok/s", "output", false},
        {text[5], "%", "prefix hits", false},
        {text[6], "%", "peak KV use", false},
        {text[7], NULL, "preemptions", false},
    };
    const double value[] = {s->ttft.p99,
                            s->tpot.p99,
                            s->e2e.p99,
                            s->req_per_s,
                            s->output_tok_per_s,
                            100 * s->prefix_hit_rate,
                            100 * s->kv_usage_peak,
                            (double)s->preemptions};

    for (size_t i = 0; i < VT_COUNT(value); i++)
        (void)vt_page_number(text[i], value[i]);
    vt_page_figures(b, figure, VT_COUNT(figure));
}

/* ---- a comparison ------------------------------------------------------ */

static const char *measured_name(const struct simulate_job *j)
{
    return j->workload.meta.simulated ? "the trace's (simulated)" : "measured";
}

static int put_runs(struct vt_buf *b, const struct simulate_job *j,
                    const struct vt_summary *s, struct vt_run *run, struct vt_err *err)
{
    bool compares = j->measured.requests > 0;
    struct vt_shown_run shown[2] = {{measured_name(j), true, NULL},
                                    {"simulated", false, run}};
    const struct vt_shown_run *from = compares ? shown : shown + 1;
    const char *const label[2] = {measured_name(j), "simulated"};
    const struct vt_summary *const summary[2] = {&j->measured, s};
    struct pages_lines limits;
    size_t n = compares ? 2 : 1;
    int rc = VT_OK;

    if (compares)
        rc = vt_run_new(&shown[0].run, 0, err);
    if (compares && rc == VT_OK)
        rc = vt_run_measured(shown[0].run, &j->workload, err);
    pages_lines(&limits, &j->slo);
    vt_page_section(b, "latencies", "How long requests took",
                    !compares ? "All of it is simulated."
                    : j->workload.meta.simulated
                        ? "Simulated, over the trace's times, which are simulated, too."
                        : "Simulated, over what was measured.");
    if (rc == VT_OK)
        rc = vt_page_latencies(b, from, n, limits.line, limits.n, err);
    if (rc == VT_OK)
        rc = vt_page_summaries(b, compares ? label : label + 1,
                               compares ? summary : summary + 1, n, err);
    vt_page_section(b, "time", "What happened when",
                    "Drag over a chart to zoom all of them; double click to return.");
    if (rc == VT_OK)
        rc = vt_page_timelines(b, &shown[1], 1, err);
    if (rc == VT_OK && compares) {
        vt_page_section(b, "both", "Beside the trace's own times", NULL);
        rc = vt_page_timelines(b, shown, 2, err);
    }
    vt_run_free(shown[0].run);
    return rc;
}

static void put_engines(struct vt_buf *b, const struct simulate_fleet *f)
{
    static const char *const head[] = {"engine",      "requests",    "steps",
                                       "preemptions", "prefix hits", "peak KV",
                                       "busy s"};
    struct vt_page_table t;

    if (!f->on)
        return;
    vt_page_section(b, "engines", "Engines", NULL);
    vt_page_table_begin(&t, b, head, VT_COUNT(head));
    for (uint32_t i = 0; i < f->n; i++) {
        const struct vt_replica_summary *r = &f->summary[i];

        if (r->to_ns <= r->from_ns)
            continue;
        vt_page_row(&t, NULL);
        vt_page_cell(&t, "%u", i);
        vt_page_cell(&t, "%llu", (unsigned long long)r->requests);
        vt_page_cell(&t, "%llu", (unsigned long long)r->steps);
        vt_page_cell(&t, "%llu", (unsigned long long)r->preemptions);
        vt_page_cell(&t, "%.1f %%", 100 * r->prefix_hit_rate);
        vt_page_cell(&t, "%.1f %%", 100 * r->kv_usage_peak);
        vt_page_cell(&t, "%.3f", r->busy_s);
    }
    vt_page_table_end(&t);
}

int simulate_page(struct vt_buf *b, const struct opt_args *a,
                  const struct simulate_job *j, const struct vt_summary *s,
                  struct vt_run *run, struct vt_err *err)
{
    static const char *const modes[] = {"as recorded", "closed loop", "by session"};
    const struct simulate_fleet *f = &j->fleet;
    char title[256];
    int rc;

    snprintf(title, sizeof(title), "%.100s serving %.100s", engine_name(&j->engine),
             j->workload.source);
    pages_begin(b, a, title);
    put_answer(b, j, s);
    put_figures(b, j, s);
    rc = put_runs(b, j, s, run, err);
    put_engines(b, f);
    if (rc == VT_OK)
        rc = pages_settings(b, &j->engine, &j->spec.engine, f->on ? &f->fleet : NULL,
                            &j->traffic, err);
    vt_page_fact(b, "arrivals", "%s", modes[j->spec.arrivals]);
    if (j->spec.concurrency > 0)
        vt_page_fact(b, "concurrency", "%u", j->spec.concurrency);
    vt_page_fact(b, "clock", "%s's", vt_clock_name(j->spec.clock));
    vt_page_fact(b, "seed", "%llu", (unsigned long long)j->seed);
    pages_limits(b, &j->slo);
    vt_page_fact(b, "made by", "vtwin " VT_VERSION);
    vt_page_facts_end(b);
    pages_profile(b, &j->engine);
    return rc;
}
