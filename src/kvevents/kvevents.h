/* kvevents.h - the names of KV-cache blocks, and who is told which of them a cache
 * holds, as vLLM does it; with the ZeroMQ sockets that this is told over. */
#ifndef VT_KVEVENTS_H
#define VT_KVEVENTS_H

#include "base/base.h"
#include "core/core.h"
#include "kvevents/sock.h"
#include "live/live.h"

/* ---- the blocks of one request (blocks.c) ------------------------------- */

enum { VT_BLOCK_TOKENS = 8192 }; /* the most that a block may hold */

struct vt_blocks { /* what a driver knows of a request's tokens; all borrowed but chain
                    */
    uint32_t size; /* tokens in a block of the chain: vt_hash_block_size() */
    const uint32_t *prompt; /* NULL: embeddings, which are not looked at */
    uint32_t n_prompt;
    uint32_t (*output)(const void *request, uint32_t index); /* a token id */
    const void *request;
    uint64_t first_key;    /* what keys start from: equal for requests that may share */
    struct vt_chain chain; /* keys are of these hashes, if they are wanted */
    const char *session;   /* NULL: none */
    int64_t lora_id;
};
uint32_t vt_blocks_token(const struct vt_blocks *b, uint32_t position);
/* Face of struct vt_request.block_key, with the struct vt_blocks as its tokens. */
uint64_t vt_blocks_key(void *blocks, uint32_t block, uint64_t parent);
/* VT_EINPUT: blocks of these engines are too large for that. */
int vt_blocks_check(const struct vt_engine_config *c, struct vt_err *err) VT_MUST_CHECK;
/* What a release's chains begin with. Without a seed it is a secret before 0.29. */
void vt_none_hash(uint32_t vllm, const char *seed, uint8_t out[VT_HASH_BYTES]);

/* ---- batches of events (encode.c) --------------------------------------- */

struct vt_kv_stored {    /* blocks of one request that follow each other; borrowed */
    const uint8_t *hash; /* of those that are kept: n_hashes of VT_HASH_BYTES each */
    const uint32_t *at;  /* their places: the first block is 0 */
    uint32_t n_hashes;
    const uint8_t *parent; /* hash of the block before the first; NULL: none */
    const uint32_t *token; /* of all, kept or not */
    uint32_t first_token, n_tokens, block_size;
    const struct vt_blocks *of; /* its LoRA, salt, images and session */
    uint32_t group;
    const char *kind;
    uint32_t window; /* 0: none */
    enum vt_medium medium;
};

struct vt_kv_batch {      /* MessagePack; zero-initialise to start */
    struct vt_buf events; /* one after the other; the caller frees it */
    uint32_t n_events;
    uint32_t vllm;   /* whose release's fields */
    bool raw_hashes; /* hashes as they are instead of vt_hash_short() of them */
};
/* Each adds one event. They never fail: one that finds no memory shows in the buffer.
 */
void vt_kv_batch_stored(struct vt_kv_batch *b, const struct vt_kv_stored *s);
void vt_kv_batch_removed(struct vt_kv_batch *b, const uint8_t *hash, uint32_t n,
                         uint32_t group, enum vt_medium medium);
void vt_kv_batch_cleared(struct vt_kv_batch *b);
/* Adds what the scheduler of an engine with that configuration has to tell, and clears
 * that. find: NULL for requests that are gone, whose blocks are not told of. */
typedef const struct vt_blocks *vt_kv_find(void *user, uint64_t tag);
void vt_kv_batch_collect(struct vt_kv_batch *b, const struct vt_engine_config *c,
                         struct vt_sched *s, vt_kv_find *find, void *user);

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
    const char *hash_seed;       /* PYTHONHASHSEED of block hashes; NULL: not set */
};

