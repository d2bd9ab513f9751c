/* jobs_fork.c - workers that are forks of this process, each behind a socket.
 *
 * A fork has all that the caller has loaded, so a job is a few bytes. Messages either
 * way are a length in 8 bytes and so many bytes. One that dies is replaced. */
#include "tune/jobs.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_MESSAGE (UINT64_C(1) << 30)

struct fork_worker {
    pid_t pid; /* 0: none */
    int fd;    /* -1: none */
    bool busy;
};

struct fork_pool {
    const struct vt_jobs *j;
    struct fork_worker *worker;
    struct pollfd *poll; /* scratch, one for each worker */
    uint32_t n;
};

/* ---- messages ----------------------------------------------------------------- */

static bool send_message(int fd, const char *bytes, size_t len)
{
    uint64_t n = len;

    return jobs_send_all(fd, &n, sizeof(n)) && jobs_send_all(fd, bytes, len);
}

static bool recv_message(int fd, struct vt_buf *b)
{
    uint64_t n;
    char *room;

    if (!jobs_recv_all(fd, &n, sizeof(n)) || n > MAX_MESSAGE)
        return false;
    room = vt_buf_room(b, (size_t)n);
    if (room == NULL || !jobs_recv_all(fd, room, (size_t)n))
        return false;
    vt_buf_upto(b, room + n);
    return true;
}

/* ---- in a worker ----------------------------------------------------------------- */

/* Until the other end is closed. Nothing of the parent's is flushed or freed. */
_Noreturn static void serve(const struct fork_pool *p, int fd)
{
    struct vt_buf job = {0}, answer = {0};

    for (uint32_t i = 0; i < p->n; i++) /* or the others would outlive the parent */
        if (p->worker[i].fd >= 0)
            close(p->worker[i].fd);
    while (recv_message(fd, &job)) {
        jobs_answer(p->j, job.data, job.len, &answer);
        if (!send_message(fd, answer.data, answer.len))
            break;
        vt_buf_clear(&job);
        vt_buf_clear(&answer);
    }
    _exit(0);
}

/* ---- in the parent ------------------------------------------------------------------
 */

static int start(struct fork_pool *p, struct fork_worker *w, struct vt_err *err)
{
    int fd[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd) != 0)
        return vt_fail(err, VT_EIO, "can't make a socket for a worker");
    w->pid = fork();
    if (w->pid == 0) {
        close(fd[0]);
        serve(p, fd[1]);
    }
    close(fd[1]);
    if (w->pid < 0) {
        close(fd[0]);
        w->pid = 0;
        return vt_fail(err, VT_EIO, "can't start a worker process");
    }
    w->fd = fd[0];
    return VT_OK;
}

static void end(struct fork_worker *w)
{
    if (w->pid <= 0)
        return;
    close(w->fd);
    kill(w->pid, SIGKILL);
    while (waitpid(w->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    *w = (struct fork_worker){.fd = -1};
}

static int pool_give(void *user, uint32_t worker, const char *job, size_t len,
                     struct vt_err *err)
{
    struct fork_pool *p = user;

    (void)err;
    p->worker[worker].busy = true;
    (void)send_message(p->worker[worker].fd, job, len); /* else its end is seen later */
    return VT_OK;
}

/* The first busy worker that has something to say, or has died. */
static int wait_for_one(struct fork_pool *p, uint32_t *worker, struct vt_err *err)
{
    for (uint32_t i = 0; i < p->n; i++)
        p->poll[i] = (struct pollfd){
            .fd = p->worker[i].busy ? p->worker[i].fd : -1,
            .events = POLLIN,
        };
    while (poll(p->poll, p->n, -1) < 0)
        if (errno != EINTR)
            return vt_fail(err, VT_EIO, "can't wait for workers");
    for (uint32_t i = 0; i < p->n; i++)
        if (p->poll[i].revents != 0) {
            *worker = i;
            return VT_OK;
        }
    return vt_fail(err, VT_EIO, "no worker answers");
}

static int pool_take(void *user, uint32_t *worker, enum worker_news *news,
                     struct vt_buf *answer, struct vt_err *err)
{
    struct fork_pool *p = user;
    struct fork_worker *w;
    int rc = wait_for_one(p, worker, err);

    if (rc != VT_OK)
        return rc;
    w = &p->worker[*worker];
    w->busy = false;
    *news = WORKER_ANSWERED;
    if (recv_message(w->fd, answer))
        return VT_OK;
    vt_buf_clear(answer);
    end(w);
    *news = WORKER_RESTARTED;
    return start(p, w, err);
}

int fork_pool_open(struct fork_pool **out, const struct vt_jobs *j, uint32_t workers,
                   struct jobs_way *way, struct vt_err *err)
{
    struct fork_pool *p = calloc(1, sizeof(*p));
    int rc = VT_OK;

    *out = p;
    if (p == NULL)
        return vt_nomem(err);
    p->j = j;
    p->worker = calloc(workers, sizeof(*p->worker));
    p->poll = calloc(workers, sizeof(*p->poll));
    if (p->worker == NULL || p->poll == NULL)
        return vt_nomem(err);
    p->n = workers;
    for (uint32_t i = 0; i < workers; i++)
        p->worker[i].fd = -1;
    for (uint32_t i = 0; i < workers && rc == VT_OK; i++)
        rc = start(p, &p->worker[i], err);
    *way = (struct jobs_way){
        .user = p, .workers = workers, .give = pool_give, .take = pool_take};
    return rc;
}

void fork_pool_close(struct fork_pool *p)
{
    for (uint32_t i = 0; p != NULL && i < p->n; i++)
        end(&p->worker[i]);
    if (p != NULL) {
        free(p->worker);
        free(p->poll);
    }
    free(p);
}
