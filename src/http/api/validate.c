/* validate.c - vLLM's validators of a whole body, which run before its fields are
 * looked at, in the order in which pydantic runs them: the last one defined first. */
#include <math.h>
#include <string.h>

#include "http/api/request.h"

static bool is_number(const struct vt_node *v)
{
    return v->kind == VT_INT || v->kind == VT_BIG || v->kind == VT_REAL ||
           v->kind == VT_BOOL;
}

/* What Python raises where a validator does not expect such a value. */
static bool no_get(struct api_reading *q, const struct vt_node *v)
{
    return api_error_set(q->e, 500, "InternalServerError", NULL,
                         "'%s' object has no attribute 'get'", api_py_type(v));
}

/* ---- one check each -------------------------------------------------- */

static bool check_cache_salt(struct api_reading *q)
{
    const struct vt_node *v = api_asked(q, "cache_salt");

    if (!api_given(v))
        return true;
    if (v->kind != VT_STR || v->n == 0)
        return api_refuse(
            q, "cache_salt", NULL,
            "Parameter 'cache_salt' must be a non-empty string if provided.");
    if (q->c->line == API_LINE_026)
        return true;
    if (api_characters(v->u.str, v->n) > 128 || strpbrk(v->u.str, "@/\\") ||
        strlen(v->u.str) < v->n)
        return api_refuse(
            q, "cache_salt", NULL,
            "Parameter 'cache_salt' must be at most 128 characters and must "
            "not contain '@', '/', '\\\\', or NUL.");
    return true;
}

enum { MAX_PROMPTS = 1024 }; /* VLLM_MAX_COMPLETION_PROMPTS */

static bool check_prompt_count(struct api_reading *q)
{
    const struct vt_node *v = api_asked(q, "prompt");

    if (!v || v->kind != VT_LIST || v->n <= MAX_PROMPTS)
        return true;
    for (uint32_t i = 0; i < v->n; i++)
        if (v->u.item[i].kind != VT_INT && v->u.item[i].kind != VT_BIG &&
            v->u.item[i].kind != VT_BOOL)
            return api_refuse(
                q, "prompt", NULL,
                "prompt list length %u exceeds the maximum allowed count of %d. To "
                "increase this limit, set the VLLM_MAX_COMPLETION_PROMPTS environment "
                "variable.",
                v->n, MAX_PROMPTS);
    return true;
}

static bool check_prompt(struct api_reading *q)
{
    const struct vt_node *prompt = api_asked(q, "prompt"),
                         *embeds = api_asked(q, "prompt_embeds");

    if (api_given(prompt) && (prompt->kind != VT_STR || prompt->n > 0))
        return true;
    if (api_given(embeds) && (embeds->kind != VT_LIST || embeds->n > 0))
        return true;
    return api_refuse(q, "prompt", NULL,
                      "Either prompt or prompt_embeds must be provided and non-empty.");
}

static bool check_stream_options(struct api_reading *q)
{
    if (!api_truth(api_asked(q, "stream_options")) || api_truth(api_asked(q, "stream")))
        return true;
    return api_refuse(q, "stream_options", NULL,
                      "Stream options can only be defined when `stream=True`.");
}

static bool check_is_number(struct api_reading *q, const char *name, bool streamed)
{
    const struct vt_node *v = api_asked(q, name);

    if (!api_given(v) || is_number(v))
        return true;
    if (q->c->line == API_LINE_026)
        return api_refuse_late(q, NULL, NULL,
                               "'%c' not supported between instances of '%s' and 'int'",
                               streamed ? '>' : '<', api_py_type(v));
    return api_refuse(q, name, api_str_of(q, v), "`%s` must be an integer.", name);
}

static bool check_prompt_logprobs(struct api_reading *q)
{
    const struct vt_node *v = api_asked(q, "prompt_logprobs");
    double n;

    if (!check_is_number(q, "prompt_logprobs", api_truth(api_asked(q, "stream"))))
        return false;
    if (!api_given(v))
        return true;
    n = api_get_real(v, 0);
    if (api_truth(api_asked(q, "stream")) && (n > 0 || n == -1))
        return api_refuse(q, "prompt_logprobs", NULL,
                          "`prompt_logprobs` are not available when `stream=True`.");
    if (n < 0 && n != -1)
        return api_refuse(q, "prompt_logprobs", api_str_of(q, v),
                          "`prompt_logprobs` must be a positive value or -1.");
    return true;
}

