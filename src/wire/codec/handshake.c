/* handshake.c - HELLO, INIT, READY and the registration: all maps. */
#include "wire/codec/codec.h"
#include "wire/codec/fields.h"

/* ---- HELLO and READY -------------------------------------------------- */

#define HELLO(text, kind, nil, member) \
    MSG_FIELD(struct wire_hello, text, kind, nil, member)

static const struct msg_field hello_fields[] = {
    HELLO("status", MSG_TEXT, MSG_NEVER_NIL, status),
    HELLO("local", MSG_BOOL, MSG_NEVER_NIL, local),
    HELLO("headless", MSG_BOOL, MSG_NEVER_NIL, headless),
    HELLO("parallel_config_hash", MSG_TEXT, MSG_LEFT_OUT, config_hash),
};
static const struct msg_table hello_table = MSG_TABLE(hello_fields);

int wire_hello_read(struct wire_hello *h, const void *bytes, size_t len,
                    struct vt_err *err)
{
    int rc;

    *h = (struct wire_hello){0};
    rc = msg_whole_map(&hello_table, h, NULL, bytes, len, err);
    if (rc == VT_OK && !h->status.at)
        rc = vt_fail(err, VT_EINPUT, "no status");
    return vt_within(err, rc, "hello");
}

void wire_hello_write(struct vt_buf *b, const struct wire_hello *h)
{
    msg_write_map(b, NULL, &hello_table, h);
}

/* ---- INIT ------------------------------------------------------------- */

struct init_fields {
    struct wire_init init;
    uint32_t n_inputs, n_outputs;
};

#define INIT(text, kind, nil, member) \
    MSG_FIELD(struct init_fields, text, kind, nil, init.member)

static const struct msg_field address_fields[] = {
    MSG_LIST(struct init_fields, "inputs", MSG_TEXTS, MSG_NEVER_NIL, init.input,
             n_inputs),
    MSG_LIST(struct init_fields, "outputs", MSG_TEXTS, MSG_NEVER_NIL, init.output,
             n_outputs),
    INIT("coordinator_input", MSG_TEXT, MSG_NIL_OK, coordinator_input),
    INIT("coordinator_output", MSG_TEXT, MSG_NIL_OK, coordinator_output),
    INIT("frontend_stats_publish_address", MSG_TEXT, MSG_NIL_OK, stats_address),
};
static const struct msg_table address_table = MSG_TABLE(address_fields);

static const struct msg_field init_members[] = {
    {MSG_NAMED("addresses", MSG_NESTED, MSG_NEVER_NIL), .nested = &address_table},
    INIT("parallel_config", MSG_MAP, MSG_NIL_OK, parallel_config),
};
static const struct msg_table init_table = MSG_TABLE(init_members);

int wire_init_read(struct wire_init *w, struct vt_arena *a, const void *bytes,
                   size_t len, struct vt_err *err)
{
    struct init_fields reading = {0};
    int rc = msg_whole_map(&init_table, &reading, a, bytes, len, err);

    if (rc == VT_OK && reading.n_inputs != reading.n_outputs)
        rc = vt_fail(err, VT_EINPUT, "%u inputs but %u outputs", reading.n_inputs,
                     reading.n_outputs);
    if (rc == VT_OK && reading.n_inputs == 0)
        rc = vt_fail(err, VT_EINPUT, "no addresses");
    *w = reading.init;
    w->n_clients = reading.n_inputs;
    return vt_within(err, rc, "init");
}

void wire_init_write(struct vt_buf *b, const struct wire_init *w)
{
    static const uint8_t no_pairs[] = {MSG_NO_PAIRS};
    struct init_fields writing = {*w, w->n_clients, w->n_clients};

    if (!w->parallel_config.at)
        writing.init.parallel_config = (struct mp_span){no_pairs, 1};
    msg_write_map(b, NULL, &init_table, &writing);
}
