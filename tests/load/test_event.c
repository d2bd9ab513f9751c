/* What is read of one event of a stream. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "load/client.h"

static struct row {
    const char *name, *json;
    bool fine, choice, says, usage, error;
    const char *text, *finish, *message;
    uint32_t prompt, output, cached;
} rows[] = {
    {.name = "a completion's chunk",
     .json =
         "{\"id\":\"cmpl-1\",\"object\":\"text_completion\",\"created\":1,\"model\":"
         "\"tiny\",\"choices\":[{\"index\":0,\"text\":\" the\",\"logprobs\":null,"
         "\"finish_reason\":null,\"stop_reason\":null}],\"usage\":null}",
     .fine = true,
     .choice = true,
     .says = true,
     .text = " the"},
    {.name = "a chat's role chunk says nothing",
     .json = "{\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":"
             "\"\"},\"finish_reason\":null}]}",
     .fine = true,
     .choice = true,
     .text = ""},
    {.name = "a chat's chunk and its end",
     .json = "{\"choices\":[{\"delta\":{\"content\":\"x\\n\\\"\"},\"finish_reason\":"
             "\"length\"}]}",
     .fine = true,
     .choice = true,
     .says = true,
     .text = "x\n\"",
     .finish = "length"},
    {.name = "reasoning is something to read",
     .json = "{\"choices\":[{\"delta\":{\"reasoning\":\"hm\"}}]}",
     .fine = true,
     .choice = true,
     .says = true,
     .text = ""},
    {.name = "and so is a tool call, unless there is none",
     .json = "{\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0}]}}]}",
     .fine = true,
     .choice = true,
     .says = true,
     .text = ""},
    {.name = "an empty list of tool calls",
     .json = "{\"choices\":[{\"delta\":{\"tool_calls\":[ ]}}]}",
     .fine = true,
     .choice = true,
     .text = ""},
    {.name = "the usage chunk has no choice",
     .json =
         "{\"choices\":[],\"usage\":{\"prompt_tokens\":64,\"total_tokens\":88,"
         "\"completion_tokens\":24,\"prompt_tokens_details\":{\"cached_tokens\":16}}}",
     .fine = true,
     .usage = true,
     .prompt = 64,
     .output = 24,
     .cached = 16},
    {.name = "usage before choices, white space, details null",
     .json =
         " { \"usage\" : { \"completion_tokens\" : 3 , \"prompt_tokens_details\" : "
         "null } , \"choices\" : [ { \"text\" : \"a\" } , { \"text\" : \"b\" } ] } ",
     .fine = true,
     .choice = true,
     .says = true,
     .usage = true,
     .text = "a",
     .output = 3},
    {.name = "an error is told",
     .json = "{\"error\":{\"message\":\"engine \\u00fc died\",\"code\":500}}",
     .fine = true,
     .error = true,
     .message = "engine \xc3\xbc died"},
    {.name = "an error that is null is none",
     .json = "{\"error\":null,\"choices\":[{\"text\":\"\"}]}",
     .fine = true,
     .choice = true,
     .text = ""},
    {.name = "keys within text are not keys",
     .json = "{\"choices\":[{\"text\":\"\\\"choices\\\":[],\\\"usage\\\":{}\"}]}",
     .fine = true,
     .choice = true,
     .says = true,
     .text = "\"choices\":[],\"usage\":{}"},
    {.name = "escapes and surrogates",
     .json = "{\"choices\":[{\"text\":\"\\ud83d\\ude00\\ud83d\\u0041\\\\\\/\\t\"}]}",
     .fine = true,
     .choice = true,
     .says = true,
     .text = "\xf0\x9f\x98\x80\xef\xbf\xbd"
             "A\\/\t"},
    {.name = "token ids and logprobs are stepped over",
     .json = "{\"choices\":[{\"logprobs\":{\"top\":[{\"]\":[[{}]]}]},\"text\":\"t\","
             "\"token_ids\":[1,2,3]}],\"x\":-1.5e3,\"y\":true}",
     .fine = true,
     .choice = true,
     .says = true,
     .text = "t"},
    {.name = "a count beyond 32 bits stays one",
     .json = "{\"choices\":[],\"usage\":{\"completion_tokens\":99999999999999999999}}",
     .fine = true,
     .usage = true,
     .output = UINT32_MAX},
    {.name = "no JSON", .json = "hello"},
    {.name = "a list", .json = "[1]"},
    {.name = "nothing", .json = ""},
    {.name = "cut off in a string", .json = "{\"choices\":[{\"text\":\"ab"},
    {.name = "cut off in a list", .json = "{\"choices\":[{\"text\":\"ab\"}"},
    {.name = "cut off in an escape", .json = "{\"choices\":[{\"text\":\"ab\\"},
    {.name = "more behind it", .json = "{\"choices\":[]} x"},
    {.name = "no value", .json = "{\"a\":}"},
};

static void check_text(struct span s, const char *want)
{
    struct vt_buf b = {0};

    load_unescape(&b, s);
    assert_int_equal(b.len, want ? strlen(want) : 0);
    if (want && b.len > 0)
        assert_memory_equal(b.data, want, b.len);
    vt_buf_free(&b);
}

/* In memory of its own, so that a read beyond the end is seen. */
static void reads(void **state)
{
    const struct row *r = *state;
    size_t len = strlen(r->json);
    char *copy = malloc(len > 0 ? len : 1);
    struct load_event e;

    assert_non_null(copy);
    memcpy(copy, r->json, len);
    assert_int_equal(load_event_scan(&e, copy, len), r->fine);
    if (r->fine) {
        assert_int_equal(e.choice, r->choice);
        assert_int_equal(e.says, r->says);
        assert_int_equal(e.usage, r->usage);
        assert_int_equal(e.error, r->error);
        assert_int_equal(e.prompt_tokens, r->prompt);
        assert_int_equal(e.output_tokens, r->output);
        assert_int_equal(e.cached_tokens, r->cached);
        check_text(e.text, r->text);
        check_text(e.finish, r->finish);
        check_text(e.message, r->message);
    }
    free(copy);
}

/* A good event cut anywhere is no event, and nothing is read beyond the cut. */
static void cut_anywhere_it_is_none(void **state)
{
    size_t len = strlen(rows[0].json);

    (void)state;
    for (size_t n = 0; n < len; n++) {
        char *copy = malloc(n > 0 ? n : 1);
        struct load_event e;

        assert_non_null(copy);
        memcpy(copy, rows[0].json, n);
        assert_false(load_event_scan(&e, copy, n));
        free(copy);
    }
}

int main(void)
{
    enum { N = VT_COUNT(rows) };
    struct CMUnitTest tests[N + 1];

    for (size_t i = 0; i < N; i++)
        tests[i] = (struct CMUnitTest){
            .name = rows[i].name, .test_func = reads, .initial_state = &rows[i]};
    tests[N] = (struct CMUnitTest)cmocka_unit_test(cut_anywhere_it_is_none);
    return cmocka_run_group_tests_name("event", tests, NULL, NULL);
}
