/* publisher.h - tells subscribers which blocks the KV cache holds, as vLLM's ZMQ
 * publisher does.
 *
 * A PUB socket sends [topic, sequence (8 bytes, big-endian), batch]; the last batches
 * are kept, and a ROUTER socket sends them again to who asks. One thread owns a
 * publisher. */
#ifndef VT_KVEVENTS_PUBLISHER_H
#define VT_KVEVENTS_PUBLISHER_H

#include "core/core.h"

struct kv_events_config {        /* all borrowed while opening only */
    const char *endpoint;        /* NULL: port 5557 on every interface */
    const char *replay_endpoint; /* NULL: no replay */
    const char *topic;           /* NULL: "" */
    uint32_t dp_rank;            /* added to tcp ports; other names get _dpN */
    uint32_t buffer_steps;       /* batches kept; 0: 10,000 */
    uint32_t hwm;                /* batches queued per subscriber; 0: 100,000 */
    bool raw_hashes;  /* hashes as they are instead of vt_hash_short() of them */
    bool session_ids; /* the line knows session_id: 0.32 */
};

struct kv_events; /* opaque */

/* ctx is the caller's ZeroMQ context and outlives the publisher. Binds endpoints with a
 * wildcard, ipc and inproc; connects to others. VT_EINPUT: an endpoint that makes no
 * sense or is taken. */
int kv_events_open(struct kv_events **out, void *ctx, const struct kv_events_config *c,
                   struct vt_err *err) VT_MUST_CHECK;
void kv_events_close(struct kv_events *e); /* NULL is fine; sends nothing */

/* Where it really publishes, rank and port included: for the registration. Owned by
 * the publisher; the second is NULL where there is no replay. */
const char *kv_events_endpoint(const struct kv_events *e);
const char *kv_events_replay_endpoint(const struct kv_events *e);

struct kv_stored { /* blocks of one request that follow each other; all borrowed */
    const uint8_t *hash; /* n_hashes of VT_HASH_BYTES each */
    uint32_t n_hashes;
    const uint8_t *parent; /* hash of the block before the first; NULL: none */
    const uint32_t *token; /* n_hashes * block_size of them */
    uint32_t block_size;
    struct mp_span lora_name;  /* characters; absent: no LoRA */
    int64_t lora_id;           /* with a name only */
    struct mp_span cache_salt; /* characters; absent: none */
    bool first; /* hash[0] is the request's first block: it bears the salt */
    struct mp_span session_id; /* characters; absent: none */
};

/* Each adds one event to the batch being made. They never fail: an event that finds no
 * memory shows at the next flush. */
void kv_events_stored(struct kv_events *e, const struct kv_stored *s);
void kv_events_removed(struct kv_events *e, const uint8_t *hash, uint32_t n_hashes);
void kv_events_cleared(struct kv_events *e);

/* Sends what was added as one batch, or nothing if nothing was. Never waits. */
int kv_events_flush(struct kv_events *e, double now_unix,
                    struct vt_err *err) VT_MUST_CHECK;

/* Answers who asks for old batches, a bounded number of them in each call and without
 * waiting. True: there is more to send, call again. */
bool kv_events_serve_replay(struct kv_events *e);
void *
kv_events_replay_socket(const struct kv_events *e); /* for zmq_poll(); NULL: none */

struct kv_events_stats {
    uint64_t batches, events, bytes; /* sent; bytes of payload */
};
struct kv_events_stats kv_events_stats(const struct kv_events *e);

#endif
