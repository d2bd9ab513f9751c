/* Which tokens a request gets, where it ends and why, and what is told beside them. */
#include "play_harness.h"

#include <math.h>

/* ---- ends ------------------------------------------------------------- */

static struct end {
    const char *name;
    uint32_t n_prompt;
    const char *sampling; /* JSON: integers, lists of them, true, null */
    uint32_t n_tokens;
    const char *finish;
    int64_t stop; /* stop_reason; -1: nil */
    int64_t last; /* the last token; -1: any */
} ends[] = {
    {"max_tokens ends it", 8, "{\"max_tokens\":7}", 7, "length", -1, -1},
    {"sixteen tokens without a limit of its own", 8, "{}", 16, "length", -1, -1},
    {"max_model_len bounds what has no limit", 120, "{\"max_tokens\":null}", 8,
     "length", -1, -1},
    {"max_model_len bounds a limit beyond it", 120, "{\"max_tokens\":500}", 8, "length",
     -1, -1},
    {"a prompt that leaves room for one token", 127, "{\"max_tokens\":500}", 1,
     "length", -1, -1},
    {"one token", 8, "{\"max_tokens\":1}", 1, "length", -1, -1},
    {"forced tokens come first", 8,
     "{\"max_tokens\":2,\"trace_decode_token_ids\":[5,6,7]}", 2, "length", -1, 6},
    {"a stop id is the reason", 8,
     "{\"max_tokens\":9,\"stop_token_ids\":[7],\"trace_decode_token_ids\":[5,6,7,8]}",
     3, "stop", 7, 7},
    {"EOS has no reason", 8,
     "{\"max_tokens\":9,\"_eos_token_id\":7,\"trace_decode_token_ids\":[5,6,7,8]}", 3,
     "stop", -1, 7},
    {"EOS comes before a stop id that is the same", 8,
     "{\"max_tokens\":9,\"_eos_token_id\":7,\"stop_token_ids\":[7],"
     "\"trace_decode_token_ids\":[5,6,7,8]}",
     3, "stop", -1, 7},
    {"ignore_eos goes on", 8,
     "{\"max_tokens\":4,\"_eos_token_id\":7,\"ignore_eos\":true,"
     "\"trace_decode_token_ids\":[5,6,7,8]}",
     4, "length", -1, 8},
    {"ignore_eos does not ignore stop ids", 8,
     "{\"max_tokens\":9,\"stop_token_ids\":[7],\"ignore_eos\":true,"
     "\"trace_decode_token_ids\":[5,6,7,8]}",
     3, "stop", 7, 7},
    {"min_tokens passes over an early stop", 8,
     "{\"max_tokens\":9,\"min_tokens\":4,\"stop_token_ids\":[7],"
     "\"trace_decode_token_ids\":[5,7,6,5,6,7,5]}",
     6, "stop", 7, 7},
    {"min_tokens is reached with the stop itself", 8,
     "{\"max_tokens\":9,\"min_tokens\":2,\"stop_token_ids\":[7],"
     "\"trace_decode_token_ids\":[5,7,6]}",
     2, "stop", 7, 7},
    {"max_tokens wins over a later stop", 8,
     "{\"max_tokens\":2,\"stop_token_ids\":[7],\"trace_decode_token_ids\":[5,6,7]}", 2,
     "length", -1, 6},
    {"a stop at max_tokens is a stop", 8,
     "{\"max_tokens\":3,\"stop_token_ids\":[7],\"trace_decode_token_ids\":[5,6,7]}", 3,
     "stop", 7, 7},
    {"an allowed id that stops does", 8,
     "{\"max_tokens\":9,\"allowed_token_ids\":[9],\"stop_token_ids\":[9]}", 1, "stop",
     9, 9},
    {"only allowed ids are drawn", 8, "{\"max_tokens\":9,\"allowed_token_ids\":[9]}", 9,
     "length", -1, 9},
    {"random output never stops by itself", 8,
     "{\"max_tokens\":100,\"_eos_token_id\":3,\"stop_token_ids\":[4,5]}", 100, "length",
     -1, -1},
};

static void put_value(struct vt_buf *b, const struct vt_node *v)
{
    switch (v->kind) {
    case VT_NULL:
        mp_put_nil(b);
        break;
    case VT_BOOL:
        mp_put_bool(b, v->u.boolean);
        break;
    case VT_INT:
        mp_put_i64(b, v->u.integer);
        break;
    default:
        assert_int_equal(v->kind, VT_LIST);
        mp_put_array(b, v->n);
        for (uint32_t i = 0; i < v->n; i++)
            put_value(b, &v->u.item[i]);
    }
}

