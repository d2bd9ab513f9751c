/* clock_send.c - messages to frontends and coordinator, each at its time.
 *
 * Sending puts a message into a queue of libzmq's and returns: what a peer does with it
 * never holds the clock up. */
#include "wire/play/clock.h"

#include <string.h>

/* ---- parcels ---------------------------------------------------------- */

static int take_parcel(struct play_clock *k, uint32_t *number, struct vt_err *err)
{
    int rc;

    if (k->spare_parcel != 0) {
        *number = k->spare_parcel - 1;
        k->spare_parcel = k->parcel[*number].next_spare;
        return VT_OK;
    }
    rc =
        vt_grow(&k->parcel, &k->cap_parcels, k->n_parcels + 1, sizeof(*k->parcel), err);
    if (rc == VT_OK)
        *number = (uint32_t)k->n_parcels++;
    return rc;
}

static void give_parcel(struct play_clock *k, uint32_t number)
{
    k->parcel[number].next_spare = k->spare_parcel;
    k->spare_parcel = number + 1;
}

static void drop_frames(struct parcel *l)
{
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
static int pack(struct play_clock *k, struct parcel *l, struct vt_err *err)
{
    bool ok = !k->message.failed;

    l->frame = calloc(1 + k->aux.n, sizeof(*l->frame));
    l->n_frames = 0;
    ok = ok && l->frame != NULL && copy_frame(l, &k->message);
    for (size_t i = 0; ok && i < k->aux.n; i++)
        ok = !k->aux.frame[i].failed && copy_frame(l, &k->aux.frame[i]);
    if (ok)
        return VT_OK;
    drop_frames(l);
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

int clock_post(struct play_clock *k, struct rank *r, uint32_t client, vt_ns at,
               const struct wire_outputs *o, struct vt_err *err)
{
    uint32_t number;
    int rc;

    wire_outputs_tail(&k->message, r->line, o);
    if (client >= r->n_push)
        return VT_OK;
    rc = take_parcel(k, &number, err);
    if (rc != VT_OK)
        return rc;
    k->parcel[number] = (struct parcel){
        .rank = (uint32_t)(r - k->rank),
        .client = client,
        .session = r->session,
        .outputs = o->n_outputs > 0 && o->output == NULL, /* of a step */
    };
    rc = pack(k, &k->parcel[number], err);
    if (rc == VT_OK)
        rc = vt_agenda_push(&k->due, at, number, err);
    if (rc != VT_OK) {
        drop_frames(&k->parcel[number]);
        give_parcel(k, number);
    }
    return rc;
}

int clock_tell(struct play_clock *k, struct rank *r, uint32_t client,
               const struct wire_outputs *o, struct vt_err *err)
{
    struct wire_outputs whole = *o;
    vt_ns now = play_now(k->p);

    whole.engine_index = r->index;
    whole.timestamp = play_timestamp(k->p, now);
    vt_buf_clear(&k->message);
    logprobs_aux_clear(&k->aux);
    wire_outputs_head(&k->message, r->line, r->index, o->n_outputs);
    for (uint32_t i = 0; i < o->n_outputs; i++)
        wire_output_write(&k->message, r->line, &o->output[i]);
    return clock_post(k, r, client, now, &whole, err);
}

int clock_tell_coordinator(struct play_clock *k, struct rank *r,
                           const struct wire_outputs *o, struct vt_err *err)
{
    struct wire_outputs whole = *o;
    struct parcel l = {0};
    int rc;

    if (r->coordinator == NULL)
        return VT_OK;
    whole.engine_index = r->index;
    whole.timestamp = play_timestamp(k->p, play_now(k->p));
    vt_buf_clear(&k->message);
    logprobs_aux_clear(&k->aux);
    wire_outputs_write(&k->message, r->line, &whole);
    rc = pack(k, &l, err);
    if (rc != VT_OK)
        return rc;
    send_frames(r->coordinator, &l);
    drop_frames(&l);
    return VT_OK;
}

int clock_finish(struct play_clock *k, struct rank *r, uint32_t client,
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

    return clock_tell(k, r, client, &o, err);
}

/* ---- leaving ---------------------------------------------------------- */

void clock_flush(struct play_clock *k, vt_ns now)
{
    while (k->due.n > 0 && k->due.due[0].at <= now) {
        uint32_t number = (uint32_t)k->due.due[0].item;
        struct parcel *l = &k->parcel[number];
        struct rank *r = &k->rank[l->rank];

        if (l->session == r->session && l->client < r->n_push) {
            send_frames(r->push[l->client], l);
            k->sums.messages++;
            if (l->outputs)
                vt_late_add(&k->late,
                            vt_wall_ns() - play_wall_ns(k->p, k->due.due[0].at));
        }
        vt_agenda_remove(&k->due, 0);
        drop_frames(l);
        give_parcel(k, number);
    }
}

void clock_say_dead(struct play_clock *k)
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

void clock_drop_parcels(struct play_clock *k)
{
    for (; k->due.n > 0; vt_agenda_remove(&k->due, 0))
        drop_frames(&k->parcel[k->due.due[0].item]);
}
