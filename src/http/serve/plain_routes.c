/* plain_routes.c - the table of routes: what exists, what it takes, who answers. The
 * description of the server and the names in /metrics come from it too. To add a route:
 * a row here and its function, or a case in serve. */
#include "http/serve/plain.h"

static const struct api_field lora_fields[] = {API_NEEDED("lora_name", api_str),
                                               API_NEEDED("lora_path", api_str),
                                               API_FIELD("load_inplace", api_bool),
                                               {0}};
static const struct api_field unlora_fields[] = {
    API_NEEDED("lora_name", api_str), API_FIELD("lora_int_id", api_int_or_null), {0}};
static const struct api_field abort_fields[] = {API_NEEDED("request_ids", api_strs),
                                                {0}};

#define ROUTE(p, m, s, f)    .path = (p), .methods = (m), .summary = (s), .fields = (f)
#define ROW(p, m, s, f, a)   {ROUTE(p, m, s, f), .answer = (a)}
#define TOKENS(p, s, f, k)   {ROUTE(p, "POST", s, f), .makes_tokens = true, .kind = (k)}
#define ADMIN(p, m, s, f, a) {ROUTE(p, m, s, f), .admin = (a)}
#define DEV(p, m, s, f, a)   {ROUTE(p, m, s, f), .admin = (a), .when = PLAIN_DEV_MODE}
#define LORA(p, s, f, a) \
    {ROUTE(p, "POST", s, f), .admin = (a), .when = PLAIN_LORA_UPDATES}

const struct plain_row plain_rows[] = {
    TOKENS("/v1/completions", "Continue a text", api_completion_fields,
           API_COMPLETIONS),
    TOKENS("/v1/chat/completions", "Answer a chat", api_chat_fields, API_CHAT),
    TOKENS("/v1/responses", "Answer (Responses API)", api_responses_fields,
           API_RESPONSES),
    TOKENS("/v1/messages", "Answer (Anthropic's Messages API)", api_messages_fields,
           API_MESSAGES),
    TOKENS("/v1/embeddings", "Vectors of texts", api_embedding_fields, API_EMBEDDINGS),
    ROW("/v1/models", "GET", "Models and adapters", NULL, plain_models),
    ROW("/health", "GET", "Is the server up", NULL, plain_health),
    ROW("/ping", "GET, POST", "Is the server up", NULL, plain_health),
    {ROUTE("/metrics", "GET", "Prometheus metrics", NULL), .admin = admin_metrics,
     .mounted = true},
    ADMIN("/load", "GET", "Requests under way", NULL, admin_load),
    ROW("/version", "GET", "Version of vLLM that is imitated", NULL, plain_version),
    {ROUTE("/tokenize", "POST", "Ids of a text or chat", plain_tokenize_fields),
     .or_fields = plain_tokenize_chat_fields, .answer = plain_tokenize},
    ROW("/detokenize", "POST", "Text of ids", plain_detokenize_fields,
        plain_detokenize),
    ROW("/v1/completions/render", "POST", "What the engine would get",
        api_completion_fields, plain_render_completion),
    ROW("/v1/chat/completions/render", "POST", "What the engine would get",
        api_chat_fields, plain_render_chat),
    ROW("/v1/messages/count_tokens", "POST", "Tokens of a prompt", plain_count_fields,
        plain_count_tokens),
    LORA("/v1/load_lora_adapter", "Add an adapter", lora_fields, admin_load_lora),
    LORA("/v1/unload_lora_adapter", "Remove an adapter", unlora_fields,
         admin_unload_lora),
    /* Starlette's own routes answer HEAD where they answer GET; FastAPI's do not. */
    ROW("/openapi.json", "GET, HEAD", "This description", NULL, plain_openapi),
    ROW("/docs", "GET, HEAD", "The same for reading", NULL, plain_docs),
    {ROUTE("/server_info", "GET", "How the server was set up", NULL),
     .answer = plain_server_info, .when = PLAIN_DEV_MODE},
    DEV("/reset_prefix_cache", "POST", "Forget cached prefixes", NULL,
        admin_reset_prefix_cache),
    DEV("/reset_mm_cache", "POST", "Forget cached media", NULL, admin_reset_other),
    DEV("/reset_encoder_cache", "POST", "Forget encoded media", NULL,
        admin_reset_other),
    DEV("/sleep", "POST", "Stop, and give memory back", NULL, admin_sleep),
    DEV("/wake_up", "POST", "Go on after sleep", NULL, admin_wake_up),
    DEV("/is_sleeping", "GET", "Does it sleep", NULL, admin_is_sleeping),
    DEV("/pause", "POST", "Stop for a while", NULL, admin_pause),
    DEV("/resume", "POST", "Go on after a pause", NULL, admin_resume),
    DEV("/is_paused", "GET", "Does it pause", NULL, admin_is_paused),
    DEV("/abort_requests", "POST", "End requests", abort_fields, admin_abort_requests),
    DEV("/get_world_size", "GET", NULL, NULL, admin_world_size),
};
const size_t plain_n_rows = VT_COUNT(plain_rows);

static const struct plain_row *find_route(const struct vt_serve_config *c,
                                          const char *path, size_t len)
{
    const bool there[] = {[PLAIN_ALWAYS] = true,
                          [PLAIN_DEV_MODE] = c->dev_mode,
                          [PLAIN_LORA_UPDATES] = !c->fixed_loras};

    for (size_t i = 0; i < plain_n_rows; i++) {
        const struct plain_row *row = &plain_rows[i];
        size_t n = strlen(row->path);

        if ((len == n || (len > n && row->mounted)) && memcmp(path, row->path, n) == 0)
            return there[row->when] ? row : NULL;
    }
    return NULL;
}

const struct plain_row *plain_find(const struct vt_serve_config *c, const char *path)
{
    return find_route(c, path, strlen(path));
}

const struct plain_row *plain_find_slashed(const struct vt_serve_config *c,
                                           const char *path)
{
    size_t whole = strlen(path), len = whole;

    while (len > 0 && path[len - 1] == '/')
        len--;
    return len < whole && len > 0 ? find_route(c, path, len) : NULL;
}

bool plain_takes(const struct plain_row *row, const char *method)
{
    size_t n = strlen(method);

    if (row->mounted)
        return true;
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
    const struct plain_row *row = plain_find(c->config, r->path);
    struct plain_ask q = {.c = c, .r = r, .body = body, .a = a};

    vt_jw_init(&q.w, body, &json_body);
    *a = (struct plain_answer){.status = 200, .type = "application/json"};
    if (!row || !row->summary) {
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
