/* send.c - the exporter's thread: takes what was noted, writes it as JSON, and
 * sends it to a file or a collector. */
#include <errno.h>

#include "export/impl.h"
#include "live/live.h"

enum {
    TRIES = 5,
    FIRST_PAUSE_MS = 250, /* then twice as long each time */
    SEND_TIMEOUT_MS = 10000,
    POLL_MS = 50,
    GZIP_LEVEL = 6,
};

const char *const export_protocols[] = {"by-port", "grpc", "http/json", NULL};

/* ---- opening ------------------------------------------------------------ */

static int add_header(struct export_sink *s, const char *name, const char *value,
                      struct vt_err *err)
{
    int rc =
        vt_grow(&s->header, &s->cap_headers, s->n_headers + 1, sizeof(*s->header), err);

    if (rc == VT_OK)
        s->header[s->n_headers++] = (struct net_header){name, value};
    return rc;
}

/* http://HOST:4317 is where collectors take gRPC; a path is HTTP's. */
static bool is_grpc(const struct export_config *c)
{
    const char *host = strstr(c->endpoint, "://"), *end;

    if (c->protocol != EXPORT_BY_PORT)
        return c->protocol == EXPORT_GRPC;
    if (!host)
        return false;
    end = host + 3 + strcspn(host + 3, "/");
    return end - host > 5 && strncmp(end - 5, ":4317", 5) == 0 &&
           (*end == '\0' || strcmp(end, "/") == 0);
}

int export_sink_open(struct export_sink *s, const struct export_config *c,
                     struct vt_err *err)
{
    const char *e = c->endpoint;
    int rc;

    if (strncmp(e, "file:", 5) == 0)
        return vt_append_open(&s->file, e + 5, GZIP_LEVEL, true, err);
    if (strncmp(e, "http://", 7) != 0 && strncmp(e, "https://", 8) != 0)
        return vt_fail(err, VT_EINPUT,
                       "'%s' is neither http://HOST:PORT/v1/traces nor file:PATH", e);
    if (is_grpc(c)) {
        rc = net_grpc_open(&s->grpc, e, err);
    } else {
        s->has_client = true;
        rc = net_client_open(&s->client, e, NULL, err);
        if (rc == VT_OK)
            rc = add_header(s, "Content-Type", "application/json", err);
    }
    if (rc != VT_OK ||
        (rc = add_header(s, "User-Agent", "vtwin/" VT_VERSION, err)) != VT_OK)
        return rc;
    if (!c->headers)
        return VT_OK;
    s->texts = strdup(c->headers);
    if (!s->texts)
        return vt_nomem(err);
    /* "K=V,K=V"; what has no '=' is passed over. */
    for (char *at = s->texts; *at && rc == VT_OK;) {
        size_t n = strcspn(at, ","), key = strcspn(at, "=");
        bool more = at[n] == ',';

        at[n] = '\0';
        if (key < n) {
            at[key] = '\0';
            rc = add_header(s, at, at + key + 1, err);
        }
        at += n + more;
    }
    return rc;
}

void export_sink_close(struct export_sink *s)
{
    (void)vt_append_close(s->file, NULL);
    net_grpc_close(s->grpc);
    if (s->has_client)
        net_client_close(&s->client);
    free(s->header);
    free(s->texts);
}

/* ---- one try ------------------------------------------------------------ */

static bool has_passed(void *deadline)
{
    int64_t at = atomic_load((_Atomic(int64_t) *)deadline);

    return at != 0 && vt_wall_ns() > at;
}

static enum export_outcome post_body(struct export_sink *s, const char *text,
                                     size_t len, _Atomic(int64_t) *deadline)
{
    const char *path = s->client.url.path;
    const struct net_ask ask = {
        /* Without a path it is the collector's base, below which traces have a place.
         */
        .path = *path == '\0' || strcmp(path, "/") == 0 ? "/v1/traces" : NULL,
        .header = s->header,
        .n_headers = s->n_headers,
        .body = text,
        .body_len = len,
        .timeout_ns = SEND_TIMEOUT_MS * VT_MS,
        .stopped = has_passed,
        .user = deadline,
    };
    struct vt_buf ignored = {0};
    int status = 0, rc = net_ask(&s->client, &ask, &status, &ignored, NULL);

    vt_buf_free(&ignored);
    if (rc != VT_OK)
        return EXPORT_LATER;
    if (status >= 200 && status < 300)
        return EXPORT_TAKEN;
    return status == 429 || status == 502 || status == 503 || status == 504
               ? EXPORT_LATER
               : EXPORT_REFUSED;
}

/* Statuses of gRPC after which OTLP's clients try again. */
static bool is_for_later(int status)
{
    enum {
        CANCELLED = 1,
        DEADLINE = 4,
        EXHAUSTED = 8,
        ABORTED = 10,
        RANGE = 11,
        UNAVAILABLE = 14,
        LOSS = 15
    };

    return status == CANCELLED || status == DEADLINE || status == EXHAUSTED ||
           status == ABORTED || status == RANGE || status == UNAVAILABLE ||
           status == LOSS;
}

