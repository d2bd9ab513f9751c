/* run.h - a run under way: when its requests arrive and the books that are kept. */
#ifndef VT_SIM_RUN_H
#define VT_SIM_RUN_H

#include "report/report.h"
#include "sim/sim.h"

/* ---- arrivals: at recorded times, or as earlier requests end (source.c) -------- */

struct source {
    const struct vt_workload *w;
    enum vt_arrivals mode;
    uint32_t limit;          /* starts in flight; 0: no limit, recorded times */
    size_t next;             /* first request not yet looked at as a start */
    struct vt_agenda agenda; /* requests whose time is set */
};

int source_init(struct source *s, const struct vt_sim_spec *spec, struct vt_err *err);
void source_free(struct source *s);

vt_ns source_due(const struct source *s); /* VT_NEVER: nothing until something ends */
size_t source_take(struct source *s);     /* the request that is due */
/* A request has ended: its next turn, or the next one in line, may now come, `pause`
 * after it. */
int source_ended(struct source *s, size_t req, vt_ns at, vt_ns pause,
                 struct vt_err *err);

/* ---- the books of a run (simulate.c) ------------------------------------------ */

struct gaps { /* of one request in flight; reused by later ones */
    vt_ns *gap;
    uint32_t *tokens, *running, *prefill;
    size_t cap; /* of each */
    uint32_t n;
    bool bursts; /* a chunk held more than one token */
};

struct live { /* what is known of one request so far */
    vt_ns arrival, queue, first, last;
    uint32_t tokens, cached, concurrency, preemptions;
    uint32_t gaps;     /* index of its gap list */
    uint32_t instance; /* that has it */
};

struct sim_run {
    const struct vt_sim_spec *spec;
    const struct vt_workload *w;
    struct vt_engine *engine; /* NULL with a fleet */
    struct vt_timings *timings;
    struct source source;
    struct live *live;
    uint32_t in_flight;
    size_t finished;
    bool keep_gaps;     /* of each request, until it ends */
    bool tell_requests; /* the sink wants them */

    /* Of the engine whose step is being taken. */
    const struct vt_latency *model;
    vt_ns post_ns;
    bool kv_given; /* its prompts were computed elsewhere */
    uint32_t instance;

    vt_ns same_gap; /* equal gaps in a row, not yet handed on */
    uint32_t n_same_gaps;

    struct gaps *gaps;
    size_t n_gaps, cap_gaps;
    uint32_t *spare_gaps;
    size_t n_spare, cap_spare;

    struct vt_step_prefill *prefill; /* scratch for the step log */
    size_t cap_prefill;
    const char **preempted;
    size_t cap_preempted;
};

struct vt_request run_request(const struct vt_workload *w, size_t i);
int run_check_requests(const struct vt_workload *w, const struct vt_engine_config *c,
                       struct vt_err *err);
/* The request that is due arrives; *req is which. */
int run_arrive(struct sim_run *r, vt_ns now, size_t *req, struct vt_err *err);
/* Admissions, preemptions and the log; then, in run_take_step(), also tokens and ends.
 */
int run_note_step(struct sim_run *r, const struct vt_step *s, struct vt_err *err);
int run_take_step(struct sim_run *r, const struct vt_step *s, struct vt_err *err);
/* Now and then: tells progress, asks whether to stop. */
int run_look_up(const struct sim_run *r, vt_ns now, struct vt_err *err);

#endif
