/* sched.h - the scheduler's insides, shared by its files and by the engine. */
#ifndef VT_CORE_SCHED_H
#define VT_CORE_SCHED_H

#include "core/kv/kv.h"
#include "core/offload/offload.h"
#include "core/sched/groups.h"

#define NO_SLOT UINT32_MAX

enum status {
    S_FREE,
    S_PARKED, /* it is over, but a transfer to or from its blocks is not */
    S_PENDING,
    S_WAITING,
    S_RUNNING,
    S_PREEMPTED,
    S_LOADING /* its blocks are being filled from elsewhere */
};

struct slot {             /* one request; what every step touches comes first */
    uint32_t computed;    /* tokens in the KV cache, speculated ones included */
    uint32_t n_tokens;    /* prompt and what has come out */
    int32_t placeholders; /* scheduled tokens whose values are not yet known */
    uint32_t n_spec;      /* drafts to be checked next */
    uint32_t prompt;
    uint32_t stop_from; /* no finish rule holds below this many tokens */
    uint32_t in_flight; /* tokens of steps without a result yet */
    uint32_t stale;     /* of these: from before a preemption; see mark_stale() */
    /* The next changes of its blocks: more of them beyond `room` tokens; content to
     * register from next_cache tokens on; blocks to give back from next_drop on. */
    uint32_t room, next_cache, next_drop;
    uint8_t status; /* enum status */
    bool chunk;     /* the last plan left prompt tokens to do */
    bool skip_cache;
    bool had_output;
    bool drops_stale; /* stale results are thrown away */
    uint32_t gen;
    uint64_t tag;
    struct holding *held; /* one for each group; kept for the seat's next request */

    uint32_t max_total; /* prompt + max_tokens */
    uint32_t min_tokens, max_tokens, eos_at, stop_at;
    uint32_t n_preempted;
    uint32_t first_cached; /* prefix hit of the first admission */
    uint32_t junction;     /* end of a prefix that some groups have, but not all; 0 */
    uint32_t given;        /* leading tokens whose KV came with the request */
    int32_t priority;
    int64_t arrival;
    const char *id;
    uint32_t lora;           /* adapter; 0: none */
    bool aside;              /* was passed over when others were admitted */
    bool apart;              /* stands in that queue */
    bool loaded;             /* what it loaded is there */
    bool fetches;            /* and is elsewhere until it has room for it */
    uint8_t remote;          /* enum vt_apart; a pull is asked for once */
    bool unsure;             /* whether anybody answers it */
    bool prefills;           /* will need more blocks for its prompt */
    uint32_t last_seq;       /* of the last step with it, where blocks come back late */
    uint32_t first_external; /* of first_cached: from elsewhere */
    struct off_request *off; /* NULL: there is no second tier */
    uint32_t prev, next;     /* waiting list, or position in the heap (prev) */
    struct content content;
};

struct queue { /* of waiting slots: a list (fcfs) or a heap (priority) */
    bool by_priority;
    uint32_t n;
    uint32_t head, tail;
    uint32_t *heap;
    size_t cap_heap;
};

struct plan_buf {
    struct vt_step_plan plan;
    size_t cap_preempted, cap_finished, cap_pulls;
};

/* With steps in flight a connector may still read blocks that were given back: they
 * return to the pool with the result of the last step that used them. */
struct late {
    bool on;
    uint32_t scheduled, done; /* steps that compute something */
    uint32_t *block;
    size_t n_blocks, cap_blocks;
    struct late_part {
        uint32_t seq, n; /* blocks, after those of the parts before */
    } *part;
    size_t n_parts, cap_parts;
};

struct vt_sched {
    struct vt_engine_config c;
    struct release rules;
    struct pool pool;
    struct groups groups;
    uint32_t budget; /* tokens of a step */
    uint32_t lookahead;
    uint32_t long_prefill; /* most prompt tokens of a request in this step; 0: any */
    uint32_t watermark_blocks;
    enum vt_pause pause;
    bool capacity_bound; /* the last admission loop left requests waiting */

    struct slot *slot; /* one for each seat; what free ones own is kept for the next */
    size_t cap_slots;
    struct vt_seats seats;
    struct vt_map by_tag; /* to slots */
    uint32_t next_gen;

