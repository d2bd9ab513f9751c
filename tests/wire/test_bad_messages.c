/* Messages that are wrong: the field is named, nothing is read beyond them, and a claim
 * of many elements costs no memory. */
#include "codec_testing.h"

#include "wire/codec/codec.h"

enum reader { HELLO, INIT, REGISTER, ADD, ABORT, CALL, WAVE, OUTPUTS };

static int read_into(enum reader reader, struct vt_arena *a, struct mp_span m,
                     struct vt_err *err)
{
    struct wire_hello hello;
    struct wire_init init;
    struct wire_ready ready;
    struct wire_request request;
    struct wire_call call;
    struct wire_outputs outputs;
    struct mp_span *id;
    int64_t wave, exclude;
    uint32_t n;
    int rc = VT_OK;

    switch (reader) {
    case HELLO:
        rc = wire_hello_read(&hello, m.at, m.len, err);
        break;
    case INIT:
        rc = wire_init_read(&init, a, m.at, m.len, err);
        break;
    case REGISTER:
        rc = wire_ready_read(&ready, a, m.at, m.len, err);
        break;
    case ADD:
        rc = wire_request_read(&request, a, m.at, m.len, err);
        break;
    case ABORT:
        rc = wire_abort_read(&id, &n, a, m.at, m.len, err);
        break;
    case CALL:
        rc = wire_call_read(&call, m.at, m.len, err);
        break;
    case WAVE:
        rc = wire_wave_read(&wave, &exclude, m.at, m.len, err);
        break;
    case OUTPUTS:
        rc = wire_outputs_read(&outputs, a, m.at, m.len, 0, err);
        break;
    }
    return rc;
}

static int read_any(enum reader reader, struct mp_span m, struct vt_err *err)
{
    struct vt_arena a = {0};
    int rc = read_into(reader, &a, m, err);

    assert_true(a.used_bytes < 100000);
    vt_arena_free(&a);
    return rc;
}

