/* stats.h - means and quantiles of samples; private to report. */
#ifndef VT_REPORT_STATS_H
#define VT_REPORT_STATS_H

#include "report/report.h"

/* Counted samples: how often each value occurred. Memory goes by distinct values, two
 * or three bytes for each of them in a long run: what came last waits as it came, the
 * rest lies in sorted runs of differences. Zero-initialise to start. */
struct vt_cells {
    struct vt_cell {
        vt_ns v;
        int64_t count;
    } *fresh; /* in no order, a value perhaps more than once */
    size_t n_fresh, cap_fresh;
    struct vt_cell_run {
        uint8_t *bytes;
        size_t len;
    } run[64]; /* each more than twice as long as the next, so these are enough */
    size_t n_runs;
};

/* count may be below 0, to take back what was added before. */
int vt_cells_add(struct vt_cells *c, vt_ns v, int64_t count,
                 struct vt_err *err) VT_MUST_CHECK;
/* Moves all samples of the other here. */
int vt_cells_join(struct vt_cells *c, struct vt_cells *from,
                  struct vt_err *err) VT_MUST_CHECK;
/* Exact to the nanosecond, with ties rounded up: integers all the way, so neither
 * order nor machine can change a digit. No samples give zeros. */
int vt_cells_stat(struct vt_cells *c, struct vt_stat *out,
                  struct vt_err *err) VT_MUST_CHECK;
/* Values in milliseconds at percentiles, which ascend; *samples 0: there are none, and
 * out is as it was. */
int vt_cells_quantiles(struct vt_cells *c, const double *percentile, size_t n,
                       double *out, uint64_t *samples,
                       struct vt_err *err) VT_MUST_CHECK;
void vt_cells_free(struct vt_cells *c);

/* ---- samples of views ------------------------------------------------- */

enum { SPREAD = 3 }; /* p50, p90, p99 */
extern const char *const spread_part[SPREAD];
extern const struct metric_text {
    const char *name, *key, *help; /* for people, in JSON, what it is */
} metric_text[VT_N_METRICS];

/* Sorts the samples. */
void spread_of(double *ms, size_t n, double out[SPREAD]);
void spread_json(struct vt_jw *j, const char *key, const double spread[SPREAD]);

/* Writes one request's samples in milliseconds; returns how many: one or none, or with
 * VT_ITL one for each gap. */
size_t view_samples_of(const struct vt_view *v, const struct vt_seen *q,
                       enum vt_metric m, double *out);

#endif
