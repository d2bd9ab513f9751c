/* workload.h - requests made from a spec (workload.yaml). */
#ifndef VT_TRACE_WORKLOAD_H
#define VT_TRACE_WORKLOAD_H

#include "trace/internal.h"

/* ---- distributions ---------------------------------------------------- */

/* What a drawn number is for: its limits and whether it counts something. */
struct trace_range {
    double lo, hi;
    bool whole;
};

struct trace_dist {
    const struct trace_dist_kind *kind;
    double a, b;   /* what they are is the kind's affair */
    double lo, hi; /* draws outside become these */
    bool whole;    /* draws are rounded to whole numbers */
    size_t n;      /* of these, in the arena: */
    double *value;
    uint64_t *upto; /* empirical: sums of their weights */
    double *share;  /* quantiles: how many are not above */
};

/* Where a distribution's `file` is looked for. */
struct trace_files {
    const char *dir; /* of relative paths; NULL: they are refused */
    bool none;       /* every path is refused */
};

/* Reads map[key]: a number (constant) or a map with `dist`. Memory in the arena. */
int trace_dist_read(struct trace_dist *d, struct vt_arena *a, const struct vt_node *map,
                    const char *key, struct trace_range range,
                    const struct trace_files *files, struct vt_err *err) VT_MUST_CHECK;
double trace_dist_draw(const struct trace_dist *d, struct vt_rng *rng);
struct trace_dist trace_dist_constant(double value);
double trace_dist_mean(const struct trace_dist *d); /* of many draws */

/* Reads a number above 0, at most hi. */
int trace_get_positive(const struct vt_node *map, const char *key, enum vt_need need,
                       double hi, double *out, struct vt_err *err) VT_MUST_CHECK;

/* ---- arrival processes ------------------------------------------------ */

struct trace_pace { /* one stage of arrivals; times in seconds from its start */
    double rate;    /* arrivals per second */
    double burstiness;
    uint32_t burst_size;
    double interval_s; /* burst */
    uint64_t n;        /* arrivals made */
    double now_s;      /* of the last one */
    struct vt_rng *rng;
};

struct trace_process {
    const char *name;
    const char *const *keys;                   /* allowed under `arrival` */
    bool closed;                               /* has no times of its own */
    double (*next)(struct trace_pace *p);      /* time of the next arrival */
    double (*end)(const struct trace_pace *p); /* when a stage of n arrivals is over */
};

int trace_process_find(const struct trace_process **out, const char *name,
                       struct vt_err *err) VT_MUST_CHECK;

/* ---- workload.yaml ---------------------------------------------------- */

struct trace_generate_options {
    int64_t seed; /* overrides the file's when >= 0 */
    struct vt_traffic over;
    size_t max_requests; /* 0: TRACE_MAX_REQUESTS */
    size_t go_on;        /* as vt_input's */
    struct trace_files files;
};

/* The requests that a spec asks for; *out is owned by the caller whatever happens, NULL
 * being fine. */
int trace_generator_open(struct trace_feed **out, struct vt_workload *w,
                         const struct vt_input *in, struct vt_err *err) VT_MUST_CHECK;

/* vt_workload_generate_text() with options. */
int trace_generate_text(struct vt_workload *w, const char *name, const char *text,
                        size_t len, const struct trace_generate_options *o,
                        struct vt_err *err) VT_MUST_CHECK;

#endif
