/* time.c - the wall clock, the engines' axis on it, and sleeping. */
#define _GNU_SOURCE /* ppoll */
#include <poll.h>
#include <sys/prctl.h>
#include <time.h>

#include "live/live.h"

vt_ns vt_wall_ns(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (vt_ns)t.tv_sec * VT_SEC + t.tv_nsec;
}

vt_ns vt_unix_ns(void)
{
    struct timespec t;

    (void)clock_gettime(CLOCK_REALTIME, &t);
    return (vt_ns)t.tv_sec * VT_SEC + t.tv_nsec;
}

double vt_unix_s(void)
{
    return (double)vt_unix_ns() / 1e9;
}

void vt_sleep_ns(vt_ns ns)
{
    struct timespec t = {.tv_sec = ns / VT_SEC, .tv_nsec = (long)(ns % VT_SEC)};

    (void)nanosleep(&t, NULL);
}

vt_ns vt_axis_now(const struct vt_axis *x)
{
    vt_ns passed = vt_wall_ns() - x->zero_ns;

    return x->scale == 1 ? passed : (vt_ns)((double)passed * x->scale);
}

vt_ns vt_axis_wall(const struct vt_axis *x, vt_ns at)
{
    double far = (double)(VT_NEVER - x->zero_ns) * x->scale;

    if (at == VT_NEVER || (double)at >= far)
        return VT_NEVER;
    return x->zero_ns + (x->scale == 1 ? at : (vt_ns)((double)at / x->scale));
}

void vt_wait_sharply(void)
{
    (void)prctl(PR_SET_TIMERSLACK, 1UL);
}

bool vt_wait_fd(int fd, vt_ns until)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    vt_ns left = until == VT_NEVER ? VT_NEVER : until - vt_wall_ns();
    struct timespec t = {.tv_sec = left / VT_SEC, .tv_nsec = (long)(left % VT_SEC)};

    if (left <= 0)
        return false;
    return ppoll(&p, 1, left == VT_NEVER ? NULL : &t, NULL) > 0;
}
