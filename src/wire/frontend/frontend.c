/* frontend.c - a frontend's sockets and its side of the handshake. */
#include "wire/frontend/frontend.h"

/* ---- time ------------------------------------------------------------- */

/* For zmq_poll(): what is left until then, at least 0; -1 for ever. */
static long left_ms(vt_ns deadline)
{
    vt_ns left;

    if (deadline == VT_NEVER)
        return -1;
    left = deadline - vt_wall_ns();
    return left > 0 ? (long)((left + VT_MS - 1) / VT_MS) : 0;
}

static vt_ns deadline_after(int timeout_ms)
{
    return timeout_ms < 0 ? VT_NEVER : vt_wall_ns() + timeout_ms * VT_MS;
}

/* ---- opening ---------------------------------------------------------- */

static int open_bound(struct vt_frontend *f, int type, const char *where, void **out,
                      char address[SOCK_ADDRESS], struct vt_err *err)
{
    struct sock_options o = sock_as_frontend(type);
    int rc;

    if ((rc = sock_open(out, f->ctx, &o, err)) || (rc = sock_bind(*out, where, err)))
        return rc;
    return sock_endpoint(*out, address, err);
}

static int make_init(struct vt_frontend *f, struct vt_bytes parallel_config,
                     struct vt_err *err)
{
    struct mp_span *address = calloc(2 * (size_t)f->n_clients, sizeof(*address));
    struct wire_init w = {.input = address, .n_clients = f->n_clients};

    if (!address)
        return vt_nomem(err);
    w.output = address + f->n_clients;
    for (uint32_t i = 0; i < f->n_clients; i++) {
        w.input[i] = wire_text(f->client[i].input_address);
        w.output[i] = wire_text(f->client[i].output_address);
    }
    if (f->waves) {
        w.coordinator_input = wire_text(f->waves_address);
        w.coordinator_output = wire_text(f->reports_address);
    }
    w.parallel_config = (struct mp_span){parallel_config.at, parallel_config.len};
    wire_init_write(&f->init, &w);
    free(address);
    return f->init.failed ? vt_nomem(err) : VT_OK;
}

static int open_all(struct vt_frontend *f, const struct vt_frontend_config *c,
                    struct vt_err *err)
{
    const char *where = c->data ? c->data : "tcp://127.0.0.1:*";
    int every = 1, rc;

    f->client = calloc(f->n_clients, sizeof(*f->client));
    f->engine = calloc(f->n_engines, sizeof(*f->engine));
    f->item = calloc((size_t)f->n_clients + 1, sizeof(*f->item));
    if (!f->client || !f->engine || !f->item)
        return vt_nomem(err);
    for (uint32_t i = 0; i < f->n_engines; i++)
        if (!(f->engine[i].registered = calloc(f->n_clients, sizeof(bool))))
            return vt_nomem(err);
    if ((rc = sock_ctx(&f->ctx, err)) ||
        (rc = open_bound(f, ZMQ_ROUTER, c->handshake, &f->handshake, f->address, err)))
        return rc;
    if (c->coordinator) {
        rc = open_bound(f, ZMQ_XPUB, where, &f->waves, f->waves_address, err);
        if (rc != VT_OK)
            return rc;
        /* Each subscription counts, not only the first. */
        if (zmq_setsockopt(f->waves, ZMQ_XPUB_VERBOSE, &every, sizeof(every)) != 0)
            return vt_fail(err, VT_EIO, "cannot set up the coordinator");
        rc = open_bound(f, ZMQ_PULL, where, &f->reports, f->reports_address, err);
        if (rc != VT_OK)
            return rc;
    }
    for (uint32_t i = 0; i < f->n_clients; i++) {
        struct frontend_client *to = &f->client[i];

        if ((rc = open_bound(f, ZMQ_ROUTER, where, &to->input, to->input_address,
                             err)) ||
            (rc = open_bound(f, ZMQ_PULL, where, &to->output, to->output_address, err)))
            return rc;
        f->item[f->n_items++].socket = to->output;
    }
    if (f->reports)
        f->item[f->n_items++].socket = f->reports;
    for (int i = 0; i < f->n_items; i++)
        f->item[i].events = ZMQ_POLLIN;
    return make_init(f, c->parallel_config, err);
}

int vt_frontend_open(struct vt_frontend **out, const struct vt_frontend_config *c,
                     struct vt_err *err)
{
    struct vt_frontend *f = calloc(1, sizeof(*f));
    const struct vt_wire_line *const *lines;
    size_t n_lines;
    int rc;

