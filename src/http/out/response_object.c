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
void out_response_message_id(struct vt_jw *w, const char *key,
                             const struct api_request *r, const struct out_choice *c)
{
    out_id(w, key, is_old(r) ? "" : "msg_", c->reply, MESSAGE_ID);
}

void out_response_call_id(struct vt_jw *w, const char *key, const struct api_request *r,
                          const struct out_choice *c, uint32_t i)
{
    out_id(w, key, is_old(r) ? "" : "fc_", c->reply, CALL_ID + i);
}

void out_response_part(struct vt_jw *w, const char *key, const struct api_request *r,
                       const struct out_choice *c, enum out_telling telling)
{
    const struct out_step all = {.upto = c->reply->n};

    vt_jw_map(w, key);
    vt_jw_raw(w, "annotations", "[]", 2);
    vt_jw_strn(w, "text", c->reply->text, c->reply->text_len);
    vt_jw_str(w, "type", "output_text");
    if (r->logprobs < 0 || (telling == OUT_STREAMED && is_old(r)))
        vt_jw_null(w, "logprobs");
    else
        out_logprobs_list(w, "logprobs", r, c, &all, OUT_FORM_RESPONSE,
                          telling == OUT_STREAMED);
    vt_jw_end(w);
}

void out_response_message(struct vt_jw *w, const char *key, const struct api_request *r,
                          const struct out_choice *c, enum out_telling telling,
                          bool done)
{
    vt_jw_map(w, key);
    if (telling == OUT_STREAMED)
        out_response_message_id(w, "id", r, c);
    else
        out_id(w, "id", "msg_", c->reply, MESSAGE_ID + 1);
    vt_jw_list(w, "content");
    if (done && c->reply->text_len > 0)
        out_response_part(w, NULL, r, c, telling);
    vt_jw_end(w);
    vt_jw_str(w, "role", "assistant");
    vt_jw_str(w, "status", done ? "completed" : "in_progress");
    vt_jw_str(w, "type", "message");
    vt_jw_null(w, "phase");
}

void out_response_call(struct vt_jw *w, const char *key, const struct api_request *r,
                       const struct out_choice *c, uint32_t i, enum out_telling telling,
                       bool done)
{
    static const char *const nothing[] = {"async", "caller", "namespace", NULL};
    const struct reply_call *call = &c->reply->call[i];

    vt_jw_map(w, key);
    vt_jw_strn(w, "arguments", call->arguments, done ? call->arguments_len : 0);
    if (telling == OUT_STREAMED && is_old(r))
        out_id(w, "call_id", "call_", c->reply, CALL_ID + i + 500);
    else
        vt_jw_str(w, "call_id", call->id);
    vt_jw_str(w, "name", call->name);
    vt_jw_str(w, "type", "function_call");
    if (telling == OUT_STREAMED)
        out_response_call_id(w, "id", r, c, i);
    else
        out_id(w, "id", "fc_", c->reply, CALL_ID + i);
    out_nulls(w, nothing);
    vt_jw_str(w, "status", done ? "completed" : "in_progress");
    vt_jw_end(w);
}

/* Later lines repeat in the end what they have streamed; earlier ones read the text
 * once more, as those do that did not stream. */
static void put_output(struct vt_jw *w, const struct api_request *r,
                       const struct out_choice *c)
{
    const struct reply *p = c->reply;
    bool again = r->stream && !is_old(r);
    enum out_telling telling = again ? OUT_STREAMED : OUT_AT_ONCE;
    bool calls = p->n_calls > 0 && (again || !p->calls_cut);

    for (uint32_t i = 0; calls && i < p->n_calls; i++)
        if (!again || p->call[i].named < p->call[i].n)
            out_response_call(w, NULL, r, c, i, telling, true);
    if (calls || (again && out_spells_calls(p)) ||
        (p->text_len == 0 && (again || out_parsed(r))))
        return;
    out_response_message(w, NULL, r, c, telling, true);
    vt_jw_end(w);
}

/* ---- what was asked --------------------------------------------------- */

/* As it was asked, or else as JSON. */
static void put_asked(struct vt_jw *w, const struct api_request *r, const char *key,
                      const char *otherwise)
{
    const struct vt_node *n = vt_get(r->body, key);

    if (api_given(n))
        vt_jw_node(w, key, n);
    else
        vt_jw_raw(w, key, otherwise, strlen(otherwise));
}

static bool is_kind(const struct vt_node *map, const char *kind)
{
    return strcmp(api_get_str(vt_get(map, "type"), ""), kind) == 0;
}

/* A map's fields in the order of the list, those that are not there as null. */
static void put_fields(struct vt_jw *w, const char *key, const struct vt_node *map,
                       const char *const *field)
{
    vt_jw_map(w, key);
    for (; *field; field++)
        vt_jw_node(w, *field, vt_get(map, *field));
    vt_jw_end(w);
}

static void put_text_format(struct vt_jw *w, const struct api_request *r)
{
    static const char *const fields[] = {"name",        "schema", "type",
                                         "description", "strict", NULL};
    const struct vt_node *n = vt_get(r->body, "text"), *format = vt_get(n, "format");

    if (!n || n->kind != VT_MAP) {
        vt_jw_null(w, "text");
        return;
    }
    vt_jw_map(w, "text");
    if (is_kind(format, "json_schema"))
        put_fields(w, "format", format, fields);
    else
        vt_jw_node(w, "format", format);
    vt_jw_node(w, "verbosity", vt_get(n, "verbosity"));
    vt_jw_end(w);
}

