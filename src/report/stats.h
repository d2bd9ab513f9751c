/* stats.h - means and quantiles of samples; private to report. */
#ifndef VT_REPORT_STATS_H
#define VT_REPORT_STATS_H

#include "report/report.h"

/* Samples with counts: value v[i] occurred count[i] times. In two arrays because a
 * long run has millions of cells and padding would cost a quarter of the memory. */
struct vt_cells {
    vt_ns *v;
    uint32_t *count; /* NULL: all are 1 */
    size_t n, cap, cap_count;
};

/* Exact to the nanosecond, with ties rounded up: integers all the way, so neither
 * order nor machine can change a digit. No samples give zeros. */
int vt_cells_stat(const struct vt_cells *c, struct vt_stat *out,
                  struct vt_err *err) VT_MUST_CHECK;
void vt_cells_free(struct vt_cells *c);

/* ---- samples of views ------------------------------------------------- */

enum { SPREAD = 3 }; /* p50, p90, p99 */

/* Sorts the samples. */
void spread_of(double *ms, size_t n, double out[SPREAD]);
void spread_json(struct vt_jw *j, const char *key, const double spread[SPREAD]);

/* Writes one request's samples in milliseconds; returns how many: one or none, or with
 * VT_ITL one for each gap. */
size_t view_samples_of(const struct vt_view *v, const struct vt_seen *q,
                       enum vt_metric m, double *out);

#endif
