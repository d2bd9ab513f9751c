/* comparison.c - loads side by side: first tokens above, gaps below, all sources in
 * each.
 */
#include <math.h>

#include "report/figures/figures.h"

enum { MOST_LOADS = 4, MOST_NAMES = 16, POINTS = 300 };

/* A source has one colour in all panels: it is known by its name. */
struct names {
    const char *name[MOST_NAMES];
    size_t n;
};

static size_t place_of(struct names *all, const char *name)
{
    for (size_t i = 0; i < all->n; i++)
        if (strcmp(all->name[i], name) == 0)
            return i;
    if (all->n < MOST_NAMES)
        all->name[all->n++] = name;
    return all->n - 1;
}

static void put_share(struct figure *g, const double *ms, size_t n, bool longer,
                      struct span *x)
{
    for (int k = 0; k <= POINTS; k++) {
        /* Gaps are even on a logarithmic axis, so that the tail shows. */
        double share =
            longer ? pow((double)n, -(double)k / POINTS) : 1 - (double)k / POINTS;
        double at = vt_quantile(ms, n, 100 * (1 - share));

        if (at <= 0)
            continue;
        figure_point(g, at, longer ? 100 * share : 100 * (1 - share));
        if (!longer || share < 0.99) /* tokens that came together stretch no axis */
            figure_span(x, at);
    }
}

static void put_axes(struct figure *g, enum vt_metric m, const struct span *x,
                     double least)
{
    figure_log_axis(g, 'x', x->lo, x->hi);
    if (m == VT_TTFT)
        vt_buf_str(&g->script, "unset logscale y\nset yrange [0:100]\nset ytics 25\n"
                               "set xlabel 'time to first token (ms)'\n"
                               "set ylabel '% that are shorter'\n");
    else
        vt_buf_printf(&g->script,
                      "set logscale y\nset yrange [%.9g:115]\n"
                      "set ytics (100, 10, 1, '0.1' 0.1, '0.01' 0.01)\n"
                      "set xlabel 'gap between tokens (ms)'\n"
                      "set ylabel '%% that are longer'\n",
                      100 * least / 1.2);
}

/* The middle of each, where the curve leaves room. */
static void put_median(struct figure *g, enum vt_metric m, int row, double ms,
                       const char *colour)
{
    vt_buf_printf(&g->script,
                  "set label %d 'p50 %.*f ms' at graph %g, graph %g %s font ',11' "
                  "tc rgb '%s'\n",
                  20 + row, ms < 100 ? 2 : 1, ms, m == VT_TTFT ? 0.03 : 0.97,
                  0.92 - 0.075 * row, m == VT_TTFT ? "left" : "right", colour);
}

static int put_panel(struct figure *g, const struct vt_figures *f, enum vt_metric m,
                     struct names *all, struct vt_err *err)
{
    struct span x = {0};
    double least = 1;
    int shown = 0, rc = VT_OK;

    for (int i = 0; i < MOST_NAMES; i++)
        vt_buf_printf(&g->script, "unset label %d\n", 20 + i);
    for (size_t i = 0; i < f->n_views && rc == VT_OK; i++) {
        const char *colour = figure_colour(place_of(all, f->view[i]->label));
        double *ms = NULL;
        size_t n = 0;

        rc = vt_view_samples(f->view[i], m, &ms, &n, err);
        if (rc == VT_OK && n > 0) {
            put_share(g, ms, n, m == VT_ITL, &x);
            least = fmin(least, 1 / (double)n);
            put_median(g, m, shown++, vt_quantile(ms, n, 50), colour);
            figure_curve(
                g, i == 0 ? "using 1:2 with lines lw 3" : "using 1:2 with lines lw 1.8",
                colour, NULL);
        }
        free(ms);
    }
    if (rc == VT_OK && shown == 0)
        rc = vt_fail(err, VT_ECHECK, "there are no times to compare");
    if (rc == VT_OK)
        put_axes(g, m, &x, least);
    return rc;
}

/* In a panel of its own, as wide as the picture: a key is no wider than its panel. */
static void put_key(struct figure *g, const struct names *all)
{
    vt_buf_str(&g->script,
               "set lmargin at screen 0.06\nset rmargin at screen 0.97\n"
               "set tmargin at screen 0.10\nset bmargin at screen 0.02\n"
               "unset border\nunset tics\nunset xlabel\nunset ylabel\nunset grid\n"
               "unset logscale\nset xrange [0:1]\nset yrange [0:1]\n");
    for (int i = 0; i < MOST_NAMES; i++)
        vt_buf_printf(&g->script, "unset label %d\n", 20 + i);
    vt_buf_str(&g->plot, "NaN notitle");
    vt_buf_str(&g->script, "set key at screen 0.5, screen 0.055 center center "
                           "horizontal maxrows 2 Left reverse samplen 2.2 width 1\n");
    for (size_t i = 0; i < all->n; i++) {
        vt_buf_printf(&g->plot, ", keyentry with lines lw 2.4 lc rgb '%s' title ",
                      figure_colour(i));
        vt_gnuplot_string(&g->plot, all->name[i]);
    }
    figure_plot(g);
}

int figure_comparison(struct figure *g, struct vt_err *err)
{
    static const enum vt_metric rows[] = {VT_TTFT, VT_ITL};
    struct names all = {0};
    size_t n = 0, column = 0;
    int rc = VT_OK;

    for (const struct vt_figures *f = g->f; f && n < MOST_LOADS; f = f->next, n++)
        for (size_t i = 0; i < f->n_views; i++)
            (void)place_of(&all, f->view[i]->label);
    g->aspect = n > 1 ? 0.75 : 1.1;
    vt_buf_str(&g->script, "set multiplot\nunset key\n"
                           "set label 1 at screen 0.055, screen 0.965 offset 0, 0\n"
                           "set label 2 at screen 0.055, screen 0.925 offset 0, 0\n");
    for (const struct vt_figures *f = g->f; column < n && rc == VT_OK;
         f = f->next, column++)
        for (size_t r = 0; r < VT_COUNT(rows) && rc == VT_OK; r++) {
            double width = 0.94 / (double)n, left = 0.055 + width * (double)column;

            vt_buf_printf(&g->script,
                          "set lmargin at screen %.4f\nset rmargin at screen %.4f\n"
                          "set tmargin at screen %.4f\nset bmargin at screen %.4f\n",
                          left + 0.035, left + width - 0.015, r == 0 ? 0.85 : 0.48,
                          r == 0 ? 0.60 : 0.20);
            rc = put_panel(g, f, rows[r], &all, err);
            if (r == 0 && f->load) {
                vt_buf_str(&g->script, "set label 3 ");
                vt_gnuplot_string(&g->script, f->load);
                vt_buf_str(&g->script, " at graph 0.5, graph 1.07 center font ',13' tc "
                                       "rgb '#333333'\n");
            }
            if (column > 0)
                vt_buf_str(&g->script, "unset ylabel\n");
            figure_plot(g);
            vt_buf_str(&g->script, "unset label 1\nunset label 2\nunset label 3\n");
        }
    put_key(g, &all);
    vt_buf_str(&g->script, "unset multiplot\n");
    return rc;
}
