/* page.c - what was learned as one HTML page. */
#include "learn/learn.h"

#include <math.h>

#include "page/page.h"

/* ---- tables ------------------------------------------------------------- */

static void put_fact(struct vt_buf *b, const char *what, int digits, double v)
{
    if (v > 0)
        vt_page_fact(b, what, "%.*f", digits, v);
    else
        vt_page_fact(b, what, "not known");
}

static void put_server(struct vt_buf *b, const struct vt_learn *l)
{
    const struct vt_meta *m = &l->engine;

    vt_page_section(b, "server", "Server", NULL);
    vt_page_facts_begin(b);
    vt_page_fact(b, "model", "%s", m->model ? m->model : "not told");
    vt_page_fact(b, "vLLM", "%s", m->vllm_version ? m->vllm_version : "not told");
    put_fact(b, "KV blocks", 0, m->num_gpu_blocks);
    put_fact(b, "tokens in a block", 0, m->block_size);
    put_fact(b, "max_model_len", 0, m->max_model_len);
    put_fact(b, "max_num_seqs", 0, m->max_num_seqs);
    put_fact(b, "max_num_batched_tokens", 0, m->max_num_batched_tokens);
    vt_page_fact(b, "clock", "%s", vt_clock_name(l->fit.clock));
    put_fact(b, "ms a token of one stream, at first", 3, l->pace_ms[0]);
    put_fact(b, "ms a token of one stream, at last", 3, l->pace_ms[2]);
    vt_page_facts_end(b);
}

static const char *const heads[] = {"<load",  "<",      "requests", "TTFT ms",
                                    "ITL ms", "E2E ms", "E2E %",    "TTFT %",
                                    "p99 %",  "ITL %",  "p99 %",    "req/s %"};

static void put_errors(struct vt_page_table *t, const struct vt_crossval_row *r,
                       bool sign)
{
    const double v[] = {r->e2e, r->ttft,    r->ttft_p99,
                        r->itl, r->itl_p99, r->throughput};

    for (size_t i = 0; i < VT_COUNT(v); i++)
        vt_page_cell(t, sign ? "%+.1f" : "%.1f", v[i]);
}

static void put_sum(struct vt_page_table *t, const char *name,
                    const struct vt_crossval_row *r)
{
    vt_page_row(t, "sum");
    vt_page_cell(t, "%s", name);
    for (int i = 0; i < 5; i++)
        vt_page_cell(t, "%s", "");
    put_errors(t, r, false);
}

static void put_loads(struct vt_page_table *t, struct vt_buf *b,
                      const struct vt_learn *l, enum vt_learn_part part)
{
    vt_page_table_begin(t, b, heads, VT_COUNT(heads));
    for (size_t i = 0; i < l->n; i++) {
        const struct vt_learn_load *q = &l->load[i];

        if (q->part != part)
            continue;
        vt_page_row(t, q->odd ? "odd" : NULL);
        vt_page_cell(t, "%s", q->name);
        vt_page_cell(t, "%s%s", q->about, q->odd ? " (odd, left out)" : "");
        vt_page_cell(t, "%zu", q->measured.n);
        vt_page_cell(t, "%.1f", q->real.ttft.mean);
        vt_page_cell(t, "%.2f", q->real.itl.mean);
        vt_page_cell(t, "%.0f", q->real.e2e.mean);
        put_errors(t, &q->error, true);
    }
}

/* ---- the figure --------------------------------------------------------- */

struct cloud { /* one metric of one part: each load's mean and p99 */
    double *x, *y;
    const char **text;
    size_t n;
};

static int cloud_make(struct cloud *c, struct vt_arena *a, const struct vt_learn *l,
                      enum vt_learn_part part, size_t stat, struct vt_err *err)
{
    static const size_t of[] = {0, VT_N_PARTS - 1}; /* mean and p99 */
    int rc;

    c->x = vt_arena_alloc(a, 2 * l->n * sizeof(*c->x) + 1);
    c->y = vt_arena_alloc(a, 2 * l->n * sizeof(*c->y) + 1);
    c->text = vt_arena_alloc(a, 2 * l->n * sizeof(*c->text) + 1);
    if (!c->x || !c->y || !c->text)
        return vt_nomem(err);
    c->n = 0;
    for (size_t i = 0; i < l->n; i++)
        for (size_t k = 0; k < VT_COUNT(of) && l->load[i].part == part; k++) {
            char text[160];
            double x = vt_part_of(vt_stat_of(&l->load[i].real, stat), of[k]);
            double y = vt_part_of(vt_stat_of(&l->load[i].predicted, stat), of[k]);

            if (!(x > 0 && y > 0))
                continue;
            (void)snprintf(text, sizeof(text), "%s, %s: %s", l->load[i].name,
                           vt_stat_rows[stat].label, vt_parts[of[k]].key);
            c->x[c->n] = x;
            c->y[c->n] = y;
            rc = vt_arena_text(a, text, &c->text[c->n], err);
            if (rc != VT_OK)
                return rc;
            c->n++;
        }
    return VT_OK;
}

