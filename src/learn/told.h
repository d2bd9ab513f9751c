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
};
void told_counters(struct told_counters *t, const char *metrics, size_t len);

/* Limits of the KV cache: vllm:cache_config_info. VT_ECHECK: it is not there, or there
 * are several engines. */
int told_cache(struct vt_meta *m, const char *metrics, size_t len,
               struct vt_err *err) VT_MUST_CHECK;
/* What the JSON of /server_info says of the scheduler, wherever it stands; nothing is
 * an error. */
void told_config(struct vt_meta *m, const struct vt_node *root);

#endif
