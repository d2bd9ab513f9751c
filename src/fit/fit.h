/* fit.h - observations to the step model's parameters.
 *
 * What can be read off a log is read off: the host's costs. The rest is found by
 * replaying the logged steps through the pipeline of core/engine.c with the model's own
 * cost function and comparing when results came, over short windows between steps that
 * hide nothing: single gaps mislead, because with two steps in flight a long launch
 * shows in the gap of the step before it. */
#ifndef VT_FIT_H
#define VT_FIT_H

#include "base/base.h"
#include "core/core.h"
#include "model/model.h"
#include "trace/trace.h"

struct vt_fit; /* opaque: collects captures */

/* What is known of the model and the GPU beforehand; 0: not known. Times are in
 * microseconds: what memory bandwidth and arithmetic allow. */
struct vt_fit_shape {
    double experts, experts_per_token; /* of a mixture */
    double graph_limit;                /* as vt_arch_graph_limit() */
    struct vt_arch_reads reads;
    double context_us; /* reading 1,000 tokens of KV cache */
    double expert_us;  /* reading all experts' weights */
    double token_us;   /* arithmetic of one token without attention */
    double fill_us;    /* of a row that fills up a tile; 0: kernels have none to fill */
    double depth_us;   /* attention of 1,000 tokens to 1,000 others */
};

int vt_fit_new(struct vt_fit **out, const struct vt_fit_shape *shape,
               struct vt_err *err) VT_MUST_CHECK;
void vt_fit_free(struct vt_fit *f); /* NULL is fine */

/* One capture: a step log, its trace, or both (either may be NULL, not both). The log
 * is what is fitted; without one the steps are rebuilt from the trace's token times. A
 * trace that knows no more than the ends of requests has no steps, and nothing is
 * learned from it here: vt_match does.
 * The trace gives the engine's limits and what clients did. Everything is copied. */
int vt_fit_add(struct vt_fit *f, const char *name, const struct vt_steps *steps,
               const struct vt_workload *trace, struct vt_err *err) VT_MUST_CHECK;

const char *vt_fit_name(const struct vt_fit *f, size_t i);

/* Transfers between GPU and host that were told of while capture i ran: what is not the
 * end of one, with its beginning, is passed over. Once for each capture. */
int vt_fit_moves(struct vt_fit *f, size_t i, const struct vt_otlp_kv *kv, size_t n,
                 struct vt_err *err) VT_MUST_CHECK;

/* The link that they went over, by all captures together. */
struct vt_fit_link {
    size_t n[2];             /* transfers: loads, stores */
    double gbs[2];           /* 1e9 bytes a second of each way; 0: it does not show */
    double setup_us, duplex; /* as struct vt_offload has them; duplex 0: the same */
    double error[2];         /* median size of a transfer's, share */
};
/* block_bytes: what a block takes on one GPU. Nothing is found where transfers are few,
 * all of one size, or on no line. */
int vt_fit_link(struct vt_fit_link *out, const struct vt_fit *f, double block_bytes,
                struct vt_err *err) VT_MUST_CHECK;

#define VT_FIT_ALL SIZE_MAX

/* What a capture held, once something was solved. Stalls are first uses of a kernel, a
 * host that was busy elsewhere: nothing is learned from them. */
struct vt_fit_look {
    const char *name; /* borrowed */
    size_t steps, stalls;
    size_t requests; /* of its trace; 0: there is none */
    double seconds, stall_seconds;
    bool odd; /* it contradicts the others, and was left out */
};
size_t vt_fit_count(const struct vt_fit *f);
struct vt_fit_look vt_fit_look(const struct vt_fit *f, size_t i);

struct vt_fit_quality {
    size_t windows;
    uint64_t steps;
    double median_error; /* of a window's duration, share */
    double bias;         /* mean of its logarithm */
    size_t stalls;       /* left out */
    double stall_share;  /* of the captures' time */
};

/* Fits on all captures but `left_out` (VT_FIT_ALL: on all). quality may be NULL. */
int vt_fit_solve(struct vt_fit *f, size_t left_out, struct vt_step_params *out,
                 struct vt_fit_quality *quality, struct vt_err *err) VT_MUST_CHECK;

/* Simpler models of the same captures, to compare with: α and β of BLIS's blackbox by
 * least squares over the same windows, or constant knobs. Appends the model as a JSON
 * object {"kind", "params"}. */
