/* schema_embedding.c - the fields of /v1/embeddings. vLLM tries five classes one
 * after another: texts or ids, one chat, many chats, and the last two again under the
 * name `input`. Of the chats vtwin takes one, under `messages`; errors speak for all.
 */
#include "http/api/request.h"

#define OPTIONAL .nullable = true

static const struct api_type ids = {.what = API_LIST, .of = &api_int};
static const struct api_type input_kinds[] = {
    {.what = API_LIST, .label = "list[int]", .of = &api_int},
    {.what = API_LIST, .label = "list[list[int]]", .of = &ids},
    {.what = API_STR, .label = "str"},
    {.what = API_LIST, .label = "list[str]", .of = &api_str},
};
const struct api_type api_embedding_input = {
    .what = API_UNION, .of = input_kinds, .n = 4};
static const struct api_type chats = {.what = API_LIST, .of = &api_messages_type};
static const struct api_type chat_sequence = {.what = API_SEQUENCE,
                                              .of = &api_messages_type};

static const char *const formats[] = {"float", "base64", "bytes", "bytes_only", NULL};
static const struct api_type format = {.what = API_LITERAL, .literal = formats};
static const char *const dtypes[] = {"float32",  "float16",  "bfloat16",
                                     "fp8_e4m3", "fp8_e5m2", NULL};
static const struct api_type dtype = {.what = API_LITERAL, .literal = dtypes};
static const char *const orders[] = {"native", "big", "little", NULL};
static const struct api_type order = {.what = API_LITERAL, .literal = orders};
static const char *const pads[] = {"max_length", "do_not_pad", NULL};
static const struct api_type padding = {.what = API_LITERAL, OPTIONAL, .literal = pads};
static const struct api_type truncated = {
    .what = API_INT, OPTIONAL, .has_min = true, .min = -1};
static const struct api_type dict = {.what = API_DICT};
static const struct api_type dicts = {.what = API_DICT, OPTIONAL, .of = &dict};

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
        FIELD("media_io_kwargs", dicts, IGNORED)
#define LAST                                                                         \
    FIELD("model", api_str_or_null, MODEL), FIELD("user", api_str_or_null, IGNORED), \
        FIELD("truncate_prompt_tokens", truncated, TRUNCATE),                        \
        FIELD("truncation_side", api_truncation_side, TRUNCATION_SIDE),              \
        FIELD("request_id", api_str, REQUEST_ID),                                    \
        FIELD("priority", api_priority, PRIORITY),                                   \
        FIELD("mm_processor_kwargs", api_dict_or_null, IGNORED),                     \
        FIELD("cache_salt", api_str_or_null, CACHE_SALT)
#define MANY                                                                       \
    {.name = "messages", .type = &chats, .lines = API_ONLY_026, .required = true}, \
    {                                                                              \
        .name = "messages", .type = &chat_sequence, .lines = API_ONLY_032,         \
        .required = true                                                           \
    }
#define MANY_INPUT                                                              \
    {.name = "input", .type = &chats, .lines = API_ONLY_026, .required = true}, \
    {                                                                           \
        .name = "input", .type = &chat_sequence, .lines = API_ONLY_032,         \
        .required = true                                                        \
    }

static const struct api_field texts[] = {
    FIRST, FIELD_NEEDED("input", api_embedding_input, INPUT), LAST, {0}};
static const struct api_field chat[] = {
    FIRST,
    CHAT_OPTIONS,
    FIELD_NEEDED("messages", api_messages_type, MESSAGES),
    LAST,
    {0}};
static const struct api_field many[] = {FIRST, CHAT_OPTIONS, LAST, MANY, {0}};
static const struct api_field chat_input[] = {
    FIRST,
    CHAT_OPTIONS,
    FIELD_NEEDED("messages", api_messages_type, MESSAGES),
    LAST,
    FIELD_NEEDED("input", api_messages_type, INPUT),
    {0}};
static const struct api_field many_input[] = {FIRST, CHAT_OPTIONS, LAST,
                                              MANY,  MANY_INPUT,   {0}};

#define WRAPPED "function-wrap[__log_extra_fields__()]"
static const struct api_type classes[] = {
    {.what = API_MODEL, .label = WRAPPED, .field = texts},
    {.what = API_MODEL, .label = WRAPPED, .field = chat},
    {.what = API_MODEL, .label = WRAPPED, .field = many},
    {.what = API_MODEL, .label = WRAPPED, .field = chat_input},
    {.what = API_MODEL, .label = WRAPPED, .field = many_input},
};
const struct api_type api_embedding_type = {
    .what = API_UNION, .of = classes, .n = VT_COUNT(classes)};

/* What is looked at once a body has fitted one of them. */
const struct api_field api_embedding_fields[] = {FIRST,
                                                 CHAT_OPTIONS,
                                                 LAST,
                                                 FIELD("messages", api_any, MESSAGES),
                                                 FIELD("input", api_any, INPUT),
                                                 {0}};
