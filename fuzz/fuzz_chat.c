/* fuzz_chat.c - chats of strangers through the chat templates of every known kind. The
 * first byte says which template, the second how: pairs of roles and contents, a NUL
 * behind each, for the template itself; or a body with messages and tools for one of
 * the three kinds of chat requests. A prompt holds what was said and little more, and
 * ten times the messages take ten times the memory. */
#include <stdlib.h>
#include <string.h>

#include "../tests/text/chat_templates.h"
#include "http/api/api.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define REQUIRE(x) ((x) ? (void)0 : fail(#x, __LINE__))

static _Noreturn void fail(const char *what, int line)
{
    fprintf(stderr, "fuzz_chat.c:%d: %s\n", line, what);
    abort();
}

enum {
    MOST_INPUT = 2048,
    MOST_MESSAGES = 64,
    FRAME = 256, /* bytes of a template for a message, or for a whole prompt */
    LONG_BODY = 1 << 17,
    TENTH = 10,
    MORE_MEMORY = 1 << 17, /* whatever a chat of any length takes */
};

static const struct family {
    const char *template, *user; /* user: what stands before what one says */
    bool trims;
} families[] = {
    {CHATML, "<|im_start|>user\n", false},
    {QWEN25, "<|im_start|>user\n", false},
    {QWEN3, "<|im_start|>user\n", false},
    {LLAMA3, "<|start_header_id|>user<|end_header_id|>\n\n", true},
    {LLAMA31, "<|start_header_id|>user<|end_header_id|>\n\n", true},
};

/* Made once, and never closed; all bytes are tokens. */
static const struct vt_tokenizer *tokenizer_of(size_t i)
{
    static struct vt_tokenizer *made[VT_COUNT(families)];
    struct vt_buf file = {0}, config = {0};
    struct vt_tokenizer_texts texts = {0};
    struct vt_err err = {0};

    if (made[i])
        return made[i];
    vt_buf_str(&file, "{\"model\":{\"vocab\":{");
    for (uint32_t c = 0, id = 0; c < 0x180; c++) {
        char text[4];

        if ((c > ' ' && c < 0x7f) || (c > 0xa0 && c != 0xad)) {
            vt_buf_str(&file, id > 0 ? "," : "");
            vt_buf_json_str(&file, text, vt_utf8_put(text, c));
            vt_buf_printf(&file, ":%u", (unsigned)id++);
        }
    }
    vt_buf_str(
        &file,
        "},\"merges\":[]},\"pre_tokenizer\":{\"type\":\"ByteLevel\"},\"decoder\":"
        "{\"type\":\"ByteLevel\"},\"added_tokens\":[{\"content\":\"<B>\","
        "\"special\":true}]}");
    vt_buf_printf(&config, "{\"bos_token\":\"<B>\",\"chat_template\":\"%s\"}",
                  families[i].template);
    REQUIRE(!file.failed && !config.failed);
    texts.tokenizer = file.data;
    texts.tokenizer_len = file.len;
    texts.config = config.data;
    texts.config_len = config.len;
    if (vt_tokenizer_from(&made[i], &texts, &err) != VT_OK)
        fail(err.msg, __LINE__);
    REQUIRE(vt_tokenizer_facts(made[i])->chat);
    vt_buf_free(&file);
    vt_buf_free(&config);
    return made[i];
}

/* ---- templates alone -------------------------------------------------- */

static void check_prompt(const struct family *f, const struct vt_chat_message *m,
                         size_t n, const char *prompt)
{
    for (size_t i = 0; i < n; i++) {
        struct vt_buf said = {0};

        if (strcmp(m[i].role, "user") != 0 || f->trims)
            continue;
        vt_buf_printf(&said, "%s%s", f->user, m[i].content);
        REQUIRE(strstr(prompt, said.data));
        vt_buf_free(&said);
    }
}