static bool check_completion_logprobs(struct api_reading *q)
{
    const struct vt_node *ids = api_asked(q, "logprob_token_ids");
    const struct vt_node *v = api_asked(q, "logprobs");
    bool new = q->c->line == API_LINE_032;

    if (api_truth(ids) && api_truth(api_asked(q, "use_beam_search")))
        return api_refuse(q, "logprob_token_ids", NULL,
                          "`logprob_token_ids` is not supported with beam search.");
    if (new && api_truth(api_asked(q, "use_beam_search")) &&
        api_truth(api_asked(q, "echo")) && api_given(v))
        return api_refuse(q, "echo", NULL,
                          "`echo` with `logprobs` is not supported with beam search "
                          "because beam search does not compute prompt logprobs.");
    if (api_truth(ids) && api_truth(api_asked(q, "echo")) &&
        api_asked(q, "max_tokens") && is_number(api_asked(q, "max_tokens")) &&
        !api_truth(api_asked(q, "max_tokens")))
        return api_refuse(q, "logprob_token_ids", NULL,
                          "`logprob_token_ids` is not supported when `echo=True` and "
                          "`max_tokens=0` because no output tokens are generated.");
    if (api_truth(ids) && !api_given(v))
        return api_refuse(q, "logprob_token_ids", NULL,
                          "when using `logprob_token_ids`, `logprobs` must be set.");
    if (new && !(check_is_number(q, "prompt_logprobs", false) &&
                 check_is_number(q, "logprobs", false)))
        return false;
    if (!check_prompt_logprobs(q) || !check_is_number(q, "logprobs", false))
        return false;
    if (api_given(v) && api_get_real(v, 0) < 0 && !(new && api_get_real(v, 0) == -1))
        return api_refuse(q, "logprobs", api_str_of(q, v),
                          new ? "`logprobs` must be a positive value or -1."
                              : "`logprobs` must be a positive value.");
    return true;
}

static bool check_chat_logprobs(struct api_reading *q)
{
    const struct vt_node *ids = api_asked(q, "logprob_token_ids");
    const struct vt_node *v = api_asked(q, "top_logprobs");
    double n;

    if (api_truth(ids) && api_truth(api_asked(q, "use_beam_search")))
        return api_refuse(q, "logprob_token_ids", NULL,
                          "`logprob_token_ids` is not supported with beam search.");
    if (api_truth(ids) && !api_truth(api_asked(q, "logprobs")))
        return api_refuse(
            q, "logprob_token_ids", NULL,
            "when using `logprob_token_ids`, `logprobs` must be set to true.");
    if (q->c->line == API_LINE_032 && !(check_is_number(q, "prompt_logprobs", false) &&
                                        check_is_number(q, "top_logprobs", false)))
        return false;
    if (!check_prompt_logprobs(q) || !check_is_number(q, "top_logprobs", false))
        return false;
    if (!api_given(v))
        return true;
    n = api_get_real(v, 0);
    if (n < 0 && n != -1)
        return api_refuse(q, "top_logprobs", api_str_of(q, v),
                          "`top_logprobs` must be a positive value or -1.");
    if ((n == -1 || n > 0) && !api_truth(api_asked(q, "logprobs")))
        return api_refuse(q, "top_logprobs", NULL,
                          "when using `top_logprobs`, `logprobs` must be set to true.");
    return true;
}

static bool check_constraints(struct api_reading *q)
{
    static const char *const kinds[] = {"json", "regex", "choice"};
    const struct vt_node *v = api_asked(q, "structured_outputs"), *choice;
    unsigned n = 0;

    if (!api_given(v))
        return true;
    if (v->kind != VT_MAP)
        return no_get(q, v);
    for (size_t i = 0; i < VT_COUNT(kinds); i++)
        n += api_given(vt_get(v, kinds[i]));
    if (n > 1)
        return api_refuse(
            q, q->r->kind == API_CHAT ? NULL : "structured_outputs", NULL,
            "You can only use one kind of constraints for structured outputs "
            "('json', 'regex' or 'choice').");
    choice = q->r->kind == API_CHAT ? api_asked(q, "tool_choice") : NULL;
    if (n > 0 && choice &&
        !(choice->kind == VT_STR &&
          (strcmp(choice->u.str, "none") == 0 || strcmp(choice->u.str, "auto") == 0 ||
           strcmp(choice->u.str, "required") == 0)))
        return api_refuse(
            q, NULL, NULL,
            "You can only either use constraints for structured outputs or "
            "tools, not both.");
    return true;
}

static bool check_response_format(struct api_reading *q)
{
    const struct vt_node *v = api_asked(q, "response_format");
    const char *type = api_get_str(vt_get(v, "type"), "");

    if (strcmp(type, "json_schema") != 0 || api_given(vt_get(v, "json_schema")))
        return true;
    return api_refuse(
        q, "response_format", NULL,
        "When response_format type is 'json_schema', the 'json_schema' field "
        "must be provided.");
}

static bool check_generation_prompt(struct api_reading *q)
{
    if (!api_truth(api_asked(q, "continue_final_message")) ||
        !api_truth(api_asked(q, "add_generation_prompt")))
        return true;
    return api_refuse(
        q, NULL, NULL,
        "Cannot set both `continue_final_message` and `add_generation_prompt` "
        "to True.");
}

static bool check_iterable(struct api_reading *q)
{
    const struct vt_node *messages = api_asked(q, "messages");

    return !messages || messages->kind >= VT_STR ||
           api_refuse_late(q, NULL, NULL, "'%s' object is not iterable",
                           api_py_type(messages));
}

