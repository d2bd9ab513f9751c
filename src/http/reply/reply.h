/* reply.h - what a choice will say, all of it, before the engine has begun; private to
 * http. Texts are random words, an echo, a dataset's answers, arguments for tools, or
 * JSON that fits a schema.
 *
 * How long random words go on: to max_tokens with ignore_eos, or where the client has
 * stated a limit (who does so to a server without a model wants that length); else a
 * length is drawn and an EOS ends it, unless the limit comes first. With lengths_from,
 * stated limits do not keep a drawn length from ending sooner. */
#ifndef VT_HTTP_REPLY_H
#define VT_HTTP_REPLY_H

#include "http/api/api.h"
#include "http/http.h"

struct reply_source; /* opaque; read-only once open: any thread */
/* By what the configuration says of answers, their tokenizer and seed. Copies it. */
int reply_source_open(struct reply_source **out, const struct vt_serve_config *c,
                      struct vt_err *err) VT_MUST_CHECK;
void reply_source_close(struct reply_source *s); /* NULL is fine */

enum reply_end {
    REPLY_LENGTH,
    REPLY_EOS,
    REPLY_STOP_TOKEN,
    REPLY_STOP_STRING,
    REPLY_ABORT, /* never made: an operator ended it with the tokens that were out */
};

struct reply_call { /* a tool call within the tokens */
    const char *id, *name;
    const char *arguments; /* JSON */
    size_t arguments_len;
    /* Tokens [first, first + n) of the reply spell it; argument bytes up to
     * arguments_end[i] are out with token first + i, the name with token first + named
     * (never, if that is first + n: it was cut before). */
    uint32_t first, n, named;
    const uint32_t *arguments_end;
};

struct reply {             /* points into the request's arena */
    const uint32_t *token; /* what the engine makes, a stop token included */
    uint32_t n;            /* at least 1 */
    const char *text;      /* what the client sees as content; with calls: how the model
                            * spells them, seen only where calls_cut says so */
    size_t text_len;
    /* Bytes of `text` that are out with token i: held back while a character is
     * incomplete or a stop string may be beginning, as vLLM does. */
    const uint32_t *text_end;
    enum reply_end end;
    const char *stop_reason; /* as JSON: "null", "1234", "\"###\"" */
    const struct reply_call *call;
    uint32_t n_calls;
    bool calls_cut; /* it ends before they are whole, so that a whole response has the
                     * text as it stands instead, as vLLM's parser leaves it */
    bool unformed;  /* a grammar, or a schema or expression that is not understood: the
                     * text is words as if none had been asked for */
    uint64_t key;   /* of made-up log probabilities */
};

/* What the choices of one request share: stop strings made into one automaton,
 * expressions that were read, and how much work may still go into drawing by schemas.
 */
struct reply_batch; /* opaque; one thread at a time */
/* Borrows both until it is closed; small memory is r->arena's. */
int reply_batch_open(struct reply_batch **out, const struct reply_source *s,
                     struct api_request *r, struct vt_err *err) VT_MUST_CHECK;
void reply_batch_close(struct reply_batch *b); /* NULL is fine */

/* What choice `choice` of prompt `prompt` says. Equal requests with equal seeds (the
 * request's, else temperature 0, else one drawn for `number`, the server's count of
 * requests) say the same. Memory comes from the request's arena. */
int reply_make(struct reply *out, struct reply_batch *b, uint32_t prompt,
               uint32_t choice, uint64_t number, struct vt_err *err) VT_MUST_CHECK;

#endif
