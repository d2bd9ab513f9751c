/* plain_tokens.c - text and chats to tokens and back, for clients that ask for nothing
 * else. */
#include "http/serve/plain_routes.h"

enum { /* slots */
       MODEL,
       PROMPT,
       ADD_SPECIAL,
       TOKEN_STRS,
       TOKENS,
       SLOTS
};

#define OWN(n, t, s, need) {.name = (n), .type = &(t), .slot = (s), .required = (need)}

const struct api_field plain_tokenize_fields[] = {
    OWN("model", api_str_or_null, MODEL, false),
    OWN("prompt", api_str, PROMPT, true),
    OWN("add_special_tokens", api_bool, ADD_SPECIAL, false),
    OWN("return_token_strs", api_bool_or_null, TOKEN_STRS, false),
    {0}};

/* What api_read() looks at of a chat, for the description. */
const struct api_field plain_tokenize_chat_fields[] = {
    OWN("model", api_str_or_null, MODEL, false),
    OWN("messages", api_messages_type, PROMPT, true),
    OWN("add_generation_prompt", api_bool, 0, false),
    OWN("return_token_strs", api_bool_or_null, TOKEN_STRS, false),
    OWN("continue_final_message", api_bool, 0, false),
    OWN("add_special_tokens", api_bool, ADD_SPECIAL, false),
    OWN("chat_template_kwargs", api_dict_or_null, 0, false),
    {0}};

static const struct api_type id_type = {
    .what = API_INT, .has_min = true, .has_max = true, .min = 0, .max = INT64_MAX};
static const struct api_type ids_type = {.what = API_LIST, .of = &id_type};

const struct api_field plain_detokenize_fields[] = {
    OWN("model", api_str_or_null, MODEL, false),
    OWN("tokens", ids_type, TOKENS, true),
    {0}};

const struct api_field plain_count_fields[] = {
    OWN("model", api_str, MODEL, true),
    OWN("messages", api_messages_type, PROMPT, true),
    OWN("system", api_any, 0, false),
    OWN("tools", api_any, 0, false),
    OWN("tool_choice", api_any, 0, false),
    {0}};

/* ---- common to all ------------------------------------------------------ */

static void out_of_memory(struct plain_ask *q)
{
    struct api_error e;

    api_error_set(&e, 500, "InternalServerError", NULL, "out of memory");
    plain_refuse(q, &e);
}

static bool read_body(struct plain_ask *q, struct vt_arena *a,
                      const struct vt_node **body)
{
    struct api_error e;

    if (api_body_read(a, q->c->api->line, net_header_value(q->r, "content-type"),
                      q->r->body, q->r->body_len, body, &e))
        return true;
    plain_refuse(q, &e);
    return false;
}

static bool check_fields(struct plain_ask *q, const struct api_field *fields,
                         const struct vt_node *body, const struct vt_node **slot)
{
    struct api_error e;

    if (api_fields_check(fields, body, q->c->api->line, slot, &e))
        return true;
    api_sanitize(e.message);
    plain_refuse(q, &e);
    return false;
}

/* 0.32 tells the names there are. Adapters come and go, and are not told. */
static void put_aliases(struct vt_buf *b, const struct plain_context *c)
{
    if (c->n_models == 0)
        vt_buf_str(b, c->api->model);
    for (uint32_t i = 0; i < c->n_models; i++)
        if (!c->model[i].parent)
            vt_buf_printf(b, i > 0 ? ", %s" : "%s", c->model[i].id);
}

static bool check_model(struct plain_ask *q, const struct vt_node *model)
{
    const struct api_context *c = q->c->api;
    const char *name = api_get_str(model, "");
    struct vt_buf names = {.max = 4096};
    struct api_error e;
    bool lora;

    if (*name == '\0' || !c->find || c->find(c->user, name, &lora))
        return true;
    put_aliases(&names, q->c);
    if (c->line == API_LINE_026)
        api_error_set(&e, 404, "NotFoundError", "model",
                      "The model `%s` does not exist.", name);
    else
        api_error_set(&e, 404, "NotFoundError", "model",
                      "The model `%s` does not exist. Valid aliases: %s.", name,
                      names.data ? names.data : "");
    vt_buf_free(&names);
    plain_refuse(q, &e);
    return false;
}

