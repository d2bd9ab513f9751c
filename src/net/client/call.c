/* call.c - one request on its connection: connect, send, read; and once more where a
 * server has closed a connection just when it was to serve again. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "live/live.h"
#include "net/client/client.h"

/* ---- the connection: a socket that never waits ----------------------------- */

static void link_close(struct net_link *l)
{
    net_tls_detach(&l->tls);
    if (l->fd >= 0)
        (void)close(l->fd);
    *l = (struct net_link){.fd = -1};
}

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

/* To the client's chosen address. false: see errno. */
static bool link_open(struct net_link *l, const struct net_client *n)
{
    int why;

    assert(n->chosen < n->n_addresses);
    *l = (struct net_link){.fd = -1};
    if (connect_to(l, n) && (!n->url.tls || net_tls_attach(&l->tls, &n->trust, l->fd,
                                                           n->url.host) == VT_OK))
        return true;
    why = errno;
    link_close(l);
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

/* 1: ready to be used; or NET_WAIT, NET_BROKEN. */
static int link_ready(struct net_link *l)
{
    int rc = l->connected ? 1 : finish_connect(l);

    if (rc != 1 || !l->tls.ssl)
        return rc;
    rc = (int)net_tls_greet(&l->tls);
    l->wants_write = l->tls.wants_write;
    return rc;
}

/* Why the last step of this thread failed, for people. */
static const char *link_why(const struct net_link *l)
{
    const char *why = l->tls.ssl ? net_tls_why(&l->tls) : NULL;

    return why ? why : errno ? strerror(errno) : "the peer closed it";
}

/* ---- beginning and end ----------------------------------------------------- */

void net_call_init(struct net_call *c, struct net_client *n)
{
    *c = (struct net_call){.client = n, .link = {.fd = -1}};
}

void net_call_free(struct net_call *c)
{
    link_close(&c->link);
    net_response_free(&c->response);
}

void net_call_cancel(struct net_call *c)
{
    link_close(&c->link);
    c->state = NET_FREE;
}

/* The connection stays if the response has left it in a known state. */
static void end_call(struct net_call *c, enum net_ending e, const char *why,
                     bool reusable)
{
    assert(c->state != NET_FREE || c->link.fd < 0);
    if (!reusable)
        link_close(&c->link);
    c->state = NET_FREE;
    c->ended(c, e, why);
}

/* ---- sending --------------------------------------------------------------- */

static void watch_link(struct net_call *c, uint32_t interest, int how)
{
    struct epoll_event e = {.events = interest, .data = {.ptr = c}};

    if (how == EPOLL_CTL_ADD || c->interest != interest)
        (void)epoll_ctl(c->client->epoll, how, c->link.fd, &e);
    c->interest = interest;
}

static void watch_on(struct net_call *c) /* until the link can go on */
{
    watch_link(c, EPOLLIN | (c->link.wants_write ? EPOLLOUT : 0U), EPOLL_CTL_MOD);
}

static void open_link(struct net_call *c)
{
    c->reused = false;
    c->sent = 0;
    c->opened_at = vt_wall_ns();
    if (!link_open(&c->link, c->client)) {
        end_call(c, NET_NO_LINK, strerror(errno), false);
        return;
    }
    c->client->connections++;
    c->state = NET_CONNECTING;
    watch_link(c, EPOLLIN | EPOLLOUT, EPOLL_CTL_ADD);
}

/* A server may close a connection that is idle just when it is used again. */
static void lose_link(struct net_call *c, const char *why)
{
    if (!c->reused || c->heard) {
        end_call(c, NET_CUT_OFF, why, false);
        return;
    }
    link_close(&c->link);
    net_response_reset(&c->response);
    open_link(c);
}

static void send_more(struct net_call *c)
{
    c->state = NET_ASKING;
    while (c->sent < c->len) {
        ptrdiff_t n =
            net_send(&c->link.tls, c->link.fd, c->bytes + c->sent, c->len - c->sent);

        if (n == NET_WAIT) {
            c->link.wants_write = !c->link.tls.ssl || c->link.tls.wants_write;
            watch_on(c);
            return;
        }
        if (n == NET_BROKEN) {
            lose_link(c, link_why(&c->link));
            return;
        }
        c->sent += (size_t)n;
    }
    c->sent_at = vt_wall_ns();
    c->state = NET_HEARING;
    watch_link(c, EPOLLIN, EPOLL_CTL_MOD);
}

void net_call_begin(struct net_call *c, const char *bytes, size_t len)
{
    assert(c->state == NET_FREE && c->ended);
    net_response_reset(&c->response);
    c->bytes = bytes;
    c->len = len;
    c->sent = 0;
    c->heard = false;
    c->sent_at = c->read_at = 0;
    if (c->link.fd < 0) {
        open_link(c);
        return;
    }
    c->reused = true;
    send_more(c);
}

/* ---- what happens on the socket -------------------------------------------- */

static void go_on_connecting(struct net_call *c)
{
    int rc = link_ready(&c->link);

    if (rc == NET_WAIT) {
        watch_on(c);
    } else if (rc == 1) {
        c->ready_at = vt_wall_ns();
        send_more(c);
    } else {
        end_call(c, c->link.connected ? NET_NO_TRUST : NET_NO_LINK, link_why(&c->link),
                 false);
    }
}

static void peer_closed(struct net_call *c, const char *why)
{
    net_response_close(&c->response);
    if (c->response.part == NET_PART_WHOLE)
        end_call(c, NET_WHOLE, NULL, false);
    else
        lose_link(c, why);
}

/* What came gets the time at which it was read: parsing comes after. */
static void read_more(struct net_call *c)
{
    char *buffer = c->client->buffer;

    do {
        ptrdiff_t n = net_receive(&c->link.tls, c->link.fd, buffer, NET_READ_BYTES);
        size_t used;

        if (n == NET_WAIT)
            return;
        c->read_at = vt_wall_ns();
        if (n <= 0) {
            peer_closed(c, n == 0 ? "the peer closed it" : link_why(&c->link));
            return;
        }
        c->heard = true;
        used = net_response_feed(&c->response, buffer, (size_t)n);
        if (c->response.part == NET_PART_WHOLE) {
            /* An answer before the end of the question leaves the rest of it unsent. */
            end_call(c, NET_WHOLE, NULL,
                     c->response.keep_alive && used == (size_t)n &&
                         c->state == NET_HEARING && !net_tls_holds(&c->link.tls));
            return;
        }
        if (c->response.part == NET_PART_BROKEN) {
            end_call(c, NET_MALFORMED, "what came is no HTTP/1.1", false);
            return;
        }
    } while (net_tls_holds(&c->link.tls));
}

void net_call_event(struct net_call *c, uint32_t events)
{
    if (c->link.fd < 0)
        return; /* closed by an event before it in the same batch */
    if (c->state == NET_FREE)
        link_close(&c->link); /* only an end, or noise, can come now */
    else if (c->state == NET_CONNECTING)
        go_on_connecting(c);
    else if (events & (EPOLLIN | EPOLLHUP | EPOLLERR))
        read_more(c);
    if (c->state == NET_ASKING && (events & EPOLLOUT))
        send_more(c);
}
