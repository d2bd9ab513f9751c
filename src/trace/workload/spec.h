/* spec.h - workload.yaml, read and checked. Shared by spec.c and generate.c. */
#ifndef VT_TRACE_SPEC_H
#define VT_TRACE_SPEC_H

#include "trace/workload/workload.h"

#define SPEC_MAX_SECONDS 1e9 /* of all arrivals: 31 years */

struct spec_stage { /* ends after either; the other is 0 */
    double rate;
    double duration_s;
    size_t requests;
};

struct spec {
    const char *name; /* NULL: not stated */
    uint64_t seed;

    const struct trace_process *process;
    double burstiness;
    uint32_t burst_size;
    double interval_s; /* burst: 0 if the stages' rates say it */
    uint32_t concurrency;
    uint32_t held_to;         /* as vt_workload's */
    struct spec_stage *stage; /* at least one; in the arena */
    size_t n_stages;

    struct trace_dist prompt, output, priority; /* prompt, output: without a kind they
                                                 * are the pair's */
    const struct spec_pair {
        uint32_t prompt, output;
    } *pair; /* in the arena */
    uint32_t n_pairs;

    bool has_prefix;
    uint32_t n_groups;
    double share; /* of requests that begin with a group's prefix */
    struct trace_dist prefix_tokens;

    bool has_sessions;
    struct trace_dist turns, think_s, starter;
    bool has_starter;
    uint32_t n_starters; /* shared by all sessions; 0: each has its own */
};

/* Memory in the arena, which must outlive *s. */
int spec_read(struct spec *s, struct vt_arena *a, const struct vt_node *root,
              const struct trace_files *files, struct vt_err *err) VT_MUST_CHECK;
/* What *over states in place of the file's. */
int spec_put_over(struct spec *s, const struct vt_traffic *over,
                  struct vt_err *err) VT_MUST_CHECK;

#endif
