/* Every allocation of opening a source, making replies and writing them is made to fail
 * in turn, once and for good. The only outcomes allowed are the right answer and
 * VT_ENOMEM (of writers: a failed buffer), and nothing may leak.
 *
 * This program replaces malloc, which sanitizers do too; under those it does nothing.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "http/out/out.h"

#include "../failing_malloc.h"

#if REPLACES_MALLOC

/* ---- one of everything ----------------------------------------------- */

static const char schema_text[] =
    "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"string\",\"pattern\":"
    "\"^(x|y)[a-f]{3}$\"},\"b\":{\"type\":\"string\",\"minLength\":40},\"c\":{\"type\":"
    "\"array\",\"items\":{\"type\":\"integer\"}}},\"required\":[\"a\",\"b\",\"c\"]}";
static const uint32_t ids[] = {2514, 1703, 528};
static const uint32_t stop_id[] = {7};
static const char *const stop[] = {"never to be found"};

enum what { WORDS, STOPS, ECHO, FORM, TOOLS, N_WHATS };

struct job {
    struct vt_tokenizer *t;
    const struct vt_node *schema;
    struct api_context context;
    struct api_prompt prompt;
    struct api_tool tool;
    struct vt_buf wanted[N_WHATS], got;
};

static struct api_request request_of(struct job *j, enum what what)
{
    struct api_request r = {.context = &j->context,
                            .kind = API_CHAT,
                            .model = "m",
                            .id = "i",
                            .prompt = &j->prompt,
                            .n_prompts = 1,
                            .n = 1,
                            .stream_interval = 1,
                            .max_tokens = what == STOPS ? 30 : 200,
                            .limited = true,
                            .skip_special = true,
                            .logprobs = what == STOPS ? 2 : -1,
                            .prompt_logprobs = -1};

    if (what == STOPS) {
        r.stop = stop;
        r.stop_id = stop_id;
        r.n_stop = r.n_stop_ids = 1;
    } else if (what == FORM) {
        r.format = API_JSON_SCHEMA;
        r.constraint = j->schema;
    } else if (what == TOOLS) {
        r.tool = &j->tool;
        r.n_tools = 1;
        r.tool_choice = API_TOOLS_REQUIRED;
    }
    return r;
}

static int write_reply(struct job *j, struct api_request *r, const struct reply *reply)
{
    struct out_choice c = {.reply = reply};

    vt_buf_clear(&j->got);
    out_whole(&j->got, r, &c, 1);
    r->stream = true;
    if (!out_begin(r, &c))
        return VT_ENOMEM;
    for (uint32_t i = 1; i <= reply->n; i++)
        out_tokens(&j->got, r, &c, i, &c, 1);
    out_done(&j->got, r, &c, 1);
    return j->got.failed ? VT_ENOMEM : VT_OK;
}

static int make_and_write(struct job *j, enum what what)
{
    struct vt_serve_config config = {
        .tokenizer = j->t, .answers = what == ECHO ? VT_ANSWER_ECHO : VT_ANSWER_RANDOM};
    struct api_request r = request_of(j, what);
    struct reply_source *s;
    struct reply_batch *b;
    struct reply reply;
    int rc = reply_source_open(&s, &config, NULL);

    if (rc != VT_OK)
        return rc;
    rc = reply_batch_open(&b, s, &r, NULL);
    if (rc == VT_OK)
        rc = reply_make(&reply, b, 0, 0, 1, NULL);
    reply_batch_close(b);
    if (rc == VT_OK)
        rc = write_reply(j, &r, &reply);
    vt_arena_free(&r.arena);
    reply_source_close(s);
    return rc;
}

/* ---- failing --------------------------------------------------------- */

static void check_failure(struct job *j, enum what what)
{
    const struct vt_buf *wanted = &j->wanted[what];
    long before;
    int rc;

    vt_buf_free(&j->got);
    j->got = (struct vt_buf){0};
    before = live;
    rc = make_and_write(j, what);
    fail_at = 0;
    if (rc == VT_OK) {
        assert_int_equal(j->got.len, wanted->len);
        assert_memory_equal(j->got.data, wanted->data, wanted->len);
    } else {
        assert_int_equal(rc, VT_ENOMEM);
    }
    vt_buf_free(&j->got);
    j->got = (struct vt_buf){0};
    assert_int_equal(live, before);
}

static void fail_each(struct job *j, enum what what)
{
    long n;

    calls = 0;
    assert_int_equal(make_and_write(j, what), VT_OK);
    n = calls;
    j->wanted[what] = j->got;
    j->got = (struct vt_buf){0};
    assert_true(n > 5 && n < 100000);
    for (long i = 1; i <= n; i++) {
        for (int good = 0; good < 2; good++) {
            calls = 0;
            fail_at = i;
            for_good = good;
            check_failure(j, what);
        }
    }
    vt_buf_free(&j->wanted[what]);
}

static void no_allocation_is_taken_for_granted(void **state)
{
    struct job j = {.prompt = {ids, 3, "hi there you", 12}};
    struct vt_arena a = {0};

    (void)state;
    assert_int_equal(vt_tokenizer_open(&j.t, VT_TEST_DIR "/cases/tiny-qwen3", NULL),
                     VT_OK);
    assert_int_equal(
        vt_json_parse(&a, schema_text, sizeof(schema_text) - 1, 1, &j.schema, NULL),
        VT_OK);
    j.context = (struct api_context){
        .tokenizer = j.t, .line = API_LINE_032, .fingerprint = "f"};
    j.tool = (struct api_tool){"f", j.schema};
    for (int what = 0; what < N_WHATS; what++)
        make_and_write(&j, (enum what)what); /* words that encode() remembers */
    for (int what = 0; what < N_WHATS; what++)
        fail_each(&j, (enum what)what);
    vt_arena_free(&a);
    vt_tokenizer_close(j.t);
}

#else

static void no_allocation_is_taken_for_granted(void **state)
{
    (void)state;
    skip();
}

#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_allocation_is_taken_for_granted),
    };

    return cmocka_run_group_tests_name("reply_nomem", tests, NULL, NULL);
}
