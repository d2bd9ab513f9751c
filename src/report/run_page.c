/* run_page.c - runs as charts of a page: how long requests took, and what happened
 * when.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "page/page.h"
#include "report/run.h"

enum { MOST_RUNS = 8 };

/* ---- distributions ----------------------------------------------------- */

static int add_distribution(struct vt_plot_series *series, const struct vt_shown_run *r,
                            size_t row, const double *percentile, double *x,
                            uint64_t *samples, struct vt_err *err)
{
    int rc = vt_timings_quantiles(r->run->timings, row, percentile, VT_CDF_POINTS, x,
                                  samples, err);

    *series = (struct vt_plot_series){
        .name = r->label, .x = x, .y = percentile, .n = VT_CDF_POINTS, .dash = r->dash};
    return rc;
}

static int put_distribution(struct vt_buf *b, const struct vt_shown_run *r, size_t n,
                            size_t row, const struct vt_latency_limit *limit,
                            size_t n_limits, struct vt_err *err)
{
    static const char *const title[] = {
        "Time to first token (TTFT)", "Time per output token, mean of a request (TPOT)",
        "Gaps between tokens (ITL)", "Whole request (E2E)"};
    double percentile[VT_CDF_POINTS], x[MOST_RUNS][VT_CDF_POINTS];
    struct vt_plot_series series[MOST_RUNS];
    struct vt_plot_mark mark[4];
    size_t shown = 0, marks = 0;
    struct vt_summary s = {0};
    char note[160], id[32], half[VT_PAGE_NUMBER], most[VT_PAGE_NUMBER];
    int rc = VT_OK;

    (void)vt_cdf_percentiles(percentile);
    for (size_t i = 0; i < n && i < MOST_RUNS && rc == VT_OK; i++) {
        uint64_t samples = 0;

        rc = add_distribution(&series[shown], &r[i], row, percentile, x[shown],
                              &samples, err);
        /* A logarithmic axis shows no zeros. */
        if (samples > 0 && x[shown][VT_CDF_POINTS - 1] > 0) {
            series[shown].colour = (uint32_t)i + 1;
            shown++;
        }
    }
    if (rc != VT_OK || shown == 0)
        return rc;
    for (size_t i = 0; i < n_limits && marks < VT_COUNT(mark); i++)
        if (limit[i].row == row)
            mark[marks++] = (struct vt_plot_mark){'x', limit[i].ms, limit[i].label};
    snprintf(id, sizeof(id), "cdf-%s", vt_stat_rows[row].key);
    rc = vt_timings_summarise(r[0].run->timings, 0, &s, err);
    snprintf(note, sizeof(note),
             "Share of %s that took no longer; %s: half within %s ms, 99 of 100 within "
             "%s ms.",
             row == 2 ? "gaps" : "requests", r[0].label,
             vt_page_number(half, vt_stat_of(&s, row)->p50),
             vt_page_number(most, vt_stat_of(&s, row)->p99));
    if (rc == VT_OK)
        vt_page_plot(
            b, &(struct vt_plot){
                   .id = id,
                   .kind = VT_PLOT_LINES,
                   .title = title[row],
                   .note = note,
                   .x = {.label = vt_stat_rows[row].label, .unit = "ms", .log = true},
                   .y = {.label = row == 2 ? "gaps" : "requests",
                         .unit = "%",
                         .has_min = true,
                         .has_max = true,
                         .max = 100},
                   .series = series,
                   .n = shown,
                   .mark = mark,
                   .n_marks = marks,
               });
    return rc;
}

int vt_page_latencies(struct vt_buf *b, const struct vt_shown_run *r, size_t n,
                      const struct vt_latency_limit *limit, size_t n_limits,
                      struct vt_err *err)
{
    static const size_t order[] = {0, 3, 1, 2}; /* TTFT, E2E, TPOT, ITL */
    int rc = VT_OK;

    vt_page_plots_begin(b);
    for (size_t i = 0; i < VT_COUNT(order) && rc == VT_OK; i++)
        rc = put_distribution(b, r, n, order[i], limit, n_limits, err);
    vt_page_plots_end(b);
    return rc;
}

/* ---- time -------------------------------------------------------------- */

enum measure {
    RUNNING,
    WAITING,
    KV_USE,
    BATCH_TOKENS,
    OUTPUT_RATE,
    END_RATE,
    IN_FLIGHT,
    PREEMPTED,
    N_MEASURES
};

/* Rates of single buckets are mostly noise: a few make a point. */
enum { RATE_POINTS = 120 };

struct times { /* of one line of buckets; heap */
    double *x, *of[N_MEASURES], *least[3], *most[3];
    size_t n;
    double *rate_x;
    size_t n_rates;
    double preempted; /* in all */
};

