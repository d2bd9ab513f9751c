/* Messages: the reference bytes of the protocol, arrays of other lengths than expected,
 * and never more fields than a line knows. */
#include "codec_testing.h"

#include <msgpack.h>

#include "wire/codec/codec.h"

/* ---- reference bytes -------------------------------------------------- */

static void hello_is_literal(void **state)
{
    static const char hex[] =
        "83 a6737461747573 a548454c4c4f a56c6f63616c c2 a8686561646c657373 c3";
    struct wire_hello h = {.status = text_span("HELLO"), .headless = true};
    struct wire_hello back;
    struct vt_buf b = {0};
    struct vt_err err = {0};

    (void)state;
    wire_hello_write(&b, &h);
    assert_hex(&b, hex);
    assert_int_equal(wire_hello_read(&back, b.data, b.len, &err), VT_OK);
    assert_true(mp_span_is(back.status, "HELLO") && back.headless && !back.local);
    assert_null(back.config_hash.at);
    h.config_hash = text_span("ab");
    vt_buf_clear(&b);
    wire_hello_write(&b, &h);
    assert_int_equal(wire_hello_read(&back, b.data, b.len, &err), VT_OK);
    assert_true(mp_span_is(back.config_hash, "ab"));
    vt_buf_free(&b);
}

static void abort_is_literal(void **state)
{
    struct mp_span m = unhex("91 a57265712d31"), *id;
    struct vt_arena a = {0};
    struct vt_buf b = {0};
    struct vt_err err = {0};
    uint32_t n;

    (void)state;
    assert_int_equal(wire_abort_read(&id, &n, &a, m.at, m.len, &err), VT_OK);
    assert_int_equal(n, 1);
    assert_true(mp_span_is(id[0], "req-1"));
    wire_abort_write(&b, id, n);
    assert_hex(&b, "91 a57265712d31");
    vt_buf_free(&b);
    vt_arena_free(&a);
    span_free(m);
}

static void call_is_literal(void **state)
{
    static const char hex[] = "94 00 2a b3 6765745f737570706f727465645f7461736b73 90";
    struct mp_span m = unhex(hex);
    struct wire_call c;
    struct vt_buf b = {0};
    struct vt_err err = {0};

    (void)state;
    assert_int_equal(wire_call_read(&c, m.at, m.len, &err), VT_OK);
    assert_true(mp_span_is(c.method, "get_supported_tasks"));
    assert_int_equal(c.call_id.len, 1);
    assert_int_equal(c.call_id.at[0], 42);
    wire_call_write(&b, &c);
    assert_hex(&b, hex);
    vt_buf_free(&b);
    span_free(m);
}

static void wave_is_read(void **state)
{
    struct mp_span m = unhex("92 03 c0"), other = unhex("92 04 01");
    struct vt_err err = {0};
    int64_t wave, exclude;

    (void)state;
    assert_int_equal(wire_wave_read(&wave, &exclude, m.at, m.len, &err), VT_OK);
    assert_true(wave == 3 && exclude == -1);
    assert_int_equal(wire_wave_read(&wave, &exclude, other.at, other.len, &err), VT_OK);
    assert_true(wave == 4 && exclude == 1);
    span_free(m);
    span_free(other);
}

/* Rows of a line that knows six fields of an output, as the protocol's reference has
 * them; the writer itself always writes whole arrays. */
static struct reference {
    const char *name, *hex;
    int finish;
    int64_t wave;
} references[] = {
    {"one token",
     "98 00 91 96 a57265712d31 91 07 c0c0c0c0 c0 cb3ff8000000000000 c0 c0 c0 c0",
     WIRE_UNFINISHED, -1},
    {"finished by length",
     "98 00 91 96 a57265712d31 91 07 c0c0c0 01 c0 cb3ff8000000000000 c0 91 "
     "a57265712d31 "
     "c0 c0",
     WIRE_LENGTH, -1},
    {"a utility's result",
     "98 00 90 c0 cb3ff8000000000000 93 2a c0 92 c0 91 a867656e6572617465 c0 c0 c0",
     WIRE_UNFINISHED, -1},
    {"end of a wave", "98 00 90 c0 cb3ff8000000000000 c0 c0 03 c0", WIRE_UNFINISHED, 3},
};