static void render(size_t family, uint8_t how, const char *text, size_t len)
{
    struct vt_chat_message m[MOST_MESSAGES];
    const struct vt_chat_options options = {.add_generation_prompt = how & 1,
                                            .thinking = how & 2 ? VT_THINKING_OFF
                                                                : VT_THINKING_DEFAULT,
                                            .today = how & 4 ? "1 Jan 2026" : NULL};
    const char *p = text, *end = text + len;
    struct vt_buf out = {0};
    struct vt_err err = {0};
    size_t n = 0;
    int rc;

    while (p < end && n < MOST_MESSAGES) {
        m[n].role = p;
        p += strlen(p) + 1;
        m[n].content = p < end ? p : "";
        p += p < end ? strlen(p) + 1 : 0;
        n++;
    }
    rc = vt_chat_render(tokenizer_of(family), m, n, &options, &out, &err);
    REQUIRE(rc == VT_OK ? out.len > 0 : rc == VT_EINPUT && err.msg[0]);
    /* As JSON, each byte of an answer of a tool may be written as six. */
    REQUIRE(out.len <= 6 * len + FRAME * (n + 1));
    if (rc == VT_OK)
        check_prompt(&families[family], m, n, out.data);
    vt_buf_free(&out);
}

/* ---- whole requests ---------------------------------------------------- */

static bool find_model(void *user, const char *name, uint32_t *lora)
{
    (void)user;
    (void)name;
    *lora = 0;
    return true;
}

/* The body with its messages so many times; false: it has none. */
static bool repeat_messages(struct vt_buf *b, const struct vt_node *body,
                            uint32_t times)
{
    bool any = false;

    if (body->kind != VT_MAP)
        return false;
    for (uint32_t i = 0; i < body->n; i++) {
        const struct vt_node *v = &body->u.item[i];
        bool list = v->kind == VT_LIST && v->n > 0 &&
                    (strcmp(v->key, "messages") == 0 || strcmp(v->key, "input") == 0);

        vt_buf_str(b, i > 0 ? "," : "{");
        vt_buf_json_str(b, v->key, strlen(v->key));
        vt_buf_char(b, ':');
        if (!list) {
            vt_buf_json_node(b, v, NULL);
            continue;
        }
        any = true;
        for (uint32_t k = 0; k < times * v->n; k++) {
            vt_buf_char(b, k > 0 ? ',' : '[');
            vt_buf_json_node(b, &v->u.item[k % v->n], NULL);
        }
        vt_buf_char(b, ']');
    }
    vt_buf_char(b, '}');
    return any;
}

/* Memory for it; 0: it was refused. */
static size_t read_body(const struct api_context *c, enum api_kind kind,
                        const char *body, size_t len)
{
    const struct api_headers h = {.content_type = "application/json"};
    struct api_request r = {0};
    struct api_error e = {0};
    size_t used = 0;

    if (api_read(&r, c, kind, body, len, &h, &e)) {
        REQUIRE(r.n_prompts == 1 && r.prompt->n > 0);
        used = r.arena.used_bytes;
    } else {
        REQUIRE(e.status >= 400 && e.status < 600);
    }
    vt_arena_free(&r.arena);
    return used;
}

static void request(size_t family, uint8_t how, const char *text, size_t len)
{
    static const enum api_kind kinds[] = {API_CHAT, API_RESPONSES, API_MESSAGES};
    enum api_kind kind = kinds[how / 2 % 3];
    const struct api_context c = {.tokenizer = tokenizer_of(family),
                                  .line = how & 1 ? API_LINE_032 : API_LINE_026,
                                  .max_model_len = 1 << 22,
                                  .max_logprobs = 20,
                                  .find = find_model,
                                  .model = "m"};
    uint32_t most = (uint32_t)(LONG_BODY / (len + 1)), times = most < 400 ? most : 400;
    struct vt_buf few = {0}, many = {0};
    struct vt_arena arena = {0};
    const struct vt_node *body;

    (void)read_body(&c, kind, text, len);
    if (vt_json_parse(&arena, text, len, 1, &body, NULL) == VT_OK &&
        repeat_messages(&few, body, times / TENTH) &&
        repeat_messages(&many, body, times)) {
        size_t a = read_body(&c, kind, few.data, few.len);
        size_t b = read_body(&c, kind, many.data, many.len);

        REQUIRE(a == 0 || b <= 2 * TENTH * a + MORE_MEMORY);
    }
    vt_arena_free(&arena);
    vt_buf_free(&few);
    vt_buf_free(&many);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text;
    size_t family;

    if (size < 2 || size > MOST_INPUT)
        return 0;
    family = data[0] % VT_COUNT(families);
    text = malloc(size - 1); /* its own, so that reading beyond it shows */
    if (!text)
        return 0;
    memcpy(text, data + 2, size - 2);
    text[size - 2] = '\0';
    if (data[1] & 128)
        render(family, data[1], text, size - 2);
    else
        request(family, data[1], text, size - 2);
    free(text);
    return 0;
}
