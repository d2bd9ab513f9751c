/* engine.h - an engine by script, for tests and benchmarks of what stands between it
 * and a frontend: it shakes hands and then says what it is told to say. */
#ifndef VT_TESTS_WIRE_ENGINE_H
#define VT_TESTS_WIRE_ENGINE_H

#include "kvevents/kvevents.h"
#include "wire/codec/codec.h"

struct scripted {
    void *ctx; /* its own, as in a process of its own */
    uint32_t index;
    void *handshake;
    void **input, **output; /* DEALER and PUSH for each client */
    uint32_t n_clients;
    struct sock_msg in;
    struct vt_buf init; /* the INIT it got */
    struct vt_buf b;
};

static inline int scripted_dealer(struct scripted *e, void **out, const char *address,
                                  struct vt_err *err)
{
    uint8_t id[2] = {(uint8_t)e->index, (uint8_t)(e->index >> 8)};
    struct sock_options o = {
        .type = ZMQ_DEALER, .gets = SOCK_GETS_MUCH, .identity = id, .identity_len = 2};
    int rc = sock_open(out, e->ctx, &o, err);

    return rc == VT_OK ? sock_connect(*out, address, err) : rc;
}

static inline int scripted_say(struct scripted *e, const char *status, const char *hash,
                               struct vt_err *err)
{
    struct wire_hello h = {.status = {(const uint8_t *)status, strlen(status)},
                           .headless = true};

    if (hash)
        h.config_hash = (struct mp_span){(const uint8_t *)hash, strlen(hash)};
    vt_buf_clear(&e->b);
    wire_hello_write(&e->b, &h);
    return sock_put(e->handshake, e->b.data, e->b.len, false, err);
}

/* Says HELLO. */
static inline int scripted_open(struct scripted *e, uint32_t index,
                                const char *handshake, struct vt_err *err)
{
    int rc;

    *e = (struct scripted){.index = index};
    rc = sock_ctx(&e->ctx, err);
    if (rc == VT_OK)
        rc = scripted_dealer(e, &e->handshake, handshake, err);
    return rc == VT_OK ? scripted_say(e, "HELLO", NULL, err) : rc;
}

static inline int scripted_connect(struct scripted *e, const struct wire_init *w,
                                   uint32_t i, struct vt_err *err)
{
    struct sock_options o = {.type = ZMQ_PUSH, .linger_ms = 1000};
    char address[SOCK_ADDRESS];
    int rc;

    snprintf(address, sizeof(address), "%.*s", (int)w->input[i].len,
             (const char *)w->input[i].at);
    rc = scripted_dealer(e, &e->input[i], address, err);
    snprintf(address, sizeof(address), "%.*s", (int)w->output[i].len,
             (const char *)w->output[i].at);
    if (rc == VT_OK)
        rc = sock_open(&e->output[i], e->ctx, &o, err);
    return rc == VT_OK ? sock_connect(e->output[i], address, err) : rc;
}

static inline int scripted_take_init(struct scripted *e, struct vt_err *err)
{
    struct vt_arena a = {0};
    struct wire_init w;
    size_t len;
    const void *bytes = sock_data(&e->in, 0, &len);
    int rc;

    vt_buf_clear(&e->init);
    vt_buf_add(&e->init, bytes, len);
    rc = wire_init_read(&w, &a, bytes, len, err);
    if (rc == VT_OK) {
        e->n_clients = w.n_clients;
        e->input = calloc(w.n_clients, sizeof(*e->input));
        e->output = calloc(w.n_clients, sizeof(*e->output));
    }
    for (uint32_t i = 0; rc == VT_OK && i < w.n_clients; i++)
        rc = scripted_connect(e, &w, i, err);
    vt_arena_free(&a);
    return rc;
}

/* Waits for INIT, registers with these bytes, says READY. */
static inline int scripted_join(struct scripted *e, int timeout_ms,
                                struct vt_bytes registration, const char *hash,
                                struct vt_err *err)
{
    int rc;

    if (!sock_wait(e->handshake, timeout_ms))
        return vt_fail(err, VT_EIO, "no INIT within %d ms", timeout_ms);
    rc = sock_recv(e->handshake, &e->in, err);
    if (rc == VT_OK)
        rc = scripted_take_init(e, err);
    for (uint32_t i = 0; rc == VT_OK && i < e->n_clients; i++)
        rc = sock_put(e->input[i], registration.at, registration.len, false, err);
    return rc == VT_OK ? scripted_say(e, "READY", hash, err) : rc;
}

/* The next request from this client into e->in; e->in.n is 0 when none came. */
static inline int scripted_take(struct scripted *e, uint32_t client, int timeout_ms,
                                struct vt_err *err)
{
    sock_msg_clear(&e->in);
    if (!sock_wait(e->input[client], timeout_ms))
        return VT_OK;
    return sock_recv(e->input[client], &e->in, err);
}

static inline int scripted_put(struct scripted *e, uint32_t client,
                               const struct vt_bytes *frame, size_t n,
                               struct vt_err *err)
{
    int rc = VT_OK;

    for (size_t i = 0; i < n && rc == VT_OK; i++)
        rc = sock_put(e->output[client], frame[i].at, frame[i].len, i + 1 < n, err);
    return rc;
}

static inline int scripted_outputs(struct scripted *e, uint32_t client,
                                   const struct vt_wire_line *line,
                                   const struct wire_outputs *w, struct vt_err *err)
{
    struct vt_bytes frame;

    vt_buf_clear(&e->b);
    wire_outputs_write(&e->b, line, w);
    frame = (struct vt_bytes){e->b.data, e->b.len};
    return scripted_put(e, client, &frame, 1, err);
}

static inline void scripted_close(struct scripted *e)
{
    sock_msg_free(&e->in);
    for (uint32_t i = 0; i < e->n_clients; i++) {
        sock_close(e->input[i]);
        sock_close(e->output[i]);
    }
    sock_close(e->handshake);
    if (e->ctx)
        zmq_ctx_term(e->ctx);
    free(e->input);
    free(e->output);
    vt_buf_free(&e->init);
    vt_buf_free(&e->b);
    *e = (struct scripted){0};
}

#endif
