/* response_object.c - the object of /v1/responses: what was asked, what came of it.
 */
#include "http/out/parts.h"

/* ---- items of the output --------------------------------------------- */

/* Numbers of drawn ids; those of calls follow CALL_ID. */
enum { MESSAGE_ID = 1000, CALL_ID = 2000 };

static bool is_old(const struct api_request *r)
{
    return r->context->line == API_LINE_026;
}

/* Earlier lines give streamed items ids without a prefix, and others in the end. */
void out_response_message_id(struct vt_buf *b, const struct api_request *r,
                             const struct out_choice *c)
{
    out_id(b, is_old(r) ? "" : "msg_", c->reply, MESSAGE_ID);
}

void out_response_call_id(struct vt_buf *b, const struct api_request *r,
                          const struct out_choice *c, uint32_t i)
{
    out_id(b, is_old(r) ? "" : "fc_", c->reply, CALL_ID + i);
}

static void put_logprobs(struct vt_buf *b, const struct api_request *r,
                         const struct out_choice *c, enum out_telling telling)
{
    if (r->logprobs < 0 || (telling == OUT_STREAMED && is_old(r)))
        vt_buf_str(b, "null");
    else if (telling == OUT_STREAMED)
        out_logprobs_told(b, r, c);
    else
        out_logprobs_response(b, r, c);
}

void out_response_part(struct vt_buf *b, const struct api_request *r,
                       const struct out_choice *c, enum out_telling telling)
{
    vt_buf_str(b, "{\"annotations\":[],\"text\":");
    json_text(b, c->reply->text, c->reply->text_len);
    vt_buf_str(b, ",\"type\":\"output_text\",\"logprobs\":");
    put_logprobs(b, r, c, telling);
    vt_buf_char(b, '}');
}

void out_response_message(struct vt_buf *b, const struct api_request *r,
                          const struct out_choice *c, enum out_telling telling)
{
    vt_buf_str(b, "{\"id\":");
    if (telling == OUT_STREAMED)
        out_response_message_id(b, r, c);
    else
        out_id(b, "msg_", c->reply, MESSAGE_ID + 1);
    vt_buf_str(b, ",\"content\":[");
    if (c->reply->text_len > 0)
        out_response_part(b, r, c, telling);
    vt_buf_str(b, "],\"role\":\"assistant\",\"status\":\"completed\","
                  "\"type\":\"message\",\"phase\":null");
}

void out_response_call(struct vt_buf *b, const struct api_request *r,
                       const struct out_choice *c, uint32_t i, enum out_telling telling,
                       bool done)
{
    const struct reply_call *call = &c->reply->call[i];

    vt_buf_str(b, "{\"arguments\":");
    json_text(b, call->arguments, done ? call->arguments_len : 0);
    vt_buf_str(b, ",\"call_id\":");
    if (telling == OUT_STREAMED && is_old(r))
        out_id(b, "call_", c->reply, CALL_ID + i + 500);
    else
        json_text(b, call->id, strlen(call->id));
    vt_buf_str(b, ",\"name\":");
    json_text(b, call->name, strlen(call->name));
    vt_buf_str(b, ",\"type\":\"function_call\",\"id\":");
    if (telling == OUT_STREAMED)
        out_response_call_id(b, r, c, i);
    else
        out_id(b, "fc_", c->reply, CALL_ID + i);
    vt_buf_str(b, ",\"async\":null,\"caller\":null,\"namespace\":null,\"status\":");
    vt_buf_str(b, done ? "\"completed\"}" : "\"in_progress\"}");
}

/* Later lines repeat in the end what they have streamed; earlier ones read the text
 * once more, as those do that did not stream. */
static void put_output(struct vt_buf *b, const struct api_request *r,
                       const struct out_choice *c)
{
    const struct reply *p = c->reply;
    bool again = r->stream && !is_old(r);
    enum out_telling telling = again ? OUT_STREAMED : OUT_AT_ONCE;
    bool calls = p->n_calls > 0 && (again || !p->calls_cut);
    const char *before = "";

    for (uint32_t i = 0; calls && i < p->n_calls; i++) {
        if (again && p->call[i].named == p->call[i].n)
            continue;
        vt_buf_str(b, before);
        out_response_call(b, r, c, i, telling, true);
        before = ",";
    }
    if (calls || (again && out_spells_calls(p)) ||
        (p->text_len == 0 && (again || out_parsed(r))))
        return;
    out_response_message(b, r, c, telling);
    vt_buf_char(b, '}');
}

