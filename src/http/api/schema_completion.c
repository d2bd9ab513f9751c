/* schema_completion.c - the fields of vLLM's CompletionRequest, in its order. */
#include "http/api/request.h"

static const struct api_type id = {.what = API_INT, .has_min = true, .min = 0};
static const struct api_type ids = {.what = API_LIST, .of = &id};
static const struct api_type prompt_kinds[] = {
    {.what = API_LIST, .label = "list[constrained-int]", .of = &id},
    {.what = API_LIST, .label = "list[list[constrained-int]]", .of = &ids},
    {.what = API_STR, .label = "str"},
    {.what = API_LIST, .label = "list[str]", .of = &api_str},
};
static const struct api_type prompt = {
    .what = API_UNION, .nullable = true, .of = prompt_kinds, .n = 4};

static const struct api_type bytes = {.what = API_BYTES};
static const struct api_type embed_kinds[] = {
    {.what = API_BYTES, .label = "bytes"},
    {.what = API_LIST, .label = "list[bytes]", .of = &bytes},
};
static const struct api_type embeds = {
    .what = API_UNION, .nullable = true, .of = embed_kinds, .n = 2};

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
    FIELD_OLD("stop", api_stop, STOP),
    FIELD_NEW("stop", api_few_stops, STOP),
    FIELD("stream", api_bool_or_null, STREAM),
    FIELD("stream_options", api_stream_options, STREAM_OPTIONS),
    FIELD("suffix", api_str_or_null, SUFFIX),
    FIELD("temperature", api_real_or_null, TEMPERATURE),
    FIELD("top_p", api_real_or_null, TOP_P),
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
    FIELD("allowed_token_ids", api_ints_or_null, ALLOWED_TOKEN_IDS),
    FIELD("prompt_logprobs", api_int_or_null, PROMPT_LOGPROBS),
    FIELD("logprob_token_ids", api_ints_or_null, LOGPROB_TOKEN_IDS),
    FIELD("bad_words", api_strs, BAD_WORDS),
    FIELD("prompt_embeds", embeds, PROMPT_EMBEDS),
    FIELD("add_special_tokens", api_bool, ADD_SPECIAL_TOKENS),
    FIELD("response_format", api_response_format, RESPONSE_FORMAT),
    FIELD("structured_outputs", api_structured_outputs, STRUCTURED_OUTPUTS),
    FIELD("priority", api_priority, PRIORITY),
    FIELD("request_id", api_str, REQUEST_ID),
    FIELD_NEW("session_id", api_str_or_null, SESSION_ID),
    FIELD("return_tokens_as_token_ids", api_bool_or_null, TOKENS_AS_IDS),
    FIELD("return_token_ids", api_bool_or_null, RETURN_TOKEN_IDS),
    FIELD_NEW("routed_experts_prompt_start", api_from_zero, IGNORED),
    FIELD("return_token_offsets", api_bool_or_null, IGNORED),
    FIELD_NEW("mm_payload", api_payload, IGNORED),
    FIELD_NEW("return_mm_kwargs", api_bool_or_null, IGNORED),
    FIELD_OLD("cache_salt", api_str_or_null, CACHE_SALT),
    FIELD_NEW("cache_salt", api_cache_salt, CACHE_SALT),
    FIELD("kv_transfer_params", api_dict_or_null, IGNORED),
    FIELD("ec_transfer_params", api_dict_or_null, IGNORED),
    FIELD("vllm_xargs", api_xargs, IGNORED),
    FIELD("repetition_detection", api_repetition_detection, REPETITION_DETECTION),
    FIELD("thinking_token_budget", api_any, IGNORED),
    FIELD_NEW("stream_interval", api_interval, STREAM_INTERVAL),
    {0}};
