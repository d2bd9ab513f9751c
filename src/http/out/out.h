/* out.h - responses as vLLM's Python frontend writes them, byte for byte but for ids
 * and times; private to http. Kinds: completions, chat, responses, messages. */
#ifndef VT_HTTP_OUT_H
#define VT_HTTP_OUT_H

#include "http/api/api.h"
#include "http/reply/reply.h"

struct out_choice { /* one choice of a request, and how far it is; zero what is out's */
    const struct reply *reply;
    uint32_t index;          /* over all prompts: prompt * n + choice */
    uint32_t prompt;         /* index of its prompt */
    uint32_t cached_tokens;  /* of its prompt; known with the first token */
    uint32_t written_tokens; /* of its prompt, into the prefix cache: whole blocks less
                              * the cached ones; for usage details of chats */
    uint32_t told;           /* tokens that have been written */
    uint32_t text_told;      /* out's own, as what follows */
    const char *head;        /* what every event of it begins with; of the arena */
    uint32_t head_len;
    bool plain;          /* tokens need nothing but their text */
    bool begun;          /* the first events of all choices are out */
    struct out_items {   /* of a stream that has some */
        uint32_t number; /* of the next event */
        uint32_t done;   /* how many are closed */
        uint32_t open;   /* enum out_item */
        uint32_t call;   /* the one that is open */
    } items;
};

/* Before the first event. False: no memory. */
bool out_begin(struct api_request *r, struct out_choice *c);
/* SSE: tokens [c->told, upto) of a choice as one output of the engine, with the role
 * (or the first events) before the first and the finish reason with the last, as as
 * many events as vLLM would send: none where the stream interval or held-back text says
 * so. `all` are the request's choices, *c among them, each begun. Advances c->told. Of
 * an aborted reply the last event may have no tokens. */
void out_tokens(struct vt_buf *b, const struct api_request *r, struct out_choice *c,
                uint32_t upto, struct out_choice *all, uint32_t n_all);
/* After all choices: closing events, usage if asked for, and [DONE] where it is due. */
void out_done(struct vt_buf *b, const struct api_request *r,
              const struct out_choice *all, uint32_t n_all);
/* A stream that fails in the middle: the error as an event, then [DONE]. */
void out_broken(struct vt_buf *b, const struct api_request *r,
                const struct api_error *e);
/* The whole response of a request that does not stream. */
void out_whole(struct vt_buf *b, const struct api_request *r,
               const struct out_choice *all, uint32_t n_all);

#endif
