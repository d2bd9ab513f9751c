/* play_raw.h - a frontend made of bare sockets, for what struct vt_frontend is too well
 * behaved for: clients that go one by one, a coordinator that makes engines wait. */
#ifndef VT_TESTS_WIRE_PLAY_RAW_H
#define VT_TESTS_WIRE_PLAY_RAW_H

#include "kvevents/kvevents.h"
#include "play_harness.h"

enum { RAW_CLIENTS = 2 };

struct raw {
    void *ctx, *handshake;
    struct {
        void *input, *output;
        char input_at[SOCK_ADDRESS], output_at[SOCK_ADDRESS];
    } client[RAW_CLIENTS];
    void *waves, *reports; /* NULL: no coordinator */
    char handshake_at[SOCK_ADDRESS], waves_at[SOCK_ADDRESS], reports_at[SOCK_ADDRESS];
    struct sock_msg msg; /* the last one that came */
};

/* With handover an engine that comes back is let in also where its old connection is
 * not known to be gone: libzmq would lock it out for good. */
static inline void raw_bind(struct raw *r, int type, const char *where, void **sock,
                            char at[SOCK_ADDRESS])
{
    struct sock_options o = {.type = type, .gets = SOCK_GETS_MUCH};
    struct vt_err err = {0};
    int yes = 1;

    if (sock_open(sock, r->ctx, &o, &err) != VT_OK)
        fail_msg("%s", err.msg);
    if (type == ZMQ_ROUTER)
        assert_int_equal(zmq_setsockopt(*sock, ZMQ_ROUTER_HANDOVER, &yes, sizeof(yes)),
                         0);
    if (sock_bind(*sock, where, &err) != VT_OK ||
        sock_endpoint(*sock, at, &err) != VT_OK)
        fail_msg("%s", err.msg);
}

static inline void raw_open(struct raw *r, const char *handshake, bool coordinator)
{
    const char *any = "ipc://*";
    struct vt_err err = {0};

    assert_int_equal(sock_ctx(&r->ctx, &err), VT_OK);
    raw_bind(r, ZMQ_ROUTER, handshake, &r->handshake, r->handshake_at);
    for (int i = 0; i < RAW_CLIENTS; i++) {
        raw_bind(r, ZMQ_ROUTER, any, &r->client[i].input, r->client[i].input_at);
        raw_bind(r, ZMQ_PULL, any, &r->client[i].output, r->client[i].output_at);
    }
    if (coordinator) {
        raw_bind(r, ZMQ_XPUB, any, &r->waves, r->waves_at);
        raw_bind(r, ZMQ_PULL, any, &r->reports, r->reports_at);
    }
}

static inline void raw_lose(struct raw *r, int client)
{
    sock_close(r->client[client].input);
    sock_close(r->client[client].output);
    r->client[client].input = r->client[client].output = NULL;
}

static inline void raw_close(struct raw *r)
{
    if (r->ctx == NULL)
        return;
    sock_msg_free(&r->msg);
    for (int i = 0; i < RAW_CLIENTS; i++)
        raw_lose(r, i);
    sock_close(r->handshake);
    sock_close(r->waves);
    sock_close(r->reports);
    zmq_ctx_term(r->ctx);
    *r = (struct raw){0};
}

/* False: nothing came in time. */
static inline bool raw_recv(struct raw *r, void *sock, int ms)
{
    struct vt_err err = {0};

    if (!sock_wait(sock, ms))
        return false;
    assert_int_equal(sock_recv(sock, &r->msg, &err), VT_OK);
    return r->msg.n > 0;
}

/* The last frame of what came. */
static inline struct mp_span raw_payload(const struct raw *r)
{
    size_t len;
    const void *at = sock_data(&r->msg, r->msg.n - 1, &len);

    return (struct mp_span){at, len};
}

static inline void raw_put(void *sock, const void *bytes, size_t len, bool more)
{
    struct vt_err err = {0};

    if (sock_put(sock, bytes, len, more, &err) != VT_OK)
        fail_msg("%s", err.msg);
}

