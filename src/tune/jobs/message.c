/* message.c - what goes between those who hand jobs out and those who run them. */
#include <errno.h>
#include <sys/socket.h>

#include "tune/jobs/jobs.h"

#define MAX_MESSAGE (UINT64_C(1) << 30)

/* Sends what is at `from`, or receives to `to`, whichever is given. */
static bool transfer(int fd, const char *from, char *to, size_t len)
{
    for (size_t done = 0; done < len;) {
        ssize_t n = from ? send(fd, from + done, len - done,
                                MSG_NOSIGNAL) /* a dead peer is no signal */
                         : recv(fd, to + done, len - done, 0);

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
    char *room;

    vt_buf_clear(bytes);
    if (!transfer(fd, NULL, (char *)h, sizeof(*h)) || h->len > MAX_MESSAGE)
        return false;
    room = vt_buf_room(bytes, h->len + 1);
    if (!room || !transfer(fd, NULL, room, h->len))
        return false;
    room[h->len] = '\0';
    vt_buf_upto(bytes, room + h->len);
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
