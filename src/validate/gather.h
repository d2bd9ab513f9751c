/* gather.h - requests to the nine metrics of each stage and of all; measured and
 * predicted ones alike. Private to validate. */
#ifndef VT_VALIDATE_GATHER_H
#define VT_VALIDATE_GATHER_H

#include "report/report.h"
#include "validate/validate.h"
#include "validate/values.h"

struct gather_request {
    uint32_t stage;
    double ttft_ms, e2e_ms; /* ttft NAN: not known */
    double itl_ms;          /* mean gap, where gaps are not known; 0: from the others */
    uint32_t output_tokens;
    const vt_ns *gap; /* NULL: none are known; borrowed */
    uint32_t n_gaps;
};

struct gather_part {
    struct values ttft, e2e, gap; /* in ms */
    double decode_ms;             /* after first tokens, */
    double decoded;               /* and how many tokens came then */
    uint64_t requests, left_out;
};

struct gather {
    struct gather_part *part;                /* of each stage, then of all; heap */
    struct vt_stage_metrics *stage, summary; /* stage: heap; set by gather_finish() */
    size_t n_stages;
    struct vt_extent extent, known; /* as vt_adapter_run's, */
    struct vt_basis basis;          /* and this */
};

/* As many stages as the experiment's profile has. End it with gather_close() whatever
 * happens. */
int gather_open(struct gather *g, const struct vt_experiment *e,
                struct vt_err *err) VT_MUST_CHECK;
int gather_add(struct gather *g, const struct gather_request *r,
               struct vt_err *err) VT_MUST_CHECK;
/* One that failed, there or here: it was sent, and is in no latency. */
void gather_leave_out(struct gather *g, uint32_t stage);
/* But BLIS has the first token of such a one among those of the whole run. */
int gather_first_token(struct gather *g, double ttft_ms,
                       struct vt_err *err) VT_MUST_CHECK;
int gather_finish(struct gather *g, struct vt_err *err) VT_MUST_CHECK;
void gather_close(struct gather *g);

/* Requests that an experiment's profile plans. */
uint64_t gather_planned(const struct vt_experiment *e);
/* The stage that is on so many seconds after the start; what comes later is the last
 * one's. */
uint32_t gather_stage_at(const struct vt_experiment *e, double s);

#endif
