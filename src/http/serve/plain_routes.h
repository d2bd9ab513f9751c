/* plain_routes.h - the routes of the server, and what describes them; private to
 * plain*.c. */
#ifndef VT_HTTP_PLAIN_ROUTES_H
#define VT_HTTP_PLAIN_ROUTES_H

#include "http/api/api.h"
#include "http/serve/plain.h"

struct plain_ask { /* one request while it is answered */
    const struct plain_context *c;
    const struct net_request *r;
    struct vt_buf *body;
    struct plain_answer *a;
};

struct plain_row {
    const char *path, *methods; /* "GET, POST" */
    const char *summary;        /* one line */
    /* NULL: no body, or one of no fixed form. */
    const struct api_field *fields, *or_fields;
    void (*answer)(struct plain_ask *q); /* NULL: others answer it */
    bool dev;                            /* only in dev mode */
};
extern const struct plain_row plain_rows[];
extern const size_t plain_n_rows;

/* NULL: no such route here. */
const struct plain_row *plain_find(const struct plain_context *c, const char *path);
bool plain_takes(const struct plain_row *row, const char *method);

/* Descriptions of all routes there are. */
void plain_openapi(struct plain_ask *q);
void plain_docs(struct plain_ask *q);

void plain_models(struct plain_ask *q);
void plain_version(struct plain_ask *q);
void plain_health(struct plain_ask *q);
void plain_server_info(struct plain_ask *q);
void plain_tokenize(struct plain_ask *q);
void plain_detokenize(struct plain_ask *q);
void plain_render_completion(struct plain_ask *q);
void plain_render_chat(struct plain_ask *q);
void plain_count_tokens(struct plain_ask *q);

extern const struct api_field plain_tokenize_fields[], plain_tokenize_chat_fields[],
    plain_detokenize_fields[], plain_count_fields[];

/* The answer is an error. */
void plain_refuse(struct plain_ask *q, const struct api_error *e);

#endif
