/* schema_embedding.c - the fields of /v1/embeddings. vLLM tries five classes one
 * after another: texts or ids, one chat, many chats, and the last two again under the
 * name `input`. Of the chats vtwin takes one, under `messages`; errors speak for all.
 */
#include "http/api/request.h"

static const struct api_type ids = {API_LIST_OF(api_int)};
const struct api_type api_embedding_input = {API_ONE_OF(
    {API_LIST_OF(api_int), .label = "list[int]"},
    {API_LIST_OF(ids), .label = "list[list[int]]"}, {.what = API_STR, .label = "str"},
    {API_LIST_OF(api_str), .label = "list[str]"})};
static const struct api_type chats = {API_LIST_OF(api_messages_type)};
static const struct api_type chat_sequence = {.what = API_SEQUENCE,
                                              .of = &api_messages_type};
static const struct api_type format = {
    API_WORDS("float", "base64", "bytes", "bytes_only")};
static const struct api_type dtype = {
    API_WORDS("float32", "float16", "bfloat16", "fp8_e4m3", "fp8_e5m2")};
static const struct api_type order = {API_WORDS("native", "big", "little")};
static const struct api_type padding = {API_WORDS("max_length", "do_not_pad"),
                                        OPTIONAL};
static const struct api_type truncated = {
    .what = API_INT, OPTIONAL, .has_min = true, .min = -1};

/* Every class has these around its own. */
#define FIRST                                                                      \
    FIELD("add_special_tokens", api_bool, ADD_SPECIAL_TOKENS),                     \
        FIELD_NEW("padding", padding, IGNORED),                                    \
        FIELD("encoding_format", format, ENCODING_FORMAT),                         \
        FIELD("embed_dtype", dtype, IGNORED), FIELD("endianness", order, IGNORED), \
        FIELD("dimensions", api_int_or_null, DIMENSIONS),                          \
        FIELD("use_activation", api_bool_or_null, IGNORED)
#define CHAT_OPTIONS                                                           \
    FIELD("add_generation_prompt", api_bool, ADD_GENERATION_PROMPT),           \
        FIELD("continue_final_message", api_bool, CONTINUE_FINAL),             \
        FIELD("chat_template", api_str_or_null, CHAT_TEMPLATE),                \
        FIELD("chat_template_kwargs", api_dict_or_null, CHAT_TEMPLATE_KWARGS), \
        FIELD("media_io_kwargs", api_dicts_or_null, IGNORED)
#define LAST                                                                         \
    FIELD("model", api_str_or_null, MODEL), FIELD("user", api_str_or_null, IGNORED), \
        FIELD("truncate_prompt_tokens", truncated, TRUNCATE),                        \
        FIELD("truncation_side", api_truncation_side, TRUNCATION_SIDE),              \
        FIELD("request_id", api_str, REQUEST_ID),                                    \
        FIELD("priority", api_priority, PRIORITY),                                   \
        FIELD("mm_processor_kwargs", api_dict_or_null, IGNORED),                     \
        FIELD("cache_salt", api_str_or_null, CACHE_SALT)
#define CHAT FIELD_NEEDED("messages", api_messages_type, MESSAGES)
#define MANY(name)                          \
    FIELD_NEEDED_OLD(name, chats, IGNORED), \
        FIELD_NEEDED_NEW(name, chat_sequence, IGNORED)
#define CLASS(...) {.label = API_WRAPPED, API_MODEL_OF(FIRST, __VA_ARGS__)}

const struct api_type api_embedding_type = {API_ONE_OF(
    CLASS(FIELD_NEEDED("input", api_embedding_input, INPUT), LAST),
    CLASS(CHAT_OPTIONS, CHAT, LAST), CLASS(CHAT_OPTIONS, LAST, MANY("messages")),
    CLASS(CHAT_OPTIONS, CHAT, LAST, FIELD_NEEDED("input", api_messages_type, INPUT)),
    CLASS(CHAT_OPTIONS, LAST, MANY("messages"), MANY("input")))};

/* What is looked at once a body has fitted one of them. */
const struct api_field api_embedding_fields[] = {FIRST,
                                                 CHAT_OPTIONS,
                                                 LAST,
                                                 FIELD("messages", api_any, MESSAGES),
                                                 FIELD("input", api_any, INPUT),
                                                 {0}};
