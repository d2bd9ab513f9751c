/* plain.h - endpoints that need no engine: models, tokenizing, versions, descriptions;
 * private to http/serve. */
#ifndef VT_HTTP_PLAIN_H
#define VT_HTTP_PLAIN_H

#include "http/api/api.h"
#include "http/http.h"
#include "net/net.h"

struct plain_model { /* borrowed */
    const char *id;
    const char *root;   /* a path, or the id */
    const char *parent; /* NULL: a base model; else an adapter */
    int64_t created;
    uint32_t number; /* of an adapter, from 1 on; else 0 */
};

struct plain_context { /* borrowed */
    const struct api_context *api;
    const struct vt_serve_config *config;
    const struct plain_model *model; /* served names, then adapters */
    uint32_t n_models;
};

struct plain_answer {
    int status;
    const char *type;     /* static */
    const char *allow;    /* of a 405: the Allow header; NULL: none */
    const char *location; /* of a 307; the exchange's; NULL: none */
};

/* NULL: no such route here. */
struct plain_row;
const struct plain_row *plain_find(const struct vt_serve_config *c, const char *path);
/* The route that a path without a route would have but for slashes at its end. */
const struct plain_row *plain_find_slashed(const struct vt_serve_config *c,
                                           const char *path);
/* Answers GET /v1/models, /version, /health, /ping, /server_info, /openapi.json, /docs;
 * POST /tokenize, /detokenize, /v1/completions/render, /v1/chat/completions/render,
 * /v1/messages/count_tokens, /ping; 404 and 405 for what no route takes. False: a route
 * that is not plain. Any thread may call it. */
bool plain_answer(const struct plain_context *c, const struct net_request *r,
                  struct vt_buf *body, struct plain_answer *a);

/* ---- routes (plain_routes.c), and who answers -------------------------- */

struct plain_ask { /* one request while it is answered */
    const struct plain_context *c;
    const struct net_request *r;
    struct vt_buf *body;
    struct plain_answer *a;
    struct vt_jw w;     /* writes the body */
    struct api_error e; /* why it is refused */
};
typedef bool plain_fn(struct plain_ask *q); /* false: q->e says why not */

struct exchange;
/* A route of what runs, on the loop: admin.c. */
typedef void admin_fn(struct exchange *x);

enum plain_when { PLAIN_ALWAYS, PLAIN_DEV_MODE, PLAIN_LORA_UPDATES };

struct plain_row {
    const char *path, *methods; /* "GET, POST" */
    const char *summary;        /* one line; NULL: described to nobody */
    /* NULL: no body, or one of no fixed form. */
    const struct api_field *fields, *or_fields;
    plain_fn *answer;
    admin_fn *admin;
    enum plain_when when;
    bool mounted;      /* whatever the path goes on with, and whatever the method */
    bool makes_tokens; /* what `kind` says */
    enum api_kind kind;
};
extern const struct plain_row plain_rows[];
extern const size_t plain_n_rows;

bool plain_takes(const struct plain_row *row, const char *method);

admin_fn admin_load, admin_metrics, admin_load_lora, admin_unload_lora,
    admin_is_sleeping, admin_is_paused, admin_world_size, admin_reset_prefix_cache,
    admin_reset_other, admin_sleep, admin_wake_up, admin_pause, admin_resume,
    admin_abort_requests;

/* Descriptions of all routes there are. */
plain_fn plain_openapi, plain_docs;
plain_fn plain_models, plain_version, plain_health, plain_server_info;
plain_fn plain_tokenize, plain_detokenize, plain_count_tokens;
plain_fn plain_render_completion, plain_render_chat;

extern const struct api_field plain_tokenize_fields[], plain_tokenize_chat_fields[],
    plain_detokenize_fields[], plain_count_fields[];

#endif
