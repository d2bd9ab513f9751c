/* tap.c - the forwarder: receives, stamps, forwards, hands on. */
#include "wire/tap/tap.h"

#include <errno.h>

enum { MAX_AT_ONCE = 64 };

/* ---- to the recorder -------------------------------------------------- */

void tap_post_item(struct tap *t, struct tap_item *item, enum tap_what what,
                   uint32_t client, uint32_t engine)
{
    if (item) {
        item->what = what;
        item->client = client;
        item->engine = engine;
        item->seq = t->seq;
        item->at = t->at;
        item->missed = t->missed;
    }
    t->seq++;
    if (item && tap_recorder_put(t->recorder, item)) {
        t->missed = 0;
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

/* What was forwarded goes to the recorder. */
void tap_post(struct tap *t, enum tap_what what, uint32_t client, uint32_t engine)
{
    t->sum->messages += what != TAP_INIT_REWRITTEN;
    tap_post_item(t, tap_item_new(&t->in), what, client, engine);
}

/* Something happened that no message says. */
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

static int from_frontend(struct tap *t, struct tap_link *l, uint32_t client,
                         struct vt_err *err)
{
    int rc = tap_send_to_engine(t->client[client].input, l, &t->in, err);

    if (rc == VT_EIO && zmq_errno() == EHOSTUNREACH) {
        tap_unroutable(t, "a request to an engine that is gone");
        rc = VT_OK;
    }
    tap_post(t, TAP_INPUT, client, l->number);
    return rc;
}

static int from_engine_output(struct tap *t, uint32_t client, struct vt_err *err)
{
    int rc = sock_send(t->client[client].push, &t->in, 0, false, err);

    tap_post(t, TAP_OUTPUT, client, TAP_NO_ENGINE);
    return rc;
}

static int forward(struct tap *t, const struct tap_source *s, struct vt_err *err)
{
    switch (s->kind) {
    case AT_HANDSHAKE:
        return tap_from_engine(t, err);
    case AT_INIT:
        return tap_from_frontend(t, &t->link[s->link], err);
    case AT_REGISTER:
        return tap_from_input(t, s->client, err);
    case AT_INPUT:
        return from_frontend(t, &t->link[s->link], s->client, err);
    default:
        return from_engine_output(t, s->client, err);
    }
}

/* ---- the loop --------------------------------------------------------- */

static int list_socket(struct tap *t, void *sock, struct tap_source s,
                       struct vt_err *err)
{
    int rc = vt_grow(&t->item, &t->cap_items, t->n_items + 1, sizeof(*t->item), err);

    if (rc == VT_OK)
        rc = vt_grow(&t->source, &t->cap_sources, t->n_items + 1, sizeof(*t->source),
                     err);
    if (rc != VT_OK || !sock)
        return rc;
    t->item[t->n_items] = (zmq_pollitem_t){.socket = sock, .events = ZMQ_POLLIN};
    t->source[t->n_items++] = s;
    return VT_OK;
}

/* What is punctual comes first. */
static int list_sockets(struct tap *t, struct vt_err *err)
{
    int rc = VT_OK;

    t->changed = false;
    t->n_items = 0;
    for (uint32_t i = 0; i < t->n_clients && rc == VT_OK; i++)
        rc = list_socket(t, t->client[i].output,
                         (struct tap_source){.kind = AT_OUTPUT, .client = i}, err);
    for (uint32_t k = 0; k < t->n_links && rc == VT_OK; k++)
        for (uint32_t i = 0; i < t->link[k].n_inputs && rc == VT_OK; i++)
            rc = list_socket(
                t, t->link[k].input[i],
                (struct tap_source){.kind = AT_INPUT, .client = i, .link = k}, err);
    for (uint32_t i = 0; i < t->n_clients && rc == VT_OK; i++)
        rc = list_socket(t, t->client[i].input,
                         (struct tap_source){.kind = AT_REGISTER, .client = i}, err);
    if (rc == VT_OK)
        rc = list_socket(t, t->handshake, (struct tap_source){.kind = AT_HANDSHAKE},
                         err);
    for (uint32_t k = 0; k < t->n_links && rc == VT_OK; k++)
        rc = list_socket(t, t->link[k].handshake,
                         (struct tap_source){.kind = AT_INIT, .link = k}, err);
    return rc;
}

/* Not more than so many at once, so that all sockets get their turn. */
static int drain(struct tap *t, size_t i, struct vt_err *err)
{
    struct tap_source s = t->source[i];
    int rc = VT_OK;

    for (int n = 0; n < MAX_AT_ONCE && rc == VT_OK && !t->changed; n++) {
        rc = sock_recv(t->item[i].socket, &t->in, err);
        if (rc != VT_OK || t->in.n == 0)
            break;
        t->at = tap_stamp();
        rc = forward(t, &s, err);
    }
    return rc;
}

/* One round of waiting and forwarding. */
static int pass(struct tap *t, struct vt_err *err)
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
        if (!(t->item[i].revents & ZMQ_POLLIN))
            continue;
        rc = drain(t, i, err);
        n--;
    }
    return rc == VT_OK && t->at.mono >= t->next_tick ? tap_watch(t, err) : rc;
}

