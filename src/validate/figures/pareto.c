/* pareto.c - figure 5: how wrong against how slow, one point a simulator. */
#include <math.h>

#include "validate/figures/figures.h"

/* ---- points ------------------------------------------------------------- */

static bool is_of(const struct fig_error *e, const char *simulator)
{
    return e->stage == FIG_SUMMARY && strcmp(e->at.simulator, simulator) == 0;
}

/* Quartiles over experiments of a simulator's median over the metrics of each. */
static int errors_of(const struct fig_set *s, const char *simulator, double out[3],
                     struct vt_err *err)
{
    struct values medians = {0};
    int rc = VT_OK;

    for (size_t i = 0; i < s->n_errors && rc == VT_OK; i++) {
        const char *folder = s->error[i].at.folder;
        struct values v = {0};
        size_t k = i;

        while (k > 0 && !(is_of(&s->error[k - 1], simulator) &&
                          strcmp(s->error[k - 1].at.folder, folder) == 0))
            k--;
        if (k > 0 || !is_of(&s->error[i], simulator))
            continue; /* an experiment counts at its first row */
        for (; k < s->n_errors && rc == VT_OK; k++)
            if (is_of(&s->error[k], simulator) &&
                strcmp(s->error[k].at.folder, folder) == 0)
                rc = values_add(&v, s->error[k].mape, err);
        if (rc == VT_OK)
            rc = values_add(&medians, values_quantile(&v, 50), err);
        free(v.v);
    }
    for (int q = 0; q < 3; q++)
        out[q] = values_quantile(&medians, 25.0 * (q + 1));
    free(medians.v);
    return rc;
}

int fig5_points(struct fig_point *p, size_t *n, const struct fig_simulators *sims,
                const struct fig_set *s, struct vt_err *err)
{
    int rc = VT_OK;

    *n = 0;
    for (size_t k = 0; k < sims->n && rc == VT_OK; k++) {
        const char *simulator = sims->of[k].name;
        struct fig_point *one = &p[*n];
        bool timed = false;

        one->sim = &sims->of[k];
        rc = errors_of(s, simulator, one->mape, err);
        if (rc == VT_OK)
            rc = fig_runtime_quartiles(one->seconds, &timed, s, simulator, true, err);
        /* An axis of powers has no 0. */
        *n +=
            timed && isfinite(one->mape[2]) && one->mape[1] > 0 && one->seconds[1] > 0;
    }
    if (rc == VT_OK && *n == 0)
        rc = vt_fail(err, VT_ECHECK, "insufficient data");
    return rc;
}

/* ---- the script --------------------------------------------------------- */

/* At least as good in both and better in one. */
static bool beats(const struct fig_point *a, const struct fig_point *b)
{
    return a->seconds[1] <= b->seconds[1] && a->mape[1] <= b->mape[1] &&
           (a->seconds[1] < b->seconds[1] || a->mape[1] < b->mape[1]);
}

/* Those that no other beats in both, from fast to slow. */
static void put_front(struct vt_buf *o, const struct fig_point *p, size_t n)
{
    double after = 0;

    vt_buf_str(o, "$front << EOD\n");
    for (;;) {
        size_t next = n;

        for (size_t i = 0; i < n; i++) {
            size_t better = 0;

            while (better < n && !beats(&p[better], &p[i]))
                better++;
            if (better == n && p[i].seconds[1] > after &&
                (next == n || p[i].seconds[1] < p[next].seconds[1]))
                next = i;
        }
        if (next == n)
            break;
        after = p[next].seconds[1];
        vt_buf_printf(o, "%.9g %.9g\n", p[next].seconds[1], p[next].mape[1]);
    }
    vt_buf_str(o, "EOD\n");
}

static struct fig_axis axis_of(const struct fig_point *p, size_t n, bool across)
{
    struct fig_axis a = {FIG_LOG, (double)INFINITY, 0, false};

