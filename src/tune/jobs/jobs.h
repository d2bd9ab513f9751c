/* jobs.h - jobs that others run: forks of this process, or whoever sits behind a socket
 * and speaks the same. */
#ifndef VT_TUNE_JOBS_H
#define VT_TUNE_JOBS_H

#include "tune/tune.h"

/* ---- messages ------------------------------------------------------------------ */

/* Numbers are as this machine has them: all run the same program. python/vtwin/ray.py
 * has the same numbers. */
enum job_kind {
    JOB_COMMAND, /* to a driver or worker, first: the words of the command line */
    JOB_INPUTS,  /* to a driver: the files that the command has read, by now */
    JOB_GIVEN,   /* to whoever runs it; its bytes: how many jobs the batch has */
    JOB_ANSWER,  /* what came of it */
    JOB_RESULTS, /* to a worker: those of a whole batch; then the next one begins */
    JOB_COST,    /* of a driver, before an answer: nanoseconds, and where */
    JOB_HELLO,   /* of a driver, first: it is ready; in words */
    JOB_FAILED,  /* of a driver: it can't go on; a code in one byte, and why */
    JOB_SHARD,   /* in a file of answers: index, of how many (batch), and of what */
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

/* ---- what came of a batch -------------------------------------------------------- */

/* Jobs go out in order, so when one fails all before it are out or done: the first
 * failure by number is known once those have come back, and it is the same however many
 * workers there are. */
struct job_book {
    const struct vt_jobs *j;
    size_t n_done; /* jobs with a result */
    size_t failed; /* the first job that did, SIZE_MAX: none */
    struct vt_err why;
};
void job_book_open(struct job_book *k, const struct vt_jobs *j);
void job_book_fail(struct job_book *k, size_t job, const struct vt_err *why);
/* An answer came: it is handed on, or is a failure. */
void job_book_take(struct job_book *k, size_t job, const char *answer, size_t len);
/* The outcome; rc: of waiting for all this. */
int job_book_end(const struct job_book *k, int rc, struct vt_err *err) VT_MUST_CHECK;

/* ---- handing out --------------------------------------------------------------- */

/* Runs all jobs by forks of this process, whoever else there is. */
int job_desk_run(const struct vt_jobs *j, struct vt_err *err) VT_MUST_CHECK;

#endif