static void reference_is_read(void **state)
{
    const struct reference *ref = *state;
    struct mp_span m = unhex(ref->hex), bytes = exact(m.at, m.len);
    struct vt_arena a = {0};
    struct vt_err err = {0};
    struct wire_outputs o;

    assert_int_equal(wire_outputs_read(&o, &a, bytes.at, bytes.len, 0, &err), VT_OK);
    assert_true(o.timestamp == 1.5 && o.wave_complete == ref->wave);
    assert_int_equal(o.start_wave, -1);
    if (o.n_outputs == 1) {
        assert_true(mp_span_is(o.output[0].id, "req-1"));
        assert_int_equal(o.output[0].n_tokens, 1);
        assert_int_equal(o.output[0].token[0], 7);
        assert_int_equal(o.output[0].finish, ref->finish);
    }
    assert_int_equal(o.n_finished, ref->finish == WIRE_LENGTH);
    assert_int_equal(o.has_utility, ref == &references[2]);
    vt_arena_free(&a);
    span_free(bytes);
    span_free(m);
}

/* No outputs: whole arrays are the reference's. */
static void writer_gives_the_reference(void **state)
{
    const struct vt_wire_line *line = vt_wire_line_find("0.26");
    struct mp_span id = unhex("2a"), result = unhex("92 c0 91 a867656e6572617465");
    struct wire_outputs o = {.timestamp = 1.5, .wave_complete = 3, .start_wave = -1};
    struct vt_buf b = {0};

    (void)state;
    wire_outputs_write(&b, line, &o);
    assert_hex(&b, references[3].hex);
    vt_buf_clear(&b);
    o.wave_complete = -1;
    o.has_utility = true;
    o.call_id = id;
    o.result = result;
    wire_outputs_write(&b, line, &o);
    assert_hex(&b, references[2].hex);
    vt_buf_free(&b);
    span_free(id);
    span_free(result);
}

/* ---- arrays of other lengths ------------------------------------------ */

static void short_and_long_requests(void **state)
{
    static const struct {
        const char *hex;
        uint32_t n_fields, n_prompt;
    } rows[] = {
        {"91 a161", 1, 0},
        {"92 a161 920102", 2, 2},
        {"93 a161 c0 c0", 3, 0},
        {"dc0019 a161 9107 c0 c0 c0 01 c0 c0 c0 c0 c0 00 00 ff c0 c2 c0 c0 c0 c3 c0 c0 "
         "a178 82 01 02 03 04 9101",
         25, 1},
    };
    struct vt_arena a = {0};
    struct vt_err err = {0};
    struct wire_request r;

    (void)state;
    for (size_t i = 0; i < VT_COUNT(rows); i++) {
        struct mp_span m = unhex(rows[i].hex);

        assert_int_equal(wire_request_read(&r, &a, m.at, m.len, &err), VT_OK);
        assert_int_equal(r.n_fields, rows[i].n_fields);
        assert_int_equal(r.n_prompt, rows[i].n_prompt);
        assert_int_equal(r.prompt != NULL, rows[i].n_prompt > 0);
        assert_int_equal(r.data_parallel_rank, -1);
        span_free(m);
    }
    assert_true(r.priority == -1 && r.abort_immediately && r.arrival_time == 1.0);
    vt_arena_free(&a);
}

static void long_outputs(void **state)
{
    /* An output of 20 fields in a message of 11. */
    struct mp_span m =
        unhex("9b 01 91 dc0014 a161 9107 c0c0c0 00 ce0001e240 c0 c0 c0 c0 "
              "81b16e756d5f70726f6d70745f746f6b656e73 09 c0 05 c0c0c0c0 07 9101 "
              "c0 01 c0 c0 c0 c0 a1 61 07 8101 02");
    struct vt_arena a = {0};
    struct vt_err err = {0};
    struct wire_outputs o;

    (void)state;
    assert_int_equal(wire_outputs_read(&o, &a, m.at, m.len, 0, &err), VT_OK);
    assert_int_equal(o.engine_index, 1);
    assert_int_equal(o.output[0].finish, WIRE_STOP);
    assert_true(o.output[0].has_prefill && o.output[0].prefill.prompt == 9);
    assert_int_equal(o.output[0].n_nans, 5);
    assert_int_equal(o.output[0].stop_reason.len, 5);
    assert_int_equal(o.weight_version.len, 2);
    vt_arena_free(&a);
    span_free(m);
}

/* ---- one message with everything -------------------------------------- */

static const uint64_t per_position[2][3] = {{9, 300, 70000}, {UINT64_MAX, 1, 0}};

static void fill_stats(struct wire_stats *s)
{
    *s = (struct wire_stats){
        .running = 1,
        .waiting = 200,
        .skipped_waiting = 70000,
        .step_counter = UINT64_MAX,
        .current_wave = INT64_MAX,
        .kv_usage = 0.25,
        .cache = {true, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX,
                  UINT64_MAX},
        .has_spec = true,
        .spec = {3, UINT64_MAX, UINT64_MAX, UINT64_MAX, per_position[0],
                 per_position[1], 3, 3},
        .has_iteration = true,
        .iteration = {UINT64_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX, 1.5,
                      true},
    };
}

