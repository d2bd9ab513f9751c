/* figures.h - figures: what each one plots, and the gnuplot script around it; private
 * to report. */
#ifndef VT_REPORT_FIGURES_H
#define VT_REPORT_FIGURES_H

#include "report/report.h"

/* A figure is numbers in blocks, one for each curve, and the lines that plot them. */
struct figure {
    const struct vt_figures *f;
    const struct vt_load_curve *load; /* of figure_load(); NULL otherwise */
    const struct vt_chart *chart;     /* of figure_chart(); NULL otherwise */
    struct vt_buf data;               /* blocks, each ended by figure_block_end() */
    struct vt_buf script;             /* what stands between the preamble and the end */
    struct vt_buf plot;               /* the curves of the plot command in the making */
    int n_blocks;
    double aspect; /* height over width; 0: the usual */
};

struct figure_kind {
    const char *name;
    const char *title;
    /* VT_ECHECK: nothing to show. */
    int (*make)(struct figure *g, struct vt_err *err);
    const char *conclude; /* how to read it, below it on a page; NULL: nothing */
};

int figure_itl_survival(struct figure *g, struct vt_err *err);
int figure_itl_qq(struct figure *g, struct vt_err *err);
int figure_itl_means(struct figure *g, struct vt_err *err);
int figure_ttft_prompt(struct figure *g, struct vt_err *err);
int figure_step_shape(struct figure *g, struct vt_err *err);
int figure_timeline(struct figure *g, struct vt_err *err);
int figure_comparison(struct figure *g, struct vt_err *err);
/* Not of a capture but of a sweep, so it is not in the table. */
int figure_load(struct figure *g, struct vt_err *err);
int figure_chart(struct figure *g, struct vt_err *err);

/* ---- parts of a figure ------------------------------------------------ */

#define FIGURE_DATA "$data" /* as scripts name the numbers */
#define FIGURE_GREY "#8a8a8a"

const char *figure_colour(size_t view); /* captured is dark, models have colours */
void figure_point(struct figure *g, double x, double y);
void figure_point4(struct figure *g, double x, double y, double dx, double dy);
/* Ends the curve's numbers and adds it to the plot: "using 1:2 with lines ..." and its
 * name in the key (NULL: none). A block without points is left out. */
void figure_curve(struct figure *g, const char *how, const char *colour,
                  const char *label);
/* Emits "plot" and the curves so far. */
void figure_plot(struct figure *g);
/* A logarithmic axis with ticks that people read: 1, 2, 5, 10, ... */
void figure_log_axis(struct figure *g, char axis, double lo, double hi);

struct span {
    double lo, hi;
};
void figure_span(struct span *s, double v); /* of values above 0 */

/* ---- drawing ---------------------------------------------------------- */

const struct figure_kind *figure_kinds(size_t *n);
/* Appends the picture (pdf, png or svg) and frees the figure's buffers. */
int figure_draw(struct figure *g, const struct figure_kind *k, const char *format,
                struct vt_buf *out, struct vt_err *err) VT_MUST_CHECK;

#endif
