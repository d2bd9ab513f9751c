/* send.c - messages to frontends and coordinator, each at its time.
 *
 * Sending puts a message into a queue of libzmq's and returns: what a peer does with it
 * never holds the engines up. */
#include "wire/play/engines.h"

#include <string.h>

/* ---- parcels ---------------------------------------------------------- */

void engines_drop_parcel(void *parcel)
{
    struct parcel *l = parcel;

    for (uint32_t i = 0; i < l->n_frames; i++)
        zmq_msg_close(&l->frame[i]);
    free(l->frame);
    l->frame = NULL;
    l->n_frames = 0;
}

static bool copy_frame(struct parcel *l, const struct vt_buf *b)
{
    if (zmq_msg_init_size(&l->frame[l->n_frames], b->len) != 0)
        return false;
    memcpy(zmq_msg_data(&l->frame[l->n_frames]), b->data, b->len);
    l->n_frames++;
    return true;
}

/* The message that was encoded, and the buffers that follow it. */
static int pack_message(struct play_engines *k, struct parcel *l, struct vt_err *err)
{
    bool ok = !k->message.failed;

    l->frame = calloc(1 + k->aux.n, sizeof(*l->frame));
    l->n_frames = 0;
    ok = ok && l->frame && copy_frame(l, &k->message);
    for (size_t i = 0; ok && i < k->aux.n; i++)
        ok = !k->aux.frame[i].failed && copy_frame(l, &k->aux.frame[i]);
    if (ok)
        return VT_OK;
    engines_drop_parcel(l);
    return vt_nomem(err);
}

/* Never waits: queues have no limit, and where there is no peer nothing is lost. */
static void send_frames(void *sock, struct parcel *l)
{
    for (uint32_t i = 0; i < l->n_frames; i++) {
        int more = i + 1 < l->n_frames ? ZMQ_SNDMORE : 0;

        if (zmq_msg_send(&l->frame[i], sock, ZMQ_DONTWAIT | more) < 0)
            break;
    }
}

/* ---- posting ---------------------------------------------------------- */

int engines_post(struct play_engines *k, struct rank *r, uint32_t client, vt_ns at,
                 const struct wire_outputs *o, struct vt_err *err)
{
    struct parcel made = {
        .rank = r->number,
        .client = client,
        .session = r->session,
        .outputs = o->n_outputs > 0 && !o->output, /* of a step */
    };
    struct parcel *l;
    int rc;

    wire_outputs_tail(&k->message, r->line, o);
    if (client >= r->n_push)
        return VT_OK;
    rc = pack_message(k, &made, err);
    if (rc != VT_OK)
        return rc;
    l = vt_driver_post(k->driver, at, err);
    if (!l) {
        engines_drop_parcel(&made);
        return VT_ENOMEM;
    }
    *l = made;
    return VT_OK;
}

void engines_begin(struct play_engines *k, const struct rank *r, struct wire_outputs *o,
                   vt_ns at)
{
    o->engine_index = r->index;
    o->timestamp = play_timestamp(k->p, at);
    vt_buf_clear(&k->message);
    logprobs_aux_clear(&k->aux);
    wire_outputs_head(&k->message, r->line, r->index, o->n_outputs);
    for (uint32_t i = 0; o->output && i < o->n_outputs; i++)
        wire_output_write(&k->message, r->line, &o->output[i]);
}

int engines_tell(struct play_engines *k, struct rank *r, uint32_t client,
                 struct wire_outputs *o, struct vt_err *err)
{
    vt_ns now = vt_axis_now(&k->p->axis);

    engines_begin(k, r, o, now);
    return engines_post(k, r, client, now, o, err);
}

int engines_tell_coordinator(struct play_engines *k, struct rank *r,
                             struct wire_outputs *o, struct vt_err *err)
{
    struct parcel l = {0};
    int rc;

    if (!r->coordinator)
        return VT_OK;
    engines_begin(k, r, o, vt_axis_now(&k->p->axis));
    wire_outputs_tail(&k->message, r->line, o);
    rc = pack_message(k, &l, err);
    if (rc != VT_OK)
        return rc;
    send_frames(r->coordinator, &l);
    engines_drop_parcel(&l);
    return VT_OK;
}

int engines_finish(struct play_engines *k, struct rank *r, uint32_t client,
                   struct mp_span id, int finish, struct vt_err *err)
{
    struct wire_output row = {.id = id, .finish = finish};
    struct wire_outputs o = {
        .output = &row,
        .n_outputs = 1,
        .finished = &id,
        .n_finished = 1,
        .wave_complete = -1,
        .start_wave = -1,
    };

    return engines_tell(k, r, client, &o, err);
}

/* ---- leaving ---------------------------------------------------------- */

bool engines_leave(void *engines, void *parcel, vt_ns at)
{
    struct play_engines *k = engines;
    struct parcel *l = parcel;
    const struct rank *r = &k->rank[l->rank];
    bool sent = l->session == r->session && l->client < r->n_push;

    (void)at;
    if (sent) {
        send_frames(r->push[l->client], l);
        k->sums.messages++;
    }
    engines_drop_parcel(l);
    return sent && l->outputs;
}

void engines_say_dead(struct play_engines *k)
{
    int rc = VT_OK;

    for (uint32_t i = 0; i < k->p->c->n_engines; i++)
        for (uint32_t c = 0; c < k->rank[i].n_push; c++)
            if (sock_put(k->rank[i].push[c], WIRE_DEAD, strlen(WIRE_DEAD), false,
                         NULL) != VT_OK)
                rc = VT_EIO;
    if (rc != VT_OK)
        play_log(k->p, "not every frontend could be told that the engine is dead");
}
