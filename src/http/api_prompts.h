/* api_prompts.h - prompts and the model's length; private to api_*.c. */
#ifndef VT_HTTP_API_PROMPTS_H
#define VT_HTTP_API_PROMPTS_H

#include "http/api_request.h"

struct api_limits {
    int64_t max_output; /* what the client wants; 0: nothing said */
    const char *param;  /* under which name */
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
/* Of the three kinds of chats. */
bool api_read_chat(struct api_reading *q, const struct api_limits *l);

#endif