enum vt_fit_baseline { VT_FIT_BLACKBOX, VT_FIT_KNOB };
int vt_fit_baseline(const struct vt_fit *f, size_t left_out, enum vt_fit_baseline kind,
                    struct vt_buf *model, struct vt_err *err) VT_MUST_CHECK;

/* The step model as such an object. */
void vt_fit_step_model(struct vt_buf *model, const struct vt_step_params *p);

/* ---- what captures agree on, and which of them to believe --------------- */

/* The engine that a profile of these captures is of. Where they differ, most of them
 * are right, and a line in *notes names the others; `from` names the capture that is
 * right instead, or is NULL. VT_EINPUT: there are not most, or no capture `from`. */
int vt_fit_agree(struct vt_fit *f, const char *from, struct vt_buf *notes,
                 struct vt_err *err) VT_MUST_CHECK;
/* What they agree on; of the first before vt_fit_agree(). Borrowed. */
const struct vt_meta *vt_fit_engine(const struct vt_fit *f);

/* Finds captures whose times contradict all others (another machine, another speed) by
 * leaving each out in turn. Nothing is learned from them any more, and a line in *notes
 * names them. Three captures are the fewest that can outvote one. */
int vt_fit_sort_out(struct vt_fit *f, struct vt_buf *notes,
                    struct vt_err *err) VT_MUST_CHECK;

/* What no GPU of that kind can undercut, in microseconds; 0: not known. */
struct vt_fit_physics {
    const char *gpu;
    double weights_us; /* reading what one token meets of the weights */
    double token_us;   /* arithmetic of a token */
};
/* VT_ECHECK: a capture, which the message names, is faster than that. */
int vt_fit_check_captures(struct vt_fit *f, const struct vt_fit_physics *least,
                          struct vt_err *err) VT_MUST_CHECK;
/* VT_ECHECK: no engine has such costs; the message names the capture that is to blame,
 * and the number. */
int vt_fit_check_params(struct vt_fit *f, const struct vt_step_params *p,
                        struct vt_err *err) VT_MUST_CHECK;
/* Lines about what captures so few or so alike can't tell. */
void vt_fit_thin(const struct vt_fit *f, struct vt_buf *notes);

/* ---- writing it down --------------------------------------------------- */

struct vt_crossval_row;

/* A profile as JSON text around a model. Strings and pointers may be NULL, and so may
 * q. */
struct vt_fit_about {
    const char *name, *description, *gpu, *model;
    const struct vt_arch
        *arch; /* the model's, for what its layers keep; NULL: unknown */
    uint32_t num_gpu_blocks, block_size, max_num_seqs; /* 0: as the captures agree */
    /* Medians of the errors' sizes, with stalls cut out: of captures that it was fitted
     * on, and of captures left out. */
    const struct vt_crossval_row *in_sample, *out_of_sample;
    const struct vt_crossval_row *expected; /* by vt_crossval_expect() */
    const char *forced;                     /* why it should not have been written */
    const char *notes;                      /* lines for people about the captures */
    const char *made_by;                    /* NULL: vtwin fit */
    const char *learned;                    /* a JSON object for its provenance */
    const struct vt_offload *link;          /* to the host; NULL: not known */
    enum vt_clock clock;     /* whose times the model's are; unstated: the engine's */
    double pause_us;         /* of a client, where they are a client's */
    double read_us, pass_us; /* of its frontend, as struct vt_front has them */
};
void vt_fit_profile(struct vt_buf *b, const struct vt_fit *f, const char *model,
                    const struct vt_fit_quality *q, const struct vt_fit_about *about);

/* ---- how well a fit predicts what it has not seen --------------------- */

struct vt_crossval_row { /* errors in percent, predicted over measured; NAN: such a
                          * time was not measured */
    const char *name;    /* borrowed from the fit */
    double e2e, ttft, ttft_p99, itl, itl_p99, throughput;
    /* Prompt tokens that were cached and of which the trace does not explain it, %:
     * beyond a few they were cached by what came before the capture, and it is
     * predicted with the hits that it recorded. Below 0: they were not, though the
     * trace says that they should, and the prediction is of another load. */
    double foreign_hits;
    /* Requests of the capture that failed or were aborted before a token, %. They are
     * not in the prediction, which is of a lighter load then. */
    double unanswered;
    /* Limits that the trace does not state but what waited shows: it was predicted with
     * these; 0: none. */
    uint32_t found_seqs, found_blocks;
    uint32_t block_size; /* of its engine */
};
#define VT_FOREIGN_HITS 5.0
#define VT_UNANSWERED   5.0
double vt_unanswered_percent(const struct vt_workload *w);

