/* tools.c - what a request says its output must look like: tools and formats. */
#include <string.h>

#include "http/api/request.h"

/* ---- tools ----------------------------------------------------------- */

static bool choose_named(struct api_reading *q, const char *name)
{
    for (uint32_t i = 0; i < q->r->n_tools; i++)
        if (strcmp(q->r->tool[i].name, name) == 0) {
            q->r->tool_choice = API_TOOLS_NAMED;
            q->r->tool_index = i;
            return true;
        }
    return api_refuse_late(q, "tool_choice", NULL,
                           "The tool specified in `tool_choice` does not match any of "
                           "the specified `tools`");
}

static bool read_choice(struct api_reading *q, const struct vt_node *v)
{
    const char *word = api_get_str(v, api_get_str(vt_get(v, "type"), ""));

    q->r->tool_choice = q->r->n_tools > 0 ? API_TOOLS_AUTO : API_TOOLS_NONE;
    if (v && v->kind == VT_NULL && q->r->kind == API_CHAT)
        q->r->tool_choice = API_TOOLS_NONE;
    if (!api_given(v) || q->r->n_tools == 0)
        return true;
    if (strcmp(word, "none") == 0)
        q->r->tool_choice = API_TOOLS_NONE;
    else if (strcmp(word, "required") == 0 || strcmp(word, "any") == 0)
        q->r->tool_choice = API_TOOLS_REQUIRED;
    else if (v->kind == VT_MAP && q->r->kind == API_CHAT)
        return choose_named(q, api_get_str(vt_get(vt_get(v, "function"), "name"), ""));
    else if (v->kind == VT_MAP && strcmp(word, "auto") != 0)
        return choose_named(q, api_get_str(vt_get(v, "name"), ""));
    if (v->kind == VT_MAP && api_truth(vt_get(v, "disable_parallel_tool_use")))
        q->r->parallel_tools = false;
    return true;
}

bool api_read_tools(struct api_reading *q)
{
    const struct vt_node *list = q->slot[SLOT_TOOLS];
    struct api_tool *tool;

    if (api_given(list) && list->n > 0) {
        tool = vt_arena_alloc(&q->r->arena, sizeof(*tool) * list->n);
        if (!tool)
            return api_nomem(q->e);
        /* The Responses API knows tools of the server's own, too: those we lack. Chat
         * wraps a function, the others are flat; Anthropic names its schema otherwise.
         */
        for (uint32_t i = 0; i < list->n; i++) {
            const struct vt_node *v = &list->u.item[i];
            const struct vt_node *f =
                q->r->kind == API_CHAT ? vt_get(v, "function") : v;
            const struct vt_node *schema =
                vt_get(f, q->r->kind == API_MESSAGES ? "input_schema" : "parameters");

            if (q->r->kind == API_RESPONSES &&
                strcmp(api_get_str(vt_get(v, "type"), ""), "function") != 0)
                continue;
            tool[q->r->n_tools++] = (struct api_tool){
                .name = api_get_str(vt_get(f, "name"), ""),
                .parameters = schema && schema->kind == VT_MAP ? schema : NULL};
        }
        q->r->tool = tool;
    }
    return read_choice(q, q->slot[SLOT_TOOL_CHOICE]);
}

/* ---- formats --------------------------------------------------------- */

static const struct {
    const char *key;
    enum api_format format;
} constraints[] = {
    {"json", API_JSON_SCHEMA},       {"regex", API_REGEX},
    {"choice", API_CHOICE},          {"grammar", API_GRAMMAR},
    {"structural_tag", API_GRAMMAR},
};

/* A schema may come as text. */
static bool set_schema(struct api_reading *q, const struct vt_node *v)
{
    struct vt_json_bounds bounds = api_json_bounds(q->c, NULL);
    struct vt_err err;

    q->r->format = API_JSON_SCHEMA;
    q->r->constraint = v;
    if (v->kind != VT_STR)
        return true;
    if (vt_json_parse_bounded(&q->r->arena, v->u.str, v->n, &bounds, &q->r->constraint,
                              &err) != VT_OK)
        return api_refuse_late(q, NULL, NULL, "Invalid JSON grammar specification.");
    return true;
}

static bool read_structured(struct api_reading *q, const struct vt_node *v)
{
    if (!api_given(v))
        return true;
    if (api_get_bool(vt_get(v, "json_object"), false))
        q->r->format = API_JSON_OBJECT;
    for (size_t i = 0; i < VT_COUNT(constraints); i++) {
        const struct vt_node *c = vt_get(v, constraints[i].key);

        if (!api_given(c))
            continue;
        q->r->format = constraints[i].format;
        q->r->constraint = c;
    }
    return q->r->format != API_JSON_SCHEMA || set_schema(q, q->r->constraint);
}

static bool read_typed(struct api_reading *q, const struct vt_node *format,
                       const struct vt_node *schema)
{
    static const struct vt_node none = {.kind = VT_MAP};
    const char *type = api_get_str(vt_get(format, "type"), "text");
    struct vt_buf text = {0};

    if (strcmp(type, "json_object") == 0) {
        q->r->format = API_JSON_OBJECT;
        q->r->constraint = NULL;
    } else if (strcmp(type, "json_schema") == 0 && api_given(schema)) {
        return set_schema(q, schema);
    } else if (strcmp(type, "structural_tag") == 0) {
        q->r->format = API_GRAMMAR;
        q->r->constraint = format;
    } else if (strcmp(type, "json_schema") == 0 && q->r->kind != API_RESPONSES) {
        /* A schema that is none: what vLLM makes of it has no constraint at all. */
        (void)api_structured_rule(&none, &text);
        return api_refuse_late(q, NULL, NULL, "%s", api_kept(q, &text));
    }
    return true;
}

bool api_read_format(struct api_reading *q)
{
    const struct vt_node *format = q->slot[SLOT_RESPONSE_FORMAT], *schema;

    if (!read_structured(q, q->slot[SLOT_STRUCTURED_OUTPUTS]))
        return false;
    if (q->r->kind == API_RESPONSES)
        format = vt_get(q->slot[SLOT_TEXT], "format");
    else if (q->r->kind == API_MESSAGES)
        format = vt_get(q->slot[SLOT_OUTPUT_CONFIG], "format");
    else if (api_given(format))
        return read_typed(q, format, vt_get(vt_get(format, "json_schema"), "schema"));
    schema = vt_get(format, "schema");
    return !api_given(q->r->kind == API_MESSAGES ? schema : format) ||
           read_typed(q, format, schema);
}
