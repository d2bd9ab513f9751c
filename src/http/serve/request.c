/* request.c - a request has come: the exchange it is kept in, who answers it, and what
 * is counted. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "http/serve/serve.h"

/* ---- a pool of exchanges --------------------------------------------- */

enum {
    POOL = 256,             /* exchanges kept for the next requests */
    POOL_BYTES = 4 << 20,   /* of all that these keep */
    KEEP_BYTES = 64 << 10,  /* of one of them */
    LONG_TO_FREE = 1 << 20, /* bytes that the worker gives back */
};

/* What it would keep. Arenas have up to twice what they have handed out. */
static size_t kept_bytes(const struct exchange *x)
{
    return 2 * (x->r.arena.used_bytes + x->copies.used_bytes) + x->answer.cap;
}

struct exchange *exchange_new(struct server *s, struct net_conn *conn)
{
    struct exchange *x = s->spare;

    if (x) {
        s->spare = x->spare;
        s->n_spare--;
        s->spare_bytes -= x->held_bytes;
        x->held_bytes = 0;
    } else {
        x = calloc(1, sizeof(*x));
    }
    if (!x)
        return NULL;
    x->s = s;
    x->conn = conn;
    s->n_exchanges++;
    return x;
}

void exchange_error(struct exchange *x, const struct api_error *e)
{
    static const struct api_error no_memory = {
        .status = 500, .type = "InternalServerError", .message = "out of memory"};
    struct api_error *kept = vt_arena_alloc(&x->copies, sizeof(*kept));

    if (kept)
        *kept = *e;
    x->error = kept ? kept : &no_memory;
}

void exchange_destroy(struct exchange *x)
{
    for (uint32_t i = 0; i < x->n_choices; i++)
        vt_chain_free(&x->choice[i].blocks.chain);
    free(x->owned);
    vt_arena_free(&x->r.arena);
    vt_arena_free(&x->copies);
    vt_buf_free(&x->answer);
    vt_buf_free(&x->kv_kept);
    free(x);
}

static void forget_name(struct exchange *x);

void exchange_free(struct exchange *x)
{
    struct server *s = x->s;
    size_t bytes = kept_bytes(x);
    struct vt_arena arena, copies;
    struct vt_buf answer, kept;

    assert(s->n_exchanges > 0 && x->n_open == 0 && !x->in_turns);
    s->n_exchanges--;
    forget_name(x);
    if (bytes + x->request.body_len > LONG_TO_FREE && s->worker.started) {
        x->task = TASK_FREE;
        worker_give(&s->worker, x);
        return;
    }
    if (s->n_spare >= POOL || bytes > KEEP_BYTES ||
        s->spare_bytes + bytes > POOL_BYTES) {
        exchange_destroy(x);
        return;
    }
    for (uint32_t i = 0; i < x->n_choices; i++)
        vt_chain_free(&x->choice[i].blocks.chain);
    free(x->owned);
    arena = x->r.arena;
    copies = x->copies;
    answer = x->answer;
    kept = x->kv_kept;
    vt_arena_reset(&arena);
    vt_arena_reset(&copies);
    vt_buf_clear(&answer);
    *x = (struct exchange){.r = {.arena = arena},
                           .copies = copies,
                           .answer = answer,
                           .kv_kept = kept,
                           .held_bytes = bytes};
    x->spare = s->spare;
    s->spare = x;
    s->n_spare++;
    s->spare_bytes += bytes;
}

void exchange_pool_free(struct server *s)
{
    while (s->spare) {
        struct exchange *x = s->spare;

        s->spare = x->spare;
        exchange_destroy(x);
    }
    vt_map_free(&s->by_id);
}

/* ---- by id ----------------------------------------------------------- */

static uint64_t hash_id(const char *id)
{
    return vt_hash_bytes(id, strlen(id), 0);
}

static bool has_id(const void *id, uint64_t exchange)
{
    const struct exchange *x = (const void *)(uintptr_t)exchange;

    return strcmp(x->r.id, id) == 0;
}

static bool is_itself(const void *x, uint64_t exchange)
{
    return (uint64_t)(uintptr_t)x == exchange;
}

void exchange_name(struct exchange *x)
{
    uint64_t *place = vt_map_add(&x->s->by_id, hash_id(x->r.id));

    if (place) /* else it can't be ended by its id, which is no reason to fail */
        *place = (uint64_t)(uintptr_t)x;
    x->named = place;
}

static void forget_name(struct exchange *x)
{
    struct vt_map *m = &x->s->by_id;

    if (x->named)
        vt_map_drop(m, vt_map_find(m, hash_id(x->r.id), is_itself, x));
    x->named = false;
}

struct exchange *exchange_by_id(struct server *s, const char *id)
{
    const uint64_t *place = vt_map_find(&s->by_id, hash_id(id), has_id, id);
    struct exchange *x = place ? (struct exchange *)(uintptr_t)*place : NULL;

