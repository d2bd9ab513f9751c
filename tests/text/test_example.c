/* The example of docs/tokenizers.md. */
#include "testing.h"

static void the_example_is_true(void **state)
{
    const struct vt_chat_message chat[] = {{"user", "How many KV blocks fit?"}};
    const struct vt_chat_options options = {.add_generation_prompt = true};
    struct vt_buf prompt = {0};
    struct vt_tokenizer *t;
    struct vt_err err;

    (void)state;
    assert_int_equal(vt_tokenizer_open(&t, "tests/cases/tiny-qwen3", &err), VT_OK);
    assert_int_equal(vt_chat_render(t, chat, 1, &options, &prompt, &err), VT_OK);
    assert_string_equal(prompt.data,
                        "<|im_start|>user\nHow many KV blocks fit?<|im_end|>\n"
                        "<|im_start|>assistant\n");
    assert_ids(
        t, prompt.data, VT_ENCODE_PLAIN,
        "4090 1654 198 39 414 3187 828 1236 289 278 30 4091 198 4090 439 2615 198");
    vt_buf_free(&prompt);
    vt_tokenizer_close(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_example_is_true)};

    return cmocka_run_group_tests_name("example", tests, NULL, NULL);
}
