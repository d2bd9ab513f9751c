/* jobs_remote.h - jobs that other ranks run; private to tune.
 *
 * vt_jobs_run() begins with
 *     if (jobs_have_ranks())
 *         return jobs_ranks_run(j, err);
 * Whoever runs a job has no ranks: jobs inside of jobs stay there. */
#ifndef VT_TUNE_JOBS_REMOTE_H
#define VT_TUNE_JOBS_REMOTE_H

#include "tune/tune.h"

bool jobs_have_ranks(void);
int jobs_ranks_run(const struct vt_jobs *j, struct vt_err *err) VT_MUST_CHECK;

/* ---- messages ----------------------------------------------------------------- */

/* Numbers are as this machine has them: all ranks run the same program. */
enum remote_kind {
    REMOTE_READY,   /* to rank 0: has come to this batch; index: its number of jobs */
    REMOTE_JOB,     /* to others */
    REMOTE_RESULT,  /* to rank 0 */
    REMOTE_FAILED,  /* to rank 0: a job's own failure; code and message */
    REMOTE_RESULTS, /* to others: all of a batch, or its failure; then the next begins
                     */
    REMOTE_BROKEN,  /* to rank 0: this rank ends; why */
};
struct remote_head {
    uint32_t kind, batch;
    uint32_t code, unused;
    uint64_t index, len; /* len: of the bytes that follow */
};
/* Both wait until all is done; false: the other side is gone. */
bool remote_send(int fd, const struct remote_head *h, const char *bytes);
bool remote_recv(int fd, struct remote_head *h, struct vt_buf *bytes);

/* ---- serving ------------------------------------------------------------------- */

/* Runs one job and sends what came of it; false: nobody is there to take it. */
bool remote_serve_job(int fd, const struct vt_jobs *j, const struct remote_head *h,
                      const struct vt_buf *job);
/* Runs what comes, until the other side is gone. */
void remote_serve_child(int fd, const struct vt_jobs *j);
/* As another rank than 0: serves this batch and takes over its results. */
int remote_serve_batch(const struct vt_ranks *r, uint32_t batch,
                       const struct vt_jobs *j, struct vt_err *err) VT_MUST_CHECK;

/* ---- handing out ----------------------------------------------------------------- */

struct remote_peer {
    bool idle, working; /* neither: still at an earlier batch */
    size_t job;
};
struct remote_batches {   /* all that there were; late ranks catch up from here */
    struct vt_buf *bytes; /* heap */
    uint32_t *code;       /* heap; VT_OK: bytes are results, else a message */
    size_t n, cap, cap_codes;
};
struct remote_hand { /* rank 0 */
    const struct vt_ranks *ranks;
    struct remote_peer *peer; /* heap; ranks->n, its own is a child process */
    struct remote_batches past;
};
/* As rank 0: runs batch past.n and adds it to the past. */
int remote_hand_out(struct remote_hand *h, const struct vt_jobs *j,
                    struct vt_err *err) VT_MUST_CHECK;
void remote_hand_free(struct remote_hand *h);

#endif
