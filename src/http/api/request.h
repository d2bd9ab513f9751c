/* request.h - what the files of api share while one request is read; private to
 * http/api. */
#ifndef VT_HTTP_API_REQUEST_H
#define VT_HTTP_API_REQUEST_H

#include "http/api/api.h"

enum api_slot {
    SLOT_IGNORED,
    SLOT_MODEL,
    SLOT_PROMPT,
    SLOT_MESSAGES,
    SLOT_INPUT,
    SLOT_INSTRUCTIONS,
    SLOT_SYSTEM,
    SLOT_ECHO,
    SLOT_FREQUENCY_PENALTY,
    SLOT_LOGIT_BIAS,
    SLOT_LOGPROBS,
    SLOT_TOP_LOGPROBS,
    SLOT_MAX_TOKENS,
    SLOT_MAX_COMPLETION_TOKENS,
    SLOT_MAX_OUTPUT_TOKENS,
    SLOT_N,
    SLOT_PRESENCE_PENALTY,
    SLOT_SEED,
    SLOT_STOP,
    SLOT_STOP_SEQUENCES,
    SLOT_STREAM,
    SLOT_STREAM_OPTIONS,
    SLOT_SUFFIX,
    SLOT_TEMPERATURE,
    SLOT_TOP_P,
    SLOT_TOP_K,
    SLOT_MIN_P,
    SLOT_REPETITION_PENALTY,
    SLOT_USE_BEAM_SEARCH,
    SLOT_STOP_TOKEN_IDS,
    SLOT_INCLUDE_STOP,
    SLOT_IGNORE_EOS,
    SLOT_MIN_TOKENS,
    SLOT_SKIP_SPECIAL,
    SLOT_TRUNCATE,
    SLOT_TRUNCATION_SIDE,
    SLOT_TRUNCATION,
    SLOT_ALLOWED_TOKEN_IDS,
    SLOT_PROMPT_LOGPROBS,
    SLOT_BAD_WORDS,
    SLOT_ADD_SPECIAL_TOKENS,
    SLOT_RESPONSE_FORMAT,
    SLOT_STRUCTURED_OUTPUTS,
    SLOT_PRIORITY,
    SLOT_REQUEST_ID,
    SLOT_SESSION_ID,
    SLOT_KV_TRANSFER,
    SLOT_TOKENS_AS_IDS,
    SLOT_RETURN_TOKEN_IDS,
    SLOT_CACHE_SALT,
    SLOT_STREAM_INTERVAL,
    SLOT_TOOLS,
    SLOT_TOOL_CHOICE,
    SLOT_PARALLEL_TOOLS,
    SLOT_ADD_GENERATION_PROMPT,
    SLOT_CONTINUE_FINAL,
    SLOT_CHAT_TEMPLATE,
    SLOT_CHAT_TEMPLATE_KWARGS,
    SLOT_TEXT,
    SLOT_INCLUDE,
    SLOT_REASONING,
    SLOT_REASONING_EFFORT,
    SLOT_DIMENSIONS,
    SLOT_ENCODING_FORMAT,
    SLOT_OUTPUT_CONFIG,
    SLOT_PREVIOUS,
    N_SLOTS
};

struct api_reading { /* all borrowed, on the stack of api_read() */
    struct api_request *r;
    const struct api_context *c;
    struct api_error *e;
    const struct vt_node *body;
    const struct vt_node *slot[N_SLOTS];
};

/* ---- the schemas (schema_*.c) ---------------------------------------- */

extern const struct api_type api_embedding_type;  /* a whole body */
extern const struct api_type api_embedding_input; /* texts or ids */
extern const struct api_type api_tool_calls_type; /* of an assistant's message */
extern const struct api_type api_response_format, api_structured_outputs,
    api_stream_options, api_stop, api_few_stops, api_xargs, api_repetition_detection,
    api_seed, api_priority, api_truncate, api_truncation_side, api_interval,
    api_cache_salt, api_from_zero, api_biases, api_payload, api_few_strs,
    api_strs_or_null, api_dict, api_dicts_or_null;

bool api_structured_rule(const struct vt_node *v, struct vt_buf *message);

/* Rows of a schema: name, type, where the value goes. */
#define FIELD_ROW(n, t, s, which, need) \
    {.name = (n),                       \
     .type = &(t),                      \
     .slot = SLOT_##s,                  \
     .lines = API_##which,              \
     .required = (need)}
#define FIELD(n, t, s)            FIELD_ROW(n, t, s, BOTH_LINES, false)
#define FIELD_NEEDED(n, t, s)     FIELD_ROW(n, t, s, BOTH_LINES, true)
#define FIELD_NEW(n, t, s)        FIELD_ROW(n, t, s, ONLY_032, false)
#define FIELD_OLD(n, t, s)        FIELD_ROW(n, t, s, ONLY_026, false)
#define FIELD_NEEDED_NEW(n, t, s) FIELD_ROW(n, t, s, ONLY_032, true)
#define FIELD_NEEDED_OLD(n, t, s) FIELD_ROW(n, t, s, ONLY_026, true)
#define OPTIONAL                  .nullable = true
#define WORD(text)                ((const struct api_type){API_WORDS(text)})

