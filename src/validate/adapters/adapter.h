/* adapter.h - what adapters share; private to validate/adapters. */
#ifndef VT_VALIDATE_ADAPTER_H
#define VT_VALIDATE_ADAPTER_H

#include "model/model.h"
#include "validate/adapters/adapters.h"

/* ---- workload.c ------------------------------------------------------- */

struct adapter_work {
    struct vt_workload w;
    uint32_t *stage; /* of each request; heap */
    /* Of measured requests: which failed, so that they are in no latency; NULL: none.
     */
    const struct vt_truth_request *sent;
    vt_ns *patience;  /* as vt_sim_spec's; NULL, or heap */
    uint32_t longest; /* prompt and output together */
};
/* From measured requests, or from the profile, whose requests come as `arrivals` says.
 * VT_EINPUT: there is no such thing. */
int adapter_work_open(struct adapter_work *w, const struct vt_experiment *e,
                      enum vt_harness_workload which, enum adapter_arrivals arrivals,
                      struct vt_err *err) VT_MUST_CHECK;
int adapter_work_check(const struct vt_experiment *e, enum vt_harness_workload which,
                       struct vt_err *err) VT_MUST_CHECK;
void adapter_work_close(struct adapter_work *w);
/* One more request, and one more segment of the last one's prompt. */
int adapter_work_add(struct adapter_work *w, vt_ns at, uint32_t prompt, uint32_t output,
                     uint32_t stage, struct vt_err *err) VT_MUST_CHECK;
int adapter_work_segment(struct adapter_work *w, uint64_t content, uint32_t tokens,
                         struct vt_err *err) VT_MUST_CHECK;

/* ---- blis_arrivals.c --------------------------------------------------- */

/* The profile's requests when BLIS would send them; `early`: that of March 2026. The
 * rest of *w is open. */
int blis_arrivals_open(struct adapter_work *w, const struct vt_experiment *e,
                       bool early, struct vt_err *err) VT_MUST_CHECK;
/* A stage's duration, which is a whole number to BLIS. */
int64_t blis_seconds(const struct vt_stage_plan *p);
/* Arrivals up to a boundary belong to the stage before it; late ones to the last. */
uint32_t blis_stage_at(const struct vt_experiment *e, double s);

/* ---- timing.c: the latency model of an adapter -------------------------- */

struct adapter_timing {
    struct vt_profile profile;
    char learned[4096]; /* a file to remove; "": none */
};
int adapter_timing_check(const struct adapter_job *j, struct vt_err *err) VT_MUST_CHECK;
int adapter_timing_open(struct adapter_timing *t, const struct adapter_job *j,
                        struct vt_err *err) VT_MUST_CHECK;
void adapter_timing_close(struct adapter_timing *t);
/* A profile in the making: what is written between the two are its model's params. */
void adapter_profile_begin(struct vt_jw *w, struct vt_buf *b, const char *name,
                           const char *kind);
void adapter_profile_end(struct vt_jw *w);
/* The model's sizes: config.json beside the experiment, in --model-configs, or built
 * in. `name` (may be NULL) gets what vt_arch_load() took. */
int adapter_arch(struct vt_arch *arch, const struct adapter_job *j, struct vt_buf *name,
                 struct vt_err *err) VT_MUST_CHECK;
/* Makes what adapter_arch() took the folder of a config.json; false: it was none. */
bool adapter_config_folder(struct vt_buf *name);
/* Data-parallel ranks that its model takes as one engine; 1: replicas are engines. */
uint32_t adapter_ranks(const struct adapter_job *j);
/* "A100-80GB" is "A100-80" to BLIS's tables. */
const char *adapter_gpu(const struct vt_experiment *e);

/* ---- estimate.c ---------------------------------------------------------- */

struct estimate_point { /* what a steady load of `concurrency` would see */
    double req_per_s, ttft_ms, itl_ms, e2e_ms;
};
/* Takes for each stage the point whose throughput is near enough its rate, and weighs
 * them by requests. */
int estimate_match(struct gather *g, const struct vt_experiment *e,
                   const struct estimate_point *p, size_t n,
                   struct vt_err *err) VT_MUST_CHECK;

/* ---- rows of the table ---------------------------------------------------------- */

adapter_check native_can_run,
    estimate_can_run; /* vtwin's models and BLIS's; a roofline */
adapter_run native_run, estimate_run;

enum { ADAPTER_PATH = 4200 }; /* of a file in a place */
adapter_check blis_can_run, vidur_can_run, aiconfigurator_can_run,
    llmservingsim_can_run, command_can_run;
adapter_run_in blis_run, vidur_run, aiconfigurator_run, llmservingsim_run, command_run;

#endif