static enum export_outcome call_body(struct export_sink *s, const struct vt_buf *json,
                                     _Atomic(int64_t) *deadline)
{
    struct vt_buf proto = {0};
    struct net_grpc_call c = {
        .path = "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
        .header = s->header,
        .n_headers = s->n_headers,
        .timeout_ns = SEND_TIMEOUT_MS * VT_MS,
        .stopped = has_passed,
        .user = deadline,
    };
    int status = 0, rc = export_put_proto(&proto, json, NULL);

    c.body = proto.data;
    c.len = proto.len;
    if (rc == VT_OK)
        rc = net_grpc_call(s->grpc, &c, &status, NULL);
    vt_buf_free(&proto);
    if (rc != VT_OK || is_for_later(status))
        return EXPORT_LATER;
    return status == 0 ? EXPORT_TAKEN : EXPORT_REFUSED;
}

/* ---- the thread --------------------------------------------------------- */

struct sender { /* the thread's own */
    struct export *x;
    struct export_body body;
    struct vt_buf taken;
    struct vt_rng rng;
};

/* Until so many are queued, the time is over, or the exporter closes. */
static void wait_locked(struct export *x, uint32_t ms, size_t n_queued)
{
    vt_ns until = vt_wall_ns() + ms * VT_MS;
    struct timespec at = {.tv_sec = until / VT_SEC, .tv_nsec = until % VT_SEC};

    while (atomic_load(&x->deadline_ns) == 0 && x->n_queued < n_queued)
        if (pthread_cond_timedwait(&x->wake, &x->lock, &at) == ETIMEDOUT)
            break;
}

static void send_body(struct sender *s)
{
    struct export *x = s->x;
    enum export_outcome outcome = EXPORT_REFUSED;
    const struct vt_buf *text = &s->body.text;
    size_t n = s->body.n;

    export_put_body(&s->body, &x->names, &s->rng);
    vt_buf_char(&s->body.text, '\n');
    /* A try is given up, and the last one made, when the deadline passes. */
    for (int tries = 1; !s->body.text.failed; tries++) {
        if (x->sink.grpc)
            outcome = call_body(&x->sink, text, &x->deadline_ns);
        else if (!x->sink.file)
            outcome = post_body(&x->sink, text->data, text->len, &x->deadline_ns);
        else
            outcome = vt_append_put(x->sink.file, text, NULL) == VT_OK ? EXPORT_TAKEN
                                                                       : EXPORT_REFUSED;
        if (outcome != EXPORT_TAKEN)
            atomic_fetch_add(&x->failed, 1);
        if (outcome != EXPORT_LATER || tries >= TRIES || has_passed(&x->deadline_ns))
            break;
        pthread_mutex_lock(&x->lock);
        wait_locked(x, (uint32_t)FIRST_PAUSE_MS << (tries - 1), SIZE_MAX);
        pthread_mutex_unlock(&x->lock);
        if (atomic_load(&x->deadline_ns) != 0) /* what is left of the time is used */
            vt_sleep_ns(POLL_MS * VT_MS);
        if (has_passed(&x->deadline_ns))
            break;
    }
    atomic_fetch_add(outcome == EXPORT_TAKEN ? &x->sent : &x->dropped, n);
}

/* Swaps buffers when it is time; false: the exporter closes, and it was the last time.
 */
static bool take_queue(struct sender *s)
{
    struct export *x = s->x;
    struct vt_buf empty = s->taken;
    bool closing;

    pthread_mutex_lock(&x->lock);
    wait_locked(x, x->c.period_ms, x->c.batch);
    closing = atomic_load(&x->deadline_ns) != 0;
    s->taken = x->queue;
    x->queue = empty;
    x->queue.max = EXPORT_QUEUE_BYTES;
    x->n_queued = 0;
    pthread_mutex_unlock(&x->lock);
    return !closing;
}

void *export_thread(void *arg)
{
    struct export *x = arg;
    struct sender s = {.x = x};
    bool more = true;

    vt_rng_init(&s.rng, (uint64_t)vt_wall_ns(), x->names.instance);
    while (more) {
        more = take_queue(&s);
        for (size_t at = 0; at < s.taken.len;) {
            const struct export_head *head = (const void *)(s.taken.data + at);
            size_t before = s.body.n;

            if (!x->sink.file && has_passed(&x->deadline_ns))
                ; /* no time is left to send it in */
            else if (head->kind == EXPORT_A_REQUEST)
                export_put_request(&s.body, &x->names, (const void *)head, &s.rng);
            else
                export_put_step(&s.body, &x->names, (const void *)head);
            if (s.body.n == before)
                atomic_fetch_add(&x->dropped, 1);
            if (s.body.n >= x->c.batch ||
                export_body_bytes(&s.body) >= EXPORT_BODY_BYTES)
                send_body(&s);
            at += head->size;
        }
        if (s.body.n > 0)
            send_body(&s);
        if (s.taken.cap > EXPORT_BODY_BYTES) /* of a burst; such memory is not kept */
            vt_buf_free(&s.taken);
        vt_buf_clear(&s.taken);
    }
    export_body_free(&s.body);
    vt_buf_free(&s.taken);
    return NULL;
}