double vt_crossval_at(const struct vt_crossval_row *r, enum vt_trust i);
/* All six of a prediction; what is not measured is 0. */
struct vt_summary;
void vt_crossval_fill(struct vt_crossval_row *row, const struct vt_summary *predicted,
                      const struct vt_summary *measured);
/* Fits without capture i, simulates its trace and compares. The engine is as the
 * trace's meta line states it. calm: the same with the capture's stalls cut out of its
 * time, as if the clocks had stood; no model is to foresee them. It may be NULL. */
int vt_crossval_one(struct vt_fit *f, size_t i, const struct vt_workload *trace,
                    struct vt_crossval_row *row, struct vt_crossval_row *calm,
                    struct vt_err *err) VT_MUST_CHECK;
/* The same for a model that was fitted on it, as vt_fit_profile() takes it. */
int vt_crossval_in_sample(struct vt_fit *f, size_t i, const char *model,
                          const struct vt_workload *trace, struct vt_crossval_row *row,
                          struct vt_crossval_row *calm,
                          struct vt_err *err) VT_MUST_CHECK;
/* A table's first line, and a row of it; the names get `width` columns. */
void vt_crossval_head(struct vt_buf *b, int width);
void vt_crossval_put(struct vt_buf *b, int width, const struct vt_crossval_row *row,
                     const char *note);
/* Whether errors of that size are beyond what can be trusted; *why: a sentence. */
bool vt_crossval_bad(const struct vt_crossval_row *median, char *why, size_t cap);
/* Medians of the errors' sizes, and means of the errors. */
void vt_crossval_sum(const struct vt_crossval_row *row, size_t n,
                     struct vt_crossval_row *median, struct vt_crossval_row *mean);
/* What a prediction of one more capture is expected to be off by: its error is less in
 * four of five cases. NAN: too few were judged to say so. */
void vt_crossval_expect(const struct vt_crossval_row *row, size_t n,
                        struct vt_crossval_row *expected);
/* The same of the sizes of n errors, however few; sorts them. NAN: there are none. */
double vt_covering(double *v, size_t n);

/* ---- regression over traced steps and requests --------------------------- */

/* Three latencies are regressed on what was known when they began: how long a request
 * waited to be scheduled, how long it took into the queue, how long a step took. */
enum vt_regress_target {
    VT_REGRESS_QUEUE,  /* QUEUED to SCHEDULED: alpha */
    VT_REGRESS_ARRIVE, /* ARRIVED over HANDOFF to QUEUED */
    VT_REGRESS_STEP,   /* beta */
    VT_REGRESS_TARGETS
};
extern const char *const vt_regress_names[VT_REGRESS_TARGETS];

/* Why a row is not learned from, as docs/otlp.md states the rules. */
enum vt_regress_rule {
    VT_ROW_KEPT,
    VT_ROW_WARMUP,
    VT_ROW_PREEMPTION,
    VT_ROW_STALL,
    VT_ROW_ABORTED,
    VT_ROW_RULES
};
extern const char *const vt_rule_names[VT_ROW_RULES];

struct vt_regress_data; /* opaque */

/* What a capture ran on, as far as it is known; strings are copied. */
struct vt_regress_engine {
    const char *model, *gpu;    /* names; NULL: not known */
    const struct vt_arch *arch; /* NULL: not known, as below */
    const struct vt_gpu *hardware;
    uint32_t tp;
    uint32_t max_num_seqs, num_gpu_blocks; /* 0: not known */
};

/* warmup: steps at the beginning of each capture that are not learned from. */
int vt_regress_data_new(struct vt_regress_data **out, uint32_t warmup,
                        struct vt_err *err) VT_MUST_CHECK;
void vt_regress_data_free(struct vt_regress_data *d); /* NULL is fine */
/* A capture's steps (NULL: none), and what its spans tell of requests (NULL: nothing,
 * and then there are no rows of requests). Copies what it needs. */
int vt_regress_data_add(struct vt_regress_data *d, const char *name,
                        const struct vt_regress_engine *e, const struct vt_steps *steps,
                        const struct vt_otlp_capture *spans,
                        struct vt_err *err) VT_MUST_CHECK;
