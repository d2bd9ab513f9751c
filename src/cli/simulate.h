/* simulate.h - the parts of `vtwin simulate`; private to cli. */
#ifndef VT_CLI_SIMULATE_H
#define VT_CLI_SIMULATE_H

#include "cli/cli.h"
#include "cli/engine_job.h"
#include "sim/sim.h"

/* ---- what to run (simulate_job.c) ------------------------------------- */

struct simulate_job {
    struct vt_workload workload;
    struct engine_job engine;
    const char *timed_by; /* the profile's name, or the text of --model */
    uint64_t seed;
    struct vt_summary measured; /* with --compare */
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
