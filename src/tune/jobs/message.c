/* message.c - what goes between those who hand jobs out and those who run them. */
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tune/jobs/jobs.h"

#define MAX_MESSAGE (UINT64_C(1) << 30)

/* Sockets, so that a dead peer is no signal; pipes and files too. */
static ssize_t put_some(int fd, const char *from, size_t len)
{
    ssize_t n = send(fd, from, len, MSG_NOSIGNAL);

    return n < 0 && errno == ENOTSOCK ? write(fd, from, len) : n;
}

/* Sends what is at `from`, or receives to `to`, whichever is given. */
static bool transfer(int fd, const char *from, char *to, size_t len)
{
    for (size_t done = 0; done < len;) {
        ssize_t n = from ? put_some(fd, from + done, len - done)
                         : read(fd, to + done, len - done);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        done += (size_t)n;
    }
    return true;
}

bool job_send(int fd, const struct job_head *h, const char *bytes)
{
    return transfer(fd, (const char *)h, NULL, sizeof(*h)) &&
           transfer(fd, bytes, NULL, h->len);
}

bool job_recv(int fd, struct job_head *h, struct vt_buf *bytes)
{
    enum { PIECE = 1 << 20 };
    char *room;

    vt_buf_clear(bytes);
    if (!transfer(fd, NULL, (char *)h, sizeof(*h)) || h->len > MAX_MESSAGE)
        return false;
    /* What a head promises may never come: room is made as it does. */
    for (uint64_t left = h->len; left > 0;) {
        size_t n = left < PIECE ? (size_t)left : PIECE;

        room = vt_buf_room(bytes, n + 1);
        if (!room || !transfer(fd, NULL, room, n))
            return false;
        vt_buf_upto(bytes, room + n);
        left -= n;
    }
    room = vt_buf_room(bytes, 1);
    if (!room)
        return false;
    *room = '\0';
    return true;
}

void job_answer(const struct vt_jobs *j, size_t i, struct vt_buf *answer)
{
    struct vt_err err = {0};
    int rc;

    vt_buf_char(answer, VT_OK);
    rc = i < j->n ? j->run(j->user, i, answer, &err)
                  : vt_fail(&err, VT_EINPUT, "there is no job %zu", i);
    if (rc == VT_OK && answer->failed)
        rc = vt_nomem(&err);
    if (rc == VT_OK)
        return;
    vt_buf_clear(answer);
    vt_buf_char(answer, (char)rc);
    vt_buf_str(answer, err.msg);
}

bool job_serve(int fd, const struct vt_jobs *j, const struct job_head *h)
{
    struct job_head back = {.kind = JOB_ANSWER, .batch = h->batch, .index = h->index};
    struct vt_buf answer = {0};
    bool sent;

    job_answer(j, h->index, &answer);
    back.len = answer.len;
    sent = job_send(fd, &back, answer.data);
    vt_buf_free(&answer);
    return sent;
}

/* ---- what came of a batch -------------------------------------------------------- */

void job_book_open(struct job_book *k, const struct vt_jobs *j)
{
    *k = (struct job_book){.j = j, .failed = SIZE_MAX};
}

void job_book_fail(struct job_book *k, size_t job, const struct vt_err *why)
{
    if (job >= k->failed)
        return;
    k->failed = job;
    k->why = *why;
}

void job_book_take(struct job_book *k, size_t job, const char *answer, size_t len)
{
    struct vt_err err = {0};
    int rc;

    if (job >= k->failed)
        return;
    if (len == 0)
        rc = vt_fail(&err, VT_EIO, "an answer of no bytes");
    else if (answer[0] != VT_OK)
        rc = vt_fail(&err, (enum vt_code)answer[0], "%.*s", (int)(len - 1), answer + 1);
    else
        rc = k->j->done(k->j->user, job, answer + 1, len - 1, &err);
    k->n_done += rc == VT_OK;
    if (rc != VT_OK)
        job_book_fail(k, job, &err);
}

int job_book_end(const struct job_book *k, int rc, struct vt_err *err)
{
    /* Whether this process was told first, or a worker that had the signal too. */
    if ((rc != VT_OK || k->failed != SIZE_MAX) && vt_stopped(err) != VT_OK)
        return vt_fail(err, VT_EIO, "stopped after %zu of %zu trials", k->n_done,
                       k->j->n);
    if (rc == VT_OK && k->failed != SIZE_MAX) {
        rc = (int)k->why.code;
        if (err)
            *err = k->why;
    }
    return rc;
}
