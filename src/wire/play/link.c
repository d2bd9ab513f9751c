/* link.c - handshake, registration, and what to do when a frontend goes.
 *
 * A frontend shakes hands once, when it starts. So an engine whose frontend is gone
 * says HELLO again, to be there for the next one. A connection that comes back by
 * itself within a moment was a hiccup: the session goes on. */
#include "wire/play/intake.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const vt_ns GRACE_NS = VT_SEC; /* to come back, before requests are given up */
enum {
    LINGER_MS = 4000, /* as vLLM's, as the next one */
    HANDSHAKE_LINGER_MS = 5000,
    PATIENCE_MS = 600000, /* as long as they wait for their engines */
    MAX_CLIENTS = 1024,
    MAX_SESSION = 1 << 20, /* bytes */
};

/* ---- sockets ---------------------------------------------------------- */

static const int WATCHED = ZMQ_EVENT_HANDSHAKE_SUCCEEDED | ZMQ_EVENT_DISCONNECTED;

static uint32_t index_of(const struct link *l) /* on the wire */
{
    return l->p->c->first_rank + l->rank;
}

/* A frontend's ports may be open a minute before the process that serves them is there.
 * Giving up such a connection would look like the loss of a frontend. */
static int open_dealer(struct link *l, int linger_ms, enum sock_gets gets,
                       const char *address, void **out, void **monitor,
                       struct vt_err *err)
{
    uint8_t id[2] = {(uint8_t)(index_of(l) & 0xff), (uint8_t)(index_of(l) >> 8)};
    struct sock_options o = {.type = ZMQ_DEALER,
                             .gets = gets,
                             .identity = id,
                             .identity_len = 2,
                             .linger_ms = linger_ms};
    int patience_ms = PATIENCE_MS, rc = sock_open(out, l->p->ctx, &o, err);

    if (rc != VT_OK)
        return rc;
    if (zmq_setsockopt(*out, ZMQ_HANDSHAKE_IVL, &patience_ms, sizeof(patience_ms)) != 0)
        return vt_fail(err, VT_EIO, "cannot set how long a handshake may take: %s",
                       zmq_strerror(zmq_errno()));
    rc = sock_monitor_open(monitor, l->p->ctx, *out, WATCHED, err);
    return rc ? rc : sock_connect(*out, address, err);
}

/* What a monitor has to say: 1 connected, -1 lost, 0 nothing. */
static int connection_change(void *monitor)
{
    int said = 0, event, fd;

    while (monitor && sock_monitor_next(monitor, &event, &fd))
        said = event == ZMQ_EVENT_DISCONNECTED ? -1 : 1;
    return said;
}

/* READY has to arrive; a HELLO that nobody has heard is not waited for. */
static void close_handshake(struct link *l)
{
    int none = 0;

    if (l->handshake && l->state != LINK_UP)
        (void)zmq_setsockopt(l->handshake, ZMQ_LINGER, &none, sizeof(none));
    sock_close_monitored(l->handshake, l->handshake_monitor);
    l->handshake = l->handshake_monitor = NULL;
}

static void close_clients(struct link *l)
{
    for (uint32_t i = 0; i < l->n_clients; i++)
        sock_close_monitored(l->client[i].input, l->client[i].monitor);
    free(l->client);
    l->client = NULL;
    l->n_clients = 0;
    sock_close(l->waves);
    l->waves = NULL;
}

void link_close(struct link *l)
{
    if (!l->p)
        return;
    close_handshake(l);
    close_clients(l);
    sock_msg_free(&l->msg);
}

/* ---- HELLO and READY -------------------------------------------------- */

static int send_hello(struct link *l, const char *status, struct vt_err *err)
{
    struct wire_hello h = {
        .status = wire_text(status),
        .headless = l->p->c->headless,
    };
    struct vt_buf b = {0};
    int rc;

    if (strcmp(status, "READY") == 0)
        h.config_hash = wire_text(l->p->c->parallel_config_hash);
    wire_hello_write(&b, &h);
    rc = b.failed ? vt_nomem(err) : sock_put(l->handshake, b.data, b.len, false, err);
    vt_buf_free(&b);
    return rc;
}

static int begin_handshake(struct link *l, struct vt_err *err)
{
    int rc;

    close_handshake(l);
    l->state = LINK_ASKS;
    rc = open_dealer(l, HANDSHAKE_LINGER_MS, SOCK_GETS_LITTLE, l->p->c->handshake,
                     &l->handshake, &l->handshake_monitor, err);
    return rc ? rc : send_hello(l, "HELLO", err);
}