struct vt_kv_config { /* borrowed while opening only */
    struct vt_kv_wanted wanted;
    uint32_t dp_rank;      /* added to tcp ports; other names get _dpN */
    uint32_t buffer_steps; /* batches kept; 0: 10,000 */
    uint32_t vllm;         /* of its batch, as raw_hashes */
    bool raw_hashes;
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

/* ---- prefill here, decode there (peers.c) -------------------------------- */

/* What requests and answers say of each other in kv_transfer_params, as vLLM's
 * NixlConnector has it, and the side channel by which who decodes tells who prefilled
 * that a prompt's blocks were pulled, or that it still wants them. Real NIXL tells this
 * beside its transfers; here it goes to the address that stands for its handshakes. */
struct vt_side {                  /* of one process */
    const char *engine_id, *host; /* as others are told */
    uint32_t port;
    uint32_t tp;
    double lease_s; /* of those that are waited for: they are renewed as often as it
                     * takes; 0: never */
};

struct vt_kv_ask { /* what a request says; the texts are on the heap */
    enum vt_apart apart;
    char *host, *id; /* who keeps its blocks, and under which name; NULL: nobody */
    uint32_t port;
    int64_t cached; /* prompt tokens that were cached there; -1: not told */
};
/* map: the parameters, NULL or anything else for none. */
int vt_kv_ask_read(struct vt_kv_ask *a, const struct vt_node *map,
                   struct vt_err *err) VT_MUST_CHECK;
void vt_kv_ask_free(struct vt_kv_ask *a);
/* What the answer of a prefill says, whose blocks the scheduler keeps in that slot. */
void vt_kv_put_kept(struct vt_jw *w, const char *key, const struct vt_side *side,
                    uint32_t vllm, const struct vt_sched *s, uint32_t slot,
                    const char *id, const struct vt_first *first);

struct vt_peers; /* opaque */
/* What is heard of other engines. The blocks of the request with that name, which ended
 * here as a prefill, were pulled, or are still wanted; or who is to have those of the
 * request with that tag is there, or is not. */
struct vt_heard {
    enum { VT_HEARD_PULLED, VT_HEARD_WANTED, VT_HEARD_THERE, VT_HEARD_GONE } what;
    const char *id; /* of the first two, */
    size_t len;     /* not terminated */
    uint64_t tag;   /* of the last two */
};
/* One message of the side channel: "NAME:1" or "HB:NAME", as NIXL's notifications are.
 * False: it is none. */
bool vt_heard_read(struct vt_heard *h, const char *text, size_t len);
/* Called by a thread of its own; what it points to is good for the call. */
typedef void vt_peers_heard(void *user, const struct vt_heard *h);
/* Listens at the side's address, which is VT_EINPUT where it can't. */
int vt_peers_open(struct vt_peers **out, const struct vt_side *side,
                  vt_peers_heard *heard, void *user, struct vt_err *err) VT_MUST_CHECK;
void vt_peers_close(struct vt_peers *p); /* NULL is fine */

/* The rest belongs to one thread and never waits. Whether who keeps the request's
 * blocks is there will be heard: who was never reached has five seconds for it, as
 * vLLM's handshake. False: nobody was named, so nothing will be. */
bool vt_peers_reach(struct vt_peers *p, const struct vt_kv_ask *a, uint64_t tag);
/* The request is over: who keeps blocks
 * for it need not any more, if he was not told so before. */
void vt_peers_over(struct vt_peers *p, struct vt_kv_ask *a);
/* The name under which others know a request that ended here as a prefill. */
int vt_peers_keep(struct vt_peers *p, const char *id, uint64_t tag,
                  struct vt_err *err) VT_MUST_CHECK;
/* An engine of the driver has made that step: who prefilled what it pulled is told so,
 * and now and then that what waits is still wanted. ask: of a request of the driver's.
 */
typedef struct vt_kv_ask *vt_peers_ask(void *request);
int vt_peers_step(struct vt_peers *p, const struct vt_driver *d,
                  const struct vt_step *s, vt_peers_ask *ask,
                  struct vt_err *err) VT_MUST_CHECK;
/* What was heard, for the engine that it concerns, if one does. */
void vt_peers_take(struct vt_peers *p, const struct vt_driver *d, uint32_t n_engines,
                   const struct vt_heard *h, vt_ns now);

#endif