static void put_json(struct vt_buf *b, const char *json)
{
    struct vt_arena a = {0};
    const struct vt_node *map;
    struct vt_err err = {0};

    if (vt_json_parse(&a, json, strlen(json), 1, &map, &err) != VT_OK)
        fail_msg("%s", err.msg);
    mp_put_map(b, map->n);
    for (uint32_t i = 0; i < map->n; i++) {
        mp_put_str(b, map->u.item[i].key);
        put_value(b, &map->u.item[i]);
    }
    vt_arena_free(&a);
}

static void assert_end(const struct stage *s, const struct end *e)
{
    const struct told *t = &s->h.told[s->h.n - 1];

    assert_string_equal(t->id, e->name);
    assert_int_equal(t->n_tokens, e->n_tokens);
    assert_int_equal(t->n_outputs, e->n_tokens);
    assert_string_equal(t->finish, e->finish);
    assert_int_equal(t->stop_said ? t->stop_token : -1, e->stop);
    if (e->last >= 0)
        assert_int_equal(t->token[t->n_tokens - 1], e->last);
    for (size_t i = 0; i < t->n_tokens; i++)
        assert_true(t->token[i] < VOCABULARY);
}

static void requests_end_where_they_must(void **state)
{
    struct stage *s = *state;

    s->c.engine.max_model_len = 128;
    stage_open(s);
    for (size_t i = 0; i < VT_COUNT(ends); i++) {
        struct vt_buf sampling = {0};

        put_json(&sampling, ends[i].sampling);
        ask_with(s, ends[i].name, ends[i].n_prompt, &sampling);
        vt_buf_free(&sampling);
        hear_finished(s, (uint32_t)i + 1);
        print_message("  %s\n", ends[i].name);
        assert_end(s, &ends[i]);
    }
}

static void a_prompt_that_does_not_fit_is_an_error(void **state)
{
    struct stage *s = *state;

    s->c.engine.max_model_len = 128;
    stage_open(s);
    ask(s, "fits", 127, 1);
    ask(s, "full", 128, 1);
    ask(s, "long", 200, 1);
    ask(s, "none", 0, 1);
    hear_finished(s, 4);
    assert_string_equal(told_of(&s->h, "fits")->finish, "length");
    assert_string_equal(told_of(&s->h, "long")->finish, "error");
    assert_string_equal(told_of(&s->h, "none")->finish, "error");
    assert_int_equal(told_of(&s->h, "long")->n_tokens, 0);
    stage_stop(s);
    assert_true(s->sum.failed >= 2);
    assert_int_equal(s->sum.requests, 4);
}

/* ---- requests that are not like others -------------------------------- */

static void send_request(struct stage *s, const char *id, struct wire_request *w)
{
    struct vt_buf b = {0};

    w->n_fields = WIRE_REQUEST_FIELDS;
    w->id = (struct mp_span){(const uint8_t *)id, strlen(id)};
    w->data_parallel_rank = -1;
    wire_request_write(&b, w);
    send_typed(s, 0, WIRE_ADD, b.data, b.len);
    vt_buf_free(&b);
}

/* A tensor of rows by columns in place of tokens. What is in it is not looked at, so
 * that no two share a prefix. */
static void embeddings_are_as_many_tokens_as_rows(void **state)
{
    struct stage *s = *state;
    struct vt_buf embeds = {0}, sampling = {0};
    struct wire_request w = {0};

    mp_put_array(&embeds, 3);
    mp_put_str(&embeds, "float32");
    mp_put_array(&embeds, 2);
    mp_put_u64(&embeds, 40);
    mp_put_u64(&embeds, 8);
    mp_put_u64(&embeds, 1);
    put_json(&sampling, "{\"max_tokens\":3}");
    w.prompt_embeds = (struct mp_span){(const uint8_t *)embeds.data, embeds.len};
    w.sampling = (struct mp_span){(const uint8_t *)sampling.data, sampling.len};
    stage_open(s);
    send_request(s, "a", &w);
    hear_finished(s, 1);
    send_request(s, "b", &w);
    hear_finished(s, 2);
    assert_int_equal(s->h.queries, 80);
    assert_int_equal(told_of(&s->h, "a")->n_tokens, 3);
    assert_int_equal(told_of(&s->h, "b")->cached, 0);
    vt_buf_free(&embeds);
    vt_buf_free(&sampling);
}

