/* schema_other.c - the fields of /v1/responses and /v1/messages.
 *
 * The Responses API's unions of items, tools and choices have dozens of branches, each
 * with an error of its own; here they are a few, so what is refused is right and the
 * words about it are fewer. */
#include "http/api/request.h"

#define OPTIONAL .nullable = true
/* ---- responses ------------------------------------------------------- */

static const char *const includes[] = {"code_interpreter_call.outputs",
                                       "computer_call_output.output.image_url",
                                       "file_search_call.results",
                                       "message.input_image.image_url",
                                       "message.output_text.logprobs",
                                       "reasoning.encrypted_content",
                                       NULL};
static const struct api_type include_one = {.what = API_LITERAL, .literal = includes};
static const struct api_type include = {.what = API_LIST, OPTIONAL, .of = &include_one};

static const struct api_type item = {.what = API_TYPED_DICT};
static const struct api_type input_kinds[] = {
    {.what = API_STR, .label = "str"},
    {.what = API_LIST, .label = "list[union[...]]", .of = &item},
};
static const struct api_type input = {.what = API_UNION, .of = input_kinds, .n = 2};

static const struct api_type metadata = {.what = API_DICT, OPTIONAL, .of = &api_str};
static const struct api_type model_or_null = {.what = API_MODEL, OPTIONAL};
static const char *const tiers[] = {"auto",  "default",  "flex",
                                    "scale", "priority", NULL};
static const struct api_type tier = {.what = API_LITERAL, .literal = tiers};
static const char *const truncations[] = {"auto", "disabled", NULL};
static const struct api_type truncation = {
    .what = API_LITERAL, OPTIONAL, .literal = truncations};
static const struct api_type penalty = {
    .what = API_REAL, OPTIONAL, .has_min = true, .has_max = true, .min = -2, .max = 2};

