/* plain_routes.c - the table of routes: what exists, what it takes, who answers. The
 * description of the server and the names in /metrics come from it too. To add a route:
 * a row here and its function, or a case in serve. */
#include "http/serve/plain_routes.h"

static const struct api_field lora_fields[] = {API_NEEDED("lora_name", api_str),
                                               API_NEEDED("lora_path", api_str),
                                               API_FIELD("load_inplace", api_bool),
                                               {0}};
static const struct api_field unlora_fields[] = {
    API_NEEDED("lora_name", api_str), API_FIELD("lora_int_id", api_int_or_null), {0}};
static const struct api_field abort_fields[] = {API_NEEDED("request_ids", api_strs),
                                                {0}};

#define ROW(path, methods, summary, fields, answer) \
    {path, methods, summary, fields, NULL, answer, false}
#define DEV(path, methods, summary, fields, answer) \
    {path, methods, summary, fields, NULL, answer, true}

const struct plain_row plain_rows[] = {
    ROW("/v1/completions", "POST", "Continue a text", api_completion_fields, NULL),
    ROW("/v1/chat/completions", "POST", "Answer a chat", api_chat_fields, NULL),
    ROW("/v1/responses", "POST", "Answer (Responses API)", api_responses_fields, NULL),
    ROW("/v1/messages", "POST", "Answer (Anthropic's Messages API)",
        api_messages_fields, NULL),
    ROW("/v1/embeddings", "POST", "Vectors of texts", api_embedding_fields, NULL),
    ROW("/v1/models", "GET", "Models and adapters", NULL, plain_models),
    ROW("/health", "GET", "Is the server up", NULL, plain_health),
    ROW("/ping", "GET, POST", "Is the server up", NULL, plain_health),
    ROW("/metrics", "GET", "Prometheus metrics", NULL, NULL),
    ROW("/load", "GET", "Requests under way", NULL, NULL),
    ROW("/version", "GET", "Version of vLLM that is imitated", NULL, plain_version),
    {"/tokenize", "POST", "Ids of a text or chat", plain_tokenize_fields,
     plain_tokenize_chat_fields, plain_tokenize, false},
    ROW("/detokenize", "POST", "Text of ids", plain_detokenize_fields,
        plain_detokenize),
    ROW("/v1/completions/render", "POST", "What the engine would get",
        api_completion_fields, plain_render_completion),
    ROW("/v1/chat/completions/render", "POST", "What the engine would get",
        api_chat_fields, plain_render_chat),
    ROW("/v1/messages/count_tokens", "POST", "Tokens of a prompt", plain_count_fields,
        plain_count_tokens),
    ROW("/v1/load_lora_adapter", "POST", "Add an adapter", lora_fields, NULL),
    ROW("/v1/unload_lora_adapter", "POST", "Remove an adapter", unlora_fields, NULL),
    ROW("/openapi.json", "GET", "This description", NULL, plain_openapi),
    ROW("/docs", "GET", "The same for reading", NULL, plain_docs),
    DEV("/server_info", "GET", "How the server was set up", NULL, plain_server_info),
    DEV("/reset_prefix_cache", "POST", "Forget cached prefixes", NULL, NULL),
    DEV("/reset_mm_cache", "POST", "Forget cached media", NULL, NULL),
    DEV("/reset_encoder_cache", "POST", "Forget encoded media", NULL, NULL),
    DEV("/sleep", "POST", "Stop, and give memory back", NULL, NULL),
    DEV("/wake_up", "POST", "Go on after sleep", NULL, NULL),
    DEV("/is_sleeping", "GET", "Does it sleep", NULL, NULL),
    DEV("/pause", "POST", "Stop for a while", NULL, NULL),
    DEV("/resume", "POST", "Go on after a pause", NULL, NULL),
    DEV("/is_paused", "GET", "Does it pause", NULL, NULL),
    DEV("/abort_requests", "POST", "End requests", abort_fields, NULL),
};
const size_t plain_n_rows = VT_COUNT(plain_rows);

const struct plain_row *plain_find(const struct plain_context *c, const char *path)
{
    for (size_t i = 0; i < plain_n_rows; i++)
        if (strcmp(path, plain_rows[i].path) == 0)
            return plain_rows[i].dev && !c->dev_mode ? NULL : &plain_rows[i];
    return NULL;
}

const char *plain_route(const struct plain_context *c, const char *path,
                        const char **allow)
{
    const struct plain_row *row = plain_find(c, path);

    *allow = row ? row->methods : NULL;
    return row ? row->path : "none";
}

bool plain_takes(const struct plain_row *row, const char *method)
{
    size_t n = strlen(method);

    for (const char *p = row->methods; n > 0 && (p = strstr(p, method)); p++)
        if ((p == row->methods || p[-1] == ' ') && (p[n] == '\0' || p[n] == ','))
            return true;
    return false;
}

static void answer_detail(struct plain_ask *q, int status, const char *detail)
{
    q->a->status = status;
    vt_jw_map(&q->w, NULL);
    vt_jw_str(&q->w, "detail", detail);
    vt_jw_end(&q->w);
}

bool plain_answer(const struct plain_context *c, const struct net_request *r,
                  struct vt_buf *body, struct plain_answer *a)
{
    const struct plain_row *row = plain_find(c, r->path);
    struct plain_ask q = {.c = c, .r = r, .body = body, .a = a};

    vt_jw_init(&q.w, body, &json_body);
    *a = (struct plain_answer){.status = 200, .type = "application/json"};
    if (!row) {
        answer_detail(&q, 404, "Not Found");
    } else if (!plain_takes(row, r->method)) {
        answer_detail(&q, 405, "Method Not Allowed");
        a->allow = row->methods;
    } else if (!row->answer) {
        return false;
    } else if (!row->answer(&q)) {
        a->status = q.e.status;
        a->type = "application/json";
        vt_buf_clear(body);
        api_error_json(body, &q.e);
    }
    return true;
}
