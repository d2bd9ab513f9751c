/* validate.c - vLLM's validators of a whole body, which run before its fields are
 * looked at, in the order in which pydantic runs them: the last one defined first. */
#include <math.h>
#include <string.h>

#include "http/api/problems.h"
#include "http/api/request.h"

static const struct vt_node *get(const struct api_reading *q, const char *name)
{
    return vt_get(q->body, name);
}

static bool refuse(struct api_reading *q, const char *param, const char *message)
{
    return api_refuse(q->e, q->c->line, q->body, param, NULL, "%s", message);
}

/* Refuses with the value in the message. */
static bool refuse_value(struct api_reading *q, const char *param,
                         const struct vt_node *v, const char *message)
{
    struct vt_buf text = {0};

    api_py_str(&text, v);
    (void)api_refuse(q->e, q->c->line, q->body, param,
                     text.data != NULL ? text.data : "", "%s", message);
    vt_buf_free(&text);
    return false;
}

static bool is_number(const struct vt_node *v)
{
    return v->kind == VT_INT || v->kind == VT_REAL || v->kind == VT_BOOL;
}

/* What Python raises where a validator does not expect such a value. */
static bool no_get(struct api_reading *q, const struct vt_node *v)
{
    api_error_set(q->e, 500, "InternalServerError", NULL,
                  "'%s' object has no attribute 'get'", api_py_type(v));
    return false;
}

static bool not_comparable(struct api_reading *q, const struct vt_node *v, char op)
{
    api_error_set(q->e, 400, "BadRequestError", NULL,
                  "'%c' not supported between instances of '%s' and 'int'", op,
                  api_py_type(v));
    return false;
}

/* ---- one check each -------------------------------------------------- */

static bool check_cache_salt(struct api_reading *q)
{
    const struct vt_node *v = get(q, "cache_salt");
    size_t chars = 0;

    if (!api_given(v))
        return true;
    if (v->kind != VT_STR || v->n == 0)
        return refuse(q, "cache_salt",
                      "Parameter 'cache_salt' must be a non-empty string if provided.");
    if (q->c->line == API_LINE_026)
        return true;
    for (uint32_t i = 0; i < v->n; i++)
        chars += ((unsigned char)v->u.str[i] & 0xc0) != 0x80;
    if (chars > 128 || strpbrk(v->u.str, "@/\\") != NULL || strlen(v->u.str) < v->n)
        return refuse(q, "cache_salt",
                      "Parameter 'cache_salt' must be at most 128 characters and must "
                      "not contain '@', '/', '\\\\', or NUL.");
    return true;
}

enum { MAX_PROMPTS = 1024 }; /* VLLM_MAX_COMPLETION_PROMPTS */

static bool check_prompt_count(struct api_reading *q)
{
    const struct vt_node *v = get(q, "prompt");

    if (v == NULL || v->kind != VT_LIST || v->n <= MAX_PROMPTS)
        return true;
    for (uint32_t i = 0; i < v->n; i++)
        if (v->u.item[i].kind != VT_INT && v->u.item[i].kind != VT_BOOL)
            return api_refuse(
                q->e, q->c->line, q->body, "prompt", NULL,
                "prompt list length %u exceeds the maximum allowed count of %d. To "
                "increase this limit, set the VLLM_MAX_COMPLETION_PROMPTS environment "
                "variable.",
                v->n, MAX_PROMPTS);
    return true;
}

static bool check_prompt(struct api_reading *q)
{
    const struct vt_node *prompt = get(q, "prompt"), *embeds = get(q, "prompt_embeds");

    if (api_given(prompt) && (prompt->kind != VT_STR || prompt->n > 0))
        return true;
    if (api_given(embeds) && (embeds->kind != VT_LIST || embeds->n > 0))
        return true;
    return refuse(q, "prompt",
                  "Either prompt or prompt_embeds must be provided and non-empty.");
}

static bool check_stream_options(struct api_reading *q)
{
    if (!api_truth(get(q, "stream_options")) || api_truth(get(q, "stream")))
        return true;
    return refuse(q, "stream_options",
                  "Stream options can only be defined when `stream=True`.");
}

static bool check_is_number(struct api_reading *q, const char *name, bool streamed)
{
    const struct vt_node *v = get(q, name);
    char message[64];

    if (!api_given(v) || is_number(v))
        return true;
    if (q->c->line == API_LINE_026)
        return not_comparable(q, v, streamed ? '>' : '<');
    (void)snprintf(message, sizeof(message), "`%s` must be an integer.", name);
    return refuse_value(q, name, v, message);
}

static bool check_prompt_logprobs(struct api_reading *q)
{
    const struct vt_node *v = get(q, "prompt_logprobs");
    double n;

    if (!check_is_number(q, "prompt_logprobs", api_truth(get(q, "stream"))))
        return false;
    if (!api_given(v))
        return true;
    n = api_get_real(v, 0);
    if (api_truth(get(q, "stream")) && (n > 0 || n == -1))
        return refuse(q, "prompt_logprobs",
                      "`prompt_logprobs` are not available when `stream=True`.");
    if (n < 0 && n != -1)
        return refuse_value(q, "prompt_logprobs", v,
                            "`prompt_logprobs` must be a positive value or -1.");
    return true;
}

