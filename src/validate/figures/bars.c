/* bars.c - the script of grouped bars: panels, broken axes, hatches. */
#include <math.h>

#include "validate/figures/figures.h"

#define LEFT_IN    0.62
#define RIGHT_IN   0.10
#define ROW_IN     0.19
#define GAP_IN     0.07 /* where an axis is broken */
#define THIN_IN    0.03 /* bars thinner than this: panels go below each other */
#define SIDE       0.6  /* from the outer groups to the edges, in groups */
#define NOTE_BELOW 2.0  /* percent */

struct drawing {
    struct fig_picture *p;
    const struct fig_bars *b;
    struct fig_simulators shown; /* those that have bars */
    bool stacked;
    bool slanted; /* labels would run into each other */
    double label_in, legend_in, team_in;
    struct vt_buf strokes, dots; /* hatches of the part in the making */
    /* that part */
    struct fig_box box;
    struct fig_axis axis;
};

/* ---- the axis ----------------------------------------------------------- */

struct fig_break fig_break_of(const struct fig_bars *b, size_t panel)
{
    /* Where TTFT is wrong it is very wrong. */
    double threshold = b->metric[panel] == FIG_TTFT_MEAN ? 200 : 100;
    double most = 0, least_above = (double)INFINITY, top;
    struct fig_break k = {0};

    for (size_t i = 0; i < b->n_places; i++)
        for (size_t s = 0; s < b->sims->n; s++) {
            double v = b->value[panel][i][s];

            if (!isfinite(v))
                continue;
            most = fmax(most, v);
            least_above = v > threshold ? fmin(least_above, v) : least_above;
        }
    k.broken = fig_bars_count(b, panel) >= 3 && most > threshold;
    top = most > 0 ? 1.2 * most : 1;
    k.bottom = (struct fig_axis){FIG_LINEAR, 0, top, false};
    if (!k.broken && b->metric[panel] == FIG_TTFT_MEAN && top > threshold)
        k.bottom.kind = FIG_SYMLOG;
    if (!k.broken)
        return k;
    k.bottom.hi = threshold;
    k.top = (struct fig_axis){FIG_LINEAR, fmax(threshold, 0.9 * least_above),
                              1.15 * most, true};
    if (k.top.hi > 10 * k.top.lo) { /* or all but the tallest would be flat */
        k.top.kind = FIG_LOG;
        k.top.hi = 1.5 * most;
    }
    return k;
}

static const char *mapped_value(const struct fig_axis *a)
{
    if (a->kind == FIG_LOG)
        return "(log10($2))";
    return a->kind == FIG_SYMLOG ? "($2 <= 100 ? $2 / 100.0 : 1 + log10($2 / 100.0))"
                                 : "2";
}

/* ---- where bars stand --------------------------------------------------- */

static double left_edge(const struct fig_bars *b)
{
    return b->at[0] - SIDE;
}

static double right_edge(const struct fig_bars *b)
{
    return b->at[b->n_places - 1] + SIDE;
}

static double value_of(const struct drawing *d, size_t panel, size_t place,
                       size_t shown)
{
    size_t i = 0;

    while (strcmp(d->b->sims->of[i].name, d->shown.of[shown].name) != 0)
        i++;
    return d->b->value[panel][place][i];
}

static double bar_width(const struct drawing *d)
{
    return 0.8 / (double)d->shown.n;
}

/* The bars that are there stand side by side around the group's middle. */
static double bar_at(const struct drawing *d, size_t panel, size_t place, size_t shown)
{
    size_t before = 0, all = 0;

    for (size_t k = 0; k < d->shown.n; k++) {
        bool there = isfinite(value_of(d, panel, place, k));

        all += there;
        before += there && k < shown;
    }
    return d->b->at[place] + ((double)before - ((double)all - 1) / 2) * bar_width(d);
}

/* ---- hatches ------------------------------------------------------------ */

static double x_in(const struct drawing *d, double x)
{
    double lo = left_edge(d->b), hi = right_edge(d->b);

    return d->box.left + (x - lo) / (hi - lo) * (d->box.right - d->box.left);
}

