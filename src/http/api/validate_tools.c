/* validate_tools.c - vLLM's validators of tools, and of /v1/responses. */
#include <string.h>

#include "http/api/request.h"

/* A validator writes its default into the body, where later errors show it. */
static bool append_choice(struct api_reading *q, const char *word)
{
    uint32_t n = q->body->n;
    struct vt_node *body = vt_arena_alloc(&q->r->arena, sizeof(*body));
    struct vt_node *item = vt_arena_alloc(&q->r->arena, sizeof(*item) * (n + 1));

    if (!body || !item)
        return api_nomem(q->e);
    if (n > 0)
        memcpy(item, q->body->u.item, sizeof(*item) * n);
    item[n] = (struct vt_node){.kind = VT_STR,
                               .key = "tool_choice",
                               .n = (uint32_t)strlen(word),
                               .u.str = word};
    *body = *q->body;
    body->n = n + 1;
    body->u.item = item;
    q->body = body;
    return true;
}

/* ---- tools ----------------------------------------------------------- */

#define USAGE                                                            \
    "Correct usage: `{\"type\": \"function\", \"function\": {\"name\": " \
    "\"my_function\"}}`"

static bool refuse_choice(struct api_reading *q, const char *param,
                          const struct vt_node *v, const char *before,
                          const char *after)
{
    return api_refuse(q, param, NULL, "%s%s%s", before, v ? api_str_of(q, v) : "None",
                      after);
}

static bool check_named_tool(struct api_reading *q, const struct vt_node *choice,
                             const struct vt_node *tools)
{
    const struct vt_node *function = vt_get(choice, "function"), *name;

    if (!function || function->kind != VT_MAP)
        return refuse_choice(q, "tool_choice.function", function,
                             "Invalid value for `function`: `",
                             "` in `tool_choice`! " USAGE);
    name = vt_get(function, "name");
    if (!name)
        return api_refuse(
            q, "tool_choice.function.name", NULL,
            "Expected field `name` in `function` in `tool_choice`! " USAGE);
    if (name->kind != VT_STR || name->n == 0)
        return refuse_choice(q, "tool_choice.function.name", name,
                             "Invalid `name` in `function`: `",
                             "` in `tool_choice`! " USAGE);
    for (uint32_t i = 0; tools->kind == VT_LIST && i < tools->n; i++) {
        const struct vt_node *one = vt_get(&tools->u.item[i], "function");

        if (strcmp(api_get_str(vt_get(one, "name"), ""), name->u.str) == 0)
            return true;
    }
    return api_refuse(q, "tool_choice", NULL,
                      "The tool specified in `tool_choice` does not match any of the "
                      "specified `tools`");
}

bool api_check_tools(struct api_reading *q)
{
    const struct vt_node *tools = api_asked(q, "tools"),
                         *choice = api_asked(q, "tool_choice");
    const char *word = api_get_str(choice, "");

    if (tools && tools->kind == VT_LIST && tools->n == 0)
        return api_refuse_value(
            q, "tools",
            "`tools` must not be an empty array. Either provide at least one tool or "
            "omit the field entirely.");
    if (!choice && api_truth(tools))
        return append_choice(q, "auto");
    if (!api_given(choice) || strcmp(word, "none") == 0)
        return true;
    if (!api_given(tools))
        return api_refuse(q, "tool_choice", NULL,
                          "When using `tool_choice`, `tools` must be set.");
    if (choice->kind == VT_MAP)
        return check_named_tool(q, choice, tools);
    if (strcmp(word, "auto") == 0 || strcmp(word, "required") == 0)
        return true;
    return refuse_choice(q, "tool_choice", choice, "Invalid value for `tool_choice`: ",
                         "! Only named tools, \"none\", \"auto\" or \"required\" are "
                         "supported.");
}

bool api_check_tool_calls(struct api_reading *q)
{
    const struct vt_node *messages = api_asked(q, "messages");

    for (uint32_t i = 0; messages && messages->kind == VT_LIST && i < messages->n;
         i++) {
        const struct vt_node *v = vt_get(&messages->u.item[i], "tool_calls");

        if (api_given(v) && v->kind < VT_STR)
            return api_refuse_late(q, NULL, NULL, "'%s' object is not iterable",
                                   api_py_type(v));
    }
    return true;
}

/* ---- responses ------------------------------------------------------- */

bool api_check_responses_tools(struct api_reading *q)
{
    const struct vt_node *tools = api_asked(q, "tools"),
                         *choice = api_asked(q, "tool_choice");
    const char *word = api_get_str(choice, !choice ? "auto" : "");
    const char *name = api_get_str(vt_get(choice, "name"), "");
    bool named = strcmp(api_get_str(vt_get(choice, "type"), ""), "function") == 0;
    bool known = false;

    if (api_given(tools) && tools->kind < VT_STR)
        return api_refuse_late(q, NULL, NULL, "object of type '%s' has no len()",
                               api_py_type(tools));
    for (uint32_t i = 0; tools && tools->kind == VT_LIST && i < tools->n; i++)
        known |= strcmp(api_get_str(vt_get(&tools->u.item[i], "name"), ""), name) == 0;
    if (named && !known)
        return api_refuse(q, "tool_choice", NULL,
                          "Tool choice 'function' not found in 'tools' parameter.");
    if (api_given(tools) && tools->n > 0)
        return true;
    if (strcmp(word, "required") == 0)
        return api_refuse(q, "tool_choice", NULL,
                          "Tool choice 'required' must be specified with 'tools' "
                          "parameter.");
    return choice || append_choice(q, "none");
}

bool api_check_responses(struct api_reading *q)
{
    const struct vt_node *store = api_asked(q, "store");

    if (api_given(api_asked(q, "prompt")))
        return api_refuse(q, "prompt", NULL, "prompt template is not supported");
    if (api_truth(api_asked(q, "background")) && store && !api_truth(store))
        return api_refuse(q, "background", NULL,
                          "background can only be used when `store` is true");
    return true;
}
