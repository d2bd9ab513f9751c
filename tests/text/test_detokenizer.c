/* Text as it is streamed: held back while the last character may still be completed. */
#include "testing.h"

/* Ids are bytes: 0xe4 is id 0xe4, and a few tokens of more. */
enum { SPACE_F0_9F = 256, SPECIAL = 257, FFFD = 258 };

static struct row {
    const char *name;
    enum vt_decode_special special;
    uint32_t id[8];
    size_t n;
    const char *want; /* what came behind each id, '|' between, and what the end gave */
} rows[] = {
    {"plain letters come at once", VT_KEEP_SPECIAL, {'a', 'b'}, 2, "a|b|"},
    {"a character comes when it is whole",
     VT_KEEP_SPECIAL,
     {0xe4, 0xb8, 0xad},
     3,
     "||\u4e2d|"},
    {"text before an open character waits with it",
     VT_KEEP_SPECIAL,
     {'a', SPACE_F0_9F, 0x98, 0x80},
     4,
     "a||| \U0001f600|"},
    {"what cannot be completed comes with the next text",
     VT_KEEP_SPECIAL,
     {0xe4, 'x'},
     2,
     "|\uFFFDx|"},
    {"bytes that start nothing wait for it as well",
     VT_KEEP_SPECIAL,
     {0xff, 0xfe, 'x'},
     3,
     "||\uFFFD\uFFFDx|"},
    {"the end gives what was held",
     VT_KEEP_SPECIAL,
     {'a', 0xe4, 0xb8},
     3,
     "a|||\uFFFD"},
    {"a replacement character of the model itself waits too",
     VT_KEEP_SPECIAL,
     {FFFD, 'x'},
     2,
     "|\uFFFDx|"},
    {"special tokens are text", VT_KEEP_SPECIAL, {'a', SPECIAL}, 2, "a|<s>|"},
    {"or nothing", VT_SKIP_SPECIAL, {'a', SPECIAL, 'b'}, 3, "a||b|"},
    {"even inside a character", VT_SKIP_SPECIAL, {0xc3, SPECIAL, 0xa9}, 3, "||\u00e9|"},
    {"ids that are no tokens are nothing",
     VT_KEEP_SPECIAL,
     {'a', 9999, 'b'},
     3,
     "a||b|"},
    {"no ids", VT_KEEP_SPECIAL, {0}, 0, ""},
};

static struct vt_tokenizer *tokenizer;

/* The byte-level spelling, written down once more. */
static unsigned spelling(unsigned byte)
{
    if ((byte > 0x20 && byte < 0x7f) || (byte > 0xa0 && byte != 0xad))
        return byte;
    return byte <= 0x20 ? 0x100 + byte : byte == 0xad ? 0x143 : 0x121 + byte - 0x7f;
}

static int make_tokenizer(void **state)
{
    struct vt_buf b = {0};

    (void)state;
    vt_buf_str(&b, "{\"model\":{\"vocab\":{");
    for (unsigned i = 0; i < 256; i++)
        vt_buf_printf(&b, "\"\\u%04x\":%u,", spelling(i), i);
    vt_buf_str(&b, "\"\u0120\u00f0\u0141\":256,\"<s>\":257,\"\u00ef\u00bf\u00bd\":258},"
                   "\"merges\":[]},\"pre_tokenizer\":{\"type\":\"ByteLevel\"},"
                   "\"added_tokens\":[{\"content\":\"<s>\",\"special\":true}]}");
    tokenizer = open_json(b.data);
    vt_buf_free(&b);
    return 0;
}

static int close_tokenizer(void **state)
{
    (void)state;
    vt_tokenizer_close(tokenizer);
    return 0;
}

static void streams(void **state)
{
    const struct row *r = *state;
    struct vt_detokenizer d = {.tokenizer = tokenizer, .special = r->special};
    struct vt_buf out = {0}, whole = {0}, joined = {0};

    vt_buf_str(&out, "");
    for (size_t i = 0; i < r->n; i++) {
        vt_detokenizer_add(&d, r->id[i], &out);
        vt_buf_char(&out, '|');
    }
    vt_detokenizer_end(&d, &out);
    assert_string_equal(out.data, r->want);

    vt_tokenizer_decode(tokenizer, r->id, r->n, r->special, &whole);
    for (size_t i = 0; i < out.len; i++)
        if (out.data[i] != '|')
            vt_buf_char(&joined, out.data[i]);
    assert_int_equal(whole.len, joined.len);
    if (whole.len > 0)
        assert_memory_equal(whole.data, joined.data, whole.len);
    vt_detokenizer_free(&d);
    vt_buf_free(&out);
    vt_buf_free(&whole);
    vt_buf_free(&joined);
}

int main(void)
{
    struct CMUnitTest tests[VT_COUNT(rows)];

    for (size_t i = 0; i < VT_COUNT(rows); i++)
        tests[i] = (struct CMUnitTest){
            .name = rows[i].name, .test_func = streams, .initial_state = &rows[i]};
    return cmocka_run_group_tests_name("detokenizer", tests, make_tokenizer,
                                       close_tokenizer);
}
