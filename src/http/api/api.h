/* api.h - the OpenAI and related schemas: what a request asks, and what is wrong with
 * it, as vLLM's Python frontend sees it; private to http. Nothing here keeps state: any
 * thread may read requests. */
#ifndef VT_HTTP_API_H
#define VT_HTTP_API_H

#include "base/base.h"
#include "text/text.h"

/* ---- what the server is ------------------------------------------------ */

enum api_line { API_LINE_026, API_LINE_032 }; /* whose bodies are written */

struct api_error;

struct api_context { /* borrowed; constant while requests are read */
    const struct vt_tokenizer *tokenizer;
    enum api_line line;
    const char *version;     /* "0.26.0" */
    const char *fingerprint; /* system_fingerprint: "vllm-0.26.0-40a75c21" */
    uint32_t max_model_len;
    uint32_t max_choices;  /* prompts * n of a request; 0: any number */
    uint32_t max_values;   /* that the JSON of a body may hold; 0: any number */
    bool force_usage;      /* --enable-force-include-usage */
    bool prompt_details;   /* --enable-prompt-tokens-details */
    uint32_t max_logprobs; /* 20 */
    uint32_t embedding_dimensions;
    /* Is there a model of that name; *lora: an adapter's number, else 0. Called from
     * any thread. */
    bool (*find)(void *user, const char *name, uint32_t *lora);
    /* May so many choices come? Asked when the model is known, before the prompt is
     * read. NULL: yes. Called from any thread. */
    bool (*admit)(void *gate, uint32_t n, struct api_error *e);
    void *gate;
    const char *model; /* the first served name, for requests that name none */
    void *user;
};

/* ---- errors ------------------------------------------------------------ */

struct api_error {
    int status;
    const char *type;   /* "BadRequestError"; static */
    char param[128];    /* "": null */
    char message[2048]; /* UTF-8; cut if it was longer */
    bool anthropic;     /* written as /v1/messages writes what its checks refuse */
};
/* Returns false: what was asked for is refused. */
bool api_error_set(struct api_error *e, int status, const char *type, const char *param,
                   const char *fmt, ...) VT_PRINTF(5, 6);
/* What went wrong within: 400 if the request is to blame, else 500. */
void api_error_from(struct api_error *e, const struct vt_err *why);
bool api_nomem(struct api_error *e); /* false, with a 500 */
void api_error_json(struct vt_buf *b, const struct api_error *e);

/* ---- requests ------------------------------------------------------------ */

enum api_kind {
    API_COMPLETIONS,
    API_CHAT,
    API_RESPONSES,
    API_MESSAGES,
    API_EMBEDDINGS
};

struct api_tool {
    const char *name;
    const struct vt_node *parameters; /* its JSON schema; NULL: none */
};
enum api_tool_choice {
    API_TOOLS_NONE,
    API_TOOLS_AUTO,
    API_TOOLS_REQUIRED,
    API_TOOLS_NAMED
};
/* What the output must look like. */
enum api_format {
    API_TEXT,
    API_JSON_OBJECT,
    API_JSON_SCHEMA, /* constraint: the schema, a map */
    API_CHOICE,      /* constraint: a list of strings */
    API_REGEX,       /* constraint: a string */
    API_GRAMMAR      /* constraint: a string; text that fits is not made */
};

struct api_prompt {
    const uint32_t *id;
    uint32_t n;
    const char *text; /* for echo: what the client sent, or the ids decoded; of a chat
                       * the last user message */
    size_t text_len;
};

struct api_request { /* everything lives in the arena, which is the owner's to free */
    struct vt_arena arena;
    const struct api_context *context;
    enum api_kind kind;
    const char *model; /* as the client spelt it */
    uint32_t lora;     /* the number of an adapter; 0: it is none */
    const char *id;    /* "cmpl-0123456789abcdef"; with X-Request-Id: its value */
    int64_t created;   /* unix seconds */
    const struct api_prompt *prompt;
    uint32_t n_prompts;
    uint32_t n; /* choices of each prompt */

