/* Broken JSON, against Python's json module (a table made by make_api_cases.py), and
 * what a client reads about it. */
#include "api_testing.h"
#include "http/api/api.h"

static void check_row(void *user, const struct vt_node *row)
{
    const struct vt_node *text = vt_get(row, "text");
    const char *want = text_of(row, "error"), *got;
    size_t at = 0;

    (void)user;
    got = api_py_json_error(text->u.str, text->n, &at);
    if ((want == NULL) != (got == NULL) ||
        (want != NULL && (strcmp(want, got) != 0 || (int64_t)at != int_of(row, "at"))))
        fail_msg("'%s': want %s at %d, got %s at %zu", text->u.str,
                 want != NULL ? want : "nothing", (int)int_of(row, "at"),
                 got != NULL ? got : "nothing", at);
}

static void names_errors_as_python_does(void **state)
{
    (void)state;
    assert_true(each_row(CASES "http/json-errors.jsonl.gz", check_row, NULL) > 800);
}

/* ---- texts that only Python reads ----------------------------------------- */

static void read_as_python(const struct vt_node *text, const char *want)
{
    struct vt_json_bounds b = {.values = UINT32_MAX, .python = true};
    struct vt_arena arena = {0};
    struct vt_buf got = {0};
    const struct vt_node *root;

    if (vt_json_parse_bounded(&arena, text->u.str, text->n, &b, &root, NULL) == VT_OK)
        api_py_repr(&got, root);
    if ((want == NULL) != (got.len == 0) ||
        (want != NULL && strcmp(want, got.data) != 0))
        fail_msg("'%.100s': want %.100s, got %.100s", text->u.str,
                 want != NULL ? want : "nothing", got.len > 0 ? got.data : "nothing");
    vt_buf_free(&got);
    vt_arena_free(&arena);
}

static void check_as_pydantic(const struct vt_node *body, const char *want)
{
    static const struct api_type in_64_bits = {.what = API_INT,
                                               .has_min = true,
                                               .has_max = true,
                                               .min = INT64_MIN,
                                               .max = INT64_MAX},
                                 from_minus_1 = {.what = API_INT,
                                                 .has_min = true,
                                                 .has_max = true,
                                                 .min = -1,
                                                 .max = INT64_MAX},
                                 share = {.what = API_REAL,
                                          .has_min = true,
                                          .has_max = true,
                                          .max = 2};
    static const struct api_field fields[] = {API_FIELD("whole", api_int_or_null),
                                              API_FIELD("real", api_real_or_null),
                                              API_FIELD("flag", api_bool_or_null),
                                              API_FIELD("text", api_str_or_null),
                                              API_FIELD("long", in_64_bits),
                                              API_FIELD("from_1", from_minus_1),
                                              API_FIELD("share", share),
                                              API_FIELD("ids", api_ints_or_null),
                                              {0}};
    struct vt_json_bounds b = {.values = UINT32_MAX, .python = true};
    const struct vt_node *root, *slot[256] = {NULL};
    struct api_error e = {0};
    struct vt_arena arena = {0};

    assert_int_equal(
        vt_json_parse_bounded(&arena, body->u.str, body->n, &b, &root, NULL), VT_OK);
    (void)api_fields_check(fields, root, API_LINE_026, slot, &e);
    if (strcmp(e.message, want) != 0)
        fail_msg("%.100s: want '%.300s', got '%.300s'", body->u.str, want, e.message);
    vt_arena_free(&arena);
}

static void check_value_row(void *user, const struct vt_node *row)
{
    (void)user;
    if (vt_get(row, "text"))
        read_as_python(vt_get(row, "text"), text_of(row, "repr"));
    else
        check_as_pydantic(vt_get(row, "body"), text_of(row, "said"));
}

static void reads_and_checks_numbers_as_python_and_pydantic_do(void **state)
{
    (void)state;
    assert_true(each_row(CASES "http/json-values.jsonl.gz", check_value_row, NULL) >
                180);
}

