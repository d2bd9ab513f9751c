/* probe.c - who was never reached is tried for as long as vLLM's handshake waits, and
 * who answered before is gone with the first refusal, as transfers from him would fail.
 */
#include "kvevents/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "live/live.h"

static const vt_ns HANDSHAKE_NS = 5000 * VT_MS, AGAIN_NS = 100 * VT_MS;

static uint64_t address_key(const struct probe *x)
{
    return vt_hash_bytes(x->host, strlen(x->host), x->port) | 1;
}

/* An attempt has begun, or, with VT_ECHECK, was refused. */
static int attempt(struct probe *x)
{
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM},
                    *found;
    const char *host = strcmp(x->host, "localhost") == 0 ? "127.0.0.1" : x->host;
    char port[8];
    int rc = VT_ECHECK;

    (void)snprintf(port, sizeof(port), "%u", x->port);
    if (getaddrinfo(host, port, &hints, &found) != 0)
        return VT_ECHECK;
    x->fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (x->fd >= 0 && (connect(x->fd, found->ai_addr, found->ai_addrlen) == 0 ||
                       errno == EINPROGRESS))
        rc = VT_OK;
    freeaddrinfo(found);
    if (rc != VT_OK && x->fd >= 0)
        (void)close(x->fd);
    if (rc != VT_OK)
        x->fd = -1;
    return rc;
}

bool probes_add(struct probes *p, const char *text, size_t len)
{
    struct probe x = {.fd = -1};
    unsigned long long tag;
    unsigned port;
    char line[512];

    if (len >= sizeof(line))
        return false;
    memcpy(line, text, len);
    line[len] = '\0';
    if (sscanf(line, "%llu %u %255s", &tag, &port, x.host) != 3 || port > 65535 ||
        vt_grow(&p->at, &p->cap, p->n + 1, sizeof(*p->at), NULL) != VT_OK)
        return false;
    x.tag = tag;
    x.port = (uint16_t)port;
    x.next = vt_wall_ns();
    x.until = x.next + HANDSHAKE_NS;
    p->at[p->n++] = x;
    return true;
}

size_t probes_poll(struct probes *p, zmq_pollitem_t item[PROBES])
{
    vt_ns now = p->n > 0 ? vt_wall_ns() : 0;
    size_t n = p->n < PROBES ? p->n : PROBES;

    for (size_t i = 0; i < n; i++) {
        struct probe *x = &p->at[i];

        if (x->fd < 0 && x->next <= now && attempt(x) != VT_OK)
            x->next = now + AGAIN_NS;
        /* Without a socket libzmq looks at fd 0: nothing is asked of it. */
        item[i] = (zmq_pollitem_t){.fd = x->fd >= 0 ? x->fd : 0,
                                   .events = x->fd >= 0 ? ZMQ_POLLOUT : 0};
    }
    return n;
}

long probes_wait_ms(const struct probes *p)
{
    return p->n > 0 ? (long)(AGAIN_NS / VT_MS) : -1;
}

/* True: something is known of it. */
static bool look(struct probes *p, struct probe *x, bool ready, bool *there)
{
    bool knew = vt_map_get(&p->known, address_key(x)) != NULL;
    vt_ns now = vt_wall_ns();
    int problem = 0;
    socklen_t size = sizeof(problem);

    *there = false;
    if (x->fd >= 0 && ready) {
        if (getsockopt(x->fd, SOL_SOCKET, SO_ERROR, &problem, &size) != 0)
            problem = errno;
        (void)close(x->fd);
        x->fd = -1;
        x->next = now + AGAIN_NS;
        *there = problem == 0;
        if (*there && !knew)
            (void)vt_map_put(&p->known, address_key(x));
        if (*there || knew)
            return true;
    } else if (x->fd < 0 && knew && x->next > now) {
        return true; /* refused at once */
    }
    return now >= x->until;
}

void probes_go_on(struct probes *p, const zmq_pollitem_t item[PROBES],
                  vt_peers_heard *heard, void *user)
{
    size_t n = p->n < PROBES ? p->n : PROBES, left = 0;

    for (size_t i = 0; i < p->n; i++) {
        struct probe x = p->at[i];
        bool there;

        if (i >= n || !look(p, &x, item[i].revents != 0, &there)) {
            p->at[left++] = x;
            continue;
        }
        if (x.fd >= 0)
            (void)close(x.fd);
        heard(user, &(struct vt_heard){.what = there ? VT_HEARD_THERE : VT_HEARD_GONE,
                                       .tag = x.tag});
    }
    p->n = left;
}

void probes_free(struct probes *p)
{
    for (size_t i = 0; i < p->n; i++)
        if (p->at[i].fd >= 0)
            (void)close(p->at[i].fd);
    free(p->at);
    vt_map_free(&p->known);
}
