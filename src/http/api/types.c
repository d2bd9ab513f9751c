/* types.c - the types of fields that several of vLLM's request classes share. */
#include "http/api/request.h"

#define OPTIONAL .nullable = true

const struct api_type api_any = {.what = API_ANY};
const struct api_type api_bool = {.what = API_BOOL};
const struct api_type api_bool_or_null = {.what = API_BOOL, OPTIONAL};
const struct api_type api_int = {.what = API_INT};
const struct api_type api_int_or_null = {.what = API_INT, OPTIONAL};
const struct api_type api_real = {.what = API_REAL};
const struct api_type api_real_or_null = {.what = API_REAL, OPTIONAL};
const struct api_type api_str = {.what = API_STR};
const struct api_type api_str_or_null = {.what = API_STR, OPTIONAL};
const struct api_type api_ints_or_null = {.what = API_LIST, OPTIONAL, .of = &api_int};
const struct api_type api_strs = {.what = API_LIST, .of = &api_str};
const struct api_type api_dict_or_null = {.what = API_DICT, OPTIONAL};

static const struct api_type strs_or_null = {
    .what = API_LIST, OPTIONAL, .of = &api_str};

/* ---- numbers --------------------------------------------------------- */

const struct api_type api_seed = {.what = API_INT,
                                  OPTIONAL,
                                  .has_min = true,
                                  .has_max = true,
                                  .min = INT64_MIN,
                                  .max = INT64_MAX};
const struct api_type api_priority = {.what = API_INT,
                                      .has_min = true,
                                      .has_max = true,
                                      .min = INT64_MIN,
                                      .max = INT64_MAX};
const struct api_type api_truncate = {.what = API_INT,
                                      OPTIONAL,
                                      .has_min = true,
                                      .has_max = true,
                                      .min = -1,
                                      .max = INT64_MAX};
const struct api_type api_interval = {
    .what = API_INT, OPTIONAL, .has_min = true, .min = 1};
const struct api_type api_from_zero = {.what = API_INT, .has_min = true, .min = 0};

/* ---- text ------------------------------------------------------------ */

static const char *const sides[] = {"left", "right", NULL};
const struct api_type api_truncation_side = {
    .what = API_LITERAL, OPTIONAL, .literal = sides};
const struct api_type api_cache_salt = {
    .what = API_STR, OPTIONAL, .has_min = true, .has_max = true, .min = 1, .max = 1024};

static const struct api_type stop_kinds[] = {
    {.what = API_STR, .label = "str"},
    {.what = API_LIST, .label = "list[str]", .of = &api_str},
};
enum { MAX_STOPS = 4 }; /* VLLM_MAX_STOP_STRINGS of 0.32 */
static const struct api_type few_stops_kinds[] = {
    {.what = API_STR, .label = "str"},
    {.what = API_LIST,
     .label = "list[str]",
     .of = &api_str,
     .has_max = true,
     .max = MAX_STOPS},
};
const struct api_type api_few_stops = {
    .what = API_UNION, OPTIONAL, .of = few_stops_kinds, .n = 2};
const struct api_type api_stop = {
    .what = API_UNION, OPTIONAL, .of = stop_kinds, .n = 2};

static const struct api_type xarg_items[] = {
    {.what = API_STR, .label = "str"},
    {.what = API_INT, .label = "int"},
    {.what = API_REAL, .label = "float"},
};
static const struct api_type xarg_item = {.what = API_UNION, .of = xarg_items, .n = 3};
static const struct api_type xarg_kinds[] = {
    {.what = API_STR, .label = "str"},
    {.what = API_INT, .label = "int"},
    {.what = API_REAL, .label = "float"},
    {.what = API_LIST, .label = "list[union[str,int,float]]", .of = &xarg_item},
};
static const struct api_type xarg = {.what = API_UNION, .of = xarg_kinds, .n = 4};
const struct api_type api_xargs = {.what = API_DICT, OPTIONAL, .of = &xarg};

const struct api_type api_biases = {.what = API_DICT, OPTIONAL, .of = &api_real};

static const char *const payloads[] = {"tensors", "none", NULL};
const struct api_type api_payload = {.what = API_LITERAL, .literal = payloads};

