/* Every request of the recordings, read as the real Python frontends of two vLLM lines
 * read it: what they refused is refused byte for byte, what they took has the prompt
 * tokens, choices and lengths that they then reported. */
#include <stdlib.h>

#include "api_testing.h"

struct reader {
    struct api_context context;
    struct api_request request;
    unsigned refused, taken;
};

static void check_refusal(const struct vt_node *row, const struct api_error *e)
{
    struct vt_buf body = {0};

    assert_int_equal(e->status, int_of(row, "status"));
    api_error_json(&body, e);
    assert_string_equal(body.data, text_of(row, "body"));
    vt_buf_free(&body);
}

static uint64_t prompt_tokens(const struct api_request *r)
{
    uint64_t n = 0;

    for (uint32_t i = 0; i < r->n_prompts; i++)
        n += r->prompt[i].n;
    return n;
}

static void check_id(const struct vt_node *row, const char *want,
                     const struct api_request *r)
{
    const char *given = text_of(row, "request_id");
    size_t head = strcspn(want, "-_") + 1;

    assert_memory_equal(r->id, want, head);
    if (given != NULL)
        assert_string_equal(r->id + head, given);
    else
        assert_int_equal(strlen(r->id), strlen(want));
    assert_int_equal(strspn(r->id + head, "0123456789abcdef"),
                     given != NULL ? strspn(given, "0123456789abcdef") : 16);
}

/* The whole body of an answer that was not streamed. */
static void check_answer(const struct vt_node *row, const struct vt_node *body,
                         const struct api_request *r)
{
    const struct vt_node *usage = vt_get(body, "usage");
    const struct vt_node *choices = vt_get(body, "choices");
    int64_t in = int_of(usage, "prompt_tokens"),
            out = int_of(usage, "completion_tokens");
    bool all_long = true;

    check_id(row, text_of(body, "id"), r);
    assert_string_equal(text_of(body, "model"), r->model);
    if (in < 0) {
        in = int_of(usage, "input_tokens");
        out = int_of(usage, "output_tokens");
    }
    assert_int_equal(prompt_tokens(r), in);
    if (choices == NULL) {
        assert_int_equal(out, r->max_tokens);
        return;
    }
    assert_int_equal(choices->n, r->n * r->n_prompts);
    for (uint32_t i = 0; i < choices->n; i++) {
        const char *why = text_of(&choices->u.item[i], "finish_reason");

        all_long = all_long && why != NULL && strcmp(why, "length") == 0;
        assert_int_equal(vt_get(&choices->u.item[i], "token_ids")->kind == VT_LIST,
                         r->return_token_ids);
    }
    if (all_long)
        assert_int_equal(out, (int64_t)r->max_tokens * r->n * r->n_prompts);
}

/* Of a stream: the id, the usage at its end, and how many choices there were. */
static void check_stream(const struct vt_node *row, const struct api_request *r)
{
    const char *p = text_of(row, "body");
    struct vt_arena arena = {0};
    int64_t choices = 0;
    bool usage = false;

    assert_true(r->stream);
    for (; (p = strstr(p, "data: {")) != NULL; p++) {
        const char *end = strstr(p, "\n\n");
        const struct vt_node *chunk, *choice;
        struct vt_err err;

        assert_non_null(end);
        vt_arena_reset(&arena);
        if (vt_json_parse(&arena, p + 6, (size_t)(end - p - 6), 1, &chunk, &err) !=
            VT_OK)
            fail_msg("%s", err.msg);
        check_id(row, text_of(chunk, "id"), r);
        choice = vt_get(chunk, "choices");
        if (choice->n > 0 && int_of(&choice->u.item[0], "index") >= choices)
            choices = int_of(&choice->u.item[0], "index") + 1;
        if (vt_get(chunk, "usage") == NULL)
            continue;
        usage = true;
        assert_int_equal(int_of(vt_get(chunk, "usage"), "prompt_tokens"),
                         prompt_tokens(r));
        assert_true(choice->n == 0 ? r->include_usage : r->continuous_usage);
    }
    assert_int_equal(choices, r->n * r->n_prompts);
    assert_int_equal(usage, r->include_usage);
    vt_arena_free(&arena);
}

static void check_row(void *user, const struct vt_node *row)
{
    struct reader *t = user;
    const struct vt_node *text = vt_get(row, "request"), *body;
    struct api_headers headers = {.content_type = text_of(row, "type"),
                                  .request_id = text_of(row, "request_id"),
                                  .traceparent = text_of(row, "traceparent")};
    struct vt_arena arena = {0};
    struct api_error e;
    struct vt_err err;

    print_message("%s\n", text_of(row, "name"));
    if (!api_read(&t->request, &t->context, kind_of(text_of(row, "path")), text->u.str,
                  text->n, &headers, &e)) {
        check_refusal(row, &e);
        t->refused++;
        return;
    }
    t->taken++;
    assert_int_equal(int_of(row, "status"), 200);
    if (headers.traceparent != NULL)
        assert_string_equal(t->request.traceparent, headers.traceparent);
    if (vt_json_parse(&arena, text_of(row, "body"), strlen(text_of(row, "body")), 1,
                      &body, &err) == VT_OK) {
        assert_false(t->request.stream);
        check_answer(row, body, &t->request);
    } else {
        check_stream(row, &t->request);
    }
    vt_arena_free(&arena);
}

static void check_file(const char *path, enum api_line line, unsigned refused)
{
    struct reader t = {.context = context_of(line)};
    size_t n = each_row(path, check_row, &t);

    assert_int_equal(t.refused, refused);
    assert_int_equal(t.refused + t.taken, n);
    vt_arena_free(&t.request.arena);
}

static void reads_as_0_26_does(void **state)
{
    (void)state;
    check_file(CASES "http/recorded-0.26.0.jsonl.gz", API_LINE_026, 24);
}

static void reads_as_0_32_does(void **state)
{
    (void)state;
    check_file(CASES "http/recorded-0.32.0.jsonl.gz", API_LINE_032, 23);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(reads_as_0_26_does),
                                       cmocka_unit_test(reads_as_0_32_does)};

    return cmocka_run_group_tests_name("api_recorded", tests, open_tokenizer,
                                       close_tokenizer);
}
