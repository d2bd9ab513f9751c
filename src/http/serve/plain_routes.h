/* plain_routes.h - the routes of the server, and what describes them; private to
 * plain*.c. */
#ifndef VT_HTTP_PLAIN_ROUTES_H
#define VT_HTTP_PLAIN_ROUTES_H

#include "http/api/api.h"
#include "http/json.h"
#include "http/serve/plain.h"

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
typedef void admin_fn(struct exchange *x, const struct net_request *r);

enum plain_when { PLAIN_ALWAYS, PLAIN_DEV_MODE };

struct plain_row {
    const char *path, *methods; /* "GET, POST" */
    const char *summary;        /* one line; NULL: described to nobody */
    /* NULL: no body, or one of no fixed form. */
    const struct api_field *fields, *or_fields;
    plain_fn *answer;
    admin_fn *admin;
    enum plain_when when;
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