/* ---- models ---------------------------------------------------------- */

static const struct api_field stream_options[] = {
    {.name = "include_usage", .type = &api_bool_or_null},
    {.name = "continuous_usage_stats", .type = &api_bool_or_null},
    {0}};
const struct api_type api_stream_options = {
    .what = API_MODEL, OPTIONAL, .field = stream_options};

static const struct api_field repetition[] = {
    {.name = "max_pattern_size", .type = &api_int},
    {.name = "min_pattern_size", .type = &api_int},
    {.name = "min_count", .type = &api_int},
    {0}};
const struct api_type api_repetition_detection = {.what = API_DATACLASS,
                                                  OPTIONAL,
                                                  .rule = api_repetition_rule,
                                                  .label = "RepetitionDetectionParams",
                                                  .field = repetition};

static const struct api_type json_kinds[] = {
    {.what = API_STR, .label = "str"},
    {.what = API_DICT, .label = "dict[any,any]"},
};
static const struct api_type json_schema_or_text = {
    .what = API_UNION, OPTIONAL, .of = json_kinds, .n = 2};
static const struct api_field structured[] = {
    {.name = "json", .type = &json_schema_or_text},
    {.name = "regex", .type = &api_str_or_null},
    {.name = "choice", .type = &strs_or_null},
    {.name = "grammar", .type = &api_str_or_null},
    {.name = "json_object", .type = &api_bool_or_null},
    {.name = "disable_any_whitespace", .type = &api_bool},
    {.name = "disable_additional_properties", .type = &api_bool},
    {.name = "whitespace_pattern", .type = &api_str_or_null},
    {.name = "structural_tag", .type = &api_str_or_null},
    {0}};
const struct api_type api_structured_outputs = {.what = API_DATACLASS,
                                                OPTIONAL,
                                                .rule = api_structured_rule,
                                                .label = "StructuredOutputsParams",
                                                .field = structured};

#define WRAPPED "function-wrap[__log_extra_fields__()]"

static const char *const format_names[] = {"text", "json_object", "json_schema", NULL};
static const char *const tag_name[] = {"structural_tag", NULL};
static const struct api_type format_name = {.what = API_LITERAL,
                                            .literal = format_names};
static const struct api_type tag = {.what = API_LITERAL, .literal = tag_name};
static const struct api_field schema_fields[] = {
    {.name = "name", .type = &api_str, .required = true},
    {.name = "description", .type = &api_str_or_null},
    {.name = "schema", .type = &api_dict_or_null},
    {.name = "strict", .type = &api_bool_or_null},
    {0}};
static const struct api_type schema = {
    .what = API_MODEL, OPTIONAL, .field = schema_fields};
static const struct api_field format_fields[] = {
    {.name = "type", .type = &format_name, .required = true},
    {.name = "json_schema", .type = &schema},
    {0}};
static const struct api_field tag_fields[] = {
    {.name = "type", .type = &tag, .required = true},
    {.name = "format", .type = &api_any, .required = true},
    {0}};
static const struct api_field old_structure_fields[] = {
    {.name = "begin", .type = &api_str, .required = true},
    {.name = "schema", .type = &api_dict_or_null},
    {.name = "end", .type = &api_str, .required = true},
    {0}};
static const struct api_type old_structure = {.what = API_MODEL,
                                              .field = old_structure_fields};
static const struct api_type old_structures = {.what = API_LIST, .of = &old_structure};
static const struct api_field old_tag_fields[] = {
    {.name = "type", .type = &tag, .required = true},
    {.name = "structures", .type = &old_structures, .required = true},
    {.name = "triggers", .type = &api_strs, .required = true},
    {0}};
static const struct api_type format_kinds[] = {
    {.what = API_MODEL, .label = WRAPPED, .field = format_fields},
    {.what = API_MODEL, .label = WRAPPED, .field = tag_fields},
    {.what = API_MODEL, .label = WRAPPED, .field = old_tag_fields},
};
const struct api_type api_response_format = {
    .what = API_UNION, OPTIONAL, .of = format_kinds, .n = 3};
