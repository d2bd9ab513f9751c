/* types.c - the types of fields that several of vLLM's request classes share. */
#include "http/api/request.h"

#include <string.h>

const struct api_type api_any = {.what = API_ANY};
const struct api_type api_bool = {.what = API_BOOL};
const struct api_type api_bool_or_null = {.what = API_BOOL, OPTIONAL};
const struct api_type api_int = {.what = API_INT};
const struct api_type api_int_or_null = {.what = API_INT, OPTIONAL};
const struct api_type api_real = {.what = API_REAL};
const struct api_type api_real_or_null = {.what = API_REAL, OPTIONAL};
const struct api_type api_str = {.what = API_STR};
const struct api_type api_str_or_null = {.what = API_STR, OPTIONAL};
const struct api_type api_ints_or_null = {API_LIST_OF(api_int), OPTIONAL};
const struct api_type api_strs = {API_LIST_OF(api_str)};
const struct api_type api_dict_or_null = {.what = API_DICT, OPTIONAL};
const struct api_type api_strs_or_null = {API_LIST_OF(api_str), OPTIONAL};
const struct api_type api_dict = {.what = API_DICT};
const struct api_type api_dicts_or_null = {.what = API_DICT, OPTIONAL, .of = &api_dict};

/* ---- numbers --------------------------------------------------------- */

#define WITHIN(low, high) .has_min = true, .has_max = true, .min = (low), .max = (high)
#define AT_LEAST(low)     .has_min = true, .min = (low)

const struct api_type api_seed = {
    .what = API_INT, OPTIONAL, WITHIN(INT64_MIN, INT64_MAX)};
const struct api_type api_priority = {.what = API_INT, WITHIN(INT64_MIN, INT64_MAX)};
const struct api_type api_truncate = {.what = API_INT, OPTIONAL, WITHIN(-1, INT64_MAX)};
const struct api_type api_interval = {.what = API_INT, OPTIONAL, AT_LEAST(1)};
const struct api_type api_from_zero = {.what = API_INT, AT_LEAST(0)};

/* ---- text ------------------------------------------------------------ */

const struct api_type api_truncation_side = {API_WORDS("left", "right"), OPTIONAL};
const struct api_type api_cache_salt = {.what = API_STR, OPTIONAL, WITHIN(1, 1024)};
const struct api_type api_payload = {API_WORDS("tensors", "none")};

/* VLLM_MAX_STOP_STRINGS of 0.32 */
#define FEW .has_max = true, .max = 4
const struct api_type api_few_strs = {API_LIST_OF(api_str), OPTIONAL, FEW};
const struct api_type api_few_stops = {
    API_STR_OR(API_LIST_OF(api_str), .label = "list[str]", FEW), OPTIONAL};
const struct api_type api_stop = {
    API_STR_OR(API_LIST_OF(api_str), .label = "list[str]"), OPTIONAL};

#define XARG_KINDS                                                        \
    {.what = API_STR, .label = "str"}, {.what = API_INT, .label = "int"}, \
        {.what = API_REAL, .label = "float"}
static const struct api_type xarg_item = {API_ONE_OF(XARG_KINDS)};
static const struct api_type xarg = {API_ONE_OF(
    XARG_KINDS, {API_LIST_OF(xarg_item), .label = "list[union[str,int,float]]"})};
const struct api_type api_xargs = {.what = API_DICT, OPTIONAL, .of = &xarg};
const struct api_type api_biases = {.what = API_DICT, OPTIONAL, .of = &api_real};

/* ---- rules that vLLM's classes state beside their types -------------- */

/* The dataclass of vLLM, every field of it, as its errors show it. */
static void put_dataclass(struct vt_buf *b, const struct vt_node *v)
{
    vt_buf_char(b, '{');
    for (const struct api_field *f = api_structured_outputs.field; f->name; f++) {
        const struct vt_node *field = vt_get(v, f->name);

        vt_buf_printf(b, "'%s': ", f->name);
        if (field)
            api_py_repr(b, field);
        else
            vt_buf_str(b, f->type->nullable ? "None" : "False");
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

static bool is_repetition(const struct vt_node *v, struct vt_buf *message)
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

/* ---- models ---------------------------------------------------------- */

const struct api_type api_stream_options = {
    OPTIONAL, API_MODEL_OF(API_FIELD("include_usage", api_bool_or_null),
                           API_FIELD("continuous_usage_stats", api_bool_or_null))};

const struct api_type api_repetition_detection = {
    .what = API_DATACLASS,
    OPTIONAL,
    .rule = is_repetition,
    .label = "RepetitionDetectionParams",
    API_FIELDS(API_FIELD("max_pattern_size", api_int),
               API_FIELD("min_pattern_size", api_int),
               API_FIELD("min_count", api_int))};

static const struct api_type json_schema_or_text = {
    API_STR_OR(.what = API_DICT, .label = "dict[any,any]"), OPTIONAL};
const struct api_type api_structured_outputs = {
    .what = API_DATACLASS,
    OPTIONAL,
    .rule = api_structured_rule,
    .label = "StructuredOutputsParams",
    API_FIELDS(
        API_FIELD("json", json_schema_or_text), API_FIELD("regex", api_str_or_null),
        API_FIELD("choice", api_strs_or_null), API_FIELD("grammar", api_str_or_null),
        API_FIELD("json_object", api_bool_or_null),
        API_FIELD("disable_any_whitespace", api_bool),
        API_FIELD("disable_additional_properties", api_bool),
        API_FIELD("whitespace_pattern", api_str_or_null),
        API_FIELD("structural_tag", api_str_or_null))};

static const struct api_type format_name = {
    API_WORDS("text", "json_object", "json_schema")};
static const struct api_type schema = {
    OPTIONAL,
    API_MODEL_OF(API_NEEDED("name", api_str), API_FIELD("description", api_str_or_null),
                 API_FIELD("schema", api_dict_or_null),
                 API_FIELD("strict", api_bool_or_null))};
static const struct api_type old_structure = {
    API_MODEL_OF(API_NEEDED("begin", api_str), API_FIELD("schema", api_dict_or_null),
                 API_NEEDED("end", api_str))};
static const struct api_type old_structures = {API_LIST_OF(old_structure)};
const struct api_type api_response_format = {
    API_ONE_OF({.label = API_WRAPPED,
                API_MODEL_OF(API_NEEDED("type", format_name),
                             API_FIELD("json_schema", schema))},
               {.label = API_WRAPPED,
                API_MODEL_OF(API_NEEDED("type", WORD("structural_tag")),
                             API_NEEDED("format", api_any))},
               {.label = API_WRAPPED,
                API_MODEL_OF(API_NEEDED("type", WORD("structural_tag")),
                             API_NEEDED("structures", old_structures),
                             API_NEEDED("triggers", api_strs))}),
    OPTIONAL};
