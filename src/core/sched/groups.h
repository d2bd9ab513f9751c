/* groups.h - KV groups over one pool: which tokens each still needs, which prefixes it
 * can find again, and what a request holds of it. */
#ifndef VT_CORE_GROUPS_H
#define VT_CORE_GROUPS_H

#include "core/kv/kv.h"
#include "core/release.h"

struct holding {     /* of one request, in one group */
    uint32_t *block; /* 0: a place without memory */
    size_t cap;
    uint32_t n;
    uint32_t n_seen; /* leading ones that the prefix cache was offered, */
    uint32_t gone;   /* and that were looked at to be given back */
    uint32_t tail;   /* tokens up to which an unfinished block is registered; 0: none */
    uint32_t state;  /* aligned states: 1 + place of the one before the running one */
    bool saves;      /* the piece to be computed leaves one more, before its last: */
    uint32_t saved_at, saved_place; /* of so many tokens, and where it is */
};

struct hit { /* blocks [first, n) were found; those before are not needed */
    uint32_t *block;
    size_t cap;
    uint32_t first, n;
    uint32_t n_free; /* of those that will be held: nobody holds them now */
};

struct group {
    struct vt_kv_group is;
    uint32_t units; /* keys in a block */
    uint32_t most;  /* blocks that an admission counts at most */
    uint32_t span;  /* blocks of a window, but for the token that is computed */
    bool whole;     /* every token is needed */
    bool aligned;   /* a state for each block, of which two are held, */
    bool saves;     /* or three, while one is saved inside a piece */
    struct hit hit; /* of the request that is being admitted */
};

struct kind { /* groups with equal rules have a block together or not at all */
    uint32_t first, n;
};

struct groups {
    struct group *group;
    uint32_t n;
    struct kind kind[VT_KV_GROUPS]; /* those that need every token first */
    uint32_t n_kinds;
    uint32_t step; /* tokens at whose multiples hits end: vLLM's scheduler_block_size */
    uint32_t unit; /* tokens between two keys: its hash_block_size */
    uint32_t retention;         /* or VT_RETENTION_DENSE */
    bool aligned;               /* some group is */
    bool saves;                 /* all groups with states do */
    bool always;                /* registering can't wait for whole blocks */
    struct vt_map fresh_states; /* registered in this step: not to be hit in it */
};

/* c must pass vt_engine_config_check(). */
int groups_init(struct groups *gs, const struct vt_engine_config *c,
                struct vt_err *err) VT_MUST_CHECK;
void groups_free(struct groups *gs);
/* What the release's rules make of them; retention: as the configuration states it. */
void groups_follow(struct groups *gs, const struct release *rules, uint32_t retention);

/* The last multiple of `every` up to n; one less where a draft head loses a block. */
static inline uint32_t place_before(uint32_t n, uint32_t every, bool drop)
{
    uint32_t at = n / every * every;

    return !drop ? at : at > every ? at - every : 0;
}
/* The last place before n at which a later prompt can go on from a state. */
uint32_t groups_state_before(const struct groups *gs, uint32_t n, bool eagle);
/* Whether the piece [start, end) can leave the state of the place at `at`, with blocks
 * of so many tokens. */
bool groups_saves_at(const struct groups *gs, uint32_t start, uint32_t end, uint32_t at,
                     uint32_t block_size);

/* Leading tokens that are not needed any more when n are computed. */
uint32_t group_skips(const struct group *g, uint32_t n);
/* The number of computed tokens, above n, from which one more block is not needed. */
uint32_t group_next_skip(const struct group *g, uint32_t n);

static inline uint32_t group_blocks(const struct group *g, uint32_t tokens)
{
    return (tokens + g->is.block_size - 1) / g->is.block_size;
}

#endif
