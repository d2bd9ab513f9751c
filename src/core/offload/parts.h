/* parts.h - the inside of core/offload, shared by its files. */
#ifndef VT_CORE_OFFLOAD_PARTS_H
#define VT_CORE_OFFLOAD_PARTS_H

#include "core/offload/offload.h"
#include "core/offload/tier.h"
#include "core/offload/tracker.h"

enum { SEEN = 1, STORED = 2, FOUND = 4, MISSED = 8 }; /* what became of a chunk */

struct off_part {  /* of a request in one group */
    uint64_t *key; /* of its chunks, as nodes have them */
    uint8_t *fate;
    size_t cap_keys, cap_fates;
    uint32_t n_keys;
    uint32_t *block; /* that plans have named; 0: none, or somebody else's by now */
    size_t cap_blocks;
    uint32_t n_blocks, n_told; /* n_told: those of earlier plans */
    uint32_t next;             /* chunks before it need not be stored */
    uint32_t n_hit;
};

struct off_request {
    uint64_t tag;
    uint32_t slot;
    uint32_t prompt;
    uint32_t local; /* tokens that were found on the GPU when it was last looked at */
    uint32_t first_job, last_job; /* of its jobs, by next; 0: none */
    bool over, aborted, told;
    struct off_view last;            /* as it was when it ended; content is gone */
    struct off_request *next, *prev; /* all that are known, or unused ones */
    struct off_part part[];
};

struct job { /* its arrays are kept for the seat's next one */
    struct vt_kv_job is;
    struct off_request *of;
    uint32_t *gpu, *cpu, *node;
    size_t cap_gpu, cap_cpu, cap_nodes;
    uint32_t n_nodes;
    uint32_t per_group[VT_KV_GROUPS], first[VT_KV_GROUPS];
    uint32_t next; /* of its request */
    bool watched;  /* blocks of groups that need every token are, too */
};

struct watch { /* a block that a store reads; whoever takes it must wait */
    uint32_t job, next;
};

struct off_kind { /* how a group is stored */
    struct vt_kv_group is;
    uint32_t chunk;   /* tokens */
    uint32_t units;   /* keys in it */
    uint32_t window;  /* chunks to be found from the right; 0: all from the left */
    uint32_t segment; /* of so many chunks only the last `window` are stored; 0: all */
};

struct off_event {
    uint64_t key, tag;
    uint32_t index;
    uint8_t group;
    bool removed, joins;
};

struct offload {
    struct vt_offload c;
    struct release rules;
    uint32_t retention;
    bool caching, log_events;
    const struct pool *pool;
    uint32_t unit;
    uint32_t whole;   /* chunk of the groups that need every token, if it is one; 0 */
    uint32_t aligned; /* the same, or the largest where there are none such */
    struct off_kind kind[VT_KV_GROUPS];
    uint32_t n_groups;
    uint32_t order[VT_KV_GROUPS], n_windows; /* these last, the widest first */

    struct tier tier;
    struct tracker tracker;
    struct off_request *known, *unused;

    struct job *job; /* from 1 */
    size_t cap_jobs;
    struct vt_seats seats;
    struct vt_map by_id; /* to jobs */
    uint64_t next_id;

    struct watch *watch; /* from 1 */
    size_t n_watches, cap_watches;
    uint32_t unused_watch;
    uint32_t *watch_of; /* first of each block */
    uint32_t *taken_at; /* the last plan in which each block was taken */
    uint32_t plan;      /* number of the one being made */
    uint32_t *taken;    /* by it */
    size_t n_taken, cap_taken;

    struct off_request **ended; /* since the last plan */
    size_t n_ended, cap_ended;
    uint64_t *offer; /* scratch: keys of one store, and where they are */
    uint32_t *offer_at;
    size_t cap_offers, cap_offers_at;

    struct vt_kv_moves moves;
    uint32_t *load, *store; /* jobs of this plan */
    size_t n_load, cap_load, n_store, cap_store;
    struct vt_kv_job *out; /* the same, as told */
    size_t cap_out;
    uint64_t *flush;
    size_t n_flush, cap_flush;
    uint32_t *evict;
    size_t n_evict, cap_evict;
    uint32_t no_room;

    uint32_t lookups, skipped; /* since somebody asked for the state */
    struct off_sizes {         /* of stores: chunks that each asked for */
        uint32_t *size;
        size_t n, cap;
    } asked, told;

    struct vt_map described; /* keys whose tokens can be told */
    struct off_event *event;
    size_t n_events, cap_events;
    bool failed;
};

/* One more cell; false: out of memory, which is noted. */
bool off_room(struct offload *o, void *array, size_t *cap, size_t need, size_t cell);

/* lookup.c: keys of all chunks that the request's tokens fill. */
void off_make_keys(struct offload *o, struct off_request *r, const struct off_view *v);
void off_touch(struct offload *o, const struct off_request *r);

/* jobs.c */
struct job *off_job(struct offload *o, struct off_request *r, bool store);
void off_watch(struct offload *o, const struct job *j, bool windows);
void off_flush(struct offload *o, const struct job *j);
void off_took(struct offload *o, uint32_t block);
static inline bool off_was_taken(const struct offload *o, uint32_t block)
{
    return o->taken_at[block] == o->plan;
}
void off_forget(struct offload *o, struct off_request *r);

#endif
