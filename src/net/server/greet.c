/* greet.c - TLS handshakes, on a thread of their own: one takes a millisecond or, with
 * a long key, ten, and whoever can connect can ask for as many as he likes.
 *
 * A connection that is away belongs to the thread until it is back: the loop neither
 * reads it nor closes it, it only notes what happens to it. */
#include <sys/eventfd.h>

#include "net/server/server.h"

static struct net_conn *conn_of(struct vt_inbox_item *item)
{
    return (struct net_conn *)(void *)((char *)item - offsetof(struct net_conn, way));
}

static void *greet_all(void *arg)
{
    struct net_greeter *g = arg;

    while (!atomic_load(&g->stop)) {
        struct vt_inbox_item *at, *next;

        if (vt_wait_fd(g->to.fd, VT_NEVER))
            vt_inbox_calm(&g->to);
        for (at = vt_inbox_take(&g->to); at; at = next) {
            struct net_conn *c = conn_of(at);

            next = at->next;
            if (atomic_load(&g->stop))
                continue; /* whoever stops it has them all */
            c->greeted = net_tls_greet(&c->tls);
            vt_inbox_put(&g->from, &c->way);
        }
    }
    return NULL;
}

/* What has happened meanwhile may be just what the handshake waits for. */
static void come_back(struct net_conn *c)
{
    c->away = false;
    if (c->lost || c->greeted == NET_BROKEN) {
        net_conn_close(c);
    } else if (c->greeted == NET_WAIT) {
        if (c->readable || c->writable)
            net_greet(c);
    } else if (c->net->draining) {
        net_conn_close(c);
    } else {
        c->phase = NET_IDLE;
        c->readable = true; /* a request may have come right behind */
        net_again(c);
    }
}

static void take_greeted(void *net)
{
    struct net *n = net;
    struct vt_inbox_item *at, *next;

    vt_inbox_calm(&n->greeter.from);
    for (at = vt_inbox_take(&n->greeter.from); at; at = next) {
        next = at->next;
        come_back(conn_of(at));
    }
}

void net_greet(struct net_conn *c)
{
    if (c->away)
        return;
    c->away = true;
    c->readable = c->writable = false; /* what is there will be read */
    vt_inbox_put(&c->net->greeter.to, &c->way);
}

int net_greeter_open(struct net *n, struct vt_err *err)
{
    struct net_greeter *g = &n->greeter;
    int rc;

    if ((rc = vt_inbox_open(&g->to, err)) || (rc = vt_inbox_open(&g->from, err)) ||
        (rc = net_watch(n, g->from.fd, take_greeted, n, err)) ||
        (rc = vt_thread_start(&g->thread, greet_all, g, err)))
        return rc;
    g->started = true;
    return VT_OK;
}

void net_greeter_close(struct net *n)
{
    struct net_greeter *g = &n->greeter;

    if (g->started) {
        atomic_store(&g->stop, true);
        (void)eventfd_write(g->to.fd, 1);
        (void)pthread_join(g->thread, NULL);
    }
    for (struct net_conn *c = n->all; c; c = c->next)
        c->away = false;
    vt_inbox_close(&g->to);
    vt_inbox_close(&g->from);
}
