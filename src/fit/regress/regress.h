/* regress.h - what the files of the regression share; private to fit.
 *
 * Rows are kept as they were read and terms are worked out from them in each pass, so
 * that a data set has one form whatever is fitted to it. All sums are in order, so that
 * equal captures give equal bytes. */
#ifndef VT_FIT_REGRESS_H
#define VT_FIT_REGRESS_H

#include "fit/internal.h"

/* Features that differ from row to row; those of engines stand with the capture. */
enum { REGRESS_VARYING = VT_F_MODEL_SIZE };

struct regress_row {
    double y_us;
    double v[REGRESS_VARYING];
    uint32_t capture;
    uint8_t left_out; /* enum vt_regress_rule */
    uint64_t step;    /* of a step; of a request, of its journey: the index */
    double arrive_us, handoff_us; /* of a request's way into the queue; NAN: not seen */
};

struct regress_table { /* of one target, captures in order, by time within each */
    struct regress_row *row;
    size_t n, cap;
};

struct regress_capture {
    const char *name, *model, *gpu, *attention; /* model, gpu: "" where not known */
    uint32_t tp;
    double engine[VT_FEATURES];
    size_t first[VT_REGRESS_TARGETS], n[VT_REGRESS_TARGETS]; /* its rows */
};

struct vt_regress_data {
    struct vt_arena arena;
    struct regress_table table[VT_REGRESS_TARGETS];
    struct regress_capture *capture;
    size_t n, cap;
    uint32_t warmup;
};

/* All features of a row. */
void regress_values(double v[VT_FEATURES], const struct vt_regress_data *d,
                    const struct regress_row *r);

/* ---- solving ------------------------------------------------------------ */

/* Sums over rows of terms, each divided by the largest that occurs. */
struct moments {
    size_t p; /* terms */
    double n, y, yy;
    double x[VT_TERMS], xy[VT_TERMS], xx[VT_TERMS][VT_TERMS];
};
void moments_add(struct moments *m, const double *x, double y);
void moments_subtract(struct moments *m, const struct moments *other);

struct solution { /* in the units of the moments */
    double intercept, b[VT_TERMS];
    double standard[VT_TERMS]; /* standard deviations of y for one of x */
    uint8_t state[VT_TERMS];   /* enum vt_term_state */
};
/* lambda: of ridge, added to a matrix of correlations; of lasso, a share of the least
 * that leaves no term. */
void regress_solve(const struct moments *m, enum vt_learner learner, double lambda,
                   struct solution *out);
/* Mean of the squared errors over the rows of *m. */
double regress_misfit(const struct moments *m, const struct solution *s);

#endif
