/* remote.c - jobs that a driver has run elsewhere, and the worker's end of it. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>

#include "tune/jobs/jobs.h"

enum { LOOK_UP_MS = 100 };

/* ---- a driver ------------------------------------------------------------------- */

static int fail_gone(struct vt_err *err)
{
    return vt_fail(err, VT_EIO, "the driver of the workers has ended: no result");
}

/* Waits for the driver's next word. A signal ends the waiting. */
static int hear(const struct vt_jobs_driver *d, struct job_head *h,
                struct vt_buf *bytes, struct vt_err *err)
{
    struct pollfd p = {.fd = d->fd, .events = POLLIN};
    int rc;

    while ((rc = vt_stopped(err)) == VT_OK) {
        int n = poll(&p, 1, LOOK_UP_MS);

        if (n > 0)
            break;
        if (n < 0 && errno != EINTR)
            return vt_fail(err, VT_EIO, "can't wait for workers: %s", strerror(errno));
    }
    if (rc != VT_OK)
        return rc;
    if (!job_recv(d->fd, h, bytes))
        return fail_gone(err);
    if (h->kind == JOB_FAILED && h->len > 1)
        return vt_fail(err, (enum vt_code)bytes->data[0], "%s", bytes->data + 1);
    return VT_OK;
}

int vt_jobs_driver_meet(const struct vt_jobs_driver *d, struct vt_buf *hello,
                        struct vt_err *err)
{
    struct job_head h = {0};
    int rc = hear(d, &h, hello, err);

    if (rc == VT_OK && h.kind != JOB_HELLO)
        rc = vt_fail(err, VT_EIO, "the driver of the workers is not of this version");
    return rc;
}

/* It does not listen any more: its last words say why. */
static int hear_why(const struct vt_jobs_driver *d, struct vt_err *err)
{
    struct vt_buf bytes = {0};
    struct job_head h;
    int rc;

    while ((rc = hear(d, &h, &bytes, err)) == VT_OK)
        ;
    vt_buf_free(&bytes);
    return rc;
}

static bool send_bytes(const struct vt_jobs_driver *d, enum job_kind kind,
                       const struct vt_buf *b)
{
    const struct job_head h = {.kind = kind, .len = b->len};

    return job_send(d->fd, &h, b->data);
}

static bool give(const struct vt_jobs_driver *d, uint32_t batch, size_t i, uint64_t n)
{
    const struct job_head h = {
        .kind = JOB_GIVEN, .batch = batch, .index = i, .len = sizeof(n)};

    return job_send(d->fd, &h, (const char *)&n);
}

/* Of answers each job has one; a second one would count twice. */
static int take(const struct vt_jobs_driver *d, struct job_book *k, uint32_t batch,
                bool *answered, const struct job_head *h, const struct vt_buf *b,
                struct vt_err *err)
{
    if (h->kind == JOB_COST && h->len > sizeof(vt_ns)) {
        vt_ns took;

        memcpy(&took, b->data, sizeof(took));
        if (d->cost)
            d->cost(d->user, b->data + sizeof(took), took);
        return VT_OK;
    }
    if (h->kind != JOB_ANSWER || h->batch != batch || h->index >= k->j->n ||
        answered[h->index])
        return vt_fail(err, VT_EIO, "the driver answers what was not asked");
    answered[h->index] = true;
    job_book_take(k, h->index, b->data, b->len);
    return VT_OK;
}

/* Whether an answer is out that may change the outcome. */
static bool is_waiting(const struct job_book *k, const bool *answered, size_t *from,
                       size_t given)
{
    while (*from < given && answered[*from])
        ++*from;
    return *from < given && *from < k->failed;
}

