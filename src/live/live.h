/* live.h - the wall clock's side of a driver: what time it is for an engine, waiting
 * until it is another, queues between threads, and how late things were.
 *
 * `sim` jumps to the next event; drivers that serve (`wire`, `http`) and the one that
 * asks (`load`) wait for it. Their loops differ in what they serve; this is what they
 * have in common. */
#ifndef VT_LIVE_H
#define VT_LIVE_H

#include <stdatomic.h>

#include "base/base.h"

/* ---- time --------------------------------------------------------------- */

vt_ns vt_wall_ns(void); /* CLOCK_MONOTONIC */
vt_ns vt_unix_ns(void); /* since 1970 */
double vt_unix_s(void); /* the same in seconds */

void vt_sleep_ns(vt_ns ns); /* or until a signal comes */

/* The engines' time: 0 at zero_ns of the wall clock, `scale` times as fast. */
struct vt_axis {
    vt_ns zero_ns;
    double scale; /* above 0 */
};
vt_ns vt_axis_now(const struct vt_axis *x);
vt_ns vt_axis_wall(const struct vt_axis *x, vt_ns at); /* VT_NEVER stays so */

/* Waking up from a sleep takes about as long: the end of a wait that must be precise is
 * spent awake. */
enum { VT_SPIN_NS = 60000 };
/* Before the first sleep of a thread: the kernel's slack would add 50 us to each. */
void vt_wait_sharply(void);
/* Sleeps until the wall clock reads `until` or fd is readable, which is true. Times
 * that have passed do not sleep. */
bool vt_wait_fd(int fd, vt_ns until);

/* ---- an inbox ------------------------------------------------------------ */

/* A queue from any threads to one, with a descriptor to sleep on. Putting never
 * waits. */
struct vt_inbox_item { /* put it first into what is queued */
    struct vt_inbox_item *next;
};
struct vt_inbox {
    _Atomic(struct vt_inbox_item *) newest;
    int fd; /* readable after something was put */
};
int vt_inbox_open(struct vt_inbox *b, struct vt_err *err) VT_MUST_CHECK;
void vt_inbox_close(struct vt_inbox *b); /* what is still in it is the caller's */
void vt_inbox_put(struct vt_inbox *b, struct vt_inbox_item *item);
/* All there is, oldest first, linked by next; NULL: nothing. */
struct vt_inbox_item *vt_inbox_take(struct vt_inbox *b);
bool vt_inbox_waits(const struct vt_inbox *b); /* something is in it */
/* Makes fd unreadable. Before vt_inbox_take(), or a wake-up is lost. */
void vt_inbox_calm(struct vt_inbox *b);

/* ---- lateness -------------------------------------------------------- */

enum { VT_LATE_CELLS = 64 * 16 };
struct vt_late { /* a histogram: sixteen cells to each power of two */
    uint64_t cell[VT_LATE_CELLS];
    uint64_t n;
    vt_ns max;
};
void vt_late_add(struct vt_late *l, vt_ns ns);
vt_ns vt_late_at(const struct vt_late *l, double share); /* upper end of the cell */

#endif
