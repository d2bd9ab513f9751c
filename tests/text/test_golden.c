/* Texts and ids that the Python package `tokenizers` gave: tests/cases/tokenizer, made
 * by compare_tokenizers.py --golden. */
#include "testing.h"

#define CASES VT_TEST_DIR "/cases/"

static struct row {
    const char *name, *tokenizer, *golden;
} rows[] = {
    {"Qwen 3", CASES "tiny-qwen3", CASES "tokenizer/qwen3.jsonl"},
    {"GPT-2", CASES "tokenizer/gpt2.json", CASES "tokenizer/gpt2.jsonl"},
    {"Llama 3", CASES "tokenizer/llama3.json", CASES "tokenizer/llama3.jsonl"},
};

static void compare_ids(const struct vt_tokenizer *t, const struct vt_node *text,
                        unsigned flags, const struct vt_node *want, unsigned line)
{
    struct vt_ids ids = {0};
    struct vt_err err;

    if (!want)
        return;
    if (vt_tokenizer_encode(t, text->u.str, text->n, flags, &ids, &err) != VT_OK)
        fail_msg("line %u: %s", line, err.msg);
    for (size_t i = 0; i < ids.n && i < want->n; i++)
        if (ids.id[i] != want->u.item[i].u.integer)
            fail_msg("line %u, flags %u: id %zu is %u, not %lld", line, flags, i,
                     (unsigned)ids.id[i], (long long)want->u.item[i].u.integer);
    assert_int_equal(ids.n, want->n);
    vt_ids_free(&ids);
}

static void compare_text(const struct vt_tokenizer *t, const struct vt_node *row,
                         const struct vt_node *text)
{
    const struct vt_node *list = vt_get(row, "ids"), *decoded = vt_get(row, "decoded");
    uint32_t *id = calloc(list->n + 1, sizeof(*id));
    struct vt_buf whole = {0}, streamed = {0};
    struct vt_detokenizer d = {.tokenizer = t, .special = VT_SKIP_SPECIAL};

    assert_non_null(id);
    for (uint32_t i = 0; i < list->n; i++) {
        id[i] = (uint32_t)list->u.item[i].u.integer;
        vt_detokenizer_add(&d, id[i], &streamed);
    }
    vt_detokenizer_end(&d, &streamed);
    vt_tokenizer_decode(t, id, list->n, VT_SKIP_SPECIAL, &whole);
    if (!decoded)
        decoded = text;
    assert_int_equal(whole.len, decoded->n);
    assert_int_equal(streamed.len, decoded->n);
    if (whole.len > 0) {
        assert_memory_equal(whole.data, decoded->u.str, decoded->n);
        assert_memory_equal(streamed.data, decoded->u.str, decoded->n);
    }
    vt_detokenizer_free(&d);
    vt_buf_free(&whole);
    vt_buf_free(&streamed);
    free(id);
}

static void compare_row(const struct vt_tokenizer *t, const char *line, size_t len,
                        unsigned number)
{
    struct vt_arena a = {0};
    const struct vt_node *row, *text;
    struct vt_err err;

    assert_int_equal(vt_json_parse(&a, line, len, number, &row, &err), VT_OK);
    text = vt_get(row, "text");
    assert_non_null(text);
    compare_ids(t, text, VT_ENCODE_PLAIN, vt_get(row, "ids"), number);
    compare_ids(t, text, VT_ENCODE_ADD_SPECIAL, vt_get(row, "with_special"), number);
    compare_ids(t, text, VT_ENCODE_SPECIAL_AS_TEXT, vt_get(row, "special_as_text"),
                number);
    compare_text(t, row, text);
    vt_arena_free(&a);
}

static void same_as_tokenizers(void **state)
{
    const struct row *r = *state;
    struct vt_tokenizer *t;
    struct vt_lines *lines;
    struct vt_err err;
    unsigned n = 0;
    char *line;
    size_t len;

    if (vt_tokenizer_open(&t, r->tokenizer, &err) != VT_OK)
        fail_msg("%s", err.msg);
    assert_int_equal(vt_lines_open(&lines, r->golden, &err), VT_OK);
    while (vt_lines_next(lines, &line, &len, NULL, &err) == VT_OK && line)
        compare_row(t, line, len, ++n);
    assert_int_equal(n, 62);
    vt_lines_close(lines);
    vt_tokenizer_close(t);
}

ROWS(rows, same_as_tokenizers, "golden")
