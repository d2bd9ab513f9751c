/* fit.h - what `vtwin fit` works on. */
#ifndef VT_CLI_FIT_H
#define VT_CLI_FIT_H

#include "cli/cli.h"
#include "fit/fit.h"

struct fit_options {
    const char *out, *hf_config, *gpu, *name, *description, *limits_of;
    struct opt_list otlp;
    enum vt_step_time step_time;
    uint32_t tp;
    int model; /* 0: the step model; others: 1 + enum vt_fit_baseline */
    bool no_cv, quiet, force;
    struct cli_files files;
};

struct fit_input { /* what belongs together: NAME.steps.jsonl and NAME.trace.jsonl */
    const char *base;
    const char *steps, *trace;
    struct vt_workload workload; /* kept for the cross-validation */
    bool loaded;
};

struct fit_job {
    struct vt_arena arena; /* of paths */
    struct fit_input *in;
    size_t n, cap;
    struct vt_otlp *otlp; /* NULL: none was asked for */
    struct vt_fit *fit;
    /* What clients saw of each capture of `fit`, in its order; NULL: not known.
     * Borrowed from the inputs and from otlp. */
    const struct vt_workload **seen;
    size_t n_seen, cap_seen;
    struct vt_fit_shape shape;
    struct vt_step_params params;
    struct vt_fit_quality quality;
    struct vt_buf model; /* as vt_fit_profile() takes it */
    struct vt_buf notes; /* lines about the captures */
    /* Captures left out and predicted, and predicted by what was fitted on them too;
     * calm: stalls are cut out. */
    struct fit_rows {
        struct vt_crossval_row *row, *calm;
        size_t n;
    } left_out, own;
    char refusal[512]; /* why no profile is to be written; "": it may be */
};

/* Finds, reads and adds every capture that the arguments name to j->fit. */
int fit_load(struct fit_job *j, const struct opt_args *a, struct vt_err *err);
void fit_free(struct fit_job *j); /* frees contents, not j */

void fit_progress(const struct fit_options *o, const char *what, size_t i, size_t n);

#endif
