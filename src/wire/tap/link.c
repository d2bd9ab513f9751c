/* link.c - the recorder's sockets: those that engines find in place of a
 * frontend's, and those that the frontend finds in place of engines. */
#include "wire/tap/tap.h"

#include <errno.h>

enum {
    LINGER_MS = 1000, /* for last outputs to reach the frontend */
    BIND_TRIES = 100, /* a port that was ours a moment ago comes free soon */
    BIND_NAP_MS = 10,
};

static const int WATCHED =
    ZMQ_EVENT_ACCEPTED | ZMQ_EVENT_HANDSHAKE_SUCCEEDED | ZMQ_EVENT_DISCONNECTED;

static void drop_queue(void *sock)
{
    int none = 0;

    if (sock)
        zmq_setsockopt(sock, ZMQ_LINGER, &none, sizeof(none));
}

/* ---- in place of a frontend ------------------------------------------- */

static int tcp_address(char out[SOCK_ADDRESS], const char *base, uint32_t i,
                       struct vt_err *err)
{
    static const char *const anywhere[] = {"*", "0.0.0.0", "[::]", "::"};
    const char *host = base + strlen("tcp://"), *colon = strrchr(host, ':');
    uint64_t port = 0;

    if (!colon || colon == host)
        return vt_fail(err, VT_EINPUT, "%s: not tcp://HOST:PORT", base);
    for (size_t k = 0; k < VT_COUNT(anywhere); k++)
        if (strlen(anywhere[k]) == (size_t)(colon - host) &&
            strncmp(host, anywhere[k], (size_t)(colon - host)) == 0)
            return vt_fail(err, VT_EINPUT,
                           "%s: engines are told this address, so it must name a host",
                           base);
    if (strcmp(colon + 1, "*") != 0 &&
        (!vt_parse_u64(colon + 1, strlen(colon + 1), &port) || port + i > 65535))
        return vt_fail(err, VT_EINPUT, "%s: no port for client %u", base, i);
    if (port == 0)
        snprintf(out, SOCK_ADDRESS, "%.*s:*", (int)(colon - base), base);
    else
        snprintf(out, SOCK_ADDRESS, "%.*s:%u", (int)(colon - base), base,
                 (unsigned)port + i);
    return VT_OK;
}

int tap_client_address(char out[SOCK_ADDRESS], const char *base, uint32_t i,
                       struct vt_err *err)
{
    if (strlen(base) > SOCK_ADDRESS - 16)
        return vt_fail(err, VT_EINPUT, "%.64s...: an address that long", base);
    if (strncmp(base, "tcp://", strlen("tcp://")) == 0)
        return tcp_address(out, base, i, err);
    if (strncmp(base, "ipc://", strlen("ipc://")) != 0)
        return vt_fail(err, VT_EINPUT, "%s: neither tcp:// nor ipc://", base);
    if (i == 0)
        snprintf(out, SOCK_ADDRESS, "%s", base);
    else
        snprintf(out, SOCK_ADDRESS, "%s.%u", base, i);
    return VT_OK;
}

static int bound_open(void **out, void *ctx, int type, const char *base, uint32_t i,
                      char address[SOCK_ADDRESS], struct vt_err *err)
{
    struct sock_options o = sock_as_frontend(type);
    int rc;

    if ((rc = tap_client_address(address, base, i, err)) ||
        (rc = sock_open(out, ctx, &o, err)))
        return rc;
    for (int tries = 1; (rc = sock_bind(*out, address, err)); tries++) {
        if (tries == BIND_TRIES || zmq_errno() != EADDRINUSE)
            return rc;
        vt_sleep_ns(BIND_NAP_MS * VT_MS);
    }
    return sock_endpoint(*out, address, err);
}

int tap_client_try(void *ctx, const char *base, struct vt_err *err)
{
    struct sock_options o = {.type = ZMQ_PULL};
    char address[SOCK_ADDRESS];
    void *sock = NULL;
    int rc;

    if (!(rc = tap_client_address(address, base, 0, err)) &&
        !(rc = sock_open(&sock, ctx, &o, err)) &&
        !(rc = sock_bind(sock, address, err)) &&
        !(rc = sock_endpoint(sock, address, err)))
        zmq_unbind(sock, address);
    sock_close(sock);
    return rc;
}

int tap_client_open(struct tap_client *c, void *ctx, const struct vt_tap_config *config,
                    uint32_t i, struct mp_span frontend_output, struct vt_err *err)
{
    struct sock_options o = {.type = ZMQ_PUSH, .linger_ms = LINGER_MS};
    int rc;

    vt_buf_add(&c->address, frontend_output.at, frontend_output.len);
    if ((rc = bound_open(&c->input, ctx, ZMQ_ROUTER, config->input, i, c->input_address,
                         err)) ||
        (rc = sock_monitor_open(&c->monitor, ctx, c->input, WATCHED, err)) ||
        (rc = bound_open(&c->output, ctx, ZMQ_PULL, config->output, i,
                         c->output_address, err)) ||
        (rc = sock_open(&c->push, ctx, &o, err)))
        return rc;
    if (c->address.failed || c->address.len == 0)
        return vt_fail(err, VT_EINPUT, "the frontend names no output address");
    return sock_connect(c->push, c->address.data, err);
}

void tap_client_close(struct tap_client *c, bool frontend_is_there)
{
    if (!frontend_is_there)
        drop_queue(c->push);
    if (c->input) /* sooner than by closing, for whoever binds there next */
        zmq_unbind(c->input, c->input_address);
    if (c->output)
        zmq_unbind(c->output, c->output_address);
    sock_close_monitored(c->input, c->monitor);
    sock_close(c->output);
    sock_close(c->push);
    tap_held_drop(c);
    vt_buf_free(&c->address);
    *c = (struct tap_client){0};
}

