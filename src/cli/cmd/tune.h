/* tune.h - a search's flags and its report; private to cmd. */
#ifndef VT_CLI_TUNE_H
#define VT_CLI_TUNE_H

#include "cli/cmd/engine.h"
#include "cli/cmd/trial.h"

struct tune_options {
    const char *plan, *out, *report, *auto_tune;
    struct opt_numbers
        axis[VT_TUNE_AXES]; /* what is searched over; see tune_axis_rows */
    const char *routing;    /* that axis' values, ';' between them */
    enum vt_tune_goal goal;
    enum vt_tune_search search;
    vt_ns staleness_ns;
    const char *restart;
    vt_ns ready_timeout_ns;
    struct trial_options trial;
    struct engine_options engine;
};
/* In the order of the axes of vt_tune_space. They hide the engine's flags of the same
 * names, which hold one value. */
extern const struct opt_row tune_axis_rows[];

/* Everything that a search needs. */
struct tune_job {
    struct vt_tune_spec spec;
    struct engine_job engine;
    struct vt_estimate_query estimate; /* of an engine that nobody measured */
    struct traffic traffic;
    struct target_job target;
    struct vt_arena arena;
};
/* End *j with tune_job_close() whatever happens. */
int tune_job_open(struct tune_job *j, const struct opt_args *a,
                  struct vt_err *err) VT_MUST_CHECK;
void tune_job_close(struct tune_job *j);

int tune_report(const struct tune_job *j, const struct vt_tune_result *r,
                const struct opt_args *a, struct vt_err *err) VT_MUST_CHECK;
/* A search and a plan as pages (tune_page.c): all but their ends. recommended: the
 * command line; "": none. */
int tune_page(struct vt_buf *b, const struct opt_args *a, const struct tune_job *j,
              const struct vt_tune_result *r, const char *recommended,
              struct vt_err *err) VT_MUST_CHECK;
int tune_plan_page(struct vt_buf *b, const struct opt_args *a,
                   const struct vt_tuning_plan *p, const struct vt_tuning_result *r,
                   struct vt_err *err) VT_MUST_CHECK;
/* Face of opt_command.rewrite: --auto-tune, from a file of variables or the
 * environment, as the flags that say the same. */
opt_rewriter auto_tune_rewrite;
/* vtwin tune --plan. */
int tune_plan(const struct opt_args *a, struct vt_err *err) VT_MUST_CHECK;

#endif
