/* crew.h - threads: one that is started, and several that share a piece of work. */
#ifndef VT_BASE_CREW_H
#define VT_BASE_CREW_H

#include <pthread.h>

#include "base/base.h"

/* Starts a thread that gets no signals: those are for the caller's, whose waiting they
 * interrupt. */
int vt_thread_start(pthread_t *out, void *(*run)(void *), void *arg,
                    struct vt_err *err) VT_MUST_CHECK;

uint32_t vt_processors(void); /* that this machine has now; at least 1 */

/* Hands out the items of a piece of work to threads that stay between two pieces. */
struct vt_crew; /* opaque */

/* The calling thread is one of the n; 1: there is no other. The caller owns *out. */
int vt_crew_new(struct vt_crew **out, uint32_t n, struct vt_err *err) VT_MUST_CHECK;
void vt_crew_free(struct vt_crew *c); /* NULL is fine */
/* Calls work(user, member, item) for each of so many items and returns when all are
 * done. Each item is one member's, a number below n, who takes them in ascending order.
 * What members wrote is seen by the caller, and by all members in the next piece.
 * alone: the caller does it all, as suits a piece that is not worth waking others. */
void vt_crew_run(struct vt_crew *c, uint32_t items, bool alone,
                 void (*work)(void *user, uint32_t member, uint32_t item), void *user);

#endif
