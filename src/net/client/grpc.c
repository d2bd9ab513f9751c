/* grpc.c - a unary gRPC call that is waited for, on a connection that is kept. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <unistd.h>

#include "live/live.h"
#include "net/client/client.h"
#include "net/client/h2.h"

#define SLICE_NS (100 * VT_MS) /* between looks at the caller's wish to stop */

struct net_grpc {
    struct net_client client; /* for its URL and its addresses */
    struct h2 h2;
    int fd; /* -1: none */
};

int net_grpc_open(struct net_grpc **out, const char *url, struct vt_err *err)
{
    struct net_grpc *g = calloc(1, sizeof(*g));
    int rc;

    *out = NULL;
    if (!g)
        return vt_nomem(err);
    g->fd = -1;
    rc = net_client_open(&g->client, url, NULL, err);
    if (rc == VT_OK && g->client.url.tls)
        rc = vt_fail(err, VT_EINPUT,
                     "'%s': gRPC goes without TLS here; OTLP over HTTP "
                     "(port 4318) takes https://",
                     url);
    if (rc != VT_OK) {
        net_grpc_close(g);
        return rc;
    }
    *out = g;
    return VT_OK;
}

static void hang_up(struct net_grpc *g)
{
    if (g->fd >= 0)
        (void)close(g->fd);
    g->fd = -1;
    h2_free(&g->h2);
}

void net_grpc_close(struct net_grpc *g)
{
    if (!g)
        return;
    hang_up(g);
    net_client_close(&g->client);
    free(g);
}

/* ---- waiting -----------------------------------------------------------------------
 */

struct wait {
    const struct net_grpc_call *c;
    vt_ns until;
};

/* Until the socket is ready for one of these; 0: time is over, or the caller stops. */
static short wait_for(int fd, short events, const struct wait *w)
{
    for (;;) {
        struct pollfd p = {.fd = fd, .events = events};
        vt_ns left = w->until - vt_wall_ns();

        if (left <= 0 || (w->c->stopped && w->c->stopped(w->c->user)))
            return 0;
        if (poll(&p, 1, (int)((left < SLICE_NS ? left : SLICE_NS) / VT_MS) + 1) > 0)
            return p.revents;
    }
}

static int connect_to(struct net_grpc *g, const struct net_address *a,
                      const struct wait *w)
{
    int on = 1, failed = 0, fd = socket(a->at.ss_family, SOCK_STREAM, 0);
    socklen_t len = sizeof(failed);

    if (fd < 0)
        return errno;
    (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
    (void)fcntl(fd, F_SETFL, O_NONBLOCK);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    if (connect(fd, (const struct sockaddr *)&a->at, a->len) != 0) {
        if (errno != EINPROGRESS)
            failed = errno;
        else if (!wait_for(fd, POLLOUT, w))
            failed = ETIMEDOUT;
        else if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &failed, &len) != 0)
            failed = errno;
    }
    if (failed)
        (void)close(fd);
    else
        g->fd = fd;
    return failed;
}

static int dial(struct net_grpc *g, const struct wait *w, struct vt_err *err)
{
    struct net_client *n = &g->client;
    int rc = net_client_lookup(n, err), failed = 0;

    for (size_t i = 0; rc == VT_OK && g->fd < 0 && i < n->n_addresses; i++)
        failed = connect_to(g, &n->address[i], w);
    if (rc == VT_OK && g->fd < 0)
        rc = vt_fail(err, VT_EIO, "cannot connect to %s: %s", n->url.authority,
                     strerror(failed));
    return rc;
}

/* ---- the call
 * ------------------------------------------------------------------------ */

static bool send_some(struct net_grpc *g) /* false: the connection is gone */
{
    struct vt_buf *out = &g->h2.out;
    size_t sent = 0;

    while (sent < out->len) {
        ssize_t n = send(g->fd, out->data + sent, out->len - sent, MSG_NOSIGNAL);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK)
            return false;
        if (n < 0)
            break;
        sent += (size_t)n;
    }
    if (sent > 0) {
        out->len -= sent;
        memmove(out->data, out->data + sent, out->len + 1);
    }
    return true;
}

static bool receive_some(struct net_grpc *g)
{
    char bytes[16384];
    ssize_t n;

    do
        n = recv(g->fd, bytes, sizeof(bytes), 0);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return errno == EAGAIN || errno == EWOULDBLOCK;
    if (n > 0)
        h2_feed(&g->h2, bytes, (size_t)n);
    return n > 0;
}

/* NULL: the answer is there. */
static const char *converse(struct net_grpc *g, const struct wait *w)
{
    struct h2 *h = &g->h2;

    while (h->state == H2_GOING) {
        short ready;

        if (!send_some(g))
            return "the peer closed the connection";
        ready = wait_for(g->fd, h->out.len > 0 ? POLLIN | POLLOUT : POLLIN, w);
        if (!ready)
            return "no answer in time";
        if ((ready & (POLLIN | POLLHUP | POLLERR)) && !receive_some(g))
            return "the peer closed the connection";
    }
    if (h->state == H2_BROKEN)
        return h->message;
    (void)send_some(g); /* what it acknowledges */
    return NULL;
}

int net_grpc_call(struct net_grpc *g, const struct net_grpc_call *c, int *status,
                  struct vt_err *err)
{
    struct wait w = {c, vt_wall_ns() + c->timeout_ns};
    bool kept = g->fd >= 0;
    const char *why;
    int rc;

    for (;;) {
        if (g->fd < 0 && (rc = dial(g, &w, err)))
            return rc;
        h2_begin(&g->h2, &g->client.url, c);
        why = converse(g, &w);
        if (!why)
            break;
        rc = vt_fail(err, VT_EIO, "%s: %s", g->client.url.authority, why);
        hang_up(g);
        if (!kept || vt_wall_ns() >= w.until)
            return rc;
        kept = false; /* a peer may close a connection just when it is used again */
    }
    if (g->h2.http_status != 200 || g->h2.grpc_status < 0) {
        rc = vt_fail(err, VT_EIO, "%s: HTTP status %d, and no word of gRPC",
                     g->client.url.authority, g->h2.http_status);
        hang_up(g);
        return rc;
    }
    *status = g->h2.grpc_status;
    if (g->h2.leaving || g->h2.stream > 0x3fffffff)
        hang_up(g);
    return VT_OK;
}
