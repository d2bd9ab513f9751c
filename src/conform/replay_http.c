/* replay_http.c - a golden's requests through a real frontend: it is started on free
 * ports with the model's directory, `vtwin play` behind it, and each record is asked
 * for over HTTP under its own id. */
#include <curl/curl.h>
#include <inttypes.h>

#include "conform/replay.h"
#include "conform/sse.h"

enum {
    IN_FLIGHT = 16,
    START_S = 240,  /* the Python frontend imports for a minute on a small machine */
    SILENCE_S = 60, /* of one request */
    MAX_HEAD = 4096,
    MAX_ID = 400,
};

struct run {
    struct replay *r;
    struct child frontend, engine;
    uint16_t port;
    CURLM *multi;
    struct call *call[IN_FLIGHT]; /* on their way; NULL: a free place */
    size_t n_calls;
    size_t next;           /* case to send */
    struct vt_err failure; /* the first one of any request */
};

struct call { /* one request on its way; user data of its handle */
    struct run *run;
    struct replay_case *c;
    CURL *easy;
    struct curl_slist *headers;
    struct sse stream;
    char answer[MAX_HEAD]; /* of a refusal */
    size_t answer_len;
};

static int stop_if(struct run *u, struct vt_err *err)
{
    if (replay_stopped(u->r))
        return vt_fail(err, VT_EIO, "stopped");
    if (!child_runs(&u->frontend, err) || !child_runs(&u->engine, err))
        return VT_EIO;
    return VT_OK;
}

/* ---- starting --------------------------------------------------------- */

/* Flags that both `vllm-rs serve` and `vllm serve` have. */
static int start_frontend(struct run *u, const char *model, uint16_t handshake,
                          struct vt_err *err)
{
    char port[8], rpc[8], len[16];
    const char *argv[] = {u->r->config->frontend,
                          "serve",
                          model,
                          "--served-model-name",
                          "conform",
                          "--max-model-len",
                          len,
                          "--data-parallel-size",
                          "1",
                          "--data-parallel-size-local",
                          "0",
                          "--data-parallel-address",
                          "127.0.0.1",
                          "--data-parallel-rpc-port",
                          rpc,
                          "--host",
                          "127.0.0.1",
                          "--port",
                          port,
                          NULL};
    union { /* execve() does not write to them */
        const char **in;
        char *const *out;
    } same = {.in = argv};

    snprintf(port, sizeof(port), "%u", u->port);
    snprintf(rpc, sizeof(rpc), "%u", handshake);
    snprintf(len, sizeof(len), "%" PRIu32, u->r->max_model_len);
    return child_start(&u->frontend, "frontend", same.out, u->r->config->environment,
                       err);
}

static size_t keep(char *data, size_t size, size_t n, void *user)
{
    struct vt_buf *b = user;

    vt_buf_add(b, data, size * n);
    return b->failed ? 0 : size * n;
}

/* GET; the body is added to b. 0 when there is no answer. */
static long get(const struct run *u, const char *path, struct vt_buf *b)
{
    CURL *easy = curl_easy_init();
    char url[64];
    long status = 0;

    if (!easy)
        return 0;
    snprintf(url, sizeof(url), "http://127.0.0.1:%u%s", u->port, path);
    b->max = MAX_HEAD;
    curl_easy_setopt(easy, CURLOPT_URL, url);
    curl_easy_setopt(easy, CURLOPT_PROXY, "");
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_TIMEOUT, 5L);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, keep);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, b);
    if (curl_easy_perform(easy) == CURLE_OK)
        curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    curl_easy_cleanup(easy);
    return status;
}

static int wait_until_healthy(struct run *u, struct vt_err *err)
{
    vt_ns deadline = vt_wall_ns() + START_S * VT_SEC;
    struct vt_buf ignored = {0};
    long status = 0;
    int rc = VT_OK;

    while (rc == VT_OK && status != 200) {
        status = get(u, "/health", &ignored);
        vt_buf_clear(&ignored);
        if (status == 200)
            break;
        rc = stop_if(u, err);
        if (rc == VT_OK && vt_wall_ns() > deadline)
            rc = child_within(&u->frontend, err,
                              vt_fail(err, VT_EIO, "not healthy after %d s", START_S));
        vt_sleep_ns(50 * VT_MS);
    }
    vt_buf_free(&ignored);
    return rc;
}

/* Only requests of 0.25 look like those of another line. */
static const struct vt_wire_line *line_to_tell(const struct replay *r)
{
    return strcmp(r->golden->line, "0.25") == 0 ? vt_wire_line_find("0.25") : NULL;
}

