/* bench.h - what the subcommands of vtwin bench share; private to cli. */
#ifndef VT_CLI_BENCH_H
#define VT_CLI_BENCH_H

#include "cli/cli.h"
#include "load/load.h"
#include "text/text.h"

/* What the flags of `bench serve` ask for: made once, run as often as wished. */
struct bench_job {
    struct vt_arena arena;
    const struct cli_args *args;
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

/* Reads the flags, asks the server for what they leave open, and makes the dataset.
 * End *j with bench_job_close() whatever happens. Needs cli_signals_catch() before. */
int bench_job_open(struct bench_job *j, const struct cli_args *a,
                   struct vt_err *err) VT_MUST_CHECK;
/* Ready check and warm-up, if the flags ask for them. */
int bench_job_warm(struct bench_job *j, struct vt_err *err) VT_MUST_CHECK;
/* Sends the plan at j->arrivals and j->config; *r and *s are to be zeroed, *r is the
 * caller's to free whatever happens. A stop by a signal is VT_OK: see
 * r->interrupted. */
int bench_job_run(struct bench_job *j, struct vt_load_records *r,
                  struct vt_load_summary *s, struct vt_err *err) VT_MUST_CHECK;
/* The result of one run as --save-result has it, on one line. */
void bench_job_json(const struct bench_job *j, const struct vt_load_records *r,
                    const struct vt_load_summary *s, struct vt_buf *b);
void bench_job_close(struct bench_job *j);

/* bench_flags.c: what the flags say. */
extern const char *const bench_ignored[]; /* flags of vLLM without effect; ends NULL */
int bench_take_flags(struct bench_job *j, struct vt_err *err) VT_MUST_CHECK;
int bench_take_data(struct bench_job *j, struct vt_load_data *d,
                    struct vt_err *err) VT_MUST_CHECK;
int bench_take_multiturn(struct bench_job *j, struct vt_load_multiturn *m,
                         struct vt_err *err) VT_MUST_CHECK;
void bench_tell(const char *fmt, ...) VT_PRINTF(1, 2); /* a line on stderr */
char *bench_printf(struct bench_job *j, const char *fmt, ...)
    VT_PRINTF(2, 3); /* in the arena; NULL: out of memory */
/* bench_align.c: makes prompts have the length wanted by the server's own tokenizer. */
int bench_align(struct bench_job *j, struct vt_err *err) VT_MUST_CHECK;

/* The subcommands; a->operand[0] is their name. */
int bench_serve(const struct cli_args *a, struct vt_err *err);
int bench_compare(const struct cli_args *a, struct vt_err *err);
int bench_sweep(const struct cli_args *a, struct vt_err *err);

#endif
