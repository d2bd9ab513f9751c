/* thread.c - threads beside the one that signals are for. */
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"

int vt_thread_start(pthread_t *out, void *(*run)(void *), void *arg, struct vt_err *err)
{
    sigset_t all, before;
    int failed;

    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    failed = pthread_create(out, NULL, run, arg);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed == 0
               ? VT_OK
               : vt_fail(err, VT_EIO, "cannot start a thread: %s", strerror(failed));
}

uint32_t vt_processors(void)
{
    long n = sysconf(_SC_NPROCESSORS_ONLN);

    return n > 1 && n < 65536 ? (uint32_t)n : 1;
}
