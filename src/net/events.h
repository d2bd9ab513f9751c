/* events.h - waiting at an epoll descriptor; private to net. */
#ifndef VT_NET_EVENTS_H
#define VT_NET_EVENTS_H

#include <sys/epoll.h>

#include "base/base.h"

/* epoll_wait() with a time to the nanosecond; VT_NEVER waits for ever. On any kernel,
 * and where a sandbox allows only calls that it knows. */
int net_events_wait(int epoll, struct epoll_event *e, int max, vt_ns ns);

#endif