static int finish_handshake(struct link *l, struct vt_err *err)
{
    int rc = l->handshake ? send_hello(l, "READY", err) : VT_OK;

    l->state = LINK_UP;
    close_handshake(l);
    play_log(l->p, "engine %u is registered with the frontend at %s", index_of(l),
             l->p->c->handshake);
    return rc;
}

/* ---- registration ----------------------------------------------------- */

static void put_registration(struct link *l, struct vt_buf *b)
{
    const struct vt_play_config *c = l->p->c;
    const struct vt_engine_config *e = &l->p->engine;
    struct vt_kv_facts kv = vt_kv_facts(e);
    char instance[128];
    struct wire_ready w = {
        .max_model_len = e->max_model_len,
        .num_gpu_blocks = e->num_gpu_blocks,
        .block_size = kv.block_size,
        .whole_block_size = kv.whole_block_size,
        .state_block_size = kv.state_block_size,
        .dtype = c->dtype,
        .vllm_version = c->vllm_version,
        .instance_id = instance,
        .world_size = c->tensor_parallel_size,
        .data_parallel_size =
            c->waves ? c->n_engines : 1, /* dense ranks know no other */
        .data_parallel_rank = index_of(l),
        .tensor_parallel_size = c->tensor_parallel_size,
        .pipeline_parallel_size = 1,
        .max_num_seqs = e->max_num_seqs,
        .max_num_batched_tokens = e->max_num_batched_tokens,
        .kv_cache_size_tokens = kv.tokens,
        .kv_cache_max_concurrency = kv.max_concurrency,
        .supports_lora = c->max_loras > 0,
        .enable_sleep_mode = true,
        .max_loras = c->max_loras,
    };

    (void)snprintf(instance, sizeof(instance), c->n_engines > 1 ? "%s-%u" : "%s",
                   c->instance_id, l->rank);
    if (l->kv) {
        w.events_endpoint = vt_kv_publisher_endpoint(l->kv);
        w.events_replay_endpoint = vt_kv_publisher_replay_endpoint(l->kv);
        w.events_topic = c->kv.topic ? c->kv.topic : "";
    }
    wire_ready_write(b, &w);
}

static char *address_of(struct mp_span text, char out[SOCK_ADDRESS])
{
    size_t len = text.len < SOCK_ADDRESS - 1 ? text.len : SOCK_ADDRESS - 1;

    memcpy(out, text.at, len);
    out[len] = '\0';
    return out;
}

static int join_client(struct link *l, struct link_client *c, struct mp_span address,
                       struct vt_err *err)
{
    char text[SOCK_ADDRESS];
    struct vt_buf b = {0};
    int rc = open_dealer(l, 0, SOCK_GETS_MUCH, address_of(address, text), &c->input,
                         &c->monitor, err);

    if (rc != VT_OK)
        return rc;
    put_registration(l, &b);
    rc = b.failed ? vt_nomem(err) : sock_put(c->input, b.data, b.len, false, err);
    vt_buf_free(&b);
    return rc;
}

static int open_push(struct link *l, struct mp_span address, void **out,
                     struct vt_err *err)
{
    struct sock_options o = {.type = ZMQ_PUSH, .linger_ms = LINGER_MS};
    char text[SOCK_ADDRESS];
    int rc = sock_open(out, l->p->ctx, &o, err);

    return rc == VT_OK ? sock_connect(*out, address_of(address, text), err) : rc;
}

/* The engine thread's sockets, on their way to it. */
static int pass_outputs(struct link *l, const struct wire_init *w, struct vt_err *err)
{
    struct note *n = note_new(NOTE_SESSION, l->rank);
    int rc = VT_OK;

    if (!n)
        return vt_nomem(err);
    n->line = l->p->c->line ? l->p->c->line : vt_wire_line_of_request(0);
    n->push = calloc(w->n_clients + 1, sizeof(*n->push));
    if (!n->push)
        rc = vt_nomem(err);
    for (uint32_t i = 0; i < w->n_clients && rc == VT_OK; i++) {
        rc = open_push(l, w->output[i], &n->push[i], err);
        n->n_push++;
    }
    if (rc == VT_OK && w->coordinator_output.at)
        rc = open_push(l, w->coordinator_output, &n->coordinator, err);
    play_send_note(l->p, &l->p->to_engines,
                   n); /* also after a failure: it owns what was opened */
    return rc;
}

