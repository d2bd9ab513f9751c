/* jobs_remote_hand.c - the side of rank 0, which hands jobs out and has one process of
 * its own to run them. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tune/jobs_remote.h"

enum { MOST_TRIES = 3 };

struct handing { /* one batch */
    struct remote_hand *h;
    const struct vt_jobs *j;
    uint32_t batch;
    struct vt_buf *result; /* heap; j->n */
    uint8_t *tries;        /* heap; j->n */
    size_t *again;         /* heap; jobs of those who were lost; j->n at most */
    size_t n_again, next, n_done;
    pid_t child;
    size_t failed;       /* the first by number; SIZE_MAX: none */
    struct vt_err why;   /* of that one */
    struct vt_buf in;    /* the message at hand */
    struct pollfd *poll; /* heap; one for each rank */
};

/* ---- the past ------------------------------------------------------------------ */

static int past_add(struct remote_batches *past, int rc, const struct handing *g,
                    struct vt_err *err)
{
    struct vt_buf *b;
    int grown =
        vt_grow(&past->bytes, &past->cap, past->n + 1, sizeof(*past->bytes), err);

    if (grown == VT_OK)
        grown = vt_grow(&past->code, &past->cap_codes, past->n + 1, sizeof(*past->code),
                        err);
    if (grown != VT_OK)
        return grown;
    b = &past->bytes[past->n];
    *b = (struct vt_buf){0};
    past->code[past->n++] = (uint32_t)rc;
    if (rc != VT_OK)
        vt_buf_str(b, err ? err->msg : "failed");
    for (size_t i = 0; rc == VT_OK && i < g->j->n; i++) {
        uint64_t len = g->result[i].len;

        vt_buf_add(b, &len, sizeof(len));
        vt_buf_add(b, g->result[i].data, len);
    }
    return b->failed ? vt_nomem(err) : rc;
}

static bool send_past(const struct remote_hand *h, uint32_t rank, uint32_t batch)
{
    const struct vt_buf *b = &h->past.bytes[batch];
    const struct remote_head head = {.kind = REMOTE_RESULTS,
                                     .batch = batch,
                                     .code = h->past.code[batch],
                                     .len = b->len};

    return remote_send(h->ranks->fd[rank], &head, b->data);
}

void remote_hand_free(struct remote_hand *h)
{
    for (size_t i = 0; i < h->past.n; i++)
        vt_buf_free(&h->past.bytes[i]);
    free(h->past.bytes);
    free(h->past.code);
    free(h->peer);
    *h = (struct remote_hand){0};
}

/* ---- the process of its own ------------------------------------------------------ */

/* A child that kept the other ranks' sockets would hide rank 0's end from them. */
static void be_child(const struct handing *g, int fd)
{
    for (uint32_t i = 0; i < g->h->ranks->n; i++)
        if (g->h->ranks->fd[i] >= 0)
            close(g->h->ranks->fd[i]);
    remote_serve_child(fd, g->j);
    _exit(0);
}

static int start_child(struct handing *g, struct vt_err *err)
{
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0)
        return vt_fail(err, VT_EIO, "no socket for a worker: %s", strerror(errno));
    (void)fcntl(pair[0], F_SETFD, FD_CLOEXEC);
    g->child = fork();
    if (g->child == 0) {
        close(pair[0]);
        be_child(g, pair[1]);
    }
    close(pair[1]);
    if (g->child < 0) {
        close(pair[0]);
        return vt_fail(err, VT_EIO, "no process for a worker: %s", strerror(errno));
    }
    g->h->ranks->fd[0] = pair[0];
    g->h->peer[0] = (struct remote_peer){.idle = true};
    return VT_OK;
}

static void stop_child(struct handing *g)
{
    if (g->h->ranks->fd[0] >= 0)
        close(g->h->ranks->fd[0]);
    g->h->ranks->fd[0] = -1;
    if (g->child > 0)
        kill(g->child, SIGKILL); /* after a failure it may be at a job */
    while (g->child > 0 && waitpid(g->child, NULL, 0) < 0 && errno == EINTR)
        ;
    g->child = 0;
}

