/* validate.h - how true the twin is: simulators, ours and others', judged by what was
 * measured on real servers.
 *
 * Nothing here prints or reads the environment: whoever calls passes what it found
 * there. */
#ifndef VT_VALIDATE_H
#define VT_VALIDATE_H

#include "base/base.h"
#include "core/core.h"
#include "model/model.h"
#include "trace/trace.h"

/* ---- figures of error records ------------------------------------------ */

enum vt_drawn { VT_DRAWN_OK, VT_DRAWN_SKIPPED, VT_DRAWN_FAILED };

struct vt_validate_figures {    /* all borrowed */
    const char *results_dir;    /* has error_records.csv and runtime.csv */
    const char *output_dir;     /* is made if it is not there */
    const char *metadata;       /* CSV with more about experiments; NULL: none */
    const char *data_dir;       /* where experiments lie; NULL: where records say */
    const char *const *exclude; /* simulators that figures 1 to 4 leave out */
    size_t n_exclude;
    bool paper;          /* only what the paper shows: its hardware, models, workloads
                          * and simulators */
    const char *scratch; /* directory for temporary files */
    const char *report;  /* where the page goes, too; NULL: nowhere */
    /* Called for each figure, table and page: its file without ending, and why it was
     * not made, or what is left out of it. */
    void (*made)(void *user, const char *name, enum vt_drawn result, const char *why);
    void *user;
};
/* Draws all figures as PDF and PNG, and writes table1_runtime.tex and report.html.
 * *n_failed: those that could have been made and were not. */
int vt_validate_figures(const struct vt_validate_figures *job, size_t *n_failed,
                        struct vt_err *err) VT_MUST_CHECK;
/* The page alone, without the paper's figures. Nothing where there are no records. */
int vt_validate_page(const char *results_dir, const char *path,
                     struct vt_err *err) VT_MUST_CHECK;

/* ---- sim to real: what was measured --------------------------------------- */

/* e2e_mean, e2e_p90, e2e_p99, ttft_mean, ..., itl_p99. */
enum { VT_ERROR_METRICS = 9 };
extern const char *const vt_error_metric_names[]; /* end with NULL */

struct vt_stage_metrics { /* of one stage, measured or predicted */
    int32_t index;        /* -1: all stages together */
    double rate, duration_s;
    uint64_t requests;           /* that succeeded */
    uint64_t sent;               /* those and others; 0: not known */
    double ms[VT_ERROR_METRICS]; /* NAN: not known */
};

struct vt_stage_plan { /* of profile.yaml */
    double rate, duration_s;
    uint64_t requests; /* rate times duration, or fewer where they were cut */
};

struct vt_shared_prefix { /* of profile.yaml; as inference-perf names them */
    bool stated;          /* the three lengths are */
    uint32_t question_len, system_prompt_len, output_len;
    uint32_t num_unique_system_prompts, num_users_per_system_prompt;
    /* What the generator made of it, by its own report: so many prompts in all, asked
     * over and over. 0: not told, every question is new. */
    uint32_t num_groups, num_prompts_per_group;
    bool enable_multi_turn_chat;
    bool ignore_eos; /* engines were told to: outputs have all of output_len */
};

struct vt_truth_request {  /* one that was sent */
    double start_s, e2e_s; /* start: since the earliest */
    double ttft_s;         /* NAN: not known */
    uint32_t input_tokens, output_tokens;
    uint32_t stage;
    /* It was given up, or broke, after e2e_s: it kept the engine busy until then, and
     * is in no latency. */
    bool failed;
    uint32_t first_segment, n_segments; /* what is known of its prompt */
    size_t first_gap;
    uint32_t n_gaps; /* between tokens; 0: chunks were recorded, not tokens */
};

struct vt_experiment {  /* strings are in the arena, arrays on the heap */
    const char *folder; /* its directory */
    const char *model, *workload, *hardware, *precision;
    int64_t id;
    uint32_t tp, max_model_len, max_num_batched_tokens, max_num_seqs;
    uint32_t dp; /* 0: not stated */
    bool cpu_offload;
    double gpu_mem_util;
    uint64_t kv_tokens;
    uint32_t total_kv_blocks, cpu_kv_blocks;
    uint32_t kv_events_peak; /* blocks on the CPU by kv_events.jsonl; evictions are not
                              * told there, so that this is too many */
    struct vt_stage_plan *plan;
    size_t n_plan, cap_plan;
    struct vt_shared_prefix prefix;
    struct vt_stage_metrics *stage, summary; /* the truth */
    size_t n_stages, cap_stages;
    struct vt_truth_request *request; /* by start; NULL: no per_request file */
    size_t n_requests, cap_requests;
    struct vt_segment *segment;
    size_t n_segments, cap_segments;
    vt_ns *gap;
    size_t n_gaps, cap_gaps;
    size_t
        n_failed; /* requests; n_unknown: of those, so little is known that none is */
    size_t n_unknown;    /* above */
    const char *failure; /* of the first; NULL: none */
    double timeout_s;    /* after which clients give up; 0: not known to be so */
    bool timeout_stated; /* by the generator; else it is the least that was seen */
    bool token_times;    /* of every request: the truth has quantiles of ITL */
    bool simulated; /* by vtwin, and not measured: its workload's name says so, too */
    struct vt_arena arena;
};

struct vt_experiments {
    struct vt_experiment *e; /* by id, then folder */
    size_t n, cap;
    size_t found; /* directories, parsed or not */
};

struct vt_truth_options {  /* all borrowed */
    const char *metadata;  /* CSV with experiment_folder and what it adds; NULL */
    bool unsafe_too;       /* also what the manifest does not call safe */
    uint32_t max_requests; /* of an experiment; 0: all */
    bool dp_too;           /* also those with more than one replica */
    /* What was left out and why, what looks wrong: a line each. NULL: nobody. */
    void (*tell)(void *user, const char *line);
    void *user;
};

