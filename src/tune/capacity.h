/* capacity.h - trials of several seeds at several rates. Private to tune. */
#ifndef VT_TUNE_CAPACITY_H
#define VT_TUNE_CAPACITY_H

#include "tune/tune.h"

#define CAPACITY_BORNE 0.95 /* share of the asked rate that must be borne */

struct probe { /* one trial; plain bytes */
    struct vt_summary s;
    double achieved;
    bool made; /* false: it was stopped before */
};

struct probes {
    const struct vt_capacity_spec *spec; /* borrowed; complete */
    double *rate;                        /* heap; in the order of trying */
    struct probe *probe;                 /* heap; spec->seeds for each rate */
    size_t n, cap_rates, cap_probes;
};

/* Whether most of the trials at the i-th rate kept the limits. */
bool most_pass(const struct probes *p, size_t i);

/* Points, answer and confidence from all that was tried. */
int capacity_judge(struct vt_capacity *out, const struct probes *p,
                   struct vt_err *err) VT_MUST_CHECK;

#endif
