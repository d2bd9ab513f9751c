/* sim.h - the virtual-clock driver: it offers a workload to an engine and jumps from
 * event to event. */
#ifndef VT_SIM_H
#define VT_SIM_H

#include "core/core.h"
#include "model/model.h"
#include "trace/trace.h"

struct vt_summary; /* report.h */

/* Where results go while a run proceeds; each function may be NULL. */
struct vt_sim_sink {
    void *user;
    int (*request)(void *user, const struct vt_served *s,
                   struct vt_err *err); /* in finish order */
    int (*step)(void *user, const struct vt_step_line *s,
                struct vt_err *err); /* in step order */
    /* Now and then, for a progress line. */
    void (*progress)(void *user, size_t finished, size_t total, vt_ns now);
};

/* ---- many engines ------------------------------------------------------- */

struct vt_replica { /* one engine that is not like the spec's */
    struct vt_engine_config engine;
    const struct vt_latency *model;
};

struct vt_autoscale {     /* interval_ns 0: none */
    uint32_t least, most; /* engines; `instances` of them serve from the start */
    vt_ns interval_ns;    /* how often it is looked at */
    vt_ns startup_ns;     /* until a new one serves */
    double up, down;      /* KV use (and queue) per engine above, below which */
    vt_ns up_window_ns, down_window_ns; /* for how long that must hold */
};

/* Engines behind a router. Everything is borrowed. */
struct vt_fleet {
    uint32_t instances;
    /* Data-parallel ranks of a mixture of experts: each so many engines, one after the
     * other, go in lockstep (vt_ranks of core.h). Up to 1: none do. */
    uint32_t ranks;
    const struct vt_replica *replica; /* `instances` of them; NULL: all as the spec's */
    /* round-robin, random, least-loaded, power-of-two, queue-depth, kv-utilization,
     * prefix-affinity, precise-prefix-cache, session-affinity, vllm-dp and others, or a
     * weighted sum of scorers: "precise-prefix-cache:2,queue-depth:1"; all of them are
     * in docs/simulate.md. */
    const char *routing;
    vt_ns staleness_ns; /* how old the router's view of queues and caches may be */
    /* Prefill/decode disaggregation: the first so many only prefill; 0: all do all. The
     * engines' vt_remote must be on then. */
    uint32_t prefill_instances;
    struct vt_autoscale autoscale;
    uint64_t seed;
    /* Engines run for a while each on so many threads while none can matter to another,
     * and results are the same to the byte; 0: one event after the other. Not used by
     * what needs to know of every engine at every arrival, see docs/simulate.md. */
    uint32_t threads;
};
/* Is `routing` one, and if not, why. */
int vt_routing_check(const char *routing, struct vt_err *err) VT_MUST_CHECK;

struct vt_replica_summary { /* what one engine of a fleet did */
    uint64_t requests, steps, preemptions;
    double prefix_hit_rate, kv_usage_peak, busy_s;
    vt_ns from_ns, to_ns; /* while it was there */
};

struct vt_sim_spec { /* everything is borrowed */
    const struct vt_workload *workload;
    struct vt_engine_config engine;
    const struct vt_latency *model;
    /* Whose clock arrivals and results are by. Clients' and recorders' times hold what
     * the frontend adds; NULL: it adds nothing. In a closed loop by their clocks the
     * pause is the frontend's, by the engine's (or unstated) the model's. */
    enum vt_clock clock;
    const struct vt_front *frontend;
    enum vt_arrivals arrivals;
    uint32_t concurrency; /* for closed and session arrivals; 0: no limit */
    uint32_t held_to;     /* for recorded ones, as vt_workload's */
    /* Of a measured workload that is not streamed: prompts find in the prefix cache
     * what was found when they were measured, whatever is in it here. */
    bool cached_as_measured;
    /* How long after it has come each request's client waits for its end, and then
     * hangs up: the engine aborts it, the sink is told so, the summary has nothing of
     * its times, and the rest of its session never comes. VT_NEVER: as long as it
     * takes. Of a workload that is not streamed, on engines that do all; NULL: all
     * wait. */
    const vt_ns *patience;
    bool start_together;            /* with a limit: all that start at once do so at the
                                     * first one's time */
    const struct vt_sim_sink *sink; /* NULL: none */
    const struct vt_fleet *fleet;   /* NULL: one engine */
    struct vt_replica_summary *replica; /* NULL, or room for all engines of the fleet
                                         * (autoscale.most of them with autoscaling) */
    struct vt_ranks_totals *lockstep;   /* NULL, or gets those of all ranks together */
    /* Requests that arrive before or from then on (with held_to: that were to) are
     * served, but the summary has nothing of their times; 0, 0: all count. */
    vt_ns count_from, count_until;
    bool (*stopped)(void *user); /* NULL, or asked now and then: true ends the run with
                                  * VT_ECHECK */
    void *user;
};

/* What a name stands for: a built-in workload, or a file of any kind (a generator's
 * spec, a trace, a list of requests). Sets kind, name and text of *in. VT_EINPUT with
 * the built-in names where there is no such file. */
int vt_input_find(struct vt_input *in, const char *name,
                  struct vt_err *err) VT_MUST_CHECK;
struct vt_builtin_workload {
    char name[64], about[160]; /* about: the first sentence of its opening comment */
    const char *text;
    size_t len;
};
/* The built-in ones by name, one after the other: start with *at = 0. */
bool vt_builtin_workload_next(size_t *at, struct vt_builtin_workload *out);
/* The same read. The seed is a generator's; bit 63 does not count. `most` as
 * vt_workload_read() has it. */
int vt_workload_open(struct vt_workload *w, const char *name, uint64_t seed,
                     size_t most, struct vt_err *err) VT_MUST_CHECK;

/* Runs the workload to its end. *out gets everything but profile, workload name,
 * seed and version, which the caller knows; of a run that its sink or stopped() ended
 * with VT_ECHECK, what there was until then. */
int vt_sim_run(const struct vt_sim_spec *spec, struct vt_summary *out,
               struct vt_err *err) VT_MUST_CHECK;

/* ---- recorded runs ------------------------------------------------------ */

/* Replays a recorded run of the real scheduler and compares every step.
 * VT_ECHECK: the message names the first step and field that differ. */
struct vt_oracle_result {
    char name[64];
    uint32_t steps, requests;
};
int vt_oracle_check(const char *path, struct vt_oracle_result *out,
                    struct vt_err *err) VT_MUST_CHECK;
/* The same from JSON text in memory; name is for messages. */
int vt_oracle_check_text(const char *name, const char *text, size_t len,
                         struct vt_oracle_result *out,
                         struct vt_err *err) VT_MUST_CHECK;

#endif
