/* inbox.c - a stack that is pushed to by exchange and emptied in one go: order comes
 * back when it is turned over. */
#include "live/live.h"

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

int vt_inbox_open(struct vt_inbox *b, struct vt_err *err)
{
    atomic_init(&b->newest, NULL);
    b->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (b->fd < 0)
        return vt_fail(err, VT_EIO, "eventfd: %s", strerror(errno));
    return VT_OK;
}

void vt_inbox_close(struct vt_inbox *b)
{
    if (b->fd >= 0)
        close(b->fd);
    b->fd = -1;
}

void vt_inbox_put(struct vt_inbox *b, struct vt_inbox_item *item)
{
    struct vt_inbox_item *old = atomic_load_explicit(&b->newest, memory_order_relaxed);

    do
        item->next = old;
    while (!atomic_compare_exchange_weak(&b->newest, &old, item));
    if (!old) /* the reader may be asleep */
        (void)eventfd_write(b->fd, 1);
}

bool vt_inbox_waits(const struct vt_inbox *b)
{
    return atomic_load_explicit(&b->newest, memory_order_relaxed) != NULL;
}

struct vt_inbox_item *vt_inbox_take(struct vt_inbox *b)
{
    struct vt_inbox_item *at, *turned = NULL;

    if (!vt_inbox_waits(b))
        return NULL;
    at = atomic_exchange(&b->newest, NULL);
    while (at) {
        struct vt_inbox_item *next = at->next;

        at->next = turned;
        turned = at;
        at = next;
    }
    return turned;
}

void vt_inbox_calm(struct vt_inbox *b)
{
    eventfd_t count;

    (void)eventfd_read(b->fd, &count);
}

void vt_inbox_wait(struct vt_inbox *b, vt_ns until, bool precisely)
{
    if (vt_inbox_waits(b))
        return;
    if (vt_wait_fd(b->fd, precisely ? until - VT_SPIN_NS : until))
        vt_inbox_calm(b);
    while (precisely && !vt_inbox_waits(b) && vt_wall_ns() < until)
        ;
}