static bool check_completion_logprobs(struct api_reading *q)
{
    const struct vt_node *ids = get(q, "logprob_token_ids");
    const struct vt_node *v = get(q, "logprobs");
    bool new = q->c->line == API_LINE_032;

    if (api_truth(ids) && api_truth(get(q, "use_beam_search")))
        return refuse(q, "logprob_token_ids",
                      "`logprob_token_ids` is not supported with beam search.");
    if (new && api_truth(get(q, "use_beam_search")) && api_truth(get(q, "echo")) &&
        api_given(v))
        return refuse(q, "echo",
                      "`echo` with `logprobs` is not supported with beam search "
                      "because beam search does not compute prompt logprobs.");
    if (api_truth(ids) && api_truth(get(q, "echo")) && get(q, "max_tokens") != NULL &&
        is_number(get(q, "max_tokens")) && !api_truth(get(q, "max_tokens")))
        return refuse(q, "logprob_token_ids",
                      "`logprob_token_ids` is not supported when `echo=True` and "
                      "`max_tokens=0` because no output tokens are generated.");
    if (api_truth(ids) && !api_given(v))
        return refuse(q, "logprob_token_ids",
                      "when using `logprob_token_ids`, `logprobs` must be set.");
    if (new && !(check_is_number(q, "prompt_logprobs", false) &&
                 check_is_number(q, "logprobs", false)))
        return false;
    if (!check_prompt_logprobs(q) || !check_is_number(q, "logprobs", false))
        return false;
    if (api_given(v) && api_get_real(v, 0) < 0 && !(new && api_get_real(v, 0) == -1))
        return refuse_value(q, "logprobs", v,
                            new ? "`logprobs` must be a positive value or -1."
                                : "`logprobs` must be a positive value.");
    return true;
}

