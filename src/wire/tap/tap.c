/* tap.c - the forwarder: receives, stamps, forwards, hands on. */
#include "wire/tap/tap.h"

#include <assert.h>
#include <errno.h>

enum { MAX_AT_ONCE = 64 };

/* ---- to the recorder -------------------------------------------------- */

void tap_post_item(struct tap *t, struct tap_item *item, enum tap_what what,
                   uint32_t client, uint32_t engine)
{
    bool put;

    if (item) {
        item->what = what;
        item->client = client;
        item->engine = engine;
        item->seq = t->seq;
        item->at = t->at;
        item->missed = t->missed;
    }
    t->seq++;
    put = item && tap_recorder_put(t->recorder, item);
    /* A durable recording holds all traffic up rather than miss what it says. */
    while (item && !put && t->config->durable && t->started) {
        vt_sleep_ns(VT_MS);
        put = tap_recorder_put(t->recorder, item);
    }
    if (put) {
        t->missed = 0;
        t->n_put++;
        return;
    }
    if (item)
        tap_item_free(item);
    t->missed++;
    t->sum->not_decoded++;
    if (!t->told_backlog)
        tap_tell(&t->log, "too many messages wait to be decoded; some will be missing "
                          "from the files, none is held up");
    t->told_backlog = true;
}

void tap_post(struct tap *t, enum tap_what what, uint32_t client, uint32_t engine)
{
    t->sum->messages += what != TAP_INIT_REWRITTEN;
    tap_post_item(t, tap_item_new(&t->in), what, client, engine);
}

void tap_post_event(struct tap *t, enum tap_what what, uint32_t engine)
{
    struct sock_msg none = {0};

    t->at = tap_stamp();
    tap_post_item(t, tap_item_new(&none), what, 0, engine);
    t->seq--; /* it has no place in a log of messages */
}

/* ---- messages ---------------------------------------------------------- */

void tap_unroutable(struct tap *t, const char *what)
{
    t->sum->unroutable++;
    if (!t->told_unroutable)
        tap_tell(&t->log, "%s; such messages are dropped", what);
    t->told_unroutable = true;
}

struct mp_span tap_frame(const struct tap *t, size_t i)
{
    struct mp_span s = {0};

    s.at = sock_data(&t->in, i, &s.len);
    return s;
}

int tap_send_to_engine(void *router, const struct tap_link *l, const struct sock_msg *m,
                       struct vt_err *err)
{
    int rc = sock_put(router, l->identity, l->identity_len, true, err);

    return rc == VT_OK ? sock_send(router, m, 0, false, err) : rc;
}

static int forward_message(struct tap *t, const struct tap_source *s,
                           struct vt_err *err)
{
    struct tap_link *l = t->n_links > 0 ? &t->link[s->link] : NULL;
    int rc;

    switch (s->kind) {
    case AT_HANDSHAKE:
        return tap_from_engine(t, err);
    case AT_INIT:
        return tap_from_frontend(t, l, err);
    case AT_REGISTER:
        return tap_from_input(t, s->client, err);
    case AT_INPUT:
        rc = tap_send_to_engine(t->client[s->client].input, l, &t->in, err);
        if (rc == VT_EIO && zmq_errno() == EHOSTUNREACH) {
            tap_unroutable(t, "a request to an engine that is gone");
            rc = VT_OK;
        }
        tap_post(t, TAP_INPUT, s->client, l->number);
        return rc;
    case AT_RELEASE:
        return VT_OK; /* no message: see forward_round() */
    case AT_OUTPUT:
    default:
        if (t->config->durable)
            return tap_held_put(t, s->client, err);
        rc = sock_send(t->client[s->client].push, &t->in, 0, false, err);
        tap_post(t, TAP_OUTPUT, s->client, TAP_NO_ENGINE);
        return rc;
    }
}

/* ---- the loop --------------------------------------------------------- */

/* Room for all of them was made. */
static void list_socket(struct tap *t, void *sock, struct tap_source s)
{
    if (!sock)
        return;
    t->item[t->n_items] = (zmq_pollitem_t){.socket = sock, .events = ZMQ_POLLIN};
    t->source[t->n_items++] = s;
}

/* What is punctual comes first. */
static int list_sockets(struct tap *t, struct vt_err *err)
{
    size_t most = 2 * (size_t)t->n_clients + 2 + t->n_links;
    int rc;

    for (uint32_t k = 0; k < t->n_links; k++)
        most += t->link[k].n_inputs;
    if ((rc = vt_grow(&t->item, &t->cap_items, most, sizeof(*t->item), err)) ||
        (rc = vt_grow(&t->source, &t->cap_sources, most, sizeof(*t->source), err)))
        return rc;
    t->changed = false;
    t->n_items = 0;
    if (t->config->durable) {
        t->item[0] =
            (zmq_pollitem_t){.fd = t->recorder->released_fd, .events = ZMQ_POLLIN};
        t->source[t->n_items++] = (struct tap_source){AT_RELEASE, 0, 0};
    }
    for (uint32_t i = 0; i < t->n_clients; i++)
        list_socket(t, t->client[i].output, (struct tap_source){AT_OUTPUT, i, 0});
    for (uint32_t k = 0; k < t->n_links; k++)
        for (uint32_t i = 0; i < t->link[k].n_inputs; i++)
            list_socket(t, t->link[k].input[i], (struct tap_source){AT_INPUT, i, k});
    for (uint32_t i = 0; i < t->n_clients; i++)
        list_socket(t, t->client[i].input, (struct tap_source){AT_REGISTER, i, 0});
    list_socket(t, t->handshake, (struct tap_source){AT_HANDSHAKE, 0, 0});
    for (uint32_t k = 0; k < t->n_links; k++)
        list_socket(t, t->link[k].handshake, (struct tap_source){AT_INIT, 0, k});
    assert(t->n_items <= most);
    return VT_OK;
}