/* Predicted over measured, and the line on which they are the same. */
static int put_figure(struct vt_buf *b, const struct vt_learn *l, struct vt_err *err)
{
    static const size_t of[] = {0, 2, 3}; /* TTFT, ITL, E2E in vt_stat_rows */
    static const char *const parts[] = {"not seen", "made from"};
    enum { N = 2 * VT_COUNT(of) };
    struct vt_plot_series series[N + 1] = {0};
    double same[2] = {INFINITY, -INFINITY};
    struct vt_arena a = {0};
    char names[N][64];
    size_t n = 0;
    int rc = VT_OK;

    for (size_t i = 0; i < N && rc == VT_OK; i++) {
        enum vt_learn_part part = i % 2 ? VT_LEARN_FITTED : VT_LEARN_UNSEEN;
        struct cloud c = {0};

        if ((rc = cloud_make(&c, &a, l, part, of[i / 2], err)) != VT_OK || c.n == 0)
            continue;
        (void)snprintf(names[i], sizeof(names[i]), "%s, %s",
                       vt_stat_rows[of[i / 2]].label, parts[i % 2]);
        series[n] = (struct vt_plot_series){.name = names[i],
                                            .x = c.x,
                                            .y = c.y,
                                            .text = c.text,
                                            .n = c.n,
                                            .colour = (uint32_t)i / 2 + 1,
                                            .hidden = i % 2};
        n++;
        for (size_t k = 0; k < c.n; k++) {
            same[0] = fmin(same[0], fmin(c.x[k], c.y[k]));
            same[1] = fmax(same[1], fmax(c.x[k], c.y[k]));
        }
    }
    if (rc == VT_OK && n > 0) {
        series[n] = (struct vt_plot_series){.name = "as measured",
                                            .x = same,
                                            .y = same,
                                            .n = 2,
                                            .kind = VT_PLOT_LINES,
                                            .styled = true,
                                            .dash = true,
                                            .colour = 8};
        n++;
        vt_page_plot(b,
                     &(struct vt_plot){
                         .id = "learned",
                         .kind = VT_PLOT_POINTS,
                         .title = "Predicted and measured, mean and p99 of each load",
                         .note = "A point above the line: predicted too slow; below "
                                 "it: too fast. Loads that it was made from can be "
                                 "shown, too.",
                         .x = {.label = "measured", .unit = "ms", .log = true},
                         .y = {.label = "predicted", .unit = "ms", .log = true},
                         .series = series,
                         .n = n});
    }
    vt_arena_free(&a);
    return rc;
}

/* ---- the page ----------------------------------------------------------- */

static void put_answer(struct vt_buf *b, const struct vt_learn *l)
{
    char text[320];

    if (l->refusal[0]) {
        vt_page_para(b, VT_PAGE_BAD, "Not to be trusted: %s.", l->refusal);
        return;
    }
    (void)snprintf(text, sizeof(text),
                   "The profile predicts loads that it has not seen within %.1f %% of "
                   "E2E, %.1f %% of TTFT and %.1f %% of ITL (median of their sizes).",
                   l->median.e2e, l->median.ttft, l->median.itl);
    vt_page_answer(b, text, NULL);
}

int vt_learn_page(const struct vt_learn *l, const char *title, const char *path,
                  struct vt_err *err)
{
    struct vt_page_table t;
    struct vt_buf b = {0};
    char subtitle[160];
    int rc;

    (void)snprintf(subtitle, sizeof(subtitle),
                   "a %s model from %.0f s of load, by vtwin " VT_VERSION, l->fit.kind,
                   l->seconds);
    vt_page_begin(&b, "vtwin learn", title, subtitle);
    put_answer(&b, l);
    rc = put_figure(&b, l, err);
    vt_page_section(&b, "unseen", "Loads that it has not seen",
                    "Times are measured; they were predicted before, and percentages "
                    "are the errors of that.");
    put_loads(&t, &b, l, VT_LEARN_UNSEEN);
    put_sum(&t, "median size", &l->median);
    put_sum(&t, "largest", &l->worst);
    vt_page_table_end(&t);
    vt_page_section(&b, "fitted", "Loads that it was made from", NULL);
    put_loads(&t, &b, l, VT_LEARN_FITTED);
    put_sum(&t, "median size", &l->fit.in);
    vt_page_table_end(&t);
    put_server(&b, l);
    return vt_page_write(&b, rc, path, err);
}
