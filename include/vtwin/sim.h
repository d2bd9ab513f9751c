/* sim.h - whole workloads under a virtual clock: what they would see, the highest load
 * within latency limits, and the engine settings that bear most. */
#ifndef VTWIN_SIM_H
#define VTWIN_SIM_H

#include <vtwin/engine.h>
#include <vtwin/latency.h>
#include <vtwin/vtwin.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Places in a list that describes a distribution. */
enum vtwin_part { VTWIN_MEAN, VTWIN_P50, VTWIN_P90, VTWIN_P95, VTWIN_P99, VTWIN_PARTS };

struct vtwin_summary {
    size_t size;
    uint64_t requests, prompt_tokens, output_tokens, cached_tokens;
    uint64_t preemptions, steps;
    double duration_s, requests_per_s, output_tokens_per_s;
    double prefix_hit_rate, kv_usage_peak;
    double ttft_ms[VTWIN_PARTS], tpot_ms[VTWIN_PARTS], itl_ms[VTWIN_PARTS];
    double e2e_ms[VTWIN_PARTS], queue_ms[VTWIN_PARTS];
    uint32_t most_step_tokens,
        most_running; /* of one step: compare with vtwin_extent */
    uint64_t most_context_tokens;
    bool outside; /* some of that is beyond what the model was measured at */
};

struct vtwin_served { /* one request at its end; times in milliseconds */
    size_t size;
    const char *id; /* good during the call */
    double arrival_ms, ttft_ms, e2e_ms, queue_ms;
    uint32_t prompt_tokens, output_tokens, cached_tokens, preemptions;
};

struct vtwin_sim_options {
    size_t size;
    const struct vtwin_engine_options *engine; /* NULL: the model's */
    const char *workload; /* a workload.yaml, a trace, a request CSV, or a built-in
                           * name; NULL: "default-workload" */
    double rate; /* requests per second in an open loop; 0: as the workload says */
    uint32_t requests; /* with a rate: the first so many; 0: all */
    uint64_t seed;
    uint32_t instances;  /* engines behind a router; 0 or 1: one engine */
    const char *routing; /* NULL: "round-robin" */
    void (*served)(void *user, const struct vtwin_served *s); /* NULL: nobody asks */
    void *user;
};
/* out->size is set before. */
VTWIN_API int vtwin_simulate(const struct vtwin_model *m,
                             const struct vtwin_sim_options *o,
                             struct vtwin_summary *out, struct vtwin_error *err);

/* ---- capacity ------------------------------------------------------------- */

struct vtwin_capacity_options {
    size_t size;
    const struct vtwin_sim_options *sim; /* its rate and `served` are not used */
    double ttft_p99_ms, tpot_p99_ms, itl_p99_ms, e2e_p99_ms; /* limits; 0: none */
    double low, high; /* where to look first; 0: found by doubling and halving */
    double tolerance; /* relative width of the answer; 0: 0.02 */
    uint32_t seeds;   /* runs of each rate; 0: 3 */
    /* Processes that share the work; 0: as many as there are cores; 1: all in this one.
     * Others are forked: leave it at 1 in a program with threads. */
    uint32_t workers;
    /* Judges the workload's requests as they are. Otherwise they go on for as long as a
     * statement about the long run takes. */
    bool once;
};
struct vtwin_capacity {
    size_t size;
    double rate;      /* requests per second within the limits; 0: none is */
    double failed;    /* the lowest rate found that is not; 0: none was found */
    double low, high; /* 95 % confidence, from the seeds */
    char binding[16]; /* the limit that breaks first: "TPOT p99", "rate"; "": none */
    uint64_t trials;  /* simulations that were run */
    struct vtwin_summary *at; /* NULL, or yours: what `rate` looks like */
};
VTWIN_API int vtwin_capacity_find(const struct vtwin_model *m,
                                  const struct vtwin_capacity_options *o,
                                  struct vtwin_capacity *out, struct vtwin_error *err);

/* ---- settings ------------------------------------------------------------- */

struct vtwin_axis { /* values to try for one setting */
    size_t size;
    const char
        *flag; /* as vLLM's, without dashes: max-num-seqs, max-num-batched-tokens,
                * data-parallel-size, enable-prefix-caching (0 or 1) */
    const double *value;
    size_t n;
};
struct vtwin_tune_options {
    size_t size;
    const struct vtwin_capacity_options *capacity; /* what is asked of each setting */
    const struct vtwin_axis *axis;
    size_t n_axes;
    bool all; /* every combination, instead of a search that tries few of them */
};
struct vtwin_tuned {
    size_t size;
    struct vtwin_engine_options *engine; /* NULL, or yours: the best settings */
    uint32_t instances;
    double rate;     /* within the limits, of all instances; 0: no setting keeps them */
    uint64_t trials; /* settings that were tried */
};
VTWIN_API int vtwin_tune(const struct vtwin_model *m,
                         const struct vtwin_tune_options *o, struct vtwin_tuned *out,
                         struct vtwin_error *err);

#ifdef __cplusplus
}
#endif

#endif
