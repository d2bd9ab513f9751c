/* chart.c - the figure of a chart: curves and points over two axes. */
#include <math.h>

#include "report/figures/figures.h"

static struct span span_of(const struct vt_chart *c, bool y)
{
    struct span s = {0};

    for (size_t i = 0; i < c->n; i++)
        for (size_t k = 0; k < c->series[i].n; k++)
            figure_span(&s, y ? c->series[i].y[k] : c->series[i].x[k]);
    if (y)
        figure_span(&s, c->limit);
    return s;
}

/* Each series has a mark of its own: colours come round again after seven. */
static void put_series(struct figure *g, const struct vt_series *s, size_t which)
{
    static const int mark[] = {7, 5, 9, 11, 13, 6, 4, 8, 10, 12};
    int pt = mark[which % VT_COUNT(mark)];
    char how[96];

    for (size_t i = 0; i < s->n; i++)
        if (isfinite(s->x[i]) && isfinite(s->y[i]))
            figure_point(g, s->x[i], s->y[i]);
    if (s->style == VT_SERIES_LINE)
        snprintf(how, sizeof(how), "using 1:2 with linespoints pt %d ps 0.8 lw 1.8",
                 pt);
    else if (s->style == VT_SERIES_POINTS)
        snprintf(how, sizeof(how), "using 1:2 with points pt 7 ps 0.7");
    else
        snprintf(how, sizeof(how), "using 1:2 with points pt 6 ps 2.4 lw 2.4");
    figure_curve(g, how, s->grey ? "#b5b5b5" : figure_colour(which), s->name);
}

/* What is so near that numbers beside it would lie on each other. */
static bool is_near(const struct vt_series *s, size_t a, size_t b, double x_span,
                    double y_span)
{
    return fabs(s->x[a] - s->x[b]) < 0.02 * x_span &&
           fabs(s->y[a] - s->y[b]) < 0.03 * y_span;
}

/* Points have numbers, which a list beside the plot explains: names of neighbours would
 * lie on each other. gnuplot's labels below 100 are the axes' and the limit's. */
static void put_labels(struct figure *g, const struct vt_series *s, double x_span,
                       double y_span)
{
    const double line = s->n < 18 ? 0.055 : 0.99 / (double)s->n;
    int tag = 100;

    vt_buf_str(&g->script, "set rmargin 26\n");
    for (size_t k = 0; k < s->n; k++) {
        bool first = k == 0 || !is_near(s, k, k - 1, x_span, y_span);

        vt_buf_printf(&g->script, "set label %d ", tag++);
        vt_gnuplot_string(&g->script, s->label[k]);
        vt_buf_printf(&g->script,
                      " at graph 1.07, graph %.4f font ',11'\n"
                      "set label %d '%zu' at graph 1.05, graph %.4f right font ',11' "
                      "tc rgb '#777777'\n",
                      1 - line * (double)k, tag, k + 1, 1 - line * (double)k);
        tag++;
        if (!first)
            continue;
        vt_buf_printf(&g->script, "set label %d '%zu", tag++, k + 1);
        for (size_t m = k + 1; m < s->n && is_near(s, m, m - 1, x_span, y_span); m++)
            vt_buf_printf(&g->script, ", %zu", m + 1);
        vt_buf_printf(&g->script, "' at %.9g, %.9g right offset -0.7, 0.6 font ',11'\n",
                      s->x[k], s->y[k]);
    }
}

int figure_chart(struct figure *g, struct vt_err *err)
{
    const struct vt_chart *c = g->chart;
    struct span x = span_of(c, false), y = span_of(c, true);

    if (!(x.hi > 0 && y.hi > 0))
        return vt_fail(err, VT_ECHECK, "there is nothing to draw");
    vt_buf_str(&g->script, "set xlabel ");
    vt_gnuplot_string(&g->script, c->x_label);
    vt_buf_str(&g->script, "\nset ylabel ");
    vt_gnuplot_string(&g->script, c->y_label);
    vt_buf_printf(&g->script, "\nset xrange [0:%.9g]\n", x.hi * 1.06);
    if (y.hi > 8 * y.lo)
        figure_log_axis(g, 'y', y.lo, y.hi);
    else
        vt_buf_printf(&g->script, "set yrange [0:%.9g]\n", y.hi * 1.1);
    if (c->limit > 0)
        vt_buf_printf(&g->script,
                      "set arrow 1 from graph 0, first %.9g to graph 1, first %.9g "
                      "nohead lc rgb '#b0b0b0' lw 1.4 dt (6,4) back\n"
                      "set label 4 'limit %g' at graph 0.01, first %.9g offset 0, 0.5 "
                      "font ',11' tc rgb '#777777'\n",
                      c->limit, c->limit, c->limit, c->limit);
    for (size_t i = 0; i < c->n; i++)
        if (c->series[i].label && c->series[i].n > 0)
            put_labels(g, &c->series[i], x.hi, y.hi);
    for (size_t i = 0; i < c->n; i++)
        put_series(g, &c->series[i], i);
    figure_plot(g);
    return VT_OK;
}
