/* handshake.c - how engines and a frontend get to know each other through us. */
#include "wire/tap/tap.h"

#include <errno.h>

enum { MAX_LINKS = 1024, MAX_CLIENTS = 1024 };

/* ---- engines ---------------------------------------------------------- */

static struct tap_link *link_find(struct tap *t, const void *identity, size_t len)
{
    for (size_t i = 0; i < t->n_links; i++) {
        struct tap_link *l = &t->link[i];

        if (l->identity_len == len && memcmp(l->identity, identity, len) == 0)
            return l;
    }
    return NULL;
}

static int link_add(struct tap *t, const void *identity, size_t len,
                    struct tap_link **out, struct vt_err *err)
{
    const uint8_t *id = identity;
    struct tap_link *l;
    int rc;

    *out = NULL;
    if (t->n_links >= MAX_LINKS || len == 0 || len > sizeof(l->identity))
        return VT_OK;
    rc = vt_grow(&t->link, &t->cap_links, t->n_links + 1, sizeof(*l), err);
    if (rc != VT_OK)
        return rc;
    l = &t->link[t->n_links];
    *l = (struct tap_link){.identity_len = (uint8_t)len,
                           .number = len == 2 ? id[0] | (uint32_t)id[1] << 8
                                              : (uint32_t)t->n_links,
                           .fd = -1,
                           .lost_at = VT_NEVER};
    memcpy(l->identity, identity, len);
    t->n_links++;
    *out = l;
    return VT_OK;
}

/* ---- handshake -------------------------------------------------------- */

/* One engine cannot be served: the others must not suffer. Its handshake stays open,
 * because a frontend would not listen to a second one of the same name before it has
 * seen the end of the first. */
static int drop_link(struct tap *t, struct tap_link *l, int rc,
                     const struct vt_err *why)
{
    if (rc == VT_OK || rc == VT_ENOMEM)
        return rc;
    tap_tell(&t->log, "engine %u is left alone: %s", l->number, why->msg);
    tap_link_lost(t, l);
    tap_link_close_inputs(l);
    l->asked = l->ready = false;
    t->changed = true;
    return VT_OK;
}

static bool has_status(struct mp_span payload, const char *status)
{
    struct wire_hello h;

    return wire_hello_read(&h, payload.at, payload.len, NULL) == VT_OK &&
           mp_span_is(h.status, status);
}

int tap_from_engine(struct tap *t, struct vt_err *err)
{
    struct mp_span id = tap_frame(t, 0), payload;
    struct tap_link *l = link_find(t, id.at, id.len);
    bool hello;
    int rc = VT_OK;

    if (t->in.n < 2) {
        tap_unroutable(t, "a handshake without content");
        return VT_OK;
    }
    payload = tap_frame(t, 1);
    hello = has_status(payload, "HELLO");
    if (hello && !l)
        rc = link_add(t, id.at, id.len, &l, err);
    if (rc != VT_OK)
        return rc;
    if (!l || (!hello && !l->handshake)) {
        tap_unroutable(t, "a handshake that does not start with HELLO");
        return VT_OK;
    }
    if (hello) {
        vt_buf_clear(&l->hello);
        vt_buf_add(&l->hello, payload.at, payload.len);
        if (l->hello.failed)
            return vt_nomem(err);
        rc = tap_link_hello(l, t->ctx, t->config->frontend, err);
        t->changed = true;
        tap_tell(&t->log, "engine %u says hello", l->number);
    } else {
        rc = sock_send(l->handshake, &t->in, 1, false, err);
    }
    l->ready = l->ready || (!l->asked && has_status(payload, "READY"));
    tap_post(t, TAP_HANDSHAKE, 0, l->number);
    return drop_link(t, l, rc, err);
}

/* ---- INIT ------------------------------------------------------------- */

static bool same_clients(const struct tap *t, const struct wire_init *init)
{
    bool same = t->n_clients == init->n_clients;

    for (uint32_t i = 0; i < t->n_clients && same; i++)
        same = mp_span_is(init->output[i], t->client[i].address.data);
    return same;
}

/* Another frontend than before, or the first. */
static int meet_frontend(struct tap *t, const struct wire_init *init,
                         struct vt_err *err)
{
    bool greeted = false;
    int rc = VT_OK;

    if (init->n_clients > MAX_CLIENTS)
        return vt_fail(err, VT_EINPUT, "the frontend has %u clients", init->n_clients);
    for (size_t i = 0; i < t->n_links; i++)
        greeted = greeted || t->link[i].n_inputs > 0;
    if (greeted)
        tap_reset(t);
    else
        tap_close_clients(t, false);
    t->client = calloc(init->n_clients, sizeof(*t->client));
    if (!t->client)
        return vt_nomem(err);
    t->changed = true;
    for (uint32_t i = 0; i < init->n_clients && rc == VT_OK; i++) {
        t->n_clients++;
        rc = tap_client_open(&t->client[i], t->ctx, t->config, i, init->output[i], err);
    }
    if (rc != VT_OK)
        tap_close_clients(t, false);
    return rc;
}

/* Makes the sockets that the frontend asks for, and asks the engine for ours. */
static int pass_init(struct tap *t, struct tap_link *l, const struct wire_init *init,
                     struct vt_err *err)
{
    int rc = same_clients(t, init) ? VT_OK : meet_frontend(t, init, err);

