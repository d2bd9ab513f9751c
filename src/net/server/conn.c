/* conn.c - the life of a connection: requests in, one at a time; its end. */
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/server/server.h"

enum {
    READS = 4,              /* of one connection; then others have a turn */
    BODY_READ = 65536,      /* bytes of a body received at once */
    PIPELINE_BYTES = 16384, /* of unsent answers; more requests wait */
    BODY_PROGRESS = 16384,  /* bytes that earn a body more time */
};

/* ---- beginning and end --------------------------------------------------- */

void net_conn_new(struct net *n, int fd, bool surplus)
{
    struct net_conn *c = calloc(1, sizeof(*c));
    struct epoll_event e = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET};

    e.data.ptr = c;
    if (!c || epoll_ctl(n->epoll, EPOLL_CTL_ADD, fd, &e) < 0) {
        free(c);
        close(fd);
        return;
    }
    c->source = (struct net_source){NET_CONN, fd};
    c->net = n;
    c->surplus = surplus;
    c->phase = n->tls.ssl ? NET_HELLO : NET_IDLE;
    c->next = n->all;
    if (n->all)
        n->all->prev = c;
    n->all = c;
    n->stats.connections++;
    n->stats.open++;
    n->n_surplus += surplus;
    net_timer_set(c, NET_T_HEAD); /* as long as a head: it has said nothing at all */
    if (n->tls.ssl && net_tls_attach(&c->tls, &n->tls, fd, NULL) != VT_OK)
        net_conn_close(c);
    else if (surplus)
        net_conn_refuse(c, 503);
}

void net_conn_close(struct net_conn *c)
{
    struct net *n = c->net;

    if (c->phase == NET_CLOSED)
        return;
    if (c->away) { /* closed when it comes back */
        c->lost = true;
        return;
    }
    c->phase = NET_CLOSED;
    net_timer_set(c, NET_NO_TIMER);
    net_tls_detach(&c->tls);
    free(c->request_id);
    c->request_id = NULL;
    close(c->source.fd); /* epoll forgets it with that */
    net_out_free(c);
    net_intake_free(&c->in, &n->limits);
    *(c->prev ? &c->prev->next : &n->all) = c->next;
    if (c->next)
        c->next->prev = c->prev;
    c->next = n->closed;
    n->closed = c;
    n->stats.open--;
    n->n_surplus -= c->surplus;
}

void net_conn_bury(struct net *n)
{
    struct net_conn *c, **link = &n->closed;

    while ((c = *link)) {
        if (c->dirty || c->again) {
            link = &c->next;
            continue;
        }
        *link = c->next;
        free(c);
    }
}

void net_again(struct net_conn *c)
{
    struct net *n = c->net;

    if (c->again)
        return;
    c->again = true;
    c->again_next = NULL;
    *(n->again_last ? &n->again_last->again_next : &n->again) = c;
    n->again_last = c;
}

void net_conn_lose(struct net_conn *c)
{
    c->lost = true;
    net_out_free(c);
    net_again(c);
}

/* The end of a connection that the peer, or the way to it, has broken. */
static void end_broken(struct net_conn *c)
{
    struct net *n = c->net;

    c->lost = true;
    if (c->phase == NET_DUE)
        n->handler.gone(n->handler.user, c);
    net_conn_close(c);
}

void net_conn_refuse(struct net_conn *c, int status)
{
    struct net *n = c->net;

    n->handler.refused(n->handler.user, status);
    net_intake_free(&c->in, &n->limits);
    c->phase = NET_LAST;
    c->linger = true;
    net_timer_set(c, NET_T_BODY);
    net_answer_plainly(c, status);
}

void net_conn_expired(struct net_conn *c)
{
    if (c->phase == NET_HEAD || c->phase == NET_BODY)
        net_conn_refuse(c, 408);
    else
        net_conn_close(c);
}

static bool is_asking(const struct net_conn *c)
{
    return c->phase == NET_IDLE || c->phase == NET_HEAD || c->phase == NET_BODY;
}

/* All output has been sent: nothing keeps the connection from what is next. One whose
 * peer is still sending is not closed at once: the kernel would then take back the
 * answer. */
void net_conn_settle(struct net_conn *c)
{
    if (c->phase == NET_IDLE && c->net->draining && c->in.n_held == 0)
        c->phase = NET_LAST;
    if (c->phase == NET_IDLE)
        net_timer_set(c, NET_T_IDLE);
    if (is_asking(c)) {
        if (c->in.n_held > 0 || c->readable || c->peer_done)
            net_again(c);
    } else if (c->phase == NET_LAST && c->linger && !c->peer_done) {
        net_tls_detach(&c->tls);
        shutdown(c->source.fd, SHUT_WR);
        c->phase = NET_LINGER;
        net_timer_set(c, NET_T_LINGER);
        net_again(c);
    } else if (c->phase == NET_LAST) {
        net_conn_close(c);
    }
}

/* ---- requests -------------------------------------------------------- */

static void deliver(struct net_conn *c, const struct net_request *r)
{
    struct net *n = c->net;

    c->is = n->head.is;
    c->phase = NET_DUE;
    c->data = NULL;
    c->in.continue_due = false;
    net_timer_set(c, NET_NO_TIMER);
    n->request = r;
    net_request_id(c, r);
    if (!net_cors_preflight(c, r))
        n->handler.request(n->handler.user, c, r);
    n->request = NULL;
    net_intake_done(&c->in, &n->limits, &n->head);
}

