/* itl.c - figures of the gaps between tokens. */
#include <math.h>

#include "report/figures/figures.h"

enum { CURVE_POINTS = 500 };

static int nothing(struct vt_err *err)
{
    return vt_fail(err, VT_ECHECK, "there are no gaps between tokens to show");
}

/* Places along the curve are even on its logarithmic axis, so the tail shows. */
static void put_survival(struct figure *g, const double *ms, size_t n, struct span *x)
{
    size_t last = (size_t)-1;

    for (int k = 0; k <= CURVE_POINTS; k++) {
        double share = pow((double)n, -(double)k / CURVE_POINTS);
        size_t i = (size_t)((1 - share) * (double)n);

        i = i < n ? i : n - 1;
        if (i == last || ms[i] <= 0)
            continue;
        last = i;
        figure_point(g, ms[i], fmax(1 - (double)i / (double)n, 1 / (double)n));
        figure_span(x, ms[i]);
    }
}

static void share_axis(struct figure *g, double least)
{
    vt_buf_printf(&g->script,
                  "set logscale y\nset yrange [%.9g:1.15]\n"
                  "set ytics ('100 %%%%' 1, '10 %%%%' 0.1, '1 %%%%' 0.01, '0.1 %%%%' "
                  "0.001, '0.01 %%%%' 0.0001, '0.001 %%%%' 0.00001)\n"
                  "set ylabel 'share of gaps that are longer'\n",
                  least / 1.2);
}

int figure_itl_survival(struct figure *g, struct vt_err *err)
{
    struct span x = {0};
    double least = 1;

    for (size_t i = 0; i < g->f->n_views; i++) {
        const struct vt_view *v = g->f->view[i];
        double *ms;
        size_t n;
        int rc = vt_view_samples(v, VT_ITL, &ms, &n, err);

        if (rc != VT_OK)
            return rc;
        if (n > 0) {
            put_survival(g, ms, n, &x);
            least = fmin(least, 1 / (double)n);
        }
        free(ms);
        figure_curve(
            g, i == 0 ? "using 1:2 with lines lw 3.2" : "using 1:2 with lines lw 1.8",
            figure_colour(i), v->label);
    }
    if (g->n_blocks == 0)
        return nothing(err);
    figure_log_axis(g, 'x', x.lo, x.hi);
    share_axis(g, least);
    vt_buf_str(&g->script, "set xlabel \"gap between tokens (ms)\\n \"\n");
    figure_plot(g);
    return VT_OK;
}

/* ---- quantile against quantile ---------------------------------------- */

int figure_itl_qq(struct figure *g, struct vt_err *err)
{
    enum { POINTS = 400 };
    struct span span = {0};
    double *captured = NULL, *ms;
    size_t n_captured, n;
    int rc = vt_view_samples(g->f->view[0], VT_ITL, &captured, &n_captured, err);

    for (size_t i = 1; i < g->f->n_views && rc == VT_OK && n_captured > 0; i++) {
        rc = vt_view_samples(g->f->view[i], VT_ITL, &ms, &n, err);
        if (rc != VT_OK)
            break;
        for (int k = 0; n > 0 && k < POINTS; k++) {
            double p = 0.1 + 99.8 * k / (POINTS - 1);
            double a = vt_quantile(captured, n_captured, p), b = vt_quantile(ms, n, p);

            if (a <= 0 || b <= 0)
                continue;
            figure_point(g, a, b);
            figure_span(&span, a);
            figure_span(&span, b);
        }
        free(ms);
        figure_curve(g, "using 1:2 with linespoints pt 7 ps 0.35 lw 1.4",
                     figure_colour(i), g->f->view[i]->label);
    }
    free(captured);
    if (rc != VT_OK)
        return rc;
    if (g->n_blocks == 0)
        return nothing(err);
    figure_point(g, span.lo / 1.12, span.lo / 1.12);
    figure_point(g, span.hi * 1.12, span.hi * 1.12);
    figure_curve(g, "using 1:2 with lines dt 2 lw 1.2", FIGURE_GREY, "equal");
    figure_log_axis(g, 'x', span.lo, span.hi);
    figure_log_axis(g, 'y', span.lo, span.hi);
    g->aspect = 0.8;
    vt_buf_printf(&g->script,
                  "set xlabel \"%s gap (ms), 0.1 %% to 99.9 %%\\n \"\n"
                  "set ylabel 'modelled gap (ms)'\n",
                  g->f->view[0]->label);
    figure_plot(g);
    return VT_OK;
}

/* ---- tokens against means of requests --------------------------------- */

int figure_itl_means(struct figure *g, struct vt_err *err)
{
    const struct vt_view *v = g->f->view[0];
    struct span x = {0};
    char each[64], mean[64];
    double *ms = NULL, *means = malloc((v->n + 1) * sizeof(*means));
    size_t n = 0, n_means = 0, longer = 0;
    int rc = means ? vt_view_samples(v, VT_ITL, &ms, &n, err) : vt_nomem(err);

    for (size_t i = 0; means && !v->only_samples && i < v->n; i++)
        if (v->req[i].n_gaps > 0)
            means[n_means++] = (double)v->req[i].decode_ns / 1e6 / v->req[i].n_gaps;
    if (rc == VT_OK && n_means == 0)
        rc = nothing(err);
    if (rc == VT_OK) {
        double slowest;

        vt_sort_f64(means, n_means);
        slowest = means[n_means - 1];
        while (longer < n && ms[n - 1 - longer] > slowest)
            longer++;
        snprintf(each, sizeof(each), "each gap, %s", v->label);
        snprintf(mean, sizeof(mean), "mean of each request, %s", v->label);
        put_survival(g, ms, n, &x);
        figure_curve(g, "using 1:2 with lines lw 3", figure_colour(0), each);
        put_survival(g, means, n_means, &x);
        figure_curve(g, "using 1:2 with lines lw 3", figure_colour(2), mean);
        figure_log_axis(g, 'x', x.lo, x.hi);
        share_axis(g, 1 / (double)n);
        vt_buf_str(&g->script, "set ylabel 'share that is longer'\n"
                               "set xlabel \"gap between tokens (ms)\\n \"\n");
        vt_buf_printf(&g->script,
                      "set arrow 1 from %.9g, graph 0 to %.9g, graph 1 nohead dt 3 lw "
                      "1.2 lc rgb '%s'\n"
                      "set label 3 \"%.2g %% of gaps are longer\\nthan the slowest "
                      "request's mean\" at %.9g, graph 0.93 offset char 0.8, 0 "
                      "font ',12' tc rgb '#444444'\n",
                      slowest, slowest, FIGURE_GREY, 100 * ((double)longer / (double)n),
                      slowest);
        figure_plot(g);
    }
    free(ms);
    free(means);
    return rc;
}