static void what_is_not_generation_is_an_error(void **state)
{
    uint32_t token[] = {1, 2, 3};
    struct wire_request w = {
        .prompt = token, .n_prompt = 3, .pooling = {(const uint8_t *)"\x90", 1}};
    struct stage *s = *state;

    stage_open(s);
    send_request(s, "pooling", &w);
    hear_finished(s, 1);
    assert_string_equal(told_of(&s->h, "pooling")->finish, "error");
}

static void a_request_may_be_aborted_as_it_comes(void **state)
{
    uint32_t token[] = {1, 2, 3};
    struct wire_request w = {
        .prompt = token,
        .n_prompt = 3,
        .sampling = {(const uint8_t *)"\x80", 1},
        .abort_immediately = true,
    };
    struct stage *s = *state;

    stage_open(s);
    send_request(s, "a", &w);
    hear_finished(s, 1);
    assert_string_equal(told_of(&s->h, "a")->finish, "abort");
    assert_int_equal(told_of(&s->h, "a")->n_tokens, 0);
}

/* ---- seeds ------------------------------------------------------------ */

static void ask_seeded(struct stage *s, const char *id, uint32_t prompt, int64_t seed)
{
    struct vt_frontend_request r = {
        .id = id,
        .prompt = prompt_of(prompt, 20),
        .n_prompt = 20,
        .max_tokens = 12,
        .temperature = 0.8,
        .has_seed = seed >= 0,
        .seed = seed,
    };

    add(s, 0, 0, &r);
}

static bool same_tokens(const struct told *a, const struct told *b)
{
    return a->n_tokens == b->n_tokens &&
           memcmp(a->token, b->token, a->n_tokens * sizeof(*a->token)) == 0;
}

static void a_seed_decides_the_tokens(void **state)
{
    struct stage *s = *state;

    stage_open(s);
    ask_seeded(s, "a", 1, 42);
    ask_seeded(s, "again", 1, 42);
    ask_seeded(s, "seed", 1, 43);
    ask_seeded(s, "prompt", 2, 42);
    hear_finished(s, 4);
    assert_true(same_tokens(told_of(&s->h, "a"), told_of(&s->h, "again")));
    assert_false(same_tokens(told_of(&s->h, "a"), told_of(&s->h, "seed")));
    assert_false(same_tokens(told_of(&s->h, "a"), told_of(&s->h, "prompt")));
}

static void without_temperature_a_prompt_has_one_answer(void **state)
{
    struct stage *s = *state;

    stage_open(s);
    ask(s, "a", 20, 12);
    ask(s, "b", 20, 12);
    ask(s, "c", 21, 12);
    hear_finished(s, 3);
    assert_true(same_tokens(told_of(&s->h, "a"), told_of(&s->h, "b")));
    assert_false(same_tokens(told_of(&s->h, "a"), told_of(&s->h, "c")));
}

/* Two runs of the engine: what has no seed of its own hangs on the engine's. */
static void the_engines_seed_decides_the_rest(void **state)
{
    struct stage *s = *state;

    for (int run = 0; run < 3; run++) {
        char id[16];

        s->c.seed = run == 2;
        stage_open(s);
        ask_seeded(s, "client-7", 1, -1);
        hear_finished(s, (uint32_t)run + 1);
        (void)snprintf(id, sizeof(id), "run%d", run);
        (void)snprintf(told_of(&s->h, "client-7")->id, 16, "%s", id);
        stage_end(s);
    }
    assert_true(same_tokens(told_of(&s->h, "run0"), told_of(&s->h, "run1")));
    assert_false(same_tokens(told_of(&s->h, "run0"), told_of(&s->h, "run2")));
}

/* ---- log probabilities ------------------------------------------------ */

/* [dtype, shape, bytes]: the bytes, inline or a frame of their own. */
static struct mp_span array_bytes(struct mp_in *in, const struct vt_frontend_message *m,
                                  const char *dtype, uint32_t rows, uint32_t cols)
{
    struct mp_span bytes;
    int type;

    assert_int_equal(mp_array(in), 3);
    assert_true(mp_span_is(mp_str(in), dtype));
    assert_int_equal(mp_array(in), cols > 0 ? 2 : 1);
    assert_int_equal(mp_u32(in), rows);
    if (cols > 0)
        assert_int_equal(mp_u32(in), cols);
    if (mp_peek(in) == MP_INT) {
        uint32_t i = mp_u32(in);

        assert_true(i >= 1 && i < m->n_frames);
        return (struct mp_span){m->frame[i].at, m->frame[i].len};
    }
    bytes = mp_ext(in, &type);
    assert_int_equal(type, 3);
    return bytes;
}

