/* summary.h - private to load. */
#ifndef VT_LOAD_SUMMARY_H
#define VT_LOAD_SUMMARY_H

#include "load/load.h"

enum load_latency {
    LOAD_TTFT,
    LOAD_TPOT, /* of those with two tokens or more */
    LOAD_ITL,  /* every gap */
    LOAD_E2EL,
    LOAD_TTFT_PLANNED, /* as the rest: see struct vt_load_summary */
    LOAD_TTFT_SENT,
    LOAD_TEXT_SENT,
    LOAD_E2EL_PLANNED,
    LOAD_WAITED,
};

struct load_slice { /* of a run: requests that succeeded, */
    bool all_turns; /* else only those of this number in their sessions, */
    uint32_t turn;
    vt_ns from, to; /* begun within */
};

/* Room for every number that the next two collect; NULL: out of memory. */
double *load_room(const struct vt_load_records *r);
void load_spread(struct vt_load_dist *d, const struct vt_load_records *r,
                 const struct load_slice *s, const struct vt_load_asks *a,
                 enum load_latency what, double *v);

/* "mean_ttft_ms", "median_ttft_ms", "std_ttft_ms" and the percentiles asked for. */
void load_dist_json(struct vt_jw *w, const char *metric, const struct vt_load_dist *d,
                    const struct vt_load_asks *asks);

/* As it was planned; NULL: there is no plan, or it does not know the session. */
static inline const struct vt_load_session *
load_session_of(const struct vt_load_plan *p, const struct vt_load_record *q)
{
    return p && q->session < p->n ? &p->session[q->session] : NULL;
}

/* ---- when the tokens of one request came ------------------------------- */

struct stamps { /* borrowed from the record */
    const vt_ns *at;
    uint32_t n;
};
/* The events that brought tokens. */
struct stamps stamps_of(const struct vt_load_record *q, enum vt_load_backend backend);
/* Each of them brought one token or more. Otherwise there are more events than tokens,
 * and nobody knows which is which. */
bool stamps_are_tokens(const struct stamps *s, const struct vt_load_record *q);
/* Tokens of the i-th one, spread evenly: events do not say. */
uint32_t stamps_tokens(const struct stamps *s, const struct vt_load_record *q,
                       uint32_t i);

#endif