    uint32_t *running; /* in vLLM's order */
    uint32_t n_running;
    struct queue waiting, apart; /* apart: put aside, and looked at first */
    uint32_t n_aside;            /* waiting ones that were passed over */
    uint32_t *aside; /* scratch: taken out of the queues while others are looked at */
    size_t cap_aside;
    bool adapted;    /* a request with an adapter has come, and their number counts */
    uint32_t *loras; /* adapters of this step's requests */
    uint32_t n_loras;

    struct plan_buf plan[2];
    unsigned turn;
    uint64_t *finished; /* tags, since the last plan */
    size_t n_finished, cap_finished;
    uint64_t *reset_tags;
    size_t cap_reset_tags;

    struct vt_update update;
    size_t cap_rows, cap_first;
    struct vt_cache_stats cache, external;

    struct offload *off; /* NULL: there is no second tier */
    bool connected;      /* there is, or prefills elsewhere */
    struct vt_map kept;  /* tags of parked requests to slots, without a second tier */
    struct settled {
        uint64_t tag;
        bool failed;
    } *settled; /* requests to be told of with the next result */
    size_t n_settled, cap_settled;
    uint32_t n_prefills; /* requests with `prefills` */
    uint64_t *moved;     /* jobs to be told of with the next result */
    size_t n_moved, cap_moved;
    struct late late;
    bool failed; /* out of memory somewhere deep; reported by the next call */
};

/* A slot that is known but not yet in the queue, and its entry into it. */
int sched_prepare(struct vt_sched *s, const struct vt_request *r, uint32_t *slot,
                  struct vt_err *err);
void sched_enqueue(struct vt_sched *s, uint32_t slot);

/* Shared by its files: out of the running list, in which it stood there; back to the
 * queue without blocks, with or without the results that are in flight; over (the
 * caller has taken it out of queue or list). */
uint32_t sched_stop_running(struct vt_sched *s, uint32_t slot);
void sched_preempt(struct vt_sched *s, uint32_t slot, bool drop_results);
void sched_end(struct vt_sched *s, uint32_t slot, bool aborted);
/* After a crowd: a few of the slots that nobody uses any more are given back. Not while
 * one that has just ended may still be asked for. */
enum { SCHED_SLOTS = 1024 }; /* that are kept in any case */
void sched_cut_more_slots(struct vt_sched *s, uint32_t most);
static inline void sched_cut_slots(struct vt_sched *s, uint32_t most)
{
    if (s->seats.n > SCHED_SLOTS)
        sched_cut_more_slots(s, most);
}

static inline void sched_put_aside(struct vt_sched *s, uint32_t slot, bool aside)
{
    if (s->slot[slot].aside == aside)
        return;
    s->slot[slot].aside = aside;
    s->n_aside += aside ? 1 : UINT32_MAX; /* one less */
}

int queue_reserve(struct queue *q, uint32_t n, struct vt_err *err);
void queue_push(struct vt_sched *s, uint32_t slot); /* behind all (fcfs) */
/* before all (fcfs) of those apart, or of the others */
void queue_push_front(struct vt_sched *s, uint32_t slot, bool apart);
uint32_t queue_first(const struct vt_sched *s); /* to be looked at; NO_SLOT: none */
void queue_remove(struct vt_sched *s, uint32_t slot);
uint32_t queue_list(const struct vt_sched *s, uint32_t *slots, uint32_t max);

static inline uint32_t sched_n_waiting(const struct vt_sched *s)
{
    return s->waiting.n + s->apart.n;
}

static inline void sched_set_prefills(struct vt_sched *s, struct slot *r, bool yes)
{
    if (r->prefills != yes)
        s->n_prefills += yes ? 1 : UINT32_MAX; /* one less */
    r->prefills = yes;
}

/* ---- shared by schedule.c and admit.c ---------------------------------- */

struct admission { /* of waiting requests, in one step */
    struct vt_step_plan *plan;
    uint32_t *budget;
    bool defer;      /* prompts wait for a later step */
    bool mid_prompt; /* a running request computes a piece of its prompt, */
    bool decodes;    /* or at least one was planned */
    uint32_t n_out;  /* taken out of the queues while others are looked at */
};
void sched_admit_waiting(struct vt_sched *s, struct admission *a);
struct vt_item *sched_plan_add(struct vt_step_plan *p, const struct slot *r,
                               uint32_t slot, uint32_t tokens);
