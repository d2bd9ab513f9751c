/* parts.h - writers of responses, one for each kind; private to http/out. */
#ifndef VT_HTTP_OUT_PARTS_H
#define VT_HTTP_OUT_PARTS_H

#include <string.h>

#include "http/out/out.h"

/* Tokens [from, upto) of a choice, as one output of the engine. */
struct out_step {
    uint32_t from, upto;
    const char *text; /* what they add */
    size_t len;
    bool last;
    struct out_choice *all; /* of the request; only while it streams */
    uint32_t n_all;
};

enum out_item { OUT_NOTHING, OUT_MESSAGE, OUT_CALL }; /* of struct out_items */

static inline size_t out_text_at(const struct reply *p, uint32_t n_tokens)
{
    return n_tokens > 0 ? p->text_end[n_tokens - 1] : 0;
}
static inline const char *out_finish(const struct reply *p)
{
    return p->end == REPLY_LENGTH ? "length" : p->end == REPLY_ABORT ? "abort" : "stop";
}
/* vLLM's tool parser stands between the text and the client. */
static inline bool out_parsed(const struct api_request *r)
{
    return r->n_tools > 0 && r->tool_choice != API_TOOLS_NONE;
}
static inline bool out_spells_calls(const struct reply *p)
{
    return p->n_calls > 0 || p->calls_cut;
}

/* What a step adds to a call. */
struct out_call {
    bool named; /* its name comes with this step */
    const char *arguments;
    size_t len;
};
struct out_call out_call_in(const struct reply_call *c, const struct out_step *s);
bool out_any_named(const struct reply *p, uint32_t n_tokens);

/* ---- members of JSON maps -------------------------------------------- */

void out_id(struct vt_jw *w, const char *key, const char *prefix, const struct reply *p,
            uint64_t what);
/* A list of ids; null if it is not wanted. */
void out_ids(struct vt_jw *w, const char *key, const uint32_t *id, uint32_t n,
             bool wanted);
/* Two texts as one. */
void out_joined(struct vt_jw *w, const char *key, const char *before, size_t n_before,
                const char *text, size_t len);
void out_nulls(struct vt_jw *w, const char *const *key); /* NULL-terminated */
static inline void out_stop_reason(struct vt_jw *w, const struct reply *p, bool last)
{
    const char *reason = last ? p->stop_reason : "null";

    vt_jw_raw(w, "stop_reason", reason, strlen(reason));
}

/* ---- events ---------------------------------------------------------- */

/* A server-sent event with an open map; name NULL: it has none. */
void out_event_begin(struct vt_jw *w, struct vt_buf *b, const char *name);
void out_event_end(struct vt_jw *w); /* of the map, too */

/* ---- usage ----------------------------------------------------------- */

uint32_t out_prompt_tokens(const struct api_request *r);
uint32_t out_told(const struct out_choice *all, uint32_t n_all);
/* The map "usage" with its counts; it stays open. */
void out_usage_begin(struct vt_jw *w, uint32_t prompt, uint32_t output);
/* With what is null in whole responses, and absent elsewhere, or without. */
void out_cache_details(struct vt_jw *w, const struct api_request *r,
                       const struct out_choice *c, bool nulls);

/* ---- log probabilities ----------------------------------------------- */

/* Of completions: of the prompt too, where it is echoed with this step. */
void out_logprobs_completion(struct vt_jw *w, const struct api_request *r,
                             struct out_choice *c, const struct out_step *s, bool echo);
/* null where none were asked for. */
void out_logprobs_chat(struct vt_jw *w, const struct api_request *r,
                       const struct out_choice *c, const struct out_step *s);
/* Chats have the value before the bytes, responses behind them or none. */
enum out_form { OUT_FORM_CHAT, OUT_FORM_RESPONSE, OUT_FORM_DELTA };
/* A list of the step's tokens, or of those among them that came with text. */
void out_logprobs_list(struct vt_jw *w, const char *key, const struct api_request *r,
                       const struct out_choice *c, const struct out_step *s,
                       enum out_form form, bool with_text);
