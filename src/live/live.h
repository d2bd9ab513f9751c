/* live.h - engines under the wall clock: what time it is for them, waiting until it is
 * another, queues between threads, how late things were, and the driver that `wire` and
 * `http` share.
 *
 * `sim` jumps to the next event; those who serve, and `load`, which asks, wait for it.
 */
#ifndef VT_LIVE_H
#define VT_LIVE_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/base.h"
#include "core/core.h"

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
/* Sleeps until the wall clock reads `until` or something is in it; `precisely`: the end
 * of the wait is spent awake. */
void vt_inbox_wait(struct vt_inbox *b, vt_ns until, bool precisely);

/* ---- lateness -------------------------------------------------------- */

enum { VT_LATE_CELLS = 64 * 16 };
struct vt_late { /* a histogram: sixteen cells to each power of two */
    uint64_t cell[VT_LATE_CELLS];
    uint64_t n;
    vt_ns max;
};
void vt_late_add(struct vt_late *l, vt_ns ns);
vt_ns vt_late_at(const struct vt_late *l, double share); /* upper end of the cell */

#define VT_SLOW_LATE   (50 * VT_MS) /* what leaves later than that */
#define VT_SLOW_WINDOW VT_SEC       /* for most of a second: too slow */
#define VT_SLOW_QUIET  (60 * VT_SEC)

/* Does the machine keep up with its engines? Zero-initialise. */
struct vt_slow {
    uint64_t n, n_late; /* in the present window; late by more than VT_SLOW_LATE */
    vt_ns worst;
    vt_ns from, last; /* of the window, wall */
    vt_ns said_at;    /* wall; 0: never */
};
/* Something left at `wall`, so late. True: it is to be said that over half of what left
 * in the window did so late; once, then every VT_SLOW_QUIET at most. */
bool vt_slow_note(struct vt_slow *s, vt_ns wall, vt_ns late);
/* The window in a sentence. */
void vt_slow_text(const struct vt_slow *s, char out[160]);

/* ---- the driver ------------------------------------------------------- */

/* Engines under the wall clock, without sockets: each acts when it is due, what comes
 * of its steps is put into parcels, and a parcel leaves when its time has come. Who
 * drives them takes requests in and waits until the next time that something is due.
 * Belongs to one thread. All times are of the engines unless they are called wall. */
struct vt_driver; /* opaque */

struct vt_driver_ops {
    /* An engine has acted; done is NULL where no step has ended. */
    int (*stepped)(void *user, uint32_t engine, const struct vt_step *done,
                   struct vt_err *err);
    /* The parcel was due at `at`: it leaves. True: how late that was counts. */
    bool (*leave)(void *user, void *parcel, vt_ns at);
    void (*drop)(void *parcel);    /* at the very end; NULL: it owns nothing */
    bool (*interrupt)(void *user); /* other work waits: no more steps; NULL: never */
    /* The machine does not keep up: vt_slow_note() said so. NULL: nobody is told. */
    void (*slow)(void *user, const struct vt_slow *s);
};

struct vt_driver_config { /* borrowed while opening, but for model, ops and user */
    struct vt_engine_config engine;
    const struct vt_latency *model;
    uint32_t n_engines, first_rank; /* first_rank: of the engines' seeds */
    uint64_t seed;
    struct vt_axis axis;
    size_t parcel_bytes;
    const struct vt_driver_ops *ops;
    void *user;
};

int vt_driver_open(struct vt_driver **out, const struct vt_driver_config *c,
                   struct vt_err *err) VT_MUST_CHECK;
void vt_driver_close(struct vt_driver *d); /* NULL is fine */
struct vt_engine *vt_driver_engine(const struct vt_driver *d, uint32_t engine);

/* Steps what is due, at most a few dozen actions of each engine, and lets parcels leave
 * in between. */
int vt_driver_pass(struct vt_driver *d, vt_ns now, struct vt_err *err) VT_MUST_CHECK;
/* The same for one engine; vt_driver_catch_up() goes on until nothing is due by now. */
int vt_driver_run(struct vt_driver *d, uint32_t engine, vt_ns now,
                  struct vt_err *err) VT_MUST_CHECK;
int vt_driver_catch_up(struct vt_driver *d, uint32_t engine, vt_ns now,
                       struct vt_err *err) VT_MUST_CHECK;
/* When something is due next; VT_NEVER: not before a request comes. */
vt_ns vt_driver_engines_due(const struct vt_driver *d);
vt_ns vt_driver_parcels_due(const struct vt_driver *d);

/* When a request that comes now arrives: an engine that is behind takes it at the next
 * chance that it has, as a real one does. */
vt_ns vt_driver_arrival(const struct vt_driver *d, uint32_t engine, vt_ns now);

/* A place for a parcel that leaves at `at`, as the last parcel left it there (zeroed
 * at first): good until the next one is asked for. NULL: no memory. */
void *vt_driver_post(struct vt_driver *d, vt_ns at, struct vt_err *err) VT_MUST_CHECK;
void vt_driver_flush(struct vt_driver *d, vt_ns now); /* VT_NEVER: all there is */

/* Requests by tag. A tag is never 0 and never given twice. */
int vt_driver_add(struct vt_driver *d, void *request, uint64_t *tag,
                  struct vt_err *err) VT_MUST_CHECK;
void *vt_driver_find(const struct vt_driver *d, uint64_t tag); /* NULL: gone */
void vt_driver_remove(struct vt_driver *d, uint64_t tag);
uint32_t vt_driver_requests(const struct vt_driver *d); /* how many */
/* All of them: *at starts at 0; NULL at the end. The one given may be removed. */
void *vt_driver_each(const struct vt_driver *d, size_t *at);

/* Tells of requests that the step has scheduled (not those that ran on) or preempted.
 */
typedef void vt_driver_told(void *request, bool preempted, const struct vt_step *s);
void vt_driver_tell_plan(const struct vt_driver *d, const struct vt_step *s,
                         vt_driver_told *told);
/* What the step says of a request's first token; NULL: nothing. *hint starts at 0 and
 * makes rows in the order of the step quick. */
const struct vt_first *vt_step_first(const struct vt_step *s, uint64_t tag,
                                     uint32_t *hint);

/* After this the driver is over when no request is left, or after so long. */
void vt_driver_drain(struct vt_driver *d, double seconds);
bool vt_driver_draining(const struct vt_driver *d);
bool vt_driver_over(const struct vt_driver *d, uint32_t n_requests);
vt_ns vt_driver_over_wall(const struct vt_driver *d); /* VT_NEVER: not draining */

const struct vt_late *vt_driver_late(const struct vt_driver *d);
/* How far steps went, of all engines. */
struct vt_extent vt_driver_extent(const struct vt_driver *d);

#endif