static double y_in(const struct drawing *d, double y)
{
    double lo = fig_axis_map(&d->axis, d->axis.lo);
    double hi = fig_axis_map(&d->axis, d->axis.hi);
    double at = (fig_axis_map(&d->axis, y) - lo) / (hi - lo);

    return d->box.bottom + at * (d->box.top - d->box.bottom);
}

/* Strokes are kept as shares of the part's box, which second axes draw. */
static void stroke_bar(void *user, double x0, double y0, double x1, double y1)
{
    struct drawing *d = user;
    double w = d->box.right - d->box.left, h = d->box.top - d->box.bottom;

    x0 = (x0 - d->box.left) / w;
    x1 = (x1 - d->box.left) / w;
    y0 = (y0 - d->box.bottom) / h;
    y1 = (y1 - d->box.bottom) / h;
    if (fabs(x0 - x1) + fabs(y0 - y1) < 1e-12)
        vt_buf_printf(&d->dots, "%.5f %.5f\n", x0, y0);
    else
        vt_buf_printf(&d->strokes, "%.5f %.5f %.5f %.5f\n", x0, y0, x1 - x0, y1 - y0);
}

static void hatch_part(struct drawing *d, size_t panel)
{
    for (size_t k = 0; k < d->shown.n; k++)
        for (size_t i = 0; i < d->b->n_places; i++) {
            double v = value_of(d, panel, i, k), x = bar_at(d, panel, i, k);
            double half = bar_width(d) / 2;
            struct fig_box bar;

            if (!isfinite(v) || v <= d->axis.lo)
                continue;
            bar = (struct fig_box){x_in(d, x - half), d->box.bottom, x_in(d, x + half),
                                   y_in(d, fmin(v, d->axis.hi))};
            fig_hatch_box(d->shown.of[k].hatch, &bar, stroke_bar, d);
        }
}

/* ---- a part of a panel -------------------------------------------------- */

/* Numbers over bars that are too low to be seen. */
static void put_notes(struct drawing *d, size_t panel)
{
    double w = d->p->width_in, h = d->p->height_in;

    for (size_t k = 0; k < d->shown.n; k++)
        for (size_t i = 0; i < d->b->n_places; i++) {
            double v = value_of(d, panel, i, k);
            double x = x_in(d, bar_at(d, panel, i, k)), y = y_in(d, v) + 0.01;

            if (!d->b->noted || !d->shown.of[k].noted || !(v < NOTE_BELOW))
                continue;
            /* Upright on white, since the bars beside it are often taller. */
            vt_buf_printf(
                &d->p->script,
                "set object rectangle from screen %.5f, screen %.5f to screen %.5f, "
                "screen %.5f fc rgb 'white' fs solid 1 noborder front\n"
                "set label \"%.1f\" at screen %.5f, screen %.5f rotate by 90 left "
                "font 'serif,5.5' tc rgb '#111111' front\n",
                (x - 0.037) / w, y / h, (x + 0.037) / w, (y + 0.17) / h, v, x / w,
                (y + 0.025) / h);
        }
}

static void put_plot(struct drawing *d, size_t panel)
{
    struct vt_buf *o = &d->p->script;

    vt_buf_clear(&d->strokes);
    vt_buf_clear(&d->dots);
    hatch_part(d, panel);
    vt_buf_printf(o, "$strokes << EOD\n%s\nEOD\n$dots << EOD\n%s\nEOD\nplot ",
                  d->strokes.len > 0 ? d->strokes.data : "NaN NaN NaN NaN",
                  d->dots.len > 0 ? d->dots.data : "NaN NaN");
    for (size_t k = 0; k < d->shown.n; k++)
        vt_buf_printf(o,
                      "$p%zu_%zu using 1:%s:3 with boxes fs solid 1 border lc rgb "
                      "'black' lc rgb '%s' lw 0.5 notitle, \\\n  ",
                      panel, k, mapped_value(&d->axis), d->shown.of[k].colour);
    vt_buf_str(o,
               "$strokes using 1:2:3:4 axes x2y2 with vectors nohead lc rgb '#222222' "
               "lw 0.4 notitle, \\\n  "
               "$dots using 1:2 axes x2y2 with points pt 7 ps 0.12 lc rgb '#222222' "
               "notitle\n");
}

enum part { WHOLE, BOTTOM, TOP };