/* ---- the other kinds ------------------------------------------------- */

static bool check_budget(struct api_reading *q)
{
    static const char name[] = "thinking_token_budget";
    static const char message[] =
        "`thinking_token_budget` must be a non-negative integer or -1 for unlimited.";
    const struct vt_node *v = api_asked(q, name);
    struct vt_buf extras = {0};

    if (!api_given(v) ||
        ((v->kind == VT_INT || v->kind == VT_BIG) && api_get_int(v, 0) >= -1))
        return true;
    if (q->c->line == API_LINE_032)
        return api_refuse(q, name, api_str_of(q, v), "%s", message);
    vt_buf_printf(&extras, " (parameter=%s, value=", name);
    api_py_str(&extras, v);
    vt_buf_char(&extras, ')');
    api_refuse_field(q->e, q->c->line, name, v, "VLLMValidationError",
                     api_kept(q, &extras), message);
    (void)snprintf(q->e->param, sizeof(q->e->param), "%s", name);
    return false;
}

/* What a dataclass raises in 0.32 is no ValueError: it breaks the reading off, whatever
 * else is wrong. */
static bool check_rule(struct api_reading *q, const char *name,
                       const struct api_type *type)
{
    const struct vt_node *v = api_asked(q, name);
    struct vt_buf message = {0};
    struct api_type bare = *type;
    struct api_error unread;

    bare.rule = NULL;
    return !api_given(v) || v->kind != VT_MAP ||
           !api_value_check(&bare, v, q->c->line, &unread) || type->rule(v, &message) ||
           api_refuse_late(q, NULL, NULL, "%s", api_kept(q, &message));
}

static bool check_structured(struct api_reading *q)
{
    return check_rule(q, "structured_outputs", &api_structured_outputs);
}

static bool check_repetition(struct api_reading *q)
{
    return check_rule(q, "repetition_detection", &api_repetition_detection);
}

/* ---- all of them ----------------------------------------------------- */

#define COMPLETIONS (1U << API_COMPLETIONS)
#define CHATS       (1U << API_CHAT)
#define RESPONSES   (1U << API_RESPONSES)
#define SALTED      (COMPLETIONS | CHATS | RESPONSES | 1U << API_EMBEDDINGS)

static const struct {
    check_fn *check;
    unsigned kinds;
    enum api_lines lines;
} checks[] = {
    {check_iterable, CHATS, API_BOTH_LINES},
    {api_check_responses_tools, RESPONSES, API_BOTH_LINES},
    {check_cache_salt, SALTED, API_ONLY_026},
    {api_check_responses, RESPONSES, API_BOTH_LINES},
    {check_prompt_count, COMPLETIONS, API_BOTH_LINES},
    {check_prompt, COMPLETIONS, API_BOTH_LINES},
    {check_generation_prompt, CHATS, API_BOTH_LINES},
    {api_check_tools, CHATS, API_BOTH_LINES},
    {check_stream_options, COMPLETIONS, API_BOTH_LINES},
    {check_completion_logprobs, COMPLETIONS, API_BOTH_LINES},
    {check_constraints, COMPLETIONS | CHATS, API_BOTH_LINES},
    {check_chat_logprobs, CHATS, API_BOTH_LINES},
    {check_stream_options, CHATS, API_BOTH_LINES},
    {check_response_format, COMPLETIONS | CHATS, API_BOTH_LINES},
    {api_check_tool_calls, CHATS, API_BOTH_LINES},
    {check_cache_salt, SALTED, API_ONLY_032},
    {check_budget, COMPLETIONS | CHATS, API_BOTH_LINES},
    {check_structured, COMPLETIONS | CHATS | RESPONSES, API_ONLY_032},
    {check_repetition, COMPLETIONS | CHATS, API_ONLY_032},
};

bool api_validate(struct api_reading *q)
{
    bool old = q->c->line == API_LINE_026;

    if (q->body->kind != VT_MAP)
        return !old || q->r->kind == API_MESSAGES || no_get(q, q->body);
    for (size_t i = 0; i < VT_COUNT(checks); i++)
        if (checks[i].kinds >> q->r->kind & 1 &&
            api_lines_have(checks[i].lines, q->c->line) && !checks[i].check(q))
            return false;
    return true;
}

/* ---- behind the fields ----------------------------------------------- */

bool api_validate_after(struct api_reading *q)
{
    const struct vt_node *list = q->slot[SLOT_MESSAGES];

    for (uint32_t i = 0; q->r->kind == API_CHAT && i < list->n; i++) {
        const struct vt_node *m = &list->u.item[i];
        const struct vt_node *calls = vt_get(m, "tool_calls");

        if (calls && calls->kind == VT_LIST &&
            strcmp(api_get_str(vt_get(m, "role"), ""), "assistant") == 0 &&
            !api_value_check(&api_tool_calls_type, calls, q->c->line, q->e))
            return false;
    }
    return true;
}