/* Waits for HELLO or READY on the handshake. */
static inline void raw_hear(struct raw *r, const char *status, uint32_t engine)
{
    struct wire_hello h;
    struct vt_err err = {0};
    struct mp_span m;
    const uint8_t *id;
    size_t len;

    if (!raw_recv(r, r->handshake, WAIT_MS))
        fail_msg("no %s comes", status);
    id = sock_data(&r->msg, 0, &len);
    assert_int_equal(len, 2);
    assert_int_equal(id[0] | id[1] << 8, engine);
    m = raw_payload(r);
    assert_int_equal(wire_hello_read(&h, m.at, m.len, &err), VT_OK);
    assert_true(mp_span_is(h.status, status));
}

static inline struct mp_span raw_text(const char *text)
{
    return (struct mp_span){(const uint8_t *)text, strlen(text)};
}

static inline void raw_send_bytes(struct raw *r, uint32_t engine, const void *bytes,
                                  size_t len)
{
    uint8_t id[2] = {(uint8_t)engine, (uint8_t)(engine >> 8)};

    raw_put(r->handshake, id, 2, true);
    raw_put(r->handshake, bytes, len, false);
}

static inline void raw_init(struct raw *r, uint32_t engine)
{
    struct mp_span input[RAW_CLIENTS], output[RAW_CLIENTS];
    struct wire_init w = {.input = input, .output = output, .n_clients = RAW_CLIENTS};
    struct vt_buf b = {0};

    for (int i = 0; i < RAW_CLIENTS; i++) {
        input[i] = raw_text(r->client[i].input_at);
        output[i] = raw_text(r->client[i].output_at);
    }
    if (r->waves != NULL) {
        w.coordinator_input = raw_text(r->waves_at);
        w.coordinator_output = raw_text(r->reports_at);
    }
    wire_init_write(&b, &w);
    raw_send_bytes(r, engine, b.data, b.len);
    vt_buf_free(&b);
}

/* The registration with every client. */
static inline void raw_registered(struct raw *r)
{
    for (int i = 0; i < RAW_CLIENTS; i++)
        if (!raw_recv(r, r->client[i].input, WAIT_MS))
            fail_msg("the engine does not register with client %d", i);
}

static inline void raw_ask(struct raw *r, uint32_t client, uint32_t engine,
                           const char *id, uint32_t max_tokens)
{
    uint8_t name[2] = {(uint8_t)engine, (uint8_t)(engine >> 8)}, type = WIRE_ADD;
    uint32_t token[] = {1, 2, 3, 4};
    struct vt_buf b = {0}, sampling = {0};
    struct wire_request w = {
        .n_fields = WIRE_REQUEST_FIELDS,
        .id = raw_text(id),
        .prompt = token,
        .n_prompt = 4,
        .data_parallel_rank = -1,
        .client_index = client,
    };

    mp_put_map(&sampling, 1);
    put_key_u64(&sampling, "max_tokens", max_tokens);
    w.sampling = (struct mp_span){(const uint8_t *)sampling.data, sampling.len};
    wire_request_write(&b, &w);
    raw_put(r->client[client].input, name, 2, true);
    raw_put(r->client[client].input, &type, 1, true);
    raw_put(r->client[client].input, b.data, b.len, false);
    vt_buf_free(&b);
    vt_buf_free(&sampling);
}

/* The next message to a client, in the arena. */
static inline struct wire_outputs raw_next(struct raw *r, uint32_t client,
                                           struct vt_arena *a)
{
    struct wire_outputs o;
    struct vt_err err = {0};
    size_t len;
    const void *at;

    if (!raw_recv(r, r->client[client].output, WAIT_MS))
        fail_msg("nothing comes to client %u", client);
    at = sock_data(&r->msg, 0, &len);
    vt_arena_reset(a);
    if (wire_outputs_read(&o, a, at, len, (uint32_t)r->msg.n - 1, &err) != VT_OK)
        fail_msg("%s", err.msg);
    return o;
}

#endif
