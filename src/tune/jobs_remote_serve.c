/* jobs_remote_serve.c - the side of those who run jobs. */
#include <stdlib.h>

#include "tune/jobs_remote.h"

bool remote_serve_job(int fd, const struct vt_jobs *j, const struct remote_head *h,
                      const struct vt_buf *job)
{
    struct remote_head answer = {
        .kind = REMOTE_RESULT, .batch = h->batch, .index = h->index};
    struct vt_buf result = {0};
    struct vt_err err = {0};
    int rc = j->run(j->user, job->data, job->len, &result, &err);
    bool sent;

    if (rc == VT_OK && result.failed)
        rc = vt_nomem(&err);
    answer.len = result.len;
    if (rc != VT_OK) {
        answer.kind = REMOTE_FAILED;
        answer.code = (uint32_t)rc;
        answer.len = strlen(err.msg);
    }
    sent = remote_send(fd, &answer, rc == VT_OK ? result.data : err.msg);
    vt_buf_free(&result);
    return sent;
}

void remote_serve_child(int fd, const struct vt_jobs *j)
{
    struct remote_head h;
    struct vt_buf b = {0};

    while (remote_recv(fd, &h, &b) && remote_serve_job(fd, j, &h, &b))
        ;
    vt_buf_free(&b);
}

/* As rank 0's done() calls were, but in order. */
static int take_results(const struct vt_jobs *j, const struct remote_head *h,
                        const struct vt_buf *b, struct vt_err *err)
{
    size_t at = 0;
    int rc = VT_OK;

    if (h->code != VT_OK)
        return vt_fail(err, (enum vt_code)h->code, "%s", b->data);
    for (size_t i = 0; i < j->n && rc == VT_OK; i++) {
        uint64_t len;

        if (b->len - at < sizeof(len))
            return vt_fail(err, VT_EIO, "rank 0 sent too few results");
        memcpy(&len, b->data + at, sizeof(len));
        at += sizeof(len);
        if (b->len - at < len)
            return vt_fail(err, VT_EIO, "rank 0 sent too few results");
        rc = j->done(j->user, i, b->data + at, len, err);
        at += len;
    }
    return rc;
}

int remote_serve_batch(const struct vt_ranks *r, uint32_t batch,
                       const struct vt_jobs *j, struct vt_err *err)
{
    struct remote_head h = {.kind = REMOTE_READY, .batch = batch, .index = j->n};
    struct vt_buf b = {0};
    bool there = remote_send(r->fd[0], &h, NULL);
    int rc = VT_EIO;

    for (;;) {
        there = there && remote_recv(r->fd[0], &h, &b);
        if (!there) {
            vt_buf_free(&b);
            r->over(r->user);
            return vt_fail(err, VT_EIO, "rank 0 has ended");
        }
        if (h.kind != REMOTE_JOB)
            break;
        there = remote_serve_job(r->fd[0], j, &h, &b);
    }
    rc = take_results(j, &h, &b, err);
    vt_buf_free(&b);
    return rc;
}