#define LITERAL(name, text)                                   \
    static const char *const name##_words[] = {(text), NULL}; \
    static const struct api_type name = {.what = API_LITERAL, .literal = name##_words}
LITERAL(text_word, "text");
LITERAL(schema_word, "json_schema");
LITERAL(object_word, "json_object");
static const struct api_type any_dict = {.what = API_DICT};
static const struct api_field text_fields[] = {API_NEEDED("type", text_word), {0}};
static const struct api_field schema_fields[] = {
    API_NEEDED("name", api_str),           API_NEEDED("schema", any_dict),
    API_NEEDED("type", schema_word),       API_FIELD("description", api_str_or_null),
    API_FIELD("strict", api_bool_or_null), {0}};
static const struct api_field object_fields[] = {API_NEEDED("type", object_word), {0}};
static const struct api_type format_kinds[] = {
    {.what = API_MODEL, .label = "ResponseFormatText", .field = text_fields},
    {.what = API_MODEL,
     .label = "ResponseFormatTextJSONSchemaConfig",
     .field = schema_fields},
    {.what = API_MODEL, .label = "ResponseFormatJSONObject", .field = object_fields},
};
static const struct api_type text_format = {
    .what = API_UNION, OPTIONAL, .of = format_kinds, .n = 3};
static const char *const verbosities[] = {"low", "medium", "high", NULL};
static const struct api_type verbosity = {
    .what = API_LITERAL, OPTIONAL, .literal = verbosities};
static const struct api_field text_config_fields[] = {
    API_FIELD("format", text_format), API_FIELD("verbosity", verbosity), {0}};
static const struct api_type text_config = {
    .what = API_MODEL, OPTIONAL, .field = text_config_fields};

static const struct api_field function_tool_fields[] = {API_NEEDED("type", api_str),
                                                        {0}};
static const struct api_type function_tool = {.what = API_MODEL,
                                              .field = function_tool_fields};
static const struct api_type flat_tools = {.what = API_LIST, .of = &function_tool};
static const char *const choices[] = {"none", "auto", "required", NULL};
static const struct api_type flat_choice_kinds[] = {
    {.what = API_LITERAL,
     .label = "literal['none','auto','required']",
     .literal = choices},
    {.what = API_MODEL, .label = "ToolChoiceFunction", .field = function_tool_fields},
};
static const struct api_type flat_choice = {
    .what = API_UNION, .of = flat_choice_kinds, .n = 2};
static const struct api_type messages_or_null = {.what = API_LIST, OPTIONAL};

const struct api_field api_responses_fields[] = {
    FIELD("background", api_bool_or_null, IGNORED),
    FIELD("include", include, INCLUDE),
    FIELD_NEEDED("input", input, INPUT),
    FIELD("instructions", api_str_or_null, INSTRUCTIONS),
    FIELD("max_output_tokens", api_int_or_null, MAX_OUTPUT_TOKENS),
    FIELD("max_tool_calls", api_int_or_null, IGNORED),
    FIELD("metadata", metadata, IGNORED),
    FIELD("model", api_str_or_null, MODEL),
    FIELD("logit_bias", api_biases, LOGIT_BIAS),
    FIELD("parallel_tool_calls", api_bool_or_null, PARALLEL_TOOLS),
    FIELD("previous_response_id", api_str_or_null, PREVIOUS),
    FIELD("prompt", model_or_null, IGNORED),
    FIELD("reasoning", model_or_null, REASONING),
    FIELD("include_reasoning", api_bool, IGNORED),
    FIELD("service_tier", tier, IGNORED),
    FIELD("store", api_bool_or_null, IGNORED),
    FIELD("stream", api_bool_or_null, STREAM),
    FIELD("temperature", api_real_or_null, TEMPERATURE),
    FIELD("text", text_config, TEXT),
    FIELD("tool_choice", flat_choice, TOOL_CHOICE),
    FIELD("tools", flat_tools, TOOLS),
    FIELD("top_logprobs", api_int_or_null, TOP_LOGPROBS),
    FIELD("top_p", api_real_or_null, TOP_P),
    FIELD("top_k", api_int_or_null, TOP_K),
    FIELD_NEW("min_p", api_real_or_null, MIN_P),
    FIELD("truncation", truncation, TRUNCATION),
    FIELD("user", api_str_or_null, IGNORED),
    FIELD("skip_special_tokens", api_bool, SKIP_SPECIAL),
    FIELD("include_stop_str_in_output", api_bool, INCLUDE_STOP),
    FIELD("presence_penalty", penalty, PRESENCE_PENALTY),
    FIELD("frequency_penalty", penalty, FREQUENCY_PENALTY),
    FIELD("prompt_cache_key", api_str_or_null, IGNORED),
    FIELD_NEW("watermarking", api_bool_or_null, IGNORED),
    FIELD("request_id", api_str, REQUEST_ID),
    FIELD_NEW("session_id", api_str_or_null, SESSION_ID),
    FIELD("mm_processor_kwargs", api_dict_or_null, IGNORED),
    FIELD("priority", api_priority, PRIORITY),
    FIELD_NEW("mm_payload", api_payload, IGNORED),
    FIELD_NEW("return_mm_kwargs", api_bool_or_null, IGNORED),
    FIELD_OLD("cache_salt", api_str_or_null, CACHE_SALT),
    FIELD_NEW("cache_salt", api_cache_salt, CACHE_SALT),
    FIELD("enable_response_messages", api_bool, IGNORED),
    FIELD("previous_input_messages", messages_or_null, IGNORED),
    FIELD("structured_outputs", api_structured_outputs, STRUCTURED_OUTPUTS),
    FIELD("repetition_penalty", api_real_or_null, REPETITION_PENALTY),
    FIELD("seed", api_seed, SEED),
    FIELD_OLD("stop", api_stop, STOP),
    FIELD_NEW("stop", api_few_stops, STOP),
    FIELD_NEW("stop_token_ids", api_ints_or_null, STOP_TOKEN_IDS),
    FIELD("ignore_eos", api_bool, IGNORE_EOS),
    FIELD("vllm_xargs", api_xargs, IGNORED),
    FIELD("kv_transfer_params", api_dict_or_null, IGNORED),
    FIELD("ec_transfer_params", api_dict_or_null, IGNORED),
    FIELD("chat_template_kwargs", api_dict_or_null, CHAT_TEMPLATE_KWARGS),
    {0}};

/* ---- messages -------------------------------------------------------- */

static const char *const block_names[] = {
    "text",           "image",    "tool_use",          "tool_result",
    "tool_reference", "thinking", "redacted_thinking", NULL};
static const char *const new_block_names[] = {
    "text",           "image",    "tool_use",          "tool_result",
    "tool_reference", "thinking", "redacted_thinking", "tool_addition",
    "tool_removal",   NULL};
static const struct api_type block_name = {.what = API_LITERAL, .literal = block_names};
static const struct api_type new_block_name = {.what = API_LITERAL,
                                               .literal = new_block_names};
static const struct api_type dict_list_item = {.what = API_DICT};
static const struct api_type block_content_kinds[] = {
    {.what = API_STR, .label = "str"},
    {.what = API_LIST, .label = "list[dict[str,any]]", .of = &dict_list_item},
};
static const struct api_type block_content = {
    .what = API_UNION, OPTIONAL, .of = block_content_kinds, .n = 2};
static const struct api_field block_fields[] = {
    {.name = "type", .type = &block_name, .lines = API_ONLY_026, .required = true},
    {.name = "type", .type = &new_block_name, .lines = API_ONLY_032, .required = true},
    API_FIELD("text", api_str_or_null),
    API_FIELD("source", api_dict_or_null),
    API_FIELD("id", api_str_or_null),
    API_FIELD("tool_use_id", api_str_or_null),
    API_FIELD("name", api_str_or_null),
    API_FIELD("input", api_dict_or_null),
    API_FIELD("content", block_content),
    API_FIELD("is_error", api_bool_or_null),
    API_FIELD("tool_name", api_str_or_null),
    API_FIELD("thinking", api_str_or_null),
    API_FIELD("signature", api_str_or_null),
    API_FIELD("data", api_str_or_null),
    {0}};
static const struct api_type block = {.what = API_MODEL, .field = block_fields};
static const struct api_type blocks_kinds[] = {
    {.what = API_STR, .label = "str"},
    {.what = API_LIST, .label = "list[AnthropicContentBlock]", .of = &block},
};
static const struct api_type blocks = {.what = API_UNION, .of = blocks_kinds, .n = 2};
static const struct api_type blocks_or_null = {
    .what = API_UNION, OPTIONAL, .of = blocks_kinds, .n = 2};
static const char *const roles[] = {"user", "assistant", "system", NULL};
static const struct api_type role = {.what = API_LITERAL, .literal = roles};
static const struct api_field message_fields[] = {
    API_NEEDED("role", role), API_NEEDED("content", blocks), {0}};
static const struct api_type message = {.what = API_MODEL, .field = message_fields};
static const struct api_type messages = {.what = API_LIST, .of = &message};

static const struct api_type dict = {.what = API_DICT};
static const struct api_field tool_fields[] = {
    API_NEEDED("name", api_str),
    API_FIELD("description", api_str_or_null),
    API_NEEDED("input_schema", dict),
    API_FIELD("strict", api_bool_or_null),
    {0}};
static const struct api_type tool = {.what = API_MODEL, .field = tool_fields};
static const struct api_type tools = {.what = API_LIST, OPTIONAL, .of = &tool};
static const char *const choice_names[] = {"auto", "any", "tool", "none", NULL};
static const struct api_type choice_name = {.what = API_LITERAL,
                                            .literal = choice_names};
static const struct api_field choice_fields[] = {
    API_NEEDED("type", choice_name), API_FIELD("name", api_str_or_null), {0}};
static const struct api_type choice = {
    .what = API_MODEL, OPTIONAL, .field = choice_fields, .rule = api_choice_rule};
static const struct api_type model_name = {.what = API_STR, .rule = api_named_rule};
static const struct api_type max_tokens = {.what = API_INT, .rule = api_positive_rule};
static const struct api_type strs_or_null = {
    .what = API_LIST, OPTIONAL, .of = &api_str};

static const struct api_type few_strs = {
    .what = API_LIST, OPTIONAL, .of = &api_str, .has_max = true, .max = 4};

const struct api_field api_messages_fields[] = {
    FIELD_NEEDED("model", model_name, MODEL),
    FIELD_NEEDED("messages", messages, MESSAGES),
    FIELD_NEEDED("max_tokens", max_tokens, MAX_TOKENS),
    FIELD("metadata", api_dict_or_null, IGNORED),
    FIELD("output_config", model_or_null, OUTPUT_CONFIG),
    FIELD_OLD("stop_sequences", strs_or_null, STOP_SEQUENCES),
    FIELD_NEW("stop_sequences", few_strs, STOP_SEQUENCES),
    FIELD("stream", api_bool_or_null, STREAM),
    FIELD("system", blocks_or_null, SYSTEM),
    FIELD("temperature", api_real_or_null, TEMPERATURE),
    FIELD("tool_choice", choice, TOOL_CHOICE),
    FIELD("tools", tools, TOOLS),
    FIELD("top_k", api_int_or_null, TOP_K),
    FIELD("top_p", api_real_or_null, TOP_P),
    FIELD_NEW("cache_salt", api_cache_salt, CACHE_SALT),
    FIELD("kv_transfer_params", api_dict_or_null, IGNORED),
    FIELD("ec_transfer_params", api_dict_or_null, IGNORED),
    FIELD_NEW("vllm_xargs", api_xargs, IGNORED),
    FIELD("chat_template_kwargs", api_dict_or_null, CHAT_TEMPLATE_KWARGS),
    {0}};
