/* Every allocation of every reader and writer of messages is made to fail in turn. The
 * only outcomes allowed are success, VT_ENOMEM and a failed buffer.
 *
 * This program replaces malloc, which sanitizers do too; under those it
 * does nothing. */
#include "codec_testing.h"

#include "wire/codec/codec.h"
#include "wire/tap/wirelog.h"

#include "../failing_malloc.h"

#if REPLACES_MALLOC

/* ---- what is read and written ----------------------------------------- */

/* 3,000 tokens, so that lists need chunks of their own. */
static int read_request(struct vt_arena *a, struct vt_err *err)
{
    static uint8_t m[3100] = {0x92, 0xa1, 'a', 0xdc, 3000 >> 8, 3000 & 255};
    struct wire_request r;

    return wire_request_read(&r, a, m, 6 + 3000, err);
}

static int read_init(struct vt_arena *a, struct vt_err *err)
{
    static const char m[] = "\x81\xa9"
                            "addresses\x82\xa6"
                            "inputs\x91\xa1"
                            "a\xa7outputs\x91\xa1"
                            "b";
    struct wire_init w;

    return wire_init_read(&w, a, m, sizeof(m) - 1, err);
}

static int read_ready(struct vt_arena *a, struct vt_err *err)
{
    static const char m[] = "\x81\xa5"
                            "dtype\xa1"
                            "a";
    struct wire_ready w;

    return wire_ready_read(&w, a, m, sizeof(m) - 1, err);
}

static int read_sampling(struct vt_arena *a, struct vt_err *err)
{
    static const char m[] = "\x81\xae"
                            "stop_token_ids\x91\x05";
    struct wire_sampling s;

    return wire_sampling_read(&s, a,
                              (struct mp_span){(const uint8_t *)m, sizeof(m) - 1}, err);
}

static int read_outputs(struct vt_arena *a, struct vt_err *err)
{
    static const char m[] = "\x96\x00\x91\x98\xa1"
                            "a\x91\x05\xc0\xc0\xc0\xc0\xc0\x91\x82\xa4"
                            "type\x01\xa9timestamp\x01\x81\xb3"
                            "spec_decoding_stats\x81\xbb"
                            "num_accepted_tokens_per_pos\x91\x05\x01\xc0\x91\xa1"
                            "a";
    struct wire_outputs o;

    return wire_outputs_read(&o, a, m, sizeof(m) - 1, 0, err);
}

static int read_log(struct vt_arena *a, struct vt_err *err)
{
    static const char line[] = "{\"sock\":\"a\",\"dir\":\"b\",\"kind\":\"c\","
                               "\"frames_hex\":[\"00\",\"0102\"]}";
    struct wirelog_entry e;

    return wirelog_entry_read(&e, a, line, sizeof(line) - 1, 1, err);
}

/* A buffer that has failed is not sent, whatever it holds. */
static int write_outputs(struct vt_arena *a, struct vt_err *err)
{
    static const uint32_t token[100];
    struct wire_output row = {
        .id = text_span("a"), .token = token, .n_tokens = 100, .finish = WIRE_STOP};
    struct wire_outputs o = {.output = &row, .n_outputs = 1, .has_stats = true};
    struct vt_buf b = {0};
    bool failed;

    (void)a;
    wire_outputs_write(&b, vt_wire_line_find("0.32"), &o);
    failed = b.failed;
    vt_buf_free(&b);
    return failed ? vt_nomem(err) : VT_OK;
}

static const struct {
    const char *name;
    int (*work)(struct vt_arena *a, struct vt_err *err);
    long least; /* allocations */
} rows[] = {
    {"request", read_request, 1},          {"init", read_init, 1},
    {"registration", read_ready, 1},       {"sampling", read_sampling, 1},
    {"outputs", read_outputs, 1},          {"log", read_log, 1},
    {"writing outputs", write_outputs, 2},
};

static void survives_any_failed_allocation(void **state)
{
    (void)state;
    for (size_t i = 0; i < VT_COUNT(rows); i++) {
        int rc = VT_ENOMEM;

        for (long nth = 1; rc != VT_OK; nth++) {
            struct vt_arena a = {0};
            struct vt_err err = {0};

            calls = 0;
            fail_at = nth;
            rc = rows[i].work(&a, &err);
            fail_at = 0;
            vt_arena_free(&a);
            if (rc != VT_OK && rc != VT_ENOMEM)
                fail_msg("%s: %s", rows[i].name, err.msg);
            assert_true(rc != VT_OK || nth > rows[i].least);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(survives_any_failed_allocation),
    };

    return cmocka_run_group_tests_name("messages without memory", tests, NULL, NULL);
}

#else

int main(void)
{
    return 0;
}

#endif
