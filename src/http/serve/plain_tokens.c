/* plain_tokens.c - text and chats to tokens and back, for clients that ask for nothing
 * else. */
#include "http/serve/plain.h"

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

static bool read_body(struct plain_ask *q, struct vt_arena *a,
                      const struct vt_node **body)
{
    return api_body_read(a, q->c->api, NULL, net_header_value(q->r, "content-type"),
                         q->r->body, q->r->body_len, body, &q->e);
}

static bool check_model(struct plain_ask *q, const struct vt_node *model)
{
    const struct api_context *c = q->c->api;
    const char *name = api_get_str(model, "");
    struct vt_buf names = {.max = 4096};
    uint32_t lora;

    if (*name == '\0' || !c->find || c->find(c->user, name, &lora))
        return true;
    if (c->line == API_LINE_032) {
        /* The names there are. Adapters come and go, and are not told. */
        vt_buf_str(&names, " Valid aliases: ");
        if (q->c->n_models == 0)
            vt_buf_str(&names, c->model);
        for (uint32_t i = 0; i < q->c->n_models; i++)
            if (!q->c->model[i].parent)
                vt_buf_printf(&names, i > 0 ? ", %s" : "%s", q->c->model[i].id);
        vt_buf_char(&names, '.');
    }
    api_error_set(&q->e, 404, "NotFoundError", "model",
                  "The model `%s` does not exist.%s", name,
                  names.data ? names.data : "");
    vt_buf_free(&names);
    return false;
}

/* ---- /tokenize ---------------------------------------------------------- */

static void answer_ids(struct plain_ask *q, const uint32_t *id, size_t n, bool spelt)
{
    struct vt_jw *w = &q->w;

    vt_jw_map(w, NULL);
    vt_jw_u64(w, "count", n);
    vt_jw_u64(w, "max_model_len", q->c->api->max_model_len);
    vt_jw_u32_list(w, "tokens", id, (uint32_t)n);
    if (!spelt)
        vt_jw_null(w, "token_strs");
    else
        vt_jw_list(w, "token_strs");
    for (size_t i = 0; spelt && i < n; i++) {
        size_t len = 0;
        const char *text = vt_tokenizer_token(q->c->api->tokenizer, id[i], &len);

        vt_jw_strn(w, NULL, text ? text : "", len);
    }
    if (spelt)
        vt_jw_end(w);
    vt_jw_end(w);
}

/* Reads a chat as a request for an answer would be read, but that it may be longer than
 * the model takes. */
static bool read_chat(struct plain_ask *q, struct api_request *r, enum api_kind kind,
                      const char *body, size_t len)
{
    struct api_headers headers = {.content_type =
                                      net_header_value(q->r, "content-type")};
    struct api_context context = *q->c->api;

    context.max_model_len = INT32_MAX;
    return api_read(r, &context, kind, body, len, &headers, &q->e);
}

/* Where both forms are refused, vLLM names them after a function of its own. */
static const struct api_type text_or_chat = {API_ONE_OF(
    {.what = API_MODEL, .label = API_WRAPPED, .field = plain_tokenize_fields},
    {.what = API_MODEL, .label = API_WRAPPED, .field = plain_tokenize_chat_fields})};

static bool tokenize(struct plain_ask *q, const struct vt_node *body)
{
    const struct vt_node *slot[SLOTS] = {0};
    enum api_line line = q->c->api->line;
    struct api_request r = {0};
    struct api_error unread;
    struct vt_ids ids = {0};
    struct vt_err err = {0};
    bool ok;

    if (line == API_LINE_026 && body->kind != VT_MAP)
        return api_error_set(&q->e, 500, "InternalServerError", NULL,
                             "'%s' object has no attribute 'get'", api_py_type(body));
    if (!api_value_check(&text_or_chat, body, line, &q->e)) {
        api_sanitize(q->e.message);
        return false;
    }
    if (api_fields_check(plain_tokenize_fields, body, line, slot, &unread)) {
        bool special = api_get_bool(slot[ADD_SPECIAL], true);

        if (!check_model(q, slot[MODEL]))
            return false;
        ok = vt_tokenizer_encode(q->c->api->tokenizer, slot[PROMPT]->u.str,
                                 slot[PROMPT]->n,
                                 special ? VT_ENCODE_ADD_SPECIAL : VT_ENCODE_PLAIN,
                                 &ids, &err) == VT_OK;
        if (ok)
            answer_ids(q, ids.id, ids.n, api_get_bool(slot[TOKEN_STRS], false));
        else
            api_error_from(&q->e, &err);
        vt_ids_free(&ids);
        return ok;
    }
    ok = read_chat(q, &r, API_CHAT, q->r->body, q->r->body_len);
    if (ok)
        answer_ids(q, r.prompt[0].id, r.prompt[0].n,
                   api_truth(vt_get(r.body, "return_token_strs")));
    vt_arena_free(&r.arena);
    return ok;
}

