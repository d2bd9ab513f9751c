/* lifecycle.h - parts of inference-perf's reports; private to load. */
#ifndef VT_LOAD_LIFECYCLE_H
#define VT_LOAD_LIFECYCLE_H

#include "load/load.h"

/* What one window, a stage or all of them, amounts to. */
struct lifecycle_window {
    const struct vt_load_stage *stage; /* n of them */
    size_t n;
    bool is_stage; /* tells of rates, too */
    double zero; /* of all times, by the clock of the day: exact to the ns from there */
};
/* Single requests, into a file. */
int lifecycle_requests(const struct lifecycle_window *of, const char *path,
                       struct vt_err *err) VT_MUST_CHECK;
/* "HTTP Error 503", "TimeoutError", ...: as inference-perf names it. */
void lifecycle_error_type(const struct vt_load_record *q, char *out, size_t size);
/* Since the window's zero; stages follow each other on the clock of the day. */
double lifecycle_seconds(const struct lifecycle_window *w,
                         const struct vt_load_stage *s, vt_ns at);

#endif
