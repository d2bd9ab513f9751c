/* server.c - opening, waiting and closing: see net.h. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "live/live.h"
#include "net/events.h"
#include "net/server/server.h"

enum {
    EVENTS = 64, /* of one pass */
    LEAST = 8,   /* connections served in it, however late it is */
    BODIES = 4,  /* of the largest size may be on their way at the same time */
    SWEEP_BYTES = 4 << 20, /* of bodies, freed in a pass */
};

static const vt_ns LINGER_NS = 2 * VT_SEC;

/* ---- opening and closing --------------------------------------------- */

static void set_config(struct net *n, const struct net_config *c,
                       const struct net_handler *h)
{
    n->config = *c;
    n->config.host = n->config.certfile = n->config.keyfile = NULL;
    n->handler = *h;
    n->limits.max_header_bytes = c->max_header_bytes;
    n->limits.max_body_bytes = c->max_body_bytes;
    n->limits.max_held_bytes = c->max_body_bytes > SIZE_MAX / BODIES - BODIES
                                   ? SIZE_MAX
                                   : BODIES * (c->max_body_bytes + 1);
    n->timer[NET_T_HEAD].duration = c->header_timeout_ns;
    n->timer[NET_T_BODY].duration = c->body_timeout_ns;
    n->timer[NET_T_IDLE].duration = c->idle_timeout_ns;
    n->timer[NET_T_LINGER].duration = LINGER_NS;
    n->now = vt_wall_ns();
    n->id_seed = vt_hash2((uint64_t)vt_unix_ns(), (uint64_t)getpid());
    net_date_refresh(n);
}

int net_open(struct net **out, const struct net_config *c, const struct net_handler *h,
             struct vt_err *err)
{
    struct net *n = calloc(1, sizeof(*n));
    int rc = VT_OK;

    *out = NULL;
    if (!n)
        return vt_nomem(err);
    set_config(n, c, h);
    n->greeter.to.fd = n->greeter.from.fd = -1;
    n->epoll = epoll_create1(EPOLL_CLOEXEC);
    n->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    /* A held head or rest of one, what is received behind it, and a NUL. */
    n->scratch = malloc(c->max_header_bytes + 2 * (size_t)NET_READ + 1);
    if (n->epoll < 0)
        rc = vt_fail(err, VT_EIO, "cannot wait for sockets: %s", strerror(errno));
    else if (!n->scratch)
        rc = vt_nomem(err);
    if (rc == VT_OK && c->certfile)
        rc = net_tls_serve(&n->tls, c->certfile, c->keyfile ? c->keyfile : c->certfile,
                           err);
    if (rc == VT_OK && c->certfile)
        rc = net_greeter_open(n, err);
    if (rc == VT_OK)
        rc = net_listen(n, c->host, c->port, err);
    if (rc != VT_OK)
        net_close(n);
    else
        *out = n;
    return rc;
}

static void close_listeners(struct net *n)
{
    for (size_t i = 0; i < n->n_listeners; i++)
        close(n->listener[i].fd);
    n->n_listeners = 0;
}

void net_close(struct net *n)
{
    if (!n)
        return;
    net_greeter_close(n);
    while (n->all)
        net_conn_close(n->all);
    while (n->closed) {
        struct net_conn *c = n->closed;

        n->closed = c->next;
        free(c);
    }
    while (n->watch) {
        struct net_watch *w = n->watch;

        n->watch = w->next;
        free(w);
    }
    close_listeners(n);
    (void)net_intake_sweep(&n->limits, SIZE_MAX);
    net_tls_close(&n->tls);
    net_pool_free(n);
    if (n->spare_fd >= 0)
        close(n->spare_fd);
    if (n->epoll >= 0)
        close(n->epoll);
    free(n->scratch);
    free(n);
}

int net_watch(struct net *n, int fd, void (*ready)(void *user), void *user,
              struct vt_err *err)
{
    struct net_watch *w = calloc(1, sizeof(*w));
    struct epoll_event e = {.events = EPOLLIN};

