/* result.h - pieces of a result's JSON and table; private to load. */
#ifndef VT_LOAD_RESULT_H
#define VT_LOAD_RESULT_H

#include "load/load.h"

/* "mean_ttft_ms", "median_ttft_ms", "std_ttft_ms" and the percentiles asked for. */
void load_dist_json(struct vt_jw *w, const char *metric, const struct vt_load_dist *d,
                    const struct vt_load_asks *asks);

void load_title(struct vt_buf *b, const char *title, char fill);
void load_row(struct vt_buf *b, const char *label, double v);
void load_row_n(struct vt_buf *b, const char *label, uint64_t n);

/* "steady_state", if there is one; and "vtwin". */
void load_steady_json(struct vt_jw *w, const struct vt_load_steady *s, size_t total,
                      const struct vt_load_asks *a);
void load_own_json(struct vt_jw *w, const struct vt_load_summary *s,
                   const struct vt_load_records *r);

#endif