static struct wrong {
    const char *name;
    enum reader reader;
    const char *hex, *message;
} wrongs[] = {
    {"request: empty", ADD, "90", "request: no request_id"},
    {"request: a map", ADD, "80", "request: not an array"},
    {"request: id is no text", ADD, "91 01", "request: field 0 (request_id): not text"},
    {"request: prompt is text", ADD, "92 a161 a162",
     "request: field 1 (prompt_token_ids): not an array"},
    {"request: token below zero", ADD, "92 a161 91ff",
     "request: field 1 (prompt_token_ids): negative"},
    {"request: 4e9 tokens", ADD, "92 a161 ddee6b2800 01",
     "request: field 1 (prompt_token_ids): ends too early"},
    {"request: 64 MB of sampling", ADD, "94 a161 c0 c0 df02000000",
     "request: field 3 (sampling_params): ends too early"},
    {"request: sampling is an array", ADD, "94 a161 c0 c0 90",
     "request: field 3 (sampling_params): not a map"},
    {"request: salt is a number", ADD, "98 a161 c0 c0 c0 c0 01 c0 05",
     "request: field 7 (cache_salt): not text"},
    {"request: client below zero", ADD, "9c a161 c0c0c0c0 01 c0c0c0c0c0 ff",
     "request: field 11 (client_index): negative"},
    {"request: priority of 2^31", ADD,
     "9e a161 c0c0c0c0 01 c0c0c0c0c0 00 00 ce80000000",
     "request: field 13 (priority): too large"},
    {"request: followed by more", ADD, "91 a161 00", "request: bytes after its end"},
    {"abort: a map", ABORT, "80", "abort: not an array"},
    {"abort: a number", ABORT, "92 a161 01", "abort: not text"},
    {"abort: 64 M ids", ABORT, "dd04000000 a161", "abort: ends too early"},
    {"call: no method", CALL, "92 00 01", "utility call: no method"},
    {"call: id is text", CALL, "94 00 a131 a161 90",
     "utility call: field 1 (call_id): not an integer"},
    {"call: arguments are a map", CALL, "94 00 01 a161 80",
     "utility call: field 3 (args): not an array"},
    {"wave: none", WAVE, "90", "wave: no number"},
    {"wave: text", WAVE, "92 a131 c0", "wave: field 0 (wave): not an integer"},
    {"hello: no status", HELLO, "80", "hello: no status"},
    {"hello: local is a number", HELLO, "82 a6737461747573 a178 a56c6f63616c 01",
     "hello: field 'local': not a boolean"},
    {"init: no addresses", INIT, "80", "init: no addresses"},
    {"init: nowhere to answer", INIT,
     "81 a9616464726573736573 82 a6696e70757473 91a161 a76f757470757473 90",
     "init: 1 inputs but 0 outputs"},
    {"init: an address is a number", INIT,
     "81 a9616464726573736573 81 a6696e70757473 9101",
     "init: field 'addresses': field 'inputs': not text"},
    {"registration: a float for a number", REGISTER,
     "81 ad6d61785f6d6f64656c5f6c656e cb3ff8000000000000",
     "registration: field 'max_model_len': not a whole number"},
    {"outputs: a row is a number", OUTPUTS, "94 00 9101 c0 01 c0",
     "outputs: field 1 (outputs): output 0: not an array"},
    {"outputs: a row without tokens", OUTPUTS, "92 00 9191a161",
     "outputs: field 1 (outputs): output 0: no request_id and new_token_ids"},
    {"outputs: 64 M rows", OUTPUTS, "92 00 dd04000000 90",
     "outputs: field 1 (outputs): ends too early"},
    {"outputs: a finish below zero", OUTPUTS, "92 00 9196 a161 90 c0c0c0 ff",
     "outputs: field 1 (outputs): output 0: field 5 (finish_reason): negative"},
    {"outputs: an event without a type", OUTPUTS,
     "92 00 9198 a161 90 c0c0c0 c0 c0 91 82 a474797065 c0 "
     "a974696d657374616d70 01",
     "outputs: field 1 (outputs): output 0: field 7 (events): field 'type': not an "
     "integer"},
    {"outputs: stats are an array", OUTPUTS, "93 00 90 90",
     "outputs: field 2 (scheduler_stats): not a map"},
    {"outputs: hits below zero", OUTPUTS,
     "93 00 90 81 b27072656669785f63616368655f7374617473 81 a468697473 ff",
     "outputs: field 2 (scheduler_stats): field 'prefix_cache_stats': field 'hits': "
     "negative"},
    {"outputs: a finished id is a number", OUTPUTS, "96 00 90 c0 00 c0 9101",
     "outputs: field 5 (finished_requests): not text"},
};

static void wrong_is_named(void **state)
{
    const struct wrong *w = *state;
    struct mp_span m = unhex(w->hex), bytes = exact(m.at, m.len);
    struct vt_err err = {0};

    assert_int_equal(read_any(w->reader, bytes, &err), VT_EINPUT);
    assert_string_equal(err.msg, w->message);
    span_free(bytes);
    span_free(m);
}

static const char *const whole[] = {
    [HELLO] = "83 a6737461747573 a548454c4c4f a56c6f63616c c2 a8686561646c657373 c3",
    [INIT] = "82 a9616464726573736573 82 a6696e70757473 91a161 a76f757470757473 91a162 "
             "af706172616c6c656c5f636f6e666967 80",
    [REGISTER] = "82 ad6d61785f6d6f64656c5f6c656e cd0800 a56474797065 a7666c6f61743136",
    [ADD] = "dc0016 a161 93 07 cd1234 ce00012345 c0 81 aa6d61785f746f6b656e73 08 c0 "
            "cb41daaaaaaaaaaaaa c0 c0 c0 c0 c0 00 00 00 c0 c2 a162 c0 81 a161 80 c2 c0 "
            "c0",
    [ABORT] = "92 a57265712d31 a57265712d32",
    [CALL] = "94 00 cf0123456789abcdef a46d657468 92 c3 a161",
    [WAVE] = "92 cd0100 01",
    [OUTPUTS] =
        "98 00 91 9c a161 91 cd1234 94 93 a33c6934 91 01 c7040301020304 c0 c0 "
        "c0 c0 c0 01 a473746f70 92 82 a474797065 01 a974696d657374616d70 "
        "cb3ff8000000000000 82 a474797065 02 a974696d657374616d70 "
        "cb3ff8000000000000 c0 c0 c0 81 b16e756d5f70726f6d70745f746f6b656e73 09 "
        "81 b06e756d5f72756e6e696e675f72657173 05 cb3ff8000000000000 c0 91 a161 "
        "c0 c0",
};