static void assert_logprobs(struct mp_span value, const struct vt_frontend_message *m,
                            const uint32_t *token, uint32_t rows, uint32_t k)
{
    struct mp_span ids, values, ranks;
    struct mp_in in;

    mp_in_init(&in, value.at, value.len);
    assert_int_equal(mp_array(&in), 4);
    ids = array_bytes(&in, m, "<i4", rows, k + 1);
    values = array_bytes(&in, m, "<f4", rows, k + 1);
    ranks = array_bytes(&in, m, "<i8", rows, 0);
    assert_true(mp_nil(&in));
    assert_null(in.bad);
    assert_int_equal(ids.len, 4 * rows * (k + 1));
    assert_int_equal(values.len, 4 * rows * (k + 1));
    assert_int_equal(ranks.len, 8 * rows);
    for (uint32_t r = 0; r < rows; r++) {
        uint32_t id;
        float first;
        int64_t rank;

        memcpy(&id, ids.at + (size_t)4 * r * (k + 1), 4);
        memcpy(&first, values.at + (size_t)4 * r * (k + 1), 4);
        memcpy(&rank, ranks.at + (size_t)8 * r, 8);
        assert_int_equal(id, token[r]);
        assert_true(first <= 0 && isfinite(first));
        assert_true(rank >= 1 && rank <= VOCABULARY);
    }
}

static struct wire_outputs read_message(const struct vt_frontend_message *m,
                                        struct vt_arena *a)
{
    struct wire_outputs o;
    struct vt_err err = {0};

    vt_arena_reset(a);
    assert_int_equal(wire_outputs_read(&o, a, m->frame[0].at, m->frame[0].len,
                                       (uint32_t)m->n_frames - 1, &err),
                     VT_OK);
    return o;
}

static void logprobs_come_with_every_token(void **state)
{
    struct stage *s = *state;
    struct vt_arena a = {0};

    stage_open(s);
    for (uint32_t k = 0; k <= 200; k += 100) {
        struct vt_frontend_request r = {
            .id = k == 0 ? "none" : "many",
            .prompt = prompt_of(1, 20),
            .n_prompt = 20,
            .max_tokens = 4,
            .has_logprobs = true,
            .logprobs = (int32_t)k,
        };
        char id[16];

        (void)snprintf(id, sizeof(id), "k%u", k);
        r.id = id;
        add(s, 0, 0, &r);
        while (told_of(&s->h, id) == NULL || told_of(&s->h, id)->finish[0] == '\0') {
            const struct vt_frontend_message *m = next(s);
            struct wire_outputs o = read_message(m, &a);

            if (o.n_outputs == 0)
                continue;
            assert_int_equal(o.output[0].n_tokens, 1);
            assert_logprobs(o.output[0].logprobs, m, o.output[0].token, 1, k);
            assert_true(mp_is_nil(o.output[0].prompt_logprobs));
        }
    }
    vt_arena_free(&a);
}

static const struct vt_frontend_message *next_output(struct stage *s)
{
    const struct vt_frontend_message *m;

    do
        m = next(s);
    while (m->n_outputs == 0);
    return m;
}

/* Rows for all tokens of the prompt but the first, with the first output only; the
 * prefix cache is not read, or they could not be computed. */
