/* parts.h - writers of responses, one for each kind; private to http/out. */
#ifndef VT_HTTP_OUT_PARTS_H
#define VT_HTTP_OUT_PARTS_H

#include "http/json.h"
#include "http/out/out.h"

#include <inttypes.h>
#include <string.h>

/* Tokens [from, upto) of a choice, as one output of the engine. */
struct out_step {
    uint32_t from, upto;
    const char *text; /* what they add */
    size_t len;
    bool last;
};

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

void out_id(struct vt_buf *b, const char *prefix, const struct reply *p, uint64_t what);
void out_ids(struct vt_buf *b, const uint32_t *id, size_t n);
size_t out_chars(const char *text, size_t len);

/* ---- usage ----------------------------------------------------------- */

uint32_t out_prompt_tokens(const struct api_request *r);
uint32_t out_told(const struct out_choice *all, uint32_t n_all);
/* {"prompt_tokens":...} of a whole response, with all its nulls. */
void out_usage_whole(struct vt_buf *b, const struct api_request *r,
                     const struct out_choice *c, uint32_t prompt, uint32_t output);
/* Of a chunk: details are null_details, or absent. */
void out_usage_chunk(struct vt_buf *b, const struct api_request *r, uint32_t prompt,
                     uint32_t output);
/* The chunk that follows all others, if it was asked for. */
void out_usage_last(struct vt_buf *b, const struct api_request *r,
                    const struct out_choice *all, uint32_t n_all);

/* ---- log probabilities ----------------------------------------------- */

/* The object of completions: of the prompt too, where it is echoed with this step. */
void out_logprobs_completion(struct vt_buf *b, const struct api_request *r,
                             struct out_choice *c, const struct out_step *s, bool echo);
void out_logprobs_chat(struct vt_buf *b, const struct api_request *r,
                       const struct out_choice *c, const struct out_step *s);
/* Lists, as /v1/responses has them: of the whole output, of what was streamed with
 * text, and of one step. */
void out_logprobs_response(struct vt_buf *b, const struct api_request *r,
                           const struct out_choice *c);
void out_logprobs_told(struct vt_buf *b, const struct api_request *r,
                       const struct out_choice *c);
void out_logprobs_delta(struct vt_buf *b, const struct api_request *r,
                        const struct out_choice *c, const struct out_step *s);
/* "null", or a map for each token of the prompt. */
void out_logprobs_prompt(struct vt_buf *b, const struct api_request *r,
                         const struct out_choice *c);

/* ---- kinds ----------------------------------------------------------- */

struct out_writer {
    bool (*begin)(struct api_request *r, struct out_choice *c);
    void (*step)(struct vt_buf *b, const struct api_request *r, struct out_choice *c,
                 const struct out_step *s, const struct out_choice *all,
                 uint32_t n_all);
    void (*done)(struct vt_buf *b, const struct api_request *r,
                 const struct out_choice *all, uint32_t n_all);
    void (*whole)(struct vt_buf *b, const struct api_request *r,
                  const struct out_choice *all, uint32_t n_all);
};
extern const struct out_writer out_completions, out_chat, out_responses, out_messages;

/* What every chunk of completions and chats begins with, up to and with `more`. */
bool out_make_head(struct api_request *r, struct out_choice *c, const char *object,
                   const char *more);
/* head, the text as JSON, tail: the way of nearly all tokens. */
static inline void out_quick(struct vt_buf *b, const struct out_choice *c,
                             const struct out_step *s, const char *tail, size_t n)
{
    char *p = vt_buf_room(b, c->head_len + json_room(s->len) + n);

    if (!p)
        return;
    memcpy(p, c->head, c->head_len);
    p = json_text_at(p + c->head_len, s->text, s->len);
    memcpy(p, tail, n);
    vt_buf_upto(b, p + n);
}
/* {"id":...,"model":..., and of a chunk "data: " before it. */
void out_open(struct vt_buf *b, const struct api_request *r, const char *object);
/* A whole response up to its usage; returns how many tokens its choices have. */
uint32_t
out_whole_open(struct vt_buf *b, const struct api_request *r, const char *object,
               void (*put_choice)(struct vt_buf *b, const struct api_request *r,
                                  const struct out_choice *c),
               const struct out_choice *all, uint32_t n_all);

/* ---- the object of /v1/responses ------------------------------------- */

enum out_status { OUT_IN_PROGRESS, OUT_COMPLETED, OUT_INCOMPLETE };
/* Items that were streamed have other ids than those of a whole response. */
enum out_telling { OUT_AT_ONCE, OUT_STREAMED };

void out_response_object(struct vt_buf *b, const struct api_request *r,
                         const struct out_choice *c, enum out_status status);
/* Items of its output: the message without its last brace, its only part, and call i.
 */
void out_response_message(struct vt_buf *b, const struct api_request *r,
                          const struct out_choice *c, enum out_telling telling);
void out_response_part(struct vt_buf *b, const struct api_request *r,
                       const struct out_choice *c, enum out_telling telling);
void out_response_call(struct vt_buf *b, const struct api_request *r,
                       const struct out_choice *c, uint32_t i, enum out_telling telling,
                       bool done);
void out_response_message_id(struct vt_buf *b, const struct api_request *r,
                             const struct out_choice *c);
void out_response_call_id(struct vt_buf *b, const struct api_request *r,
                          const struct out_choice *c, uint32_t i);

#endif
