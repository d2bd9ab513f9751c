/* desk.c - hands jobs to workers and takes their answers. */
#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tune/jobs/jobs.h"

enum { MAX_RUNS = 3, LOOK_UP_MS = 100 };

/* ---- processes of ours ---------------------------------------------------------- */

/* Until the other end is closed. Nothing of the parent's is flushed or freed. */
_Noreturn static void serve_parent(const struct job_desk *d, int fd)
{
    struct job_head h;
    struct vt_buf none = {0};

    /* Or others would outlive the parent, and not hear of its end. */
    for (uint32_t i = 0; i < d->n_workers; i++)
        if (d->worker[i].fd >= 0)
            close(d->worker[i].fd);
    while (job_recv(fd, &h, &none) && job_serve(fd, d->j, &h))
        ;
    _exit(0);
}

static int start_worker(struct job_desk *d, struct job_worker *w, struct vt_err *err)
{
    int fd[2];

    *w = (struct job_worker){.fd = -1, .job = NO_JOB};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd) != 0)
        return vt_fail(err, VT_EIO, "can't make a socket for a worker");
    w->pid = fork();
    if (w->pid == 0) {
        close(fd[0]);
        serve_parent(d, fd[1]);
    }
    close(fd[1]);
    if (w->pid < 0) {
        close(fd[0]);
        return vt_fail(err, VT_EIO, "can't start a worker process");
    }
    w->fd = fd[0];
    w->ready = true;
    return VT_OK;
}