    *out = NULL;
    if (!f)
        return vt_nomem(err);
    f->n_clients = c->n_clients ? c->n_clients : 1;
    f->n_engines = c->n_engines ? c->n_engines : 1;
    lines = vt_wire_lines(&n_lines);
    f->line = c->line ? c->line : lines[n_lines - 1];
    rc = open_all(f, c, err);
    if (rc != VT_OK) {
        vt_frontend_close(f);
        return rc;
    }
    *out = f;
    return VT_OK;
}

void vt_frontend_close(struct vt_frontend *f)
{
    if (!f)
        return;
    sock_msg_free(&f->in);
    sock_close(f->handshake);
    sock_close(f->waves);
    sock_close(f->reports);
    for (uint32_t i = 0; f->client && i < f->n_clients; i++) {
        sock_close(f->client[i].input);
        sock_close(f->client[i].output);
    }
    if (f->ctx)
        zmq_ctx_term(f->ctx);
    for (uint32_t i = 0; f->engine && i < f->n_engines; i++) {
        vt_buf_free(&f->engine[i].registration);
        vt_buf_free(&f->engine[i].hash);
        free(f->engine[i].registered);
    }
    vt_buf_free(&f->init);
    vt_buf_free(&f->out);
    vt_arena_free(&f->arena);
    vt_arena_free(&f->out_arena);
    free(f->client);
    free(f->engine);
    free(f->item);
    free(f);
}

const char *vt_frontend_address(const struct vt_frontend *f)
{
    return f->address;
}

const struct vt_frontend_engine *vt_frontend_engine(const struct vt_frontend *f,
                                                    uint32_t engine)
{
    return engine < f->n_engines ? &f->engine[engine].said : NULL;
}

/* ---- handshake -------------------------------------------------------- */

/* The engine that the identity in frame 0 names: its index, two bytes. */
static int find_engine(struct vt_frontend *f, struct frontend_engine **out,
                       struct vt_err *err)
{
    const uint8_t *id;
    size_t len;
    uint32_t index;

    if (f->in.n < 2)
        return vt_fail(err, VT_EINPUT, "a message of %zu frames", f->in.n);
    id = sock_data(&f->in, 0, &len);
    if (len != 2)
        return vt_fail(err, VT_EINPUT, "an engine's identity has %zu bytes, not 2",
                       len);
    index = (uint32_t)id[0] | (uint32_t)id[1] << 8;
    if (index >= f->n_engines)
        return vt_fail(err, VT_EINPUT, "engine %u, but there are %u", index,
                       f->n_engines);
    *out = &f->engine[index];
    return VT_OK;
}

static int on_handshake(struct vt_frontend *f, uint32_t client, struct vt_err *err)
{
    struct frontend_engine *e = NULL;
    struct wire_hello h;
    const void *bytes;
    size_t len;
    int rc = find_engine(f, &e, err);

    (void)client;
    if (rc != VT_OK)
        return rc;
    bytes = sock_data(&f->in, 1, &len);
    rc = wire_hello_read(&h, bytes, len, err);
    if (rc != VT_OK)
        return rc;
    e->said.local = h.local;
    e->said.headless = h.headless;
    if (mp_span_is(h.status, "HELLO")) {
        e->greeted = true;
        bytes = sock_data(&f->in, 0, &len);
        rc = sock_put(f->handshake, bytes, len, true, err);
        return rc ? rc : sock_put(f->handshake, f->init.data, f->init.len, false, err);
    }
    if (!mp_span_is(h.status, "READY") || !e->greeted)
        return vt_fail(err, VT_EINPUT, "'%.*s' in the handshake", (int)h.status.len,
                       (const char *)h.status.at);
    vt_buf_clear(&e->hash);
    vt_buf_add(&e->hash, h.config_hash.at, h.config_hash.len);
    e->said.config_hash = h.config_hash.at ? e->hash.data : NULL;
    e->ready = true;
    return e->hash.failed ? vt_nomem(err) : VT_OK;
}

static int on_registration(struct vt_frontend *f, uint32_t client, struct vt_err *err)
{
    struct frontend_engine *e = NULL;
    struct mp_span map, version;
    int rc = find_engine(f, &e, err);

    if (rc != VT_OK)
        return rc;
    map.at = sock_data(&f->in, 1, &map.len);
    e->registered[client] = true;
    if (client > 0)
        return VT_OK;
    vt_buf_clear(&e->registration);
    vt_buf_add(&e->registration, map.at, map.len);
    if (e->registration.failed)
        return vt_nomem(err);
    e->said.registration = (struct vt_bytes){e->registration.data, map.len};
    version = mp_text(mp_get(map, "vllm_version"));
    snprintf(e->said.vllm_version, sizeof(e->said.vllm_version), "%.*s",
             version.at ? (int)(version.len < 63 ? version.len : 63) : 0,
             version.at ? (const char *)version.at : "");
    return VT_OK;
}

