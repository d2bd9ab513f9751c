/* Jobs behind a socket: a driver that answers, one that dies, and a worker's end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "tune/jobs/jobs.h"

enum { N = 20, BATCHES = 3 };

struct work {
    uint64_t result[N];
    uint64_t before; /* the sum of the batch before: jobs depend on it */
    size_t fails;    /* N: none */
};

static int run(void *user, size_t i, struct vt_buf *result, struct vt_err *err)
{
    const struct work *w = user;
    uint64_t v = i * i + w->before % 1000;

    if (i == w->fails)
        return vt_fail(err, VT_EINPUT, "job %d can't be done", (int)i);
    vt_buf_add(result, &v, sizeof(v));
    return VT_OK;
}

static int done(void *user, size_t i, const char *result, size_t len,
                struct vt_err *err)
{
    struct work *w = user;

    if (len != sizeof(w->result[i]))
        return vt_fail(err, VT_EIO, "a result of %zu bytes", len);
    memcpy(&w->result[i], result, len);
    return VT_OK;
}

/* A command: batches that follow from those before. */
static int run_command(struct work *w, struct vt_err *err)
{
    const struct vt_jobs j = {
        .n = N, .run = run, .done = done, .user = w, .workers = 1};
    int rc = VT_OK;

    for (int b = 0; b < BATCHES && rc == VT_OK; b++) {
        rc = vt_jobs_run(&j, err);
        for (size_t i = 0; i < N && rc == VT_OK; i++)
            w->before += w->result[i];
    }
    return rc;
}

/* ---- drivers: children of the test ------------------------------------------------
 */

static bool tell(int fd, uint32_t kind, uint32_t batch, const void *bytes, size_t len)
{
    const struct job_head h = {.kind = kind, .batch = batch, .len = len};

    return job_send(fd, &h, bytes);
}

/* A worker in a process of its own; its socket. */
static int start_worker(size_t fails)
{
    int fd[2];

    if (socketpair(AF_UNIX, SOCK_STREAM, 0, fd) != 0)
        _exit(9);
    if (fork() == 0) {
        struct vt_jobs_worker w = {.in = fd[1], .out = fd[1]};
        struct work work = {.fails = fails};
        struct vt_buf words = {0};
        struct vt_err err;
        bool asked = vt_jobs_worker_command(&w, &words, &err) == VT_OK &&
                     strcmp(words.data, "tune") == 0;

        close(fd[0]);
        vt_buf_free(&words);
        vt_jobs_as_worker(&w);
        _exit(asked && run_command(&work, &err) != VT_OK && w.over ? 0 : 9);
    }
    close(fd[1]);
    return fd[0];
}

/* Passes jobs on to a worker that it starts anew for every batch, so that it needs the
 * results of all before. Ends without a word after `answers`. */
_Noreturn static void drive(int fd, size_t fails, size_t answers)
{
    struct vt_buf b = {0}, past[BATCHES] = {{0}};
    struct job_head h;
    int worker = -1;
    uint32_t at = UINT32_MAX;

    if (!tell(fd, JOB_HELLO, 0, "here", 4))
        _exit(9);
    while (job_recv(fd, &h, &b)) {
        if (h.kind != JOB_GIVEN)
            continue;
        if (h.batch != at) {
            if (worker >= 0)
                close(worker);
            worker = start_worker(fails);
            (void)tell(worker, JOB_COMMAND, 0, "tune", 5);
            for (at = 0; at < h.batch; at++)
                (void)tell(worker, JOB_RESULTS, at, past[at].data, past[at].len);
        }
        if (answers-- == 0 || !job_send(worker, &h, b.data) ||
            !job_recv(worker, &h, &b))
            break;
        vt_buf_add(&past[at], &(uint64_t){b.len - 1}, sizeof(uint64_t));
        vt_buf_add(&past[at], b.data + 1, b.len - 1);
        (void)tell(fd, JOB_COST, 0, "\1\0\0\0\0\0\0\0node", 12);
        (void)job_send(fd, &h, b.data);
    }
    if (worker >= 0)
        close(worker);
    while (wait(NULL) > 0)
        ;
    for (int i = 0; i < BATCHES; i++)
        vt_buf_free(&past[i]);
    vt_buf_free(&b);
    _exit(0);
}

/* ---- the program's side ------------------------------------------------------------
 */

static size_t n_costs;

static void count_cost(void *user, const char *where, vt_ns took)
{
    (void)user;
    assert_string_equal(where, "node");
    assert_int_equal(took, 1);
    n_costs++;
}

