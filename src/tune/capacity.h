/* capacity.h - runs of several seeds at several rates. Private to tune. */
#ifndef VT_TUNE_CAPACITY_H
#define VT_TUNE_CAPACITY_H

#include "tune/tune.h"

#define CAPACITY_BORNE 0.95 /* share of the asked rate that must be borne */

struct probe { /* one run; plain bytes */
    struct vt_summary s;
    double achieved;
};

struct probes {
    const struct vt_capacity_spec *spec; /* borrowed; complete */
    double *rate;                        /* heap; in the order of trying */
    struct probe *run;                   /* heap; spec->seeds for each rate */
    size_t n, cap_rates, cap_runs;
};

/* Runs all seeds at n more rates, in one batch. */
int probes_add(struct probes *p, const double *rate, size_t n,
               struct vt_err *err) VT_MUST_CHECK;
void probes_free(struct probes *p);

/* How near a run comes to its limits: above 1 it breaks one. *which (may be NULL): the
 * nearest, "rate" where the load was not borne. */
double run_margin(const struct vt_capacity_spec *spec, const struct probe *run,
                  double rate, const char **which);
bool most_pass(const struct probes *p, size_t i);

/* Points, answer and confidence from all that was tried. */
int capacity_judge(struct vt_capacity *out, const struct probes *p,
                   struct vt_err *err) VT_MUST_CHECK;

#endif
