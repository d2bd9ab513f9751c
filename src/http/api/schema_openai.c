/* schema_openai.c - the fields of vLLM's CompletionRequest and ChatCompletionRequest,
 * in their order, and the kinds of messages that the latter tries one after another. */
#include "http/api/request.h"

/* ---- what both have ----------------------------------------------------- */

#define STREAM_FIELDS                                                          \
    FIELD_OLD("stop", api_stop, STOP), FIELD_NEW("stop", api_few_stops, STOP), \
        FIELD("stream", api_bool_or_null, STREAM),                             \
        FIELD("stream_options", api_stream_options, STREAM_OPTIONS)
#define SAMPLING_FIELDS                                                    \
    FIELD("user", api_str_or_null, IGNORED),                               \
        FIELD("use_beam_search", api_bool, USE_BEAM_SEARCH),               \
        FIELD("top_k", api_int_or_null, TOP_K),                            \
        FIELD_NEW("watermarking", api_bool_or_null, IGNORED),              \
        FIELD("min_p", api_real_or_null, MIN_P),                           \
        FIELD("repetition_penalty", api_real_or_null, REPETITION_PENALTY), \
        FIELD("length_penalty", api_real, IGNORED),                        \
        FIELD("stop_token_ids", api_ints_or_null, STOP_TOKEN_IDS),         \
        FIELD("include_stop_str_in_output", api_bool, INCLUDE_STOP),       \
        FIELD("ignore_eos", api_bool, IGNORE_EOS),                         \
        FIELD("min_tokens", api_int, MIN_TOKENS),                          \
        FIELD("skip_special_tokens", api_bool, SKIP_SPECIAL),              \
        FIELD("spaces_between_special_tokens", api_bool, IGNORED),         \
        FIELD("truncate_prompt_tokens", api_truncate, TRUNCATE),           \
        FIELD("truncation_side", api_truncation_side, TRUNCATION_SIDE)
#define REQUEST_FIELDS                                                        \
    FIELD("structured_outputs", api_structured_outputs, STRUCTURED_OUTPUTS),  \
        FIELD("priority", api_priority, PRIORITY),                            \
        FIELD("request_id", api_str, REQUEST_ID),                             \
        FIELD_NEW("session_id", api_str_or_null, SESSION_ID),                 \
        FIELD("return_tokens_as_token_ids", api_bool_or_null, TOKENS_AS_IDS), \
        FIELD("return_token_ids", api_bool_or_null, RETURN_TOKEN_IDS),        \
        FIELD_NEW("routed_experts_prompt_start", api_from_zero, IGNORED),     \
        FIELD("return_token_offsets", api_bool_or_null, IGNORED)
#define TRANSFER_FIELDS                                             \
    FIELD_NEW("mm_payload", api_payload, IGNORED),                  \
        FIELD_NEW("return_mm_kwargs", api_bool_or_null, IGNORED),   \
        FIELD_OLD("cache_salt", api_str_or_null, CACHE_SALT),       \
        FIELD_NEW("cache_salt", api_cache_salt, CACHE_SALT),        \
        FIELD("kv_transfer_params", api_dict_or_null, KV_TRANSFER), \
        FIELD("ec_transfer_params", api_dict_or_null, IGNORED),     \
        FIELD("vllm_xargs", api_xargs, IGNORED),                    \
        FIELD("repetition_detection", api_repetition_detection, IGNORED)

/* ---- completions ----------------------------------------------------- */

static const struct api_type ids = {API_LIST_OF(api_from_zero)};
static const struct api_type prompt = {
    API_ONE_OF({API_LIST_OF(api_from_zero), .label = "list[constrained-int]"},
               {API_LIST_OF(ids), .label = "list[list[constrained-int]]"},
               {.what = API_STR, .label = "str"},
               {API_LIST_OF(api_str), .label = "list[str]"}),
    OPTIONAL};
static const struct api_type bytes = {.what = API_BYTES};
static const struct api_type embeds = {
    API_ONE_OF({.what = API_BYTES, .label = "bytes"},
               {API_LIST_OF(bytes), .label = "list[bytes]"}),
    OPTIONAL};

