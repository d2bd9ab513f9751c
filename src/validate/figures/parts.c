/* parts.c - hatches, axes and legends, computed here so that they look the same
 * in every format. */
#include <math.h>

#include "validate/figures/figures.h"

/* ---- hatches ------------------------------------------------------------ */

#define HATCH_IN 0.055 /* between lines */

/* Lines of 45 degrees: x - y = c, or mirrored. */
static void hatch_slanted(bool rising, const struct fig_box *box, fig_stroke *stroke,
                          void *user)
{
    double wide = box->right - box->left, high = box->top - box->bottom;

    for (double c = HATCH_IN / 2; c < wide + high; c += HATCH_IN * 1.3) {
        /* From the left or upper edge to the lower or right one. */
        double x0 = fmax(0, c - high), x1 = fmin(c, wide);
        double y0 = c - x0, y1 = c - x1;

        if (rising)
            stroke(user, box->right - x0, box->bottom + y0, box->right - x1,
                   box->bottom + y1);
        else
            stroke(user, box->left + x0, box->bottom + y0, box->left + x1,
                   box->bottom + y1);
    }
}

void fig_hatch_box(unsigned hatch, const struct fig_box *box, fig_stroke *stroke,
                   void *user)
{
    double wide = box->right - box->left;
    int upright = (int)fmax(1, floor(wide / (HATCH_IN * 0.75)));
    int dots = (int)fmax(1, floor(wide / HATCH_IN));

    if (!(box->right > box->left && box->top > box->bottom))
        return;
    for (int i = 0; i < upright && (hatch & FIG_UPRIGHT); i++) {
        double x = box->left + wide * (i + 0.5) / upright;

        stroke(user, x, box->bottom, x, box->top);
    }
    if (hatch & FIG_LEVEL)
        for (double y = HATCH_IN; y < box->top - box->bottom; y += HATCH_IN)
            stroke(user, box->left, box->bottom + y, box->right, box->bottom + y);
    if (hatch & FIG_RISING)
        hatch_slanted(true, box, stroke, user);
    if (hatch & FIG_FALLING)
        hatch_slanted(false, box, stroke, user);
    if (!(hatch & FIG_DOTTED))
        return;
    for (double y = box->bottom + HATCH_IN / 2; y < box->top; y += HATCH_IN)
        for (int i = 0; i < dots; i++) {
            double x = box->left + wide * (i + 0.5) / dots;

            stroke(user, x, y, x, y);
        }
}

/* ---- axes --------------------------------------------------------------- */

#define SYMLOG_LINEAR 100.0 /* up to here in proportion */

double fig_axis_map(const struct fig_axis *a, double v)
{
    if (a->kind == FIG_LOG)
        return log10(v);
    if (a->kind == FIG_SYMLOG && v > SYMLOG_LINEAR)
        return 1 + log10(v / SYMLOG_LINEAR);
    return a->kind == FIG_SYMLOG ? v / SYMLOG_LINEAR : v;
}

/* The lower end of an axis that does not begin at 0 stays free: another ends there. */
static void put_tic(struct vt_buf *b, const struct fig_axis *a, double v, bool *first)
{
    double slack = (a->hi - a->lo) * 1e-9;
    double at = fig_axis_map(a, v), lo = fig_axis_map(a, a->lo);
    double hi = fig_axis_map(a, a->hi);

    if (v < a->lo - slack || v > a->hi + slack ||
        (a->crowded && at < lo + 0.2 * (hi - lo)))
        return;
    v += 0.0; /* -0 is 0 */
    vt_buf_printf(b, "%s\"%.10g\" %.9g", *first ? "" : ", ", v, fig_axis_map(a, v));
    *first = false;
}

static void put_linear_tics(struct vt_buf *b, const struct fig_axis *a, int most)
{
    static const double steps[] = {1, 2, 5, 10};
    double rough = (a->hi - a->lo) / most;
    double ten = pow(10, floor(log10(rough))), step = 10 * ten;
    bool first = true;

    for (size_t i = VT_COUNT(steps); i-- > 0;)
        step = steps[i] * ten >= rough * 0.999 ? steps[i] * ten : step;
    for (double k = ceil(a->lo / step - 1e-9); k * step <= a->hi * (1 + 1e-9); k++)
        put_tic(b, a, k * step, &first);
}

/* Powers of ten; with 2 and 5 between where there is room. */
static void put_log_tics(struct vt_buf *b, const struct fig_axis *a, int most)
{
    double decades = log10(a->hi / a->lo);
    int every = (int)fmax(1, ceil(decades / most));
    bool fine = decades * 3 <= most + 1, first = true;

    for (int e = (int)floor(log10(a->lo)); e <= (int)ceil(log10(a->hi)); e++) {
        if (e % every == 0)
            put_tic(b, a, pow(10, e), &first);
        if (fine) {
            put_tic(b, a, 2 * pow(10, e), &first);
            put_tic(b, a, 5 * pow(10, e), &first);
        }
    }
}