size_t vt_regress_data_rows(const struct vt_regress_data *d, enum vt_regress_target t);
/* Both data sets as CSV, one row for each request and for each step. */
void vt_regress_data_alpha_csv(const struct vt_regress_data *d, struct vt_buf *b);
void vt_regress_data_beta_csv(const struct vt_regress_data *d, struct vt_buf *b);

enum vt_learner {
    VT_LEARN_LINEAR,
    VT_LEARN_RIDGE,
    VT_LEARN_LASSO,
    VT_LEARN_NONNEGATIVE
};
extern const char *const vt_learner_names[]; /* end with NULL */

struct vt_regress_options {
    enum vt_learner learner;
    uint32_t degree;   /* powers of each single feature; 1: none */
    double lambda;     /* of ridge and lasso; NAN: found by cross-validation in time */
    double hold_out;   /* share of each capture's rows, the last ones; 0: none */
    const char *terms; /* "a,b^2,a*c"; NULL: as docs/otlp.md says */
};

enum vt_term_state {
    VT_TERM_USED,
    VT_TERM_CONSTANT,  /* the same in all rows */
    VT_TERM_EXPLAINED, /* by terms before it */
    VT_TERM_ZERO,      /* the learner does without */
};

struct vt_score { /* how well rows are predicted */
    size_t n;
    double r2, mae_us, mape; /* mape in percent, of rows of at least a microsecond */
};

struct vt_regress {
    enum vt_regress_target target;
    enum vt_learner learner;
    double lambda;
    struct vt_terms terms; /* in microseconds */
    double standard[VT_TERMS];
    uint8_t state[VT_TERMS]; /* enum vt_term_state */
    size_t rows, left_out[VT_ROW_RULES];
    double least_us;                     /* of all rows */
    struct vt_extent seen;               /* of steps */
    struct vt_score in_sample, held_out; /* held_out.n == 0: none was */
    struct vt_regress_group {            /* left out and predicted: */
        const char *kind;                /* a capture, a model, a GPU */
        const char *name;                /* borrowed from the data set */
        struct vt_score score;
    } *group;
    size_t n_groups;
};

/* VT_EINPUT: too few rows, or a term that is not known of the target. */
int vt_regress_solve(struct vt_regress *out, const struct vt_regress_data *d,
                     enum vt_regress_target t, const struct vt_regress_options *o,
                     struct vt_err *err) VT_MUST_CHECK;
void vt_regress_free(struct vt_regress *r); /* frees contents, not r */
double vt_regress_predict(const struct vt_regress *r, const double v[VT_FEATURES]);
/* Coefficients with units, and scores, for people. */
void vt_regress_put(struct vt_buf *b, const struct vt_regress *r);
/* The same as members of a JSON object. */
void vt_regress_json(struct vt_jw *w, const char *key, const struct vt_regress *r);
/* The model of kind regression; arrive may be NULL. d: where its engine's features are
 * read, of the first capture. */
void vt_regress_model(struct vt_buf *model, const struct vt_regress_data *d,
                      const struct vt_regress *step, const struct vt_regress *arrive);

/* Queue time, TTFT, ITL and E2E of a traced capture: measured, by the formulas
 * TTFT = alpha + prefill, ITL = beta of decode steps / tokens per step,
 * E2E = TTFT + (output - 1) * ITL, and simulated with the model. capture: its number in
 * the data set. Appends a table; queue and arrive may be NULL. */
struct vt_formulas {
    const struct vt_regress_data *data;
    const struct vt_regress *queue, *arrive, *step;
    const char *model; /* as vt_fit_profile() takes it */
};
int vt_formulas_put(struct vt_buf *b, const struct vt_formulas *f, size_t capture,
                    const struct vt_otlp_capture *c, struct vt_err *err) VT_MUST_CHECK;

/* ---- engines that nobody measured: the law's constants ------------------ */

struct vt_corpus; /* opaque: captures of several models */

int vt_corpus_new(struct vt_corpus **out, struct vt_err *err) VT_MUST_CHECK;
void vt_corpus_free(struct vt_corpus *c); /* NULL is fine */
/* A model's captures, and what they ran on. Borrows the fit and what q points at;
 * copies the name. */
int vt_corpus_add(struct vt_corpus *c, const char *name, struct vt_fit *f,
                  const struct vt_estimate_query *q, struct vt_err *err) VT_MUST_CHECK;
