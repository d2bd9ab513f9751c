/* rules.h - by whose rules an engine goes: what each step computes, and how decisions
 * become times. */
#ifndef VT_CORE_RULES_H
#define VT_CORE_RULES_H

#include "core/kv/kv.h"

/* `s` is what open() made. A slot names a request until its row says that it ended. */
struct sched_ops {
    int (*open)(void **s, const struct vt_engine_config *c, struct vt_err *err);
    void (*close)(void *s); /* NULL is fine */

    /* A slot that is known but not yet in the queue, and its entry into it. */
    int (*prepare)(void *s, const struct vt_request *r, uint32_t *slot,
                   struct vt_err *err);
    void (*enqueue)(void *s, uint32_t slot);
    bool (*has_requests)(const void *s);
    /* Both NULL when out of memory. */
    const struct vt_step_plan *(*schedule)(void *s, bool throttle);
    const struct vt_update *(*update)(void *s, const struct vt_step_plan *p,
                                      const uint32_t *sampled);
    /* Takes a request that prepare() knows out of it: one that waits, runs, or is not
     * in the queue yet. find(): false, there is none of that tag. */
    bool (*find)(const void *s, uint64_t tag, uint32_t *slot);
    void (*abort)(void *s, uint32_t slot);
    struct pool *(*pool)(void *s);
    void (*count)(const void *s, uint32_t *waiting, uint32_t *running);

    bool whole_us;   /* durations are cut to microseconds, not rounded to ns */
    double least_us; /* a step computes no shorter, so that time moves */
    bool overlaps;   /* a step may be scheduled before the last one's result */
    bool foresees;   /* a step's results count from its start: where it ends the last
                      * request, the next one to come does not wait for its end */
    bool rests;      /* with nothing to compute there is no step, until a change */
    bool sums_steps; /* a token's time is that of its request's steps added up, not of
                      * what passed between them */
};

extern const struct sched_ops sched_vllm, sched_blis; /* of enum vt_compat */

struct pool *engine_pool(const struct vt_engine *e);

#endif