/* May requests be read now? */
static bool takes_requests(const struct net_conn *c)
{
    return is_asking(c) && c->len - c->from < PIPELINE_BYTES && !c->lost;
}

/* After reading: is a request under way, and how long may it take? */
static void note_phase(struct net_conn *c, size_t received)
{
    static const char text[] = "HTTP/1.1 100 Continue\r\n\r\n";
    enum net_phase phase = NET_IDLE;
    char *to;

    if (!is_asking(c) || c->lost)
        return;
    if (c->in.partial)
        phase = NET_BODY;
    else if (c->in.n_held > 0 && takes_requests(c)) /* or it is whole, and waits */
        phase = NET_HEAD;
    c->progress += received;
    if (phase != c->phase || (phase == NET_BODY && c->progress >= BODY_PROGRESS)) {
        c->progress = 0;
        if (phase == NET_BODY)
            net_timer_set(c, NET_T_BODY);
        else if (phase == NET_HEAD)
            net_timer_set(c, NET_T_HEAD);
    }
    c->phase = (uint8_t)phase;
    if (!c->in.continue_due)
        return;
    c->in.continue_due = false;
    to = net_out_room(c, sizeof(text));
    if (!to)
        return;
    memcpy(to, text, sizeof(text) - 1);
    net_out_wrote(c, sizeof(text) - 1);
}

/* Requests in the bytes at hand, as many as are answered at once. */
static void read_requests(struct net_conn *c, char *bytes, size_t len)
{
    struct net *n = c->net;
    struct net_request r;

    while (len > 0 && takes_requests(c)) {
        size_t used = 0;
        int status = 0;
        enum net_step step = net_intake_read(&c->in, &n->limits, bytes, len, &used,
                                             &n->head, &r, &status);

        bytes += used;
        len -= used;
        if (step == NET_REFUSE) {
            net_conn_refuse(c, status);
            return;
        }
        if (step == NET_MORE)
            break;
        deliver(c, &r);
    }
    if (c->phase == NET_CLOSED || c->phase == NET_LAST)
        len = 0;
    if (net_intake_hold(&c->in, bytes, len) != VT_OK)
        net_conn_lose(c);
}

/* ---- receiving ------------------------------------------------------- */

static ptrdiff_t receive(struct net_conn *c, char *to, size_t cap)
{
    ptrdiff_t got = net_receive(&c->tls, c->source.fd, to, cap);

    if (got <= 0 || (!c->tls.ssl && (size_t)got < cap && !c->peer_done))
        c->readable = false; /* a new edge will tell of more, or of the end */
    if (got == 0)
        c->peer_done = c->at_end = true;
    return got;
}

enum source { FROM_PEER, FROM_HELD };

/* What was held behind an answered request is digested before more is received, or it
 * would grow with each. */
static void receive_requests(struct net_conn *c, enum source source)
{
    char *scratch = c->net->scratch;
    size_t held = c->in.n_held;
    ptrdiff_t got = 0;

    if (held > 0)
        memcpy(scratch, c->in.held, held);
    if (source == FROM_PEER)
        got = receive(c, scratch + held, NET_READ);
    if (got == NET_BROKEN) {
        end_broken(c);
        return;
    }
    got = got < 0 ? 0 : got;
    if (held + (size_t)got > 0)
        read_requests(c, scratch, held + (size_t)got);
    if (c->phase != NET_CLOSED)
        note_phase(c, (size_t)got);
}

static void receive_more(struct net_conn *c)
{
    struct net *n = c->net;
    struct net_request r;
    ptrdiff_t got;
    size_t room;
    char *to;

    if (c->phase == NET_LINGER) {
        got = receive(c, n->scratch, NET_READ);
        if (got == 0 || got == NET_BROKEN)
            net_conn_close(c);
    } else if ((to = net_intake_room(&c->in, &n->limits, &room))) {
        got = receive(c, to, room < BODY_READ ? room : BODY_READ);
        if (got == NET_BROKEN)
            end_broken(c);
        if (got <= 0)
            return;
        if (net_intake_took(&c->in, (size_t)got, &n->head, &r) == NET_REQUEST)
            deliver(c, &r);
        note_phase(c, (size_t)got);
    } else {
        receive_requests(c, FROM_PEER);
    }
}

void net_conn_serve(struct net_conn *c)
{
    bool held = c->in.n_held > 0 && c->phase == NET_IDLE;
    int reads = 0;

    if (!c->lost && c->writable && c->blocked) {
        net_out_send(c);
        if (!c->blocked && !c->lost)
            net_conn_settle(c);
    }
    if (c->lost)
        end_broken(c);
    if (c->phase == NET_HELLO)
        net_greet(c);
    if (held && takes_requests(c))
        receive_requests(c, FROM_HELD);
    for (; reads < READS && c->readable; reads++) {
        if (!takes_requests(c) && c->phase != NET_LINGER)
            break;
        receive_more(c);
    }
    if (reads == READS && c->readable)
        net_again(c);
    if (c->phase == NET_DUE && c->peer_done)
        end_broken(c);
    else if (takes_requests(c) && c->at_end && c->len > c->from)
        c->phase = NET_LAST; /* the peer will say no more, and all it said was read */
    else if (takes_requests(c) && c->at_end)
        net_conn_close(c);
}

void net_conn_event(struct net_conn *c, uint32_t events)
{
    if (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP))
        c->readable = true;
    if (events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR))
        c->peer_done = true;
    if (events & EPOLLOUT)
        c->writable = true;
    if (events & EPOLLERR)
        c->lost = true;
    net_again(c);
}