/* null, or a map for each token of the prompt. */
void out_logprobs_prompt(struct vt_jw *w, const struct api_request *r,
                         const struct out_choice *c);

/* ---- kinds ----------------------------------------------------------- */

struct out_writer {
    bool (*begin)(struct api_request *r, struct out_choice *c); /* NULL: nothing */
    void (*step)(struct vt_buf *b, const struct api_request *r, struct out_choice *c,
                 const struct out_step *s);
    void (*done)(struct vt_buf *b, const struct api_request *r,
                 const struct out_choice *all, uint32_t n_all);
    void (*whole)(struct vt_jw *w, const struct api_request *r,
                  const struct out_choice *all, uint32_t n_all);
};
extern const struct out_writer out_completions, out_chat, out_responses, out_messages;

/* ---- completions and chats ------------------------------------------- */

/* A chunk with its only choice, which stays open. */
void out_chunk_begin(struct vt_jw *w, struct vt_buf *b, const struct api_request *r,
                     const struct out_choice *c);
/* Ends the choice; usage follows where every chunk has it. */
void out_choice_end(struct vt_jw *w, const struct api_request *r,
                    const struct out_choice *c, uint32_t output);
/* Both, and all that stands behind the choice of a chunk with tokens. */
void out_chunk_end(struct vt_jw *w, const struct api_request *r,
                   const struct out_choice *c, bool last);
/* Makes what was written the choice's head, and frees it. False: no memory. */
bool out_set_head(struct api_request *r, struct out_choice *c, struct vt_buf *text);
/* What every chunk begins with, up to the value of `key` (in `map`; NULL: none). */
bool out_make_head(struct api_request *r, struct out_choice *c, const char *map,
                   const char *key);
/* head, the text as JSON, tail: the way of nearly all tokens. */
static inline void out_quick(struct vt_buf *b, const struct out_choice *c,
                             const struct out_step *s, const char *tail, size_t n)
{
    char *p = vt_buf_room(b, c->head_len + vt_json_room(s->len) + n);

    if (!p)
        return;
    memcpy(p, c->head, c->head_len);
    p = vt_json_str_at(p + c->head_len, s->text, s->len);
    memcpy(p, tail, n);
    vt_buf_upto(b, p + n);
}
/* The chunk with the usage of all, if it was asked for, and [DONE]. */
void out_stream_done(struct vt_buf *b, const struct api_request *r,
                     const struct out_choice *all, uint32_t n_all);
/* A whole response with its choices, up to and with its usage. */
void out_whole_begin(struct vt_jw *w, const struct api_request *r, const char *object,
                     void (*put_choice)(struct vt_jw *w, const struct api_request *r,
                                        const struct out_choice *c),
                     const struct out_choice *all, uint32_t n_all);
void out_whole_end(struct vt_jw *w, const struct api_request *r);

/* ---- the object of /v1/responses ------------------------------------- */

enum out_status { OUT_IN_PROGRESS, OUT_COMPLETED, OUT_INCOMPLETE };
/* Items that were streamed have other ids than those of a whole response. */
enum out_telling { OUT_AT_ONCE, OUT_STREAMED };

void out_response_object(struct vt_jw *w, const char *key, const struct api_request *r,
                         const struct out_choice *c, enum out_status status);
/* Items of its output: the message, whose map stays open, its only part, and call i.
 */
void out_response_message(struct vt_jw *w, const char *key, const struct api_request *r,
                          const struct out_choice *c, enum out_telling telling,
                          bool done);
void out_response_part(struct vt_jw *w, const char *key, const struct api_request *r,
                       const struct out_choice *c, enum out_telling telling);
void out_response_call(struct vt_jw *w, const char *key, const struct api_request *r,
                       const struct out_choice *c, uint32_t i, enum out_telling telling,
                       bool done);
void out_response_message_id(struct vt_jw *w, const char *key,
                             const struct api_request *r, const struct out_choice *c);
void out_response_call_id(struct vt_jw *w, const char *key, const struct api_request *r,
                          const struct out_choice *c, uint32_t i);

#endif