static int join_frontend(struct link *l, const struct wire_init *w, struct vt_err *err)
{
    struct sock_options o = {.type = ZMQ_SUB};
    char text[SOCK_ADDRESS];
    int rc = VT_OK;

    if (w->n_clients > MAX_CLIENTS)
        return vt_fail(err, VT_EINPUT, "it has %u clients, more than %d", w->n_clients,
                       MAX_CLIENTS);
    close_clients(l);
    l->line = l->p->c->line;
    l->client = calloc(w->n_clients + 1, sizeof(*l->client));
    if (!l->client)
        return vt_nomem(err);
    for (uint32_t i = 0; i < w->n_clients && rc == VT_OK; i++) {
        l->n_clients++;
        rc = join_client(l, &l->client[i], w->input[i], err);
    }
    if (rc != VT_OK || (rc = pass_outputs(l, w, err)) || !w->coordinator_input.at)
        return rc;
    rc = sock_open(&l->waves, l->p->ctx, &o, err);
    if (rc != VT_OK)
        return rc;
    if (zmq_setsockopt(l->waves, ZMQ_SUBSCRIBE, "", 0) != 0)
        return vt_fail(err, VT_EIO, "subscribe: %s", zmq_strerror(zmq_errno()));
    return sock_connect(l->waves, address_of(w->coordinator_input, text), err);
}

/* ---- INIT ------------------------------------------------------------- */

/* A frontend that says something that makes no sense is told of, and may think again.
 */
static int take_init(struct link *l, const void *bytes, size_t len, struct vt_err *err)
{
    struct vt_arena a = {0};
    struct wire_init w = {0};
    struct vt_err why = {0};
    struct vt_out *session;
    int rc = wire_init_read(&w, &a, bytes, len, &why);

    if (rc == VT_OK)
        rc = join_frontend(l, &w, &why);
    if (rc == VT_OK) {
        if (w.coordinator_input.at)
            l->state = LINK_GATED;
        else
            rc = finish_handshake(l, err);
        /* For the next start: it is the same for all ranks. */
        if (rc == VT_OK && l->rank == 0 && l->p->c->session_file &&
            !(rc = vt_out_open(&session, l->p->c->session_file, err)))
            rc = vt_out_end(session, vt_out_write(session, bytes, len, err), err);
    } else {
        play_complain(l->p, &l->complaints, "engine %u: INIT from the frontend: %s",
                      index_of(l), why.msg);
        close_clients(l);
        rc = rc == VT_ENOMEM ? vt_nomem(err) : VT_OK;
    }
    vt_arena_free(&a);
    return rc;
}

static int attend_handshake(struct link *l, struct vt_err *err)
{
    int said = connection_change(l->handshake_monitor), rc;

    if (!l->handshake)
        return VT_OK;
    rc = sock_recv(l->handshake, &l->msg, err);
    if (rc != VT_OK)
        return rc;
    if (l->msg.n > 0 && l->state == LINK_ASKS) {
        size_t len;
        const void *bytes = sock_data(&l->msg, l->msg.n - 1, &len);

        return take_init(l, bytes, len, err);
    }
    if (said < 0 && l->state == LINK_ASKS)
        return begin_handshake(l, err); /* who got the HELLO is gone */
    return VT_OK;
}

/* ---- losses ----------------------------------------------------------- */

static void tell_of_loss(struct link *l, uint32_t client)
{
    struct note *n = note_new(NOTE_LOST, l->rank);

    if (n)
        n->client = client;
    play_send_note(l->p, &l->p->to_engines, n);
}

static uint32_t count_lost(const struct link *l)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < l->n_clients; i++)
        n += l->client[i].lost_ns != 0;
    return n;
}

void link_stopping(struct link *l)
{
    if (l->n_clients > 0 && count_lost(l) == l->n_clients)
        tell_of_loss(l, UINT32_MAX);
}