const struct api_field api_completion_fields[] = {
    FIELD("model", api_str_or_null, MODEL),
    FIELD("prompt", prompt, PROMPT),
    FIELD("echo", api_bool_or_null, ECHO),
    FIELD("frequency_penalty", api_real_or_null, FREQUENCY_PENALTY),
    FIELD("logit_bias", api_biases, LOGIT_BIAS),
    FIELD("logprobs", api_int_or_null, LOGPROBS),
    FIELD("max_tokens", api_int_or_null, MAX_TOKENS),
    FIELD("n", api_int, N),
    FIELD("presence_penalty", api_real_or_null, PRESENCE_PENALTY),
    FIELD("seed", api_seed, SEED),
    STREAM_FIELDS,
    FIELD("suffix", api_str_or_null, SUFFIX),
    FIELD("temperature", api_real_or_null, TEMPERATURE),
    FIELD("top_p", api_real_or_null, TOP_P),
    SAMPLING_FIELDS,
    FIELD("allowed_token_ids", api_ints_or_null, ALLOWED_TOKEN_IDS),
    FIELD("prompt_logprobs", api_int_or_null, PROMPT_LOGPROBS),
    FIELD("logprob_token_ids", api_ints_or_null, IGNORED),
    FIELD("bad_words", api_strs, BAD_WORDS),
    FIELD("prompt_embeds", embeds, IGNORED),
    FIELD("add_special_tokens", api_bool, ADD_SPECIAL_TOKENS),
    FIELD("response_format", api_response_format, RESPONSE_FORMAT),
    REQUEST_FIELDS,
    TRANSFER_FIELDS,
    FIELD("thinking_token_budget", api_any, IGNORED),
    FIELD_NEW("stream_interval", api_interval, STREAM_INTERVAL),
    {0}};

/* ---- messages -------------------------------------------------------- */

#define TEXT_OR(kind) API_STR_OR(.what = API_ITERABLE, .label = "generator[" kind "]")

static const struct api_type content = {TEXT_OR("...")};
static const struct api_type user_content = {TEXT_OR("union[...,...,...,...]")};
static const struct api_type assistant_content = {TEXT_OR("union[...,...]"), OPTIONAL};
/* 0.32 dropped nothing here that clients would notice. */
static const struct api_type custom_content = {
    API_STR_OR(.what = API_LIST,
               .label =
                   "list[union[...,...,...,...,ChatCompletionContentPartAudioParam,"
                   "ChatCompletionContentPartVideoParam,...,"
                   "CustomChatCompletionContentPILImageParam,"
                   "CustomChatCompletionContentSimpleImageParam,"
                   "ChatCompletionContentPartImageEmbedsParam,"
                   "ChatCompletionContentPartAudioEmbedsParam,"
                   "ChatCompletionContentPartPromptEmbedsParam,"
                   "CustomChatCompletionContentSimpleAudioParam,"
                   "CustomChatCompletionContentSimpleVideoParam,"
                   "CustomChatCompletionContentToolReferenceParam,str,"
                   "CustomThinkCompletionContentParam]]")};
static const struct api_type calls = {.what = API_ITERABLE};
static const struct api_type calls_or_null = {.what = API_ITERABLE, OPTIONAL};
static const struct api_type list = {.what = API_LIST};

#define DICT_OF(...) .what = API_TYPED_DICT, API_FIELDS(__VA_ARGS__)
#define MESSAGE(who, ...) \
    {.label = "ChatCompletion" who "MessageParam", DICT_OF(__VA_ARGS__)}
#define NAME API_FIELD("name", api_str)

static const struct api_type message = {API_ONE_OF(
    MESSAGE("Developer", API_NEEDED("content", content),
            API_NEEDED("role", WORD("developer")), NAME),
    MESSAGE("System", API_NEEDED("content", content),
            API_NEEDED("role", WORD("system")), NAME),
    MESSAGE("User", API_NEEDED("content", user_content),
            API_NEEDED("role", WORD("user")), NAME),
    MESSAGE("Assistant", API_NEEDED("role", WORD("assistant")),
            API_FIELD("content", assistant_content), NAME,
            API_FIELD("refusal", api_str_or_null), API_FIELD("tool_calls", calls)),
    MESSAGE("Tool", API_NEEDED("content", content), API_NEEDED("role", WORD("tool")),
            API_NEEDED("tool_call_id", api_str)),
    MESSAGE("Function", API_NEEDED("content", api_str_or_null),
            API_NEEDED("name", api_str), API_NEEDED("role", WORD("function"))),
    {.label = "CustomChatCompletionMessageParam",
     DICT_OF(API_NEEDED("role", api_str), API_FIELD("content", custom_content), NAME,
             API_FIELD("tool_call_id", api_str_or_null),
             API_FIELD("tool_calls", calls_or_null),
             API_FIELD("reasoning", api_str_or_null),
             API_FIELD("tools", calls_or_null))},
    {.label = "Message",
     API_MODEL_OF(API_NEEDED("author", api_any), API_FIELD("content", list))})};
