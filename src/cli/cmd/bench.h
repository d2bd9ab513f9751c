/* bench.h - what the subcommands of vtwin bench share; private to cmd. */
#ifndef VT_CLI_BENCH_H
#define VT_CLI_BENCH_H

#include "cli/cli.h"
#include "cli/cmd/compare.h"
#include "cli/cmd/limits.h"
#include "cli/cmd/traffic.h"
#include "load/load.h"
#include "text/text.h"

enum { BENCH_SAMPLING = 7 };

struct bench_options {
    /* Fields that flags fill. */
    struct vt_load_config c;
    struct vt_load_arrivals arrivals;
    struct vt_load_asks asks;
    struct vt_load_about about;
    /* where to */
    int backend;
    const char *host, *model, *served_model_name;
    uint32_t port, timeout_s;
    struct opt_list headers;
    /* what */
    int dataset;
    struct dataset_options what;
    uint32_t num_prompts;
    int64_t seed;
    bool skip_chat_template, self_timed;
    /* when */
    int ramp;
    uint32_t warmups, ready_timeout_s;
    /* how */
    const char *sampling[BENCH_SAMPLING]; /* in the order of bench_flags.c */
    const char *extra_body;
    int64_t logprobs;
    struct opt_list loras;
    int lora_assignment;
    /* what comes of it */
    struct opt_list goodput, metadata;
    struct limits_named slo;
    bool save_result, append_result, vllm_only, progress, disable_tqdm, dry_run;
    const char *result_dir, *result_filename, *trace_out, *lifecycle_out;
    const char *twin; /* flags of simulate; NULL: none */
    /* compare */
    struct compare_options compare;
    /* sweep */
    const char *rates, *concurrencies, *output_dir;
    double seconds;
    bool stop_when_saturated, reset_cache;
    struct cli_files files;
    /* of vLLM's, without effect */
    bool no_flag;
    const char *no_value;
};
extern const char *const bench_datasets[];
extern const struct opt_row bench_ignored_rows[];
opt_reader bench_read_sampling, bench_read_percentiles, bench_read_metrics;

/* What the flags of `bench serve` ask for: made once, run as often as wished. */
struct bench_job {
    struct vt_arena arena;
    const struct opt_args *args;
    const struct bench_options *o; /* of args */
    struct vt_load_config config;
    struct vt_load_plan plan;
    struct vt_load_arrivals arrivals;
    struct vt_load_asks asks;
    struct vt_load_about about;
    struct vt_tokenizer *tokenizer; /* owned */
    bool own_tokenizer;             /* it is the built-in one */
    bool asked_server;              /* false: --dry-run */
    struct vt_load_spec spec;       /* the server's counters before the run */
    struct bench_progress {
        bool on, shown;
        vt_ns at;
        uint64_t tokens;
    } progress;
};

/* Asks the server for what flags leave open, and makes the dataset. End *j with
 * bench_job_close() whatever happens. Needs cli_signals_catch() before. */
int bench_job_open(struct bench_job *j, const struct opt_args *a,
                   struct vt_err *err) VT_MUST_CHECK;
/* Ready check and warm-up, if the flags ask for them. */
int bench_job_warm(struct bench_job *j, struct vt_err *err) VT_MUST_CHECK;
/* Sends the plan at j->arrivals and j->config; *r and *s are to be zeroed, *r is the
 * caller's to free whatever happens. A stop by a signal is VT_OK: see
 * r->interrupted. */
int bench_job_run(struct bench_job *j, struct vt_load_records *r,
                  struct vt_load_summary *s, struct vt_err *err) VT_MUST_CHECK;
/* When sessions begin; `at` has room for all of the plan. A rate is that of requests,
 * every turn counted, as simulate has it: sessions begin less often. */
int bench_job_times(const struct bench_job *j, vt_ns *at,
                    struct vt_err *err) VT_MUST_CHECK;
/* Fails if no request succeeded although nobody stopped the run. */
int bench_job_check(const struct vt_load_records *r, const struct vt_load_summary *s,
                    struct vt_err *err) VT_MUST_CHECK;
/* The result of one run as --save-result has it, on one line. twin: its last member as
 * JSON; NULL: none. */
void bench_job_json(const struct bench_job *j, const struct vt_load_records *r,
                    const struct vt_load_summary *s, const struct vt_buf *twin,
                    struct vt_buf *b);
struct vt_load_origin bench_job_origin(const struct bench_job *j);
int bench_write_trace(const struct vt_load_records *r, const struct vt_load_origin *o,
                      const char *path, struct vt_err *err) VT_MUST_CHECK;
void bench_job_close(struct bench_job *j);

/* bench_page.c: a run's page; all of a sweep's but its end. */
int bench_page(const struct bench_job *j, const struct vt_load_records *r,
               const struct vt_load_summary *s, const char *path,
               struct vt_err *err) VT_MUST_CHECK;
int bench_sweep_page(struct vt_buf *b, const struct bench_job *j,
                     const struct vt_sweep *w, struct vt_err *err) VT_MUST_CHECK;

/* bench_flags.c: what flags say together. */
int bench_configure(struct bench_job *j, struct vt_err *err) VT_MUST_CHECK;
struct vt_load_data bench_data(const struct bench_job *j);
void bench_tell(const char *fmt, ...) VT_PRINTF(1, 2); /* a line on stderr */
/* bench_align.c: makes prompts have the length wanted by the server's own tokenizer. */
int bench_align(struct bench_job *j, struct vt_err *err) VT_MUST_CHECK;

/* bench_twin.c: whether --twin can be read, before anything is sent; and what the
 * engine that --twin describes would have made of the requests that were sent, when
 * they were sent. Appends a table, and one line of JSON. */
int bench_twin_check(const struct bench_job *j, struct vt_err *err) VT_MUST_CHECK;
int bench_twin(const struct bench_job *j, const struct vt_load_records *r,
               struct vt_buf *table, struct vt_buf *json,
               struct vt_err *err) VT_MUST_CHECK;

/* The subcommands; a->operand[0] is their name. */
opt_run bench_serve, bench_compare, bench_sweep;

#endif
