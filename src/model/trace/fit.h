/* fit.h - what the trace model learns from records; private to model.
 *
 * The formulas are vllm-vcr's, so that a trace fitted there behaves the same here. All
 * times are milliseconds. */
#ifndef VT_MODEL_TRACE_FIT_H
#define VT_MODEL_TRACE_FIT_H

#include "model/model.h"
#include "trace/trace.h"

enum {
    TRACE_PROMPTS = 11,             /* buckets of prompt length */
    TRACE_LOADS = 8,                /* buckets of requests running */
    TRACE_ROWS = 2 * TRACE_PROMPTS, /* calm decoders, then those under churn */
};

struct trace_donor { /* one recorded request's own gaps */
    double *gap;     /* ascending */
    uint32_t n;
    double upto; /* weights of the cell's donors, summed up to this one */
};

struct trace_cell {
    struct trace_donor *donor;
    size_t n, cap;
};

struct trace_service { /* first-token times where no curve could be fitted */
    double *ms;        /* ascending */
    uint32_t n;
    double median_tokens;
};

struct trace_fit {
    struct vt_arena arena;
    uint32_t budget; /* tokens of a step */
    /* Time to first token of a lone request: max(floor, a + b u + c u^2). */
    bool has_curve;
    double a, b, c, floor;
    /* A prompt chunk of t tokens at depth d: c0 t + c1 ((d+t)^2 - d^2) / 2. */
    double chunk_token, chunk_depth;
    double full_step; /* least cost of a step filled to the budget by a prompt */
    struct trace_service service[TRACE_PROMPTS];
    struct trace_cell cell[TRACE_ROWS][TRACE_LOADS];
    const struct trace_cell *near[TRACE_ROWS][TRACE_LOADS]; /* with donors */
    bool has_churn; /* some donor decoded under churn */
};

uint32_t trace_prompt_bucket(uint32_t tokens);
uint32_t trace_load_bucket(uint32_t running);
double trace_chunk_cost(const struct trace_fit *f, double tokens, double depth);

/* Learns from all records of n sets. budget 0: what their meta lines state, else 8192.
 * End *f with trace_fit_free() whatever happens. */
int trace_fit_open(struct trace_fit *f, const struct vt_records *sets, size_t n,
                   uint32_t budget, struct vt_err *err);
void trace_fit_free(struct trace_fit *f);

/* Parts of it. */
int trace_fit_service(struct trace_fit *f, const struct vt_record *const *rec, size_t n,
                      struct vt_err *err);
int trace_fit_chunks(struct trace_fit *f, const struct vt_record *const *rec, size_t n,
                     struct vt_err *err);

#endif
