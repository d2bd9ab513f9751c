/* sock.c - libzmq's calls, with their errors told. */
#include "kvevents/kvevents.h"

#include <errno.h>
#include <stdatomic.h>

enum { MAX_SOCKETS = 16384 };

static int zmq_fail(struct vt_err *err, const char *what)
{
    return vt_fail(err, VT_EIO, "%s: %s", what, zmq_strerror(errno));
}

int sock_ctx(void **out, struct vt_err *err)
{
    *out = zmq_ctx_new();
    if (!*out)
        return zmq_fail(err, "cannot start ZeroMQ");
    zmq_ctx_set(*out, ZMQ_MAX_SOCKETS, MAX_SOCKETS); /* 1023 unless told */
    return VT_OK;
}

static int set_int(void *sock, int option, int value)
{
    return zmq_setsockopt(sock, option, &value, sizeof(value));
}

static int set_all(void *sock, const struct sock_options *o)
{
    int64_t most = o->gets == SOCK_GETS_MUCH ? INT64_C(1) << 30 : INT64_C(1) << 20;

    if (zmq_setsockopt(sock, ZMQ_MAXMSGSIZE, &most, sizeof(most)) ||
        set_int(sock, ZMQ_RCVHWM, 0) || set_int(sock, ZMQ_SNDHWM, 0) ||
        set_int(sock, ZMQ_LINGER, o->linger_ms) ||
        (o->mandatory && set_int(sock, ZMQ_ROUTER_MANDATORY, 1)) ||
        (o->handover && set_int(sock, ZMQ_ROUTER_HANDOVER, 1)))
        return -1;
    return o->identity_len == 0
               ? 0
               : zmq_setsockopt(sock, ZMQ_IDENTITY, o->identity, o->identity_len);
}

struct sock_options sock_as_frontend(int type)
{
    bool router = type == ZMQ_ROUTER;

    /* Where requests go out only registrations come in; outputs come to a PULL. */
    return (struct sock_options){.type = type,
                                 .gets = type == ZMQ_PULL ? SOCK_GETS_MUCH
                                                          : SOCK_GETS_LITTLE,
                                 .mandatory = router,
                                 .handover = router};
}

int sock_open(void **out, void *ctx, const struct sock_options *o, struct vt_err *err)
{
    *out = zmq_socket(ctx, o->type);
    if (!*out)
        return zmq_fail(err, "cannot open a socket");
    if (set_all(*out, o) != 0) {
        int rc = zmq_fail(err, "cannot set up a socket");

        sock_close(*out);
        *out = NULL;
        return rc;
    }
    return VT_OK;
}

void sock_close(void *sock)
{
    if (sock)
        zmq_close(sock);
}

/* Only where asked for: with it 127.0.0.1 would be told as [::ffff:127.0.0.1], which
 * not every peer can read. */
static void allow_ipv6(void *sock, const char *address)
{
    if (strchr(address, '['))
        set_int(sock, ZMQ_IPV6, 1);
}

int sock_bind(void *sock, const char *address, struct vt_err *err)
{
    allow_ipv6(sock, address);
    if (zmq_bind(sock, address) == 0)
        return VT_OK;
    return vt_fail(err, VT_EINPUT, "cannot listen on %s: %s", address,
                   zmq_strerror(errno));
}

int sock_connect(void *sock, const char *address, struct vt_err *err)
{
    allow_ipv6(sock, address);
    if (zmq_connect(sock, address) == 0)
        return VT_OK;
    return vt_fail(err, VT_EINPUT, "cannot connect to %s: %s", address,
                   zmq_strerror(errno));
}

int sock_endpoint(void *sock, char out[SOCK_ADDRESS], struct vt_err *err)
{
    size_t len = SOCK_ADDRESS;

    if (zmq_getsockopt(sock, ZMQ_LAST_ENDPOINT, out, &len) == 0)
        return VT_OK;
    return zmq_fail(err, "cannot tell where a socket listens");
}

int sock_monitor_open(void **out, void *ctx, void *sock, int events, struct vt_err *err)
{
    static atomic_uint number;
    struct sock_options o = {.type = ZMQ_PAIR};
    char name[64];
    int rc;

    snprintf(name, sizeof(name), "inproc://vtwin-monitor-%u",
             atomic_fetch_add(&number, 1));
    if (zmq_socket_monitor(sock, name, events) != 0)
        return zmq_fail(err, "cannot watch a socket");
    rc = sock_open(out, ctx, &o, err);
    return rc ? rc : sock_connect(*out, name, err);
}

