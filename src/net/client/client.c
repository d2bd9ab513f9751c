/* client.c - where requests go: the host's addresses, and waiting for what comes. */
#include <errno.h>
#include <unistd.h>

#include "live/live.h"
#include "net/client/client.h"
#include "net/events.h"

enum { EVENTS = 512 };

int net_client_open(struct net_client *n, const char *url,
                    const struct net_trust *trust, struct vt_err *err)
{
    int rc;

    *n = (struct net_client){.epoll = -1};
    rc = net_url_parse(&n->url, url, err);
    if (rc != VT_OK)
        return rc;
    if (n->url.tls) {
        rc = net_tls_trust(&n->trust, trust ? trust : &(struct net_trust){0}, err);
        if (rc != VT_OK)
            return rc;
    }
    n->buffer = malloc(NET_READ_BYTES);
    if (!n->buffer)
        return vt_nomem(err);
    n->epoll = epoll_create1(EPOLL_CLOEXEC);
    return n->epoll >= 0 ? VT_OK : vt_fail(err, VT_EIO, "epoll: %s", strerror(errno));
}

void net_client_close(struct net_client *n)
{
    if (n->call)
        net_call_free(n->call);
    free(n->call);
    free(n->address);
    free(n->buffer);
    net_tls_close(&n->trust);
    if (n->buffer) /* only then was it reached */
        close(n->epoll);
    *n = (struct net_client){.epoll = -1};
}

/* ---- addresses ------------------------------------------------------------- */

int net_client_lookup(struct net_client *n, struct vt_err *err)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list = NULL;
    size_t count = 0;
    int failed;

    if (n->address)
        return VT_OK;
    failed = getaddrinfo(n->url.host, n->url.port, &hints, &list);
    if (failed)
        return vt_fail(err, VT_EIO, "cannot look up '%s': %s", n->url.host,
                       gai_strerror(failed));
    for (const struct addrinfo *a = list; a; a = a->ai_next)
        count++;
    n->address = calloc(count, sizeof(*n->address));
    for (const struct addrinfo *a = list; n->address && a; a = a->ai_next) {
        struct net_address *to = &n->address[n->n_addresses];

        if (a->ai_addrlen > sizeof(to->at))
            continue;
        memcpy(&to->at, a->ai_addr, a->ai_addrlen);
        to->len = a->ai_addrlen;
        n->n_addresses++;
    }
    freeaddrinfo(list);
    return n->address ? VT_OK : vt_nomem(err);
}

/* A request of no bytes: it is sent as soon as the connection is ready. */
static bool try_address(struct net_client *n, struct net_outcome *a)
{
    struct net_call *c = calloc(1, sizeof(*c));
    vt_ns until = vt_wall_ns() + NET_TRY_S * VT_SEC;
    bool good;

    *a = (struct net_outcome){0};
    if (!c)
        return false;
    net_call_init(c, n);
    c->user = a;
    c->ended = net_note_end;
    net_call_begin(c, "", 0);
    while (!a->over && c->state != NET_HEARING) {
        vt_ns left = until - vt_wall_ns();

        if (left <= 0) {
            snprintf(a->why, sizeof(a->why), "no answer for %d s", NET_TRY_S);
            break;
        }
        (void)net_client_wait(n, left);
    }
    good = c->state == NET_HEARING;
    net_call_free(c);
    free(c);
    return good;
}

int net_client_find(struct net_client *n, struct vt_err *err)
{
    struct net_outcome a = {.why = "no address"};
    int rc = net_client_lookup(n, err);

    if (rc != VT_OK)
        return rc;
    for (n->chosen = 0; n->chosen < n->n_addresses; n->chosen++)
        if (try_address(n, &a)) {
            n->connections = 0;
            return VT_OK;
        }
    n->chosen = 0;
    return vt_fail(err, VT_EIO, "cannot connect to %s: %s", n->url.authority, a.why);
}

/* ---- waiting --------------------------------------------------------------- */

vt_ns net_client_wait(struct net_client *n, vt_ns ns)
{
    struct epoll_event event[EVENTS];
    int got = net_events_wait(n->epoll, event, EVENTS, ns);
    vt_ns woke = vt_wall_ns();

    for (int i = 0; i < got; i++)
        net_call_event(event[i].data.ptr, event[i].events);
    return woke;
}
