/* engine.h - the inside of an engine, for what couples several of them; private to
 * core.
 */
#ifndef VT_CORE_ENGINE_H
#define VT_CORE_ENGINE_H

#include "core/pull.h"
#include "core/rules.h"
#include "core/transfer.h"

struct flight {
    const struct vt_step_plan *plan;
    uint64_t number;
    vt_ns sched_ns, sched_end_ns;
    vt_ns ready_ns; /* the GPU is done */
    vt_ns handling_ns;
    bool held; /* its launch waits for the GPU */
    /* Of a second tier: when what it flushes is over, and when the host looks which
     * transfers are. */
    vt_ns flushed_ns, polled_ns;
    double handover_us; /* of the host, for its transfers, before the launch */
    uint32_t *sampled;  /* NULL: one token each */
};

struct vt_engine {
    struct vt_engine_config c;
    const struct vt_latency *model;
    const struct sched_ops *ops;
    void *sched;       /* that these made */
    struct pool *pool; /* its */
    struct rank *rank; /* NULL, or its place among ranks in lockstep; theirs */
    uint32_t depth;    /* steps in flight at most */
    vt_ns host_free, gpu_free;
    struct flight flight[2];
    uint32_t n_flights;
    bool result_first; /* the last plan was empty: take a result before the next */
    bool stuck;        /* nothing can be scheduled until something arrives or ends */
    uint64_t n_scheduled;

    vt_ns intake_free; /* the input thread is done with those that came */
    vt_ns wake_ns, nap_ns, end_ns;
    /* Slots that are known, not yet schedulable. Those of aborted requests stay until
     * they come to the top, where none ever is. */
    struct vt_agenda arrivals;
    struct outlet *outlet;
    size_t cap_outlets;
    bool plain_outlets; /* no model delays: rows leave with the step */

    vt_ns last_big; /* when a long prompt was last admitted */

    uint32_t *sampled[2];
    size_t cap_sampled[2];
    bool moves;     /* there is a second tier, */
    bool connected; /* or prefills elsewhere */
    bool failed;    /* no memory for transfers; reported by the next result */
    struct transfers transfers;
    struct pulls pulls;
    struct leases leases;
    struct vt_step_offload told; /* by the last step */
    struct vt_step_remote apart;
    uint32_t told_late; /* since the last result */
    struct vt_kv_moved *moved;
    size_t cap_moved;
    struct vt_kv_pulled *pulled;
    size_t cap_pulled;
    struct vt_step done;
    struct vt_engine_totals totals;
};

/* What a step costs; *cost comes zeroed. */
void engine_price(const struct vt_engine *e, const struct flight *f,
                  struct vt_step_cost *cost);
/* A model's microseconds as whole nanoseconds. */
double engine_ns(double us);

/* ---- transfers (moves.c) ------------------------------------------------ */

void moves_init(struct vt_engine *e);
void moves_free(struct vt_engine *e);
/* When who waits for a transfer could go on; VT_NEVER: nobody does. */
vt_ns moves_due(const struct vt_engine *e);
/* A step's transfers come along: what it flushes holds it up. When it has its place on
 * the axis, they are launched. */
int moves_begin(struct vt_engine *e, struct flight *f,
                struct vt_err *err) VT_MUST_CHECK;
int moves_launch(struct vt_engine *e, struct flight *f,
                 struct vt_err *err) VT_MUST_CHECK;
/* Its result: the scheduler is told what is over before its update, and e->done after.
 */
int moves_take(struct vt_engine *e, const struct flight *f,
               struct vt_err *err) VT_MUST_CHECK;
int moves_taken(struct vt_engine *e, const struct vt_update *u, vt_ns at,
                struct vt_err *err) VT_MUST_CHECK;

/* ---- ranks (ranks.c) --------------------------------------------------- */

enum action {
    NOTHING,
    SCHEDULE,
    RESULT, /* of the oldest step in flight */
    DUMMY   /* of ranks: come to the pass with nothing */
};

/* What the engine does next, and when: vt_engine_step() does it and then calls the
 * function below that goes with it. */
enum action rank_action(const struct rank *k, vt_ns *at);
/* Before it schedules: are new prefills held back? */
bool rank_throttles(const struct rank *k);
/* Scheduled at `at`: the last step in flight, which has no place on the axis yet; NULL:
 * there was nothing to ask the scheduler for. */
void rank_scheduled(struct rank *k, vt_ns at, struct flight *f);
void rank_took_result(struct rank *k);
void rank_make_dummy(struct rank *k, vt_ns at);

void rank_leave(struct rank *k); /* its engine ends */
bool rank_rests(const struct rank *k);
/* As vt_engine_pause(). */
int rank_pause(struct rank *k, vt_ns now, enum vt_pause p);

#endif
