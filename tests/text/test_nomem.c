/* Every allocation of opening, encoding, decoding and rendering is made to fail in
 * turn, once and for good. The only outcomes allowed are the right answer and
 * VT_ENOMEM, and nothing may leak.
 *
 * This program replaces malloc, which sanitizers do too; under those it does nothing.
 */
#include "testing.h"

#include "../failing_malloc.h"

#if REPLACES_MALLOC

/* One of everything that allocates: NFC, an added token of each kind, two steps, a
 * template, a chat. */
static const char json[] =
    "{\"normalizer\":{\"type\":\"NFC\"},\"model\":{\"ignore_merges\":true,\"vocab\":"
    "{\"a\":0,\"b\":1,\"c\":2,\"ab\":3,\"abc\":4,\"\u0120\":5,\"\u00c3\":6,\"\u00a9\":"
    "7},"
    "\"merges\":[\"a b\",[\"ab\",\"c\"]]},\"added_tokens\":[{\"content\":\"<x>\","
    "\"special\":true},{\"content\":\"e\u0301\u0301\",\"normalized\":true},"
    "{\"content\":\"bb\",\"single_word\":true}],\"pre_tokenizer\":{\"type\":"
    "\"Sequence\","
    "\"pretokenizers\":[{\"type\":\"Digits\"},{\"type\":\"ByteLevel\"}]},"
    "\"post_processor\":{\"type\":\"TemplateProcessing\",\"single\":[{\"SpecialToken\":"
    "{\"id\":\"B\"}},{\"Sequence\":{\"id\":\"A\"}}],\"special_tokens\":{\"B\":{\"ids\":"
    "[2]}}}}";
static const char config[] =
    "{\"eos_token\":\"<x>\",\"chat_template\":\"{{ '<|im_start|>system\\\\nS"
    "<|im_end|>\\\\n' }}{{ '<|im_start|>' + message.role + '\\\\n'"
    " + message.content + '<|im_end|>\\\\n' }}\"}";
static const char text[] =
    "abcab<x> e\u0301\u0301 \u00e9bb\u00e9 bb "
    "abcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabcabc";

static int use(const struct vt_tokenizer *t, struct vt_err *err)
{
    const struct vt_chat_message m = {"user", "Hi"};
    const struct vt_chat_options options = {0};
    struct vt_detokenizer d = {.tokenizer = t};
    struct vt_ids ids = {0};
    struct vt_buf out = {0};
    int rc =
        vt_tokenizer_encode(t, text, strlen(text), VT_ENCODE_ADD_SPECIAL, &ids, err);

    if (rc == VT_OK) {
        assert_true(ids.n > 8);
        vt_tokenizer_decode(t, ids.id, ids.n, VT_SKIP_SPECIAL, &out);
        vt_detokenizer_add(&d, ids.id[0], &out);
        rc = out.failed ? VT_ENOMEM : vt_chat_render(t, &m, 1, &options, &out, err);
    }
    vt_detokenizer_free(&d);
    vt_buf_free(&out);
    vt_ids_free(&ids);
    return rc;
}

static int from_json(struct vt_err *err)
{
    const struct vt_tokenizer_texts texts = {
        .tokenizer = json,
        .tokenizer_len = sizeof(json) - 1,
        .config = config,
        .config_len = sizeof(config) - 1,
    };
    struct vt_tokenizer *t;
    int rc = vt_tokenizer_from(&t, &texts, err);

    if (rc == VT_OK)
        rc = use(t, err);
    vt_tokenizer_close(t);
    return rc;
}

static void every_allocation_may_fail(void **state)
{
    struct vt_err err = {0};
    bool done = false;

    (void)state;
    if (from_json(&err) != VT_OK)
        fail_msg("%s", err.msg);
    for (int both = 0; both < 2; both++, done = false)
        for (long at = 1; !done; at++) {
            long before = live;
            int rc;

            for_good = both;
            calls = 0;
            fail_at = at;
            rc = from_json(&err);
            done = calls < at;
            fail_at = 0;
            if (rc != VT_OK && rc != VT_ENOMEM)
                fail_msg("allocation %ld: %s", at, err.msg);
            assert_int_equal(live, before);
        }
}

static void encoding_fails_cleanly(void **state)
{
    const struct vt_tokenizer_texts texts = {.tokenizer = json,
                                             .tokenizer_len = sizeof(json) - 1};
    struct vt_ids ids = {0}, again = {0};
    struct vt_tokenizer *t;
    struct vt_err err;
    int rc = VT_ENOMEM;

    (void)state;
    assert_int_equal(vt_tokenizer_from(&t, &texts, &err), VT_OK);
    assert_int_equal(vt_tokenizer_encode(t, text, strlen(text), 0, &ids, &err), VT_OK);
    for (long at = 1; rc != VT_OK; at++) {
        again.n = 0;
        calls = 0;
        for_good = false;
        fail_at = at;
        rc = vt_tokenizer_encode(t, text, strlen(text), 0, &again, &err);
        fail_at = 0;
        assert_int_equal(rc == VT_OK ? again.n : ids.n, ids.n);
        assert_true(rc == VT_OK || (rc == VT_ENOMEM && again.n == 0));
    }
    assert_memory_equal(ids.id, again.id, ids.n * sizeof(*ids.id));
    vt_ids_free(&ids);
    vt_ids_free(&again);
    vt_tokenizer_close(t);
}

#else

static void every_allocation_may_fail(void **state)
{
    (void)state;
    skip();
}

static void encoding_fails_cleanly(void **state)
{
    (void)state;
    skip();
}

#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(encoding_fails_cleanly),
    };

    return cmocka_run_group_tests_name("nomem", tests, NULL, NULL);
}
