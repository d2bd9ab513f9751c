/* events.c - see events.h. */
#define _GNU_SOURCE /* ppoll */
#include <errno.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "net/events.h"

/* By its number: Linux has had it since 5.11, glibc a name for it since 2.35. */
#ifndef SYS_epoll_pwait2
#define SYS_epoll_pwait2 441
#endif

int net_events_wait(int epoll, struct epoll_event *e, int max, vt_ns ns)
{
    struct timespec t = {.tv_sec = ns / VT_SEC, .tv_nsec = (long)(ns % VT_SEC)};
    const struct timespec *limit = ns == VT_NEVER ? NULL : &t;
    struct pollfd p = {.fd = epoll, .events = POLLIN};
    int got = (int)syscall(SYS_epoll_pwait2, epoll, e, max, limit, NULL, 0);

    if (got >= 0 || (errno != ENOSYS && errno != EPERM))
        return got;
    got = ns > 0 ? ppoll(&p, 1, limit, NULL) : 1;
    return got > 0 ? epoll_wait(epoll, e, max, 0) : got;
}
