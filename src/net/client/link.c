/* link.c - one connection, plain or TLS, on a socket that never waits. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <unistd.h>

#include "net/client/client.h"

static bool connect_to(struct net_link *l, const struct net_client *n)
{
    const struct net_address *a = &n->address[n->chosen];
    int on = 1;

    l->fd = socket(a->at.ss_family, SOCK_STREAM, 0);
    if (l->fd < 0)
        return false;
    (void)fcntl(l->fd, F_SETFD, FD_CLOEXEC);
    return fcntl(l->fd, F_SETFL, O_NONBLOCK) == 0 &&
           setsockopt(l->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)) == 0 &&
           (connect(l->fd, (const struct sockaddr *)&a->at, a->len) == 0 ||
            errno == EINPROGRESS);
}

bool net_link_open(struct net_link *l, const struct net_client *n)
{
    int why;

    assert(n->chosen < n->n_addresses);
    *l = (struct net_link){.fd = -1};
    if (connect_to(l, n) && (!n->url.tls || net_tls_attach(&l->tls, &n->trust, l->fd,
                                                           n->url.host) == VT_OK))
        return true;
    why = errno;
    net_link_close(l);
    errno = why;
    return false;
}

static int finish_connect(struct net_link *l)
{
    int failed = 0;
    socklen_t len = sizeof(failed);
    struct sockaddr_storage peer;
    socklen_t peer_len = sizeof(peer);

    if (getsockopt(l->fd, SOL_SOCKET, SO_ERROR, &failed, &len) != 0)
        failed = errno;
    if (failed) {
        errno = failed;
        return NET_BROKEN;
    }
    l->connected = getpeername(l->fd, (struct sockaddr *)&peer, &peer_len) == 0;
    l->wants_write = !l->connected;
    return l->connected ? 1 : NET_WAIT;
}

int net_link_ready(struct net_link *l)
{
    int rc = l->connected ? 1 : finish_connect(l);

    if (rc != 1 || !l->tls.ssl)
        return rc;
    rc = (int)net_tls_greet(&l->tls);
    l->wants_write = l->tls.wants_write;
    return rc;
}

static ptrdiff_t outcome_of(ssize_t n)
{
    if (n >= 0)
        return n;
    return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ? NET_WAIT
                                                                     : NET_BROKEN;
}

ptrdiff_t net_link_read(struct net_link *l, char *to, size_t cap)
{
    return l->tls.ssl ? net_tls_receive(&l->tls, to, cap)
                      : outcome_of(recv(l->fd, to, cap, 0));
}

ptrdiff_t net_link_write(struct net_link *l, const char *from, size_t len)
{
    if (l->tls.ssl) {
        ptrdiff_t n = net_tls_send(&l->tls, from, len);

        l->wants_write = l->tls.wants_write;
        return n;
    }
    l->wants_write = true;
    return outcome_of(send(l->fd, from, len, MSG_NOSIGNAL));
}

void net_link_close(struct net_link *l)
{
    net_tls_detach(&l->tls);
    if (l->fd >= 0)
        (void)close(l->fd);
    *l = (struct net_link){.fd = -1};
}

const char *net_link_why(const struct net_link *l)
{
    const char *why = l->tls.ssl ? net_tls_why(&l->tls) : NULL;

    return why ? why : errno ? strerror(errno) : "the peer closed it";
}
