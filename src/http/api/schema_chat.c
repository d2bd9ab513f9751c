/* schema_chat.c - the fields of vLLM's ChatCompletionRequest, in its order, and the
 * kinds of messages that it tries one after another. */
#include "http/api/request.h"

#define OPTIONAL .nullable = true
#define LITERAL(name, text)                                   \
    static const char *const name##_words[] = {(text), NULL}; \
    static const struct api_type name = {.what = API_LITERAL, .literal = name##_words}

/* ---- messages -------------------------------------------------------- */

LITERAL(developer, "developer");
LITERAL(system_role, "system");
LITERAL(user, "user");
LITERAL(assistant, "assistant");
LITERAL(tool_role, "tool");
LITERAL(function_role, "function");
LITERAL(function_word, "function");

static const struct api_type content_kinds[] = {
    {.what = API_STR, .label = "str"},
    {.what = API_ITERABLE, .label = "generator[...]"},
};
static const struct api_type content = {.what = API_UNION, .of = content_kinds, .n = 2};
static const struct api_type user_content_kinds[] = {
    {.what = API_STR, .label = "str"},
    {.what = API_ITERABLE, .label = "generator[union[...,...,...,...]]"},
};
static const struct api_type user_content = {
    .what = API_UNION, .of = user_content_kinds, .n = 2};
static const struct api_type assistant_content_kinds[] = {
    {.what = API_STR, .label = "str"},
    {.what = API_ITERABLE, .label = "generator[union[...,...]]"},
};
static const struct api_type assistant_content = {
    .what = API_UNION, OPTIONAL, .of = assistant_content_kinds, .n = 2};
/* 0.32 dropped nothing here that clients would notice. */
static const struct api_type custom_content_kinds[] = {
    {.what = API_STR, .label = "str"},
    {.what = API_LIST,
     .label = "list[union[...,...,...,...,ChatCompletionContentPartAudioParam,"
              "ChatCompletionContentPartVideoParam,...,"
              "CustomChatCompletionContentPILImageParam,"
              "CustomChatCompletionContentSimpleImageParam,"
              "ChatCompletionContentPartImageEmbedsParam,"
              "ChatCompletionContentPartAudioEmbedsParam,"
              "ChatCompletionContentPartPromptEmbedsParam,"
              "CustomChatCompletionContentSimpleAudioParam,"
              "CustomChatCompletionContentSimpleVideoParam,"
              "CustomChatCompletionContentToolReferenceParam,str,"
              "CustomThinkCompletionContentParam]]"},
};
static const struct api_type custom_content = {
    .what = API_UNION, .of = custom_content_kinds, .n = 2};
static const struct api_type calls = {.what = API_ITERABLE};
static const struct api_type calls_or_null = {.what = API_ITERABLE, OPTIONAL};
static const struct api_type list = {.what = API_LIST};

static const struct api_field developer_fields[] = {API_NEEDED("content", content),
                                                    API_NEEDED("role", developer),
                                                    API_FIELD("name", api_str),
                                                    {0}};
static const struct api_field system_fields[] = {API_NEEDED("content", content),
                                                 API_NEEDED("role", system_role),
                                                 API_FIELD("name", api_str),
                                                 {0}};
static const struct api_field user_fields[] = {API_NEEDED("content", user_content),
                                               API_NEEDED("role", user),
                                               API_FIELD("name", api_str),
                                               {0}};
static const struct api_field assistant_fields[] = {
    API_NEEDED("role", assistant),  API_FIELD("content", assistant_content),
    API_FIELD("name", api_str),     API_FIELD("refusal", api_str_or_null),
    API_FIELD("tool_calls", calls), {0}};
static const struct api_field tool_fields[] = {API_NEEDED("content", content),
                                               API_NEEDED("role", tool_role),
                                               API_NEEDED("tool_call_id", api_str),
                                               {0}};
static const struct api_field function_fields[] = {
    API_NEEDED("content", api_str_or_null),
    API_NEEDED("name", api_str),
    API_NEEDED("role", function_role),
    {0}};
static const struct api_field custom_fields[] = {
    API_NEEDED("role", api_str),
    API_FIELD("content", custom_content),
    API_FIELD("name", api_str),
    API_FIELD("tool_call_id", api_str_or_null),
    API_FIELD("tool_calls", calls_or_null),
    API_FIELD("reasoning", api_str_or_null),
    API_FIELD("tools", calls_or_null),
    {0}};
static const struct api_field harmony_fields[] = {
    API_NEEDED("author", api_any), API_FIELD("content", list), {0}};

static const struct api_type message_kinds[] = {
    {.what = API_TYPED_DICT,
     .label = "ChatCompletionDeveloperMessageParam",
     .field = developer_fields},
    {.what = API_TYPED_DICT,
     .label = "ChatCompletionSystemMessageParam",
     .field = system_fields},
    {.what = API_TYPED_DICT,
     .label = "ChatCompletionUserMessageParam",
     .field = user_fields},
    {.what = API_TYPED_DICT,
     .label = "ChatCompletionAssistantMessageParam",
     .field = assistant_fields},
    {.what = API_TYPED_DICT,
     .label = "ChatCompletionToolMessageParam",
     .field = tool_fields},
    {.what = API_TYPED_DICT,
     .label = "ChatCompletionFunctionMessageParam",
     .field = function_fields},
    {.what = API_TYPED_DICT,
     .label = "CustomChatCompletionMessageParam",
     .field = custom_fields},
    {.what = API_MODEL, .label = "Message", .field = harmony_fields},
};
static const struct api_type message = {
    .what = API_UNION, .of = message_kinds, .n = VT_COUNT(message_kinds)};
const struct api_type api_messages_type = {.what = API_LIST, .of = &message};

/* What the assistant called, looked at when the list of messages is read. */
LITERAL(custom_word, "custom");
static const struct api_field called_fields[] = {
    API_NEEDED("arguments", api_str), API_NEEDED("name", api_str), {0}};
static const struct api_type called = {.what = API_TYPED_DICT, .field = called_fields};
static const struct api_field function_call_fields[] = {
    API_NEEDED("id", api_str),
    API_NEEDED("function", called),
    API_NEEDED("type", function_word),
    {0}};
static const struct api_field custom_called_fields[] = {
    API_NEEDED("input", api_str), API_NEEDED("name", api_str), {0}};
static const struct api_type custom_called = {.what = API_TYPED_DICT,
                                              .field = custom_called_fields};
static const struct api_field custom_call_fields[] = {
    API_NEEDED("id", api_str),
    API_NEEDED("custom", custom_called),
    API_NEEDED("type", custom_word),
    {0}};
static const struct api_type call_kinds[] = {
    {.what = API_TYPED_DICT,
     .label = "ChatCompletionMessageFunctionToolCallParam",
     .field = function_call_fields},
    {.what = API_TYPED_DICT,
     .label = "ChatCompletionMessageCustomToolCallParam",
     .field = custom_call_fields},
};
static const struct api_type call = {.what = API_UNION, .of = call_kinds, .n = 2};
const struct api_type api_tool_calls_type = {.what = API_LIST, .of = &call};

/* ---- tools ----------------------------------------------------------- */

static const struct api_field definition_fields[] = {
    API_NEEDED("name", api_str),
    API_FIELD("description", api_str_or_null),
    API_FIELD("parameters", api_dict_or_null),
    API_FIELD("strict", api_bool_or_null),
    API_FIELD("defer_loading", api_bool_or_null),
    {0}};
static const struct api_type definition = {.what = API_MODEL,
                                           .field = definition_fields};
static const struct api_field tool_rows[] = {
    API_FIELD("type", function_word),
    API_NEEDED("function", definition),
    API_FIELD("defer_loading", api_bool_or_null),
    {0}};
static const struct api_type tool = {.what = API_MODEL, .field = tool_rows};
static const struct api_type tools = {.what = API_LIST, OPTIONAL, .of = &tool};

static const char *const none_word[] = {"none", NULL};
static const char *const auto_word[] = {"auto", NULL};
static const char *const required_word[] = {"required", NULL};
static const struct api_field named_fields[] = {API_NEEDED("name", api_str), {0}};
static const struct api_type named_function = {.what = API_MODEL,
                                               .field = named_fields};
static const struct api_field named_tool[] = {
    API_NEEDED("function", named_function), API_FIELD("type", function_word), {0}};
static const struct api_type choice_kinds[] = {
    {.what = API_LITERAL, .label = "literal['none']", .literal = none_word},
    {.what = API_LITERAL, .label = "literal['auto']", .literal = auto_word},
    {.what = API_LITERAL, .label = "literal['required']", .literal = required_word},
    {.what = API_MODEL,
     .label = "function-wrap[__log_extra_fields__()]",
     .field = named_tool},
};
static const struct api_type tool_choice = {
    .what = API_UNION, OPTIONAL, .of = choice_kinds, .n = 4};

/* ---- the rest -------------------------------------------------------- */

static const char *const efforts[] = {"none", "minimal", "low", "medium",
                                      "high", "xhigh",   "max", NULL};
static const struct api_type effort = {
    .what = API_LITERAL, OPTIONAL, .literal = efforts};
static const struct api_type strings = {.what = API_DICT, .of = &api_str};
static const struct api_type documents = {.what = API_LIST, OPTIONAL, .of = &strings};
static const struct api_type dict = {.what = API_DICT};
static const struct api_type dicts = {.what = API_DICT, OPTIONAL, .of = &dict};

const struct api_field api_chat_fields[] = {
    FIELD_NEEDED("messages", api_messages_type, MESSAGES),
    FIELD("model", api_str_or_null, MODEL),
    FIELD("frequency_penalty", api_real_or_null, FREQUENCY_PENALTY),
    FIELD("logit_bias", api_biases, LOGIT_BIAS),
    FIELD("logprobs", api_bool_or_null, LOGPROBS),
    FIELD("top_logprobs", api_int_or_null, TOP_LOGPROBS),
    FIELD("max_tokens", api_int_or_null, MAX_TOKENS),
    FIELD("max_completion_tokens", api_int_or_null, MAX_COMPLETION_TOKENS),
    FIELD("n", api_int_or_null, N),
    FIELD("presence_penalty", api_real_or_null, PRESENCE_PENALTY),
    FIELD("response_format", api_response_format, RESPONSE_FORMAT),
    FIELD("seed", api_seed, SEED),
    FIELD_OLD("stop", api_stop, STOP),
    FIELD_NEW("stop", api_few_stops, STOP),
    FIELD("stream", api_bool_or_null, STREAM),
    FIELD("stream_options", api_stream_options, STREAM_OPTIONS),
    FIELD("temperature", api_real_or_null, TEMPERATURE),
    FIELD("top_p", api_real_or_null, TOP_P),
    FIELD("tools", tools, TOOLS),
    FIELD("tool_choice", tool_choice, TOOL_CHOICE),
    FIELD("reasoning_effort", effort, REASONING_EFFORT),
    FIELD("thinking_token_budget", api_any, IGNORED),
    FIELD("include_reasoning", api_bool, IGNORED),
    FIELD("parallel_tool_calls", api_bool_or_null, PARALLEL_TOOLS),
    FIELD("user", api_str_or_null, IGNORED),
    FIELD("use_beam_search", api_bool, USE_BEAM_SEARCH),
    FIELD("top_k", api_int_or_null, TOP_K),
    FIELD_NEW("watermarking", api_bool_or_null, IGNORED),
    FIELD("min_p", api_real_or_null, MIN_P),
    FIELD("repetition_penalty", api_real_or_null, REPETITION_PENALTY),
    FIELD("length_penalty", api_real, IGNORED),
    FIELD("stop_token_ids", api_ints_or_null, STOP_TOKEN_IDS),
    FIELD("include_stop_str_in_output", api_bool, INCLUDE_STOP),
    FIELD("ignore_eos", api_bool, IGNORE_EOS),
    FIELD("min_tokens", api_int, MIN_TOKENS),
    FIELD("skip_special_tokens", api_bool, SKIP_SPECIAL),
    FIELD("spaces_between_special_tokens", api_bool, IGNORED),
    FIELD("truncate_prompt_tokens", api_truncate, TRUNCATE),
    FIELD("truncation_side", api_truncation_side, TRUNCATION_SIDE),
    FIELD("prompt_logprobs", api_int_or_null, PROMPT_LOGPROBS),
    FIELD("logprob_token_ids", api_ints_or_null, LOGPROB_TOKEN_IDS),
    FIELD("allowed_token_ids", api_ints_or_null, ALLOWED_TOKEN_IDS),
    FIELD("bad_words", api_strs, BAD_WORDS),
    FIELD("echo", api_bool, ECHO),
    FIELD("add_generation_prompt", api_bool, ADD_GENERATION_PROMPT),
    FIELD("continue_final_message", api_bool, CONTINUE_FINAL),
    FIELD("add_special_tokens", api_bool, ADD_SPECIAL_TOKENS),
    FIELD("documents", documents, IGNORED),
    FIELD("chat_template", api_str_or_null, CHAT_TEMPLATE),
    FIELD("chat_template_kwargs", api_dict_or_null, CHAT_TEMPLATE_KWARGS),
    FIELD("media_io_kwargs", dicts, IGNORED),
    FIELD("mm_processor_kwargs", api_dict_or_null, IGNORED),
    FIELD("structured_outputs", api_structured_outputs, STRUCTURED_OUTPUTS),
    FIELD("priority", api_priority, PRIORITY),
    FIELD("request_id", api_str, REQUEST_ID),
    FIELD_NEW("session_id", api_str_or_null, SESSION_ID),
    FIELD("return_tokens_as_token_ids", api_bool_or_null, TOKENS_AS_IDS),
    FIELD("return_token_ids", api_bool_or_null, RETURN_TOKEN_IDS),
    FIELD_NEW("routed_experts_prompt_start", api_from_zero, IGNORED),
    FIELD("return_token_offsets", api_bool_or_null, IGNORED),
    FIELD("return_prompt_text", api_bool_or_null, IGNORED),
    FIELD_OLD("return_assistant_tokens_mask", api_bool, IGNORED),
    FIELD_NEW("mm_payload", api_payload, IGNORED),
    FIELD_NEW("return_mm_kwargs", api_bool_or_null, IGNORED),
    FIELD_OLD("cache_salt", api_str_or_null, CACHE_SALT),
    FIELD_NEW("cache_salt", api_cache_salt, CACHE_SALT),
    FIELD("kv_transfer_params", api_dict_or_null, IGNORED),
    FIELD("ec_transfer_params", api_dict_or_null, IGNORED),
    FIELD("vllm_xargs", api_xargs, IGNORED),
    FIELD("repetition_detection", api_repetition_detection, REPETITION_DETECTION),
    FIELD_NEW("stream_interval", api_interval, STREAM_INTERVAL),
    {0}};