/* ---- losing ------------------------------------------------------------------------
 */

static int lose(struct handing *g, uint32_t rank, const char *why, struct vt_err *err)
{
    const struct vt_ranks *r = g->h->ranks;
    struct remote_peer *p = &g->h->peer[rank];
    bool worked = p->working;

    close(r->fd[rank]);
    r->fd[rank] = -1;
    *p = (struct remote_peer){.job = p->job};
    if (rank > 0)
        r->lost(r->user, rank, why);
    if (worked && ++g->tries[p->job] >= MOST_TRIES)
        return vt_fail(err, VT_EIO, "trial %zu ended %d processes that ran it", p->job,
                       MOST_TRIES);
    if (worked)
        g->again[g->n_again++] = p->job;
    if (rank > 0)
        return VT_OK;
    stop_child(g);
    return start_child(g, err);
}

/* ---- giving -------------------------------------------------------------------------
 */

static int give(struct handing *g, uint32_t rank, struct vt_err *err)
{
    size_t i = g->n_again > 0 ? g->again[--g->n_again] : g->next++;
    struct remote_head head = {.kind = REMOTE_JOB, .batch = g->batch, .index = i};
    struct vt_buf job = {0};
    bool sent;

    g->j->describe(g->j->user, i, &job);
    if (job.failed) {
        vt_buf_free(&job);
        return vt_nomem(err);
    }
    head.len = job.len;
    sent = remote_send(g->h->ranks->fd[rank], &head, job.data);
    g->h->peer[rank] = (struct remote_peer){.working = true, .job = i};
    vt_buf_free(&job);
    return sent ? VT_OK : lose(g, rank, "its connection has ended", err);
}

/* After a failure only what stands before it counts. */
static bool has_more(const struct handing *g)
{
    return g->failed == SIZE_MAX
               ? g->n_again > 0 || g->next < g->j->n
               : g->n_again > 0 && g->again[g->n_again - 1] < g->failed;
}

static bool is_over(const struct handing *g)
{
    if (g->failed == SIZE_MAX)
        return g->n_done == g->j->n;
    for (uint32_t i = 0; i < g->h->ranks->n; i++)
        if (g->h->peer[i].working && g->h->peer[i].job < g->failed)
            return false;
    return !has_more(g);
}

static int give_to_all(struct handing *g, struct vt_err *err)
{
    int rc = VT_OK;

    for (uint32_t i = 0; i < g->h->ranks->n && rc == VT_OK; i++)
        while (rc == VT_OK && g->h->peer[i].idle && has_more(g))
            rc = give(g, i, err);
    return rc;
}

/* ---- hearing --------------------------------------------------------- */

static int hear_ready(struct handing *g, uint32_t rank, const struct remote_head *h,
                      struct vt_err *err)
{
    if (h->index != g->j->n)
        return lose(g, rank, "it has other trials: same files on all machines?", err);
    g->h->peer[rank] = (struct remote_peer){.idle = true};
    return VT_OK;
}

static int hear_result(struct handing *g, uint32_t rank, const struct remote_head *h,
                       struct vt_err *err)
{
    struct remote_peer *p = &g->h->peer[rank];

    if (!p->working || h->index != p->job)
        return lose(g, rank, "it answers what was not asked", err);
    *p = (struct remote_peer){.idle = true};
    if (h->kind == REMOTE_FAILED) {
        if (h->index < g->failed)
            (void)vt_fail(&g->why, (enum vt_code)h->code, "%s", g->in.data);
        g->failed = h->index < g->failed ? h->index : g->failed;
        return VT_OK;
    }
    g->result[h->index] = g->in;
    g->in = (struct vt_buf){0};
    g->n_done++;
    return g->j->done(g->j->user, h->index, g->result[h->index].data,
                      g->result[h->index].len, err);
}