/* Mamba states are kept at block ends, so that a prompt's pieces have to end there: its
 * k tokens from `start` on, cut. 0: they end before the next block does. */
uint32_t sched_cut_at_block(const struct vt_sched *s, const struct slot *r,
                            uint32_t start, uint32_t k);
void sched_note_lora(struct vt_sched *s, const struct slot *r);

/* ---- blocks that come back late (late.c) -------------------------------- */

/* A step's result is there: blocks that waited for it come back. */
void late_update(struct vt_sched *s, const struct vt_step_plan *p);
/* A plan's requests are those of its step, for what comes back late. */
void late_plan(struct vt_sched *s, const struct vt_step_plan *p);
/* Its blocks go back to the pool later; false: at once. */
bool late_release(struct vt_sched *s, const struct slot *r);

/* ---- the second tier (tiers.c) ------------------------------------------ */

/* Tokens that it has behind `hit`; *wait: look again at the next step. */
uint32_t tiers_match(struct vt_sched *s, struct slot *r, uint32_t hit, bool *wait);
void tiers_load(struct vt_sched *s, struct slot *r, uint32_t tokens);
void tiers_end(struct vt_sched *s, struct slot *r, bool aborted);
/* What the plan, whose tokens count as computed, moves. */
void tiers_plan(struct vt_sched *s, struct vt_step_plan *p);
/* A step's result is there: what was moved is known. */
void tiers_end_update(struct vt_sched *s);
/* Nothing is written to its blocks any more: its seat is free. */
void sched_unpark(struct vt_sched *s, uint32_t slot);

/* ---- prefills elsewhere (remote.c) -------------------------------------- */

/* Tokens behind `hit` that another engine has computed. */
uint32_t remote_match(const struct vt_sched *s, const struct slot *r, uint32_t hit);
/* It has its blocks: those that hold nothing yet are pulled. */
void remote_pull(struct vt_sched *s, struct vt_step_plan *p, struct slot *r);
/* At its end: whether its blocks stay for another engine. */
bool remote_keeps(const struct vt_sched *s, const struct slot *r, bool aborted);
void remote_park(struct vt_sched *s, uint32_t slot);
void remote_end_update(struct vt_sched *s);
/* Tokens at a prompt's end that prefills leave to those who decode. */
uint32_t remote_backoff(const struct vt_sched *s);

/* Where its prefill ends: a prompt, or on recompute all but the last token. */
static inline uint32_t prefill_end(const struct slot *r)
{
    return r->n_tokens - 1 > r->prompt ? r->n_tokens - 1 : r->prompt;
}

/* ---- blocks of a request (blocks.c) ------------------------------------ */

/* Tokens that are cached; their blocks are in the groups' hits. */
uint32_t kv_find_hit(struct vt_sched *s, struct slot *r);
/* Room for n_new more tokens; false: too few free blocks. */
bool kv_extend(struct vt_sched *s, struct slot *r, uint32_t n_new);
/* The same for a request that has none yet: `hit` tokens were found, and the KV of
 * `given` more comes from elsewhere. */
bool kv_admit(struct vt_sched *s, struct slot *r, uint32_t n_new, uint32_t hit,
              uint32_t given);
/* The same for one whose `given` tokens are still to be loaded: nothing is computed,
 * and what others were promised stays free. */
bool kv_admit_load(struct vt_sched *s, struct slot *r, uint32_t hit, uint32_t given);
/* The same for one whose load is done: room for n_new tokens behind its computed ones.
 */
bool kv_admit_loaded(struct vt_sched *s, struct slot *r, uint32_t n_new);
/* Gives back what lies behind the windows. */
void kv_drop_behind(struct vt_sched *s, struct slot *r);
void kv_give(struct vt_sched *s, const uint32_t *block, uint32_t n);
void kv_register_blocks(struct vt_sched *s, struct slot *r, uint32_t n_tokens);
/* The first n_tokens are computed: blocks that they fill become findable. Asked at
 * every step, to be done at every block. */
static inline void kv_register(struct vt_sched *s, struct slot *r, uint32_t n_tokens)
{
    if (n_tokens >= r->next_cache)
        kv_register_blocks(s, r, n_tokens);
}
void kv_release(struct vt_sched *s, struct slot *r);
/* Leading tokens that every group can find again. */
uint32_t kv_findable(const struct vt_sched *s, const struct slot *r);

#endif