static int hand_on(void *user, const struct vt_jobs *j, uint32_t batch,
                   struct vt_err *err)
{
    return vt_jobs_driver_run(user, j, batch, err);
}

static int by_driver(struct work *w, size_t fails, size_t answers, uint32_t most,
                     struct vt_err *err)
{
    struct vt_buf command = {0}, inputs = {0}, hello = {0};
    struct vt_jobs_driver d = {
        .most = most, .command = &command, .inputs = &inputs, .cost = count_cost};
    const struct vt_jobs_elsewhere there = {hand_on, &d};
    int fd[2], rc, status;
    pid_t pid;

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
    pid = fork();
    if (pid == 0) {
        close(fd[0]);
        drive(fd[1], fails, answers);
    }
    close(fd[1]);
    d.fd = fd[0];
    vt_buf_add(&command, "tune", 5);
    n_costs = 0;
    assert_int_equal(vt_jobs_driver_meet(&d, &hello, err), VT_OK);
    assert_string_equal(hello.data, "here");
    vt_jobs_elsewhere(&there);
    rc = run_command(w, err);
    vt_jobs_elsewhere(NULL);
    close(fd[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    vt_buf_free(&command);
    vt_buf_free(&inputs);
    vt_buf_free(&hello);
    return rc;
}

static void a_driver_gives_what_one_process_finds(void **state)
{
    struct work here = {.fails = N}, there = {.fails = N}, few = {.fails = N};
    struct vt_err err = {0};

    (void)state;
    assert_int_equal(run_command(&here, &err), VT_OK);
    assert_int_equal(by_driver(&there, N, SIZE_MAX, 0, &err), VT_OK);
    assert_int_equal(n_costs, N * BATCHES);
    assert_int_equal(by_driver(&few, N, SIZE_MAX, 3, &err), VT_OK);
    assert_memory_equal(&here, &there, sizeof(here));
    assert_memory_equal(&here, &few, sizeof(here));
}

static void a_failure_is_the_trials_own(void **state)
{
    struct work w = {.fails = N};
    struct vt_err err = {0};

    (void)state;
    assert_int_equal(by_driver(&w, 7, SIZE_MAX, 0, &err), VT_EINPUT);
    assert_string_equal(err.msg, "job 7 can't be done");
}

static void a_driver_that_ends_is_a_failure(void **state)
{
    static const size_t after[] = {0, 1, N - 1, N, N * BATCHES - 1};

    (void)state;
    for (size_t i = 0; i < VT_COUNT(after); i++) {
        struct work w = {.fails = N};
        struct vt_err err = {0};

        assert_int_equal(by_driver(&w, N, after[i], 0, &err), VT_EIO);
        assert_non_null(strstr(err.msg, "no result"));
    }
}

/* What a driver must not say. */
static void odd_words_end_it(void **state)
{
    static const struct {
        uint32_t kind, batch;
        uint64_t index;
        const char *bytes;
        size_t len;
    } row[] = {{JOB_ANSWER, 1, 0, "\0x", 2},   {JOB_ANSWER, 0, N, "\0x", 2},
               {JOB_GIVEN, 0, 0, "\0x", 2},    {JOB_COST, 0, 0, "x", 1},
               {JOB_FAILED, 0, 0, "\3no", 3},  {JOB_ANSWER, 0, 0, "", 0},
               {JOB_ANSWER, 0, 0, "\0abc", 4}, {99, 0, 0, "", 0}};

    (void)state;
    for (size_t i = 0; i < VT_COUNT(row); i++) {
        const struct job_head h = {row[i].kind, row[i].batch, row[i].index, row[i].len};
        struct vt_buf none = {0};
        struct vt_jobs_driver d = {.command = &none, .inputs = &none};
        struct work w = {.fails = N};
        const struct vt_jobs j = {.n = 1, .run = run, .done = done, .user = &w};
        struct vt_err err = {0};
        int fd[2];

        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
        d.fd = fd[0];
        assert_true(job_send(fd[1], &h, row[i].bytes));
        assert_int_equal(vt_jobs_driver_run(&d, &j, 0, &err), VT_EIO);
        close(fd[0]);
        close(fd[1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_driver_gives_what_one_process_finds),
        cmocka_unit_test(a_failure_is_the_trials_own),
        cmocka_unit_test(a_driver_that_ends_is_a_failure),
        cmocka_unit_test(odd_words_end_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
