/* plan.h - which loads to send, and how large they are to be; private to learn. */
#ifndef VT_LEARN_PLAN_H
#define VT_LEARN_PLAN_H

#include "learn/learn.h"

/* What a look at the server tells, enough to size loads by. */
struct plan_rough {
    double itl_ms, ttft_ms; /* of one short stream */
    double token_us;        /* a prompt token */
    double decode_us;       /* each request more in a step */
};
/* A model of it, as --model takes it. */
void plan_rough_model(const struct plan_rough *r, char *text, size_t size);

struct plan_sizes {   /* what loads are cut to */
    double seconds;   /* of one load */
    uint32_t top;     /* most requests at once */
    uint32_t output;  /* tokens, on average */
    uint32_t prompt;  /* the longest of the usual ones */
    uint32_t longest; /* the longest of all */
    uint32_t pressed; /* prompts with which `top` requests overfill the pool; 0: that
                       * takes too long */
};
/* VT_ECHECK: in so little time nothing can be learned of a server as slow as this. */
int plan_sizes(struct plan_sizes *s, const struct plan_rough *r,
               const struct vt_meta *engine, const struct vt_learn_config *c,
               uint32_t top, struct vt_err *err) VT_MUST_CHECK;

/* A row of the plan. */
struct plan_row {
    const char *name, *about;
    enum vt_learn_part part;
    enum plan_how { PLAN_CLOSED, PLAN_POISSON, PLAN_RAMP, PLAN_BURST } how;
    /* Closed: the top's power; others: share of what a closed loop bears. */
    double level;
    enum plan_length { PLAN_USUAL, PLAN_OTHER, PLAN_LONG, PLAN_PRESSED } length;
    double shared; /* of requests: a prefix that others have too */
};
extern const struct plan_row plan_rows[];
extern const size_t plan_n_rows;
bool plan_has(const struct plan_row *p, const struct plan_sizes *s);

/* The spec of a row, as docs/workload.md has them: n requests, `rate` a second. */
void plan_spec(struct vt_buf *b, const struct plan_row *p, const struct plan_sizes *s,
               size_t n, double rate);
uint32_t plan_concurrency(const struct plan_row *p, const struct plan_sizes *s);

#endif
