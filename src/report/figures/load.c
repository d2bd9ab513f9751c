/* load.c - the figure of a sweep: latency and throughput against load, in four
 * panels over the same axis. */
#include <math.h>

#include "report/figures/figures.h"

struct panel {
    double left, right, bottom, top; /* of its frame, as shares of the picture */
    const char *title;
};

static const struct panel panels[] = {
    {0.070, 0.465, 0.545, 0.850, "time to first token (ms)"},
    {0.555, 0.895, 0.545, 0.850, "time per output token (ms)"},
    {0.070, 0.465, 0.095, 0.400, "gaps between tokens (ms)"},
    {0.555, 0.895, 0.095, 0.400, ""}, /* throughput: its axes say so */
};

#define COLOUR_REQ    "#222222"
#define COLOUR_TOKENS "#009e73"
#define COLOUR_LIMIT  "#a03070"

/* ---- axes ------------------------------------------------------------ */

/* Loads that double are read best where doubling is a step. */
static bool is_wide(const struct span *x)
{
    return x->lo > 0 && x->hi / x->lo >= 8;
}

static struct span span_of(const struct vt_load_curve *c)
{
    struct span x = {0};

    for (size_t i = 0; i < c->n; i++)
        if (isfinite(c->point[i].load))
            figure_span(&x, c->point[i].load);
    return x;
}

/* A tick at each load that was tried, as long as they do not run into each other. */
static void put_loads(struct figure *g, const struct span *x)
{
    const struct vt_load_curve *c = g->load;
    int most = c->answer > 0 ? 6 : 10; /* rates that a search tried are long numbers */
    double room = (is_wide(x) ? log(x->hi / x->lo) : x->hi - x->lo) / most;
    double last = -INFINITY;
    bool first = true;

    if (c->answer > 0 && !is_wide(x)) {
        vt_buf_str(&g->script, "set xtics auto\n");
        return;
    }
    vt_buf_str(&g->script, "set xtics (");
    for (size_t i = 0; i < c->n; i++) {
        double at = c->point[i].load, place = is_wide(x) ? log(at) : at;

        if (!isfinite(at) || (place - last < room && place > last - room))
            continue;
        vt_buf_printf(&g->script, "%s\"%g\" %.9g", first ? "" : ", ", at, at);
        last = place;
        first = false;
    }
    vt_buf_str(&g->script, ")\n");
}

static void put_frame(struct figure *g, const struct panel *p)
{
    vt_buf_printf(&g->script,
                  "set lmargin at screen %.3f\nset rmargin at screen %.3f\n"
                  "set bmargin at screen %.3f\nset tmargin at screen %.3f\n",
                  p->left, p->right, p->bottom, p->top);
    vt_buf_str(&g->script, "set label 3 ");
    vt_gnuplot_string(&g->script, p->title);
    vt_buf_str(&g->script, " at graph 0, graph 1 offset 0, char 0.9 font ',13' "
                           "tc rgb '#222222'\n");
}

/* Where the load was no longer borne, and the load that is the answer. */
static void put_marks(struct figure *g)
{
    const struct vt_load_curve *c = g->load;
    double answer = c->answer, full;
    size_t i = 0;

    while (i < c->n && !c->point[i].saturated)
        i++;
    full = i < c->n ? c->point[i].load : INFINITY;
    if (isfinite(full))
        vt_buf_printf(
            &g->script,
            "set arrow 1 from first %.9g, graph 0 to first %.9g, graph 1 nohead "
            "lc rgb '#b0b0b0' lw 1.4 dt (6,4) back\n"
            "set label 4 'saturated' at first %.9g, graph 0.06 right offset "
            "char -0.5, 0 font ',11' tc rgb '#777777'\n",
            full, full, full);
    if (answer > 0)
        vt_buf_printf(
            &g->script,
            "set arrow 2 from first %.9g, graph 0 to first %.9g, graph 1 nohead "
            "lc rgb '" COLOUR_LIMIT "' lw 1.4 back\n"
            "set label 5 '%g' at first %.9g, graph 0.94 right offset char -0.5, "
            "0 font ',11' tc rgb '" COLOUR_LIMIT "'\n",
            answer, answer, answer, answer);
}

/* ---- latency --------------------------------------------------------- */

/* One number of each point, by its place in struct vt_load_point. */
static void put_points(struct figure *g, size_t offset, struct span *y)
{
    for (size_t i = 0; i < g->load->n; i++) {
        const struct vt_load_point *p = &g->load->point[i];
        const double *v = (const void *)((const char *)p + offset);

        if (!isfinite(p->load) || !isfinite(*v) || (y && !(*v > 0)))
            continue;
        figure_point(g, p->load, *v);
        if (y)
            figure_span(y, *v);
    }
}

static void put_limit(struct figure *g, double limit, struct span *y)
{
    vt_buf_str(&g->script, "unset arrow 3\nunset label 6\n");
    if (!(limit > 0))
        return;
    figure_span(y, limit);
    vt_buf_printf(&g->script,
                  "set arrow 3 from graph 0, first %.9g to graph 1, first %.9g nohead "
                  "lc rgb '" COLOUR_LIMIT "' lw 1.4 dt (2,3) front\n",
                  limit, limit);
    vt_buf_printf(&g->script,
                  "set label 6 'p99 limit' at graph 0.01, first %.9g left offset 0, "
                  "char 0.5 font ',11' tc rgb '" COLOUR_LIMIT "'\n",
                  limit);
}