static void times_free(struct times *t)
{
    free(t->x);
    *t = (struct times){0};
}

static double bucket_ns(const struct run_line *l, size_t i)
{
    vt_ns begin = (vt_ns)i * l->width;
    vt_ns len = i + 1 == l->n ? l->end - begin + 1 : l->width;

    return (double)(len > 0 ? len : 1);
}

static void take_rates(struct times *t, const struct run_line *l)
{
    size_t each = (l->n + RATE_POINTS - 1) / RATE_POINTS;

    for (size_t i = 0; i < l->n; i += each) {
        double ns = 0, tokens = 0, ended = 0;

        for (size_t k = i; k < i + each && k < l->n; k++) {
            ns += bucket_ns(l, k);
            tokens += l->bucket[k].output_tokens;
            ended += l->bucket[k].ended;
        }
        if (i > 0 && ns < (double)l->width * (double)each / 2)
            break; /* too short a rest to be a rate */
        t->rate_x[t->n_rates] = ((double)i * (double)l->width + ns / 2) / 1e9;
        t->of[OUTPUT_RATE][t->n_rates] = tokens / ns * 1e9;
        t->of[END_RATE][t->n_rates++] = ended / ns * 1e9;
    }
}

/* A bucket's values stand at its middle. kv is a mean over so many engines. */
static int times_of(struct times *t, const struct run_line *l, uint32_t engines,
                    struct vt_err *err)
{
    size_t columns = 2 + N_MEASURES + 6;
    double *all = calloc(columns * (l->n + 1), sizeof(*all));

    *t = (struct times){.x = all, .n = l->n};
    if (!all)
        return vt_nomem(err);
    for (size_t i = 0; i < N_MEASURES; i++)
        t->of[i] = all + (i + 1) * l->n;
    for (size_t i = 0; i < 3; i++) {
        t->least[i] = all + (1 + N_MEASURES + i) * l->n;
        t->most[i] = all + (4 + N_MEASURES + i) * l->n;
    }
    for (size_t i = 0; i < l->n; i++) {
        const struct run_bucket *b = &l->bucket[i];
        const struct run_gauge *g[3] = {&b->running, &b->waiting, &b->kv};
        double ns = bucket_ns(l, i), scale[3] = {1, 1, 100.0 / engines};

        t->x[i] = ((double)i * (double)l->width + ns / 2) / 1e9;
        for (size_t k = 0; k < 3; k++) {
            t->of[k][i] = g[k]->sum_ns / ns * scale[k];
            t->least[k][i] = g[k]->seen ? g[k]->least * scale[k] : 0;
            t->most[k][i] = g[k]->seen ? g[k]->most * scale[k] : 0;
        }
        t->of[BATCH_TOKENS][i] = b->steps > 0 ? b->batch_tokens / b->steps : 0;
        t->of[IN_FLIGHT][i] = b->in_flight_ns / ns;
        t->of[PREEMPTED][i] = b->preempted;
        t->preempted += b->preempted;
    }
    t->rate_x = all + (7 + N_MEASURES) * l->n;
    take_rates(t, l);
    return VT_OK;
}

static const struct time_chart {
    const char *id, *title, *note;
    const char *label, *unit;
    enum measure of[2];
    const char *name[2]; /* of its lines; second NULL: one */
    bool of_steps;       /* known only where steps are */
    bool ranged;         /* single engines: with what lies within a bucket */
} time_charts[] = {
    {"queues",
     "Requests running and waiting",
     "A queue that only grows: the load is more than is borne.",
     "requests",
     NULL,
     {RUNNING, WAITING},
     {"running", "waiting"},
     true,
     true},
    {"kv",
     "KV cache in use",
     "Near 100 % requests wait for blocks, or are preempted.",
     "in use",
     "%",
     {KV_USE, KV_USE},
     {"KV cache", NULL},
     true,
     true},
    {"batch",
     "Tokens in a step",
     "Prompts make the peaks; the level between them is decoding.",
     "tokens a step",
     NULL,
     {BATCH_TOKENS, BATCH_TOKENS},
     {"tokens", NULL},
     true,
     false},
    {"throughput",
     "Output tokens per second",
     NULL,
     "output",
     "tok/s",
     {OUTPUT_RATE, OUTPUT_RATE},
     {"output tokens", NULL},
     false,
     false},
    {"finished",
     "Requests finished per second",
     NULL,
     "finished",
     "req/s",
     {END_RATE, END_RATE},
     {"requests", NULL},
     false,
     false},
    {"in-flight",
     "Requests in flight, from arrival to last token",
     NULL,
     "requests",
     NULL,
     {IN_FLIGHT, IN_FLIGHT},
     {"in flight", NULL},
     false,
     false},
    {"preempted",
     "Preemptions",
     "Requests thrown out of a full KV cache, to be computed again.",
     "preemptions",
     NULL,
     {PREEMPTED, PREEMPTED},
     {"preempted", NULL},
     true,
     false},
};

