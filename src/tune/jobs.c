/* jobs.c - hands jobs to workers and takes their answers, whatever they are.
 *
 * Jobs go out in order, so when one fails all before it are out or done: the first
 * failure by number is known once those have come back, and it is the same however many
 * workers there are. */
#include "tune/jobs.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tune/jobs_remote.h"

enum { MAX_RUNS = 3, NO_JOB = -1 };

struct desk {
    const struct vt_jobs *j;
    const struct jobs_way *way;
    size_t next;   /* first job that was never given */
    uint8_t *runs; /* of each job */
    size_t *again; /* jobs whose worker died */
    size_t n_again;
    int64_t *has; /* of each worker: its job, or NO_JOB */
    bool *gone;
    uint32_t busy, alive;
    size_t failed; /* the first job that did, SIZE_MAX: none */
    struct vt_err why;
};

/* ---- answers ---------------------------------------------------------------- */

/* A code in one byte, then the result, or the message of the failure. */
void jobs_answer(const struct vt_jobs *j, const char *job, size_t len,
                 struct vt_buf *answer)
{
    struct vt_err err = {0};
    int rc;

    vt_buf_char(answer, VT_OK);
    rc = j->run(j->user, job, len, answer, &err);
    if (rc == VT_OK && answer->failed)
        rc = vt_nomem(&err);
    if (rc == VT_OK)
        return;
    vt_buf_clear(answer);
    vt_buf_char(answer, (char)rc);
    vt_buf_str(answer, err.msg);
}

static void note_failure(struct desk *d, size_t job, const struct vt_err *why)
{
    if (job >= d->failed)
        return;
    d->failed = job;
    d->why = *why;
}

static void take_answer(struct desk *d, size_t job, const struct vt_buf *answer)
{
    struct vt_err err = {0};
    int rc;

    if (job >= d->failed)
        return;
    if (answer->failed || answer->len == 0)
        rc = vt_nomem(&err);
    else if (answer->data[0] != VT_OK)
        rc = vt_fail(&err, (enum vt_code)answer->data[0], "%.*s",
                     (int)(answer->len - 1), answer->data + 1);
    else
        rc = d->j->done(d->j->user, job, answer->data + 1, answer->len - 1, &err);
    if (rc != VT_OK)
        note_failure(d, job, &err);
}

/* ---- giving and taking -------------------------------------------------------- */

/* The next job to give; false: none is left. */
static bool next_job(struct desk *d, size_t *job)
{
    if (d->n_again > 0)
        *job = d->again[--d->n_again];
    else if (d->next < d->j->n && d->failed == SIZE_MAX)
        *job = d->next++;
    else
        return false;
    return true;
}

static int give(struct desk *d, uint32_t worker, size_t job, struct vt_err *err)
{
    struct vt_buf b = {0};
    int rc;

    d->j->describe(d->j->user, job, &b);
    rc = b.failed ? vt_nomem(err)
                  : d->way->give(d->way->user, worker, b.data, b.len, err);
    vt_buf_free(&b);
    d->has[worker] = (int64_t)job;
    d->runs[job]++;
    d->busy++;
    return rc;
}

static int give_all(struct desk *d, struct vt_err *err)
{
    int rc = VT_OK;
    size_t job;

    for (uint32_t w = 0; w < d->way->workers && rc == VT_OK; w++)
        if (!d->gone[w] && d->has[w] == NO_JOB && next_job(d, &job))
            rc = give(d, w, job, err);
    return rc;
}

/* A job that takes its workers with it is at fault itself. */
static void lose_job(struct desk *d, size_t job)
{
    struct vt_err err = {0};

    if (d->runs[job] < MAX_RUNS) {
        d->again[d->n_again++] = job;
        return;
    }
    (void)vt_fail(&err, VT_EIO, "job %zu: its worker died %d times", job, MAX_RUNS);
    note_failure(d, job, &err);
}