static void prompt_logprobs_come_with_the_first_output(void **state)
{
    static const struct {
        const char *line;
        uint32_t n_fields;
    } rows[] = {{"0.26", 4}, {"0.32", 5}};
    struct stage *s = *state;
    struct vt_arena a = {0};

    for (size_t i = 0; i < VT_COUNT(rows); i++) {
        struct vt_buf sampling = {0};
        struct wire_outputs o;
        struct mp_in in;
        const struct vt_frontend_message *m;

        s->c.line = vt_wire_line_find(rows[i].line);
        s->fc.line = s->c.line;
        stage_open(s);
        ask(s, rows[i].line, 40, 1);
        hear_finished(s, (uint32_t)(2 * i) + 1);
        put_json(&sampling, "{\"max_tokens\":2,\"prompt_logprobs\":3}");
        ask_with(s, i == 0 ? "a" : "b", 40, &sampling);
        vt_buf_free(&sampling);
        m = next_output(s);
        o = read_message(m, &a);
        assert_int_equal(o.n_outputs, 1);
        assert_int_equal(o.output[0].prefill.cached, 0);
        mp_in_init(&in, o.output[0].prompt_logprobs.at,
                   o.output[0].prompt_logprobs.len);
        assert_int_equal(mp_array(&in), rows[i].n_fields);
        assert_int_equal(array_bytes(&in, m, "int32", 39, 4).len, 39 * 4 * 4);
        assert_int_equal(array_bytes(&in, m, "float32", 39, 4).len, 39 * 4 * 4);
        assert_int_equal(array_bytes(&in, m, "int32", 39, 0).len, 39 * 4);
        o = read_message(next_output(s), &a);
        assert_true(mp_is_nil(o.output[0].prompt_logprobs));
        stage_end(s);
    }
    vt_arena_free(&a);
}

/* A whole vocabulary for every token of a long prompt is more than an engine could
 * send: the request fails, not the engine. */
static void too_many_logprobs_fail_the_request_alone(void **state)
{
    struct stage *s = *state;
    struct vt_buf sampling = {0};

    s->c.vocab_size = 200000;
    stage_open(s);
    put_json(&sampling, "{\"max_tokens\":2,\"prompt_logprobs\":-1}");
    ask_with(s, "huge", 1000, &sampling);
    vt_buf_free(&sampling);
    ask(s, "after", 8, 2);
    hear_finished(s, 2);
    assert_string_equal(told_of(&s->h, "huge")->finish, "error");
    assert_string_equal(told_of(&s->h, "after")->finish, "length");
}

/* ---- recorded tokens -------------------------------------------------- */

static void recorded_tokens_are_served_by_index(void **state)
{
    struct stage *s = *state;
    struct vt_out *o;
    struct vt_err err = {0};
    const struct told *t;
    char path[64];
    const char *text =
        "{\"prompt_tokens\":4,\"output_tokens\":3,\"ttft_ms\":1,\"itl_ms\":[1,1],"
        "\"arrival_ms\":0,\"output_token_ids\":[11,12,13],\"finish_reason\":\"length\"}"
        "\n"
        "{\"prompt_tokens\":4,\"output_tokens\":2,\"ttft_ms\":1,\"itl_ms\":[1],"
        "\"arrival_ms\":5,\"output_token_ids\":[21,22],\"finish_reason\":\"length\"}\n";

    (void)snprintf(path, sizeof(path), "%s/trace.jsonl", s->dir);
    assert_int_equal(vt_out_open(&o, path, &err), VT_OK);
    assert_int_equal(vt_out_write(o, text, strlen(text), &err), VT_OK);
    assert_int_equal(vt_out_commit(o, &err), VT_OK);
    s->c.replay_tokens = path;
    stage_open(s);
    ask(s, "replay-1", 4, 2);
    ask(s, "replay-0", 4, 3);
    ask(s, "nobody", 4, 3);
    hear_finished(s, 3);
    t = told_of(&s->h, "replay-0");
    assert_int_equal(t->n_tokens, 3);
    assert_true(t->token[0] == 11 && t->token[1] == 12 && t->token[2] == 13);
    t = told_of(&s->h, "replay-1");
    assert_true(t->n_tokens == 2 && t->token[0] == 21 && t->token[1] == 22);
    stage_stop(s);
    assert_int_equal(s->sum.matched, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PLAY_TEST(requests_end_where_they_must),
        PLAY_TEST(a_prompt_that_does_not_fit_is_an_error),
        PLAY_TEST(embeddings_are_as_many_tokens_as_rows),
        PLAY_TEST(what_is_not_generation_is_an_error),
        PLAY_TEST(a_request_may_be_aborted_as_it_comes),
        PLAY_TEST(a_seed_decides_the_tokens),
        PLAY_TEST(without_temperature_a_prompt_has_one_answer),
        PLAY_TEST(the_engines_seed_decides_the_rest),
        PLAY_TEST(logprobs_come_with_every_token),
        PLAY_TEST(prompt_logprobs_come_with_the_first_output),
        PLAY_TEST(too_many_logprobs_fail_the_request_alone),
        PLAY_TEST(recorded_tokens_are_served_by_index),
    };

    return cmocka_run_group_tests_name("play_tokens", tests, NULL, NULL);
}