/* ---- the object ------------------------------------------------------- */

static void put_usage(struct vt_jw *w, const struct api_request *r,
                      const struct out_choice *c)
{
    uint32_t input = r->prompt[c->prompt].n, output = c->reply->n;

    vt_jw_map(w, "usage");
    vt_jw_u64(w, "input_tokens", input);
    vt_jw_map(w, "input_tokens_details");
    vt_jw_u64(w, "cached_tokens", c->cached_tokens);
    if (!is_old(r))
        vt_jw_u64(w, "cache_write_tokens", c->written_tokens);
    vt_jw_raw(w, "input_tokens_per_turn", "[]", 2);
    vt_jw_raw(w, "cached_tokens_per_turn", "[]", 2);
    vt_jw_end(w);
    vt_jw_u64(w, "output_tokens", output);
    vt_jw_map(w, "output_tokens_details");
    vt_jw_u64(w, "reasoning_tokens", 0);
    vt_jw_u64(w, "tool_output_tokens", 0);
    vt_jw_raw(w, "output_tokens_per_turn", "[]", 2);
    vt_jw_raw(w, "tool_output_tokens_per_turn", "[]", 2);
    vt_jw_end(w);
    vt_jw_u64(w, "total_tokens", (uint64_t)input + output);
    vt_jw_end(w);
}

static void put_request(struct vt_jw *w, const struct api_request *r,
                        enum out_status status)
{
    static const char *const names[] = {"in_progress", "completed", "incomplete"};
    static const char *const choice_fields[] = {"name", "type", NULL};
    static const char *const tool_fields[] = {
        "name",  "parameters",    "strict",      "type",          "allowed_callers",
        "async", "defer_loading", "description", "output_schema", NULL};
    static const char *const reasoning_fields[] = {
        "context", "effort", "generate_summary", "mode", "summary", NULL};
    const struct vt_node *choice = vt_get(r->body, "tool_choice");
    const struct vt_node *tools = vt_get(r->body, "tools");
    const struct vt_node *reasoning = vt_get(r->body, "reasoning");

    put_asked(w, r, "parallel_tool_calls", "true");
    vt_jw_f64(w, "temperature", r->temperature);
    /* Without tools there is no choice, whatever was asked. */
    if (is_kind(choice, "function"))
        put_fields(w, "tool_choice", choice, choice_fields);
    else
        put_asked(w, r, "tool_choice", r->n_tools > 0 ? "\"auto\"" : "\"none\"");
    vt_jw_list(w, "tools");
    for (uint32_t i = 0; tools && tools->kind == VT_LIST && i < tools->n; i++)
        if (is_kind(&tools->u.item[i], "function"))
            put_fields(w, NULL, &tools->u.item[i], tool_fields);
        else
            vt_jw_node(w, NULL, &tools->u.item[i]);
    vt_jw_end(w);
    vt_jw_f64(w, "top_p", r->top_p);
    put_asked(w, r, "background", "false");
    vt_jw_u64(w, "max_output_tokens", r->max_tokens);
    put_asked(w, r, "max_tool_calls", "null");
    put_asked(w, r, "previous_response_id", "null");
    put_asked(w, r, "prompt", "null");
    if (reasoning && reasoning->kind == VT_MAP)
        put_fields(w, "reasoning", reasoning, reasoning_fields);
    else
        vt_jw_null(w, "reasoning");
    put_asked(w, r, "service_tier", "\"auto\"");
    vt_jw_str(w, "status", names[status]);
    put_text_format(w, r);
    if (r->logprobs >= 0)
        vt_jw_i64(w, "top_logprobs", r->logprobs);
    else
        vt_jw_null(w, "top_logprobs");
    put_asked(w, r, "truncation", "\"disabled\"");
}

void out_response_object(struct vt_jw *w, const char *key, const struct api_request *r,
                         const struct out_choice *c, enum out_status status)
{
    static const char *const numbers[] = {"presence_penalty", "frequency_penalty"};
    static const char *const nothing[] = {"kv_transfer_params", "ec_transfer_params",
                                          "input_messages", "output_messages", NULL};

    vt_jw_map(w, key);
    vt_jw_str(w, "id", r->id);
    vt_jw_i64(w, "created_at", r->created);
    vt_jw_printf(w, "incomplete_details", "%s",
                 status == OUT_INCOMPLETE ? "{\"reason\":\"max_output_tokens\"}"
                                          : "null");
    put_asked(w, r, "instructions", "null");
    put_asked(w, r, "metadata", "null");
    vt_jw_str(w, "model", r->model);
    vt_jw_str(w, "object", "response");
    vt_jw_list(w, "output");
    if (status != OUT_IN_PROGRESS)
        put_output(w, r, c);
    vt_jw_end(w);
    put_request(w, r, status);
    if (status != OUT_IN_PROGRESS)
        put_usage(w, r, c);
    else
        vt_jw_null(w, "usage");
    put_asked(w, r, "user", "null");
    for (size_t i = 0; i < VT_COUNT(numbers); i++) {
        const struct vt_node *n = vt_get(r->body, numbers[i]);
        bool told = n && (n->kind == VT_REAL || n->kind == VT_INT);

        vt_jw_f64(w, numbers[i], told ? api_get_real(n, 0) : 0);
    }
    out_nulls(w, nothing);
    vt_jw_end(w);
}
