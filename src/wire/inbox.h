/* inbox.h - a queue from any threads to one, with a descriptor to sleep on; private to
 * wire. Putting never waits. */
#ifndef VT_WIRE_INBOX_H
#define VT_WIRE_INBOX_H

#include <stdatomic.h>

#include "base/base.h"

struct inbox_item { /* put it first into what is queued */
    struct inbox_item *next;
};

struct inbox {
    _Atomic(struct inbox_item *) newest;
    int fd; /* readable after something was put */
};

int inbox_open(struct inbox *b, struct vt_err *err) VT_MUST_CHECK;
void inbox_close(struct inbox *b); /* what is still in it is the caller's */
void inbox_put(struct inbox *b, struct inbox_item *item);
/* All there is, oldest first, linked by next; NULL: nothing. */
struct inbox_item *inbox_take(struct inbox *b);
/* Makes fd unreadable. Before inbox_take(), or a wake-up is lost. */
void inbox_calm(struct inbox *b);

#endif
