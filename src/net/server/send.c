/* send.c - output of connections: buffers from a pool, sent together. */
#include "net/server/server.h"

/* ---- buffers --------------------------------------------------------- */

/* The class of buffers of so many bytes; NET_CLASSES: of none. */
static size_t class_of(size_t bytes)
{
    size_t i = 0;

    while (i < NET_CLASSES && ((size_t)NET_CLASS_0 << i) < bytes)
        i++;
    return i;
}

static char *buffer_get(struct net *n, size_t *bytes)
{
    size_t i = class_of(*bytes);
    struct net_spare *s = i < NET_CLASSES ? n->spare[i] : NULL;

    if (i < NET_CLASSES)
        *bytes = (size_t)NET_CLASS_0 << i;
    if (!s)
        return malloc(*bytes);
    n->spare[i] = s->next;
    n->pool_bytes -= *bytes;
    return (char *)s;
}

static void buffer_put(struct net *n, char *data, size_t bytes)
{
    size_t i = class_of(bytes);
    struct net_spare *s = (struct net_spare *)(void *)data;

    if (i == NET_CLASSES || n->pool_bytes + bytes > NET_POOL_BYTES) {
        free(data);
        return;
    }
    s->next = n->spare[i];
    n->spare[i] = s;
    n->pool_bytes += bytes;
}

void net_pool_free(struct net *n)
{
    for (size_t i = 0; i < NET_CLASSES; i++)
        while (n->spare[i]) {
            struct net_spare *s = n->spare[i];

            n->spare[i] = s->next;
            free(s);
        }
}

void net_out_free(struct net_conn *c)
{
    if (c->out)
        buffer_put(c->net, c->out, c->cap);
    c->out = NULL;
    c->from = c->len = c->cap = 0;
}

/* What was sent makes room, if that is worth the move; otherwise twice as much. */
static bool grow_output(struct net_conn *c, size_t more)
{
    size_t unsent = c->len - c->from, bytes = unsent + more;
    char *data = c->out;

    if (bytes > c->cap || c->from < c->cap / 2) {
        bytes = bytes < 2 * c->cap ? 2 * c->cap : bytes;
        data = buffer_get(c->net, &bytes);
        if (!data)
            return false;
    }
    if (unsent > 0)
        memmove(data, c->out + c->from, unsent);
    if (data != c->out) {
        net_out_free(c);
        c->out = data;
        c->cap = bytes;
    }
    c->from = 0;
    c->len = unsent;
    return true;
}

char *net_out_room(struct net_conn *c, size_t more)
{
    if (c->lost)
        return NULL;
    if (more > c->cap - c->len && !grow_output(c, more)) {
        net_conn_lose(c);
        return NULL;
    }
    return c->out + c->len;
}

/* ---- sending --------------------------------------------------------- */

void net_out_wrote(struct net_conn *c, size_t n)
{
    struct net *net = c->net;

    c->len += n;
    if (c->blocked || c->dirty)
        return;
    c->dirty = true;
    c->dirty_next = NULL;
    *(net->dirty_last ? &net->dirty_last->dirty_next : &net->dirty) = c;
    net->dirty_last = c;
}

/* Sends what the kernel takes. A peer that is broken is only noted: who calls may not
 * expect callbacks. */
void net_out_send(struct net_conn *c)
{
    c->blocked = c->writable = false;
    while (c->from < c->len && !c->lost) {
        ptrdiff_t sent =
            net_send(&c->tls, c->source.fd, c->out + c->from, c->len - c->from);

        c->net->stats.sends++;
        if (sent == NET_WAIT) {
            c->blocked = true;
            if (c->phase == NET_IDLE || c->phase == NET_LAST)
                net_timer_set(c, NET_T_BODY); /* anew whenever some was taken */
            return;
        }
        if (sent < 0) {
            net_conn_lose(c);
            return;
        }
        c->from += (size_t)sent;
    }
    if (!c->lost)
        net_out_free(c);
}

void net_flush(struct net *n)
{
    struct net_conn *c;

    if (n->request)
        return; /* within request(): what may end with it must not end before */
    while ((c = n->dirty)) {
        n->dirty = c->dirty_next;
        if (!n->dirty)
            n->dirty_last = NULL;
        c->dirty = false;
        if (c->phase == NET_CLOSED || c->lost)
            continue;
        net_out_send(c);
        if (c->len == 0 && !c->lost)
            net_conn_settle(c);
    }
}
