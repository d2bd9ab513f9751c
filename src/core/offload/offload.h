/* offload.h - the scheduler's side of vLLM's OffloadingConnector: which prefixes the
 * host's memory holds, which are loaded from there before a request is admitted, and
 * which blocks are stored there while it runs. It decides and knows no time; who moves
 * the bytes reports when a job is done. */
#ifndef VT_CORE_OFFLOAD_H
#define VT_CORE_OFFLOAD_H

#include "core/kv/kv.h"
#include "core/release.h"

struct offload;     /* opaque */
struct off_request; /* opaque: what is known of one request, until its last job is done
                     */

struct off_table { /* a group's blocks of a request; 0: a place without memory */
    const uint32_t *block;
    uint32_t n;
};

struct off_view { /* a request as it stands; borrowed for the call */
    uint32_t n_tokens, prompt;
    uint32_t computed; /* tokens, those of the step that is being planned included */
    uint32_t junction; /* as the scheduler has it; 0: none */
    bool skip_cache;
    struct content *content;
};

/* c->offload.num_cpu_blocks is not 0. Borrows the pool, which must outlive it. */
int offload_open(struct offload **out, const struct vt_engine_config *c,
                 const struct pool *pool, struct vt_err *err) VT_MUST_CHECK;
void offload_close(struct offload *o); /* NULL is fine */
/* retention: as the groups follow it. */
void offload_follow(struct offload *o, const struct release *rules, uint32_t retention);
struct vt_host_state offload_state(struct offload *o); /* what is since counts anew */
/* Memory ran out somewhere. */
bool offload_failed(const struct offload *o);

/* NULL: out of memory. It is gone after offload_end() and its last job. */
struct off_request *offload_add(struct offload *o, uint64_t tag, uint32_t slot);
/* Tokens behind the `local` ones that can be loaded. *wait: it is to be asked again at
 * the next step. */
uint32_t offload_match(struct offload *o, struct off_request *r,
                       const struct off_view *v, uint32_t local, bool *wait);
/* The load of so many tokens behind the local ones that were asked about last, into
 * the tables' blocks that hold nothing yet. */
void offload_load(struct offload *o, struct off_request *r,
                  const struct off_table *table, uint32_t tokens);
/* It lost its blocks: stores from them must be over before these are written. */
void offload_preempted(struct offload *o, struct off_request *r);
/* It is over; the next plan stores what is left of it. */
void offload_end(struct offload *o, struct off_request *r, const struct off_view *v,
                 bool aborted);

/* A step's plan: told() for every request in it (again: it was preempted before),
 * then look(), store() for each in the plan's order, and plan(), whose result is good
 * until the next offload_done(). */
void offload_told(struct offload *o, struct off_request *r, const struct off_view *v,
                  const struct off_table *table, bool again);
void offload_look(struct offload *o);
void offload_store(struct offload *o, struct off_request *r, const struct off_view *v);
const struct vt_kv_moves *offload_plan(struct offload *o);

/* A job is done. True: it was the load of that slot. Jobs that nobody knows are passed
 * over. */
bool offload_done(struct offload *o, uint64_t job, uint32_t *slot);
/* Adds what has become of the host's blocks to the pool's events. */
void offload_tell(struct offload *o, struct pool *pool);

#endif
