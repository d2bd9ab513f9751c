/* jobs.h - ways to get jobs to workers. Private to tune. */
#ifndef VT_TUNE_JOBS_H
#define VT_TUNE_JOBS_H

#include "tune/tune.h"

/* Workers and how jobs go to them; each has at most one at a time. */
enum worker_news {
    WORKER_ANSWERED,
    WORKER_RESTARTED, /* its job is lost, it can be given another */
    WORKER_GONE,      /* its job is lost, and so is it */
};
struct jobs_way {
    void *user;
    uint32_t workers;
    /* Hands a job over without waiting for its result. A worker that cannot be reached
     * is no error: take() tells of it. */
    int (*give)(void *user, uint32_t worker, const char *job, size_t len,
                struct vt_err *err);
    /* Waits for news of one that has a job; its answer goes to the empty buffer. */
    int (*take)(void *user, uint32_t *worker, enum worker_news *news,
                struct vt_buf *answer, struct vt_err *err);
};
/* Runs all jobs. Without workers, and when all are gone, this process does the rest. */
int jobs_run_by(const struct vt_jobs *j, const struct jobs_way *way,
                struct vt_err *err) VT_MUST_CHECK;
/* What a worker does with a job: run() of *j, and an answer to send back. */
void jobs_answer(const struct vt_jobs *j, const char *job, size_t len,
                 struct vt_buf *answer);

/* All of the bytes, whatever pieces they go in. False: the peer is no more. */
bool jobs_send_all(int fd, const void *bytes, size_t len);
bool jobs_recv_all(int fd, void *bytes, size_t len);

struct fork_pool; /* opaque */
/* Starts `workers` processes that answer jobs of *j, which must outlive the pool, and
 * fills *way. Close it whatever happens. */
int fork_pool_open(struct fork_pool **out, const struct vt_jobs *j, uint32_t workers,
                   struct jobs_way *way, struct vt_err *err) VT_MUST_CHECK;
void fork_pool_close(struct fork_pool *p); /* ends them all; NULL is fine */

#endif
