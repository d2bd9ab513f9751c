/* pull.h - KV blocks on their way from other engines, on a time axis, and the leases of
 * those that others are to pull from here. Private to core. */
#ifndef VT_CORE_PULL_H
#define VT_CORE_PULL_H

#include "core/core.h"

struct pulls {
    struct pull_job {
        struct vt_kv_pulled is;
        double setup_ns, bytes; /* left */
        bool held;              /* until it is known whether anybody is there */
    } *job;
    size_t n, cap;
    double rate; /* bytes in a nanosecond; 0: no time is taken */
    double setup_ns;
    bool shares;
    uint64_t block_bytes;
    vt_ns now;
    struct vt_kv_pulled *done; /* by the time of their ends, not yet told of */
    size_t n_done, cap_done;
    struct vt_map word; /* of those not begun: tags to whether the other is there */
};

void pulls_init(struct pulls *p, const struct vt_remote *r);
void pulls_free(struct pulls *p);
/* A step's pulls begin. */
int pulls_launch(struct pulls *p, const struct vt_step_plan *plan, vt_ns asked,
                 vt_ns at, struct vt_err *err) VT_MUST_CHECK;
/* Whether who is to be pulled from is there. `will`: of one that has not begun, it
 * will. */
int pulls_reached(struct pulls *p, uint64_t tag, vt_ns now, bool there, bool will,
                  struct vt_err *err) VT_MUST_CHECK;
void pulls_forget(struct pulls *p, uint64_t tag); /* it will not begin */
/* Those that are over by then, soonest first: p->done[0 .. *n), good until
 * pulls_told(). */
int pulls_until(struct pulls *p, vt_ns at, uint32_t *n,
                struct vt_err *err) VT_MUST_CHECK;
void pulls_told(struct pulls *p, uint32_t n);
/* When the next one is over; VT_NEVER: none is under way. */
vt_ns pulls_due(const struct pulls *p);

/* ---- leases ----------------------------------------------------------- */

struct leases {            /* of prefills that ended here */
    vt_ns term;            /* 0: without end */
    struct vt_map until;   /* tags to times */
    struct vt_agenda ends; /* of tags, some of them renewed or over */
    struct lease_over {
        uint64_t tag;
        vt_ns at;
        bool expired;
    } *over; /* pulled, or not in time; not yet told of */
    size_t n_over, cap_over;
};

void leases_init(struct leases *l, const struct vt_remote *r);
void leases_free(struct leases *l);
int leases_add(struct leases *l, uint64_t tag, vt_ns now,
               struct vt_err *err) VT_MUST_CHECK;
/* VT_ECHECK: there is no such. */
int leases_renew(struct leases *l, uint64_t tag, vt_ns now);
int leases_pulled(struct leases *l, uint64_t tag, vt_ns now);
/* Those that have ended by then, in `over` with the others: the first *n of them. */
int leases_until(struct leases *l, vt_ns at, uint32_t *n,
                 struct vt_err *err) VT_MUST_CHECK;
void leases_told(struct leases *l, uint32_t n);
vt_ns leases_due(const struct leases *l); /* VT_NEVER: none is there */

#endif