static void put_ids(struct vt_buf *b, const uint32_t *id, size_t n)
{
    vt_buf_char(b, '[');
    for (size_t i = 0; i < n; i++) {
        if (i > 0)
            vt_buf_char(b, ',');
        vt_buf_u64(b, id[i]);
    }
    vt_buf_char(b, ']');
}

/* ---- /tokenize ---------------------------------------------------------- */

static void put_spellings(struct vt_buf *b, const struct vt_tokenizer *t,
                          const uint32_t *id, size_t n)
{
    vt_buf_char(b, '[');
    for (size_t i = 0; i < n; i++) {
        size_t len = 0;
        const char *text = vt_tokenizer_token(t, id[i], &len);

        if (i > 0)
            vt_buf_char(b, ',');
        vt_buf_json_str(b, text ? text : "", len);
    }
    vt_buf_char(b, ']');
}

static void answer_ids(struct plain_ask *q, const uint32_t *id, size_t n, bool spelt)
{
    struct vt_buf *b = q->body;

    vt_buf_printf(b, "{\"count\":%zu,\"max_model_len\":%u,\"tokens\":", n,
                  q->c->api->max_model_len);
    put_ids(b, id, n);
    vt_buf_str(b, ",\"token_strs\":");
    if (spelt)
        put_spellings(b, q->c->api->tokenizer, id, n);
    else
        vt_buf_str(b, "null");
    vt_buf_char(b, '}');
}

static void tokenize_text(struct plain_ask *q, const struct vt_node *const *slot)
{
    struct vt_ids ids = {0};
    struct vt_err err;
    unsigned flags;

    if (!check_model(q, slot[MODEL]))
        return;
    flags =
        api_get_bool(slot[ADD_SPECIAL], true) ? VT_ENCODE_ADD_SPECIAL : VT_ENCODE_PLAIN;
    if (vt_tokenizer_encode(q->c->api->tokenizer, slot[PROMPT]->u.str, slot[PROMPT]->n,
                            flags, &ids, &err) == VT_OK) {
        answer_ids(q, ids.id, ids.n, api_get_bool(slot[TOKEN_STRS], false));
    } else {
        struct api_error e;

        api_error_set(&e, err.code == VT_EINPUT ? 400 : 500,
                      err.code == VT_EINPUT ? "BadRequestError" : "InternalServerError",
                      NULL, "%s", err.msg);
        plain_refuse(q, &e);
    }
    vt_ids_free(&ids);
}

/* Reads a chat as a request for an answer would be read, but that it may be longer than
 * the model takes. */
static bool read_chat(struct plain_ask *q, struct api_request *r, enum api_kind kind,
                      const char *body, size_t len)
{
    struct api_headers headers = {.content_type =
                                      net_header_value(q->r, "content-type")};
    struct api_context context = *q->c->api;
    struct api_error e;

    context.max_model_len = INT32_MAX;
    if (api_read(r, &context, kind, body, len, &headers, &e))
        return true;
    plain_refuse(q, &e);
    return false;
}

static void tokenize_chat(struct plain_ask *q)
{
    struct api_request r = {0};

    if (read_chat(q, &r, API_CHAT, q->r->body, q->r->body_len))
        answer_ids(q, r.prompt[0].id, r.prompt[0].n,
                   api_truth(vt_get(r.body, "return_token_strs")));
    vt_arena_free(&r.arena);
}

/* Where both forms are refused, vLLM names them after a function of its own. */
#define FORM_NAME "function-wrap[__log_extra_fields__()]"

static const struct api_type forms[] = {
    {.what = API_MODEL, .label = FORM_NAME, .field = plain_tokenize_fields},
    {.what = API_MODEL, .label = FORM_NAME, .field = plain_tokenize_chat_fields},
};
static const struct api_type text_or_chat = {.what = API_UNION, .of = forms, .n = 2};

