/* fuzz_tokenizer.c - tokenizer files and texts. Up to three parts, a NUL between them:
 * tokenizer.json, tokenizer_config.json, a text; an empty first part is the built-in
 * tokenizer. What opens must encode any text, and decode ids the same way at once and
 * token by token. */
#include "text/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define REQUIRE(x) ((x) ? (void)0 : fail(#x, __LINE__))

static _Noreturn void fail(const char *what, int line)
{
    fprintf(stderr, "fuzz_tokenizer.c:%d: %s\n", line, what);
    abort();
}

struct part {
    const char *text;
    size_t len;
};

static struct part next_part(const char **p, const char *end)
{
    const char *nul = *p < end ? memchr(*p, '\0', (size_t)(end - *p)) : NULL;
    struct part part = {*p, (size_t)((nul ? nul : end) - *p)};

    *p = nul ? nul + 1 : end;
    return part;
}

static void decode(const struct vt_tokenizer *t, const struct vt_ids *ids)
{
    struct vt_detokenizer d = {.tokenizer = t};
    struct vt_buf whole = {0}, streamed = {0};

    vt_tokenizer_decode(t, ids->id, ids->n, VT_KEEP_SPECIAL, &whole);
    for (size_t i = 0; i < ids->n; i++)
        vt_detokenizer_add(&d, ids->id[i], &streamed);
    vt_detokenizer_end(&d, &streamed);
    REQUIRE(whole.len == streamed.len);
    REQUIRE(whole.len == 0 || memcmp(whole.data, streamed.data, whole.len) == 0);
    vt_detokenizer_free(&d);
    vt_buf_free(&whole);
    vt_buf_free(&streamed);
}

static void encode(const struct vt_tokenizer *t, struct part text)
{
    struct vt_ids ids = {0}, again = {0};
    struct vt_err err;

    for (unsigned flags = 0; flags < 4; flags++) {
        ids.n = again.n = 0;
        if (vt_tokenizer_encode(t, text.text, text.len, flags, &ids, &err) != VT_OK) {
            REQUIRE(ids.n == 0);
            continue;
        }
        /* Once more, with all words known. */
        REQUIRE(vt_tokenizer_encode(t, text.text, text.len, flags, &again, &err) ==
                VT_OK);
        REQUIRE(ids.n == again.n);
        for (size_t i = 0; i < ids.n; i++) {
            REQUIRE(ids.id[i] == again.id[i]);
            ids.id[i] = again.id[ids.n - 1 - i]; /* backwards: bytes of all kinds */
        }
        decode(t, &again);
        decode(t, &ids);
    }
    vt_ids_free(&ids);
    vt_ids_free(&again);
}

static void chat(const struct vt_tokenizer *t, struct part text)
{
    char content[256];
    const struct vt_chat_message m[] = {
        {"system", content}, {"user", "Hi"}, {"assistant", content}, {"tool", content}};
    const struct vt_chat_options options = {.add_generation_prompt = true};
    struct vt_buf out = {0};
    struct vt_err err;

    snprintf(content, sizeof(content), "%.*s", (int)(text.len < 255 ? text.len : 255),
             text.text);
    if (vt_chat_render(t, m, 4, &options, &out, &err) == VT_OK)
        REQUIRE(vt_tokenizer_facts(t)->chat);
    vt_buf_free(&out);
}

/* Made once, since it takes a while, and never closed. */
static void with_builtin(struct part text)
{
    static struct vt_tokenizer *builtin;
    struct vt_err err;

    if (!builtin)
        REQUIRE(vt_tokenizer_builtin(&builtin, &err) == VT_OK);
    encode(builtin, text);
    chat(builtin, text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *p = size ? (const char *)data : "", *end = p + size;
    struct part tokenizer = next_part(&p, end), config = next_part(&p, end);
    struct part text = {p, (size_t)(end - p)};
    const struct vt_tokenizer_texts texts = {
        .tokenizer = tokenizer.text,
        .tokenizer_len = tokenizer.len,
        .config = config.len ? config.text : NULL,
        .config_len = config.len,
        .generation = config.len ? config.text : NULL,
        .generation_len = config.len,
    };
    struct vt_tokenizer *t;
    struct vt_err err = {0};
    int rc;

    if (tokenizer.len == 0) {
        with_builtin(text);
        return 0;
    }
    rc = vt_tokenizer_from(&t, &texts, &err);
    if (rc != VT_OK) {
        REQUIRE(rc == VT_EINPUT && !t && err.msg[0] && !strchr(err.msg, '\n'));
        return 0;
    }
    REQUIRE(vt_tokenizer_facts(t)->vocab_size <= 1 << 21);
    encode(t, text);
    chat(t, text);
    vt_tokenizer_close(t);
    return 0;
}