static void put_symlog_tics(struct vt_buf *b, const struct fig_axis *a)
{
    bool first = true;

    for (double v = 0; v <= SYMLOG_LINEAR; v += SYMLOG_LINEAR / 4)
        put_tic(b, a, v, &first);
    for (double v = SYMLOG_LINEAR * 10; v <= a->hi; v *= 10)
        put_tic(b, a, v, &first);
}

void fig_axis_tics(struct vt_buf *b, char which, const struct fig_axis *a, int most)
{
    vt_buf_printf(b, "set %ctics (", which);
    if (a->kind == FIG_LOG)
        put_log_tics(b, a, most);
    else if (a->kind == FIG_SYMLOG)
        put_symlog_tics(b, a);
    else
        put_linear_tics(b, a, most);
    vt_buf_str(b, ")\n");
}

/* ---- legend ------------------------------------------------------------- */

#define CHAR_IN   0.068 /* about, at 8 points */
#define SWATCH_IN 0.26
#define ROW_IN    0.19

/* Entries stand in columns. */
struct grid {
    size_t columns, rows;
    double wide_in; /* of a column */
};

static struct grid grid_of(const struct fig_simulators *sims, double width_in)
{
    struct grid g = {1, 1, 0};
    size_t longest = 0;

    for (size_t i = 0; i < sims->n; i++)
        longest = strlen(sims->of[i].display) > longest ? strlen(sims->of[i].display)
                                                        : longest;
    g.wide_in = SWATCH_IN + 0.25 + CHAR_IN * (double)longest;
    g.columns = (size_t)fmax(1, floor((width_in - 0.1) / g.wide_in));
    g.rows = (sims->n + g.columns - 1) / g.columns;
    if (g.rows > 0)
        g.columns = (sims->n + g.rows - 1) / g.rows;
    return g;
}

size_t fig_legend_rows(const struct fig_simulators *sims, double width_in)
{
    return grid_of(sims, width_in).rows;
}

struct on_screen { /* strokes as arrows and points of the whole picture */
    const struct fig_picture *p;
    struct vt_buf *b;
};

static void stroke_screen(void *user, double x0, double y0, double x1, double y1)
{
    struct on_screen *o = user;
    double w = o->p->width_in, h = o->p->height_in;

    if (fabs(x0 - x1) + fabs(y0 - y1) < 1e-12)
        vt_buf_printf(o->b,
                      "set label \"\" at screen %.5f, screen %.5f point pt 7 ps 0.12 "
                      "lc rgb '#222222'\n",
                      x0 / w, y0 / h);
    else
        vt_buf_printf(o->b,
                      "set arrow from screen %.5f, screen %.5f to screen %.5f, screen "
                      "%.5f nohead lc rgb '#222222' lw 0.4 front\n",
                      x0 / w, y0 / h, x1 / w, y1 / h);
}

static void put_entry(struct fig_picture *p, const struct fig_simulator *sim, double x,
                      double y, bool boxes)
{
    struct fig_box box = {x, y + 0.02, x + SWATCH_IN, y + 0.13};
    struct on_screen o = {p, &p->script};
    double w = p->width_in, h = p->height_in;

    if (boxes) {
        vt_buf_printf(&p->script,
                      "set object rectangle from screen %.5f, screen %.5f to screen "
                      "%.5f, screen %.5f fc rgb '%s' fs solid 1 border lc rgb 'black' "
                      "lw 0.5\n",
                      box.left / w, box.bottom / h, box.right / w, box.top / h,
                      sim->colour);
        fig_hatch_box(sim->hatch, &box, stroke_screen, &o);
    } else {
        vt_buf_printf(&p->script,
                      "set label \"\" at screen %.5f, screen %.5f point pt %d ps 0.9 "
                      "lw 1.2 lc rgb '%s'\n",
                      (x + SWATCH_IN / 2) / w, (y + 0.075) / h, sim->marker,
                      sim->colour);
    }
    vt_buf_str(&p->script, "set label ");
    vt_gnuplot_string(&p->script, sim->display);
    vt_buf_printf(&p->script, " at screen %.5f, screen %.5f left font 'serif,8'\n",
                  (x + SWATCH_IN + 0.07) / w, (y + 0.075) / h);
}

void fig_legend(struct fig_picture *p, const struct fig_simulators *sims, bool boxes)
{
    struct grid g = grid_of(sims, p->width_in);
    double left = (p->width_in - (double)g.columns * g.wide_in + 0.2) / 2;

    for (size_t i = 0; i < sims->n; i++)
        put_entry(p, &sims->of[i], left + (double)(i % g.columns) * g.wide_in,
                  0.06 + ROW_IN * (double)(g.rows - 1 - i / g.columns), boxes);
}