/* ---- what does not fit (problems.c, values.c) --------------------------- */

/* Where a value stands; a chain of places on the stack, innermost first. */
struct api_place {
    const struct api_place *up;
    const char *name; /* NULL: an index */
    uint32_t index;
};

struct api_problems { /* zero-initialise, set the line */
    enum api_line line;
    bool wanted;        /* else only whether there is one */
    uint32_t n;         /* entries, also those that are not written out */
    struct vt_buf text; /* freed by api_problems_end() */
    char param[128];    /* of the first */
};

/* Whether a string node is taken as such a value: "12", "-inf", "off". */
bool api_text_int(const struct vt_node *v, int64_t *out);
bool api_text_real(const struct vt_node *v, double *out);
bool api_text_bool(const struct vt_node *v, bool *out);

/* Adds an entry; ctx is Python text or NULL. Returns false, as the value did not fit.
 */
bool api_problem(struct api_problems *p, const struct api_place *at,
                 const struct vt_node *input, const char *type, const char *msg,
                 const char *ctx);
/* An entry for a ValueError, or a kind of it. extras: behind the message, not in the
 * error itself. */
void api_problem_raised(struct api_problems *p, const struct api_place *at,
                        const struct vt_node *input, const char *kind,
                        const char *extras, const char *message);
/* The 400 that they make together; frees what they hold. Returns false. */
bool api_problems_end(struct api_problems *p, struct api_error *e);

/* The 400 of one such entry, about a field or about the whole body: NULL. */
void api_refuse_field(struct api_error *e, enum api_line line, const char *field,
                      const struct vt_node *input, const char *kind, const char *extras,
                      const char *message);

/* ---- refusals -------------------------------------------------------- */

/* A VLLMValidationError of a request's own checks: 0.26 wraps it as pydantic does,
 * with the whole body in it, 0.32 gives it as it is. param may be NULL. value: NULL, or
 * what Python's str() gives for it. Returns false. */
bool api_refuse(struct api_reading *q, const char *param, const char *value,
                const char *fmt, ...) VT_PRINTF(4, 5);
/* A plain ValueError in 0.26, which names no parameter; one like the above in 0.32. */
bool api_refuse_value(struct api_reading *q, const char *param, const char *message);
/* One that a later stage raises: " (parameter=..., value=...)" behind the message, and
 * never wrapped. Returns false. */
bool api_refuse_late(struct api_reading *q, const char *param, const char *value,
                     const char *fmt, ...) VT_PRINTF(4, 5);

/* ---- the steps; false: *e is set ------------------------------------- */

/* What vLLM's validators of the whole body say before the fields are looked at. */
bool api_validate(struct api_reading *q);
/* What they say of messages behind that. */
bool api_validate_after(struct api_reading *q);

/* What the body has under a name, whatever its schema. */
static inline const struct vt_node *api_asked(const struct api_reading *q,
                                              const char *name)
{
    return vt_get(q->body, name);
}

/* One such validator. */
typedef bool check_fn(struct api_reading *q);
check_fn api_check_tools, api_check_tool_calls, api_check_responses_tools,
    api_check_responses;

/* Sampling, output format, tools, stream, ids: everything but the prompts. */
bool api_read_options(struct api_reading *q);
bool api_read_tools(struct api_reading *q);
bool api_read_format(struct api_reading *q);
/* The checks of vLLM's SamplingParams, with max_tokens already resolved. */
/* asked: max_tokens as they came; NULL: they did not. */
bool api_check_sampling(struct api_reading *q, int64_t max_tokens,
                        const struct vt_node *asked);
bool api_check_against_model(struct api_reading *q);

/* ---- prompts and the model's length ------------------------------------- */

struct api_limits {
    int64_t max_output;          /* what the client wants; 0: nothing said */
    const struct vt_node *asked; /* the same as it came; NULL: nothing said */
    const char *param;           /* under which name */
    bool truncates, truncate_left;
    int64_t truncate; /* -1: to what the model takes */
};

bool api_limits_check(struct api_reading *q, struct api_limits *l);
/* Tokenises into the request's arena; the length holds then. */
bool api_prompt_from_text(struct api_reading *q, const struct api_limits *l,
                          const char *text, size_t len, unsigned flags,
                          struct api_prompt *p);
/* Of /v1/completions and /v1/embeddings; fills r->prompt. */
bool api_read_prompts(struct api_reading *q, const struct api_limits *l);
/* Are so many prompts, each with n choices, within what the server makes? */
bool api_check_choices(struct api_reading *q, uint32_t n_prompts);
/* Of the three kinds of chats. */
bool api_read_chat(struct api_reading *q, const struct api_limits *l);

/* ---- memory of the request ------------------------------------------- */

/* Texts for messages, in the request's arena; "" without memory. */
const char *api_printed(struct api_reading *q, const char *fmt, ...) VT_PRINTF(2, 3);
/* An integer as it was asked for, of which n is what fits 64 bits. */
const char *api_int_text(struct api_reading *q, const struct vt_node *asked, int64_t n);
const char *api_str_of(struct api_reading *q, const struct vt_node *v); /* str() */
/* The text that was written; frees it. */
const char *api_kept(struct api_reading *q, struct vt_buf *text);

#endif
