/* Jobs over ranks: every rank gets every result, whoever is lost or late. */
#include <assert.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "tune/tune.h"

enum { RANKS = 4, JOBS = 40, BATCHES = 3 };

enum trouble {
    NO_TROUBLE,
    DIES_IN_A_JOB,   /* rank 2, at its first job */
    DIES_BEFORE,     /* rank 1, before any */
    OTHER_JOBS,      /* rank 3 has fewer */
    ONE_FAILS,       /* a job does, the same everywhere */
    DIES_EVERYWHERE, /* a job ends whoever runs it */
    LATE,            /* rank 1 comes when others have begun */
};

struct bench {
    enum trouble trouble;
    uint32_t rank;
    uint64_t sum[BATCHES];
    size_t n_done[BATCHES];
    int batch;
    uint32_t lost;
};

static void pause_ms(int ms)
{
    const struct timespec t = {.tv_nsec = ms * 1000000L};

    (void)nanosleep(&t, NULL);
}

static int run(void *user, size_t i, struct vt_buf *result, struct vt_err *err)
{
    const struct bench *b = user;
    uint64_t v = i + 1000 * (uint64_t)b->batch;

    if (b->trouble == DIES_IN_A_JOB && b->rank == 2)
        kill(getpid(), SIGKILL);
    if (b->trouble == DIES_EVERYWHERE && v == 5)
        kill(getpid(), SIGKILL);
    if (b->trouble == ONE_FAILS && (v == 7 || v == 8))
        return vt_fail(err, VT_EINPUT, "job %d is no good", (int)v);
    if (b->trouble == LATE)
        pause_ms(10);
    v = v * v;
    vt_buf_add(result, &v, sizeof(v));
    return VT_OK;
}

static int done(void *user, size_t i, const char *result, size_t len,
                struct vt_err *err)
{
    struct bench *b = user;
    uint64_t v;

    (void)err;
    assert(len == sizeof(v));
    memcpy(&v, result, sizeof(v));
    b->sum[b->batch] += v * (i + 1);
    b->n_done[b->batch]++;
    return VT_OK;
}

static int run_batches(struct bench *b, struct vt_err *err)
{
    bool fewer = b->trouble == OTHER_JOBS && b->rank == 3;
    struct vt_jobs j = {
        .n = fewer ? JOBS - 1 : JOBS, .run = run, .done = done, .user = b};
    int rc = VT_OK;

    for (b->batch = 0; b->batch < BATCHES && rc == VT_OK; b->batch++)
        rc = vt_jobs_run(&j, err);
    return rc;
}

/* Another rank has ended well if it never comes back from its last batch, with what
 * rank 0 has of the ones before. */
static void is_over(void *user)
{
    const struct bench *b = user;

    _exit(b->batch > 0 && b->n_done[0] != JOBS ? 1 : 0);
}

static void is_lost(void *user, uint32_t rank, const char *why)
{
    struct bench *b = user;

    (void)rank;
    (void)why;
    b->lost++;
}

static void be_rank(struct bench *b, uint32_t rank, int fd)
{
    struct vt_ranks r = {.rank = rank,
                         .n = RANKS,
                         .fd = &fd,
                         .over = is_over,
                         .lost = is_lost,
                         .user = b};
    struct vt_err err = {0};

    b->rank = rank;
    if (b->trouble == DIES_BEFORE && rank == 1)
        kill(getpid(), SIGKILL);
    if (b->trouble == LATE && rank == 1)
        pause_ms(200);
    vt_jobs_ranks(&r);
    (void)run_batches(b, &err);
    _exit(2); /* only rank 0 comes here */
}

static void start(struct bench *b, int *fd, pid_t *pid)
{
    for (uint32_t i = 1; i < RANKS; i++) {
        int pair[2];

        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
        pid[i] = fork();
        if (pid[i] == 0) {
            close(pair[0]);
            for (uint32_t k = 1; k < i; k++)
                close(fd[k]);
            be_rank(b, i, pair[1]);
        }
        close(pair[1]);
        fd[i] = pair[0];
    }
}

static void end(int *fd, const pid_t *pid, bool *well)
{
    vt_jobs_ranks(NULL);
    for (uint32_t i = 1; i < RANKS; i++)
        if (fd[i] >= 0)
            close(fd[i]);
    for (uint32_t i = 1; i < RANKS; i++) {
        int status;

        assert_int_equal(waitpid(pid[i], &status, 0), pid[i]);
        well[i] = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    }
}

static uint64_t expected(uint64_t batch)
{
    uint64_t sum = 0;

    for (uint64_t i = 0; i < JOBS; i++)
        sum += (i + 1000 * batch) * (i + 1000 * batch) * (i + 1);
    return sum;
}

static struct row {
    const char *name;
    enum trouble trouble;
    int rc;
    const char *message;
    uint32_t lost;
} rows[] = {
    {"all is well", NO_TROUBLE, VT_OK, "", 0},
    {"one that dies in a job is done without", DIES_IN_A_JOB, VT_OK, "", 1},
    {"one that never comes is done without", DIES_BEFORE, VT_OK, "", 1},
    {"one with other jobs gets none", OTHER_JOBS, VT_OK, "", 1},
    {"the first failure by number is told", ONE_FAILS, VT_EINPUT, "job 7 is no good",
     0},
    {"a deadly job ends the run", DIES_EVERYWHERE, VT_EIO, "trial 5 ended 3", 3},
    {"a late one catches up", LATE, VT_OK, "", 0},
};

static void ranks_agree(void **state)
{
    const struct row *r = *state;
    struct bench b = {.trouble = r->trouble};
    struct vt_err err = {0};
    int fd[RANKS] = {-1, -1, -1, -1};
    pid_t pid[RANKS] = {0};
    bool well[RANKS] = {0};
    struct vt_ranks ranks = {
        .n = RANKS, .fd = fd, .over = is_over, .lost = is_lost, .user = &b};
    int rc;

    start(&b, fd, pid);
    vt_jobs_ranks(&ranks);
    rc = run_batches(&b, &err);
    end(fd, pid, well);
    assert_int_equal(rc, r->rc);
    assert_non_null(strstr(err.msg, r->message));
    assert_true(b.lost <= r->lost);
    for (int i = 0; rc == VT_OK && i < BATCHES; i++)
        assert_int_equal(b.sum[i], expected((uint64_t)i));
    if (r->trouble == NO_TROUBLE || r->trouble == LATE)
        assert_true(well[1] && well[2] && well[3]);
}

int main(void)
{
    enum { N = sizeof(rows) / sizeof(rows[0]) };
    struct CMUnitTest tests[N];

    for (size_t i = 0; i < N; i++)
        tests[i] = (struct CMUnitTest){
            .name = rows[i].name,
            .test_func = ranks_agree,
            .initial_state = &rows[i],
        };
    return cmocka_run_group_tests_name("ranks", tests, NULL, NULL);
}
