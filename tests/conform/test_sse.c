#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "conform/sse.h"

static struct row {
    const char *name;
    const char *text;
    const char *want; /* chunks as text, or the message if bad */
    bool bad;
} rows[] = {
    {"tokens and an end",
     "data: {\"choices\":[{\"token_ids\":[1,2],\"finish_reason\":null}]}\n\n"
     "data: {\"choices\":[{\"token_ids\":[3],\"finish_reason\":\"length\"}]}\n\n"
     "data: [DONE]\n\n",
     "1 2 ;3 length;", false},
    {"carriage returns, comments and other fields",
     ": hi\r\nevent: x\r\ndata:{\"choices\":[{\"token_ids\":[7]}]}\r\n\r\n", "7 ;",
     false},
    {"a chunk without ids", "data: {\"choices\":[{\"text\":\"\"}]}\n", ";", false},
    {"usage has no choices", "data: {\"choices\":[],\"usage\":{}}\n", "", false},
    {"half a line is not read yet", "data: {\"choices\":[{\"token_ids\":[7]}]}", "",
     false},
    {"an error in the stream",
     "data: {\"error\":{\"message\":\"no engine\",\"code\":500}}\n",
     "the frontend reports: no engine", true},
    {"no JSON", "data: {\n", "the frontend's stream: line 1: unexpected end of text",
     true},
    {"no choices", "data: {}\n", "the frontend's stream: an event without choices",
     true},
    {"ids that are none", "data: {\"choices\":[{\"token_ids\":[-1]}]}\n",
     "the frontend's stream: a token id is not one", true},
    {"no list of ids", "data: {\"choices\":[{\"token_ids\":3}]}\n",
     "the frontend's stream: token_ids is not a list", true},
};

static int on_chunk(void *user, const struct sse_chunk *c, struct vt_err *err)
{
    struct vt_buf *b = user;

    (void)err;
    for (uint32_t i = 0; i < c->n_tokens; i++)
        vt_buf_printf(b, "%u ", c->token[i]);
    vt_buf_printf(b, "%s;", c->finish ? c->finish : "");
    return VT_OK;
}

/* The same whether it comes at once or byte by byte. */
static void reads(void **state)
{
    const struct row *r = *state;

    for (size_t step = 1; step <= 1000; step += 999) {
        struct vt_buf got = {0};
        struct sse s = {.on_chunk = on_chunk, .user = &got};
        struct vt_err err = {0};
        size_t len = strlen(r->text);
        int rc = VT_OK;

        for (size_t i = 0; i < len && rc == VT_OK; i += step)
            rc = sse_feed(&s, r->text + i, len - i < step ? len - i : step, &err);
        vt_buf_str(&got, "");
        assert_int_equal(rc, r->bad ? VT_EIO : VT_OK);
        assert_string_equal(r->bad ? err.msg : got.data ? got.data : "", r->want);
        assert_int_equal(s.done, strstr(r->text, "[DONE]") != NULL);
        sse_end(&s);
        vt_buf_free(&got);
    }
}

int main(void)
{
    struct CMUnitTest tests[VT_COUNT(rows)];

    for (size_t i = 0; i < VT_COUNT(rows); i++)
        tests[i] = (struct CMUnitTest){
            .name = rows[i].name, .test_func = reads, .initial_state = &rows[i]};
    return cmocka_run_group_tests_name("sse", tests, NULL, NULL);
}
