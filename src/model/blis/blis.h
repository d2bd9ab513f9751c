/* blis.h - what BLIS's four analytic models share: they price a step from the
 * model's sizes and the GPU's speed, with coefficients common to all models.
 *
 * Sizes are BLIS's reading of config.json, which is not always the truth: a head is
 * hidden / heads wide whatever head_dim says, an interleave step of s leaves every
 * (s+1)-th layer its experts, and leading dense layers are not told apart. */
#ifndef VT_MODEL_ANALYTIC_H
#define VT_MODEL_ANALYTIC_H

#include "model/params.h"

enum { MAX_BETAS = 11 };

/* What follows a0, the time from arrival to queue. */
enum alpha_kind {
    ALPHA_PROMPT, /* a1: each prompt token before the queue; a2: each output token */
    ALPHA_POST,   /* a1: after the last token; a2: each output token */
};

struct analytic_spec {
    enum alpha_kind alpha_kind;
    double alpha[3]; /* microseconds */
    double beta[MAX_BETAS];
    uint32_t n_beta, min_betas, max_betas; /* max 0: the model has none */
    bool dp;                               /* knows data parallelism */
    const char *also;                      /* one more parameter, or NULL */
};

struct analytic { /* head of each model's own struct */
    struct vt_latency head;
    const struct analytic_spec *spec;
    struct vt_arch arch;
    struct vt_gpu gpu;
    double tp, dp;
    double alpha[3];
    double beta[MAX_BETAS];
    uint32_t n_beta;

    /* BLIS's sizes */
    double l, d, h, dkv, heads; /* layers, widths of layer, head, all KV heads */
    double l_moe, l_dense, f_moe, f_dense, f_shared;
    double experts, k; /* 0 and 1 in a dense model */
    double element_bytes, weight_bytes;
    double flop_us, byte_us; /* peak of a microsecond; FP8's for one-byte weights */
};

/* Allocates `size` bytes that begin with a struct analytic and reads it. On failure
 * *out is NULL. */
int analytic_open(struct vt_latency **out, size_t size,
                  const struct vt_latency_ops *ops, const struct vt_node *params,
                  const struct analytic_spec *spec, struct vt_err *err);

/* KV blocks by vLLM's accounting with the engine's other limits; false if the
 * parameters name no model and GPU or nothing fits. */
bool analytic_blocks(const struct vt_node *params, const struct vt_engine_config *c,
                     uint32_t *blocks);

/* For the ops table. */
double analytic_arrival(const struct vt_latency *base, uint32_t prompt_tokens);

/* ---- the bases of the two trained models ------------------------------ */

/* Per token on one GPU. */
struct bases_unit {
    double projection_flop, attention_flop, ffn_flop; /* attention: also per context */
    double kv_bytes;
    double flop_us, byte_us;
};

struct bases { /* microseconds */
    double prefill_compute, prefill_kv;
    double decode_compute, decode_kv;
};

/* ffn_flop, flop_us and byte_us are the caller's to set. */
struct bases_unit bases_unit_of(const struct analytic *m);
struct bases bases_of(const struct bases_unit *u, const struct vt_step_plan *p);

#endif