/* Where charts go: onto a page, or into a list of JSON. */
struct chart_place {
    struct vt_buf *page; /* NULL: into the list */
    struct vt_jw *list;
};

static void place_chart(const struct chart_place *p, const struct vt_plot *plot)
{
    if (p->page)
        vt_page_plot(p->page, plot);
    else
        vt_plot_json(p->list, NULL, plot);
}

static void put_time_chart(const struct chart_place *p, const struct time_chart *c,
                           const struct vt_shown_run *r, const struct times *t,
                           size_t n)
{
    struct vt_plot_series series[2 * MOST_RUNS] = {0};
    char names[2 * MOST_RUNS][160], id[48];
    size_t k = 0;

    /* A page may have those of one run and those of two. */
    snprintf(id, sizeof(id), "%s%s", n > 1 ? "both-" : "", c->id);

    for (size_t i = 0; i < n; i++)
        for (size_t m = 0; m < 2 && c->name[m]; m++, k++) {
            enum measure of = c->of[m];
            bool rate = of == OUTPUT_RATE || of == END_RATE;
            bool ranged = c->ranged && n == 1 && r[i].run->instances == 1;

            if (n > 1)
                snprintf(names[k], sizeof(names[k]), "%.100s%s%s", r[i].label,
                         c->name[1] ? ", " : "", c->name[1] ? c->name[m] : "");
            else
                snprintf(names[k], sizeof(names[k]), "%s", c->name[m]);
            series[k] = (struct vt_plot_series){.name = names[k],
                                                .x = m > 0  ? NULL
                                                     : rate ? t[i].rate_x
                                                            : t[i].x,
                                                .y = t[i].of[of],
                                                .lo = ranged ? t[i].least[of] : NULL,
                                                .hi = ranged ? t[i].most[of] : NULL,
                                                .n = rate ? t[i].n_rates : t[i].n,
                                                .dash = r[i].dash};
        }
    place_chart(p, &(struct vt_plot){
                       .id = id,
                       .kind = k == 1 ? VT_PLOT_AREA : VT_PLOT_LINES,
                       .title = c->title,
                       .note = c->note,
                       .x = {.label = "time", .unit = "s"},
                       .y = {.label = c->label, .unit = c->unit, .has_min = true},
                       .series = series,
                       .n = k,
                       .sync = "time",
                   });
}

/* ---- engines of a fleet ------------------------------------------------ */

static int put_lanes(const struct chart_place *p, const struct vt_run *r,
                     enum measure of, const char *id, const char *title,
                     const char *unit, struct vt_err *err)
{
    struct vt_plot_series series[RUN_LANES] = {0};
    struct times t[RUN_LANES] = {0};
    char names[RUN_LANES][24], note[160] = "One strip for each engine, on one scale.";
    size_t n = r->instances < RUN_LANES ? r->instances : RUN_LANES;
    int rc = VT_OK;

    for (size_t i = 0; i < n && rc == VT_OK; i++) {
        rc = times_of(&t[i], &r->lane[i], 1, err);
        snprintf(names[i], sizeof(names[i]), "engine %zu", i);
        series[i] = (struct vt_plot_series){
            .name = names[i], .x = t[i].x, .y = t[i].of[of], .n = t[i].n, .colour = 1};
    }
    if (r->instances > n)
        snprintf(note, sizeof(note),
                 "One strip for each engine, on one scale: the first %zu of %u.", n,
                 r->instances);
    if (rc == VT_OK)
        place_chart(p, &(struct vt_plot){.id = id,
                                         .kind = VT_PLOT_LANES,
                                         .title = title,
                                         .note = note,
                                         .x = {.label = "time", .unit = "s"},
                                         .y = {.unit = unit, .has_min = true},
                                         .series = series,
                                         .n = n,
                                         .sync = "time"});
    for (size_t i = 0; i < n; i++)
        times_free(&t[i]);
    return rc;
}