    if (!w)
        return vt_nomem(err);
    *w = (struct net_watch){
        .source = {NET_WATCH, fd}, .ready = ready, .user = user, .next = n->watch};
    e.data.ptr = w;
    if (epoll_ctl(n->epoll, EPOLL_CTL_ADD, fd, &e) < 0) {
        free(w);
        return vt_fail(err, VT_EIO, "cannot watch a descriptor: %s", strerror(errno));
    }
    n->watch = w;
    return VT_OK;
}

void net_drain(struct net *n)
{
    struct net_conn *next;

    n->draining = true;
    close_listeners(n);
    for (struct net_conn *c = n->all; c; c = next) {
        next = c->next;
        if (c->phase == NET_IDLE && c->len == c->from && c->in.n_held == 0 &&
            !c->readable)
            net_conn_close(c);
    }
}

/* ---- waiting --------------------------------------------------------- */

/* How long to sleep, given what is due. */
static vt_ns sleep_for(const struct net *n, vt_ns until, bool precisely)
{
    vt_ns timer = net_timer_due(n), now = vt_wall_ns();

    if (n->again)
        return 0;
    if (precisely && until != VT_NEVER)
        until -= VT_SPIN_NS;
    if (timer < until)
        until = timer;
    if (until == VT_NEVER)
        return VT_NEVER;
    return until > now ? until - now : 0;
}

bool net_is_late(const struct net *n)
{
    return n->until != VT_NEVER && vt_wall_ns() >= n->until;
}

/* Those that have something to do: who asks meanwhile has a turn in the next pass. */
static void serve_waiting(struct net *n)
{
    const struct net_conn *last = n->again_last;
    struct net_conn *c = NULL;

    for (int i = 0; n->again && c != last; i++) {
        if (i >= LEAST && net_is_late(n))
            break;
        c = n->again;
        n->again = c->again_next;
        if (!n->again)
            n->again_last = NULL;
        c->again = false;
        if (c->phase != NET_CLOSED)
            net_conn_serve(c);
    }
}

int net_wait(struct net *n, vt_ns until, bool precisely, struct vt_err *err)
{
    struct epoll_event e[EVENTS];
    int got;

    if (!n->sharp)
        vt_wait_sharply();
    n->sharp = true;
    n->until = until;
    net_flush(n);
    net_conn_bury(n);
    if (net_intake_sweep(&n->limits, SWEEP_BYTES)) /* there is more of it */
        until = n->now;
    got = net_events_wait(n->epoll, e, EVENTS, sleep_for(n, until, precisely));
    if (got < 0 && errno != EINTR)
        return vt_fail(err, VT_EIO, "cannot wait for sockets: %s", strerror(errno));
    n->now = vt_wall_ns();
    net_date_refresh(n);
    for (int i = 0; i < got; i++) {
        struct net_source *s = e[i].data.ptr;
        struct net_watch *w = (struct net_watch *)(void *)s;

        if (s->kind == NET_CONN)
            net_conn_event((struct net_conn *)(void *)s, e[i].events);
        else if (s->kind == NET_LISTENER)
            net_accept(n, s->fd);
        else
            w->ready(w->user);
    }
    serve_waiting(n);
    net_timer_expire(n);
    if (got == 0 && precisely && until != VT_NEVER && n->now >= until - VT_SPIN_NS)
        while (vt_wall_ns() < until)
            ; /* awake: a sleep would end late */
    return VT_OK;
}

/* ---- what there is to know ------------------------------------------- */

uint16_t net_port(const struct net *n)
{
    return n->port;
}

struct net_stats net_stats(const struct net *n)
{
    return n->stats;
}

char *net_take_body(struct net_conn *c)
{
    const struct net_request *r = c->net->request;

    return r ? net_intake_take_body(&c->in, &c->net->limits, r) : NULL;
}

void net_set_data(struct net_conn *c, void *data)
{
    c->data = data;
}

void *net_data(const struct net_conn *c)
{
    return c->data;
}
