/* kvevents.h - the names of KV-cache blocks, and who is told which of them a cache
 * holds, as vLLM does it; with the ZeroMQ sockets that this is told over. */
#ifndef VT_KVEVENTS_H
#define VT_KVEVENTS_H

#include "base/base.h"
#include "core/core.h"
#include "kvevents/publisher.h"
#include "kvevents/sock.h"

/* ---- the hashes of a request's blocks ----------------------------------- */

/* The hashes of one request's blocks, each of which holds those before it. */
struct vt_chain {             /* zero-initialise to start */
    const uint8_t *none_hash; /* borrowed, as the texts; NULL: hashes are not wanted */
    const char *lora, *salt;  /* NULL: none */
    bool tagged;              /* extra keys as 0.32 hashes them */
    uint8_t (*hash)[VT_HASH_BYTES]; /* heap */
    size_t n, cap;
};
/* The next block. `mark` stands for what else tells it apart; 0: nothing. */
int vt_chain_add(struct vt_chain *c, const uint32_t *token, uint32_t n_tokens,
                 uint64_t mark, struct vt_err *err) VT_MUST_CHECK;
void vt_chain_free(struct vt_chain *c); /* frees contents, not c */

/* How many of these events, the first of which is e[0], vLLM tells as one. */
uint32_t vt_kv_event_run(const struct vt_kv_event *e, uint32_t n);

/* ---- KV-cache events ---------------------------------------------------- */

/* Tells subscribers which blocks a cache holds, as vLLM's ZMQ publisher does. One
 * thread's; nothing here waits for a subscriber. */
struct vt_kv_publisher; /* opaque */

struct vt_kv_config {            /* borrowed while opening only */
    const char *endpoint;        /* NULL: port 5557 on every interface */
    const char *replay_endpoint; /* NULL: old events can't be asked for */
    const char *topic;           /* NULL: "" */
    uint32_t dp_rank;            /* added to tcp ports */
    bool session_ids;            /* 0.32 tells them */
};
int vt_kv_publisher_open(struct vt_kv_publisher **out, const struct vt_kv_config *c,
                         struct vt_err *err) VT_MUST_CHECK;
void vt_kv_publisher_close(struct vt_kv_publisher *p); /* NULL is fine */
const char *vt_kv_publisher_endpoint(const struct vt_kv_publisher *p); /* its own */

struct vt_kv_stored {    /* blocks of one request that follow each other; borrowed */
    const uint8_t *hash; /* n_hashes of VT_HASH_BYTES each */
    uint32_t n_hashes;
    const uint8_t *parent; /* hash of the block before the first; NULL: it is first */
    const uint32_t *token; /* n_hashes * block_size */
    uint32_t block_size;
    const char *lora, *salt, *session; /* NULL: none */
    int64_t lora_id;
};
void vt_kv_stored(struct vt_kv_publisher *p, const struct vt_kv_stored *s);
void vt_kv_removed(struct vt_kv_publisher *p, const uint8_t *hash, uint32_t n_hashes);
void vt_kv_cleared(struct vt_kv_publisher *p);
/* Sends what was told since the last time as one batch. */
int vt_kv_flush(struct vt_kv_publisher *p, double unix_s,
                struct vt_err *err) VT_MUST_CHECK;
/* Answers who asks for old batches, some of them; true: there is more to send. */
bool vt_kv_replay(struct vt_kv_publisher *p);

#endif
