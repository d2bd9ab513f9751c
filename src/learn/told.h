/* told.h - what a vLLM server says of itself: on /metrics, and where it has one, on
 * /server_info. Private to learn. */
#ifndef VT_LEARN_TOLD_H
#define VT_LEARN_TOLD_H

#include "learn/learn.h"

struct told_counters { /* at one moment, over all engines */
    bool found;        /* it has any */
    uint32_t running, waiting;
    uint64_t ended; /* requests, in whatever way */
    uint64_t preemptions;
    bool drafts;
    /* Steps with at most so many tokens; the last bound is infinite. */
    enum { TOLD_BOUNDS = 24 } bounds;
    struct told_bound {
        double below;
        uint64_t n;
    } bound[TOLD_BOUNDS];
    size_t n_bounds;
};
void told_counters(struct told_counters *t, const char *metrics, size_t len);
/* The bound of the largest step between two looks; 0: not known, or beyond all bounds.
 */
uint32_t told_step_tokens(const struct told_counters *before,
                          const struct told_counters *after);

/* Limits of the KV cache: vllm:cache_config_info. VT_ECHECK: it is not there, or there
 * are several engines. */
int told_cache(struct vt_meta *m, const char *metrics, size_t len,
               struct vt_err *err) VT_MUST_CHECK;
/* What the JSON of /server_info says of the scheduler, wherever it stands; nothing is
 * an error. */
void told_config(struct vt_meta *m, const struct vt_node *root);

#endif
