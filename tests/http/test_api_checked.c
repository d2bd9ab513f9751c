/* Thousands of bodies with a fault in one field or another, against what the request
 * classes of two vLLM lines answer: made by make_api_cases.py. */
#include "api_testing.h"

struct reader {
    struct api_context context;
    struct api_request request;
    unsigned refused;
};

/* Our messages end at some length, and theirs, in 0.26, do not. */
static bool is_cut(const struct api_error *e, const char *body, const char *want)
{
    size_t n = strlen(e->message);

    return n > sizeof(e->message) - 8 && strlen(want) > strlen(body) &&
           strncmp(body, want, n) == 0;
}

static void check_row(void *user, const struct vt_node *row)
{
    struct reader *t = user;
    const char *want = text_of(row, "body");
    const struct vt_node *text = vt_get(row, "request");
    const struct api_headers headers = {.content_type = "application/json"};
    struct vt_buf body = {0};
    struct api_error e = {.status = 200};

    vt_buf_str(&body, "");
    if (!api_read(&t->request, &t->context, kind_of(text_of(row, "path")), text->u.str,
                  text->n, &headers, &e)) {
        api_error_json(&body, &e);
        t->refused++;
    }
    if (e.status != int_of(row, "status") ||
        (strcmp(body.data, want) != 0 && !is_cut(&e, body.data, want)))
        fail_msg("%s %.300s\nwant %d %s\ngot  %d %s", text_of(row, "path"), text->u.str,
                 (int)int_of(row, "status"), want, e.status, body.data);
    vt_buf_free(&body);
}

static void check_file(const char *path, enum api_line line)
{
    struct reader t = {.context = context_of(line)};
    size_t n;

    t.context.find = any_model;
    n = each_row(path, check_row, &t);
    assert_true(n > 2500 && t.refused > 1500 && t.refused < n);
    vt_arena_free(&t.request.arena);
}

static void refuses_in_the_words_of_0_26(void **state)
{
    (void)state;
    check_file(CASES "http/checked-0.26.0.jsonl.gz", API_LINE_026);
}

static void refuses_in_the_words_of_0_32(void **state)
{
    (void)state;
    check_file(CASES "http/checked-0.32.0.jsonl.gz", API_LINE_032);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(refuses_in_the_words_of_0_26),
                                       cmocka_unit_test(refuses_in_the_words_of_0_32)};

    return cmocka_run_group_tests_name("api_checked", tests, open_tokenizer,
                                       close_tokenizer);
}
