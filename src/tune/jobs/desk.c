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

enum { MAX_RUNS = 3, LOOK_UP_MS = 100, NO_JOB = -1 };

struct job_worker {
    int fd; /* -1: it was never started */
    int pid;
    int64_t job; /* that it has, or NO_JOB */
};

/* One batch, and the processes that run it, each with one job at a time. */
struct job_desk {
    struct job_book book;
    struct job_worker *worker;
    uint32_t n_workers;

    size_t next;   /* first job that was never given */
    uint8_t *runs; /* of each job */
    size_t *again; /* jobs whose worker died */
    size_t n_again;
    struct pollfd *poll; /* one for each worker */
};

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
    while (job_recv(fd, &h, &none) && job_serve(fd, d->book.j, &h))
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
    return VT_OK;
}

static void end_worker(struct job_worker *w)
{
    if (w->fd < 0)
        return;
    close(w->fd);
    kill(w->pid, SIGKILL); /* it may be at a job */
    while (waitpid(w->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    w->fd = -1;
}

/* ---- answers -------------------------------------------------------------------- */

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
                  MAX_RUNS, job, d->book.j->n);
    job_book_fail(&d->book, job, &err);
}

/* It is replaced. */
static int lose_worker(struct job_desk *d, struct job_worker *w, struct vt_err *err)
{
    if (w->job != NO_JOB)
        lose_job(d, (size_t)w->job);
    end_worker(w);
    return start_worker(d, w, err);
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
        struct job_worker *w = &d->worker[i];
        struct job_head h;

        if (d->poll[i].revents == 0)
            continue;
        if (job_recv(w->fd, &h, &bytes)) {
            assert(h.index == (uint64_t)w->job);
            job_book_take(&d->book, h.index, bytes.data, bytes.len);
            w->job = NO_JOB;
        } else {
            rc = lose_worker(d, w, err);
        }
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
    else if (d->next < d->book.j->n && d->book.failed == SIZE_MAX)
        *job = d->next++;
    else
        return false;
    return true;
}

static void give_job(struct job_desk *d, struct job_worker *w, size_t job)
{
    const struct job_head h = {.kind = JOB_GIVEN, .index = job};

    assert(w->job == NO_JOB && d->runs[job] < MAX_RUNS);
    (void)job_send(w->fd, &h, NULL); /* else its end is seen later */
    w->job = (int64_t)job;
    d->runs[job]++;
}

/* Gives all that can be given. Whether a job is out whose failure would come before the
 * one that is known. */
static bool give_jobs(struct job_desk *d)
{
    bool waiting = false;
    size_t job;

    for (uint32_t i = 0; i < d->n_workers; i++) {
        struct job_worker *w = &d->worker[i];

        if (w->job == NO_JOB && next_job(d, &job))
            give_job(d, w, job);
        waiting |= w->job != NO_JOB && (size_t)w->job < d->book.failed;
    }
    return waiting;
}

static int work_off(struct job_desk *d, struct vt_err *err)
{
    size_t job;

    while (give_jobs(d)) {
        int rc = hear_workers(d, err);

        if (rc != VT_OK)
            return rc;
    }
    while (d->n_workers == 0 && next_job(d, &job)) {
        struct vt_buf answer = {0};
        int rc = vt_stopped(err);

        if (rc != VT_OK)
            return rc;
        job_answer(d->book.j, job, &answer);
        job_book_take(&d->book, job, answer.data, answer.len);
        vt_buf_free(&answer);
    }
    return VT_OK;
}

int job_desk_run(const struct vt_jobs *j, struct vt_err *err)
{
    long cores = j->workers > 0 ? (long)j->workers : sysconf(_SC_NPROCESSORS_ONLN);
    size_t most = cores > 1 ? (size_t)cores : 1;
    uint32_t n = (uint32_t)(most < j->n ? most : j->n);
    struct job_desk d = {.n_workers = n > 1 ? n : 0};
    int rc = VT_OK;

    job_book_open(&d.book, j);
    d.worker = calloc(n + (size_t)1, sizeof(*d.worker));
    d.runs = calloc(j->n + 1, sizeof(*d.runs));
    d.again = calloc(j->n + 1, sizeof(*d.again));
    d.poll = calloc(n + (size_t)1, sizeof(*d.poll));
    if (!d.worker || !d.runs || !d.again || !d.poll) {
        rc = vt_nomem(err);
        goto out;
    }
    for (uint32_t i = 0; i < d.n_workers; i++)
        d.worker[i].fd = -1;
    for (uint32_t i = 0; i < d.n_workers && rc == VT_OK; i++)
        rc = start_worker(&d, &d.worker[i], err);
    if (rc == VT_OK)
        rc = work_off(&d, err);
    for (uint32_t i = 0; i < d.n_workers; i++)
        end_worker(&d.worker[i]);
    rc = job_book_end(&d.book, rc, err);
out:
    free(d.worker);
    free(d.runs);
    free(d.again);
    free(d.poll);
    return rc;
}

/* ---- elsewhere ------------------------------------------------------------------- */

/* One for a process, as it runs one command. */
static struct {
    const struct vt_jobs_elsewhere *who;
    uint32_t batch; /* which comes next */
    bool inside;    /* of a batch: jobs inside of jobs stay where they are */
} elsewhere;

void vt_jobs_elsewhere(const struct vt_jobs_elsewhere *who)
{
    memset(&elsewhere, 0, sizeof(elsewhere));
    elsewhere.who = who;
}

int vt_jobs_run(const struct vt_jobs *j, struct vt_err *err)
{
    int rc;

    if (!elsewhere.who || elsewhere.inside)
        return job_desk_run(j, err);
    elsewhere.inside = true;
    rc = elsewhere.who->run(elsewhere.who->user, j, elsewhere.batch++, err);
    elsewhere.inside = false;
    return rc;
}
