/* Jobs come back complete and in order, however many workers there are and whatever
 * happens to them. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tune/tune.h"

enum { N = 40 };

struct work {
    uint64_t result[N];
    uint32_t times[N];
    size_t fails, fails_too; /* jobs that fail; N: none */
    size_t dies;             /* a job whose worker is killed */
    int until_run;           /* so many times; counted in a file, which outlives it */
    char counter[64];
    pid_t parent;
};

static int count_runs(const struct work *w)
{
    FILE *f = fopen(w->counter, "ab");
    long n;

    assert_non_null(f);
    fputc('x', f);
    n = ftell(f);
    fclose(f);
    return (int)n;
}

static int run(void *user, size_t n, struct vt_buf *result, struct vt_err *err)
{
    const struct work *w = user;

    if (n == w->fails || n == w->fails_too)
        return vt_fail(err, VT_EINPUT, "job %d can't be done", (int)n);
    if (n == w->dies && getpid() != w->parent && count_runs(w) <= w->until_run)
        raise(SIGKILL);
    for (uint64_t i = 0; i <= n % 7; i++) { /* results of several lengths */
        uint64_t v = n * n + i;

        vt_buf_add(result, &v, sizeof(v));
    }
    return VT_OK;
}

static int done(void *user, size_t i, const char *result, size_t len,
                struct vt_err *err)
{
    struct work *w = user;

    (void)err;
    assert_int_equal(len, (i % 7 + 1) * sizeof(uint64_t));
    memcpy(&w->result[i], result, sizeof(uint64_t));
    w->times[i]++;
    return VT_OK;
}

static struct work make_work(void)
{
    struct work w = {.fails = N, .fails_too = N, .dies = N, .parent = getpid()};
    int fd;

    (void)snprintf(w.counter, sizeof(w.counter), "/tmp/vt-jobs-XXXXXX");
    fd = mkstemp(w.counter);
    assert_true(fd >= 0);
    close(fd);
    return w;
}

static int run_all(struct work *w, size_t n, uint32_t workers, struct vt_err *err)
{
    struct vt_jobs j = {
        .n = n,
        .run = run,
        .done = done,
        .user = w,
        .workers = workers,
    };
    int rc = vt_jobs_run(&j, err);

    unlink(w->counter);
    return rc;
}

static void assert_all_done(const struct work *w, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(w->times[i], 1);
        assert_int_equal(w->result[i], i * i);
    }
}

static void every_job_is_done_once(void **state)
{
    static const struct {
        size_t n;
        uint32_t workers;
    } row[] = {{0, 4}, {1, 4}, {3, 8}, {N, 1}, {N, 2}, {N, 5}, {N, 0}};

    (void)state;
    for (size_t i = 0; i < VT_COUNT(row); i++) {
        struct work w = make_work();
        struct vt_err err = {0};

        assert_int_equal(run_all(&w, row[i].n, row[i].workers, &err), VT_OK);
        assert_all_done(&w, row[i].n);
    }
}

static void a_killed_workers_job_is_run_again(void **state)
{
    (void)state;
    for (int times = 1; times <= 2; times++) {
        struct work w = make_work();
        struct vt_err err = {0};

        w.dies = 11;
        w.until_run = times;
        assert_int_equal(run_all(&w, N, 3, &err), VT_OK);
        assert_all_done(&w, N);
    }
}

static void a_job_that_kills_every_worker_is_named(void **state)
{
    struct work w = make_work();
    struct vt_err err = {0};

    (void)state;
    w.dies = 11;
    w.until_run = 3;
    assert_int_equal(run_all(&w, N, 3, &err), VT_EIO);
    assert_non_null(strstr(err.msg, "job 11"));
}

static void the_first_failure_by_number_is_told(void **state)
{
    static const uint32_t workers[] = {1, 2, 4, 16};

    (void)state;
    for (size_t i = 0; i < VT_COUNT(workers); i++) {
        struct work w = make_work();
        struct vt_err err = {0};

        w.fails = 9;
        w.fails_too = 7;
        assert_int_equal(run_all(&w, N, workers[i], &err), VT_EINPUT);
        assert_string_equal(err.msg, "job 7 can't be done");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_job_is_done_once),
        cmocka_unit_test(a_killed_workers_job_is_run_again),
        cmocka_unit_test(a_job_that_kills_every_worker_is_named),
        cmocka_unit_test(the_first_failure_by_number_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