    tap_link_lost(t, l);
    if (rc == VT_OK && l->n_inputs == 0) /* else they are those it had */
        rc = tap_link_inputs(l, t->ctx, init, err);
    t->changed = true;
    if (rc != VT_OK)
        return rc;
    l->asked = false;
    vt_buf_clear(&t->init);
    if (!tap_init_rewrite(&t->init, tap_frame(t, 0), t->client, t->n_clients))
        return vt_nomem(err);
    rc = sock_put(t->handshake, l->identity, l->identity_len, true, err);
    return rc == VT_OK ? sock_put(t->handshake, t->init.data, t->init.len, false, err)
                       : rc;
}

int tap_from_frontend(struct tap *t, struct tap_link *l, struct vt_err *err)
{
    struct mp_span payload = tap_frame(t, 0);
    zmq_msg_t frame;
    struct sock_msg rewritten = {.frame = &frame, .n = 1};
    struct wire_init init;
    struct vt_err why = {0};
    int rc;

    vt_arena_reset(&t->arena);
    if (!l->asked ||
        wire_init_read(&init, &t->arena, payload.at, payload.len, &why) != VT_OK) {
        /* What cannot be read may still mean something to the engine. */
        rc = tap_send_to_engine(t->handshake, l, &t->in, err);
        if (l->asked)
            tap_tell(&t->log,
                     "the frontend's answer to engine %u is passed on as it is, and "
                     "nothing will be recorded: %s",
                     l->number, why.msg);
        tap_post(t, TAP_INIT, 0, l->number);
    } else {
        rc = pass_init(t, l, &init, err);
        if (rc == VT_OK) /* for the log: as it came, and as it went on */
            tap_post(t, TAP_INIT, 0, l->number);
        if (rc == VT_OK && zmq_msg_init_size(&frame, t->init.len) == 0) {
            memcpy(zmq_msg_data(&frame), t->init.data, t->init.len);
            tap_post_item(t, tap_item_new(&rewritten), TAP_INIT_REWRITTEN, 0,
                          l->number);
            zmq_msg_close(&frame);
        }
    }
    if (rc == VT_EIO && zmq_errno() == EHOSTUNREACH) {
        tap_unroutable(t, "an engine went away during the handshake");
        return VT_OK;
    }
    return drop_link(t, l, rc, err);
}

/* ---- registration ----------------------------------------------------- */

/* The length of "0.26" in "0.26.1" or "v0.26.1"; *text is moved behind the v. 0: not a
 * version. */
static size_t version_line(const char **text)
{
    static const char digits[] = "0123456789";
    size_t major, minor;

    *text += **text == 'v';
    major = strspn(*text, digits);
    if (major == 0 || (*text)[major] != '.')
        return 0;
    minor = strspn(*text + major + 1, digits);
    return minor > 0 ? major + 1 + minor : 0;
}

static int check_version(struct tap *t, const struct tap_link *l, const char *has,
                         struct vt_err *err)
{
    const char *want = t->config->vllm_version, *a = want, *b = has ? has : "";
    size_t len;

    if (!want)
        return VT_OK;
    len = version_line(&a);
    if (len == 0 || version_line(&b) == 0) {
        tap_tell(&t->log, "engine %u: version '%s' cannot be compared with '%s'",
                 l->number, has ? has : "", want);
        return VT_OK;
    }
    if (version_line(&b) == len && memcmp(a, b, len) == 0)
        return VT_OK;
    return vt_fail(err, VT_EINPUT,
                   "engine %u runs vLLM %s, not %s as --vllm-version says; nothing was "
                   "recorded",
                   l->number, has, want);
}

static int first_registration(struct tap *t, struct tap_link *l, struct vt_err *err)
{
    const char *version;
    int rc;

    vt_arena_reset(&t->arena);
    version = tap_vllm_version(tap_frame(t, 1), &t->arena);
    rc = check_version(t, l, version, err);
    if (rc == VT_OK && !t->started)
        rc = tap_recorder_start(t->recorder, t->at, tap_frame(t, 1), err);
    if (rc != VT_OK)
        return rc;
    t->started = true;
    l->registered = true;
    l->fd = zmq_msg_get(&t->in.frame[1], ZMQ_SRCFD);
    tap_tell(&t->log, "engine %u (vLLM %s) is connected to the frontend; %u client%s",
             l->number, version ? version : "of unknown version", t->n_clients,
             t->n_clients == 1 ? "" : "s");
    return VT_OK;
}

int tap_from_input(struct tap *t, uint32_t client, struct vt_err *err)
{
    struct mp_span id = tap_frame(t, 0);
    struct tap_link *l = link_find(t, id.at, id.len);
    int rc = VT_OK;

    if (t->in.n < 2 || !l || client >= l->n_inputs) {
        tap_unroutable(t, "a registration from an engine that has not said hello");
        return VT_OK;
    }
    if (client == 0) {
        tap_link_lost(t, l); /* it registers once, so it has started again */
        rc = first_registration(t, l, err);
    }
    if (rc == VT_OK)
        rc = sock_send(l->input[client], &t->in, 1, false, err);
    tap_post(t, TAP_REGISTER, client, l->number);
    return rc;
}
