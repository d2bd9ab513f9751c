#include "place.h"

#include "conform/replay.h"

/* ---- tokens ----------------------------------------------------------- */

static const uint32_t recorded[] = {5, 6, 7};
static const vt_ns gaps[] = {10 * VT_MS, 20 * VT_MS};
static const struct vt_record rec = {.id = "a",
                                     .ttft_ns = 30 * VT_MS,
                                     .prompt_tokens = 4,
                                     .output_tokens = 3,
                                     .n_gaps = 2,
                                     .gap = gaps,
                                     .token_id = recorded,
                                     .finish_reason = "stop"};

static struct row {
    const char *name;
    uint32_t token[4];
    uint32_t n;
    const char *finish;
    const char *want; /* NULL: nothing is wrong */
} rows[] = {
    {"the same", {5, 6, 7}, 3, "stop", NULL},
    {"another token", {5, 9, 7}, 3, "stop", "token 1 is 9, not 6"},
    {"a token less", {5, 6}, 2, "stop", "2 tokens, not 3"},
    {"a token more", {5, 6, 7, 8}, 4, "stop", "4 tokens, not 3"},
    {"another end", {5, 6, 7}, 3, "length", "ended by 'length', not 'stop'"},
};

static void tokens_are_compared(void **state)
{
    const struct row *w = *state;
    struct replay_case c = {.rec = &rec};
    struct replay r = {.c = &c, .n = 1};
    struct vt_err err;
    char why[100];

    assert_int_equal(replay_chunk(&r, &c, w->token, 1, NULL, 1, &err), VT_OK);
    assert_int_equal(r.n_done, 0);
    assert_int_equal(replay_chunk(&r, &c, w->token + 1, w->n - 1, w->finish, 2, &err),
                     VT_OK);
    assert_int_equal(r.n_done, 1);
    assert_int_equal(replay_differs(&c, why, sizeof(why)), w->want != NULL);
    if (w->want)
        assert_string_equal(why, w->want);
    free(c.token);
    free(c.chunk_ns);
    free(c.chunk_tokens);
}

/* ---- times ------------------------------------------------------------ */

/* Three chunks of a token each, at these times after the request. */
static void times_of(struct replay_times *t, const vt_ns *at, struct vt_tolerance allow)
{
    struct replay_case c = {.rec = &rec, .sent_ns = 100 * VT_MS};
    struct replay r = {.c = &c, .n = 1};
    struct vt_err err;

    for (int i = 0; i < 3; i++)
        assert_int_equal(replay_chunk(&r, &c, &recorded[i], 1, i == 2 ? "stop" : NULL,
                                      c.sent_ns + at[i], &err),
                         VT_OK);
    assert_int_equal(replay_times(t, &r, allow, &err), VT_OK);
    free(c.token);
    free(c.chunk_ns);
    free(c.chunk_tokens);
}

static void times_are_compared(void **state)
{
    const vt_ns exact[] = {30 * VT_MS, 40 * VT_MS, 60 * VT_MS};
    const vt_ns late[] = {33 * VT_MS, 43 * VT_MS, 73 * VT_MS};
    struct replay_times t;

    (void)state;
    times_of(&t, exact, (struct vt_tolerance){0, 0});
    assert_null(t.odd);
    assert_true(t.good);
    replay_times_end(&t);
    times_of(&t, late, (struct vt_tolerance){5, 9});
    assert_true(t.ttft.p50_ms == 3);
    assert_true(t.gap.p50_ms == 5);
    assert_true(t.gap.p99_ms > 9.8 && t.gap.p99_ms < 10);
    assert_false(t.good);
    replay_times_end(&t);
    times_of(&t, late, (struct vt_tolerance){5, 10});
    assert_true(t.good);
    replay_times_end(&t);
}

static void chunks_must_be_the_recorded_ones(void **state)
{
    struct replay_case c = {.rec = &rec};
    struct replay r = {.c = &c, .n = 1};
    struct replay_times t;
    struct vt_err err;

    (void)state;
    assert_int_equal(replay_chunk(&r, &c, recorded, 3, "stop", VT_MS, &err), VT_OK);
    assert_int_equal(replay_times(&t, &r, (struct vt_tolerance){1e6, 1e6}, &err),
                     VT_OK);
    assert_ptr_equal(t.odd, &c);
    assert_false(t.good);
    replay_times_end(&t);
    free(c.token);
    free(c.chunk_ns);
    free(c.chunk_tokens);
}

/* ---- programs --------------------------------------------------------- */