static void put_part(struct drawing *d, size_t panel, enum part part)
{
    struct vt_buf *o = &d->p->script;
    int tics = part == TOP ? 2 : d->stacked || d->b->n_panels == 1 ? 6 : 5;
    double w = d->p->width_in, h = d->p->height_in;

    vt_buf_printf(o,
                  "set lmargin at screen %.5f\nset rmargin at screen %.5f\n"
                  "set bmargin at screen %.5f\nset tmargin at screen %.5f\n"
                  "set xrange [%.6g:%.6g]\nset yrange [%.9g:%.9g]\n",
                  d->box.left / w, d->box.right / w, d->box.bottom / h, d->box.top / h,
                  left_edge(d->b), right_edge(d->b), fig_axis_map(&d->axis, d->axis.lo),
                  fig_axis_map(&d->axis, d->axis.hi));
    vt_buf_printf(o, "set border %d lc rgb '#333333' lw 0.6\n", part == TOP ? 2 : 3);
    fig_axis_tics(o, 'y', &d->axis, tics);
    vt_buf_str(o, part == TOP ? "unset xtics\n" : "set xtics (");
    for (size_t i = 0; i < d->b->n_places && part != TOP; i++) {
        vt_buf_str(o, i > 0 ? ", " : "");
        vt_gnuplot_string(o, d->b->label[i]);
        vt_buf_printf(o, " %.6g", d->b->at[i]);
    }
    if (part != TOP) {
        vt_buf_printf(o, ") scale 0 font 'serif,8' %s\n",
                      d->slanted ? "rotate by 35 right offset 0.6, 0.1" : "norotate");
        put_notes(d, panel);
    }
    put_plot(d, panel);
    vt_buf_str(o, "unset label\nunset arrow\nunset object\n");
}

/* ---- panels ------------------------------------------------------------- */

static void put_tilde(struct drawing *d, double x, double y)
{
    double w = d->p->width_in, h = d->p->height_in;

    vt_buf_printf(&d->p->script,
                  "set arrow from screen %.5f, screen %.5f to screen %.5f, screen %.5f "
                  "nohead lc rgb '#333333' lw 0.8 front\n",
                  (x - 0.05) / w, (y - 0.03) / h, (x + 0.05) / w, (y + 0.03) / h);
}

static void put_words(struct drawing *d, size_t panel, const struct fig_box *whole)
{
    static const char *const title[] = {"E2E mean", "TTFT mean", "ITL mean"};
    double w = d->p->width_in, h = d->p->height_in;
    struct vt_buf *o = &d->p->script;

    vt_buf_str(o, "set label ");
    vt_gnuplot_string(o, *d->b->title ? d->b->title : title[d->b->metric[panel] / 3]);
    vt_buf_printf(o, " at screen %.5f, screen %.5f center font 'serif:Bold,10'\n",
                  (whole->left + whole->right) / 2 / w, (whole->top + 0.14) / h);
    if (panel == 0 || d->stacked)
        vt_buf_printf(o,
                      "set label \"MAPE (%%)\" at screen %.5f, screen %.5f center "
                      "rotate by 90 font 'serif,9'\n",
                      (whole->left - 0.46) / w, (whole->bottom + whole->top) / 2 / h);
    for (size_t t = 0; t < d->b->n_teams; t++) {
        size_t first = d->b->team[t].first;
        double x = (d->b->at[first] + d->b->at[first + d->b->team[t].n - 1]) / 2;

        d->box = *whole;
        vt_buf_str(o, "set label ");
        vt_gnuplot_string(o, d->b->team[t].title);
        vt_buf_printf(o, " at screen %.5f, screen %.5f center font 'serif:Bold,8'\n",
                      x_in(d, x) / w, (whole->bottom - d->label_in - 0.07) / h);
    }
}