static void asks_for_more_tokens_than_64_bits_hold(void **state)
{
    static const struct {
        const char *body, *old, *new;
    } asked[] = {
        {"{\"prompt\": \"a\", \"max_tokens\": 18446744073709551616}",
         "max_tokens=18446744073709551616 cannot be greater than "
         "max_model_len=max_total_tokens=2048. Please request fewer output tokens.",
         "max_tokens=18446744073709551616 cannot be greater than max_model_len=2048. "
         "Please request fewer output tokens."},
        {"{\"prompt\": \"a\", \"max_tokens\": 9223372036854775808}",
         "max_tokens=9223372036854775808 cannot be greater than "
         "max_model_len=max_total_tokens=2048. Please request fewer output tokens.",
         "max_tokens=9223372036854775808 cannot be greater than max_model_len=2048. "
         "Please request fewer output tokens."},
        {"{\"prompt\": \"a\", \"max_tokens\": -18446744073709551616}",
         "max_tokens must be at least 1, got -18446744073709551616.",
         "max_tokens must be at least 1, got -18446744073709551616."},
        {"{\"prompt\": [5, 18446744073709551616]}",
         "Token id 18446744073709551616 is out of vocabulary",
         "Token id 18446744073709551616 is out of vocabulary"},
        {"{\"prompt\": \"a\", \"n\": 18446744073709551616}",
         "n must be at most 16384, got 18446744073709551616. To increase this limit, "
         "set the VLLM_MAX_N_SEQUENCES environment variable.",
         "n must be at most 16384, got 18446744073709551616. To increase this limit, "
         "set the VLLM_MAX_N_SEQUENCES environment variable."},
        {"{\"prompt\": \"a\", \"temperature\": NaN}",
         "temperature must be a finite number, got nan.",
         "temperature must be a finite number, got nan."},
    };
    const struct api_headers headers = {.content_type = "application/json"};

    (void)state;
    for (size_t i = 0; i < VT_COUNT(asked); i++)
        for (int line = API_LINE_026; line <= API_LINE_032; line++) {
            struct api_context c = context_of((enum api_line)line);
            const char *want = line == API_LINE_026 ? asked[i].old : asked[i].new;
            struct api_request r = {0};
            struct api_error e = {0};

            assert_false(api_read(&r, &c, API_COMPLETIONS, asked[i].body,
                                  strlen(asked[i].body), &headers, &e));
            assert_int_equal(e.status, 400);
            if (strncmp(e.message, want, strlen(want)) != 0)
                fail_msg("%s: %s", asked[i].body, e.message);
            vt_arena_free(&r.arena);
        }
}

static void takes_the_last_of_doubled_keys(void **state)
{
    static const char body[] =
        "{\"prompt\": \"a\", \"max_tokens\": 3, \"max_tokens\": 5}";
    const struct api_headers headers = {.content_type = "application/json"};
    struct api_context c = context_of(API_LINE_026);
    struct api_request r = {0};
    struct api_error e;

    (void)state;
    assert_true(
        api_read(&r, &c, API_COMPLETIONS, body, sizeof(body) - 1, &headers, &e));
    assert_int_equal(r.max_tokens, 5);
    vt_arena_free(&r.arena);
}

static void refuses_integers_that_python_gives_up_on(void **state)
{
    static char body[6000] = "{\"prompt\": \"a\", \"seed\": 1";
    const struct api_headers headers = {.content_type = "application/json"};
    struct api_context c = context_of(API_LINE_026);
    struct api_request r = {0};
    size_t n = strlen(body);
    struct api_error e;

    (void)state;
    memset(body + n, '0', 4300);
    body[n + 4300] = '}';
    assert_false(api_read(&r, &c, API_COMPLETIONS, body, n + 4301, &headers, &e));
    assert_int_equal(e.status, 400);
    assert_string_equal(e.message, "There was an error parsing the body");
    vt_arena_free(&r.arena);
}

static void gives_up_on_endless_nesting(void **state)
{
    static char deep[100000];
    size_t at;

    (void)state;
    memset(deep, '[', sizeof(deep));
    assert_string_equal(api_py_json_error(deep, sizeof(deep), &at),
                        "Nested too deeply");
}

