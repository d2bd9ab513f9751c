/* plain.h - endpoints that need no engine: models, tokenizing, versions, descriptions;
 * private to http/serve. */
#ifndef VT_HTTP_PLAIN_H
#define VT_HTTP_PLAIN_H

#include "core/core.h"
#include "http/api/api.h"
#include "net/net.h"

struct plain_model { /* borrowed */
    const char *id;
    const char *root;   /* a path, or the id */
    const char *parent; /* NULL: a base model; else an adapter */
    int64_t created;
};

struct plain_context { /* borrowed */
    const struct api_context *api;
    const struct plain_model *model; /* served names, then adapters */
    uint32_t n_models;
    const struct vt_engine_config *engine;
    const char *profile; /* for /server_info */
    uint32_t data_parallel_size;
    bool dev_mode;  /* the routes of VLLM_SERVER_DEV_MODE exist */
    bool scale_out; /* 0.32: --enable-scale-out, without which nothing is rendered */
};

struct plain_answer {
    int status;
    const char *type;  /* static */
    const char *allow; /* of a 405: the Allow header; NULL: none */
};

/* NULL: no such route here. */
struct plain_row;
const struct plain_row *plain_find(const struct plain_context *c, const char *path);
/* Answers GET /v1/models, /version, /health, /ping, /server_info, /openapi.json, /docs;
 * POST /tokenize, /detokenize, /v1/completions/render, /v1/chat/completions/render,
 * /v1/messages/count_tokens, /ping; 404 and 405 for what no route takes. False: a route
 * that is not plain. Any thread may call it. */
bool plain_answer(const struct plain_context *c, const struct net_request *r,
                  struct vt_buf *body, struct plain_answer *a);

#endif