static int take(struct desk *d, struct vt_err *err)
{
    enum worker_news news = WORKER_ANSWERED;
    struct vt_buf answer = {0};
    uint32_t w = 0;
    int rc = d->way->take(d->way->user, &w, &news, &answer, err);

    if (rc == VT_OK) {
        size_t job = (size_t)d->has[w];

        d->has[w] = NO_JOB;
        d->busy--;
        if (news == WORKER_ANSWERED)
            take_answer(d, job, &answer);
        else
            lose_job(d, job);
        if (news == WORKER_GONE) {
            d->gone[w] = true;
            d->alive--;
        }
    }
    vt_buf_free(&answer);
    return rc;
}

/* Is a job out whose failure would come before the one that is known? */
static bool worth_waiting(const struct desk *d)
{
    for (uint32_t w = 0; d->busy > 0 && w < d->way->workers; w++)
        if (d->has[w] != NO_JOB && (size_t)d->has[w] < d->failed)
            return true;
    return false;
}

static void run_here(struct desk *d, size_t job)
{
    struct vt_buf b = {0}, answer = {0};

    d->j->describe(d->j->user, job, &b);
    if (b.failed)
        answer.failed = true;
    else
        jobs_answer(d->j, b.data, b.len, &answer);
    take_answer(d, job, &answer);
    vt_buf_free(&b);
    vt_buf_free(&answer);
}

static int work_off(struct desk *d, struct vt_err *err)
{
    int rc = VT_OK;
    size_t job;

    while (rc == VT_OK && d->alive > 0) {
        rc = give_all(d, err);
        if (rc != VT_OK || !worth_waiting(d))
            break;
        rc = take(d, err);
    }
    while (rc == VT_OK && d->alive == 0 && next_job(d, &job))
        run_here(d, job);
    return rc;
}

/* ---- the whole ------------------------------------------------------------------ */

static int open_desk(struct desk *d, struct vt_err *err)
{
    size_t workers = d->way->workers;

    d->failed = SIZE_MAX;
    d->alive = d->way->workers;
    d->runs = calloc(d->j->n + 1, sizeof(*d->runs));
    d->again = calloc(workers + 1, sizeof(*d->again));
    d->has = calloc(workers + 1, sizeof(*d->has));
    d->gone = calloc(workers + 1, sizeof(*d->gone));
    if (d->runs == NULL || d->again == NULL || d->has == NULL || d->gone == NULL)
        return vt_nomem(err);
    for (size_t w = 0; w < workers; w++)
        d->has[w] = NO_JOB;
    return VT_OK;
}

int jobs_run_by(const struct vt_jobs *j, const struct jobs_way *way, struct vt_err *err)
{
    struct desk d = {.j = j, .way = way};
    int rc = open_desk(&d, err);

    if (rc == VT_OK)
        rc = work_off(&d, err);
    if (rc == VT_OK && d.failed != SIZE_MAX) {
        rc = (int)d.why.code;
        if (err != NULL)
            *err = d.why;
    }
    free(d.runs);
    free(d.again);
    free(d.has);
    free(d.gone);
    return rc;
}

static uint32_t count_workers(const struct vt_jobs *j)
{
    long cores = j->workers > 0 ? (long)j->workers : sysconf(_SC_NPROCESSORS_ONLN);

    if (cores < 1)
        cores = 1;
    return (size_t)cores < j->n ? (uint32_t)cores : (uint32_t)j->n;
}

int vt_jobs_run(const struct vt_jobs *j, struct vt_err *err)
{
    const struct jobs_way nobody = {0};
    uint32_t workers = count_workers(j);
    struct jobs_way way;
    struct fork_pool *pool;
    int rc;

    if (jobs_have_ranks())
        return jobs_ranks_run(j, err);
    if (workers <= 1)
        return jobs_run_by(j, &nobody, err);
    rc = fork_pool_open(&pool, j, workers, &way, err);
    if (rc == VT_OK)
        rc = jobs_run_by(j, &way, err);
    fork_pool_close(pool);
    return rc;
}