bool sock_monitor_next(void *monitor, int *event, int *fd)
{
    struct sock_msg m = {0};
    bool any = sock_recv(monitor, &m, NULL) == VT_OK && m.n > 0;
    size_t len = 0;
    const uint8_t *bytes = any ? sock_data(&m, 0, &len) : NULL;
    uint16_t number;
    int32_t value;

    any = len >= sizeof(number) + sizeof(value);
    if (any) {
        memcpy(&number, bytes, sizeof(number));
        memcpy(&value, bytes + sizeof(number), sizeof(value));
        *event = number;
        *fd = value;
    }
    sock_msg_free(&m);
    return any;
}

void sock_close_monitored(void *sock, void *monitor)
{
    if (sock && monitor)
        zmq_socket_monitor(sock, NULL, 0);
    sock_close(monitor);
    sock_close(sock);
}

/* ---- messages --------------------------------------------------------- */

void sock_msg_clear(struct sock_msg *m)
{
    for (size_t i = 0; i < m->n; i++)
        zmq_msg_close(&m->frame[i]);
    m->n = 0;
}

void sock_msg_free(struct sock_msg *m)
{
    sock_msg_clear(m);
    free(m->frame);
    *m = (struct sock_msg){0};
}

const void *sock_data(const struct sock_msg *m, size_t i, size_t *len)
{
    *len = zmq_msg_size(&m->frame[i]);
    return zmq_msg_data(&m->frame[i]);
}

size_t sock_msg_bytes(const struct sock_msg *m)
{
    size_t sum = 0;

    for (size_t i = 0; i < m->n; i++)
        sum += zmq_msg_size(&m->frame[i]);
    return sum;
}

/* libzmq's messages may not be moved in memory while they are in use, except by
 * zmq_msg_move(). */
static int make_room(struct sock_msg *m, struct vt_err *err)
{
    size_t cap = m->cap > 0 ? 2 * m->cap : 4;
    zmq_msg_t *frame;

    if (m->n < m->cap)
        return VT_OK;
    frame = malloc(cap * sizeof(*frame));
    if (!frame)
        return vt_nomem(err);
    for (size_t i = 0; i < m->n; i++) {
        zmq_msg_init(&frame[i]);
        zmq_msg_move(&frame[i], &m->frame[i]);
    }
    free(m->frame);
    m->frame = frame;
    m->cap = cap;
    return VT_OK;
}

/* False: nothing there, or an error, which errno tells. */
static bool receive_frame(void *sock, zmq_msg_t *frame)
{
    zmq_msg_init(frame);
    while (zmq_msg_recv(frame, sock, ZMQ_DONTWAIT) < 0) {
        if (errno == EINTR)
            continue;
        zmq_msg_close(frame);
        return false;
    }
    return true;
}

int sock_recv(void *sock, struct sock_msg *m, struct vt_err *err)
{
    int more = 1;

    sock_msg_clear(m);
    while (more) {
        int rc = make_room(m, err);

        if (rc != VT_OK)
            return rc;
        if (!receive_frame(sock, &m->frame[m->n])) {
            if (errno == EAGAIN)
                break;
            return zmq_fail(err, "cannot receive");
        }
        more = zmq_msg_more(&m->frame[m->n]);
        m->n++;
    }
    return VT_OK;
}

static int send_one(void *sock, zmq_msg_t *frame, bool more, struct vt_err *err)
{
    while (zmq_msg_send(frame, sock, ZMQ_DONTWAIT | (more ? ZMQ_SNDMORE : 0)) < 0) {
        int problem = errno;

        if (problem == EINTR)
            continue;
        zmq_msg_close(frame);
        errno = problem;
        return zmq_fail(err, "cannot send");
    }
    return VT_OK;
}

int sock_share(void *sock, zmq_msg_t *frame, bool more, struct vt_err *err)
{
    zmq_msg_t copy;

    zmq_msg_init(&copy);
    if (zmq_msg_copy(&copy, frame) != 0)
        return vt_nomem(err);
    return send_one(sock, &copy, more, err);
}

int sock_send(void *sock, const struct sock_msg *m, size_t first, bool more,
              struct vt_err *err)
{
    int rc = VT_OK;

    for (size_t i = first; i < m->n && rc == VT_OK; i++)
        rc = sock_share(sock, &m->frame[i], more || i + 1 < m->n, err);
    return rc;
}

int sock_put(void *sock, const void *bytes, size_t len, bool more, struct vt_err *err)
{
    zmq_msg_t frame;

    if (zmq_msg_init_size(&frame, len) != 0)
        return vt_nomem(err);
    if (len > 0)
        memcpy(zmq_msg_data(&frame), bytes, len);
    return send_one(sock, &frame, more, err);
}

int sock_wait(void *sock, int timeout_ms)
{
    zmq_pollitem_t item = {.socket = sock, .events = ZMQ_POLLIN};

    return zmq_poll(&item, 1, timeout_ms) > 0;
}