static int put_timelines(const struct chart_place *p, const struct vt_shown_run *r,
                         size_t n, struct vt_err *err)
{
    struct times t[MOST_RUNS] = {0};
    bool stepped = true;
    double preempted = 0;
    int rc = VT_OK;

    n = n > MOST_RUNS ? MOST_RUNS : n;
    for (size_t i = 0; i < n && rc == VT_OK; i++) {
        run_settle(r[i].run);
        rc = times_of(&t[i], &r[i].run->all, r[i].run->instances, err);
        stepped &= r[i].run->stepped;
        preempted += t[i].preempted;
    }
    for (size_t i = 0; i < VT_COUNT(time_charts) && rc == VT_OK; i++) {
        const struct time_chart *c = &time_charts[i];

        if ((c->of_steps && !stepped) || (c->of[0] == PREEMPTED && !(preempted > 0)) ||
            (c->of[0] == IN_FLIGHT && stepped))
            continue;
        put_time_chart(p, c, r, t, n);
    }
    if (rc == VT_OK && n == 1 && r->run->lane && stepped &&
        (rc = put_lanes(p, r->run, RUNNING, "lanes-running",
                        "Requests running, by engine", NULL, err)) == VT_OK)
        rc = put_lanes(p, r->run, KV_USE, "lanes-kv", "KV cache in use, by engine", "%",
                       err);
    for (size_t i = 0; i < n; i++)
        times_free(&t[i]);
    return rc;
}

int vt_page_timelines(struct vt_buf *b, const struct vt_shown_run *r, size_t n,
                      struct vt_err *err)
{
    int rc;

    vt_page_plots_begin(b);
    rc = put_timelines(&(struct chart_place){.page = b}, r, n, err);
    vt_page_plots_end(b);
    return rc;
}

int vt_run_charts_json(struct vt_jw *w, const char *key, struct vt_run *r,
                       struct vt_err *err)
{
    const struct vt_shown_run shown = {.label = "simulated", .run = r};
    int rc;

    vt_jw_list(w, key);
    rc = put_timelines(&(struct chart_place){.list = w}, &shown, 1, err);
    vt_jw_end(w);
    return rc;
}

/* ---- numbers ----------------------------------------------------------- */

static void put_value(struct vt_page_table *t, double v, double first, bool compare)
{
    double error = vt_error_percent(v, first);
    char text[32], small[32];

    snprintf(text, sizeof(text), "%.*f", v < 1000 ? 2 : 0, v);
    snprintf(small, sizeof(small), "%+.1f %%", error);
    if (compare && isfinite(error))
        vt_page_cell_small(t, text, small);
    else
        vt_page_cell(t, "%s", text);
}

static void put_one(struct vt_buf *b, const struct vt_summary *s)
{
    static const char *const head[1 + VT_N_PARTS] = {"<milliseconds", "mean", "p50",
                                                     "p90",           "p95",  "p99"};
    struct vt_page_table t;

    vt_page_table_begin(&t, b, head, VT_COUNT(head));
    for (size_t row = 0; row < VT_N_STATS; row++) {
        if (vt_stat_of(s, row)->n == 0)
            continue;
        vt_page_row(&t, NULL);
        vt_page_cell(&t, "%s", vt_stat_rows[row].label);
        for (size_t part = 0; part < VT_N_PARTS; part++)
            put_value(&t, vt_part_of(vt_stat_of(s, row), part), 0, false);
    }
    vt_page_table_end(&t);
}

int vt_page_summaries(struct vt_buf *b, const char *const *label,
                      const struct vt_summary *const *s, size_t n, struct vt_err *err)
{
    const char **head = calloc(n + 1, sizeof(*head));
    struct vt_page_table t;

    if (!head)
        return vt_nomem(err);
    if (n == 1) {
        put_one(b, s[0]);
        free(head);
        return VT_OK;
    }
    head[0] = "<";
    memcpy(head + 1, label, n * sizeof(*label));
    vt_page_table_begin(&t, b, head, n + 1);
    vt_page_row(&t, NULL);
    vt_page_cell(&t, "requests");
    for (size_t i = 0; i < n; i++)
        vt_page_cell(&t, "%llu", (unsigned long long)s[i]->requests);
    vt_page_row(&t, NULL);
    vt_page_cell(&t, "output tokens per second");
    for (size_t i = 0; i < n; i++)
        put_value(&t, s[i]->output_tok_per_s, s[0]->output_tok_per_s, i > 0);
    for (size_t row = 0; row < VT_N_MEASURED; row++)
        for (size_t part = 0; part < VT_N_PARTS; part++) {
            vt_page_row(&t, part == 0 ? "new" : NULL);
            vt_page_cell(&t, "%s %s (ms)", vt_stat_rows[row].label, vt_parts[part].key);
            for (size_t i = 0; i < n; i++)
                put_value(&t, vt_part_of(vt_stat_of(s[i], row), part),
                          vt_part_of(vt_stat_of(s[0], row), part), i > 0);
        }
    vt_page_table_end(&t);
    free(head);
    return VT_OK;
}