/* ---- what was asked --------------------------------------------------- */

static void put_asked(struct vt_buf *b, const struct api_request *r, const char *key,
                      const char *otherwise)
{
    const struct vt_node *n = vt_get(r->body, key);

    vt_buf_printf(b, ",\"%s\":", key);
    if (n && n->kind != VT_NULL)
        json_node(b, n, JSON_TIGHT);
    else
        vt_buf_str(b, otherwise);
}

static void put_number(struct vt_buf *b, const struct api_request *r, const char *key)
{
    const struct vt_node *n = vt_get(r->body, key);
    double v = 0;

    if (n && n->kind == VT_REAL)
        v = n->u.real;
    else if (n && n->kind == VT_INT)
        v = (double)n->u.integer;
    vt_buf_printf(b, ",\"%s\":", key);
    vt_buf_py_f64(b, v);
}

/* A map's fields in the order of the list, those that are not there as null. */
static void put_fields(struct vt_buf *b, const struct vt_node *map,
                       const char *const *field, size_t n)
{
    vt_buf_char(b, '{');
    for (size_t i = 0; i < n; i++) {
        vt_buf_printf(b, "%s\"%s\":", i > 0 ? "," : "", field[i]);
        json_node_or_null(b, vt_get(map, field[i]));
    }
    vt_buf_char(b, '}');
}

static bool is_kind(const struct vt_node *map, const char *kind)
{
    const struct vt_node *type = vt_get(map, "type");

    return type && type->kind == VT_STR && strcmp(type->u.str, kind) == 0;
}

static void put_tools(struct vt_buf *b, const struct api_request *r)
{
    static const char *const fields[] = {
        "name",  "parameters",    "strict",      "type",         "allowed_callers",
        "async", "defer_loading", "description", "output_schema"};
    const struct vt_node *tools = vt_get(r->body, "tools");

    vt_buf_str(b, ",\"tools\":[");
    for (uint32_t i = 0; tools && tools->kind == VT_LIST && i < tools->n; i++) {
        const struct vt_node *one = &tools->u.item[i];

        if (i > 0)
            vt_buf_char(b, ',');
        if (is_kind(one, "function"))
            put_fields(b, one, fields, VT_COUNT(fields));
        else
            json_node(b, one, JSON_TIGHT);
    }
    vt_buf_char(b, ']');
}

/* Without tools there is no choice, whatever was asked. */
static void put_tool_choice(struct vt_buf *b, const struct api_request *r)
{
    static const char *const fields[] = {"name", "type"};
    const struct vt_node *choice = vt_get(r->body, "tool_choice");

    vt_buf_str(b, ",\"tool_choice\":");
    if (choice && is_kind(choice, "function"))
        put_fields(b, choice, fields, VT_COUNT(fields));
    else if (choice && choice->kind != VT_NULL)
        json_node(b, choice, JSON_TIGHT);
    else
        vt_buf_str(b, r->n_tools > 0 ? "\"auto\"" : "\"none\"");
}

static void put_reasoning(struct vt_buf *b, const struct api_request *r)
{
    static const char *const fields[] = {"context", "effort", "generate_summary",
                                         "mode", "summary"};
    const struct vt_node *n = vt_get(r->body, "reasoning");

    vt_buf_str(b, ",\"reasoning\":");
    if (n && n->kind == VT_MAP)
        put_fields(b, n, fields, VT_COUNT(fields));
    else
        vt_buf_str(b, "null");
}

