/* plan_plot.c - a plan as a picture: a line for each row, which curves over the load
 * would hide behind each other. */
#include <math.h>

#include "report/report.h"
#include "tune/tune.h"

struct panel { /* a latency, all rates of all rows */
    const char *title;
    double limit; /* 0: none */
    double (*of)(const struct vt_summary *s);
    double (*measured)(const struct vt_tuning_measured *m);
};

static double ttft_p99(const struct vt_summary *s)
{
    return s->ttft.p99;
}

static double tpot_p99(const struct vt_summary *s)
{
    return s->tpot.p99;
}

static double itl_p99(const struct vt_summary *s)
{
    return s->itl.p99;
}

static double measured_ttft(const struct vt_tuning_measured *m)
{
    return m->ttft_p99;
}

static double measured_tpot(const struct vt_tuning_measured *m)
{
    return m->tpot_p99;
}

static double measured_itl(const struct vt_tuning_measured *m)
{
    return m->itl_p99;
}

/* From light to dark as the load grows. */
static unsigned rate_colour(size_t k, size_t n)
{
    static const unsigned light[] = {0x9E, 0xC9, 0xE2}, dark[] = {0x0B, 0x2F, 0x5B};
    double share = n > 1 ? (double)k / (double)(n - 1) : 1;
    unsigned colour = 0;

    for (int i = 0; i < 3; i++)
        colour = colour << 8 |
                 (unsigned)lround(light[i] + share * ((double)dark[i] - light[i]));
    return colour;
}

static void put_numbers(struct vt_buf *b, const struct vt_tuning_plan *p,
                        const struct vt_tuning_result *r, const struct panel *panel,
                        struct vt_buf *plot)
{
    for (size_t k = 0; k < p->n_rates; k++) {
        size_t any = 0;

        vt_buf_printf(b, "$r%zu << EOD\n", k);
        for (size_t i = 0; i < p->n; i++) {
            double v = panel->of(&r->at[i * p->n_rates + k].mean);

            any += v > 0;
            if (v > 0)
                vt_buf_printf(b, "%.9g %zu\n", v, p->n - i);
        }
        vt_buf_str(b, "EOD\n");
        if (any > 0)
            vt_buf_printf(plot,
                          "%s$r%zu using 1:2 with points pt 7 ps 1.1 lc rgb '#%06x' "
                          "title '%g req/s'",
                          plot->len > 0 ? ", " : "plot ", k, rate_colour(k, p->n_rates),
                          p->rate[k]);
    }
}

/* Of those rows that have it, at the rate of the first of them. */
static void put_measured(struct vt_buf *b, const struct vt_tuning_plan *p,
                         const struct panel *panel, struct vt_buf *plot)
{
    double at = 0;

    vt_buf_str(b, "$measured << EOD\n");
    for (size_t i = 0; i < p->n; i++) {
        const struct vt_tuning_measured *m = &p->row[i].measured;

        if (!(panel->measured(m) > 0) || (at > 0 && fabs(m->at - at) > 1e-9))
            continue;
        at = m->at;
        vt_buf_printf(b, "%.9g %zu\n", panel->measured(m), p->n - i);
    }
    vt_buf_str(b, "EOD\n");
    if (at > 0)
        vt_buf_printf(plot,
                      "%s$measured using 1:2 with points pt 12 ps 1.5 lw 1.6 lc rgb "
                      "'#c1272d' title 'measured, %g req/s'",
                      plot->len > 0 ? ", " : "plot ", at);
}

/* The first has the rows' names, and the key of all stands below it. */
static void put_panel(struct vt_buf *b, const struct vt_tuning_plan *p,
                      const struct vt_tuning_result *r, const struct panel *panel,
                      size_t at, double foot)
{
    static const double left[] = {0.20, 0.485, 0.745}, wide = 0.235;
    struct vt_buf plot = {0};

    put_numbers(b, p, r, panel, &plot);
    put_measured(b, p, panel, &plot);
    vt_buf_printf(b,
                  "set lmargin at screen %.4f\nset rmargin at screen %.4f\n"
                  "set bmargin at screen %.4f\nset tmargin at screen %.4f\n"
                  "set label 2 '%s' at graph 0, screen %.4f left font ',13'\n",
                  left[at], left[at] + wide, foot, 1 - 0.85 * foot, panel->title,
                  1 - 0.7 * foot);
    if (panel->limit > 0)
        vt_buf_printf(
            b,
            "set arrow 1 from %.9g, graph 0 to %.9g, graph 1 nohead lc rgb "
            "'#888888' lw 1.4 dt (6,4)\n"
            "set label 3 'limit %g' at %.9g, graph 0 left offset 0.4, 0.6 font "
            "',10' tc rgb '#777777'\n",
            panel->limit, panel->limit, panel->limit, panel->limit);
    else
        vt_buf_str(b, "unset arrow 1\nunset label 3\n");
    vt_buf_str(b, "set ytics (");
    for (size_t i = 0; i < p->n; i++) {
        vt_buf_str(b, i > 0 ? ", " : "");
        vt_gnuplot_string(b, at == 0 ? p->row[i].name : "");
        vt_buf_printf(b, " %zu", p->n - i);
    }
    vt_buf_printf(
        b, ")\n%s\n%s\nunset label 1\n",
        at == 0
            ? "set key at screen 0.5, screen 0.05 center vertical maxrows 1 width -1"
            : "unset key",
        plot.data ? plot.data : "");
    vt_buf_free(&plot);
}

int vt_tuning_plot(const struct vt_tuning_plan *p, const struct vt_tuning_result *r,
                   const char *scratch, const char *path, struct vt_err *err)
{
    const struct panel panel[] = {
        {"TTFT p99 (ms)", p->slo.ttft_p99, ttft_p99, measured_ttft},
        {"TPOT p99 (ms)", p->slo.tpot_p99, tpot_p99, measured_tpot},
        {"ITL p99 (ms)", p->slo.itl_p99, itl_p99, measured_itl},
    };
    struct vt_buf text = {0}, picture = {0};
    double lines = (double)p->n + 7;
    struct vt_script script = {
        .name = "plan", .aspect = lines * 32 / 1280, .scratch = scratch};
    int rc;

    vt_buf_str(&text, "set encoding utf8\nset multiplot\n"
                      "set border 1 lc rgb '#777777' lw 0.8\n"
                      "set tics nomirror out scale 0.6 tc rgb '#333333'\n"
                      "set grid lc rgb '#e2e2e2' lt 1 lw 0.6 back\n"
                      "set key Left reverse samplen 0.6 tc rgb '#222222'\n"
                      "set label 1 ");
    vt_gnuplot_string(&text, p->name);
    vt_buf_printf(&text,
                  " . ': simulated, and where it says so measured' at screen 0.02, "
                  "screen %.4f left font ',16'\nset yrange "
                  "[0.4:%zu.6]\nset xrange [0:*]\nset xtics font ',11'\n",
                  1 - 0.9 / lines, p->n);
    for (size_t i = 0; i < VT_COUNT(panel); i++)
        put_panel(&text, p, r, &panel[i], i, 3.2 / lines);
    vt_buf_str(&text, "unset multiplot\n");
    script.text = text.data;
    rc = text.failed ? vt_nomem(err) : vt_script_draw(&script, "png", &picture, err);
    if (rc == VT_OK)
        rc = vt_write_file(path, &picture, err);
    vt_buf_free(&text);
    vt_buf_free(&picture);
    return rc;
}
