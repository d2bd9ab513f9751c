/* test_events.c - waits end when they should, also on a kernel or in a sandbox without
 * epoll_pwait2. */
#define _GNU_SOURCE
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "net_testing.h"

#include "net/events.h"

enum { SAMPLES = 40 };

static const vt_ns BRIEF_NS = 300 * VT_US;

/* That call fails with `error` from now on, for ever. */
static void forbid(long call, int error)
{
    struct sock_filter rule[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)call, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog all = {.len = sizeof(rule) / sizeof(*rule), .filter = rule};

    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &all) != 0)
        _exit(10);
}

/* The status to exit with: 0, or which wait was wrong. */
static int waits(void)
{
    int epoll = epoll_create1(0), pipe_fd[2], got;
    struct epoll_event e = {.events = EPOLLIN}, out[4];
    vt_ns least = VT_NEVER;

    if (epoll < 0 || pipe(pipe_fd) != 0 ||
        epoll_ctl(epoll, EPOLL_CTL_ADD, pipe_fd[0], &e) != 0)
        return 11;
    vt_wait_sharply();
    for (int i = 0; i < SAMPLES; i++) {
        vt_ns begun = vt_wall_ns(), took;

        if (net_events_wait(epoll, out, 4, BRIEF_NS) != 0)
            return 12;
        took = vt_wall_ns() - begun;
        if (took < BRIEF_NS)
            return 13;
        least = took < least ? took : least;
    }
    if (least > BRIEF_NS + 500 * VT_US) /* not rounded to milliseconds */
        return 14;
    if (net_events_wait(epoll, out, 4, 0) != 0)
        return 15;
    if (write(pipe_fd[1], "x", 1) != 1)
        return 16;
    got = net_events_wait(epoll, out, 4, VT_NEVER);
    return got == 1 && out[0].events == EPOLLIN ? 0 : 17;
}

static void a_wait_is_precise(void **state)
{
    int error = *(const int *)*state, status;
    pid_t child = fork();

    assert_true(child >= 0);
    if (child == 0) {
        if (error != 0)
            forbid(SYS_epoll_pwait2, error);
        _exit(waits());
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
    static int allowed, unknown = ENOSYS, forbidden = EPERM;
    const struct CMUnitTest tests[] = {
        {"on this kernel", a_wait_is_precise, NULL, NULL, &allowed},
        {"on an older kernel", a_wait_is_precise, NULL, NULL, &unknown},
        {"in a sandbox", a_wait_is_precise, NULL, NULL, &forbidden},
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