const struct api_type api_messages_type = {API_LIST_OF(message)};

/* What the assistant called, looked at when the list of messages is read. */
static const struct api_type called = {
    DICT_OF(API_NEEDED("arguments", api_str), API_NEEDED("name", api_str))};
static const struct api_type custom_called = {
    DICT_OF(API_NEEDED("input", api_str), API_NEEDED("name", api_str))};
static const struct api_type call = {
    API_ONE_OF({.label = "ChatCompletionMessageFunctionToolCallParam",
                DICT_OF(API_NEEDED("id", api_str), API_NEEDED("function", called),
                        API_NEEDED("type", WORD("function")))},
               {.label = "ChatCompletionMessageCustomToolCallParam",
                DICT_OF(API_NEEDED("id", api_str), API_NEEDED("custom", custom_called),
                        API_NEEDED("type", WORD("custom")))})};
const struct api_type api_tool_calls_type = {API_LIST_OF(call)};

/* ---- tools ----------------------------------------------------------- */

static const struct api_type definition = {API_MODEL_OF(
    API_NEEDED("name", api_str), API_FIELD("description", api_str_or_null),
    API_FIELD("parameters", api_dict_or_null), API_FIELD("strict", api_bool_or_null),
    API_FIELD("defer_loading", api_bool_or_null))};
static const struct api_type tool = {API_MODEL_OF(
    API_FIELD("type", WORD("function")), API_NEEDED("function", definition),
    API_FIELD("defer_loading", api_bool_or_null))};
static const struct api_type tools = {API_LIST_OF(tool), OPTIONAL};

static const struct api_type named_function = {
    API_MODEL_OF(API_NEEDED("name", api_str))};
static const struct api_type tool_choice = {
    API_ONE_OF({API_WORDS("none"), .label = "literal['none']"},
               {API_WORDS("auto"), .label = "literal['auto']"},
               {API_WORDS("required"), .label = "literal['required']"},
               {.label = API_WRAPPED,
                API_MODEL_OF(API_NEEDED("function", named_function),
                             API_FIELD("type", WORD("function")))}),
    OPTIONAL};

/* ---- chats ----------------------------------------------------------- */

static const struct api_type effort = {
    API_WORDS("none", "minimal", "low", "medium", "high", "xhigh", "max"), OPTIONAL};
static const struct api_type strings = {.what = API_DICT, .of = &api_str};
static const struct api_type documents = {API_LIST_OF(strings), OPTIONAL};

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
    STREAM_FIELDS,
    FIELD("temperature", api_real_or_null, TEMPERATURE),
    FIELD("top_p", api_real_or_null, TOP_P),
    FIELD("tools", tools, TOOLS),
    FIELD("tool_choice", tool_choice, TOOL_CHOICE),
    FIELD("reasoning_effort", effort, REASONING_EFFORT),
    FIELD("thinking_token_budget", api_any, IGNORED),
    FIELD("include_reasoning", api_bool, IGNORED),
    FIELD("parallel_tool_calls", api_bool_or_null, PARALLEL_TOOLS),
    SAMPLING_FIELDS,
    FIELD("prompt_logprobs", api_int_or_null, PROMPT_LOGPROBS),
    FIELD("logprob_token_ids", api_ints_or_null, IGNORED),
    FIELD("allowed_token_ids", api_ints_or_null, ALLOWED_TOKEN_IDS),
    FIELD("bad_words", api_strs, BAD_WORDS),
    FIELD("echo", api_bool, ECHO),
    FIELD("add_generation_prompt", api_bool, ADD_GENERATION_PROMPT),
    FIELD("continue_final_message", api_bool, CONTINUE_FINAL),
    FIELD("add_special_tokens", api_bool, ADD_SPECIAL_TOKENS),
    FIELD("documents", documents, IGNORED),
    FIELD("chat_template", api_str_or_null, CHAT_TEMPLATE),
    FIELD("chat_template_kwargs", api_dict_or_null, CHAT_TEMPLATE_KWARGS),
    FIELD("media_io_kwargs", api_dicts_or_null, IGNORED),
    FIELD("mm_processor_kwargs", api_dict_or_null, IGNORED),
    REQUEST_FIELDS,
    FIELD("return_prompt_text", api_bool_or_null, IGNORED),
    FIELD_OLD("return_assistant_tokens_mask", api_bool, IGNORED),
    TRANSFER_FIELDS,
    FIELD_NEW("stream_interval", api_interval, STREAM_INTERVAL),
    {0}};