/* Cut anywhere, or with one byte changed, a message is an error or another message:
 * nothing is read beyond it. */
static void damaged_messages(void **state)
{
    (void)state;
    for (size_t reader = 0; reader < VT_COUNT(whole); reader++) {
        struct mp_span m = unhex(whole[reader]);
        struct vt_err err = {0};

        assert_int_equal(read_any((enum reader)reader, m, &err), VT_OK);
        for (size_t len = 0; len < m.len; len++) {
            struct mp_span cut = exact(m.at, len);

            assert_int_equal(read_any((enum reader)reader, cut, &err), VT_EINPUT);
            span_free(cut);
        }
        for (size_t i = 0; i < m.len; i++) {
            for (size_t v = i % 3; v < 256; v += 3) {
                uint8_t copy[512];
                struct mp_span other;
                int rc;

                memcpy(copy, m.at, m.len);
                copy[i] = (uint8_t)v;
                other = exact(copy, m.len);
                rc = read_any((enum reader)reader, other, &err);
                assert_true(rc == VT_OK || rc == VT_EINPUT);
                span_free(other);
            }
        }
        span_free(m);
    }
}

/* The claim is true as far as bytes can tell: 64 MB follow it, all of the same byte. */
static struct huge {
    const char *name;
    enum reader reader;
    const char *head;
    uint8_t fill;
} huges[] = {
    {"64 MB of nils for tokens", ADD, "92 a161", 0xc0},
    {"64 MB of texts for tokens", ADD, "92 a161", 0xa0},
    {"64 MB of empty ids", ABORT, "", 0xa0},
    {"64 MB of arrays in arrays", CALL, "94 00 01 a161", 0x91},
    {"64 MB of empty rows", OUTPUTS, "92 00", 0x90},
};

static void huge_frame_costs_little(void **state)
{
    enum { SIZE = 64 << 20 };
    const struct huge *h = *state;
    struct mp_span head = unhex(h->head);
    struct vt_arena a = {0};
    struct vt_err err = {0};
    uint8_t *m = malloc(SIZE);
    uint32_t n = (uint32_t)(SIZE - head.len - 5);
    const uint8_t list[] = {0xdd, (uint8_t)(n >> 24), (uint8_t)(n >> 16),
                            (uint8_t)(n >> 8), (uint8_t)n};

    assert_non_null(m);
    memset(m, h->fill, SIZE);
    memcpy(m, head.at, head.len);
    memcpy(m + head.len, list, sizeof(list));
    /* Whole, and cut to a seventh so that the claim is false. */
    assert_int_equal(read_into(h->reader, &a, (struct mp_span){m, SIZE}, &err),
                     VT_EINPUT);
    assert_true(a.used_bytes <= 4 * (size_t)SIZE);
    vt_arena_free(&a);
    assert_int_equal(read_into(h->reader, &a, (struct mp_span){m, SIZE / 7}, &err),
                     VT_EINPUT);
    assert_int_equal(a.used_bytes, 0);
    vt_arena_free(&a);
    free(m);
    span_free(head);
}

/* ---- main ------------------------------------------------------------- */

int main(void)
{
    enum { N = VT_COUNT(wrongs), M = VT_COUNT(huges) };
    struct CMUnitTest tests[N + M + 1] = {cmocka_unit_test(damaged_messages)};

    for (size_t i = 0; i < N; i++)
        tests[1 + i] = row(wrongs[i].name, wrong_is_named, &wrongs[i]);
    for (size_t i = 0; i < M; i++)
        tests[1 + N + i] = row(huges[i].name, huge_frame_costs_little, &huges[i]);
    return cmocka_run_group_tests_name("bad messages", tests, NULL, NULL);
}