/* ---- the whole -------------------------------------------------------- */

static int check_config(const struct vt_tap_config *c, struct vt_err *err)
{
    char address[SOCK_ADDRESS];
    int rc = tap_client_address(address, c->input, 0, err);

    if (rc == VT_OK)
        rc = tap_client_address(address, c->output, 0, err);
    if (rc == VT_OK && strcmp(c->input, c->output) == 0 && !strstr(c->input, ":*"))
        rc = vt_fail(err, VT_EINPUT, "input and output both at %s", c->input);
    if (rc == VT_OK && !c->trace_out && !c->wire_out)
        rc = vt_fail(err, VT_EINPUT, "nothing to write: neither a trace nor a log");
    return rc;
}

static int tap_open(struct tap *t, struct vt_err *err)
{
    struct sock_options o = {.type = ZMQ_ROUTER, .mandatory = true, .handover = true};
    int rc = check_config(t->config, err);

    if (rc == VT_OK)
        rc = tap_recorder_new(&t->recorder, t->config, &t->log, err);
    if (rc == VT_OK)
        rc = sock_ctx(&t->ctx, err);
    if (rc == VT_OK)
        rc = tap_client_try(t->ctx, t->config->input, err);
    if (rc == VT_OK)
        rc = tap_client_try(t->ctx, t->config->output, err);
    if (rc == VT_OK)
        rc = sock_open(&t->handshake, t->ctx, &o, err);
    if (rc == VT_OK)
        rc = sock_bind(t->handshake, t->config->engines, err);
    if (rc == VT_OK)
        rc = sock_endpoint(t->handshake, t->address, err);
    if (rc == VT_OK)
        tap_tell(&t->log, "waiting for engines on %s, for the frontend at %s",
                 t->address, t->config->frontend);
    return rc;
}

static void tap_close(struct tap *t)
{
    bool up = t->lost_at == VT_NEVER && t->was_up;

    sock_msg_free(&t->in);
    for (size_t i = 0; i < t->n_links; i++)
        tap_link_close(&t->link[i]);
    tap_close_clients(t, up);
    sock_close(t->handshake);
    free(t->link);
    free(t->item);
    free(t->source);
    vt_arena_free(&t->arena);
    vt_buf_free(&t->init);
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
        rc = pass(&t, err);
    tap_close(&t);
    ended = tap_recorder_end(t.recorder, rc == VT_EINPUT, t.missed, out,
                             rc == VT_OK ? err : NULL);
    if (t.ctx)
        zmq_ctx_term(t.ctx); /* the recorder held its messages until now */
    pthread_mutex_destroy(&t.log.lock);
    return rc == VT_OK ? ended : rc;
}