static int start(struct run *u, struct vt_err *err)
{
    const struct vt_golden_model *m = u->r->golden->model;
    const char *model = u->r->config->model_dir ? u->r->config->model_dir
                        : m                     ? m->directory
                                                : NULL;
    char address[64];
    uint16_t handshake;
    int rc;

    if (!model)
        return vt_fail(err, VT_EINPUT, "no model directory: give --model-dir");
    rc = free_port(&u->port, err);
    if (rc == VT_OK)
        rc = free_port(&handshake, err);
    if (rc == VT_OK)
        rc = start_frontend(u, model, handshake, err);
    if (rc != VT_OK)
        return rc;
    snprintf(address, sizeof(address), "tcp://127.0.0.1:%u", handshake);
    rc = replay_engine(u->r, &u->engine, address, REPLAY_FAST, line_to_tell(u->r), err);
    return rc == VT_OK ? wait_until_healthy(u, err) : rc;
}

/* ---- requests --------------------------------------------------------- */

static int on_chunk(void *user, const struct sse_chunk *s, struct vt_err *err)
{
    struct call *call = user;

    return replay_chunk(call->run->r, call->c, s->token, s->n_tokens, s->finish,
                        vt_wall_ns(), err);
}

static void fail_call(struct call *call, const char *what)
{
    struct vt_err *failure = &call->run->failure;

    if (failure->code == VT_OK)
        vt_fail(failure, VT_EIO, "request '%s': %s", call->c->rec->id, what);
}

/* A refusal is JSON and comes whole; what was asked for is a stream. */
static size_t take(char *data, size_t size, size_t n, void *user)
{
    struct call *call = user;
    size_t len = size * n, room = sizeof(call->answer) - 1 - call->answer_len;
    struct vt_err err;
    long status = 0;

    curl_easy_getinfo(call->easy, CURLINFO_RESPONSE_CODE, &status);
    if (status != 200) {
        size_t part = len < room ? len : room;

        memcpy(call->answer + call->answer_len, data, part);
        call->answer_len += part;
        return len;
    }
    if (sse_feed(&call->stream, data, len, &err) == VT_OK)
        return len;
    fail_call(call, err.msg);
    return 0;
}

static void put_body(struct vt_buf *b, const struct replay *r,
                     const struct replay_case *c)
{
    vt_buf_str(b, "{\"model\":\"conform\",\"prompt\":[");
    for (uint32_t i = 0; i < c->rec->prompt_tokens; i++)
        vt_buf_printf(b, "%s%" PRIu32, i ? "," : "", r->prompt[i]);
    vt_buf_printf(b,
                  "],\"max_tokens\":%" PRIu32
                  ",\"stream\":true,\"ignore_eos\":true,\"temperature\":0,"
                  "\"return_token_ids\":true}",
                  c->max_tokens);
}

/* An id goes into a header as it is. */
static int check_ids(const struct replay *r, struct vt_err *err)
{
    for (size_t i = 0; i < r->n; i++) {
        const char *id = r->c[i].rec->id;
        size_t n = 0;

        while (n < MAX_ID && id[n] > ' ' && id[n] < 127)
            n++;
        if (id[n] != '\0')
            return vt_fail(err, VT_EINPUT, "the id '%.40s' cannot be sent over HTTP",
                           id);
    }
    return VT_OK;
}

static bool set_headers(struct call *call)
{
    char id[MAX_ID + 32];
    struct curl_slist *one, *two;

    snprintf(id, sizeof(id), "X-Request-Id: %s", call->c->rec->id);
    one = curl_slist_append(NULL, "Content-Type: application/json");
    two = one ? curl_slist_append(one, id) : NULL;
    call->headers = two ? two : one;
    curl_easy_setopt(call->easy, CURLOPT_HTTPHEADER, call->headers);
    return two != NULL;
}

static void call_end(struct call *call)
{
    curl_easy_cleanup(call->easy);
    curl_slist_free_all(call->headers);
    sse_end(&call->stream);
    free(call);
}

