/* compare.h - which metrics results have, and which way is better; private to load. */
#ifndef VT_LOAD_COMPARE_H
#define VT_LOAD_COMPARE_H

#include "load/load.h"

enum better { BETTER_NEITHER, BETTER_LOWER, BETTER_HIGHER };

struct metric {
    const char *name; /* "steady_state.mean_ttft_ms"; in the metrics' arena */
    enum better better;
    bool judged;
};
struct metrics { /* every number that one of the results has, in their order */
    struct vt_arena arena;
    struct metric *metric; /* heap */
    size_t n, cap;
};
int metrics_list(struct metrics *m, const struct vt_results *r,
                 const struct vt_result_judgement *j, struct vt_err *err) VT_MUST_CHECK;
void metrics_free(struct metrics *m);

/* One metric of one result against the first one's. */
struct difference {
    bool has_first, has_other;
    double first, other;
    double by;      /* other - first */
    double percent; /* of first; infinite where that is 0 */
    double worse;   /* percent, 0 where it is not */
};
struct difference metric_difference(const struct metric *m, const struct vt_result *a,
                                    const struct vt_result *b);
/* "better", "worse" or "": what is within the tolerance is neither. */
const char *metric_verdict(const struct metric *m, const struct difference *d,
                           const struct vt_result_judgement *j);
/* Judged metrics that are worse by more than the tolerance. */
size_t metrics_worse(const struct metrics *m, const struct vt_results *r,
                     const struct vt_result_judgement *j);

#endif
