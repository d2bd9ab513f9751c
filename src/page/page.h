/* page.h - pages of HTML that need nothing else: no network, no other file.
 *
 * A page is text in a buffer, appended from its top to its end; failures of the buffer
 * show when it is written. Charts are data, drawn in the browser by page.js. */
#ifndef VT_PAGE_H
#define VT_PAGE_H

#include "base/base.h"

/* A number as people read it in a sentence: about three digits, never an exponent. */
enum { VT_PAGE_NUMBER = 32 };
const char *vt_page_number(char out[VT_PAGE_NUMBER], double v);

/* ---- the frame -------------------------------------------------------- */

void vt_page_text(struct vt_buf *b, const char *text); /* escaped; NULL: nothing */

/* Up to and including the heading. kind: the command that made it ("vtwin simulate");
 * subtitle may be NULL. */
void vt_page_begin(struct vt_buf *b, const char *kind, const char *title,
                   const char *subtitle);
void vt_page_end(struct vt_buf *b); /* the script, too */
/* Ends the page and writes it, whole or not at all; frees the buffer whatever happens.
 * A page that was not made well (rc) is not written. */
int vt_page_write(struct vt_buf *b, int rc, const char *path,
                  struct vt_err *err) VT_MUST_CHECK;

/* What the frame is made of, for who serves it: NUL-terminated text. */
const char *vt_page_style(void);
const char *vt_page_script(void);

/* ---- the answer ------------------------------------------------------- */

struct vt_page_trust { /* all borrowed */
    const char *basis; /* measured, transferred, estimated...; NULL: nothing is said */
    const char *about; /* one sentence on it; may be NULL */
    double expected_error_pct;  /* 0: not known */
    const char *const *outside; /* sentences on what went beyond what was measured */
    size_t n_outside;
};
/* The answer in one sentence, and what it stands on; trust may be NULL. */
void vt_page_answer(struct vt_buf *b, const char *sentence,
                    const struct vt_page_trust *trust);
/* A few large numbers below it. */
struct vt_page_figure {
    const char *value, *unit, *label; /* unit may be NULL */
    bool bad;                         /* it breaks a limit */
};
void vt_page_figures(struct vt_buf *b, const struct vt_page_figure *f, size_t n);

/* ---- parts ------------------------------------------------------------ */

/* A heading; id may be NULL, note (what to conclude, what is real) too. */
void vt_page_section(struct vt_buf *b, const char *id, const char *title,
                     const char *note);
enum vt_page_voice { VT_PAGE_PLAIN, VT_PAGE_QUIET, VT_PAGE_BAD };
void vt_page_para(struct vt_buf *b, enum vt_page_voice voice, const char *fmt, ...)
    VT_PRINTF(3, 4);

/* Names and values, two columns. */
struct vt_page_fact {
    const char *name, *value;
};
void vt_page_facts(struct vt_buf *b, const struct vt_page_fact *f, size_t n);
/* The same one by one, of any number. */
void vt_page_facts_begin(struct vt_buf *b);
void vt_page_fact(struct vt_buf *b, const char *name, const char *fmt, ...)
    VT_PRINTF(3, 4);
void vt_page_facts_end(struct vt_buf *b);

/* Tables scroll sideways in a frame of their own where the screen is narrow. Heads that
 * begin with '<' stand left, as their cells do; the sign is not shown. */
struct vt_page_table {
    struct vt_buf *b;
    const char *const *head;
    size_t n, at;
};
void vt_page_table_begin(struct vt_page_table *t, struct vt_buf *b,
                         const char *const *head, size_t n);
/* tone: NULL, or "sum", "odd" (left out), "new" (a group begins), "best" */
void vt_page_row(struct vt_page_table *t, const char *tone);
void vt_page_cell(struct vt_page_table *t, const char *fmt, ...) VT_PRINTF(2, 3);
/* The same with something small behind it. */
void vt_page_cell_small(struct vt_page_table *t, const char *text, const char *small);
void vt_page_table_end(struct vt_page_table *t);

/* A picture made elsewhere: its <svg>, or `why` it is not there. id may be NULL. */
void vt_page_svg(struct vt_buf *b, const char *id, bool narrow,
                 const struct vt_buf *svg, const char *why);

/* Something that begins closed: a summary line, and what is appended until its end. */
void vt_page_fold_begin(struct vt_buf *b, const char *summary);
void vt_page_fold_end(struct vt_buf *b);

/* ---- charts ----------------------------------------------------------- */

enum vt_plot_kind {
    VT_PLOT_LINES,
    VT_PLOT_STEPS,
    VT_PLOT_POINTS,
    VT_PLOT_BARS,  /* from the axis with categories; x's are indices of them */
    VT_PLOT_LANES, /* each series in a strip of its own, on one scale */
    VT_PLOT_AREA,
};

struct vt_plot_axis {
    const char *label, *unit; /* "TTFT", "ms"; either may be NULL */
    bool log;
    bool has_min, has_max; /* otherwise they are the data's */
    double min, max;
    const char *const *category; /* NULL: numbers */
    size_t n_categories;
};

struct vt_plot_series {      /* all borrowed */
    const char *name;        /* NULL: not in the legend */
    const double *x;         /* NULL: those of the series before it */
    const double *y;         /* NAN: a gap */
    const double *lo, *hi;   /* NULL, or the range that y lies in */
    const char *const *text; /* NULL, or what is said of each */
    size_t n;
    enum vt_plot_kind kind; /* if styled */
    bool styled;            /* kind is its own, not the chart's */
    bool labels;            /* its texts stand beside its points */
    bool dash, hidden;
    uint32_t colour; /* 0: by its place; otherwise that place, counted from 1 */
};

struct vt_plot_mark { /* a line across */
    char axis;        /* 'x' or 'y' */
    double at;
    const char *label;
};

struct vt_plot {    /* all borrowed */
    const char *id; /* NULL: none */
    enum vt_plot_kind kind;
    const char *title;
    const char *note; /* one sentence: what to conclude; may be NULL */
    struct vt_plot_axis x, y;
    const struct vt_plot_series *series;
    size_t n;
    const struct vt_plot_mark *mark;
    size_t n_marks;
    const char *sync; /* charts of one name zoom together; NULL: alone */
};

/* The chart as an object: what page.js takes. Numbers have six digits. */
void vt_plot_json(struct vt_jw *w, const char *key, const struct vt_plot *p);
/* The chart in the page. Those between begin and end stand side by side where there is
 * room. */
void vt_page_plot(struct vt_buf *b, const struct vt_plot *p);
void vt_page_plots_begin(struct vt_buf *b);
void vt_page_plots_end(struct vt_buf *b);

/* ---- thinning --------------------------------------------------------- */

/* So many points of a cumulative distribution are enough for any screen. */
enum { VT_CDF_POINTS = 200 };
/* Percentiles at which to ask for them, denser towards both ends; returns how many. */
size_t vt_cdf_percentiles(double p[VT_CDF_POINTS]);

#endif
