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
    HELLO("parallel_config_hash", MSG_TEXT, MSG_NIL_OK, config_hash),
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
    mp_put_map(b, h->config_hash.at ? 4 : 3);
    mp_put_str(b, "status");
    mp_put_strn(b, h->status.at, h->status.len);
    mp_put_str(b, "local");
    mp_put_bool(b, h->local);
    mp_put_str(b, "headless");
    mp_put_bool(b, h->headless);
    if (h->config_hash.at) {
        mp_put_str(b, "parallel_config_hash");
        mp_put_strn(b, h->config_hash.at, h->config_hash.len);
    }
}

/* ---- INIT ------------------------------------------------------------- */

struct init_reading {
    struct wire_init init;
    uint32_t n_inputs, n_outputs;
};

#define INIT(text, kind, nil, member) \
    MSG_FIELD(struct init_reading, text, kind, nil, init.member)

static const struct msg_field address_fields[] = {
    MSG_LIST(struct init_reading, "inputs", MSG_TEXTS, MSG_NEVER_NIL, init.input,
             n_inputs),
    MSG_LIST(struct init_reading, "outputs", MSG_TEXTS, MSG_NEVER_NIL, init.output,
             n_outputs),
    INIT("coordinator_input", MSG_TEXT, MSG_NIL_OK, coordinator_input),
    INIT("coordinator_output", MSG_TEXT, MSG_NIL_OK, coordinator_output),
    INIT("frontend_stats_publish_address", MSG_TEXT, MSG_NIL_OK, stats_address),
};
static const struct msg_table address_table = MSG_TABLE(address_fields);

static const struct msg_field init_fields[] = {
    {MSG_NAMED("addresses", MSG_NESTED, MSG_NEVER_NIL), .nested = &address_table},
    INIT("parallel_config", MSG_MAP, MSG_NIL_OK, parallel_config),
};
static const struct msg_table init_table = MSG_TABLE(init_fields);

int wire_init_read(struct wire_init *w, struct vt_arena *a, const void *bytes,
                   size_t len, struct vt_err *err)
{
    struct init_reading reading = {0};
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

static void text_or_nil(struct vt_buf *b, const char *key, struct mp_span text)
{
    mp_put_str(b, key);
    if (text.at)
        mp_put_strn(b, text.at, text.len);
    else
        mp_put_nil(b);
}

void wire_init_write(struct vt_buf *b, const struct wire_init *w)
{
    mp_put_map(b, 2);
    mp_put_str(b, "addresses");
    mp_put_map(b, 5);
    mp_put_str(b, "inputs");
    wire_texts_write(b, w->input, w->n_clients);
    mp_put_str(b, "outputs");
    wire_texts_write(b, w->output, w->n_clients);
    text_or_nil(b, "coordinator_input", w->coordinator_input);
    text_or_nil(b, "coordinator_output", w->coordinator_output);
    text_or_nil(b, "frontend_stats_publish_address", w->stats_address);
    mp_put_str(b, "parallel_config");
    if (w->parallel_config.at)
        mp_put_raw(b, w->parallel_config);
    else
        mp_put_map(b, 0);
}
