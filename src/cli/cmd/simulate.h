/* simulate.h - the parts of `vtwin simulate`, and fleets for capacity; private to cmd.
 */
#ifndef VT_CLI_SIMULATE_H
#define VT_CLI_SIMULATE_H

#include "cli/cmd/engine.h"
#include "cli/cmd/limits.h"
#include "cli/cmd/traffic.h"
#include "model/model.h"
#include "report/report.h"
#include "sim/sim.h"

/* ---- many engines (simulate_fleet.c) ----------------------------------- */

struct fleet_options {
    struct vt_fleet fleet;
    struct opt_list replica;
};
extern const struct opt_row fleet_rows[];

struct simulate_fleet {
    bool on; /* some flag asks for it */
    struct vt_fleet fleet;
    struct simulate_kind { /* one for each --replica */
        struct engine_job engine;
        uint32_t count; /* of such engines */
    } *kind;
    size_t n_kinds, cap_kinds;
    struct vt_replica *replica;
    struct vt_replica_summary *summary;
    uint32_t n;      /* of summaries */
    uint32_t dp;     /* ranks of a deployment, in lockstep or not */
    const char *why; /* that; NULL: the model says it */
    struct vt_ranks_totals lockstep;
    char *name;    /* of all kinds together */
    char link[96]; /* what was assumed of the way from prefills to decodes; "": nothing
                    */
    double link_gbs;
};

struct simulate_job;
/* What flags ask for together makes sense. */
int simulate_fleet_check(const struct opt_args *a, const struct engine_options *e,
                         const struct fleet_options *o,
                         struct vt_err *err) VT_MUST_CHECK;
/* Makes the job's spec one of a fleet if a flag asks for it. */
int simulate_fleet_open(struct simulate_job *j, const struct opt_args *a,
                        const struct engine_options *e, const struct fleet_options *o,
                        struct vt_err *err) VT_MUST_CHECK;
void simulate_fleet_close(struct simulate_fleet *f);
/* The run's summary and a row for each engine. */
void simulate_fleet_table(struct vt_buf *b, const struct simulate_fleet *f);
void simulate_json(struct vt_buf *b, const struct vt_summary *s,
                   const struct simulate_job *j);

/* ---- what to run (simulate_job.c) ------------------------------------- */

struct simulate_options {
    struct traffic_options traffic;
    const char *out, *report;
    int arrivals;
    uint32_t concurrency;
    int64_t seed, warmed_for; /* -1: the input's */
    bool json, compare, quiet, progress, charts;
    struct opt_list oracle, against;
    uint32_t seeds; /* runs of each side of `against` */
    struct limits_named slo;
    int clock, frontend; /* of vt_clock_names and vt_front_names; -1: not stated */
    enum vt_compat compat;
    struct engine_options engine;
    struct fleet_options fleet;
};

struct simulate_job {
    struct traffic traffic;
    struct vt_workload workload;
    struct engine_job engine;
    uint64_t seed;
    struct vt_summary measured; /* with --compare */
    struct simulate_fleet fleet;
    struct vt_sim_spec spec;  /* its clock is stated */
    struct vt_extent reached; /* by the run */
    struct vt_slo slo;        /* no limit where none was asked for */
    bool limited;             /* some was */
    uint64_t within;          /* requests that kept them */
    struct vt_buf charts;     /* JSON; empty: not asked for */
};

/* a: of cmd_simulate. End *j with simulate_job_close() whatever happens. */
int simulate_job_open(struct simulate_job *j, const struct opt_args *a,
                      struct vt_err *err) VT_MUST_CHECK;
void simulate_job_close(struct simulate_job *j);

/* ---- its page (simulate_page.c) ---------------------------------------- */

/* All of it but its end. run: what was collected on the way; measured: with --compare,
 * or NULL. */
int simulate_page(struct vt_buf *b, const struct opt_args *a,
                  const struct simulate_job *j, const struct vt_summary *s,
                  struct vt_run *run, struct vt_err *err) VT_MUST_CHECK;

/* Runs the job and, with --out or --report, leaves its report; *s gets all of its
 * summary. a: that the job was opened with. */
int simulate_run(struct simulate_job *j, const struct opt_args *a, struct vt_summary *s,
                 struct vt_err *err) VT_MUST_CHECK;

/* ---- side by side (simulate_against.c) -------------------------------------- */

/* The command line as it is, and with each --against over it. */
int simulate_against(const struct opt_args *a, struct vt_err *err) VT_MUST_CHECK;

/* ---- where it goes (simulate_out.c) ----------------------------------- */

/* A report directory. Its files appear together at the end, or not at all. */
struct simulate_out; /* opaque */

int simulate_out_open(struct simulate_out **out, const char *dir,
                      const struct simulate_job *j, struct vt_err *err) VT_MUST_CHECK;
int simulate_out_request(struct simulate_out *o, const struct vt_served *s,
                         struct vt_err *err) VT_MUST_CHECK;
int simulate_out_step(struct simulate_out *o, const struct vt_step_line *s,
                      struct vt_err *err) VT_MUST_CHECK;
/* Frees o whatever happens. page: report.html. */
int simulate_out_commit(struct simulate_out *o, const struct vt_summary *s,
                        const struct vt_buf *page, struct vt_err *err) VT_MUST_CHECK;
/* Takes back the files and the directories made for them. NULL is fine. */
void simulate_out_abandon(struct simulate_out *o);

#endif