static int attend_losses(struct link *l, struct vt_err *err)
{
    vt_ns now = vt_wall_ns();
    bool all;

    for (uint32_t i = 0; i < l->n_clients; i++) {
        struct link_client *c = &l->client[i];
        int said = connection_change(c->monitor);

        if (said > 0) {
            if (c->lost_ns != 0 || (l->state == LINK_ASKS && !c->connected))
                play_log(l->p, "engine %u: the frontend is where it was: going on",
                         index_of(l));
            c->connected = true;
            c->lost_ns = 0;
        } else if (said < 0 && c->lost_ns == 0) {
            c->lost_ns = vt_wall_ns();
        }
    }
    if (l->n_clients == 0 || count_lost(l) == 0)
        return VT_OK;
    all = count_lost(l) == l->n_clients;
    if (all && l->state != LINK_ASKS) /* the next one may be there already */
        return begin_handshake(l, err);
    for (uint32_t i = 0; i < l->n_clients; i++) {
        struct link_client *c = &l->client[i];

        if (c->lost_ns == 0 || c->lost_ns == VT_NEVER || now - c->lost_ns < GRACE_NS)
            continue;
        if (all) {
            play_log(l->p,
                     "engine %u: the frontend is gone; waiting for the next at %s",
                     index_of(l), l->p->c->handshake);
            tell_of_loss(l, UINT32_MAX);
            close_clients(l);
            break;
        }
        tell_of_loss(l, i);
        c->lost_ns = VT_NEVER;
    }
    return VT_OK;
}

/* ---- the coordinator -------------------------------------------------- */

static int attend_coordinator(struct link *l, struct vt_err *err)
{
    for (;;) {
        size_t len;
        const void *bytes;
        struct note *n;
        int rc = sock_recv(l->waves, &l->msg, err);

        if (rc != VT_OK || l->msg.n == 0)
            return rc;
        bytes = sock_data(&l->msg, 0, &len);
        if (l->msg.n == 1) {
            if (l->state == LINK_GATED && len == 5 && memcmp(bytes, "READY", 5) == 0)
                rc = finish_handshake(l, err);
            if (rc != VT_OK)
                return rc;
            continue;
        }
        if (len != 1 || *(const uint8_t *)bytes != WIRE_START_DP_WAVE)
            continue;
        n = note_new(NOTE_WAVE, l->rank);
        bytes = sock_data(&l->msg, 1, &len);
        if (n && wire_wave_read(&n->wave, &n->exclude, bytes, len, NULL) != VT_OK) {
            note_free(n);
            continue;
        }
        play_send_note(l->p, &l->p->to_engines, n);
    }
}

/* ---- the whole -------------------------------------------------------- */

/* An engine that was started again may find its frontend where it was. */
static int resume_session(struct link *l, struct vt_err *err)
{
    const char *path = l->p->c->session_file;
    struct vt_arena a = {0};
    struct wire_init w = {0};
    struct vt_err why = {0};
    struct vt_buf b = {0};
    int rc;

    if (!path || access(path, F_OK) != 0)
        return VT_OK;
    rc = vt_read_file(path, MAX_SESSION, &b, err);
    if (rc == VT_OK && b.len > 0 &&
        wire_init_read(&w, &a, b.data, b.len, NULL) == VT_OK &&
        join_frontend(l, &w, &why) != VT_OK) {
        play_log(l->p, "%s: %s", path, why.msg);
        close_clients(l);
    }
    vt_arena_free(&a);
    vt_buf_free(&b);
    return rc;
}

int link_open(struct link *l, struct play *p, uint32_t rank, struct vt_kv_publisher *kv,
              struct vt_err *err)
{
    int rc;

    *l = (struct link){.p = p, .rank = rank, .kv = kv};
    rc = resume_session(l, err);
    return rc == VT_OK ? begin_handshake(l, err) : rc;
}

size_t link_items(const struct link *l, zmq_pollitem_t *item)
{
    void *socks[LINK_ITEMS] = {l->handshake, l->handshake_monitor, l->waves};
    size_t n = 0;

    for (size_t i = 0; i < LINK_ITEMS; i++)
        if (socks[i])
            item[n++] = (zmq_pollitem_t){.socket = socks[i], .events = ZMQ_POLLIN};
    for (uint32_t i = 0; i < l->n_clients; i++) {
        item[n++] =
            (zmq_pollitem_t){.socket = l->client[i].input, .events = ZMQ_POLLIN};
        item[n++] =
            (zmq_pollitem_t){.socket = l->client[i].monitor, .events = ZMQ_POLLIN};
    }
    return n;
}

int link_attend(struct link *l, struct vt_err *err)
{
    int rc = attend_handshake(l, err);

    if (rc == VT_OK && l->waves)
        rc = attend_coordinator(l, err);
    return rc == VT_OK ? attend_losses(l, err) : rc;
}