    if (x) /* the next one of that id is another one */
        forget_name(x);
    return x;
}

/* ---- answers --------------------------------------------------------- */

static void count_exchange(struct exchange *x, int status)
{
    struct server *s = x->s;

    metrics_http(s->metrics, x->route, x->method, status,
                 (double)(vt_wall_ns() - x->arrived_wall) / 1e9, x->request.body_len,
                 x->bytes_out);
    if (s->c->log_requests)
        serve_log(s, "%s %s %d", x->method, x->route, status);
}

size_t serve_headers(const struct exchange *x, struct net_header out[SERVE_HEADERS])
{
    size_t n = 0;

    if (x->plain.allow)
        out[n++] = (struct net_header){"allow", x->plain.allow};
    if (x->plain.location)
        out[n++] = (struct net_header){"location", x->plain.location};
    if (x->retry_after)
        out[n++] = (struct net_header){"retry-after", x->retry_after};
    return n;
}

void serve_answer(struct exchange *x, int status, const char *type, const void *body,
                  size_t len)
{
    struct net_header header[SERVE_HEADERS];
    struct net_reply reply = {.status = status,
                              .type = type,
                              .header = header,
                              .n_headers = serve_headers(x, header),
                              .body = body,
                              .len = len};

    x->bytes_out = len;
    count_exchange(x, status);
    if (x->conn)
        net_answer(x->conn, &reply);
    exchange_free(x);
}

void serve_error(struct exchange *x, const struct api_error *e)
{
    struct vt_buf *b = &x->s->text;

    vt_buf_clear(b);
    api_error_json(b, e);
    x->s->sums.refused++;
    serve_answer(x, e->status, "application/json", b->data, b->len);
}

void serve_stream_over(struct exchange *x)
{
    count_exchange(x, 200);
    if (x->conn)
        net_end(x->conn);
    exchange_free(x);
}

void serve_refused(void *server, int status)
{
    struct server *s = server;

    metrics_http(s->metrics, "none", "GET", status, 0, 0, 0);
    s->sums.refused++;
}

/* ---- who may --------------------------------------------------------- */

/* Takes as long whatever the key is. */
static bool same_key(const char *a, const char *b)
{
    size_t n = strlen(a), m = strlen(b);
    unsigned differs = n != m;

    for (size_t i = 0; i < n; i++)
        differs |= (unsigned)(a[i] ^ b[m > 0 ? i % m : 0]);
    return differs == 0;
}

static bool allowed(const struct server *s, const struct net_request *r)
{
    static const char *const guarded[] = {"/v1", "/v2", "/inference", "/cohere"};
    const char *given = net_header_value(r, "authorization");
    bool guard = false, ok = false;

    for (size_t i = 0; i < VT_COUNT(guarded); i++)
        guard = guard || strncmp(r->path, guarded[i], strlen(guarded[i])) == 0;
    if (s->c->n_api_keys == 0 || !guard || strcmp(r->method, "OPTIONS") == 0)
        return true;
    if (!given || strncasecmp(given, "bearer ", 7) != 0)
        return false;
    for (uint32_t i = 0; i < s->c->n_api_keys; i++)
        ok = same_key(given + 7, s->c->api_key[i]) || ok;
    return ok;
}

/* ---- to the worker --------------------------------------------------- */

/* What waits for the worker is bounded, but for a first one. */
static bool has_room(const struct server *s, size_t bytes)
{
    size_t held = s->worker.held_bytes;

    return held == 0 ||
           (held <= s->c->max_waiting_bytes && bytes <= s->c->max_waiting_bytes - held);
}

/* With its body, which the connection lends only until the handler returns; other texts
 * have been copied. */
static void hand_over(struct exchange *x)
{
    size_t bytes = sizeof(*x) + x->r.arena.used_bytes + x->request.body_len;
    struct server *s = x->s;
    struct api_error e;

    if (!has_room(s, bytes)) {
        x->retry_after = "1";
        api_error_set(&e, 503, "ServiceUnavailableError", NULL,
                      "More requests wait to be read than the server holds.");
        serve_error(x, &e);
        return;
    }
    if (!x->r.context && !(x->owned = net_take_body(x->conn))) {
        (void)api_nomem(&e);
        serve_error(x, &e);
        return;
    }
    x->request.body = x->owned;
    x->held_bytes = bytes;
    s->worker.held_bytes += bytes;
    worker_give(&s->worker, x);
}

/* ---- requests for tokens --------------------------------------------- */

static const char *copy_text(struct exchange *x, const char *text)
{
    return text ? vt_arena_copy(&x->copies, text, strlen(text)) : NULL;
}