static bool check_forms(struct plain_ask *q, const struct vt_node *body)
{
    enum api_line line = q->c->api->line;
    struct api_error e;

    if (line == API_LINE_026 && body->kind != VT_MAP) {
        api_error_set(&e, 500, "InternalServerError", NULL,
                      "'%s' object has no attribute 'get'", api_py_type(body));
    } else if (api_value_check(&text_or_chat, body, line, &e)) {
        return true;
    } else {
        api_sanitize(e.message);
    }
    plain_refuse(q, &e);
    return false;
}

static void tokenize(struct plain_ask *q, const struct vt_node *body)
{
    const struct vt_node *slot[SLOTS] = {0};
    struct api_error unused;

    if (!check_forms(q, body))
        return;
    if (api_fields_check(plain_tokenize_fields, body, q->c->api->line, slot, &unused))
        tokenize_text(q, slot);
    else
        tokenize_chat(q);
}

void plain_tokenize(struct plain_ask *q)
{
    struct vt_arena arena = {0};
    const struct vt_node *body;

    if (read_body(q, &arena, &body))
        tokenize(q, body);
    vt_arena_free(&arena);
}

/* ---- /detokenize -------------------------------------------------------- */

/* The library that vLLM uses has 32 bits for an id. */
static bool take_ids(struct plain_ask *q, const struct vt_node *list, uint32_t *out)
{
    struct api_error e;

    for (uint32_t i = 0; i < list->n; i++) {
        int64_t id = api_get_int(&list->u.item[i], 0);

        if (id > UINT32_MAX) {
            api_error_set(&e, 400, "Bad Request", NULL,
                          "1 validation error:\n  out of range integral type "
                          "conversion attempted");
            plain_refuse(q, &e);
            return false;
        }
        out[i] = (uint32_t)id;
    }
    return true;
}

static void detokenize(struct plain_ask *q, const struct vt_node *list)
{
    uint32_t *id = malloc((list->n + (size_t)1) * sizeof(*id));
    struct vt_buf text = {0};

    if (!id) {
        out_of_memory(q);
        return;
    }
    if (take_ids(q, list, id)) {
        vt_tokenizer_decode(q->c->api->tokenizer, id, list->n, VT_KEEP_SPECIAL, &text);
        vt_buf_str(q->body, "{\"prompt\":");
        vt_buf_json_str(q->body, text.data ? text.data : "", text.len);
        vt_buf_char(q->body, '}');
        if (text.failed)
            out_of_memory(q);
    }
    vt_buf_free(&text);
    free(id);
}

void plain_detokenize(struct plain_ask *q)
{
    struct vt_arena arena = {0};
    const struct vt_node *body, *slot[SLOTS] = {0};

    if (read_body(q, &arena, &body) &&
        check_fields(q, plain_detokenize_fields, body, slot) &&
        check_model(q, slot[MODEL]))
        detokenize(q, slot[TOKENS]);
    vt_arena_free(&arena);
}

/* ---- /v1/messages/count_tokens ------------------------------------------ */

/* A request for an answer must say how long it may get; this one need not. */
static void with_max_tokens(struct vt_buf *out, const struct plain_ask *q,
                            const struct vt_node *body)
{
    const char *text = q->r->body, *open = memchr(text, '{', q->r->body_len);

    if (!open || body->kind != VT_MAP || vt_get(body, "max_tokens")) {
        vt_buf_add(out, text, q->r->body_len);
        return;
    }
    vt_buf_str(out, "{\"max_tokens\":1");
    if (body->n > 0)
        vt_buf_char(out, ',');
    vt_buf_add(out, open + 1, q->r->body_len - (size_t)(open + 1 - text));
}

void plain_count_tokens(struct plain_ask *q)
{
    struct vt_arena arena = {0};
    struct api_request r = {0};
    struct vt_buf text = {0};
    const struct vt_node *body;

    if (read_body(q, &arena, &body)) {
        with_max_tokens(&text, q, body);
        if (text.failed)
            out_of_memory(q);
        else if (read_chat(q, &r, API_MESSAGES, text.data, text.len))
            vt_buf_printf(q->body,
                          "{\"input_tokens\":%u,\"context_management\":{"
                          "\"original_input_tokens\":%u}}",
                          r.prompt[0].n, r.prompt[0].n);
    }
    vt_arena_free(&r.arena);
    vt_arena_free(&arena);
    vt_buf_free(&text);
}
