/* jobs_remote.c - the ranks of this process, and the messages between them. */
#include "tune/jobs_remote.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>

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

static bool send_all(int fd, const char *bytes, size_t len)
{
    while (len > 0) {
        ssize_t n = send(fd, bytes, len, MSG_NOSIGNAL);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        bytes += n;
        len -= (size_t)n;
    }
    return true;
}

static bool recv_all(int fd, char *bytes, size_t len)
{
    while (len > 0) {
        ssize_t n = recv(fd, bytes, len, 0);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        bytes += n;
        len -= (size_t)n;
    }
    return true;
}

bool remote_send(int fd, const struct remote_head *h, const char *bytes)
{
    return send_all(fd, (const char *)h, sizeof(*h)) &&
           (h->len == 0 || send_all(fd, bytes, h->len));
}

bool remote_recv(int fd, struct remote_head *h, struct vt_buf *bytes)
{
    char *at;

    vt_buf_clear(bytes);
    if (!recv_all(fd, (char *)h, sizeof(*h)) || h->len > LARGEST_MESSAGE)
        return false;
    at = vt_buf_room(bytes, h->len + 1);
    if (!at || !recv_all(fd, at, h->len))
        return false;
    at[h->len] = '\0';
    vt_buf_upto(bytes, at + h->len);
    return true;
}
