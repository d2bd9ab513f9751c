/* listen.c - addresses to listen on, and taking connections. */
#define _GNU_SOURCE /* accept4 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/server/server.h"

enum {
    BACKLOG = 2048, /* as uvicorn's */
    ACCEPTS = 16,   /* in one pass, */
    LEAST = 4,      /* and when it is late */
    SURPLUS = 64,   /* connections told 503 at a time; more are just closed */
};

/* ---- addresses ------------------------------------------------------- */

static in_port_t *port_of(struct sockaddr *a)
{
    return a->sa_family == AF_INET6 ? &((struct sockaddr_in6 *)(void *)a)->sin6_port
                                    : &((struct sockaddr_in *)(void *)a)->sin_port;
}

/* A listening socket; -1 with errno set. */
static int open_listener(const struct addrinfo *a)
{
    int on = 1, off = 0, why;
    int fd = socket(a->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (a->ai_family == AF_INET6) /* "::" is for both, as vLLM's */
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
    if (bind(fd, a->ai_addr, a->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0)
        return fd;
    why = errno;
    close(fd);
    errno = why;
    return -1;
}

int net_listen(struct net *n, const char *host, uint16_t port, struct vt_err *err)
{
    const char *name = host && host[0] ? host : "0.0.0.0";
    struct addrinfo hint = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    struct addrinfo *found = NULL;
    int rc = getaddrinfo(name, NULL, &hint, &found), why = EADDRNOTAVAIL;

    if (rc != 0)
        return vt_fail(err, VT_EINPUT, "cannot listen on '%s': %s", name,
                       gai_strerror(rc));
    rc = VT_OK;
    n->port = port;
    for (struct addrinfo *a = found; a && rc == VT_OK; a = a->ai_next) {
        struct net_source *s = &n->listener[n->n_listeners];
        struct epoll_event e = {.events = EPOLLIN};
        struct sockaddr_storage at = {0};
        socklen_t len = sizeof(at);
        int fd;

        if (n->n_listeners == NET_LISTENERS)
            break;
        *port_of(a->ai_addr) = htons(n->port);
        fd = open_listener(a);
        if (fd < 0) {
            why = errno;
            /* Of several addresses of a name, one that this machine does not have may
             * be missing; one that is taken may not. */
            if (why != EADDRNOTAVAIL && why != EAFNOSUPPORT)
                rc = vt_fail(err, VT_EINPUT, "cannot listen on %s port %u: %s", name,
                             (unsigned)n->port, strerror(why));
            continue;
        }
        *s = (struct net_source){NET_LISTENER, fd};
        n->n_listeners++; /* closed with the others, whatever comes */
        e.data.ptr = s;
        if (epoll_ctl(n->epoll, EPOLL_CTL_ADD, fd, &e) < 0)
            rc = vt_fail(err, VT_EIO, "cannot watch a socket: %s", strerror(errno));
        if (n->port == 0 && getsockname(fd, (struct sockaddr *)&at, &len) == 0)
            n->port = ntohs(*port_of((struct sockaddr *)&at));
    }
    freeaddrinfo(found);
    if (rc == VT_OK && n->n_listeners == 0)
        rc = vt_fail(err, VT_EINPUT, "cannot listen on %s port %u: %s", name,
                     (unsigned)port, strerror(why));
    return rc;
}

/* ---- connections ----------------------------------------------------- */

/* Out of descriptors, the connection would stay in the queue and wake us for ever: the
 * spare one lets it be taken and closed. */
static void turn_away(struct net *n, int listener)
{
    int fd;

    if (n->spare_fd < 0)
        return;
    close(n->spare_fd);
    fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0)
        close(fd);
    n->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    n->handler.refused(n->handler.user, 503);
}

static void take_connection(struct net *n, int fd)
{
    bool surplus = n->stats.open - n->n_surplus >= n->config.max_connections;
    int on = 1;

    if (surplus && (n->tls.ssl || n->n_surplus >= SURPLUS)) {
        close(fd);
        n->handler.refused(n->handler.user, 503);
        return;
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    net_conn_new(n, fd, surplus);
}

void net_accept(struct net *n, int listener)
{
    for (int i = 0; i < ACCEPTS; i++) {
        int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

        if (fd >= 0)
            take_connection(n, fd);
        else if (errno == EMFILE || errno == ENFILE)
            turn_away(n, listener);
        else if (errno != EINTR && errno != ECONNABORTED)
            return;
        if (i + 1 >= LEAST && net_is_late(n))
            return;
    }
}
