/* rules.c - rules of single values that vLLM's classes state beside their types. */
#include <string.h>

#include "http/api/request.h"

/* The dataclass of vLLM, every field of it, as its errors show it. */
static void put_dataclass(struct vt_buf *b, const struct vt_node *v)
{
    static const struct {
        const char *name, *otherwise;
    } rows[] = {{"json", "None"},
                {"regex", "None"},
                {"choice", "None"},
                {"grammar", "None"},
                {"json_object", "None"},
                {"disable_any_whitespace", "False"},
                {"disable_additional_properties", "False"},
                {"whitespace_pattern", "None"},
                {"structural_tag", "None"}};

    vt_buf_char(b, '{');
    for (size_t i = 0; i < VT_COUNT(rows); i++) {
        const struct vt_node *field = vt_get(v, rows[i].name);

        vt_buf_printf(b, "'%s': ", rows[i].name);
        if (field)
            api_py_repr(b, field);
        else
            vt_buf_str(b, rows[i].otherwise);
        vt_buf_str(b, ", ");
    }
    vt_buf_str(b, "'_backend': None, '_backend_was_auto': False}");
}

bool api_structured_rule(const struct vt_node *v, struct vt_buf *message)
{
    static const char *const kinds[] = {"json",    "regex",       "choice",
                                        "grammar", "json_object", "structural_tag"};
    unsigned n = 0;

    for (size_t i = 0; i < VT_COUNT(kinds); i++)
        n += api_given(vt_get(v, kinds[i]));
    if (n == 1)
        return true;
    vt_buf_str(message, n > 1 ? "You can only use one kind of structured outputs "
                                "constraint but multiple are specified: "
                              : "You must use one kind of structured outputs "
                                "constraint but none are specified: ");
    put_dataclass(message, v);
    return false;
}

bool api_repetition_rule(const struct vt_node *v, struct vt_buf *message)
{
    int64_t max = api_get_int(vt_get(v, "max_pattern_size"), 0);
    int64_t min = api_get_int(vt_get(v, "min_pattern_size"), 0);

    if (max < 0 || min < 0 || min > max)
        vt_buf_str(message,
                   "max_pattern_size, min_pattern_size must be >=0, with "
                   "min_pattern_size <= max_pattern_size. Set both to 0 to disable "
                   "repetitive pattern detection.");
    else if (max > 0 && api_get_int(vt_get(v, "min_count"), 0) < 2)
        vt_buf_str(message,
                   "min_count must be >= 2 to detect repetitive patterns in engine "
                   "output. If you do not wish to detect repetitive patterns, set "
                   "max_pattern_size to 0.");
    return message->len == 0 && !message->failed;
}

bool api_named_rule(const struct vt_node *v, struct vt_buf *message)
{
    if (v->n > 0)
        return true;
    vt_buf_str(message, "Model is required");
    return false;
}

bool api_positive_rule(const struct vt_node *v, struct vt_buf *message)
{
    if (api_get_int(v, 0) > 0)
        return true;
    vt_buf_str(message, "max_tokens must be positive");
    return false;
}

bool api_choice_rule(const struct vt_node *v, struct vt_buf *message)
{
    if (strcmp(api_get_str(vt_get(v, "type"), ""), "tool") != 0 ||
        api_truth(vt_get(v, "name")))
        return true;
    vt_buf_str(message, "tool_choice.name is required when type is 'tool'");
    return false;
}