/* All subscriptions are in before anything is published. */
static int on_subscription(struct vt_frontend *f, uint32_t client, struct vt_err *err)
{
    size_t len;
    const uint8_t *byte = sock_data(&f->in, 0, &len);

    (void)client;
    if (len == 0 || byte[0] != 1 || ++f->n_subscribed != f->n_engines)
        return VT_OK;
    return sock_put(f->waves, "READY", 5, false, err);
}

typedef int on_message(struct vt_frontend *f, uint32_t client, struct vt_err *err);

/* All that has come through one socket. */
static int handle_all(struct vt_frontend *f, void *sock, on_message *on,
                      uint32_t client, struct vt_err *err)
{
    int rc = sock ? sock_recv(sock, &f->in, err) : VT_OK;

    while (sock && rc == VT_OK && f->in.n > 0) {
        rc = on(f, client, err);
        if (rc == VT_OK)
            rc = sock_recv(sock, &f->in, err);
    }
    return rc;
}

static uint32_t count_ready(const struct vt_frontend *f)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < f->n_engines; i++) {
        const struct frontend_engine *e = &f->engine[i];
        bool all = e->ready;

        for (uint32_t c = 0; c < f->n_clients; c++)
            all = all && e->registered[c];
        n += all;
    }
    return n;
}

int vt_frontend_accept(struct vt_frontend *f, int timeout_ms, struct vt_err *err)
{
    zmq_pollitem_t heard[2] = {{.socket = f->handshake, .events = ZMQ_POLLIN},
                               {.socket = f->waves, .events = ZMQ_POLLIN}};
    vt_ns deadline = deadline_after(timeout_ms);

    f->n_subscribed = 0;
    for (uint32_t i = 0; i < f->n_engines; i++) {
        struct frontend_engine *e = &f->engine[i];

        e->greeted = e->ready = false;
        memset(e->registered, 0, f->n_clients * sizeof(*e->registered));
    }
    for (;;) {
        long left;
        int rc;

        if ((rc = handle_all(f, f->handshake, on_handshake, 0, err)) ||
            (rc = handle_all(f, f->waves, on_subscription, 0, err)))
            return rc;
        for (uint32_t i = 0; i < f->n_clients; i++)
            if ((rc = handle_all(f, f->client[i].input, on_registration, i, err)))
                return rc;
        if (count_ready(f) == f->n_engines)
            return VT_OK;
        left = left_ms(deadline);
        if (left == 0)
            return vt_fail(err, VT_EIO, "%u of %u engines came within %d ms",
                           count_ready(f), f->n_engines, timeout_ms);
        /* Registrations are looked for now and then. */
        zmq_poll(heard, f->waves ? 2 : 1, left < 0 || left > 10 ? 10 : left);
    }
}

/* ---- messages from engines -------------------------------------------- */

static int try_outputs(struct vt_frontend *f, struct vt_err *err)
{
    uint32_t n = f->n_clients + 1;

    for (uint32_t k = 0; k < n; k++) {
        uint32_t i = (f->turn + k) % n;
        void *sock = i < f->n_clients ? f->client[i].output : f->reports;
        int rc = sock ? sock_recv(sock, &f->in, err) : VT_OK;

        if (rc != VT_OK)
            return rc;
        if (!sock || f->in.n == 0)
            continue;
        f->turn = i + 1;
        f->message = (struct vt_frontend_message){
            .at = vt_wall_ns(),
            .client = i < f->n_clients ? i : VT_FRONTEND_COORDINATOR,
        };
        return VT_OK;
    }
    return VT_OK;
}

int vt_frontend_next(struct vt_frontend *f, int timeout_ms,
                     const struct vt_frontend_message **out, struct vt_err *err)
{
    vt_ns deadline = deadline_after(timeout_ms);

    *out = NULL;
    for (;;) {
        int rc = try_outputs(f, err);

        if (rc != VT_OK)
            return rc;
        if (f->in.n > 0)
            break;
        if (left_ms(deadline) == 0)
            return VT_OK;
        if (zmq_poll(f->item, f->n_items, left_ms(deadline)) < 0)
            return VT_OK;
    }
    *out = &f->message;
    return frontend_decode(f, err);
}
