/* Sampling parameters: sparse maps, numbers in any form, and what cannot be. */
#include "codec_testing.h"

#include "wire/codec/codec.h"

static struct sampling {
    const char *name, *hex;
    const char *bad; /* NULL: readable */
    double temperature;
    uint32_t max_tokens;
} samplings[] = {
    {"nil", "c0", NULL, 1.0, 16},
    {"empty", "80", NULL, 1.0, 16},
    {"temperature -1", "81 ab74656d7065726174757265 ff", NULL, -1.0, 16},
    {"temperature as float32", "81 ab74656d7065726174757265 ca3f000000", NULL, 0.5, 16},
    {"no limit", "81 aa6d61785f746f6b656e73 c0", NULL, 1.0, UINT32_MAX},
    {"a limit as a float", "81 aa6d61785f746f6b656e73 ca42000000", NULL, 1.0, 32},
    {"a limit below zero", "81 aa6d61785f746f6b656e73 ff",
     "sampling_params: field 'max_tokens': negative", 0, 0},
    {"a limit that is no number", "81 aa6d61785f746f6b656e73 a135",
     "sampling_params: field 'max_tokens': not an integer", 0, 0},
    {"a limit of NaN", "81 aa6d61785f746f6b656e73 cb7ff8000000000000",
     "sampling_params: field 'max_tokens': not a whole number", 0, 0},
    {"a limit of infinity", "81 aa6d61785f746f6b656e73 ca7f800000",
     "sampling_params: field 'max_tokens': not a whole number", 0, 0},
    {"a limit of 2^32", "81 aa6d61785f746f6b656e73 cf0000000100000000",
     "sampling_params: field 'max_tokens': too large", 0, 0},
    {"unknown keys", "82 a178 9101 a179 8101c0", NULL, 1.0, 16},
    {"a seed of 64 bits", "81 a473656564 cfffffffffffffffff", NULL, 1.0, 16},
    {"a seed below zero", "81 a473656564 d0d6", NULL, 1.0, 16},
    {"a seed that is text", "81 a473656564 a131",
     "sampling_params: field 'seed': not an integer", 0, 0},
    {"a key that is no text", "81 01 01", "sampling_params: a key that is not text", 0,
     0},
    {"stop ids that are no tokens",
     "81 ae73746f705f746f6b656e5f696473 94 ff 07 "
     "cf0000000100000000 cb3ff8000000000000",
     NULL, 1.0, 16},
    {"an array", "90", "sampling_params: not a map", 0, 0},
};

static void sampling_is_read(void **state)
{
    const struct sampling *row = *state;
    struct mp_span m = unhex(row->hex);
    struct vt_arena a = {0};
    struct vt_err err = {0};
    struct wire_sampling s;
    int rc = wire_sampling_read(&s, &a, m, &err);

    if (row->bad) {
        assert_int_equal(rc, VT_EINPUT);
        assert_string_equal(err.msg, row->bad);
    } else {
        assert_int_equal(rc, VT_OK);
        assert_true(s.temperature == row->temperature);
        assert_int_equal(s.max_tokens, row->max_tokens);
        assert_int_equal(s.has_seed, strstr(row->name, "seed") != NULL);
        if (s.n_stop_token_ids > 0) {
            assert_int_equal(s.n_stop_token_ids, 1);
            assert_int_equal(s.stop_token_ids[0], 7);
        }
    }
    vt_arena_free(&a);
    span_free(m);
}

static void sampling_has_every_field(void **state)
{
    struct vt_buf b = {0};
    struct vt_arena a = {0};
    struct vt_err err = {0};
    struct wire_sampling s;

    (void)state;
    mp_put_map(&b, 11);
    mp_put_str(&b, "_all_stop_token_ids");
    mp_put_array(&b, 2);
    mp_put_u64(&b, 4089);
    mp_put_u64(&b, 4091);
    mp_put_str(&b, "n");
    mp_put_u64(&b, 3);
    mp_put_str(&b, "seed");
    mp_put_f64(&b, 42.0);
    mp_put_str(&b, "ignore_eos");
    mp_put_bool(&b, true);
    mp_put_str(&b, "min_tokens");
    mp_put_u64(&b, 2);
    mp_put_str(&b, "logprobs");
    mp_put_i64(&b, -1);
    mp_put_str(&b, "_eos_token_id");
    mp_put_u64(&b, 4091);
    mp_put_str(&b, "allowed_token_ids");
    mp_put_array(&b, 0);
    mp_put_str(&b, "trace_decode_token_ids");
    mp_put_array(&b, 1);
    mp_put_u64(&b, 5);
    mp_put_str(&b, "skip_reading_prefix_cache");
    mp_put_bool(&b, true);
    mp_put_str(&b, "extra_args");
    mp_put_map(&b, 0);
    assert_int_equal(wire_sampling_read(&s, &a, buf_span(&b), &err), VT_OK);
    assert_true(s.n == 3 && s.has_seed && s.seed == 42 && s.ignore_eos);
    assert_true(s.min_tokens == 2 && s.logprobs == -1 && s.eos_token_id == 4091);
    assert_true(s.prompt_logprobs == INT32_MIN && s.skip_reading_prefix_cache);
    assert_int_equal(s.n_all_stop_token_ids, 2);
    assert_int_equal(s.all_stop_token_ids[1], 4091);
    assert_true(s.allowed_token_ids && s.n_allowed_token_ids == 0);
    assert_true(s.n_forced_token_ids == 1 && s.forced_token_ids[0] == 5);
    assert_int_equal(s.extra_args.len, 1);
    vt_arena_free(&a);
    vt_buf_free(&b);
}

static void lora_is_read(void **state)
{
    struct mp_span m = unhex("96 a26c31 07 a12f c0 c2 c2"), bad = unhex("92 01 02");
    struct vt_err err = {0};
    struct wire_lora l;

    (void)state;
    assert_int_equal(wire_lora_read(&l, m, &err), VT_OK);
    assert_true(mp_span_is(l.name, "l1") && l.id == 7);
    assert_int_equal(wire_lora_read(&l, (struct mp_span){0}, &err), VT_OK);
    assert_null(l.name.at);
    assert_int_equal(wire_lora_read(&l, bad, &err), VT_EINPUT);
    assert_string_equal(err.msg, "lora_request: field 0 (lora_name): not text");
    span_free(m);
    span_free(bad);
}

/* ---- main ------------------------------------------------------------- */

int main(void)
{
    enum { N = VT_COUNT(samplings) };
    struct CMUnitTest tests[N + 2] = {
        cmocka_unit_test(sampling_has_every_field),
        cmocka_unit_test(lora_is_read),
    };

    for (size_t i = 0; i < N; i++)
        tests[2 + i] = row(samplings[i].name, sampling_is_read, &samplings[i]);
    return cmocka_run_group_tests_name("sampling", tests, NULL, NULL);
}
