/* schema_other.c - the fields of /v1/responses and /v1/messages.
 *
 * The Responses API's unions of items, tools and choices have dozens of branches, each
 * with an error of its own; here they are a few, so what is refused is right and the
 * words about it are fewer. */
#include "http/api/request.h"

#include <string.h>

static const struct api_type model_or_null = {.what = API_MODEL, OPTIONAL};

/* ---- responses ------------------------------------------------------- */

static const struct api_type include_one = {
    API_WORDS("code_interpreter_call.outputs", "computer_call_output.output.image_url",
              "file_search_call.results", "message.input_image.image_url",
              "message.output_text.logprobs", "reasoning.encrypted_content")};
static const struct api_type include = {API_LIST_OF(include_one), OPTIONAL};
static const struct api_type item = {.what = API_TYPED_DICT};
static const struct api_type input = {
    API_STR_OR(API_LIST_OF(item), .label = "list[union[...]]")};
static const struct api_type metadata = {.what = API_DICT, OPTIONAL, .of = &api_str};
static const struct api_type tier = {
    API_WORDS("auto", "default", "flex", "scale", "priority")};
static const struct api_type truncation = {API_WORDS("auto", "disabled"), OPTIONAL};
static const struct api_type penalty = {
    .what = API_REAL, OPTIONAL, .has_min = true, .has_max = true, .min = -2, .max = 2};

static const struct api_type text_format = {
    API_ONE_OF(
        {.label = "ResponseFormatText", API_MODEL_OF(API_NEEDED("type", WORD("text")))},
        {.label = "ResponseFormatTextJSONSchemaConfig",
         API_MODEL_OF(API_NEEDED("name", api_str), API_NEEDED("schema", api_dict),
                      API_NEEDED("type", WORD("json_schema")),
                      API_FIELD("description", api_str_or_null),
                      API_FIELD("strict", api_bool_or_null))},
        {.label = "ResponseFormatJSONObject",
         API_MODEL_OF(API_NEEDED("type", WORD("json_object")))}),
    OPTIONAL};
static const struct api_type verbosity = {API_WORDS("low", "medium", "high"), OPTIONAL};
static const struct api_type text_config = {
    API_MODEL_OF(API_FIELD("format", text_format), API_FIELD("verbosity", verbosity)),
    OPTIONAL};
static const struct api_type flat_tool = {API_MODEL_OF(API_NEEDED("type", api_str))};
static const struct api_type flat_tools = {API_LIST_OF(flat_tool)};
static const struct api_type flat_choice = {API_ONE_OF(
    {API_WORDS("none", "auto", "required"),
     .label = "literal['none','auto','required']"},
    {.label = "ToolChoiceFunction", API_MODEL_OF(API_NEEDED("type", api_str))})};
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

static bool is_named(const struct vt_node *v, struct vt_buf *message)
{
    if (v->n > 0)
        return true;
    vt_buf_str(message, "Model is required");
    return false;
}

static bool is_positive(const struct vt_node *v, struct vt_buf *message)
{
    if (api_get_int(v, 0) > 0)
        return true;
    vt_buf_str(message, "max_tokens must be positive");
    return false;
}

static bool is_choice(const struct vt_node *v, struct vt_buf *message)
{
    if (strcmp(api_get_str(vt_get(v, "type"), ""), "tool") != 0 ||
        api_truth(vt_get(v, "name")))
        return true;
    vt_buf_str(message, "tool_choice.name is required when type is 'tool'");
    return false;
}

#define BLOCK_NAMES                                                           \
    "text", "image", "tool_use", "tool_result", "tool_reference", "thinking", \
        "redacted_thinking"
static const struct api_type block_name = {API_WORDS(BLOCK_NAMES)};
static const struct api_type new_block_name = {
    API_WORDS(BLOCK_NAMES, "tool_addition", "tool_removal")};
static const struct api_type block_content = {
    API_STR_OR(API_LIST_OF(api_dict), .label = "list[dict[str,any]]"), OPTIONAL};
static const struct api_type block = {API_MODEL_OF(
    FIELD_NEEDED_OLD("type", block_name, IGNORED),
    FIELD_NEEDED_NEW("type", new_block_name, IGNORED),
    API_FIELD("text", api_str_or_null), API_FIELD("source", api_dict_or_null),
    API_FIELD("id", api_str_or_null), API_FIELD("tool_use_id", api_str_or_null),
    API_FIELD("name", api_str_or_null), API_FIELD("input", api_dict_or_null),
    API_FIELD("content", block_content), API_FIELD("is_error", api_bool_or_null),
    API_FIELD("tool_name", api_str_or_null), API_FIELD("thinking", api_str_or_null),
    API_FIELD("signature", api_str_or_null), API_FIELD("data", api_str_or_null))};
#define BLOCKS API_STR_OR(API_LIST_OF(block), .label = "list[AnthropicContentBlock]")
static const struct api_type blocks = {BLOCKS};
static const struct api_type blocks_or_null = {BLOCKS, OPTIONAL};
static const struct api_type role = {API_WORDS("user", "assistant", "system")};
static const struct api_type message = {
    API_MODEL_OF(API_NEEDED("role", role), API_NEEDED("content", blocks))};
static const struct api_type messages = {API_LIST_OF(message)};

static const struct api_type tool = {API_MODEL_OF(
    API_NEEDED("name", api_str), API_FIELD("description", api_str_or_null),
    API_NEEDED("input_schema", api_dict), API_FIELD("strict", api_bool_or_null))};
static const struct api_type tools = {API_LIST_OF(tool), OPTIONAL};
static const struct api_type choice_name = {API_WORDS("auto", "any", "tool", "none")};
static const struct api_type choice = {
    API_MODEL_OF(API_NEEDED("type", choice_name), API_FIELD("name", api_str_or_null)),
    OPTIONAL, .rule = is_choice};
static const struct api_type model_name = {.what = API_STR, .rule = is_named};
static const struct api_type max_tokens = {.what = API_INT, .rule = is_positive};

const struct api_field api_messages_fields[] = {
    FIELD_NEEDED("model", model_name, MODEL),
    FIELD_NEEDED("messages", messages, MESSAGES),
    FIELD_NEEDED("max_tokens", max_tokens, MAX_TOKENS),
    FIELD("metadata", api_dict_or_null, IGNORED),
    FIELD("output_config", model_or_null, OUTPUT_CONFIG),
    FIELD_OLD("stop_sequences", api_strs_or_null, STOP_SEQUENCES),
    FIELD_NEW("stop_sequences", api_few_strs, STOP_SEQUENCES),
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
