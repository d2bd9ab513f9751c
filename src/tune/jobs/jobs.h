/* jobs.h - jobs that others run: forks of this process, and other ranks. Each sits
 * behind a socket and has one job at a time. */
#ifndef VT_TUNE_JOBS_H
#define VT_TUNE_JOBS_H

#include "tune/tune.h"

/* ---- messages ------------------------------------------------------------------ */

/* Numbers are as this machine has them: all run the same program. */
enum job_kind {
    JOB_READY,  /* of another rank: it has come to this batch; index: its number of jobs
                 */
    JOB_GIVEN,  /* to whoever runs it */
    JOB_ANSWER, /* what came of it */
    JOB_RESULTS, /* to other ranks: those of a whole batch; then the next one begins */
    JOB_LEAVING, /* of another rank: it ends; why */
};
struct job_head {
    uint32_t kind, batch;
    uint64_t index, len; /* len: of the bytes that follow */
};
/* Both wait until all is done; false: the other side is gone. */
bool job_send(int fd, const struct job_head *h, const char *bytes);
bool job_recv(int fd, struct job_head *h, struct vt_buf *bytes);

/* Runs job i. An answer is a code in one byte, then the result, or the message of the
 * failure. */
void job_answer(const struct vt_jobs *j, size_t i, struct vt_buf *answer);
/* The same for a job that came, and sends the answer. */
bool job_serve(int fd, const struct vt_jobs *j, const struct job_head *h);

/* ---- handing out --------------------------------------------------------------- */

enum { NO_JOB = -1 };

struct job_worker {
    int fd;  /* -1: it is gone */
    int pid; /* 0: another rank */
    bool ready;
    int64_t job; /* that it has, or NO_JOB */
};

/* One batch. Jobs go out in order, so when one fails all before it are out or done: the
 * first failure by number is known once those have come back, and it is the same
 * however many workers there are. Set the first part, zero the rest. */
struct job_desk {
    const struct vt_jobs *j;
    const struct vt_ranks *ranks; /* NULL: all workers are processes of ours */
    struct job_worker *worker;
    uint32_t n_workers;
    uint32_t batch;
    struct vt_buf *result; /* of each job, to be kept; NULL: not asked for */

    size_t next;   /* first job that was never given */
    size_t n_done; /* jobs with a result */
    uint8_t *runs; /* of each job */
    size_t *again; /* jobs whose worker died */
    size_t n_again;
    struct pollfd *poll; /* one for each worker */
    size_t failed;       /* the first job that did, SIZE_MAX: none */
    struct vt_err why;
};
/* Runs all jobs, and does itself what nobody is left to do. Ends workers of ours. */
int job_desk_run(struct job_desk *d, struct vt_err *err) VT_MUST_CHECK;

/* ---- ranks --------------------------------------------------------------------- */

/* Whoever runs a job has no ranks: jobs inside of jobs stay there. */
bool jobs_have_ranks(void);
int jobs_ranks_run(const struct vt_jobs *j, struct vt_err *err) VT_MUST_CHECK;
/* Rank 0: another rank is at an earlier batch, and gets its results. */
bool jobs_ranks_catch_up(int fd, uint32_t batch);

#endif
