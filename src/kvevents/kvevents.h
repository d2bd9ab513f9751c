/* kvevents.h - the names of KV-cache blocks, and who is told which of them a cache
 * holds, as vLLM does it; with the ZeroMQ sockets that this is told over. */
#ifndef VT_KVEVENTS_H
#define VT_KVEVENTS_H

#include "base/base.h"
#include "core/core.h"
#include "kvevents/sock.h"

/* ---- the blocks of one request (blocks.c) ------------------------------- */

enum { VT_BLOCK_TOKENS = 1024 }; /* the most that a block may hold */

/* vLLM's hashes of a request's blocks, each of which holds those before it. */
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

struct vt_blocks { /* what a driver knows of a request's tokens; all borrowed but chain
                    */
    uint32_t size; /* tokens in a block */
    const uint32_t *prompt; /* NULL: embeddings, which are not looked at */
    uint32_t n_prompt;
    uint32_t (*output)(const void *request, uint32_t index); /* a token id */
    /* Mixes what else tells the block apart into the key; NULL: nothing does. */
    uint64_t (*mark)(const void *request, uint32_t block, uint64_t key);
    const void *request;
    uint64_t first_key;    /* what keys start from: equal for requests that may share */
    struct vt_chain chain; /* keys are of these hashes, if they are wanted */
    const char *session;   /* NULL: none */
    int64_t lora_id;
};
uint32_t vt_blocks_token(const struct vt_blocks *b, uint32_t position);
/* Face of struct vt_request.block_key, with the struct vt_blocks as its tokens. */
uint64_t vt_blocks_key(void *blocks, uint32_t block, uint64_t parent);

/* ---- batches of events (encode.c) --------------------------------------- */

struct vt_kv_stored {    /* blocks of one request that follow each other; borrowed */
    const uint8_t *hash; /* n_hashes of VT_HASH_BYTES each */
    uint32_t n_hashes;
    const uint8_t *parent; /* hash of the block before the first; NULL: none */
    const uint32_t *token; /* n_hashes * block_size */
    uint32_t block_size;
    const char *lora, *salt, *session; /* NULL: none */
    int64_t lora_id;                   /* with a name only */
    bool first; /* hash[0] is the request's first block: it bears the salt */
};

struct vt_kv_batch {      /* MessagePack; zero-initialise to start */
    struct vt_buf events; /* one after the other; the caller frees it */
    uint32_t n_events;
    bool raw_hashes;  /* hashes as they are instead of vt_hash_short() of them */
    bool session_ids; /* the line knows session_id: 0.32 */
};
/* Each adds one event. They never fail: one that finds no memory shows in the buffer.
 */
void vt_kv_batch_stored(struct vt_kv_batch *b, const struct vt_kv_stored *s);
void vt_kv_batch_removed(struct vt_kv_batch *b, const uint8_t *hash, uint32_t n_hashes);
void vt_kv_batch_cleared(struct vt_kv_batch *b);
/* Adds what the scheduler has to tell, and clears that. find: NULL for requests that
 * are gone, whose blocks are not told of. */
typedef const struct vt_blocks *vt_kv_find(void *user, uint64_t tag);
void vt_kv_batch_collect(struct vt_kv_batch *b, struct vt_sched *s, vt_kv_find *find,
                         void *user);

/* ---- the publisher (publisher.c) ---------------------------------------- */

/* Tells subscribers which blocks a cache holds, as vLLM's ZMQ publisher does: a PUB
 * socket sends [topic, sequence (8 bytes, big-endian), batch]; the last batches are
 * kept, and a ROUTER socket sends them again to who asks. One thread's; nothing here
 * waits for a subscriber. */
struct vt_kv_publisher; /* opaque */

struct vt_kv_wanted { /* what a server is asked to publish */
    bool on;
    const char *endpoint;        /* NULL: port 5557 on every interface */
    const char *replay_endpoint; /* NULL: old batches can't be asked for */
    const char *topic;           /* NULL: "" */
    const char *hash_seed;       /* PYTHONHASHSEED of block hashes; NULL: vLLM's */
};

struct vt_kv_config { /* borrowed while opening only */
    struct vt_kv_wanted wanted;
    uint32_t dp_rank;             /* added to tcp ports; other names get _dpN */
    uint32_t buffer_steps;        /* batches kept; 0: 10,000 */
    bool raw_hashes, session_ids; /* of its batch */
};

/* ctx is the caller's ZeroMQ context and outlives the publisher; NULL: one of its own.
 * Binds endpoints with a wildcard, ipc and inproc; connects to others. VT_EINPUT: an
 * endpoint that makes no sense or is taken. */
int vt_kv_publisher_open(struct vt_kv_publisher **out, void *ctx,
                         const struct vt_kv_config *c,
                         struct vt_err *err) VT_MUST_CHECK;
void vt_kv_publisher_close(struct vt_kv_publisher *p); /* NULL is fine; sends nothing */

/* Where it really publishes, rank and port included: for the registration. Owned by
 * the publisher; the second is NULL where there is no replay. */
const char *vt_kv_publisher_endpoint(const struct vt_kv_publisher *p);
const char *vt_kv_publisher_replay_endpoint(const struct vt_kv_publisher *p);

/* What is to be told with the next flush. */
struct vt_kv_batch *vt_kv_publisher_batch(struct vt_kv_publisher *p);
/* Sends it as one batch, or nothing if nothing is in it. Never waits. */
int vt_kv_publisher_flush(struct vt_kv_publisher *p, double unix_s,
                          struct vt_err *err) VT_MUST_CHECK;

/* Answers who asks for old batches, a bounded number of them in each call and without
 * waiting. True: there is more to send, call again. */
bool vt_kv_publisher_replay(struct vt_kv_publisher *p);
void *vt_kv_publisher_replay_socket(
    const struct vt_kv_publisher *p); /* for zmq_poll(); NULL: none */

struct vt_kv_stats {
    uint64_t batches, events; /* sent */
};
struct vt_kv_stats vt_kv_publisher_stats(const struct vt_kv_publisher *p);

#endif
