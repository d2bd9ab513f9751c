/* tune_search.h - one setting's trials, and who is tried; private to tune. */
#ifndef VT_TUNE_SEARCH_H
#define VT_TUNE_SEARCH_H

#include "tune/tune.h"

struct search_outcome { /* one simulation */
    struct vt_summary s;
    uint64_t good; /* requests within the limits */
    const char *broken;
    bool hopeless; /* ended early: broken is known, s is not */
};
/* stop_early: a run that has broken a limit for certain ends there. */
int search_simulate(struct search_outcome *r, const struct vt_trial *t,
                    const struct vt_slo *slo, bool stop_early,
                    struct vt_err *err) VT_MUST_CHECK;

/* All trials of one setting; `how` counts for capacities that are searched for. */
int search_judge(struct vt_tuned *out, const struct vt_tune_spec *spec,
                 struct vt_trials *kept, const struct vt_setting *s,
                 enum vt_capacity_how how, struct vt_err *err) VT_MUST_CHECK;

/* Makes sure that the settings `want` (ascending indices) are tried. */
struct search {
    const struct vt_tune_spec *spec;
    struct vt_trials *kept;
    struct vt_tune_result *result;
    const size_t *want; /* of the batch in the making */
};
int search_try(struct search *s, const size_t *want, size_t n,
               struct vt_err *err) VT_MUST_CHECK;
int search_smart(struct search *s, struct vt_err *err) VT_MUST_CHECK;

/* What a search is drawn by. */
double result_throughput(const struct vt_tune_spec *spec, const struct vt_tuned *t);
double result_latency(const struct vt_tuned *t, const char *name); /* "E2E p99" */

#endif