    bool stream, include_usage, continuous_usage;
    bool echo, return_token_ids, tokens_as_ids; /* return_tokens_as_token_ids */
    bool echo_only; /* max_tokens was 0: the one token that is made is not shown */
    bool include_stop, skip_special, ignore_eos;
    uint32_t stream_interval; /* tokens of a chunk at least; 1 */
    uint32_t max_tokens;      /* what holds, defaults and the model's length applied */
    bool limited;             /* the client has said so itself */
    uint32_t min_tokens;
    double temperature, top_p;
    bool seeded;
    int64_t seed;
    int32_t logprobs;        /* top ones of each token; -1: none at all */
    int32_t prompt_logprobs; /* -1: none */
    const char *const *stop; /* strings */
    uint32_t n_stop;
    const uint32_t *stop_id;
    uint32_t n_stop_ids;
    const uint32_t *allowed_id;
    uint32_t n_allowed_ids; /* 0: all */
    int32_t priority;
    const char *cache_salt, *session, *traceparent; /* NULL: none */
    const struct vt_node *kv_transfer;              /* kv_transfer_params; NULL: none */
    const char *kv_kept; /* what the answer says of them, as JSON; NULL: nothing */
    int32_t dp_rank;     /* of X-data-parallel-rank; -1 */

    const struct api_tool *tool;
    uint32_t n_tools;
    enum api_tool_choice tool_choice;
    uint32_t tool_index; /* NAMED: which */
    bool parallel_tools;
    enum api_format format;
    const struct vt_node *constraint;
    uint32_t dimensions;        /* embeddings */
    bool base64;                /* embeddings: encoding_format */
    const struct vt_node *body; /* the whole, for what only a writer needs */
};

struct api_headers { /* NULL: none; borrowed */
    const char *content_type, *request_id, *traceparent, *session, *priority, *dp_rank;
};

/* Fills *r, whose arena may be a used one and is reset first. False: *e says what is
 * wrong. */
bool api_read(struct api_request *r, const struct api_context *c, enum api_kind kind,
              const char *body, size_t len, const struct api_headers *h,
              struct api_error *e);

/* 62 bits for the count-th id of a server of that seed; no other count has them. */
uint64_t api_id_bits(uint64_t seed, uint64_t count);
/* A new id's 16 digits, written with a NUL. */
void api_new_id(char out[17]);

/* ---- embeddings ---------------------------------------------------------- */

/* The whole response: vectors that depend on the prompts' tokens alone, of length 1. */
void api_embeddings_json(struct vt_buf *b, const struct api_request *r);

/* ---- schemas ----------------------------------------------------------- */

/* A schema is a table of fields in the order of vLLM's own class (errors come in that
 * order). What is not in the table is ignored. Values are taken as pydantic's lax mode
 * takes them: "8" and 8.0 are integers, "on" is true. What does not fit is refused in
 * the words of pydantic and FastAPI as vLLM's Python frontend passes them on. */

enum api_what {
    API_ANY,
    API_BOOL,
    API_INT,
    API_REAL,
    API_STR,
    API_BYTES,    /* a string, too */
    API_LIST,     /* of: the item; NULL: anything */
    API_ITERABLE, /* a list, whose items nobody looks at */
    API_SEQUENCE, /* a list, too, in other words */
    API_DICT,     /* of: the value; NULL: anything */
    API_LITERAL,  /* one of some strings */
    API_MODEL,    /* a dictionary with fields of its own */
    API_DATACLASS,
    API_TYPED_DICT,
    API_UNION /* of: n types, one of which must fit */
};

struct api_field;
struct api_type { /* constant */
    enum api_what what;
    bool nullable;
    bool has_min, has_max; /* of an integer, or of the length of a string or list */
    int64_t min, max;
    const char *label; /* in a union: names the branch in the place of an error; a
                        * dataclass: its name */
    const struct api_type *of;
    uint32_t n;
    const char *const *literal; /* NULL-terminated */
    const struct api_field *field;
    /* A rule of a value whose type fits; false: the message says what is wrong. */
    bool (*rule)(const struct vt_node *v, struct vt_buf *message);
};

enum api_lines { API_BOTH_LINES, API_ONLY_026, API_ONLY_032 };
struct api_field { /* a table ends with a row without a name */
    const char *name;
    const struct api_type *type;
    uint8_t slot;  /* where api_fields_check() leaves the value */
    uint8_t lines; /* enum api_lines: who knows the field */
    bool required;
};
static inline bool api_lines_have(enum api_lines lines, enum api_line line)
{
    return lines == API_BOTH_LINES ||
           lines == (line == API_LINE_026 ? API_ONLY_026 : API_ONLY_032);
}
static inline bool api_field_known(const struct api_field *f, enum api_line line)
{
    return api_lines_have((enum api_lines)f->lines, line);
}
/* Rows whose values nobody takes. */
#define API_FIELD(n, t)  {.name = (n), .type = &(t)}
#define API_NEEDED(n, t) {.name = (n), .type = &(t), .required = true}
/* Types in parts: what stands between the braces of an api_type. */
#define API_WORDS(...)                                    \
    .what = API_LITERAL, .literal = (const char *const[]) \
    {                                                     \
        __VA_ARGS__, NULL                                 \
    }