/* One round of waiting and forwarding. */
static int forward_round(struct tap *t, struct vt_err *err)
{
    int n, rc = t->changed ? list_sockets(t, err) : VT_OK;

    if (rc != VT_OK)
        return rc;
    n = zmq_poll(t->item, (int)t->n_items, TAP_TICK_MS);
    if (n < 0 && zmq_errno() != EINTR)
        return vt_fail(err, VT_EIO, "cannot wait: %s", zmq_strerror(zmq_errno()));
    if (n <= 0)
        t->at = tap_stamp();
    for (size_t i = 0; i < t->n_items && n > 0 && rc == VT_OK && !t->changed; i++) {
        struct tap_source s = t->source[i];

        if (!(t->item[i].revents & ZMQ_POLLIN))
            continue;
        n--;
        if (s.kind == AT_RELEASE) {
            rc = tap_held_release(t, err);
            continue;
        }
        /* Not more than so many at once, so that all sockets get their turn. */
        for (int k = 0; k < MAX_AT_ONCE && rc == VT_OK && !t->changed; k++) {
            rc = sock_recv(t->item[i].socket, &t->in, err);
            if (rc != VT_OK || t->in.n == 0)
                break;
            t->at = tap_stamp();
            rc = forward_message(t, &s, err);
        }
    }
    return rc == VT_OK && t->at.mono >= t->next_tick ? tap_watch(t, err) : rc;
}

/* ---- the whole -------------------------------------------------------- */

static int tap_open(struct tap *t, struct vt_err *err)
{
    struct sock_options o = {.type = ZMQ_ROUTER, .mandatory = true, .handover = true};
    const struct vt_tap_config *c = t->config;
    char address[SOCK_ADDRESS];
    int rc;

    if ((rc = tap_client_address(address, c->input, 0, err)) ||
        (rc = tap_client_address(address, c->output, 0, err)))
        return rc;
    if (strcmp(c->input, c->output) == 0 && !strstr(c->input, ":*"))
        return vt_fail(err, VT_EINPUT, "input and output both at %s", c->input);
    if (!c->trace_out && !c->wire_out)
        return vt_fail(err, VT_EINPUT, "nothing to write: neither a trace nor a log");
    if ((rc = tap_recorder_new(&t->recorder, c, &t->log, err)) ||
        (rc = sock_ctx(&t->ctx, err)) || (rc = tap_client_try(t->ctx, c->input, err)) ||
        (rc = tap_client_try(t->ctx, c->output, err)) ||
        (rc = sock_open(&t->handshake, t->ctx, &o, err)) ||
        (rc = sock_bind(t->handshake, c->engines, err)) ||
        (rc = sock_endpoint(t->handshake, t->address, err)))
        return rc;
    tap_tell(&t->log, "waiting for engines on %s, for the frontend at %s", t->address,
             c->frontend);
    return VT_OK;
}

int vt_tap(const struct vt_tap_config *c, struct vt_tap_summary *out,
           struct vt_err *err)
{
    struct tap t = {.config = c,
                    .log = {.config = c},
                    .sum = out,
                    .changed = true,
                    .lost_at = VT_NEVER};
    int rc, ended;

    *out = (struct vt_tap_summary){0};
    pthread_mutex_init(&t.log.lock, NULL);
    rc = tap_open(&t, err);
    while (rc == VT_OK && !(c->stopped && c->stopped(c->user)))
        rc = forward_round(&t, err);
    if (rc == VT_OK)
        rc = tap_held_finish(&t, err);
    sock_msg_free(&t.in);
    for (size_t i = 0; i < t.n_links; i++)
        tap_link_close(&t.link[i]);
    tap_close_clients(&t, t.lost_at == VT_NEVER && t.was_up);
    sock_close(t.handshake);
    free(t.link);
    free(t.item);
    free(t.source);
    vt_arena_free(&t.arena);
    vt_buf_free(&t.init);
    ended = tap_recorder_end(t.recorder, rc == VT_EINPUT, t.missed, out,
                             rc == VT_OK ? err : NULL);
    if (t.ctx)
        zmq_ctx_term(t.ctx); /* the recorder held its messages until now */
    pthread_mutex_destroy(&t.log.lock);
    return rc == VT_OK ? ended : rc;
}
