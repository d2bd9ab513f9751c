/* hold.c - outputs of a durable recording: a message that ends a request leaves when
 * that request's line is in the file, so that what a client has seen end is there.
 * Those behind it wait too: to each client order stays as it was. */
#include "wire/tap/tap.h"

#include <poll.h>
#include <sys/eventfd.h>

struct tap_held { /* a message on its way to the frontend */
    struct tap_held *next;
    uint64_t until; /* how many of the recorder's items must be written first */
    struct sock_msg msg;
};

/* ---- a client's queue --------------------------------------------------- */

static void held_free(struct tap_held *h)
{
    sock_msg_free(&h->msg);
    free(h);
}

/* The message in hand, which keeps its bytes; NULL: out of memory. */
static struct tap_held *held_new(const struct sock_msg *in)
{
    struct tap_held *h = calloc(1, sizeof(*h));

    if (h && in->n > 0)
        h->msg.frame = calloc(in->n, sizeof(*h->msg.frame));
    if (!h || (in->n > 0 && !h->msg.frame)) {
        free(h);
        return NULL;
    }
    h->msg.cap = in->n;
    for (; h->msg.n < in->n; h->msg.n++) {
        zmq_msg_init(&h->msg.frame[h->msg.n]);
        if (zmq_msg_copy(&h->msg.frame[h->msg.n], &in->frame[h->msg.n]) != 0) {
            held_free(h);
            return NULL;
        }
    }
    return h;
}

void tap_held_drop(struct tap_client *c)
{
    for (struct tap_held *next; c->held; c->held = next) {
        next = c->held->next;
        held_free(c->held);
    }
    c->last_held = NULL;
}

/* ---- the way out -------------------------------------------------------- */

/* What cannot be read is nothing that the recorder could write down. */
static bool ends_request(struct tap *t)
{
    struct mp_span first = tap_frame(t, 0);
    struct wire_outputs w;

    vt_arena_reset(&t->arena);
    if (wire_outputs_read(&w, &t->arena, first.at, first.len, (uint32_t)t->in.n - 1,
                          NULL) != VT_OK)
        return false;
    for (uint32_t i = 0; i < w.n_outputs; i++)
        if (w.output[i].finish != WIRE_UNFINISHED)
            return true;
    return false;
}

int tap_held_put(struct tap *t, uint32_t client, struct vt_err *err)
{
    struct tap_client *c = &t->client[client];
    bool ends = ends_request(t);
    struct tap_held *h;
    int rc;

    if (!ends && !c->held) {
        rc = sock_send(c->push, &t->in, 0, false, err);
        tap_post(t, TAP_OUTPUT, client, TAP_NO_ENGINE);
        return rc;
    }
    h = held_new(&t->in);
    if (!h)
        return vt_nomem(err);
    tap_post(t, TAP_OUTPUT, client, TAP_NO_ENGINE);
    h->until = ends ? t->n_put : 0;
    if (c->held)
        c->last_held->next = h;
    else
        c->held = h;
    c->last_held = h;
    if (ends)
        (void)eventfd_write(t->recorder->hurry_fd, 1);
    return VT_OK;
}

int tap_held_release(struct tap *t, struct vt_err *err)
{
    struct tap_recorder *r = t->recorder;
    uint64_t written;
    eventfd_t ignored;
    int rc = VT_OK;

    (void)eventfd_read(r->released_fd, &ignored);
    written = atomic_load_explicit(&r->n_written, memory_order_acquire);
    for (uint32_t i = 0; i < t->n_clients; i++) {
        struct tap_client *c = &t->client[i];

        while (rc == VT_OK && c->held && c->held->until <= written) {
            struct tap_held *h = c->held;

            rc = sock_send(c->push, &h->msg, 0, false, err);
            c->held = h->next;
            held_free(h);
        }
    }
    return rc;
}

int tap_held_finish(struct tap *t, struct vt_err *err)
{
    struct pollfd wake = {.fd = t->recorder ? t->recorder->released_fd : -1,
                          .events = POLLIN};
    int rc = VT_OK;

    for (uint32_t i = 0; i < t->n_clients; i++)
        while (rc == VT_OK && t->client[i].held) {
            poll(&wake, 1, TAP_TICK_MS);
            rc = tap_held_release(t, err);
        }
    return rc;
}
