/* huge.h - a frame of 300 MB that takes no memory where it is sent from, so that what
 * grows is who takes it. */
#ifndef VT_TESTS_WIRE_HUGE_H
#define VT_TESTS_WIRE_HUGE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <sys/mman.h>

#include "kvevents/kvevents.h"

static const size_t HUGE_BYTES = (size_t)300 << 20;
enum { HUGE_WAIT_MS = 20000 };

static inline void huge_unmap(void *bytes, void *hint)
{
    (void)hint;
    (void)munmap(bytes, HUGE_BYTES);
}

/* Pages that are only read are all the same one. */
static inline void huge_send(void *sock)
{
    void *bytes = mmap(NULL, HUGE_BYTES, PROT_READ,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    zmq_msg_t m;

    assert_ptr_not_equal(bytes, MAP_FAILED);
    assert_int_equal(zmq_msg_init_data(&m, bytes, HUGE_BYTES, huge_unmap, NULL), 0);
    assert_int_equal(zmq_msg_send(&m, sock, ZMQ_DONTWAIT), (int)HUGE_BYTES);
}

/* The most memory that this process had since huge_peak_forget(). */
static inline size_t huge_peak_mb(void)
{
    FILE *f = fopen("/proc/self/status", "r");
    unsigned long kb = 0;
    char line[256];

    assert_non_null(f);
    while (kb == 0 && fgets(line, sizeof(line), f))
        (void)sscanf(line, "VmHWM: %lu", &kb);
    fclose(f);
    assert_true(kb > 0);
    return kb / 1024;
}

static inline void huge_peak_forget(void)
{
    FILE *f = fopen("/proc/self/clear_refs", "w");

    assert_non_null(f);
    assert_true(fputs("5\n", f) >= 0);
    assert_int_equal(fclose(f), 0);
}

/* Sends it behind what was sent with ZMQ_SNDMORE, and waits until whoever is at the
 * other end has hung up instead of taking it. The monitor is of the socket. */
static inline void huge_is_refused(void *sock, void *monitor)
{
    int event = 0, fd;
    size_t before;

    huge_peak_forget();
    before = huge_peak_mb();
    huge_send(sock);
    while (event != ZMQ_EVENT_DISCONNECTED) {
        if (!sock_wait(monitor, HUGE_WAIT_MS))
            fail_msg("it is taken");
        (void)sock_monitor_next(monitor, &event, &fd);
    }
    assert_true(huge_peak_mb() < before + 100);
}

#endif