/* offset: of a pair of p50 and p99. */
static void put_latency(struct figure *g, const struct panel *p, double limit,
                        size_t offset)
{
    static const struct {
        const char *name, *how, *colour;
    } quantile[] = {{"p50", "using 1:2 with linespoints pt 7 ps 0.9 lw 2", "#0072b2"},
                    {"p99", "using 1:2 with linespoints pt 5 ps 0.8 lw 2", "#d55e00"}};
    struct span y = {0};

    put_frame(g, p);
    put_limit(g, limit, &y);
    for (size_t i = 0; i < VT_COUNT(quantile); i++) {
        put_points(g, offset + i * sizeof(double), &y);
        figure_curve(g, quantile[i].how, quantile[i].colour, quantile[i].name);
    }
    if (g->plot.len == 0) { /* one token each: there are no gaps */
        vt_buf_str(&g->script, "set yrange [0:1]\nunset logscale y\n");
        vt_buf_str(&g->plot, "NaN notitle");
    } else if (y.hi > 8 * y.lo) {
        figure_log_axis(g, 'y', y.lo, y.hi);
    } else { /* from 0 shows the curve's shape */
        vt_buf_printf(&g->script,
                      "unset logscale y\nset ytics auto\nset yrange [0:%.9g]\n",
                      y.hi * 1.12);
    }
    figure_plot(g);
}

/* ---- throughput ------------------------------------------------------ */

static void put_throughput(struct figure *g, const struct panel *p)
{
    /* Answers of like length would put one curve on the other. */
    const double APART = 1.5;
    struct span x = span_of(g->load);
    double most = 0, most_tokens = 0;

    for (size_t i = 0; i < g->load->n; i++) {
        most = fmax(most, g->load->point[i].req_per_s);
        most_tokens = fmax(most_tokens, g->load->point[i].output_tok_per_s);
    }
    put_frame(g, p);
    put_limit(g, 0, NULL);
    vt_buf_printf(&g->script,
                  "unset logscale y\nset yrange [0:%.9g]\nset ytics auto nomirror\n"
                  "set y2range [0:%.9g]\nset y2tics auto tc rgb '" COLOUR_TOKENS "'\n"
                  "set y2label 'output tokens per second' offset -1, 0 tc rgb "
                  "'" COLOUR_TOKENS "'\nset border 11\n"
                  "set ylabel 'requests per second' offset 1, 0\n",
                  most > 0 ? most * 1.2 : 1,
                  most_tokens > 0 ? most_tokens * 1.2 * APART : 1);
    if (g->load->axis == VT_LOAD_BY_RATE) {
        /* If every request asked for were served in its time. A straight line is none
         * on an axis of powers: many points. */
        for (int i = 0; i <= 64; i++)
            figure_point(g, x.lo + (x.hi - x.lo) * i / 64,
                         x.lo + (x.hi - x.lo) * i / 64);
        figure_curve(g, "using 1:2 with lines lw 1.4 dt (4,4)", FIGURE_GREY, "asked");
    }
    put_points(g, offsetof(struct vt_load_point, req_per_s), NULL);
    figure_curve(g, "using 1:2 with linespoints pt 7 ps 0.9 lw 2", COLOUR_REQ,
                 "requests");
    put_points(g, offsetof(struct vt_load_point, output_tok_per_s), NULL);
    figure_curve(g, "using 1:2 axes x1y2 with linespoints pt 9 ps 1 lw 2",
                 COLOUR_TOKENS, "tokens");
    figure_plot(g);
}

int figure_load(struct figure *g, struct vt_err *err)
{
    static const char *const x_label[] = {
        [VT_LOAD_BY_RATE] = "requests per second, asked for",
        [VT_LOAD_BY_SESSION_RATE] = "conversations per second, asked for",
        [VT_LOAD_BY_CONCURRENCY] = "requests at a time",
    };
    struct span x = span_of(g->load);

    if (!(x.hi > 0))
        return vt_fail(err, VT_ECHECK, "there is no load that can be put on an axis");
    g->aspect = 0.78;
    vt_buf_str(&g->script,
               "set multiplot\n"
               "set label 1 at screen 0.03, screen 0.965 offset 0, 0\n"
               "set label 2 at screen 0.03, screen 0.928 offset 0, 0\n"
               "set key at graph 1, graph 1.125 right top horizontal Right noreverse "
               "samplen 1.6 maxrows 1 font ',12'\n");
    if (is_wide(&x))
        vt_buf_printf(&g->script, "set logscale x\nset xrange [%.9g:%.9g]\n",
                      x.lo / 1.15, x.hi * 1.15);
    else
        vt_buf_printf(&g->script, "set xrange [0:%.9g]\n", x.hi * 1.06);
    put_loads(g, &x);
    put_marks(g);
    put_latency(g, &panels[0], g->load->limit[0], offsetof(struct vt_load_point, ttft));
    vt_buf_str(&g->script, "unset label 1\nunset label 2\nunset label 4\n");
    put_latency(g, &panels[1], g->load->limit[1], offsetof(struct vt_load_point, tpot));
    vt_buf_printf(&g->script, "set xlabel '%s'\n", x_label[g->load->axis]);
    put_latency(g, &panels[2], g->load->limit[2], offsetof(struct vt_load_point, itl));
    put_throughput(g, &panels[3]);
    vt_buf_str(&g->script, "unset multiplot\n");
    return VT_OK;
}
