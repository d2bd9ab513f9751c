/* inbox.c - a stack that is pushed to by exchange and emptied in one go: order comes
 * back when it is turned over. */
#include "wire/inbox.h"

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

int inbox_open(struct inbox *b, struct vt_err *err)
{
    atomic_init(&b->newest, NULL);
    b->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (b->fd < 0)
        return vt_fail(err, VT_EIO, "eventfd: %s", strerror(errno));
    return VT_OK;
}

void inbox_close(struct inbox *b)
{
    if (b->fd >= 0)
        close(b->fd);
    b->fd = -1;
}

void inbox_put(struct inbox *b, struct inbox_item *item)
{
    struct inbox_item *old = atomic_load_explicit(&b->newest, memory_order_relaxed);

    do
        item->next = old;
    while (!atomic_compare_exchange_weak(&b->newest, &old, item));
    if (old == NULL) /* the reader may be asleep */
        (void)eventfd_write(b->fd, 1);
}

struct inbox_item *inbox_take(struct inbox *b)
{
    struct inbox_item *at, *turned = NULL;

    if (atomic_load_explicit(&b->newest, memory_order_relaxed) == NULL)
        return NULL;
    at = atomic_exchange(&b->newest, NULL);
    while (at != NULL) {
        struct inbox_item *next = at->next;

        at->next = turned;
        turned = at;
        at = next;
    }
    return turned;
}

void inbox_calm(struct inbox *b)
{
    eventfd_t count;

    (void)eventfd_read(b->fd, &count);
}
