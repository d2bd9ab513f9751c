/* capacity.h - trials of several seeds at several rates. Private to tune. */
#ifndef VT_TUNE_CAPACITY_H
#define VT_TUNE_CAPACITY_H

#include "tune/tune.h"

struct probe { /* one trial; plain bytes */
    struct vt_summary s;
    double achieved;
    bool made; /* false: it was stopped before */
};

struct probed { /* a rate */
    double rate;
    uint32_t requests; /* of each run */
    uint32_t runs;     /* with one seed each */
    bool counts;       /* for the answer; else it only showed where to look */
};

struct probes {
    const struct vt_capacity_spec *spec; /* borrowed; complete */
    double borne;        /* share of the asked rate that must be borne */
    struct probed *at;   /* heap; in the order of trying; each rate once */
    struct probe *probe; /* heap; spec->seeds for each rate */
    size_t n, cap_rates, cap_probes;
    size_t trials;
    uint32_t most_requests; /* of a run */
    size_t round;           /* of stages, as vt_workload's */
};

/* Trials at the i-th rate that kept the limits; whether most of them did. */
uint32_t count_passes(const struct probes *p, size_t i);
bool most_pass(const struct probes *p, size_t i);

/* Points, answer and confidence from all that was tried. */
int capacity_judge(struct vt_capacity *out, const struct probes *p,
                   struct vt_err *err) VT_MUST_CHECK;

#endif
