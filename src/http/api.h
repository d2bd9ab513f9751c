/* api.h - the OpenAI and related schemas: what a request asks, and what is wrong with
 * it, as vLLM's Python frontend sees it; private to http. Nothing here keeps state: any
 * thread may read requests. */
#ifndef VT_HTTP_API_H
#define VT_HTTP_API_H

#include "base/base.h"
#include "text/text.h"

/* ---- what the server is ------------------------------------------------ */

enum api_line { API_LINE_026, API_LINE_032 }; /* whose bodies are written */

struct api_context { /* borrowed; constant while requests are read */
    const struct vt_tokenizer *tokenizer;
    enum api_line line;
    const char *version;     /* "0.26.0" */
    const char *fingerprint; /* system_fingerprint: "vllm-0.26.0-40a75c21" */
    uint32_t max_model_len;
    bool priority_scheduling; /* else a priority other than 0 is refused */
    bool force_usage;         /* --enable-force-include-usage */
    bool prompt_details;      /* --enable-prompt-tokens-details */
    uint32_t max_logprobs;    /* 20 */
    uint32_t embedding_dimensions;
    /* Is there a model of that name; *lora: an adapter. Called from any thread. */
    bool (*find)(void *user, const char *name, bool *lora);
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
void api_error_set(struct api_error *e, int status, const char *type, const char *param,
                   const char *fmt, ...) VT_PRINTF(5, 6);
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
    bool lora;         /* it is an adapter */
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
    int32_t dp_rank;                                /* of X-data-parallel-rank; -1 */

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

/* ---- embeddings ---------------------------------------------------------- */

/* The whole response: vectors that depend on the prompts' tokens alone, of length 1. */
void api_embeddings_json(struct vt_buf *b, const struct api_request *r);

#endif
