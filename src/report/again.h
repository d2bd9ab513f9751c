/* again.h - samples drawn again, request by request; private to report. */
#ifndef VT_REPORT_AGAIN_H
#define VT_REPORT_AGAIN_H

#include "report/stats.h"

enum { AGAIN_DRAWS = 400 };

struct again_sample {
    double ms;
    uint32_t request;
};

struct again { /* owned; end it with again_close() */
    const struct vt_view *view;
    enum vt_metric metric;
    struct again_sample *sample; /* ascending */
    size_t n;
    uint32_t *times; /* how often each request counts */
    struct vt_rng rng;
};

/* Every request counts once. *a is to be closed whatever happens. */
int again_open(struct again *a, const struct vt_view *v, enum vt_metric m,
               struct vt_err *err) VT_MUST_CHECK;
void again_close(struct again *a);
/* As many requests as there are, some of them several times, others not at all. Gaps of
 * one request have much in common: that is why not gaps are drawn. */
void again_draw(struct again *a);
/* Quantiles at SPREAD rising shares of the samples [from, to) as they count now, and
 * returns how many these are; where there are none nothing is written. */
uint64_t again_quantiles(const struct again *a, size_t from, size_t to,
                         const double share[SPREAD], double out[SPREAD]);
/* Between which a second run's number lies in 95 of 100 cases, where this run's is
 * `seen` and `drawn` are those of draws, which it sorts. */
struct again_range {
    double lo, hi;
};
struct again_range again_range(double seen, double drawn[AGAIN_DRAWS]);

#endif