static bool check_chat_logprobs(struct api_reading *q)
{
    const struct vt_node *ids = get(q, "logprob_token_ids");
    const struct vt_node *v = get(q, "top_logprobs");
    double n;

    if (api_truth(ids) && api_truth(get(q, "use_beam_search")))
        return refuse(q, "logprob_token_ids",
                      "`logprob_token_ids` is not supported with beam search.");
    if (api_truth(ids) && !api_truth(get(q, "logprobs")))
        return refuse(
            q, "logprob_token_ids",
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
        return refuse_value(q, "top_logprobs", v,
                            "`top_logprobs` must be a positive value or -1.");
    if ((n == -1 || n > 0) && !api_truth(get(q, "logprobs")))
        return refuse(q, "top_logprobs",
                      "when using `top_logprobs`, `logprobs` must be set to true.");
    return true;
}

static bool check_constraints(struct api_reading *q)
{
    static const char *const kinds[] = {"json", "regex", "choice"};
    const struct vt_node *v = get(q, "structured_outputs"), *choice;
    unsigned n = 0;

    if (!api_given(v))
        return true;
    if (v->kind != VT_MAP)
        return no_get(q, v);
    for (size_t i = 0; i < VT_COUNT(kinds); i++)
        n += api_given(vt_get(v, kinds[i]));
    if (n > 1)
        return refuse(q, q->r->kind == API_CHAT ? NULL : "structured_outputs",
                      "You can only use one kind of constraints for structured outputs "
                      "('json', 'regex' or 'choice').");
    choice = q->r->kind == API_CHAT ? get(q, "tool_choice") : NULL;
    if (n > 0 && choice != NULL &&
        !(choice->kind == VT_STR &&
          (strcmp(choice->u.str, "none") == 0 || strcmp(choice->u.str, "auto") == 0 ||
           strcmp(choice->u.str, "required") == 0)))
        return refuse(q, NULL,
                      "You can only either use constraints for structured outputs or "
                      "tools, not both.");
    return true;
}

static bool check_response_format(struct api_reading *q)
{
    const struct vt_node *v = get(q, "response_format");
    const char *type = api_get_str(vt_get(v, "type"), "");

    if (strcmp(type, "json_schema") != 0 || api_given(vt_get(v, "json_schema")))
        return true;
    return refuse(q, "response_format",
                  "When response_format type is 'json_schema', the 'json_schema' field "
                  "must be provided.");
}

static bool check_generation_prompt(struct api_reading *q)
{
    if (!api_truth(get(q, "continue_final_message")) ||
        !api_truth(get(q, "add_generation_prompt")))
        return true;
    return refuse(
        q, NULL,
        "Cannot set both `continue_final_message` and `add_generation_prompt` "
        "to True.");
}

static bool check_iterable(struct api_reading *q)
{
    const struct vt_node *messages = get(q, "messages");

    return messages == NULL || messages->kind >= VT_STR ||
           api_not_iterable(q, messages);
}

/* ---- the other kinds ------------------------------------------------- */

static bool check_budget(struct api_reading *q)
{
    static const char name[] = "thinking_token_budget";
    static const char message[] =
        "`thinking_token_budget` must be a non-negative integer or -1 for unlimited.";
    const struct vt_node *v = get(q, name);
    struct vt_buf extras = {0};

    if (!api_given(v) || (v->kind == VT_INT && (v->is_u64 || v->u.integer >= -1)))
        return true;
    if (q->c->line == API_LINE_032)
        return refuse_value(q, name, v, message);
    vt_buf_printf(&extras, " (parameter=%s, value=", name);
    api_py_str(&extras, v);
    vt_buf_char(&extras, ')');
    if (!extras.failed)
        api_refuse_field(q->e, q->c->line, name, v, "VLLMValidationError", extras.data,
                         message);
    (void)snprintf(q->e->param, sizeof(q->e->param), "%s", name);
    vt_buf_free(&extras);
    return false;
}

/* What a dataclass raises in 0.32 is no ValueError: it breaks the reading off, whatever
 * else is wrong. */
static bool check_rule(struct api_reading *q, const char *name,
                       const struct api_type *type)
{
    const struct vt_node *v = get(q, name);
    struct vt_buf message = {0};
    struct api_type bare = *type;
    struct api_error unread;
    bool ok;

    bare.rule = NULL;
    if (!api_given(v) || v->kind != VT_MAP ||
        !api_value_check(&bare, v, q->c->line, &unread))
        return true;
    ok = type->rule(v, &message);
    if (!ok)
        (void)api_refuse_late(q->e, NULL, NULL, "%s",
                              message.data != NULL ? message.data : "");
    vt_buf_free(&message);
    return ok;
}

static bool check_structured(struct api_reading *q)
{
    return check_rule(q, "structured_outputs", &api_structured_outputs);
}

static bool check_repetition(struct api_reading *q)
{
    return check_rule(q, "repetition_detection", &api_repetition_detection);
}

static bool run(struct api_reading *q, check_fn *const *checks)
{
    for (; *checks != NULL; checks++)
        if (!(*checks)(q))
            return false;
    return true;
}

/* Functions of their own, since the lines differ in where the salt is looked at. */
static check_fn *const completion_026[] = {check_cache_salt,
                                           check_prompt_count,
                                           check_prompt,
                                           check_stream_options,
                                           check_completion_logprobs,
                                           check_constraints,
                                           check_response_format,
                                           check_budget,
                                           NULL};
static check_fn *const completion_032[] = {check_prompt_count,
                                           check_prompt,
                                           check_stream_options,
                                           check_completion_logprobs,
                                           check_constraints,
                                           check_response_format,
                                           check_cache_salt,
                                           check_budget,
                                           check_structured,
                                           check_repetition,
                                           NULL};
static check_fn *const chat_026[] = {check_iterable,
                                     check_cache_salt,
                                     check_generation_prompt,
                                     api_check_tools,
                                     check_constraints,
                                     check_chat_logprobs,
                                     check_stream_options,
                                     check_response_format,
                                     api_check_tool_calls,
                                     check_budget,
                                     NULL};
static check_fn *const chat_032[] = {check_iterable,
                                     check_generation_prompt,
                                     api_check_tools,
                                     check_constraints,
                                     check_chat_logprobs,
                                     check_stream_options,
                                     check_response_format,
                                     api_check_tool_calls,
                                     check_cache_salt,
                                     check_budget,
                                     check_structured,
                                     check_repetition,
                                     NULL};
static check_fn *const responses_026[] = {api_check_responses_tools, check_cache_salt,
                                          api_check_responses, NULL};
static check_fn *const responses_032[] = {api_check_responses_tools,
                                          api_check_responses, check_cache_salt,
                                          check_structured, NULL};
static check_fn *const salt_only[] = {check_cache_salt, NULL};
static check_fn *const nothing[] = {NULL};

bool api_validate(struct api_reading *q)
{
    bool old = q->c->line == API_LINE_026;

    if (q->body->kind != VT_MAP)
        return !old || q->r->kind == API_MESSAGES || no_get(q, q->body);
    switch (q->r->kind) {
    case API_COMPLETIONS:
        return run(q, old ? completion_026 : completion_032);
    case API_CHAT:
        return run(q, old ? chat_026 : chat_032);
    case API_RESPONSES:
        return run(q, old ? responses_026 : responses_032);
    case API_MESSAGES:
        return run(q, nothing);
    case API_EMBEDDINGS:
        return run(q, salt_only);
    }
    return true;
}

/* ---- behind the fields ----------------------------------------------- */

static bool check_called(struct api_reading *q)
{
    const struct vt_node *list = q->slot[SLOT_MESSAGES];

    for (uint32_t i = 0; i < list->n; i++) {
        const struct vt_node *m = &list->u.item[i];
        const struct vt_node *calls = vt_get(m, "tool_calls");

        if (calls != NULL && calls->kind == VT_LIST &&
            strcmp(api_get_str(vt_get(m, "role"), ""), "assistant") == 0 &&
            !api_value_check(&api_tool_calls_type, calls, q->c->line, q->e))
            return false;
    }
    return true;
}

bool api_validate_after(struct api_reading *q)
{
    return q->r->kind != API_CHAT || check_called(q);
}
