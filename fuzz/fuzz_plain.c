/* Any bytes as the body of an endpoint that needs no engine: answered or refused, and
 * the answer is JSON. The first byte chooses the endpoint and the line. */
#include <assert.h>

#include "http/serve/plain.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool find_model(void *user, const char *name, uint32_t *lora)
{
    (void)user;
    *lora = 0;
    return strcmp(name, "tiny") == 0;
}

static const struct vt_tokenizer *tokenizer(void)
{
    static struct vt_tokenizer *t; /* kept: making it costs more than a run */

    if (!t && vt_tokenizer_builtin(&t, NULL) != VT_OK)
        abort();
    return t;
}

static void check_json(const struct vt_buf *b)
{
    struct vt_arena arena = {0};
    const struct vt_node *root;

    assert(!b->failed);
    assert(vt_json_parse(&arena, b->data, b->len, 1, &root, NULL) == VT_OK);
    vt_arena_free(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const path[] = {
        "/tokenize", "/detokenize", "/v1/completions/render",
        "/v1/chat/completions/render", "/v1/messages/count_tokens"};
    static const struct net_header json = {"content-type", "application/json"};
    struct api_context api = {.tokenizer = tokenizer(),
                              .version = "0.26.0",
                              .max_model_len = 2048,
                              .max_logprobs = 20,
                              .find = find_model,
                              .model = "tiny"};
    const struct vt_serve_config config = {.scale_out = true};
    struct plain_context c = {.api = &api, .config = &config};
    struct net_request r = {
        .method = "POST", .query = "", .header = &json, .n_headers = 1};
    struct plain_answer a;
    struct vt_buf body = {0}, out = {0};

    if (size == 0)
        return 0;
    api.line = data[0] & 1 ? API_LINE_032 : API_LINE_026;
    r.path = path[(data[0] >> 1) % VT_COUNT(path)];
    vt_buf_add(&body, data + 1,
               size - 1); /* with a NUL behind it, as connections have */
    r.body = body.data ? body.data : "";
    r.body_len = body.len;
    assert(plain_answer(&c, &r, &out, &a));
    /* 500 is what 0.26 answers to a body that is no object. */
    assert(a.status == 200 || a.status == 400 || a.status == 404 ||
           (a.status == 500 && api.line == API_LINE_026));
    check_json(&out);
    vt_buf_free(&body);
    vt_buf_free(&out);
    return 0;
}