    for (size_t i = 0; i < n; i++) {
        const double *q = across ? p[i].seconds : p[i].mape;

        a.lo = fmin(a.lo, q[0] > 0 ? q[0] : q[1]);
        a.hi = fmax(a.hi, q[2]);
    }
    a.lo /= 1.6;
    a.hi *= 1.6;
    if (a.hi < 30 * a.lo) { /* room for two ticks */
        a.lo /= 3;
        a.hi *= 3;
    }
    return a;
}

static void put_points(struct vt_buf *o, const struct fig_point *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        vt_buf_str(o, "# median and quartiles of ");
        vt_gnuplot_string(o, p[i].sim->name);
        vt_buf_printf(o, "\n$s%zu << EOD\n%.9g %.9g %.9g %.9g %.9g %.9g\nEOD\n", i,
                      p[i].seconds[1], p[i].mape[1],
                      p[i].seconds[0] > 0 ? p[i].seconds[0] : p[i].seconds[1],
                      p[i].seconds[2], p[i].mape[0] > 0 ? p[i].mape[0] : p[i].mape[1],
                      p[i].mape[2]);
    }
    put_front(o, p, n);
    vt_buf_str(o, "plot $front using (log10($1)):(log10($2)) with lines lc rgb "
                  "'#999999' lw 1 dt (6,4)");
    for (size_t i = 0; i < n; i++)
        vt_buf_printf(o,
                      ", \\\n  $s%zu using "
                      "(log10($1)):(log10($2)):(log10($3)):(log10($4)):(log10($5)):"
                      "(log10($6)) with xyerrorbars pt %d ps 1.1 lw 1.1 lc rgb '%s'",
                      i, p[i].sim->marker, p[i].sim->colour);
    vt_buf_char(o, '\n');
}

int fig_points_script(struct fig_picture *p, const struct fig_point *point, size_t n,
                      struct vt_err *err)
{
    struct fig_axis x = axis_of(point, n, true), y = axis_of(point, n, false);
    struct fig_simulators sims = {.n = 0};
    double legend_in;

    for (size_t i = 0; i < n; i++)
        sims.of[sims.n++] = *point[i].sim;
    p->width_in = 4.5;
    legend_in = 0.1 + 0.19 * (double)fig_legend_rows(&sims, p->width_in);
    p->height_in = 4.0 + legend_in; /* 4.5 with the paper's two lines */
    vt_buf_printf(&p->script,
                  "set encoding utf8\nunset key\n"
                  "set border 3 lc rgb '#333333' lw 0.6\n"
                  "set tics nomirror out scale 0.5 font 'serif,8'\n"
                  "set grid back lc rgb '#cccccc' lt 1 lw 0.4\nset bars 0.4\n"
                  "set lmargin at screen %.5f\nset rmargin at screen %.5f\n"
                  "set bmargin at screen %.5f\nset tmargin at screen %.5f\n"
                  "set label \"Median runtime (s)\" at screen %.5f, screen %.5f center "
                  "font 'serif,9'\n"
                  "set label \"Median MAPE (%%)\" at screen %.5f, screen %.5f center "
                  "rotate by 90 font 'serif,9'\n"
                  "set label \"better\" at graph 0.09, graph 0.05 left font "
                  "'serif:Italic,8' tc rgb '#777777'\n"
                  "set arrow from graph 0.085, graph 0.07 to graph 0.02, graph 0.02 "
                  "size graph 0.02,25 filled lc rgb '#777777' lw 0.8\n",
                  0.68 / 4.5, 4.36 / 4.5, (legend_in + 0.5) / p->height_in,
                  1 - 0.12 / p->height_in, 2.52 / 4.5,
                  (legend_in + 0.14) / p->height_in, 0.14 / 4.5,
                  (legend_in + 2.2) / p->height_in);
    vt_buf_printf(&p->script, "set xrange [%.9g:%.9g]\nset yrange [%.9g:%.9g]\n",
                  log10(x.lo), log10(x.hi), log10(y.lo), log10(y.hi));
    fig_axis_tics(&p->script, 'x', &x, 6);
    fig_axis_tics(&p->script, 'y', &y, 7);
    fig_legend(p, &sims, false);
    put_points(&p->script, point, n);
    return p->script.failed ? vt_nomem(err) : VT_OK;
}
