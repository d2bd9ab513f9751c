/* The tokenizer that needs no file. */
#include "testing.h"

static struct vt_tokenizer *tokenizer;

static int open_builtin(void **state)
{
    struct vt_err err;

    (void)state;
    return vt_tokenizer_builtin(&tokenizer, &err);
}

static int close_builtin(void **state)
{
    (void)state;
    vt_tokenizer_close(tokenizer);
    return 0;
}

static void comes_back(const char *text, size_t len)
{
    struct vt_ids ids = {0};
    struct vt_buf out = {0};
    struct vt_err err;

    if (vt_tokenizer_encode(tokenizer, text, len, VT_ENCODE_ADD_SPECIAL, &ids, &err))
        fail_msg("%s", err.msg);
    for (size_t i = 0; i < ids.n; i++)
        assert_true(ids.id[i] < vt_tokenizer_facts(tokenizer)->vocab_size);
    vt_tokenizer_decode(tokenizer, ids.id, ids.n, VT_KEEP_SPECIAL, &out);
    assert_int_equal(out.len, len);
    if (len > 0)
        assert_memory_equal(out.data, text, len);
    vt_ids_free(&ids);
    vt_buf_free(&out);
}

static size_t random_text(struct vt_rng *rng, char *out, size_t n)
{
    size_t len = 0;

    while (n-- > 0) {
        uint32_t c =
            (uint32_t)vt_rng_below(rng, vt_rng_below(rng, 2) ? 0x80 : 0x110000);

        if (c >= 0xd800 && c < 0xe000)
            continue;
        if (c < 0x80) {
            out[len++] = (char)c;
        } else if (c < 0x800) {
            out[len++] = (char)(0xc0 | c >> 6);
            out[len++] = (char)(0x80 | (c & 0x3f));
        } else if (c < 0x10000) {
            out[len++] = (char)(0xe0 | c >> 12);
            out[len++] = (char)(0x80 | (c >> 6 & 0x3f));
            out[len++] = (char)(0x80 | (c & 0x3f));
        } else {
            out[len++] = (char)(0xf0 | c >> 18);
            out[len++] = (char)(0x80 | (c >> 12 & 0x3f));
            out[len++] = (char)(0x80 | (c >> 6 & 0x3f));
            out[len++] = (char)(0x80 | (c & 0x3f));
        }
    }
    return len;
}

static void any_text_comes_back(void **state)
{
    char text[512];
    struct vt_rng rng;

    (void)state;
    comes_back("", 0);
    comes_back("\0\r\n\t \x7f", 6);
    comes_back("e\u0301 <|im_start|>x<|im_end|>", 26);
    vt_rng_init(&rng, 1, "texts");
    for (int i = 0; i < 2000; i++)
        comes_back(text, random_text(&rng, text, vt_rng_below(&rng, 128)));
}

static size_t count(const char *text)
{
    struct vt_ids ids = {0};
    struct vt_err err;
    size_t n;

    assert_int_equal(vt_tokenizer_encode(tokenizer, text, strlen(text), 0, &ids, &err),
                     VT_OK);
    n = ids.n;
    vt_ids_free(&ids);
    return n;
}

static void words_are_cut_from_the_front(void **state)
{
    (void)state;
    assert_int_equal(count("the"), 1);
    assert_int_equal(count(" the"), 1);
    assert_int_equal(count("The cat sat"), 3);
    assert_int_equal(count(" Hello"), 1);
    assert_int_equal(count(" remarkable"), 3); /* rem ark able */
    assert_int_equal(count(" {\"a\": 1}"), 7);
    assert_int_equal(count("1234567"), 3);
    assert_int_equal(count("        x"), 2);
    assert_int_equal(count("\u6771\u4eac\u00e9"), 3);
    assert_int_equal(count("\U0001f600"), 4);
    assert_int_equal(count("<|im_end|>"), 1);
}

/* Recorded prompts rely on it: a change here is a change of every id. */
static void ids_never_change(void **state)
{
    (void)state;
    assert_ids(tokenizer, "A", 0, "65");
    assert_ids(tokenizer, "Hello, world! 42", 0, "78486 44 83125 33 32 1370");
}

static void knows_chats(void **state)
{
    const struct vt_token_facts *f = vt_tokenizer_facts(tokenizer);
    const struct vt_chat_message m = {"user", "Hi"};
    const struct vt_chat_options options = {.add_generation_prompt = true};
    struct vt_buf out = {0};
    struct vt_err err;

    (void)state;
    assert_int_equal(f->n_special, 3);
    assert_int_equal(f->n_stop, 2);
    assert_string_equal(vt_tokenizer_token(tokenizer, f->stop[0], NULL),
                        "<|endoftext|>");
    assert_string_equal(vt_tokenizer_token(tokenizer, f->stop[1], NULL), "<|im_end|>");
    assert_int_equal(f->eos, f->stop[0]);
    assert_int_equal(vt_chat_render(tokenizer, &m, 1, &options, &out, &err), VT_OK);
    assert_string_equal(out.data,
                        "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n");
    vt_buf_free(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_text_comes_back),
        cmocka_unit_test(words_are_cut_from_the_front),
        cmocka_unit_test(ids_never_change),
        cmocka_unit_test(knows_chats),
    };

    return cmocka_run_group_tests_name("builtin", tests, open_builtin, close_builtin);
}