static struct row {
    const char *name, *body, *old, *new;
} rows[] = {
    {"characters are counted, not bytes", "{\"\xc3\xa9\": \"\xc3\xa9\", x",
     "{'type': 'json_invalid', 'loc': ('body', 11), 'msg': 'JSON decode error', "
     "'input': "
     "{}, 'ctx': {'error': 'Expecting property name enclosed in double quotes'}}",
     "{'type': 'json_invalid', 'loc': 'body.11', 'msg': 'JSON decode error', 'input': "
     "'<dict of 0 items>', 'ctx': {'error': 'Expecting property name enclosed in "
     "double "
     "quotes'}}"},
    {"a byte order mark is passed over", "\xef\xbb\xbf[",
     "{'type': 'json_invalid', 'loc': ('body', 1), 'msg': 'JSON decode error', "
     "'input': "
     "{}, 'ctx': {'error': 'Expecting value'}}",
     "{'type': 'json_invalid', 'loc': 'body.1', 'msg': 'JSON decode error', 'input': "
     "'<dict of 0 items>', 'ctx': {'error': 'Expecting value'}}"},
    {"keys must hold no NUL, though Python would take them",
     "{\"prompt\": \"a\", \"a\\u0000\": 1}",
     "{'type': 'json_invalid', 'loc': ('body', 0), 'msg': 'JSON decode error', "
     "'input': "
     "{}, 'ctx': {'error': 'NUL in a key'}}",
     "{'type': 'json_invalid', 'loc': 'body.0', 'msg': 'JSON decode error', 'input': "
     "'<dict of 0 items>', 'ctx': {'error': 'NUL in a key'}}"},
};

static void says_what_is_wrong(void **state)
{
    const struct row *row = *state;
    const struct api_headers headers = {.content_type = "application/json"};
    struct api_request r = {0};
    struct api_error e;

    for (int line = API_LINE_026; line <= API_LINE_032; line++) {
        struct api_context c = context_of((enum api_line)line);
        const char *want = line == API_LINE_026 ? row->old : row->new;

        assert_false(api_read(&r, &c, API_COMPLETIONS, row->body, strlen(row->body),
                              &headers, &e));
        assert_int_equal(e.status, 400);
        assert_string_equal(e.type, "Bad Request");
        assert_memory_equal(e.message, "1 validation error:\n  ", 22);
        assert_string_equal(e.message + 22, want);
    }
    vt_arena_free(&r.arena);
}

static void refuses_what_is_not_utf8(void **state)
{
    static const char body[] = "{\"prompt\": \"\xff\"}";
    const struct api_headers headers = {.content_type = "application/json"};
    struct api_context c = context_of(API_LINE_026);
    struct api_request r = {0};
    struct api_error e;

    (void)state;
    assert_false(
        api_read(&r, &c, API_COMPLETIONS, body, sizeof(body) - 1, &headers, &e));
    assert_int_equal(e.status, 400);
    assert_string_equal(e.message, "There was an error parsing the body");
    vt_arena_free(&r.arena);
}

int main(void)
{
    enum { OTHERS = 7 };
    struct CMUnitTest tests[OTHERS + VT_COUNT(rows)] = {
        cmocka_unit_test(names_errors_as_python_does),
        cmocka_unit_test(reads_and_checks_numbers_as_python_and_pydantic_do),
        cmocka_unit_test(asks_for_more_tokens_than_64_bits_hold),
        cmocka_unit_test(takes_the_last_of_doubled_keys),
        cmocka_unit_test(refuses_integers_that_python_gives_up_on),
        cmocka_unit_test(gives_up_on_endless_nesting),
        cmocka_unit_test(refuses_what_is_not_utf8),
    };

    for (size_t i = 0; i < VT_COUNT(rows); i++)
        tests[OTHERS + i] = (struct CMUnitTest){.name = rows[i].name,
                                                .test_func = says_what_is_wrong,
                                                .initial_state = &rows[i]};
    return cmocka_run_group_tests_name("api_json", tests, open_tokenizer,
                                       close_tokenizer);
}