static int hear(struct handing *g, uint32_t rank, struct vt_err *err)
{
    struct remote_head h;

    if (!remote_recv(g->h->ranks->fd[rank], &h, &g->in))
        return lose(g, rank, "its connection has ended", err);
    if (h.kind == REMOTE_BROKEN)
        return lose(g, rank, g->in.data, err);
    if (h.batch > g->batch)
        return lose(g, rank, "it is ahead of rank 0", err);
    if (h.batch < g->batch) /* late: a failure ended that batch, or others did it */
        return send_past(g->h, rank, h.batch)
                   ? VT_OK
                   : lose(g, rank, "its connection has ended", err);
    if (h.kind == REMOTE_READY)
        return hear_ready(g, rank, &h, err);
    return hear_result(g, rank, &h, err);
}

static int hear_all(struct handing *g, struct vt_err *err)
{
    const struct vt_ranks *r = g->h->ranks;
    int rc = VT_OK;

    for (uint32_t i = 0; i < r->n; i++)
        g->poll[i] = (struct pollfd){.fd = r->fd[i], .events = POLLIN};
    if (poll(g->poll, r->n, -1) < 0)
        return errno == EINTR ? VT_OK
                              : vt_fail(err, VT_EIO, "poll: %s", strerror(errno));
    for (uint32_t i = 0; i < r->n && rc == VT_OK; i++)
        if (g->poll[i].revents != 0 && r->fd[i] == g->poll[i].fd)
            rc = hear(g, i, err);
    return rc;
}

/* ---- a batch --------------------------------------------------------- */

/* Those who wait at the batch before get its results and go on to this one. */
static int move_on(struct handing *g, struct vt_err *err)
{
    int rc = VT_OK;

    for (uint32_t i = 1; i < g->h->ranks->n && rc == VT_OK; i++) {
        if (!g->h->peer[i].idle)
            continue;
        g->h->peer[i] = (struct remote_peer){0};
        if (!send_past(g->h, i, g->batch - 1))
            rc = lose(g, i, "its connection has ended", err);
    }
    return rc;
}

static int handing_open(struct handing *g, struct vt_err *err)
{
    const struct vt_ranks *r = g->h->ranks;

    if (!g->h->peer)
        g->h->peer = calloc(r->n, sizeof(*g->h->peer));
    g->result = calloc(g->j->n + 1, sizeof(*g->result));
    g->tries = calloc(g->j->n + 1, sizeof(*g->tries));
    g->again = calloc(g->j->n + 1, sizeof(*g->again));
    g->poll = calloc(r->n, sizeof(*g->poll));
    if (!g->h->peer || !g->result || !g->tries || !g->again || !g->poll)
        return vt_nomem(err);
    for (uint32_t i = 1; i < r->n; i++)
        g->h->peer[i].working = false; /* a failed batch may have left them so */
    return VT_OK;
}

static void handing_close(struct handing *g)
{
    stop_child(g);
    for (size_t i = 0; g->result && i < g->j->n; i++)
        vt_buf_free(&g->result[i]);
    vt_buf_free(&g->in);
    free(g->result);
    free(g->tries);
    free(g->again);
    free(g->poll);
}

int remote_hand_out(struct remote_hand *h, const struct vt_jobs *j, struct vt_err *err)
{
    struct handing g = {
        .h = h, .j = j, .batch = (uint32_t)h->past.n, .failed = SIZE_MAX};
    int rc = handing_open(&g, err);

    if (rc == VT_OK)
        rc = move_on(&g, err);
    if (rc == VT_OK && j->n > 0)
        rc = start_child(&g, err);
    while (rc == VT_OK && !is_over(&g)) {
        rc = give_to_all(&g, err);
        if (rc == VT_OK)
            rc = hear_all(&g, err);
    }
    if (rc == VT_OK && g.failed != SIZE_MAX)
        rc = vt_fail(err, g.why.code, "%s", g.why.msg);
    rc = past_add(&h->past, rc, &g, err);
    handing_close(&g);
    return rc;
}
