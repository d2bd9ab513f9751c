/* kv.h - KV blocks: who holds them, in which order free ones are taken, which content
 * they hold, and the keys of a request's content. Every operation is O(1) per block.
 *
 * The free list is vLLM's, in eviction order: blocks without content come back to its
 * front, blocks with content to its back, and unused ones lie between. The front is a
 * stack, the unused ones a mere range, and the back a queue in an array: with links
 * instead, a pool larger than the processor's caches would wait for memory at every
 * block, while an array can be read ahead. */
#ifndef VT_CORE_KV_H
#define VT_CORE_KV_H

#include "core/core.h"

/* ---- blocks (pool.c) --------------------------------------------------- */

struct pool_block {
    uint64_t key;                  /* content, as pool_key() makes it; 0: none */
    uint32_t ref;                  /* requests that hold it */
    uint32_t at;                   /* its place in the queue, while it is there */
    uint32_t same_prev, same_next; /* ring of blocks with equal keys, oldest first */
};

struct pool_alias { /* another key that subscribers know a block by */
    uint64_t key;   /* as struct vt_kv_event has it */
    uint32_t next;  /* of the same block, or unused; 0: none */
};

struct pool_cell {  /* of the table from content to blocks */
    uint32_t low;   /* half of the key: most probes end without a look at the block */
    uint32_t block; /* the oldest one with that key; 0: empty */
};

struct pool {
    struct pool_block *block;
    uint8_t *group;          /* that each block's content is of; NULL: there is one */
    struct pool_cell *table; /* open addressing */
    uint32_t mask;           /* size of the table - 1 */
    uint32_t n;
    uint32_t fresh;  /* first block never taken */
    uint32_t n_free; /* takeable blocks */
    uint32_t *front; /* stack of free blocks without content */
    uint32_t n_front;
    uint32_t *queue; /* ring of free blocks, oldest first; 0: one that left early */
    uint32_t queue_mask;
    uint32_t head, tail; /* positions; they wrap */
    bool caching;
    bool log_events;
    bool latest_only; /* BLIS: a key leads to the block that got it last, and to none
                       * once any block that had it is taken */
    struct vt_kv_event *event;
    size_t n_events, cap_events;
    uint32_t
        *alias_of; /* first alias of each block, from 1; NULL: there was none yet */
    struct pool_alias *alias;
    size_t n_aliases, cap_aliases;
    uint32_t unused_alias;
    bool failed; /* an event could not be stored */
};

/* first: the lowest block number in use (vLLM keeps 0 for itself). */
int pool_init(struct pool *p, uint32_t n, uint32_t first, bool caching, bool log_events,
              struct vt_err *err);
/* Content will be of several groups. */
int pool_tell_groups(struct pool *p, struct vt_err *err);
void pool_free(struct pool *p);

/* Takes the next free block for one holder; the caller checked n_free. Content that
 * it still held is forgotten. */
uint32_t pool_take(struct pool *p);
/* Share of the blocks that somebody holds. */
static inline double pool_usage(const struct pool *p)
{
    return 1.0 - (double)p->n_free / (double)(p->n - 1);
}
/* One more holder for a block found by its content. */
void pool_touch(struct pool *p, uint32_t b);
/* A request's blocks lose one holder, last block first; block 0 is none. The first
 * n_keyed of them have content. */
void pool_give(struct pool *p, const uint32_t *blocks, uint32_t n, uint32_t n_keyed);
/* The same where every block goes to the back, as BLIS has it. */
void pool_give_back(struct pool *p, const uint32_t *blocks, uint32_t n);

/* Content is of a group: the same tokens have blocks of their own in each. Turned round
 * by a second call. */
static inline uint64_t pool_key(uint64_t key, uint32_t group)
{
    return key ^ (group * UINT64_C(0x9e3779b97f4a7c15));
}
/* A key is about to be looked up or registered: its memory is asked for. */
void pool_expect(const struct pool *p, uint64_t key, uint32_t group);
uint32_t pool_lookup(const struct pool *p, uint64_t key, uint32_t group); /* 0: none */
/* What it held before is forgotten, which is told but for BLIS. */
void pool_register(struct pool *p, uint32_t b, uint64_t key, uint32_t group);
/* Subscribers are to know the block, which has content of the group, by that key as
 * well; it leads nobody there. False: they do. Only where events are logged. */
bool pool_add_alias(struct pool *p, uint32_t b, uint64_t key);
/* A block that is held keeps no content. */
void pool_forget(struct pool *p, uint32_t b);
/* One STORED event; e->kind is set here. */
void pool_stored(struct pool *p, struct vt_kv_event e);
/* An event that is not about its blocks. */
void pool_tell(struct pool *p, struct vt_kv_event e);
/* Forgets all content; the caller checked that every block is free. */
void pool_clear(struct pool *p);

/* ---- what follows from an engine's KV groups alone (layout.c) ----------- */

/* The groups of *c; where it states none, *one is made to be the only one. */
const struct vt_kv_group *layout_groups(const struct vt_engine_config *c,
                                        struct vt_kv_group *one, uint32_t *n);
bool layout_same_rules(const struct vt_kv_group *a, const struct vt_kv_group *b);
bool layout_needs_all(const struct vt_kv_group *g); /* tokens, that is */
/* How many of these n groups, from the first on, have its rules. */
uint32_t layout_alike(const struct vt_kv_group *g, uint32_t n);
/* Blocks of the group that an admission reserves at most. */
uint32_t layout_most_blocks(const struct vt_engine_config *c,
                            const struct vt_kv_group *g);

/* ---- what a request's tokens are, block by block (content.c) ------------ */

/* A block's key stands for its tokens and everything before them: it chains the
 * previous block's key with the runs of content inside the block. Keys are made when
 * first asked for and kept. */
struct content {
    struct vt_segment *seg; /* the prompt, then one endless segment of output */
    size_t n_seg, cap_seg;
    uint64_t *key; /* n_keys of them */
    size_t n_keys, cap_keys;
    size_t at_seg; /* where the next key's first token lies */
    uint32_t at_token;
    uint64_t salt;
    uint64_t (*block_key)(void *tokens, uint32_t j, uint64_t parent); /* or NULL */
    void *tokens;
};

int content_init(struct content *c, const struct vt_request *r, struct vt_err *err);
void content_free(struct content *c);

/* Key of block j; the tokens up to its end must exist. False: out of memory. */
bool content_key(struct content *c, uint32_t j, uint32_t block_size, uint64_t *key);

#endif
