/* told.h - what a vLLM server says of itself: on /metrics, and where it has one, on
 * /server_info. Private to learn. */
#ifndef VT_LEARN_TOLD_H
#define VT_LEARN_TOLD_H

#include "learn/learn.h"

struct told_counters { /* at one moment, over all engines */
    bool found;        /* it has any */
    uint32_t engines;  /* with a KV cache */
    uint32_t running, waiting;
    uint64_t ended; /* requests, in whatever way */
    uint64_t preemptions;
    uint64_t drafts;
    uint64_t prefix_queries; /* tokens that were looked for in the prefix cache */
    double kv_usage;         /* of the KV cache, 0 to 1 */
};
void told_counters(struct told_counters *t, const char *metrics, size_t len);

/* Limits of the KV cache: vllm:cache_config_info. *there false: vLLM's Rust frontend
 * has none. VT_ECHECK: this is not vLLM, or there are several engines. */
int told_cache(struct vt_meta *m, bool *there, const char *metrics, size_t len,
               struct vt_err *err) VT_MUST_CHECK;

struct told_usage { /* at one moment of a stream that is alone */
    double usage;   /* of the KV cache */
    uint64_t tokens;
};
/* The KV cache's size out of how it fills, token by token: its usage is a number of
 * blocks of all but one. Looks in the order of time; false: they cannot tell. */
bool told_pool(struct vt_meta *m, const struct told_usage *look, size_t n);
/* Sizes that were met: enough of them to tell. */
#define TOLD_USAGES 4
/* What the JSON of /server_info says of the scheduler, wherever it stands; nothing is
 * an error. */
void told_config(struct vt_meta *m, const struct vt_node *root);

#endif
