/* parts.c - numbers, curves and axes that the figures are made of. */
#include <math.h>

#include "report/figures/figures.h"

const char *figure_colour(size_t view)
{
    static const char *const colour[] = {"#222222", "#0072b2", "#d55e00", "#009e73",
                                         "#cc79a7", "#e69f00", "#56b4e9"};

    return colour[view % VT_COUNT(colour)];
}

/* ---- numbers ---------------------------------------------------------- */

/* A blank line would end a block, so every point is a line. */
void figure_point(struct figure *g, double x, double y)
{
    vt_buf_printf(&g->data, "%.9g %.9g\n", x, y);
}

void figure_point4(struct figure *g, double x, double y, double dx, double dy)
{
    vt_buf_printf(&g->data, "%.9g %.9g %.9g %.9g\n", x, y, dx, dy);
}

void figure_curve(struct figure *g, const char *how, const char *colour,
                  const char *label)
{
    size_t n = g->data.len;

    if (n == 0 || (n >= 2 && memcmp(g->data.data + n - 2, "\n\n", 2) == 0))
        return;
    vt_buf_str(&g->data, "\n\n");
    if (g->plot.len > 0)
        vt_buf_str(&g->plot, ", \\\n  ");
    vt_buf_printf(&g->plot, FIGURE_DATA " index %d %s", g->n_blocks++, how);
    if (colour)
        vt_buf_printf(&g->plot, " lc rgb '%s'", colour);
    if (label) {
        vt_buf_str(&g->plot, " title ");
        vt_gnuplot_string(&g->plot, label);
    } else {
        vt_buf_str(&g->plot, " notitle");
    }
}

void figure_plot(struct figure *g)
{
    vt_buf_str(&g->script, "plot ");
    if (g->plot.len > 0)
        vt_buf_add(&g->script, g->plot.data, g->plot.len);
    vt_buf_char(&g->script, '\n');
    vt_buf_clear(&g->plot);
}

/* ---- axes ------------------------------------------------------------- */

void figure_span(struct span *s, double v)
{
    if (!(v > 0))
        return;
    if (s->hi <= 0) {
        s->lo = s->hi = v;
        return;
    }
    s->lo = v < s->lo ? v : s->lo;
    s->hi = v > s->hi ? v : s->hi;
}

static void put_ticks(struct vt_buf *b, char axis, double lo, double hi)
{
    static const double wide[] = {1}, narrow[] = {1, 2, 5};
    bool many = log10(hi / lo) > 3.2;
    const double *step = many ? wide : narrow;
    size_t n = many ? VT_COUNT(wide) : VT_COUNT(narrow);
    bool first = true;

    vt_buf_printf(b, "set %ctics (", axis);
    for (double at = pow(10, floor(log10(lo))); at <= hi; at *= 10)
        for (size_t i = 0; i < n; i++) {
            double v = at * step[i];

            if (v < lo * 0.999 || v > hi * 1.001)
                continue;
            vt_buf_printf(b, "%s\"%.10g\" %.9g", first ? "" : ", ", v, v);
            first = false;
        }
    vt_buf_str(b, ")\n");
}

void figure_log_axis(struct figure *g, char axis, double lo, double hi)
{
    lo /= 1.12;
    hi *= 1.12;
    if (hi < lo * 2) { /* room for at least one tick */
        lo /= 1.5;
        hi *= 1.5;
    }
    vt_buf_printf(&g->script, "set logscale %c\nset %crange [%.9g:%.9g]\n", axis, axis,
                  lo, hi);
    put_ticks(&g->script, axis, lo, hi);
}