#define GOLDEN                                                             \
    "{\"meta\":{\"vllm_version\":\"0.26.0\"}}\n"                           \
    "{\"id\":\"a\",\"prompt_tokens\":2,\"output_tokens\":2,\"ttft_ms\":1," \
    "\"itl_ms\":[1],\"output_token_ids\":[5,6]}\n"                         \
    "{\"id\":\"b\",\"prompt_tokens\":2,\"output_tokens\":1,\"ttft_ms\":1," \
    "\"output_token_ids\":[5],\"finish_reason\":\"abort\"}\n"

static void check_with(const char *vtwin, const char *text, struct vt_conform *out)
{
    const struct vt_golden g = {.name = "g", .line = "0.26", .validated = true};
    const struct vt_conform_config config = {.vtwin = vtwin};
    struct judge j = {.conform = out, .config = &config, .golden = &g};
    struct golden_file f;
    struct vt_err err = {0};
    struct place p;

    place_begin(&p);
    assert_int_equal(golden_load(&f, place_put(&p, "g.jsonl", text), &err), VT_OK);
    assert_int_equal(check_tokens(&j, &f, &err), VT_OK);
    golden_free(&f);
    place_end(&p);
    assert_int_equal(out->n_rows, 1);
}

static void an_engine_that_ends_is_told(void **state)
{
    struct vt_conform c = {0};

    (void)state;
    check_with("/bin/false", GOLDEN, &c);
    assert_int_equal(c.row[0].result, VT_CHECK_FAILED);
    assert_string_equal(c.row[0].text,
                        "through our own frontend: vtwin play ended with status 1");
    vt_conform_free(&c);
}

static void what_it_said_last_is_told(void **state)
{
    struct vt_conform c = {0};

    (void)state;
    check_with("/bin/cat", GOLDEN, &c);
    assert_int_equal(c.row[0].result, VT_CHECK_FAILED);
    assert_non_null(strstr(c.row[0].text, "vtwin play ended with status 1: "));
    assert_null(strchr(c.row[0].text, '\n'));
    vt_conform_free(&c);
}

static void a_program_that_is_not_there_is_told(void **state)
{
    struct vt_conform c = {0};

    (void)state;
    check_with("/nowhere/vtwin", GOLDEN, &c);
    assert_string_equal(c.row[0].text, "through our own frontend: /nowhere/vtwin: No "
                                       "such file or directory");
    vt_conform_free(&c);
}

static void without_tokens_there_is_nothing_to_replay(void **state)
{
    struct vt_conform c = {0};

    (void)state;
    check_with("/bin/false",
               "{\"prompt_tokens\":2,\"output_tokens\":1,\"ttft_ms\":1}\n", &c);
    assert_int_equal(c.row[0].result, VT_CHECK_SKIPPED);
    assert_string_equal(c.row[0].text, "no request has output_token_ids");
    vt_conform_free(&c);
}

static void requests_that_were_aborted_are_left_out(void **state)
{
    const struct vt_golden g = {.name = "g", .line = "0.26"};
    const struct vt_conform_config config = {0};
    struct judge j = {.config = &config, .golden = &g};
    struct golden_file f;
    struct vt_err err = {0};
    struct replay r;
    struct place p;

    (void)state;
    place_begin(&p);
    assert_int_equal(golden_load(&f, place_put(&p, "g.jsonl", GOLDEN), &err), VT_OK);
    assert_int_equal(replay_begin(&r, &j, &f, &err), VT_OK);
    assert_int_equal(r.n, 1);
    assert_int_equal(r.n_left_out, 1);
    assert_int_equal(r.c[0].max_tokens, 2);
    assert_int_equal(r.vocab_size, 7);
    assert_int_equal(r.max_model_len, 4);
    replay_end(&r);
    golden_free(&f);
    place_end(&p);
}

int main(void)
{
    static const struct CMUnitTest more[] = {
        cmocka_unit_test(times_are_compared),
        cmocka_unit_test(chunks_must_be_the_recorded_ones),
        cmocka_unit_test(an_engine_that_ends_is_told),
        cmocka_unit_test(what_it_said_last_is_told),
        cmocka_unit_test(a_program_that_is_not_there_is_told),
        cmocka_unit_test(without_tokens_there_is_nothing_to_replay),
        cmocka_unit_test(requests_that_were_aborted_are_left_out),
    };
    struct CMUnitTest tests[VT_COUNT(rows)];
    int failed;

    for (size_t i = 0; i < VT_COUNT(rows); i++)
        tests[i] = (struct CMUnitTest){.name = rows[i].name,
                                       .test_func = tokens_are_compared,
                                       .initial_state = &rows[i]};
    failed = cmocka_run_group_tests_name("replay rows", tests, NULL, NULL);
    return failed + cmocka_run_group_tests_name("replay", more, NULL, NULL);
}