/* Finds and reads all experiments below a directory, or takes the one that `simulate
 * --out` left there for an experiment. What cannot be read is told and left out.
 * VT_EINPUT: the directory or its manifest cannot be read at all. */
int vt_experiments_load(struct vt_experiments *x, const char *data_dir,
                        const struct vt_truth_options *o,
                        struct vt_err *err) VT_MUST_CHECK;
/* One directory. `entry`: its row of the manifest; NULL: none. On failure nothing is
 * left to free. */
int vt_experiment_load(struct vt_experiment *e, const char *folder,
                       const struct vt_node *entry, const struct vt_truth_options *o,
                       struct vt_err *err) VT_MUST_CHECK;
void vt_experiment_free(struct vt_experiment *e);   /* frees contents, not e */
void vt_experiments_free(struct vt_experiments *x); /* frees contents, not x */

/* ---- sim to real: predictions and their errors ----------------------------- */

/* |p - a| / |a| in percent, signed, and |p - a|; 0 or an infinity where a is 0. */
double vt_error_mape(double predicted, double actual);
double vt_error_mpe(double predicted, double actual);

struct vt_error_record {
    const char *simulator; /* borrowed, as the next */
    const struct vt_experiment *experiment;
    int32_t stage_index;
    uint32_t metric;
    double predicted, actual, mape, mpe, absolute; /* times in ms */
};

enum vt_adapter_outcome { VT_ADAPTER_OK, VT_ADAPTER_SKIPPED, VT_ADAPTER_FAILED };
struct vt_adapter_run { /* one adapter on one experiment */
    const char *simulator;
    const struct vt_experiment *experiment;
    enum vt_adapter_outcome outcome;
    char why[512];     /* skipped or failed: the reason */
    double seconds;    /* of the whole run */
    uint64_t requests; /* predicted, */
    uint64_t
        failed; /* and others: they failed, measured or predicted, and are left out */
    struct vt_extent extent; /* of a simulation here: how far its steps went, */
    struct vt_extent known;  /* and what its model was made from */
    struct vt_basis basis;   /* and how far that is to be trusted */
};

struct vt_harness {
    struct vt_adapter_run *run; /* experiments, and adapters within each */
    size_t n_runs, cap_runs;
    struct vt_error_record *error; /* in the order of runs */
    size_t n_errors, cap_errors;
    size_t n_ok, n_skipped, n_failed;
    struct vt_arena arena; /* simulators' names, what they predict */
};

enum vt_harness_workload {
    VT_WORKLOAD_ADAPTER, /* vtwin's own replay requests, others the profile */
    VT_WORKLOAD_PROFILE,
    VT_WORKLOAD_TRACE
};

struct vt_harness_config {       /* all borrowed; NULL: not given */
    const char *const *adapters; /* names; end with NULL. NULL: all that are built in,
                                  * and external ones whose programs were given */
    const char *const *profiles; /* names or files; end with NULL */
    const char *model_configs;   /* directory of config.json files */
    const char *blis_binary, *vidur_dir, *llmservingsim_dir; /* absolute, as python */
    const char *python;          /* a program; runs vidur, aiconfigurator, ... */
    bool aiconfigurator;         /* python has it */
    const char *const *commands; /* "NAME=CMD ..."; end with NULL */
    char *const *environment;    /* of programs that are started */
    const char *scratch;         /* directory for temporary files */
    enum vt_harness_workload workload;
    /* Whose times step models predict, which know the engine's: what was measured is
     * the clients'. Unstated: the engine's. */
    enum vt_clock clock;
    uint32_t workers;                           /* as vt_jobs' */
    void (*tell)(void *user, const char *line); /* failures, mismatches */
    /* Runs that are over so far, as if there were no others: for who keeps them now,
     * since those to come may take hours. Good for this call. */
    void (*progress)(void *user, const struct vt_harness *so_far, size_t n);
    /* Changes what simulators in this program take over from an experiment: settings of
     * an engine, and how many engines there are. */
    void (*change)(void *user, struct vt_engine_config *engine, uint32_t *instances);
    void *user;
};

/* A line about each adapter that is built in. */
void vt_adapters_list(struct vt_buf *b);
/* VT_EINPUT for a name that is no adapter. */
int vt_adapter_check(const struct vt_harness_config *c, const char *name,
                     struct vt_err *err) VT_MUST_CHECK;

/* Runs all adapters on all experiments. One that fails is a row, not an error. */
int vt_harness_run(struct vt_harness *h, const struct vt_experiments *x,
                   const struct vt_harness_config *c, struct vt_err *err) VT_MUST_CHECK;
void vt_harness_free(struct vt_harness *h); /* frees contents, not h */

/* Errors of one prediction: stages by their index, then the summary. */
int vt_errors_add(struct vt_harness *h, const char *simulator,
                  const struct vt_experiment *e, const struct vt_stage_metrics *stage,
                  size_t n_stages, const struct vt_stage_metrics *summary,
                  struct vt_err *err) VT_MUST_CHECK;

/* error_records.csv and runtime.csv. */
void vt_harness_errors_csv(struct vt_buf *b, const struct vt_harness *h);
void vt_harness_runtime_csv(struct vt_buf *b, const struct vt_harness *h);
/* Tables; directory: where the files are told to be. */
int vt_harness_table(struct vt_buf *b, const struct vt_harness *h,
                     const char *directory, struct vt_err *err) VT_MUST_CHECK;
int vt_harness_json(struct vt_buf *b, const struct vt_harness *h,
                    struct vt_err *err) VT_MUST_CHECK;

#endif
