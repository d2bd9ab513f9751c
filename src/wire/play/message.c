/* message.c - messages of the input socket become notes. */
#include "wire/play/intake.h"

#include <string.h>

enum {
    MOST_IDS = 1 << 20, /* of one abort: more requests there cannot be */
    LONGEST_ID = 1 << 16,
    LARGE = 1 << 20, /* bytes of a message whose memory is not kept for the next */
};

static void complain(struct link *l, struct complaints *c, const char *what,
                     const char *why)
{
    play_complain(l->p, c, "engine %u: %s: %s", l->p->c->first_rank + l->rank, what,
                  why);
}

/* ---- ADD -------------------------------------------------------------- */

/* Nobody would hear an answer to a client that is not there. */
static int check_client(const struct link *l, uint32_t client, struct vt_err *err)
{
    if (client < l->n_clients)
        return VT_OK;
    return vt_fail(err, VT_EINPUT, "it names client %u of %u", client, l->n_clients);
}

/* Of a request that could not be read. */
static struct mp_span id_in(const void *bytes, size_t len)
{
    struct mp_in in;
    struct mp_span id;

    mp_in_init(&in, bytes, len);
    if (mp_peek(&in) != MP_ARRAY || mp_array(&in) == 0 || mp_peek(&in) != MP_STR)
        return (struct mp_span){0};
    id = mp_str(&in);
    return !in.bad ? id : (struct mp_span){0};
}

static void take_add(struct link *l, struct vt_arena *a, const void *bytes, size_t len,
                     struct complaints *c)
{
    struct wire_request w = {0};
    struct play_request *q = NULL;
    struct vt_err why = {0};
    struct note *n;
    int rc = wire_request_read(&w, a, bytes, len, &why);

    if (rc == VT_OK)
        rc = check_client(l, w.client_index, &why);
    if (rc == VT_OK) {
        if (!l->line)
            l->line = vt_wire_line_of_request(w.n_fields);
        rc = play_request_new(&q, l->p, &w, &why);
    }
    if (rc != VT_OK) {
        struct mp_span id = w.id.at ? w.id : id_in(bytes, len);

        complain(l, c, "a request is refused", why.msg);
        if (!id.at || id.len > LONGEST_ID)
            return;
        /* Its frontend waits for an answer, if it can be told which request it was. */
        n = note_with(NOTE_REJECT, l->rank, id.at, id.len);
        if (n) {
            n->client = l->from;
            n->finish = WIRE_ERROR;
        }
        play_send_note(l->p, &l->p->to_engines, n);
        return;
    }
    if (l->p->c->follow_line)
        play_request_release(q, vt_wire_release(l->line));
    /* Hashing a long prompt takes a while, which the engine thread does not have. */
    if (q->blocks.chain.none_hash && q->blocks.n_prompt >= q->blocks.size)
        (void)vt_blocks_key(&q->blocks, q->blocks.n_prompt / q->blocks.size - 1, 0);
    n = note_new(NOTE_ADD, l->rank);
    if (!n) {
        play_request_free(q);
    } else {
        n->request = q;
        n->line = l->line;
    }
    play_send_note(l->p, &l->p->to_engines, n);
}

/* ---- ABORT and UTILITY ------------------------------------------------ */

static void take_abort(struct link *l, struct vt_arena *a, const void *bytes,
                       size_t len, struct complaints *c)
{
    struct note *n;
    struct vt_err why = {0};
    struct mp_span *id;
    struct mp_in in;
    uint32_t count;

    mp_in_init(&in, bytes, len);
    if (mp_peek(&in) == MP_ARRAY && mp_array(&in) > MOST_IDS) {
        complain(l, c, "an abort is not understood", "it names too many requests");
        return;
    }
    n = note_with(NOTE_ABORT, l->rank, bytes, len);
    if (!n) {
        play_send_note(l->p, &l->p->to_engines, NULL);
        return;
    }
    if (wire_abort_read(&id, &count, a, n->bytes, n->n_bytes, &why) != VT_OK) {
        complain(l, c, "an abort is not understood", why.msg);
        note_free(n);
        return;
    }
    n->id = calloc((size_t)count + 1, sizeof(*n->id));
    if (n->id && count > 0) {
        memcpy(n->id, id, count * sizeof(*id));
        n->n_ids = count;
    }
    play_send_note(l->p, &l->p->to_engines, n);
}

static void take_call(struct link *l, const void *bytes, size_t len,
                      struct complaints *c)
{
    struct note *n = note_with(NOTE_CALL, l->rank, bytes, len);
    struct vt_err why = {0};

    if (n && (wire_call_read(&n->call, n->bytes, n->n_bytes, &why) != VT_OK ||
              check_client(l, n->call.client_index, &why) != VT_OK)) {
        complain(l, c, "a utility call is not understood", why.msg);
        note_free(n);
        return;
    }
    play_send_note(l->p, &l->p->to_engines, n);
}

/* ---- all of them ------------------------------------------------------ */

void intake_message(struct link *l, struct vt_arena *a, struct complaints *c)
{
    size_t len, type_len;
    const uint8_t *type = sock_data(&l->msg, 0, &type_len);
    const void *bytes;
    char what[64];

    if (l->msg.n < 2 || type_len != 1) {
        complain(l, c, "a message is not understood", "it has no type and payload");
        return;
    }
    bytes = sock_data(&l->msg, 1, &len);
    switch (*type) {
    case WIRE_ADD:
        take_add(l, a, bytes, len, c);
        break;
    case WIRE_ABORT:
        take_abort(l, a, bytes, len, c);
        break;
    case WIRE_UTILITY:
        take_call(l, bytes, len, c);
        break;
    default:
        (void)snprintf(what, sizeof(what), "a message of type %u", *type);
        complain(l, c, what, "there is no such type");
    }
    if (len > LARGE)
        vt_arena_free(a);
    else
        vt_arena_reset(a);
}