static const uint32_t some_tokens[] = {1, 200, 70000, UINT32_MAX};
static const struct wire_event some_events[] = {
    {WIRE_QUEUED, 1.25}, {WIRE_SCHEDULED, 2.5}, {WIRE_PREEMPTED, 3.75}};

/* Every optional part is there. Its spans are those of the texts. */
static void fill_output(struct wire_output *o, struct mp_span map)
{
    *o = (struct wire_output){
        .id = text_span("cmpl-0123456789-01234567"),
        .token = some_tokens,
        .n_tokens = 4,
        .logprobs = text_span("\x93\xa3<i4\x91\x01\x02"),
        .prompt_logprobs = text_span("\x91\xc2"),
        .pooling = text_span("\x93\xa3<f4\x91\x01\x01"),
        .finish = WIRE_REPETITION,
        .stop_reason = text_span("\xa4stop"),
        .event = some_events,
        .n_events = 3,
        .kv_transfer = map,
        .ec_transfer = map,
        .trace_headers = map,
        .has_prefill = true,
        .prefill = {UINT32_MAX, 2, 3, 4, 5, 6},
        .routed_experts = text_span("\x91\x01"),
        .n_nans = UINT64_MAX,
        .tail = {text_span("\x91\xa1x"), text_span("\x91\x01"), map,
                 text_span("\x91\x02")},
    };
}

static uint32_t object_size(const msgpack_object *o)
{
    assert_int_equal(o->type, MSGPACK_OBJECT_ARRAY);
    return o->via.array.size;
}

/* libmsgpack counts what we wrote; our reader finds every value again. */
static void no_field_beyond_the_line(void **state)
{
    const struct vt_wire_line *line = *state;
    struct mp_span map = unhex("81 a161 01"), id = unhex("cfffffffffffffffff");
    struct mp_span finished[2] = {text_span("a"), text_span("")};
    struct wire_output rows[2];
    struct wire_outputs o = {
        .engine_index = 300,
        .output = rows,
        .n_outputs = 2,
        .has_stats = true,
        .timestamp = 1.5,
        .has_utility = true,
        .call_id = id,
        .failure = text_span("no"),
        .finished = finished,
        .n_finished = 2,
        .wave_complete = 1,
        .start_wave = 2,
        .weight_version = text_span("\xa1v"),
    };
    struct wire_outputs back;
    struct vt_buf b = {0}, again = {0};
    struct vt_arena a = {0};
    struct vt_err err = {0};
    msgpack_unpacked un;
    size_t at = 0;

    fill_output(&rows[0], map);
    fill_output(&rows[1], map);
    fill_stats(&o.stats);
    wire_outputs_write(&b, line, &o);
    assert_false(b.failed);
    msgpack_unpacked_init(&un);
    assert_int_equal(msgpack_unpack_next(&un, b.data, b.len, &at),
                     MSGPACK_UNPACK_SUCCESS);
    assert_int_equal(at, b.len);
    assert_int_equal(object_size(&un.data), line->outputs_fields);
    assert_int_equal(object_size(&un.data.via.array.ptr[1]), 2);
    for (uint32_t i = 0; i < 2; i++)
        assert_int_equal(object_size(&un.data.via.array.ptr[1].via.array.ptr[i]),
                         line->output_fields);
    assert_int_equal(
        un.data.via.array.ptr[1].via.array.ptr[0].via.array.ptr[line->prefill_at].type,
        MSGPACK_OBJECT_MAP);
    assert_int_equal(wire_outputs_read(&back, &a, b.data, b.len, 2, &err), VT_OK);
    wire_outputs_write(&again, line, &back);
    assert_int_equal(again.len, b.len);
    assert_memory_equal(again.data, b.data, b.len);
    msgpack_unpacked_destroy(&un);
    vt_arena_free(&a);
    vt_buf_free(&b);
    vt_buf_free(&again);
    span_free(map);
    span_free(id);
}

