/* fuzz_api.c - bodies of requests. The first byte says of what kind and for which vLLM
 * line; the rest is the body. What is taken must be something an engine can run, what
 * is refused must say so in a way that can be sent. */
#include "http/api/api.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define REQUIRE(x) ((x) ? (void)0 : fail(#x, __LINE__))

static _Noreturn void fail(const char *what, int line)
{
    fprintf(stderr, "fuzz_api.c:%d: %s\n", line, what);
    abort();
}

static bool find(void *user, const char *name, uint32_t *lora)
{
    (void)user;
    *lora = name[0] == 'l';
    return name[0] != 'n';
}

/* As JSON it reads back, so it is UTF-8, too. */
static void check_error(const struct api_error *e)
{
    struct vt_buf body = {0};
    struct vt_arena arena = {0};
    const struct vt_node *root;
    struct vt_err err;

    REQUIRE(e->status >= 400 && e->status < 600);
    REQUIRE(e->type != NULL && e->message[0] != '\0');
    REQUIRE(memchr(e->message, '\0', sizeof(e->message)) != NULL);
    api_error_json(&body, e);
    REQUIRE(!body.failed);
    REQUIRE(vt_json_parse(&arena, body.data, body.len, 1, &root, &err) == VT_OK);
    REQUIRE(strcmp(vt_get(vt_get(root, "error"), "message")->u.str, e->message) == 0);
    vt_buf_free(&body);
    vt_arena_free(&arena);
}

static void check_prompts(const struct api_request *r)
{
    uint32_t vocab = vt_tokenizer_facts(r->context->tokenizer)->vocab_size;
    bool generates = r->kind != API_EMBEDDINGS;

    REQUIRE(r->n_prompts >= 1);
    for (uint32_t i = 0; i < r->n_prompts; i++) {
        const struct api_prompt *p = &r->prompt[i];

        REQUIRE(p->n >= 1 && p->text != NULL);
        REQUIRE(p->n + (generates ? r->max_tokens : 0) <= r->context->max_model_len);
        for (uint32_t k = 0; k < p->n; k++)
            REQUIRE(p->id[k] < vocab);
    }
}

static void check_request(const struct api_request *r)
{
    check_prompts(r);
    REQUIRE(r->n >= 1 && r->max_tokens >= 1 && r->stream_interval >= 1);
    REQUIRE(r->kind == API_EMBEDDINGS || r->min_tokens <= r->max_tokens);
    REQUIRE(r->id != NULL && r->model != NULL && r->body != NULL);
    REQUIRE(r->logprobs <= (int32_t)r->context->max_logprobs);
    REQUIRE(r->temperature >= 0 && r->top_p > 0 && r->top_p <= 1);
    for (uint32_t i = 0; i < r->n_stop; i++)
        REQUIRE(r->stop[i][0] != '\0');
    for (uint32_t i = 0; i < r->n_tools; i++)
        REQUIRE(r->tool[i].name != NULL);
    REQUIRE(r->tool_choice != API_TOOLS_NAMED || r->tool_index < r->n_tools);
    REQUIRE((r->format == API_TEXT || r->format == API_JSON_OBJECT) ==
            (r->constraint == NULL));
    if (r->kind == API_EMBEDDINGS) {
        struct vt_buf body = {0};

        api_embeddings_json(&body, r);
        REQUIRE(!body.failed && body.len > 0);
        vt_buf_free(&body);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct vt_tokenizer *tokenizer;
    struct api_context c = {.max_model_len = 64,
                            .max_logprobs = 20,
                            .embedding_dimensions = 4,
                            .find = find,
                            .model = "m"};
    const struct api_headers h = {.content_type = "application/json"};
    struct api_request r = {0};
    struct api_error e;
    struct vt_err err;
    size_t at;

    if (tokenizer == NULL)
        REQUIRE(vt_tokenizer_builtin(&tokenizer, &err) == VT_OK);
    if (size == 0 || size > 4096)
        return 0;
    c.tokenizer = tokenizer;
    c.line = data[0] / 5 % 2 == 0 ? API_LINE_026 : API_LINE_032;
    if (api_read(&r, &c, (enum api_kind)(data[0] % 5), (const char *)data + 1, size - 1,
                 &h, &e))
        check_request(&r);
    else
        check_error(&e);
    (void)api_py_json_error((const char *)data + 1, size - 1, &at);
    REQUIRE(at < size);
    vt_arena_free(&r.arena);
    return 0;
}
