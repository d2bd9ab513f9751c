/* jobs_remote.c - the ranks of this process, and the messages between them. */
#include "tune/jobs_remote.h"

#include <stdlib.h>
#include <sys/socket.h>

#include "tune/jobs.h"

enum { LARGEST_MESSAGE = 1 << 28 };

/* One set of ranks for a process, as there is one mpirun. */
static struct {
    const struct vt_ranks *ranks;
    struct remote_hand hand; /* rank 0 */
    uint32_t batch;          /* others: which comes next */
    bool inside;             /* a job is running */
} here;

void vt_jobs_ranks(const struct vt_ranks *r)
{
    remote_hand_free(&here.hand);
    here.ranks = r && r->n > 1 ? r : NULL;
    here.hand.ranks = here.ranks;
    here.batch = 0;
    here.inside = false;
}

void vt_jobs_ranks_leave(const char *why)
{
    const struct remote_head h = {
        .kind = REMOTE_BROKEN, .batch = here.batch, .len = strlen(why)};

    if (here.ranks && here.ranks->rank > 0)
        (void)remote_send(here.ranks->fd[0], &h, why);
}

bool jobs_have_ranks(void)
{
    return here.ranks && !here.inside;
}

int jobs_ranks_run(const struct vt_jobs *j, struct vt_err *err)
{
    int rc;

    here.inside = true;
    if (here.ranks->rank == 0)
        rc = remote_hand_out(&here.hand, j, err);
    else
        rc = remote_serve_batch(here.ranks, here.batch++, j, err);
    here.inside = false;
    return rc;
}

/* ---- messages ----------------------------------------------------------------- */

bool remote_send(int fd, const struct remote_head *h, const char *bytes)
{
    return jobs_send_all(fd, h, sizeof(*h)) &&
           (h->len == 0 || jobs_send_all(fd, bytes, h->len));
}

bool remote_recv(int fd, struct remote_head *h, struct vt_buf *bytes)
{
    char *at;

    vt_buf_clear(bytes);
    if (!jobs_recv_all(fd, h, sizeof(*h)) || h->len > LARGEST_MESSAGE)
        return false;
    at = vt_buf_room(bytes, h->len + 1);
    if (!at || !jobs_recv_all(fd, at, h->len))
        return false;
    at[h->len] = '\0';
    vt_buf_upto(bytes, at + h->len);
    return true;
}