static void put_panel(struct drawing *d, size_t panel, const struct fig_box *whole)
{
    struct fig_break k = fig_break_of(d->b, panel);
    double cut = whole->bottom + (whole->top - whole->bottom - GAP_IN) * 4 / 5;
    struct vt_buf *o = &d->p->script;

    for (size_t s = 0; s < d->shown.n; s++) {
        vt_buf_printf(o, "# %s of ", vt_error_metric_names[d->b->metric[panel]]);
        vt_gnuplot_string(o, d->shown.of[s].name);
        vt_buf_printf(o, "\n$p%zu_%zu << EOD\n", panel, s);
        for (size_t i = 0; i < d->b->n_places; i++)
            if (isfinite(value_of(d, panel, i, s)))
                vt_buf_printf(o, "%.9g %.9g %.9g\n", bar_at(d, panel, i, s),
                              value_of(d, panel, i, s), bar_width(d));
        vt_buf_str(o, "EOD\n");
    }
    put_words(d, panel, whole);
    d->box = *whole;
    d->axis = k.bottom;
    if (!k.broken) {
        put_part(d, panel, WHOLE);
        return;
    }
    put_tilde(d, whole->left, cut);
    put_tilde(d, whole->left, cut + GAP_IN);
    d->box.top = cut;
    put_part(d, panel, BOTTOM);
    d->box.top = whole->top;
    d->box.bottom = cut + GAP_IN;
    d->axis = k.top;
    put_part(d, panel, TOP);
}

/* ---- the picture -------------------------------------------------------- */

static double panel_width(const struct drawing *d)
{
    double n = d->stacked ? 1 : (double)d->b->n_panels;

    return (d->p->width_in - n * (LEFT_IN + RIGHT_IN)) / n;
}

static void lay_out(struct drawing *d)
{
    double span = right_edge(d->b) - left_edge(d->b), longest = 0, per_panel;

    d->p->width_in = 10;
    d->stacked = d->b->n_panels > 1 && panel_width(d) / span * bar_width(d) < THIN_IN;
    for (size_t i = 0; i < d->b->n_places; i++)
        longest = fmax(longest, (double)strlen(d->b->label[i]));
    d->slanted = longest * 0.075 > panel_width(d) / span;
    d->label_in = d->slanted ? 0.12 + 0.045 * longest : 0.24;
    d->team_in = d->b->n_teams > 0 ? 0.2 : 0;
    d->legend_in = 0.1 + ROW_IN * (double)fig_legend_rows(&d->shown, d->p->width_in);
    per_panel = d->b->height_in - 0.5;
    d->p->height_in = d->b->height_in + ROW_IN * (d->legend_in > 0.4 ? 1 : 0);
    if (d->stacked)
        d->p->height_in = d->legend_in + (double)d->b->n_panels * (per_panel - 0.1);
}

int fig_bars_script(struct fig_picture *p, const struct fig_bars *b, struct vt_err *err)
{
    struct drawing d = {.p = p, .b = b};

    for (size_t k = 0; k < b->sims->n; k++) {
        bool any = false;

        for (size_t i = 0; i < b->n_panels * b->n_places; i++)
            any |= isfinite(b->value[i / b->n_places][i % b->n_places][k]);
        if (any)
            d.shown.of[d.shown.n++] = b->sims->of[k];
    }
    if (d.shown.n == 0)
        return vt_fail(err, VT_ECHECK, "insufficient data");
    lay_out(&d);
    vt_buf_str(&p->script,
               "set encoding utf8\nset multiplot\nunset key\n"
               "set tics nomirror out scale 0.5 font 'serif,8'\n"
               "set grid ytics back lc rgb '#bbbbbb' lt 1 lw 0.4\n"
               "set x2range [0:1]\nset y2range [0:1]\nset datafile missing 'NaN'\n");
    fig_legend(p, &d.shown, true);
    for (size_t i = 0; i < b->n_panels; i++) {
        double wide = panel_width(&d), n = (double)b->n_panels, at = (double)i;
        double row = (p->height_in - d.legend_in) / (d.stacked ? n : 1);
        double foot = d.legend_in + (d.stacked ? (n - 1 - at) * row : 0);
        double left = LEFT_IN + (d.stacked ? 0 : at * (wide + LEFT_IN + RIGHT_IN));
        struct fig_box box = {left, foot + d.label_in + d.team_in, left + wide,
                              foot + row - 0.3};

        put_panel(&d, i, &box);
    }
    vt_buf_str(&p->script, "unset multiplot\n");
    vt_buf_free(&d.strokes);
    vt_buf_free(&d.dots);
    return p->script.failed ? vt_nomem(err) : VT_OK;
}
