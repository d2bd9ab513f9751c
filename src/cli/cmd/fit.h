/* fit.h - what `vtwin fit` works on. */
#ifndef VT_CLI_FIT_H
#define VT_CLI_FIT_H

#include "cli/cli.h"
#include "fit/fit.h"

struct fit_options {
    const char *out, *hf_config, *gpu, *hw, *name, *description, *limits_of;
    struct opt_list otlp;
    enum vt_step_time step_time;
    uint32_t tp;
    enum fit_what { FIT_STEP, FIT_BLACKBOX, FIT_KNOB, FIT_REGRESSION } model;
    const char *alpha_csv, *beta_csv, *alpha_terms, *beta_terms;
    enum vt_learner learner;
    uint32_t degree, warmup;
    double lambda; /* 0: to be found */
    double hold_out;
    bool no_cv, quiet, progress, force;
    struct cli_files files;
};

struct fit_input { /* one capture: a trace or a load of a report, a step log, or both */
    const char *path; /* of the file that came first */
    const char *name; /* of the capture: the file's, without what it says of its kind */
    enum fit_kind { FIT_TRACE, FIT_REPORT, FIT_STEPS, FIT_STATS } kind;
    bool asked;              /* its file was named, not found */
    struct vt_workload work; /* n == 0: none */
    struct vt_steps steps;   /* n == 0: none */
    bool gone;               /* it became part of another, or was left out */
};

struct fit_inputs {
    struct vt_arena arena; /* of paths and names */
    struct fit_input *in;
    size_t n, cap;
    const char **spans; /* OpenTelemetry files */
    size_t n_spans, cap_spans;
    struct vt_buf notes; /* lines about what was left out */
    const char *useless; /* what a file was that is of no use; NULL: there was none */
};

/* Reads every file that the operands name, and of directories all that is of use, by
 * content and not by name. Step logs are put to their traces, and of files that tell of
 * the same requests the best is kept. What was named and cannot be used is an error. */
int fit_find(struct fit_inputs *f, const struct opt_args *a, struct vt_err *err);
void fit_inputs_free(struct fit_inputs *f); /* frees contents, not f */

struct fit_job {
    struct fit_inputs inputs; /* kept for the cross-validation */
    struct vt_otlp *otlp;     /* NULL: there are no spans */
    struct vt_fit *fit;
    /* What clients saw of each capture of `fit`, in its order; NULL: not known.
     * Borrowed from the inputs and from otlp. */
    const struct vt_workload **seen;
    size_t n_seen, cap_seen;
    /* No capture shows steps, or the times of tokens where they left the engine: then
     * the model is found by simulation. Of single tokens nothing is known at all. */
    bool by_simulation, ends_only;
    struct vt_fit_shape shape;
    struct vt_step_params params;
    struct vt_fit_quality quality;
    struct vt_match *match; /* NULL: the model was not found by simulation */
    struct vt_match_result matched;
    struct vt_regress_data *data; /* NULL: nobody asked for it; n_data captures */
    size_t n_data;
    struct vt_regress regress[VT_REGRESS_TARGETS];
    bool regressed[VT_REGRESS_TARGETS];
    struct vt_fit_link link;
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

/* ---- by regression (fit_regress.c) ------------------------------------- */

/* What it runs on, by flags or else by what a capture says, which may be NULL. */
struct fit_engine {
    const char *model, *gpu; /* NULL: not known */
    uint32_t tp;
};
static inline struct fit_engine fit_engine_of(const struct fit_options *o,
                                              const struct vt_meta *m)
{
    return (struct fit_engine){
        .model = o->hf_config ? o->hf_config
                 : m          ? m->model
                              : NULL,
        .gpu = o->gpu ? o->gpu
               : m    ? m->gpu
                      : NULL,
        .tp = o->tp > 1 || !m || m->tp == 0 ? o->tp : m->tp,
    };
}

/* One more capture; steps, w and spans may be NULL, as may be the path of its file. */
int fit_regress_add(struct fit_job *j, const struct fit_options *o, const char *name,
                    const char *path, const struct vt_steps *steps,
                    const struct vt_workload *w, const struct vt_otlp_capture *spans,
                    struct vt_err *err);
int fit_regress(struct fit_job *j, const struct fit_options *o, struct vt_err *err);
/* Coefficients, scores, and formulas beside what was measured. */
int fit_regress_put(struct vt_buf *b, const struct fit_job *j, struct vt_err *err);
void fit_regress_learned(struct vt_buf *b, const struct fit_job *j);
/* Writes the data sets that were asked for. */
int fit_regress_csv(const struct fit_job *j, const struct fit_options *o,
                    struct vt_err *err);

/* ---- the link to the host (fit_link.c) ---------------------------------- */

/* By transfers that spans told of, into j->link; what speaks against it is VT_ECHECK.
 */
int fit_link(struct fit_job *j, const struct fit_options *o, struct vt_err *err);
void fit_link_put(struct vt_buf *b, const struct fit_job *j);
/* What a profile is to state; NULL: nothing. */
const struct vt_offload *fit_link_found(const struct fit_job *j, struct vt_offload *to);

void fit_progress(const struct fit_options *o, const char *what, size_t i, size_t n);

/* Captures of one model, and what they say that they ran on. */
struct fit_model {
    struct fit_job job; /* end it with fit_free() whatever happens */
    struct vt_arch arch, draft;
    struct vt_gpu gpu;
    struct vt_estimate_query q; /* points into this struct */
};
/* A file, or a directory with the model's config.json (and draft-config.json) or
 * without: then the captures must name a known model. */
int fit_model_open(struct fit_model *m, const char *path, struct vt_err *err);

struct model_options { /* of `vtwin model` */
    bool json, quiet;
    const char *out, *judged;
};
/* How fast the host was that captures in a file or directory were taken on, as a factor
 * of the hosts that estimates are made from. */
int fit_host_speed(const char *path, double *speed, struct vt_err *err);
int model_learn(const struct opt_args *a, struct vt_err *err);

#endif