static void end_worker(struct job_worker *w)
{
    if (w->pid <= 0 || w->fd < 0)
        return;
    close(w->fd);
    kill(w->pid, SIGKILL); /* it may be at a job */
    while (waitpid(w->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    w->fd = -1;
}

/* ---- answers -------------------------------------------------------------------- */

static void note_failure(struct job_desk *d, size_t job, const struct vt_err *why)
{
    if (job >= d->failed)
        return;
    d->failed = job;
    d->why = *why;
}

static void take_answer(struct job_desk *d, size_t job, struct vt_buf *answer)
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
    d->n_done += rc == VT_OK;
    if (rc != VT_OK) {
        note_failure(d, job, &err);
    } else if (d->result) {
        d->result[job] = *answer;
        *answer = (struct vt_buf){0};
    }
}

/* A job that takes its workers with it is at fault itself. */
static void lose_job(struct job_desk *d, size_t job)
{
    struct vt_err err = {0};

    if (d->runs[job] < MAX_RUNS) {
        d->again[d->n_again++] = job;
        return;
    }
    (void)vt_fail(&err, VT_EIO,
                  "trial %zu ended %d processes that ran it: job %zu of %zu", job,
                  MAX_RUNS, job, d->j->n);
    note_failure(d, job, &err);
}

/* Another rank is done without; a process of ours is replaced. */
static int lose_worker(struct job_desk *d, uint32_t i, const char *why,
                       struct vt_err *err)
{
    struct job_worker *w = &d->worker[i];

    if (w->job != NO_JOB)
        lose_job(d, (size_t)w->job);
    if (w->pid > 0) {
        end_worker(w);
        return start_worker(d, w, err);
    }
    close(w->fd);
    *w = (struct job_worker){.fd = -1, .job = NO_JOB};
    d->ranks->fd[i] = -1;
    d->ranks->lost(d->ranks->user, i, why);
    return VT_OK;
}

static int take_message(struct job_desk *d, uint32_t i, const struct job_head *h,
                        struct vt_buf *bytes, struct vt_err *err)
{
    struct job_worker *w = &d->worker[i];

    if (h->kind == JOB_LEAVING)
        return lose_worker(d, i, bytes->data, err);
    if (h->batch > d->batch)
        return lose_worker(d, i, "it is ahead of rank 0", err);
    if (h->batch < d->batch) /* late: a failure ended that batch, or others did it */
        return jobs_ranks_catch_up(w->fd, h->batch)
                   ? VT_OK
                   : lose_worker(d, i, "its connection has ended", err);
    if (h->kind == JOB_READY && h->index != d->j->n)
        return lose_worker(d, i, "it has other trials: same files on all machines?",
                           err);
    if (h->kind != JOB_READY && (w->job == NO_JOB || h->index != (uint64_t)w->job))
        return lose_worker(d, i, "it answers what was not asked", err);
    if (h->kind == JOB_ANSWER)
        take_answer(d, h->index, bytes);
    w->job = NO_JOB;
    w->ready = true;
    return VT_OK;
}

/* Waits until somebody has something to say, or has died. */
static int hear_workers(struct job_desk *d, struct vt_err *err)
{
    struct vt_buf bytes = {0};
    int rc = VT_OK;

    for (uint32_t i = 0; i < d->n_workers; i++)
        d->poll[i] = (struct pollfd){.fd = d->worker[i].fd, .events = POLLIN};
    /* A signal ends the waiting; the time limit is for one that comes just before. */
    while ((rc = vt_stopped(err)) == VT_OK) {
        int n = poll(d->poll, d->n_workers, LOOK_UP_MS);

        if (n > 0)
            break;
        if (n < 0 && errno != EINTR)
            return vt_fail(err, VT_EIO, "can't wait for workers: %s", strerror(errno));
    }
    for (uint32_t i = 0; i < d->n_workers && rc == VT_OK; i++) {
        struct job_head h;

        if (d->poll[i].revents == 0)
            continue;
        rc = job_recv(d->worker[i].fd, &h, &bytes)
                 ? take_message(d, i, &h, &bytes, err)
                 : lose_worker(d, i, "its connection has ended", err);
    }
    vt_buf_free(&bytes);
    return rc;
}

/* ---- giving --------------------------------------------------------------------- */

/* The next job to give; false: none is left. */
static bool next_job(struct job_desk *d, size_t *job)
{
    if (d->n_again > 0)
        *job = d->again[--d->n_again];
    else if (d->next < d->j->n && d->failed == SIZE_MAX)
        *job = d->next++;
    else
        return false;
    return true;
}

static void give_job(struct job_desk *d, struct job_worker *w, size_t job)
{
    const struct job_head h = {.kind = JOB_GIVEN, .batch = d->batch, .index = job};

    assert(w->job == NO_JOB && d->runs[job] < MAX_RUNS);
    (void)job_send(w->fd, &h, NULL); /* else its end is seen later */
    w->job = (int64_t)job;
    d->runs[job]++;
}

/* Gives all that can be given. Whether a job is out whose failure would come before the
 * one that is known. *alive: there is a worker. */
static bool give_jobs(struct job_desk *d, bool *alive)
{
    bool waiting = false;
    size_t job;

    *alive = false;
    for (uint32_t i = 0; i < d->n_workers; i++) {
        struct job_worker *w = &d->worker[i];

        if (w->fd >= 0 && w->ready && w->job == NO_JOB && next_job(d, &job))
            give_job(d, w, job);
        *alive |= w->fd >= 0;
        waiting |= w->job != NO_JOB && (size_t)w->job < d->failed;
    }
    return waiting;
}

static int work_off(struct job_desk *d, struct vt_err *err)
{
    bool alive;
    size_t job;

    while (give_jobs(d, &alive)) {
        int rc = hear_workers(d, err);

        if (rc != VT_OK)
            return rc;
    }
    /* Without workers, and when all are gone. */
    while (!alive && next_job(d, &job)) {
        struct vt_buf answer = {0};
        int rc = vt_stopped(err);

        if (rc != VT_OK)
            return rc;

        job_answer(d->j, job, &answer);
        take_answer(d, job, &answer);
        vt_buf_free(&answer);
    }
    return VT_OK;
}

int job_desk_run(struct job_desk *d, struct vt_err *err)
{
    int rc = VT_OK;

    d->failed = SIZE_MAX;
    d->runs = calloc(d->j->n + 1, sizeof(*d->runs));
    d->again = calloc(d->j->n + 1, sizeof(*d->again));
    d->poll = calloc(d->n_workers + 1, sizeof(*d->poll));
    if (!d->runs || !d->again || !d->poll)
        rc = vt_nomem(err);
    for (uint32_t i = 0; i < d->n_workers && rc == VT_OK; i++)
        if (!d->ranks || i == 0)
            rc = start_worker(d, &d->worker[i], err);
    if (rc == VT_OK)
        rc = work_off(d, err);
    for (uint32_t i = 0; i < d->n_workers; i++)
        end_worker(&d->worker[i]);
    /* Whether this process was told first, or a worker that had the signal too. */
    if ((rc != VT_OK || d->failed != SIZE_MAX) && vt_stopped(err) != VT_OK)
        rc =
            vt_fail(err, VT_EIO, "stopped after %zu of %zu trials", d->n_done, d->j->n);
    if (rc == VT_OK && d->failed != SIZE_MAX) {
        rc = (int)d->why.code;
        if (err)
            *err = d->why;
    }
    free(d->runs);
    free(d->again);
    free(d->poll);
    return rc;
}

int vt_jobs_run(const struct vt_jobs *j, struct vt_err *err)
{
    long cores = j->workers > 0 ? (long)j->workers : sysconf(_SC_NPROCESSORS_ONLN);
    size_t most = cores > 1 ? (size_t)cores : 1;
    uint32_t n = (uint32_t)(most < j->n ? most : j->n);
    struct job_desk d = {.j = j, .n_workers = n > 1 ? n : 0};
    int rc;

    if (jobs_have_ranks())
        return jobs_ranks_run(j, err);
    d.worker = calloc(n + (size_t)1, sizeof(*d.worker));
    if (!d.worker)
        return vt_nomem(err);
    for (uint32_t i = 0; i < n; i++)
        d.worker[i].fd = -1;
    rc = job_desk_run(&d, err);
    free(d.worker);
    return rc;
}