/* ---- in place of an engine -------------------------------------------- */

static int dealer_open(struct tap_link *l, void *ctx, const char *address,
                       enum sock_gets gets, void **out, void **monitor,
                       struct vt_err *err)
{
    struct sock_options o = {.type = ZMQ_DEALER,
                             .gets = gets,
                             .identity = l->identity,
                             .identity_len = l->identity_len,
                             .linger_ms = LINGER_MS};
    int rc;

    if ((rc = sock_open(out, ctx, &o, err)) ||
        (rc = sock_monitor_open(monitor, ctx, *out, WATCHED, err)))
        return rc;
    return sock_connect(*out, address, err);
}

/* Whether the frontend holds the other end now; *lost: it did and let go. */
bool tap_link_is_up(struct tap_link *l, bool *lost)
{
    int event, fd;

    *lost = false;
    while (l->handshake && sock_monitor_next(l->handshake_monitor, &event, &fd)) {
        l->handshake_up = event == ZMQ_EVENT_HANDSHAKE_SUCCEEDED;
        *lost = *lost || event == ZMQ_EVENT_DISCONNECTED;
    }
    return l->handshake_up;
}

/* A frontend that is there hears it on the connection it knows. For one that is yet to
 * come a new socket makes sure that it is heard once: nothing is left in its queue. */
int tap_link_hello(struct tap_link *l, void *ctx, const char *frontend,
                   struct vt_err *err)
{
    bool lost;
    int rc = VT_OK;

    if (!tap_link_is_up(l, &lost)) {
        drop_queue(l->handshake);
        sock_close_monitored(l->handshake, l->handshake_monitor);
        l->handshake = l->handshake_monitor = NULL;
        rc = dealer_open(l, ctx, frontend, SOCK_GETS_LITTLE, &l->handshake,
                         &l->handshake_monitor, err);
    }
    if (rc == VT_OK)
        rc = sock_put(l->handshake, l->hello.data, l->hello.len, false, err);
    l->asked = true;
    l->ready = false;
    return rc;
}

int tap_link_inputs(struct tap_link *l, void *ctx, const struct wire_init *init,
                    struct vt_err *err)
{
    uint32_t n = init->n_clients;
    int rc = VT_OK;

    l->input = calloc(n, sizeof(*l->input));
    l->input_monitor = calloc(n, sizeof(*l->input_monitor));
    l->up = calloc(n, sizeof(*l->up));
    if (!l->input || !l->input_monitor || !l->up)
        return vt_nomem(err);
    l->n_inputs = n;
    for (uint32_t i = 0; i < n && rc == VT_OK; i++) {
        struct mp_span address = init->input[i];
        char text[SOCK_ADDRESS];

        if (address.len >= sizeof(text))
            return vt_fail(err, VT_EINPUT, "the frontend's input address is too long");
        snprintf(text, sizeof(text), "%.*s", (int)address.len,
                 (const char *)address.at);
        rc = dealer_open(l, ctx, text, SOCK_GETS_MUCH, &l->input[i],
                         &l->input_monitor[i], err);
    }
    return rc;
}

void tap_link_close_inputs(struct tap_link *l)
{
    for (uint32_t i = 0; i < l->n_inputs; i++) {
        if (!l->up[i])
            drop_queue(l->input[i]);
        sock_close_monitored(l->input[i], l->input_monitor[i]);
    }
    free(l->input);
    free(l->input_monitor);
    free(l->up);
    l->input = l->input_monitor = NULL;
    l->up = NULL;
    l->n_inputs = 0;
    l->registered = false;
    l->fd = -1;
    l->lost_at = VT_NEVER;
}

void tap_link_close(struct tap_link *l)
{
    tap_link_close_inputs(l);
    if (l->asked)
        drop_queue(l->handshake);
    sock_close_monitored(l->handshake, l->handshake_monitor);
    l->handshake = l->handshake_monitor = NULL;
    l->asked = l->ready = l->handshake_up = false;
    vt_buf_free(&l->hello);
}

/* ---- INIT ------------------------------------------------------------- */

/* A map of INIT, or with `addresses` the one that they are in. */
static void rewrite_map(struct vt_buf *b, struct mp_in *in, const struct tap_client *c,
                        uint32_t n, bool addresses)
{
    uint32_t pairs = mp_map(in);

    mp_put_map(b, pairs);
    for (uint32_t i = 0; i < pairs && !in->bad; i++) {
        struct mp_span key = mp_str(in);
        bool inputs = mp_span_is(key, "inputs");

        mp_put_strn(b, key.at, key.len);
        if (!addresses && mp_span_is(key, "addresses")) {
            rewrite_map(b, in, c, n, true);
        } else if (addresses && (inputs || mp_span_is(key, "outputs"))) {
            mp_skip(in);
            mp_put_array(b, n);
            for (uint32_t k = 0; k < n; k++)
                mp_put_str(b, inputs ? c[k].input_address : c[k].output_address);
        } else {
            mp_put_raw(b, mp_raw(in));
        }
    }
}

bool tap_init_rewrite(struct vt_buf *b, struct mp_span init, const struct tap_client *c,
                      uint32_t n)
{
    struct mp_in in;

    mp_in_init(&in, init.at, init.len);
    rewrite_map(b, &in, c, n, false);
    return !in.bad && in.at == in.end && !b->failed;
}