int vt_jobs_driver_run(const struct vt_jobs_driver *d, const struct vt_jobs *j,
                       uint32_t batch, struct vt_err *err)
{
    bool *answered = calloc(j->n + 1, sizeof(*answered));
    size_t given = 0, out = 0, first = 0;
    struct vt_buf bytes = {0};
    struct job_book k;
    struct job_head h;
    int rc = answered ? VT_OK : vt_nomem(err);

    job_book_open(&k, j);
    if (rc == VT_OK && batch == 0 &&
        (!send_bytes(d, JOB_COMMAND, d->command) ||
         !send_bytes(d, JOB_INPUTS, d->inputs)))
        rc = hear_why(d, err);
    while (rc == VT_OK) {
        for (; given < j->n && k.failed == SIZE_MAX && rc == VT_OK &&
               (d->most == 0 || out < d->most);
             given++, out++)
            if (!give(d, batch, given, j->n))
                rc = hear_why(d, err);
        if (rc != VT_OK || !is_waiting(&k, answered, &first, given))
            break;
        if ((rc = hear(d, &h, &bytes, err)) == VT_OK)
            rc = take(d, &k, batch, answered, &h, &bytes, err);
        out -= rc == VT_OK && h.kind == JOB_ANSWER;
    }
    vt_buf_free(&bytes);
    free(answered);
    return job_book_end(&k, rc, err);
}

/* ---- a worker -------------------------------------------------------------------- */

/* As the driver's done() calls were, but in order: each result behind its length. */
static int take_results(const struct vt_jobs *j, const struct vt_buf *b,
                        struct vt_err *err)
{
    size_t at = 0;
    int rc = VT_OK;

    for (size_t i = 0; i < j->n && rc == VT_OK; i++) {
        uint64_t len = 0;

        if (b->len >= at + sizeof(len))
            memcpy(&len, b->data + at, sizeof(len));
        at += sizeof(len);
        if (b->len < at || b->len - at < len)
            return vt_fail(err, VT_EIO, "too few results came");
        rc = j->done(j->user, i, b->data + at, len, err);
        at += len;
    }
    return rc;
}

/* The same command has the same jobs, or it has read other files. */
static bool refuse_other(const struct vt_jobs_worker *w, const struct vt_jobs *j,
                         const struct job_head *h, const struct vt_buf *b, bool *sent)
{
    struct job_head back = {.kind = JOB_ANSWER, .batch = h->batch, .index = h->index};
    struct vt_buf answer = {0};
    uint64_t n = 0;

    if (b->len == sizeof(n))
        memcpy(&n, b->data, sizeof(n));
    if (n == j->n)
        return false;
    vt_buf_char(&answer, VT_EINPUT);
    vt_buf_printf(&answer,
                  "a worker has %zu trials, not %llu: has it read other files?", j->n,
                  (unsigned long long)n);
    back.len = answer.len;
    *sent = !answer.failed && job_send(w->out, &back, answer.data);
    vt_buf_free(&answer);
    return true;
}

static int serve_batch(void *user, const struct vt_jobs *j, uint32_t batch,
                       struct vt_err *err)
{
    struct vt_jobs_worker *w = user;
    struct vt_buf b = {0};
    struct job_head h;
    bool there = true;
    int rc = VT_OK;

    while ((there = there && job_recv(w->in, &h, &b)) && h.kind == JOB_GIVEN &&
           h.batch == batch)
        if (!refuse_other(w, j, &h, &b, &there))
            there = job_serve(w->out, j, &h);
    if (there && h.kind == JOB_RESULTS && h.batch == batch) {
        rc = take_results(j, &b, err);
    } else {
        w->over = !there;
        rc = vt_fail(err, VT_EIO,
                     there ? "asked for what does not come next"
                           : "nothing more is asked");
    }
    vt_buf_free(&b);
    return rc;
}

int vt_jobs_worker_command(const struct vt_jobs_worker *w, struct vt_buf *words,
                           struct vt_err *err)
{
    struct job_head h;

    if (!job_recv(w->in, &h, words) || h.kind != JOB_COMMAND || words->len == 0)
        return vt_fail(err, VT_EINPUT, "no command came on stdin");
    return VT_OK;
}

void vt_jobs_as_worker(struct vt_jobs_worker *w)
{
    w->self = (struct vt_jobs_elsewhere){serve_batch, w};
    vt_jobs_elsewhere(&w->self);
}
