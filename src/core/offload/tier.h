/* tier.h - blocks of the host's memory: which content they hold, who uses them, and
 * which is given up for another. Private to core/offload. */
#ifndef VT_CORE_OFFLOAD_TIER_H
#define VT_CORE_OFFLOAD_TIER_H

#include "core/kv/kv.h"
#include "core/release.h"

enum tier_list { IN_NONE, IN_ONCE, IN_OFTEN, GHOST_ONCE, GHOST_OFTEN, N_LISTS };

struct tier_node {  /* content that is held, or was (ghosts of ARC) */
    uint64_t key;   /* pool_key() of its chunk's last key and its group */
    uint64_t tag;   /* who stored it, */
    uint32_t index; /* and as which of its chunks */
    uint32_t block;
    uint32_t prev, next; /* in its list; 0: none */
    int32_t ref;         /* loads that read it; -1: it is being written */
    uint32_t offered;    /* the last call that offered it: it stays in that one */
    uint8_t list;        /* enum tier_list */
    uint8_t group;
    bool loading; /* to blocks that are not findable yet */
};

struct tier_ends {
    uint32_t head, tail, n;
};

struct tier {
    uint32_t cap;           /* blocks */
    bool arc;               /* LRU has all in IN_ONCE, the next to go first */
    bool by_request;        /* order follows who ends, not who looks: see release.h */
    struct tier_node *node; /* from 1 */
    size_t n_nodes, cap_nodes;
    uint32_t unused; /* nodes, by next */
    struct vt_map by_key;
    struct tier_ends ends[N_LISTS];
    double target;                   /* ARC's size of IN_ONCE */
    uint32_t fresh, *freed, n_freed; /* blocks never taken; stack of those given up */
    uint32_t n_written;              /* blocks of stores under way */
    uint32_t n_idle;                 /* blocks that could be given up */
    uint32_t call;
    uint32_t *victim; /* scratch: nodes */
    size_t cap_victims;
    bool failed;
};

int tier_init(struct tier *t, const struct vt_offload *c,
              struct vt_err *err) VT_MUST_CHECK;
void tier_free(struct tier *t);

/* The node that holds the content; NULL: none does. Good until the next tier_place().
 */
struct tier_node *tier_get(const struct tier *t, uint64_t key);
/* 0.26: looked at, or stored by others again. */
void tier_touch(struct tier *t, uint64_t key);
/* Later: offered and not there; a request that stored it (`stored`), or also found it,
 * has ended. */
void tier_miss(struct tier *t, uint64_t key);
void tier_done(struct tier *t, uint64_t key, bool stored, bool found);

/* Nodes offered in the call that begins now stay. */
void tier_protect_none(struct tier *t);
void tier_protect(struct tier *t, uint64_t key);
/* Room for n more: gives up *n_out nodes, in order, to t->victim, whose content is
 * gone with the next tier_add(). False: there is none; *tried: and it was looked for.
 */
bool tier_make_room(struct tier *t, uint32_t n, uint32_t *n_out, bool *tried);
/* A block for content that is about to be written; NULL: out of memory. */
struct tier_node *tier_add(struct tier *t, uint64_t key);

void tier_written(struct tier *t, struct tier_node *x);
void tier_use(struct tier *t, struct tier_node *x);
void tier_unuse(struct tier *t, struct tier_node *x);

static inline uint32_t tier_index(const struct tier *t, const struct tier_node *x)
{
    return (uint32_t)(x - t->node);
}

#endif