static void everything_is_read_back(void **state)
{
    const struct vt_wire_line *line = vt_wire_line_find("0.32");
    struct mp_span map = unhex("81 a161 01");
    struct wire_output row;
    struct wire_outputs o = {.output = &row,
                             .n_outputs = 1,
                             .has_stats = true,
                             .wave_complete = -1,
                             .start_wave = -1},
                        back;
    struct vt_buf b = {0};
    struct vt_arena a = {0};
    struct vt_err err = {0};

    (void)state;
    fill_output(&row, map);
    fill_stats(&o.stats);
    wire_outputs_write(&b, line, &o);
    assert_int_equal(wire_outputs_read(&back, &a, b.data, b.len, 2, &err), VT_OK);
    assert_memory_equal(back.output[0].token, some_tokens, sizeof(some_tokens));
    assert_int_equal(back.output[0].n_events, 3);
    assert_true(back.output[0].event[2].type == WIRE_PREEMPTED &&
                back.output[0].event[2].timestamp == 3.75);
    assert_memory_equal(&back.output[0].prefill, &row.prefill, sizeof(row.prefill));
    assert_true(back.stats.step_counter == UINT64_MAX && back.stats.cache.reset);
    assert_int_equal(back.stats.skipped_waiting, 70000);
    assert_memory_equal(back.stats.spec.accepted_at, per_position[0],
                        sizeof(per_position[0]));
    assert_true(back.stats.iteration.elapsed_ms == 1.5 && back.stats.iteration.dummy);
    assert_int_equal(
        mp_peek(&(struct mp_in){.at = back.stats.raw.at, .end = back.stats.raw.at + 1}),
        MP_MAP);
    /* Buffer 2 is named, one came. */
    assert_int_equal(wire_outputs_read(&back, &a, b.data, b.len, 1, &err), VT_EINPUT);
    assert_string_equal(err.msg, "outputs: field 1 (outputs): output 0: field 2 "
                                 "(new_logprobs): names a buffer that did not come");
    vt_arena_free(&a);
    vt_buf_free(&b);
    span_free(map);
}

/* ---- registration ----------------------------------------------------- */

static void registration_has_every_key(void **state)
{
    static const char *const keys[] = {
        "max_model_len",
        "num_gpu_blocks",
        "block_size",
        "dp_stats_address",
        "dtype",
        "vllm_version",
        "world_size",
        "data_parallel_size",
        "kv_cache_size_tokens",
        "kv_cache_max_concurrency",
        "tensor_parallel_size",
        "pipeline_parallel_size",
        "data_parallel_rank",
        "decode_context_parallel_size",
        "max_num_seqs",
        "max_num_batched_tokens",
        "instance_id",
        "kv_events_config",
        "enable_sleep_mode",
        "weight_transfer_backend",
        "supports_lora",
        "supports_draft_weight_updates",
        "max_loras",
        "mamba_block_size",
        "effective_attention_block_size",
    };
    struct wire_ready r = {.max_model_len = 1 << 20,
                           .dtype = "float16",
                           .events_endpoint = "tcp://*:5557",
                           .events_topic = "kv"},
                      back;
    struct vt_buf b = {0};
    struct vt_arena a = {0};
    struct vt_err err = {0};
    struct mp_in in;

    (void)state;
    wire_ready_write(&b, &r);
    for (size_t i = 0; i < VT_COUNT(keys); i++)
        assert_non_null(mp_get(buf_span(&b), keys[i]).at);
    mp_in_init(&in, b.data, b.len);
    assert_int_equal(mp_map(&in), VT_COUNT(keys));
    assert_int_equal(wire_ready_read(&back, &a, b.data, b.len, &err), VT_OK);
    assert_true(back.max_model_len == 1 << 20);
    assert_string_equal(back.dtype, "float16");
    assert_string_equal(back.events_endpoint, "tcp://*:5557");
    assert_string_equal(back.events_topic, "kv");
    assert_null(back.events_replay_endpoint);
    vt_arena_free(&a);
    vt_buf_free(&b);
}

static void finish_has_a_name(void **state)
{
    (void)state;
    assert_string_equal(wire_finish_name(WIRE_STOP), "stop");
    assert_string_equal(wire_finish_name(WIRE_REPETITION), "repetition");
    assert_null(wire_finish_name(WIRE_UNFINISHED));
    assert_null(wire_finish_name(5));
}

/* ---- main ------------------------------------------------------------- */

int main(void)
{
    static const struct CMUnitTest single[] = {
        cmocka_unit_test(hello_is_literal),
        cmocka_unit_test(abort_is_literal),
        cmocka_unit_test(call_is_literal),
        cmocka_unit_test(wave_is_read),
        cmocka_unit_test(writer_gives_the_reference),
        cmocka_unit_test(short_and_long_requests),
        cmocka_unit_test(long_outputs),
        cmocka_unit_test(everything_is_read_back),
        cmocka_unit_test(registration_has_every_key),
        cmocka_unit_test(finish_has_a_name),
    };
    struct CMUnitTest tests[50];
    size_t n = VT_COUNT(single), n_lines;
    const struct vt_wire_line *const *lines = vt_wire_lines(&n_lines);

    memcpy(tests, single, sizeof(single));
    for (size_t i = 0; i < VT_COUNT(references); i++)
        tests[n++] = row(references[i].name, reference_is_read, &references[i]);
    for (size_t i = 0; i < n_lines; i++)
        tests[n++] = row(lines[i]->name, no_field_beyond_the_line, lines[i]);
    return _cmocka_run_group_tests("messages", tests, n, NULL, NULL);
}