bool plain_tokenize(struct plain_ask *q)
{
    struct vt_arena arena = {0};
    const struct vt_node *body;
    bool ok = read_body(q, &arena, &body) && tokenize(q, body);

    vt_arena_free(&arena);
    return ok;
}

/* ---- /detokenize -------------------------------------------------------- */

static bool detokenize(struct plain_ask *q, struct vt_arena *arena,
                       const struct vt_node *list)
{
    uint32_t *id = vt_arena_alloc(arena, (list->n + (size_t)1) * sizeof(*id));
    struct vt_buf text = {0};
    bool failed;

    if (!id)
        return api_nomem(&q->e);
    for (uint32_t i = 0; i < list->n; i++) {
        int64_t wide = api_get_int(&list->u.item[i], 0);

        if (wide > UINT32_MAX) { /* the library that vLLM uses has 32 bits for an id */
            return api_error_set(&q->e, 400, "Bad Request", NULL,
                                 "1 validation error:\n  out of range integral type "
                                 "conversion attempted");
        }
        id[i] = (uint32_t)wide;
    }
    vt_tokenizer_decode(q->c->api->tokenizer, id, list->n, VT_KEEP_SPECIAL, &text);
    vt_jw_map(&q->w, NULL);
    vt_jw_strn(&q->w, "prompt", text.data ? text.data : "", text.len);
    vt_jw_end(&q->w);
    failed = text.failed;
    vt_buf_free(&text);
    return !failed || api_nomem(&q->e);
}

bool plain_detokenize(struct plain_ask *q)
{
    struct vt_arena arena = {0};
    const struct vt_node *body, *slot[SLOTS] = {0};
    bool ok = read_body(q, &arena, &body);

    if (ok && !api_fields_check(plain_detokenize_fields, body, q->c->api->line, slot,
                                &q->e)) {
        api_sanitize(q->e.message);
        ok = false;
    }
    ok = ok && check_model(q, slot[MODEL]) && detokenize(q, &arena, slot[TOKENS]);
    vt_arena_free(&arena);
    return ok;
}

/* ---- /v1/messages/count_tokens ------------------------------------------ */

bool plain_count_tokens(struct plain_ask *q)
{
    struct vt_arena arena = {0};
    struct api_request r = {0};
    struct vt_buf text = {0};
    const struct vt_node *body;
    bool ok = read_body(q, &arena, &body);

    if (ok) {
        const char *open = memchr(q->r->body, '{', q->r->body_len), *from = q->r->body;

        /* A request for an answer must say how long it may get; this one need not. */
        if (open && body->kind == VT_MAP && !vt_get(body, "max_tokens")) {
            vt_buf_str(&text, body->n > 0 ? "{\"max_tokens\":1," : "{\"max_tokens\":1");
            from = open + 1;
        }
        vt_buf_add(&text, from, q->r->body_len - (size_t)(from - q->r->body));
        ok = text.failed ? api_nomem(&q->e)
                         : read_chat(q, &r, API_MESSAGES, text.data, text.len);
    }
    if (ok) {
        vt_jw_map(&q->w, NULL);
        vt_jw_u64(&q->w, "input_tokens", r.prompt[0].n);
        vt_jw_map(&q->w, "context_management");
        vt_jw_u64(&q->w, "original_input_tokens", r.prompt[0].n);
        vt_jw_end(&q->w);
        vt_jw_end(&q->w);
    }
    vt_arena_free(&r.arena);
    vt_arena_free(&arena);
    vt_buf_free(&text);
    return ok;
}