static void put_text(struct vt_buf *b, const struct api_request *r)
{
    static const char *const fields[] = {"name", "schema", "type", "description",
                                         "strict"};
    const struct vt_node *n = vt_get(r->body, "text"), *format = vt_get(n, "format");

    vt_buf_str(b, ",\"text\":");
    if (!n || n->kind != VT_MAP) {
        vt_buf_str(b, "null");
        return;
    }
    vt_buf_str(b, "{\"format\":");
    if (format && is_kind(format, "json_schema"))
        put_fields(b, format, fields, VT_COUNT(fields));
    else
        json_node_or_null(b, format);
    vt_buf_str(b, ",\"verbosity\":");
    json_node_or_null(b, vt_get(n, "verbosity"));
    vt_buf_char(b, '}');
}

/* ---- the object ------------------------------------------------------- */

static void put_usage(struct vt_buf *b, const struct api_request *r,
                      const struct out_choice *c)
{
    uint32_t input = r->prompt[c->prompt].n, output = c->reply->n;

    vt_buf_printf(b,
                  "{\"input_tokens\":%u,\"input_tokens_details\":{\"cached_tokens\":%u",
                  input, c->cached_tokens);
    if (!is_old(r))
        vt_buf_printf(b, ",\"cache_write_tokens\":%u", c->written_tokens);
    vt_buf_printf(b,
                  ",\"input_tokens_per_turn\":[],\"cached_tokens_per_turn\":[]},"
                  "\"output_tokens\":%u,\"output_tokens_details\":"
                  "{\"reasoning_tokens\":0,\"tool_output_tokens\":0,"
                  "\"output_tokens_per_turn\":[],\"tool_output_tokens_per_turn\":[]},"
                  "\"total_tokens\":%" PRIu64 "}",
                  output, (uint64_t)input + output);
}

static void put_request(struct vt_buf *b, const struct api_request *r,
                        enum out_status status)
{
    static const char *const names[] = {"in_progress", "completed", "incomplete"};

    put_asked(b, r, "parallel_tool_calls", "true");
    vt_buf_str(b, ",\"temperature\":");
    vt_buf_py_f64(b, r->temperature);
    put_tool_choice(b, r);
    put_tools(b, r);
    vt_buf_str(b, ",\"top_p\":");
    vt_buf_py_f64(b, r->top_p);
    put_asked(b, r, "background", "false");
    vt_buf_printf(b, ",\"max_output_tokens\":%u", r->max_tokens);
    put_asked(b, r, "max_tool_calls", "null");
    put_asked(b, r, "previous_response_id", "null");
    put_asked(b, r, "prompt", "null");
    put_reasoning(b, r);
    put_asked(b, r, "service_tier", "\"auto\"");
    vt_buf_printf(b, ",\"status\":\"%s\"", names[status]);
    put_text(b, r);
    vt_buf_str(b, ",\"top_logprobs\":");
    if (r->logprobs >= 0)
        vt_buf_i64(b, r->logprobs);
    else
        vt_buf_str(b, "null");
    put_asked(b, r, "truncation", "\"disabled\"");
}

void out_response_object(struct vt_buf *b, const struct api_request *r,
                         const struct out_choice *c, enum out_status status)
{
    vt_buf_str(b, "{\"id\":");
    json_text(b, r->id, strlen(r->id));
    vt_buf_str(b, ",\"created_at\":");
    vt_buf_i64(b, r->created);
    vt_buf_str(b, status == OUT_INCOMPLETE
                      ? ",\"incomplete_details\":{\"reason\":\"max_output_tokens\"}"
                      : ",\"incomplete_details\":null");
    put_asked(b, r, "instructions", "null");
    put_asked(b, r, "metadata", "null");
    vt_buf_str(b, ",\"model\":");
    json_text(b, r->model, strlen(r->model));
    vt_buf_str(b, ",\"object\":\"response\",\"output\":[");
    if (status != OUT_IN_PROGRESS)
        put_output(b, r, c);
    vt_buf_char(b, ']');
    put_request(b, r, status);
    vt_buf_str(b, ",\"usage\":");
    if (status != OUT_IN_PROGRESS)
        put_usage(b, r, c);
    else
        vt_buf_str(b, "null");
    put_asked(b, r, "user", "null");
    put_number(b, r, "presence_penalty");
    put_number(b, r, "frequency_penalty");
    vt_buf_str(b, ",\"kv_transfer_params\":null,\"ec_transfer_params\":null,"
                  "\"input_messages\":null,\"output_messages\":null}");
}