/* Learns from all models but number `without` and those that are the same with other
 * settings (VT_FIT_ALL: from all). from: where to start, or NULL. */
int vt_corpus_learn(struct vt_corpus *c, size_t without, const struct vt_law *from,
                    struct vt_law *out, struct vt_err *err) VT_MUST_CHECK;
/* The fit of model i's own captures. */
const struct vt_step_params *vt_corpus_own(const struct vt_corpus *c, size_t i);
/* Whether they are one model, with other settings perhaps. */
bool vt_corpus_same(const struct vt_corpus *c, size_t i, size_t k);
/* How much slower than the law's the host of model i launched, when it was learned. */
double vt_corpus_host(const struct vt_corpus *c, size_t i);

/* How much slower than the law's the host was that a model's captures were taken on,
 * by its launches; everything else is the law's, or the captures' own fit. */
int vt_law_host(const struct vt_law *law, struct vt_fit *f,
                const struct vt_estimate_query *q, double *slower,
                struct vt_err *err) VT_MUST_CHECK;

/* ---- without a step log: by simulation --------------------------------- */

/* What a client saw of several loads on one server becomes a model: of each kind in
 * turn the few numbers are found with which simulated TTFT, ITL and E2E come out as
 * measured over all loads at once, and the kind stays that best predicts loads it was
 * not fitted on. Nothing here needs times of single tokens: first and last of each
 * request will do.
 */
struct vt_match; /* opaque: the loads */

/* Copies the shape; all zero where nothing is known. The caller owns *out. */
int vt_match_new(struct vt_match **out, const struct vt_fit_shape *shape,
                 struct vt_err *err) VT_MUST_CHECK;
void vt_match_free(struct vt_match *m); /* NULL is fine */

/* One load with measured times, replayed the way it was made (its `arrivals` and
 * `concurrency`) on an engine with the limits of its meta. Borrows the workload, which
 * must outlive m; copies the name. VT_EINPUT: it has no times. */
int vt_match_add(struct vt_match *m, const char *name, const struct vt_workload *w,
                 struct vt_err *err) VT_MUST_CHECK;

struct vt_match_options { /* all zero: as it should be */
    const char *kind;     /* this kind of model only; NULL: the best of all */
    bool no_cv;           /* no load is left out: out-of-sample errors stay 0 */
    /* For a progress line, now and then: i of n are done. */
    void (*tell)(void *user, const char *what, size_t i, size_t n);
    void *user;
};

struct vt_match_load {          /* parallel to the loads as they were added */
    struct vt_crossval_row in;  /* simulated with what was fitted on all loads, */
    struct vt_crossval_row out; /* and on all others */
    bool odd;          /* left out: it contradicts the others, or has too many */
    double unanswered; /* requests that failed or were aborted, % */
    bool waited;       /* requests did, for seats or for room in the KV cache */
    size_t stalled; /* requests left out: they took far longer than their like, or got
                     * their first token far sooner than their prompt takes */
};

struct vt_match_result {
    const char *kind;    /* of the model; static */
    struct vt_buf model; /* {"kind", "params"}, as vt_fit_profile() takes it */
    /* Found by what waited, where no load states it; 0: not. */
    uint32_t max_num_seqs, num_gpu_blocks;
    uint32_t block_size;     /* of those blocks */
    enum vt_clock clock;     /* of all loads; unstated: they differ, or do not say */
    double pause_us;         /* of closed loops' clients, by that clock */
    double read_us, pass_us; /* of a frontend that reads bursts first; 0: it does not */
    struct vt_match_load *load; /* names are borrowed from the match */
    size_t n;
    struct vt_crossval_row in,
        out;           /* medians of the errors' sizes, without odd loads */
    char refusal[256]; /* why it must not be trusted; "": it may be */
};

/* Refuses by r->refusal and not by its code, so that a caller may look at what it
 * refuses: vt_match_check() makes an error of it. Fills *r, which the caller frees. */
int vt_match_solve(struct vt_match *m, const struct vt_match_options *o,
                   struct vt_match_result *r, struct vt_err *err) VT_MUST_CHECK;
int vt_match_check(const struct vt_match_result *r, struct vt_err *err) VT_MUST_CHECK;
void vt_match_result_free(struct vt_match_result *r); /* frees contents, not r */

#endif
