/* chart_page.c - what gnuplot draws of loads and searches, as charts of a page. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "page/page.h"
#include "report/report.h"

/* ---- load -------------------------------------------------------------- */

enum { CURVES = 3 };

static void put_curve(struct vt_buf *b, const struct vt_load_curve *c,
                      const struct vt_plot *like, const double *x, double *const y[2],
                      const char *const name[2])
{
    const struct vt_plot_series series[2] = {
        {.name = name[0], .x = x, .y = y[0], .n = c->n},
        {.name = name[1], .y = y[1], .n = c->n},
    };
    struct vt_plot p = *like;
    struct vt_plot_mark mark[2];
    char answer[64];

    p.n_marks = 0;
    if (like->n_marks > 0)
        mark[p.n_marks++] = like->mark[0];
    if (c->answer > 0) {
        snprintf(answer, sizeof(answer), "kept up to %.4g", c->answer);
        mark[p.n_marks++] = (struct vt_plot_mark){'x', c->answer, answer};
    }
    p.mark = mark;
    p.series = series;
    p.n = name[1] ? 2 : 1;
    p.sync = "load";
    vt_page_plot(b, &p);
}

int vt_load_curve_page(struct vt_buf *b, const struct vt_load_curve *c,
                       struct vt_err *err)
{
    static const struct {
        const char *id, *title, *label;
        size_t offset;
    } latency[CURVES] = {{"load-ttft", "Time to first token against load", "TTFT",
                          offsetof(struct vt_load_point, ttft)},
                         {"load-tpot", "Time per output token against load", "TPOT",
                          offsetof(struct vt_load_point, tpot)},
                         {"load-itl", "Gaps between tokens against load", "ITL",
                          offsetof(struct vt_load_point, itl)}};
    static const char *const unit[] = {"req/s", "sessions/s", NULL};
    static const char *const parts[2] = {"p50", "p99"};
    double *x = calloc(3 * (c->n + 1), sizeof(*x)), *y[2];
    struct vt_plot like = {.kind = VT_PLOT_LINES};

    if (!x)
        return vt_nomem(err);
    y[0] = x + c->n + 1;
    y[1] = y[0] + c->n + 1;
    like.x = (struct vt_plot_axis){
        .label = c->axis == VT_LOAD_BY_CONCURRENCY ? "requests at a time" : "load",
        .unit = unit[c->axis]};
    for (size_t i = 0; i < c->n; i++)
        x[i] = c->point[i].load;
    vt_page_plots_begin(b);
    for (size_t k = 0; k < CURVES; k++) {
        struct vt_plot_mark limit = {'y', c->limit[k], NULL};
        char label[48];

        snprintf(label, sizeof(label), "limit %g ms", c->limit[k]);
        limit.label = label;
        for (size_t i = 0; i < c->n; i++) {
            const double *v =
                (const void *)((const char *)&c->point[i] + latency[k].offset);

            y[0][i] = v[0] > 0 ? v[0] : NAN;
            y[1][i] = v[1] > 0 ? v[1] : NAN;
        }
        like.id = latency[k].id;
        like.title = latency[k].title;
        like.note = "Where the line turns up the engine is full.";
        like.y = (struct vt_plot_axis){
            .label = latency[k].label, .unit = "ms", .log = k == 0};
        like.mark = &limit;
        like.n_marks = c->limit[k] > 0;
        put_curve(b, c, &like, x, y, parts);
    }
    for (size_t i = 0; i < c->n; i++)
        y[0][i] = c->point[i].output_tok_per_s;
    like.id = "load-output";
    like.title = "Output tokens per second against load";
    like.note =
        "Where it no longer rises, more load only waits. A run that was given up is "
        "not shown.";
    like.y = (struct vt_plot_axis){.label = "output", .unit = "tok/s", .has_min = true};
    like.n_marks = 0;
    put_curve(b, c, &like, x, y, (const char *const[2]){"output", NULL});
    vt_page_plots_end(b);
    free(x);
    return VT_OK;
}

/* ---- curves and points ------------------------------------------------- */

int vt_chart_page(struct vt_buf *b, const struct vt_chart *c, const char *id,
                  const char *note, struct vt_err *err)
{
    struct vt_plot_series *series = calloc(2 * c->n + 1, sizeof(*series));
    struct vt_plot_mark limit = {'y', c->limit, NULL};
    char label[48];
    size_t n = 0;

    if (!series)
        return vt_nomem(err);
    snprintf(label, sizeof(label), "limit %g ms", c->limit);
    limit.label = label;
    for (size_t i = 0; i < c->n; i++) {
        const struct vt_series *s = &c->series[i];
        const struct vt_plot_series as = {
            .name = s->name,
            .x = s->x,
            .y = s->y,
            .n = s->n,
            .kind = s->style == VT_SERIES_LINE ? VT_PLOT_LINES : VT_PLOT_POINTS,
            .styled = true,
            .colour = s->grey ? 8 : (uint32_t)i + 1,
        };

        if (s->n == 0)
            continue;
        series[n++] = as;
        if (!s->label)
            continue;
        series[n] = as; /* the same points once more, with their names */
        series[n].name = NULL;
        series[n].kind = VT_PLOT_POINTS;
        series[n].text = s->label;
        series[n++].labels = true;
    }
    vt_page_plot(b, &(struct vt_plot){.id = id,
                                      .kind = VT_PLOT_POINTS,
                                      .title = c->heading,
                                      .note = note,
                                      .x = {.label = c->x_label},
                                      .y = {.label = c->y_label},
                                      .series = series,
                                      .n = n,
                                      .mark = &limit,
                                      .n_marks = c->limit > 0});
    free(series);
    return VT_OK;
}
