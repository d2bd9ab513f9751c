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

struct plain_row {
    const char *path, *methods; /* "GET, POST" */
    const char *summary;        /* one line */
    /* NULL: no body, or one of no fixed form. */
    const struct api_field *fields, *or_fields;
    plain_fn *answer; /* NULL: others answer it */
    bool dev;         /* only in dev mode */
};
extern const struct plain_row plain_rows[];
extern const size_t plain_n_rows;

/* NULL: no such route here. */
const struct plain_row *plain_find(const struct plain_context *c, const char *path);
bool plain_takes(const struct plain_row *row, const char *method);

/* Descriptions of all routes there are. */
plain_fn plain_openapi, plain_docs;
plain_fn plain_models, plain_version, plain_health, plain_server_info;
plain_fn plain_tokenize, plain_detokenize, plain_count_tokens;
plain_fn plain_render_completion, plain_render_chat;

extern const struct api_field plain_tokenize_fields[], plain_tokenize_chat_fields[],
    plain_detokenize_fields[], plain_count_fields[];

#endif
