/* message.c - what goes between those who hand jobs out and those who run them. */
#include <errno.h>
#include <sys/socket.h>

#include "tune/jobs/jobs.h"

#define MAX_MESSAGE (UINT64_C(1) << 30)

static bool send_all(int fd, const void *bytes, size_t len)
{
    const char *p = bytes;

    while (len > 0) {
        ssize_t n = send(fd, p, len, MSG_NOSIGNAL); /* a dead peer is no signal */

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        p += n;
        len -= (size_t)n;
    }
    return true;
}

static bool recv_all(int fd, void *bytes, size_t len)
{
    char *p = bytes;

    while (len > 0) {
        ssize_t n = recv(fd, p, len, 0);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        p += n;
        len -= (size_t)n;
    }
    return true;
}

bool job_send(int fd, const struct job_head *h, const char *bytes)
{
    return send_all(fd, h, sizeof(*h)) && send_all(fd, bytes, h->len);
}

bool job_recv(int fd, struct job_head *h, struct vt_buf *bytes)
{
    char *room;

    vt_buf_clear(bytes);
    if (!recv_all(fd, h, sizeof(*h)) || h->len > MAX_MESSAGE)
        return false;
    room = vt_buf_room(bytes, h->len + 1);
    if (!room || !recv_all(fd, room, h->len))
        return false;
    room[h->len] = '\0';
    vt_buf_upto(bytes, room + h->len);
    return true;
}

void job_answer(const struct vt_jobs *j, const struct vt_buf *job,
                struct vt_buf *answer)
{
    struct vt_err err = {0};
    int rc;

    vt_buf_char(answer, VT_OK);
    rc = j->run(j->user, job->data, job->len, answer, &err);
    if (rc == VT_OK && answer->failed)
        rc = vt_nomem(&err);
    if (rc == VT_OK)
        return;
    vt_buf_clear(answer);
    vt_buf_char(answer, (char)rc);
    vt_buf_str(answer, err.msg);
}

bool job_serve(int fd, const struct vt_jobs *j, const struct job_head *h,
               const struct vt_buf *job)
{
    struct job_head back = {.kind = JOB_ANSWER, .batch = h->batch, .index = h->index};
    struct vt_buf answer = {0};
    bool sent;

    job_answer(j, job, &answer);
    back.len = answer.len;
    sent = job_send(fd, &back, answer.data);
    vt_buf_free(&answer);
    return sent;
}
