/* simulate.h - the parts of `vtwin simulate`; private to cli. */
#ifndef VT_CLI_SIMULATE_H
#define VT_CLI_SIMULATE_H

#include "cli/cli.h"
#include "cli/cmd/engine_job.h"
#include "model/model.h"
#include "report/report.h"
#include "sim/sim.h"

/* ---- many engines (simulate_fleet.c) ----------------------------------- */

/* Rows of the command's table. */
#define SIMULATE_FLEET_OPTIONS                                                           \
    {"instances", CLI_VALUE, "N", "1", "engines behind a router", NULL},                 \
        {"routing",                                                                      \
         CLI_VALUE,                                                                      \
         "HOW",                                                                          \
         "round-robin",                                                                  \
         "policy, or scorers: precise-prefix-cache:2,queue-depth:1",                     \
         NULL},                                                                          \
        {"routing-staleness-ms",                                                         \
         CLI_VALUE,                                                                      \
         "MS",                                                                           \
         "50",                                                                           \
         "age of the router's view of queues and caches",                                \
         NULL},                                                                          \
        {"replica",                                                                      \
         CLI_VALUE,                                                                      \
         "PROFILE[:N]",                                                                  \
         NULL,                                                                           \
         "N engines of that profile; repeatable",                                        \
         NULL},                                                                          \
        {"prefill-instances",                                                            \
         CLI_VALUE,                                                                      \
         "N",                                                                            \
         "0",                                                                            \
         "of the instances, that only prefill; others decode",                           \
         NULL},                                                                          \
        {"kv-transfer-gb-per-s", CLI_VALUE, "GB", "25", "from prefill to decode", NULL}, \
        {"kv-transfer-base-us", CLI_VALUE, "US", "50", "of every transfer", NULL},       \
        {"kv-transfer-contention",                                                       \
         CLI_FLAG,                                                                       \
         NULL,                                                                           \
         NULL,                                                                           \
         "transfers under way share the bandwidth",                                      \
         NULL},                                                                          \
        {"kv-bytes-per-token",      CLI_VALUE, "BYTES", "of the profile's model",        \
         "what a transfer carries", NULL},                                               \
        {"autoscale",                                                                    \
         CLI_VALUE,                                                                      \
         "MIN:MAX",                                                                      \
         NULL,                                                                           \
         "add and remove engines by KV use and queue",                                   \
         NULL},                                                                          \
        {"autoscale-startup-s", CLI_VALUE, "S", "60", "until a new one serves", NULL},   \
        {"autoscale-interval-s", CLI_VALUE, "S", "10", "between two looks", NULL},       \
        {"autoscale-up", CLI_VALUE, "P", "0.8", "add above this KV use", NULL},          \
        {"autoscale-down", CLI_VALUE, "P", "0.4", "remove below this KV use", NULL},     \
        {"autoscale-up-window-s", CLI_VALUE, "S", "0", "it must last so long", NULL},    \
    {                                                                                    \
        "autoscale-down-window-s", CLI_VALUE, "S", "0", "it must last so long", NULL     \
    }

struct simulate_fleet {
    bool on; /* some flag asks for it */
    struct vt_fleet fleet;
    struct engine_job *kind; /* one for each --replica */
    uint32_t *count;         /* engines of that kind */
    size_t n_kinds, cap_kinds, cap_counts;
    struct vt_replica *replica;
    struct vt_replica_summary *summary;
    uint32_t n; /* of summaries */
    char *name; /* of all kinds together */
};

struct simulate_job;
/* Bad numbers are told before anything large is read. */
int simulate_fleet_check(const struct cli_args *a, struct vt_err *err) VT_MUST_CHECK;
/* Makes the job's spec one of a fleet if a flag asks for it. */
int simulate_fleet_open(struct simulate_job *j, const struct cli_args *a,
                        struct vt_err *err) VT_MUST_CHECK;
void simulate_fleet_close(struct simulate_fleet *f);
/* The run's summary and a row for each engine. */
void simulate_fleet_table(struct vt_buf *b, const struct simulate_fleet *f);
void simulate_json(struct vt_buf *b, const struct vt_summary *s,
                   const struct simulate_fleet *f);

/* ---- what to run (simulate_job.c) ------------------------------------- */

struct simulate_job {
    struct vt_workload workload;
    struct engine_job engine;
    const char *timed_by; /* the profile's name, or the text of --model */
    uint64_t seed;
    struct vt_summary measured; /* with --compare */
    struct simulate_fleet fleet;
    struct vt_sim_spec spec;
};

/* End *j with simulate_job_close() whatever happens. */
int simulate_job_open(struct simulate_job *j, const struct cli_args *a,
                      struct vt_err *err) VT_MUST_CHECK;
void simulate_job_close(struct simulate_job *j);

/* ---- where it goes (simulate_out.c) ----------------------------------- */

/* A report directory. Its files appear together at the end, or not at all. */
struct simulate_out; /* opaque */

int simulate_out_open(struct simulate_out **out, const char *dir,
                      const struct simulate_job *j, struct vt_err *err) VT_MUST_CHECK;
int simulate_out_request(struct simulate_out *o, const struct vt_served *s,
                         struct vt_err *err) VT_MUST_CHECK;
int simulate_out_step(struct simulate_out *o, const struct vt_step_line *s,
                      struct vt_err *err) VT_MUST_CHECK;
/* Frees o whatever happens. */
int simulate_out_commit(struct simulate_out *o, const struct vt_summary *s,
                        struct vt_err *err) VT_MUST_CHECK;
/* Takes back the files and the directories made for them. NULL is fine. */
void simulate_out_abandon(struct simulate_out *o);

/* ---- a line for the impatient (simulate_progress.c) ------------------- */

struct simulate_progress {
    bool on;        /* stderr is a terminal and wants it */
    bool shown;     /* something is there to erase */
    vt_ns shown_ns; /* wall clock */
};

void simulate_progress_show(struct simulate_progress *p, size_t finished, size_t total,
                            vt_ns now);
void simulate_progress_erase(struct simulate_progress *p);

#endif