static void set_options(struct call *call, const struct vt_buf *body)
{
    char url[64];

    snprintf(url, sizeof(url), "http://127.0.0.1:%u/v1/completions", call->run->port);
    curl_easy_setopt(call->easy, CURLOPT_URL, url);
    curl_easy_setopt(call->easy, CURLOPT_PROXY, "");
    curl_easy_setopt(call->easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(call->easy, CURLOPT_LOW_SPEED_LIMIT, 1L);
    curl_easy_setopt(call->easy, CURLOPT_LOW_SPEED_TIME, (long)SILENCE_S);
    curl_easy_setopt(call->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)body->len);
    curl_easy_setopt(call->easy, CURLOPT_COPYPOSTFIELDS, body->data);
    curl_easy_setopt(call->easy, CURLOPT_WRITEFUNCTION, take);
    curl_easy_setopt(call->easy, CURLOPT_WRITEDATA, call);
    curl_easy_setopt(call->easy, CURLOPT_PRIVATE, call);
}

static int call_begin(struct call **out, struct run *u, struct replay_case *c,
                      struct vt_err *err)
{
    struct call *call = calloc(1, sizeof(*call));
    struct vt_buf body = {0};
    int rc = VT_OK;

    *out = call;
    if (!call)
        return vt_nomem(err);
    *call = (struct call){.run = u, .c = c, .easy = curl_easy_init()};
    call->stream.on_chunk = on_chunk;
    call->stream.user = call;
    put_body(&body, u->r, c);
    if (!call->easy || body.failed || !set_headers(call))
        rc = vt_nomem(err);
    else
        set_options(call, &body);
    vt_buf_free(&body);
    return rc;
}

static int send_case(struct run *u, struct replay_case *c, struct vt_err *err)
{
    struct call *call;
    size_t place = 0;
    int rc = call_begin(&call, u, c, err);

    c->sent_ns = vt_wall_ns();
    if (rc == VT_OK && curl_multi_add_handle(u->multi, call->easy) != CURLM_OK)
        rc = vt_nomem(err);
    if (rc != VT_OK) {
        if (call)
            call_end(call);
        return rc;
    }
    while (u->call[place])
        place++;
    u->call[place] = call;
    u->n_calls++;
    return VT_OK;
}

/* The call leaves its place and is freed. */
static void drop(struct run *u, struct call *call)
{
    for (size_t i = 0; i < IN_FLIGHT; i++)
        if (u->call[i] == call)
            u->call[i] = NULL;
    u->n_calls--;
    curl_multi_remove_handle(u->multi, call->easy);
    call_end(call);
}

/* ---- answers ---------------------------------------------------------- */

static void judge_call(struct call *call, CURLcode code)
{
    long status = 0;
    char text[300];

    curl_easy_getinfo(call->easy, CURLINFO_RESPONSE_CODE, &status);
    if (code != CURLE_OK)
        fail_call(call, curl_easy_strerror(code));
    else if (status != 200) {
        snprintf(text, sizeof(text), "the frontend answered %ld: %.200s", status,
                 call->answer);
        fail_call(call, text);
    } else if (!*call->c->finish)
        fail_call(call, "the stream ended without a finish_reason");
}

static void collect(struct run *u)
{
    CURLMsg *m;
    int left;

    while ((m = curl_multi_info_read(u->multi, &left)) != NULL) {
        struct call *call = NULL;

        curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &call);
        judge_call(call, m->data.result);
        drop(u, call);
    }
}

static int send_some(struct run *u, struct vt_err *err)
{
    int rc = VT_OK;

    while (rc == VT_OK && u->next < u->r->n && u->n_calls < IN_FLIGHT)
        rc = send_case(u, &u->r->c[u->next++], err);
    return rc;
}

/* The first request that fails ends the run. */
static int serve(struct run *u, struct vt_err *err)
{
    int running, rc = send_some(u, err);

    while (rc == VT_OK && u->n_calls > 0) {
        curl_multi_perform(u->multi, &running);
        collect(u);
        if (u->failure.code != VT_OK) {
            *err = u->failure;
            return VT_EIO;
        }
        rc = stop_if(u, err);
        if (rc == VT_OK)
            rc = send_some(u, err);
        if (rc == VT_OK && u->n_calls > 0)
            curl_multi_poll(u->multi, NULL, 0, 100, NULL);
    }
    return rc;
}

int replay_http(struct replay *r, struct vt_err *err)
{
    struct run u = {.r = r, .multi = curl_multi_init()};
    int rc = u.multi ? check_ids(r, err) : vt_nomem(err);

    if (rc == VT_OK)
        rc = start(&u, err);
    if (rc == VT_OK)
        rc = serve(&u, err);
    for (size_t i = 0; i < IN_FLIGHT; i++)
        if (u.call[i])
            drop(&u, u.call[i]);
    curl_multi_cleanup(u.multi);
    child_stop(&u.engine);
    child_stop(&u.frontend);
    return rc;
}
