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
    {"keys must not be doubled, though Python would take them",
     "{\"model\": \"tiny\", \"prompt\": \"a\", \"prompt\": \"b\"}",
     "{'type': 'json_invalid', 'loc': ('body', 0), 'msg': 'JSON decode error', "
     "'input': "
     "{}, 'ctx': {'error': \"key 'prompt' appears twice\"}}",
     "{'type': 'json_invalid', 'loc': 'body.0', 'msg': 'JSON decode error', 'input': "
     "'<dict of 0 items>', 'ctx': {'error': \"key 'prompt' appears twice\"}}"},
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
    struct CMUnitTest tests[3 + VT_COUNT(rows)] = {
        cmocka_unit_test(names_errors_as_python_does),
        cmocka_unit_test(gives_up_on_endless_nesting),
        cmocka_unit_test(refuses_what_is_not_utf8),
    };

    for (size_t i = 0; i < VT_COUNT(rows); i++)
        tests[3 + i] = (struct CMUnitTest){.name = rows[i].name,
                                           .test_func = says_what_is_wrong,
                                           .initial_state = &rows[i]};
    return cmocka_run_group_tests_name("api_json", tests, open_tokenizer,
                                       close_tokenizer);
}
