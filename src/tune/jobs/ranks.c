/* ranks.c - jobs over ranks: rank 0 hands them out and has one process of its own to
 * run them; the others run what comes, and all get all results. */
#include <stdlib.h>

#include "tune/jobs/jobs.h"

/* One set of ranks for a process, as there is one mpirun. */
static struct {
    const struct vt_ranks *ranks;
    uint32_t batch; /* which comes next */
    bool inside;    /* a job is running */
    /* Rank 0: all batches that there were, for those who come late; a code in one byte,
     * then the results, each behind its length, or the message. */
    struct vt_buf *past; /* heap */
    size_t cap_past;
    bool *waits; /* heap; which ranks wait for the results of the last batch */
} here;

void vt_jobs_ranks(const struct vt_ranks *r)
{
    for (uint32_t i = 0; here.past && i < here.batch; i++)
        vt_buf_free(&here.past[i]);
    free(here.past);
    free(here.waits);
    memset(&here, 0, sizeof(here));
    here.ranks = r && r->n > 1 ? r : NULL;
}

void vt_jobs_ranks_leave(const char *why)
{
    const struct job_head h = {
        .kind = JOB_LEAVING, .batch = here.batch, .len = strlen(why)};

    if (here.ranks && here.ranks->rank > 0)
        (void)job_send(here.ranks->fd[0], &h, why);
}

bool jobs_have_ranks(void)
{
    return here.ranks && !here.inside;
}

/* ---- rank 0 ---------------------------------------------------------------------- */

bool jobs_ranks_catch_up(int fd, uint32_t batch)
{
    const struct job_head h = {
        .kind = JOB_RESULTS, .batch = batch, .len = here.past[batch].len};

    return job_send(fd, &h, here.past[batch].data);
}

static int add_past(const struct job_desk *d, int rc, struct vt_err *err)
{
    struct vt_buf *b;
    int grown = vt_grow(&here.past, &here.cap_past, (size_t)here.batch + 1,
                        sizeof(*here.past), err);

    if (grown != VT_OK)
        return grown;
    b = &here.past[here.batch++];
    *b = (struct vt_buf){0};
    vt_buf_char(b, (char)rc);
    if (rc != VT_OK)
        vt_buf_str(b, err ? err->msg : "failed");
    for (size_t i = 0; rc == VT_OK && i < d->j->n; i++) {
        uint64_t len = d->result[i].len - 1; /* without its code */

        vt_buf_add(b, &len, sizeof(len));
        vt_buf_add(b, d->result[i].data + 1, len);
    }
    return b->failed ? vt_nomem(err) : rc;
}

/* Those who wait at the batch before get its results and go on to this one. A rank that
 * is gone is found to be when it is listened to. */
static void meet_ranks(struct job_desk *d)
{
    for (uint32_t i = 0; i < d->n_workers; i++) {
        d->worker[i] =
            (struct job_worker){.fd = i > 0 ? d->ranks->fd[i] : -1, .job = NO_JOB};
        if (here.waits[i] && d->worker[i].fd >= 0)
            (void)jobs_ranks_catch_up(d->worker[i].fd, here.batch - 1);
        here.waits[i] = false;
    }
}

static int hand_out(const struct vt_jobs *j, struct vt_err *err)
{
    const struct vt_ranks *r = here.ranks;
    struct job_desk d = {.j = j, .ranks = r, .n_workers = r->n, .batch = here.batch};
    int rc;

    d.worker = calloc(r->n, sizeof(*d.worker));
    d.result = calloc(j->n + 1, sizeof(*d.result));
    if (!here.waits)
        here.waits = calloc(r->n, sizeof(*here.waits));
    if (d.worker && d.result && here.waits) {
        meet_ranks(&d);
        rc = add_past(&d, job_desk_run(&d, err), err);
        for (uint32_t i = 1; i < r->n; i++)
            here.waits[i] = d.worker[i].ready && d.worker[i].job == NO_JOB;
    } else {
        rc = vt_nomem(err);
    }
    for (size_t i = 0; d.result && i < j->n; i++)
        vt_buf_free(&d.result[i]);
    free(d.result);
    free(d.worker);
    return rc;
}

/* ---- the others ------------------------------------------------------------------ */

/* As rank 0's done() calls were, but in order. */
static int take_results(const struct vt_jobs *j, const struct vt_buf *b,
                        struct vt_err *err)
{
    size_t at = 1;
    int rc = VT_OK;

    if (b->len > 0 && b->data[0] != VT_OK)
        return vt_fail(err, (enum vt_code)b->data[0], "%s", b->data + 1);
    for (size_t i = 0; i < j->n && rc == VT_OK; i++) {
        uint64_t len = 0;

        if (b->len >= at + sizeof(len))
            memcpy(&len, b->data + at, sizeof(len));
        at += sizeof(len);
        if (b->len < at || b->len - at < len)
            return vt_fail(err, VT_EIO, "rank 0 sent too few results");
        rc = j->done(j->user, i, b->data + at, len, err);
        at += len;
    }
    return rc;
}

/* Serves this batch and takes over its results. */
static int serve_batch(const struct vt_jobs *j, struct vt_err *err)
{
    const struct vt_ranks *r = here.ranks;
    struct job_head h = {.kind = JOB_READY, .batch = here.batch++, .index = j->n};
    struct vt_buf b = {0};
    bool there = job_send(r->fd[0], &h, NULL);
    int rc;

    while ((there = there && job_recv(r->fd[0], &h, &b)) && h.kind == JOB_GIVEN)
        there = job_serve(r->fd[0], j, &h);
    if (there) {
        rc = take_results(j, &b, err);
    } else {
        r->over(r->user);
        rc = vt_fail(err, VT_EIO, "rank 0 has ended");
    }
    vt_buf_free(&b);
    return rc;
}

int jobs_ranks_run(const struct vt_jobs *j, struct vt_err *err)
{
    int rc;

    here.inside = true;
    rc = here.ranks->rank == 0 ? hand_out(j, err) : serve_batch(j, err);
    here.inside = false;
    return rc;
}
