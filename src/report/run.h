/* run.h - what pages know of a run; private to report. */
#ifndef VT_REPORT_RUN_H
#define VT_REPORT_RUN_H

#include "report/report.h"

enum {
    RUN_BUCKETS = 720, /* a chart is no wider; from half of it on they are in use */
    RUN_LANE_BUCKETS = 240,
    RUN_LANES = 48, /* engines of a fleet that are shown by themselves */
};

/* A value that holds for a time: its integral, and its extremes. */
struct run_gauge {
    double sum_ns; /* value times nanoseconds */
    double least, most;
    bool seen;
};

struct run_bucket {
    struct run_gauge running, waiting, kv;
    double in_flight_ns; /* requests times nanoseconds */
    double batch_tokens, steps, preempted, output_tokens, ended;
};

/* Buckets of one width side by side. When there are too many, two become one. */
struct run_line {
    struct run_bucket *bucket; /* heap; cap of them */
    size_t n, cap;             /* n: in use */
    vt_ns width, end;          /* end: of the last thing in it */
};

struct run_last { /* the last step of an engine, which holds until its next */
    bool there;
    vt_ns from, to;
    double running, waiting, kv;
};

struct vt_run {
    struct vt_timings *timings;
    vt_ns origin; /* of what came first */
    bool begun, stepped;
    uint32_t instances; /* at least 1 */
    struct run_line all;
    struct run_line *lane; /* NULL: one engine */
    struct run_last *last; /* of each engine */
};

/* Ends what still holds: before anything is shown. */
void run_settle(struct vt_run *r);

#endif