#define API_FIELDS(...)                 \
    .field = (const struct api_field[]) \
    {                                   \
        __VA_ARGS__, {0}                \
    }
#define API_MODEL_OF(...) .what = API_MODEL, API_FIELDS(__VA_ARGS__)
#define API_ONE_OF(...)                                              \
    .what = API_UNION, .of = (const struct api_type[]){__VA_ARGS__}, \
    .n = sizeof((const struct api_type[]){__VA_ARGS__}) / sizeof(struct api_type)
#define API_STR_OR(...) API_ONE_OF({.what = API_STR, .label = "str"}, {__VA_ARGS__})
#define API_LIST_OF(t)  .what = API_LIST, .of = &(t)
/* How pydantic names a branch that is one of vLLM's classes. */
#define API_WRAPPED "function-wrap[__log_extra_fields__()]"

extern const struct api_type api_any, api_bool, api_bool_or_null, api_int,
    api_int_or_null, api_real, api_real_or_null, api_str, api_str_or_null,
    api_ints_or_null, api_strs, api_dict_or_null;

extern const struct api_field api_completion_fields[], api_chat_fields[],
    api_responses_fields[], api_messages_fields[], api_embedding_fields[];
extern const struct api_type api_messages_type; /* of a chat: a list */

/* Fills slot[], the caller's, at least as long as the greatest slot + 1 and zeroed:
 * NULL where the body has no such field. False: *e says what does not fit. */
bool api_fields_check(const struct api_field *fields, const struct vt_node *body,
                      enum api_line line, const struct vt_node **slot,
                      struct api_error *e);

/* The same of one value, named as if it were the body. */
bool api_value_check(const struct api_type *type, const struct vt_node *v,
                     enum api_line line, struct api_error *e);

/* ---- bodies ------------------------------------------------------------- */

/* What FastAPI does before anything: content type, JSON. *out lives in the arena. Of
 * lists of ids at `key` (NULL: none) no more than a model could take from either end is
 * kept; the others are counted. */
bool api_body_read(struct vt_arena *a, const struct api_context *c, const char *key,
                   const char *content_type, const char *body, size_t len,
                   const struct vt_node **out, struct api_error *e);
/* How much JSON is read of a stranger, for vt_json_parse_bounded(). */
struct vt_json_bounds api_json_bounds(const struct api_context *c, const char *key);

/* ---- values of checked fields -------------------------------------------- */

/* NULL and null give the default. */
bool api_get_bool(const struct vt_node *v, bool def);
int64_t api_get_int(const struct vt_node *v, int64_t def);
double api_get_real(const struct vt_node *v, double def);
const char *api_get_str(const struct vt_node *v, const char *def);
/* Python's truth of a value: `if data.get("x")`. */
bool api_truth(const struct vt_node *v);
static inline bool api_given(const struct vt_node *v)
{
    return v && v->kind != VT_NULL;
}
/* How many characters UTF-8 has. */
static inline size_t api_characters(const char *text, size_t len)
{
    size_t n = 0;

    for (size_t i = 0; i < len; i++)
        n += ((unsigned char)text[i] & 0xc0) != 0x80;
    return n;
}

/* The messages hold neither paths nor addresses: vLLM's last step, and ours. */
void api_sanitize(char *text);

/* ---- Python's way of writing ----------------------------------------- */

/* Bodies: no spaces, Python's floats. Text that a model would write has a space behind
 * commas and colons, as json.dumps(ensure_ascii=False) does. */
extern const struct vt_json_style json_body, json_dumps;

void api_py_repr(struct vt_buf *b, const struct vt_node *v);
void api_py_str(struct vt_buf *b, const struct vt_node *v); /* str(): no quotes */
void api_py_repr_text(struct vt_buf *b, const char *text, size_t len);
void api_py_float(struct vt_buf *b, double v);
const char *api_py_type(const struct vt_node *v); /* "int", "NoneType"; static */

/* What json.loads() says of a text: its message (static), or NULL if it has no
 * complaint; *at: the place, in characters. */
const char *api_py_json_error(const char *text, size_t len, size_t *at);

#endif