static void begin_tokens(struct exchange *x, enum api_kind kind)
{
    const struct net_request *r = &x->request;
    struct api_headers *h = &x->headers;
    struct api_error e;

    x->task = TASK_TOKENS;
    x->kind = kind;
    x->number = x->s->sums.requests++;
    *h = (struct api_headers){
        .content_type = net_header_value(r, "content-type"),
        .request_id = net_header_value(r, "x-request-id"),
        .traceparent = net_header_value(r, "traceparent"),
        .session = net_header_value(r, "x-session-id"),
        .priority = net_header_value(r, "x-vllm-priority"),
        .dp_rank = net_header_value(r, "x-data-parallel-rank"),
    };
    if (faults_next(&x->s->faults, x->s->c->name[0], &e, &x->midway)) {
        exchange_error(x, &e);
        if (!x->midway) {
            x->s->sums.failed++;
            serve_error(x, x->error);
            return;
        }
    }
    if (exchange_prepare(x, false)) {
        serve_prepared(x);
        return;
    }
    h->content_type = copy_text(x, h->content_type);
    h->request_id = copy_text(x, h->request_id);
    h->traceparent = copy_text(x, h->traceparent);
    h->session = copy_text(x, h->session);
    h->priority = copy_text(x, h->priority);
    h->dp_rank = copy_text(x, h->dp_rank);
    hand_over(x);
}

/* ---- the rest -------------------------------------------------------- */

/* A Host that a URL may be made of, as Starlette sees it. */
static bool usable_host(const char *host)
{
    return host && *host &&
           host[strspn(host, "0123456789abcdefghijklmnopqrstuvwxyz"
                             "ABCDEFGHIJKLMNOPQRSTUVWXYZ.-_~:[]")] == '\0';
}

/* The route is that of the path without the slashes at its end: where it is. */
static void answer_elsewhere(struct exchange *x, const struct plain_row *row)
{
    const struct net_request *r = &x->request;
    const char *host = net_header_value(r, "host");
    struct vt_buf b = {0};

    if (usable_host(host))
        vt_buf_printf(&b, "http%s://%s", x->s->c->certfile ? "s" : "", host);
    vt_buf_printf(&b, "%s%s%s", row->path, *r->query ? "?" : "", r->query);
    if (!b.failed)
        x->plain.location = vt_arena_copy(&x->copies, b.data, b.len);
    vt_buf_free(&b);
    serve_answer(x, 307, NULL, NULL, 0);
}

static void begin_plain(struct exchange *x)
{
    const struct net_request *r = &x->request;

    x->task = TASK_PLAIN;
    if (exchange_prepare(x, false)) {
        serve_prepared(x);
        return;
    }
    x->type = (struct net_header){"content-type",
                                  copy_text(x, net_header_value(r, "content-type"))};
    x->request = (struct net_request){.method = copy_text(x, r->method),
                                      .path = copy_text(x, r->path),
                                      .query = "",
                                      .header = &x->type,
                                      .n_headers = x->type.value ? 1 : 0,
                                      .body_len = r->body_len};
    hand_over(x);
}

/* Those that take a body need nothing else of the request. */
static void begin_admin(struct exchange *x, const struct plain_row *row)
{
    x->task = TASK_ADMIN;
    x->row = row;
    if (!row->fields || exchange_prepare(x, false))
        row->admin(x);
    else
        hand_over(x);
}

void serve_request(void *server, struct net_conn *c, const struct net_request *r)
{
    static const char unauthorized[] = "{\"error\":\"Unauthorized\"}";
    struct server *s = server;
    struct exchange *x = exchange_new(s, c);
    const struct plain_row *row = plain_find(s->c, r->path);
    bool taken = row && plain_takes(row, r->method), admin = taken && row->admin;

    if (!x) {
        net_answer(c, &(struct net_reply){.status = 503, .close = true});
        return;
    }
    net_set_data(c, x);
    x->arrived_wall = vt_wall_ns();
    x->route = row && row->summary ? row->path : "none";
    x->method = metrics_method(r->method);
    x->request = *r;
    if (!allowed(s, r))
        serve_answer(x, 401, "application/json", unauthorized,
                     sizeof(unauthorized) - 1);
    else if (taken && row->makes_tokens)
        begin_tokens(x, row->kind);
    else if (admin)
        begin_admin(x, row);
    else if (!row && (row = plain_find_slashed(s->c, r->path)))
        answer_elsewhere(x, row);
    else
        begin_plain(x);
}

void serve_gone(void *server, struct net_conn *c)
{
    struct exchange *x = net_data(c);

    (void)server;
    if (!x)
        return;
    x->conn = NULL;
    atomic_store_explicit(&x->gone, true, memory_order_relaxed);
    /* Else it is dropped when it comes back, or when its turn comes. */
    if (!x->at_worker && !x->then)
        serve_abort(x);
}
