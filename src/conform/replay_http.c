/* replay_http.c - a golden's requests through a real frontend: it is started on free
 * ports with the model's directory, `vtwin play` behind it, and each record is asked
 * for over HTTP under its own id. */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "conform/replay.h"
#include "conform/sse.h"

enum {
    IN_FLIGHT = 16,
    START_S = 240,  /* the Python frontend imports for a minute on a small machine */
    SILENCE_S = 60, /* of one request */
    MAX_REFUSAL = 4096,
    MAX_ID = 400,
};

struct http_call { /* a connection, and the request that is on its way there */
    struct http_replay *in;
    struct replay_case *c; /* NULL: none */
    struct net_call net;
    struct vt_buf request;
    struct sse stream;
};

struct http_replay {
    struct replay *r;
    struct vt_proc frontend, engine;
    struct net_client client;
    struct http_call call[IN_FLIGHT];
    size_t n_calls;        /* on their way */
    size_t next;           /* case to send */
    struct vt_err failure; /* the first one of any request */
};

static int stop_if(struct http_replay *u, struct vt_err *err)
{
    if (conform_stopped(u->r->config))
        return vt_fail(err, VT_EIO, "stopped");
    if (!vt_proc_running(&u->frontend, err) || !vt_proc_running(&u->engine, err))
        return VT_EIO;
    return VT_OK;
}

/* ---- starting --------------------------------------------------------- */

/* A TCP port of the loopback interface that nobody uses at this moment. */
static int free_port(uint16_t *port, struct vt_err *err)
{
    struct sockaddr_in a = {.sin_family = AF_INET};
    socklen_t len = sizeof(a);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    bool good;

    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    good = fd >= 0 && bind(fd, (struct sockaddr *)&a, len) == 0 &&
           getsockname(fd, (struct sockaddr *)&a, &len) == 0;
    *port = ntohs(a.sin_port);
    if (fd >= 0)
        close(fd);
    return good ? VT_OK : vt_fail(err, VT_EIO, "no free port: %s", strerror(errno));
}

/* Flags that both `vllm-rs serve` and `vllm serve` have. */
static int start_frontend(struct http_replay *u, const char *model, uint16_t handshake,
                          uint16_t port, struct vt_err *err)
{
    struct vt_proc *p = &u->frontend;

    p->name = "frontend";
    p->environment = u->r->config->environment;
    vt_proc_arg_pair(p, u->r->config->frontend, "serve");
    vt_proc_arg(p, model);
    vt_proc_arg_pair(p, "--served-model-name", "conform");
    vt_proc_arg_u64(p, "--max-model-len", u->r->max_model_len);
    vt_proc_arg_u64(p, "--data-parallel-size", 1);
    vt_proc_arg_u64(p, "--data-parallel-size-local", 0);
    vt_proc_arg_pair(p, "--data-parallel-address", "127.0.0.1");
    vt_proc_arg_u64(p, "--data-parallel-rpc-port", handshake);
    vt_proc_arg_pair(p, "--host", "127.0.0.1");
    vt_proc_arg_u64(p, "--port", port);
    return vt_proc_start(p, err);
}

static int wait_until_healthy(struct http_replay *u, struct vt_err *err)
{
    const struct net_ask ask = {
        .path = "/health", .last = true, .timeout_ns = 5 * VT_SEC};
    vt_ns deadline = vt_wall_ns() + START_S * VT_SEC;

    for (;;) {
        struct vt_buf ignored = {0};
        struct vt_err why;
        int status = 0, rc = net_ask(&u->client, &ask, &status, &ignored, &why);

        vt_buf_free(&ignored);
        if (rc == VT_OK && status == 200)
            return VT_OK;
        rc = stop_if(u, err);
        if (rc != VT_OK)
            return rc;
        if (vt_wall_ns() > deadline)
            return vt_proc_within(
                &u->frontend, err,
                vt_fail(err, VT_EIO, "not healthy after %d s", START_S));
        vt_sleep_ns(50 * VT_MS);
    }
}

static int start_programs(struct http_replay *u, struct vt_err *err)
{
    const struct vt_golden_model *m = u->r->golden->model;
    /* Of lines that cannot be told apart only 0.25 is answered otherwise. */
    const char *told = strcmp(u->r->golden->line, "0.25") == 0 ? "0.25" : NULL;
    const char *model = u->r->config->model_dir ? u->r->config->model_dir
                        : m                     ? m->directory
                                                : NULL;
    char address[64], url[64];
    uint16_t port, handshake;
    int rc;

    if (!model)
        return vt_fail(err, VT_EINPUT, "no model directory: give --model-dir");
    if ((rc = free_port(&port, err)) || (rc = free_port(&handshake, err)))
        return rc;
    snprintf(address, sizeof(address), "tcp://127.0.0.1:%u", handshake);
    snprintf(url, sizeof(url), "http://127.0.0.1:%u", port);
    if ((rc = net_client_open(&u->client, url, NULL, err)) ||
        (rc = start_frontend(u, model, handshake, port, err)) ||
        (rc = replay_engine(u->r, &u->engine, address, REPLAY_FAST,
                            told ? vt_wire_line_find(told) : NULL, err)))
        return rc;
    return wait_until_healthy(u, err);
}

/* ---- requests --------------------------------------------------------- */

static void fail_call(struct http_call *call, const char *what)
{
    if (call->in->failure.code == VT_OK)
        vt_fail(&call->in->failure, VT_EIO, "request '%s': %s", call->c->rec->id, what);
}

static int on_chunk(void *user, const struct sse_chunk *s, struct vt_err *err)
{
    struct http_call *call = user;

    return replay_chunk(call->in->r, call->c, s->token, s->n_tokens, s->finish,
                        vt_wall_ns(), err);
}

static bool on_bytes(void *user, const char *bytes, size_t len)
{
    struct http_call *call = user;
    struct vt_err err;

    if (sse_feed(&call->stream, bytes, len, &err) == VT_OK)
        return true;
    fail_call(call, err.msg);
    return false;
}

/* A refusal is JSON and comes whole; what was asked for is a stream. */
static void on_end(struct net_call *net, enum net_ending e, const char *why)
{
    struct http_call *call = net->user;
    const struct vt_buf *refusal = &net->response.body;
    char text[300];

    if (e != NET_WHOLE) {
        fail_call(call, why ? why : "no whole response");
    } else if (net->response.status != 200) {
        snprintf(text, sizeof(text), "the frontend answered %d: %.200s",
                 net->response.status, refusal->len > 0 ? refusal->data : "");
        fail_call(call, text);
    } else if (!*call->c->finish) {
        fail_call(call, "the stream ended without a finish_reason");
    }
    sse_end(&call->stream);
    call->c = NULL;
    call->in->n_calls--;
}

static void put_body(struct vt_buf *b, const struct replay *r,
                     const struct replay_case *c)
{
    struct vt_jw w;

    vt_jw_init(&w, b, NULL);
    vt_jw_map(&w, NULL);
    vt_jw_str(&w, "model", "conform");
    vt_jw_u32_list(&w, "prompt", r->prompt, c->rec->prompt_tokens);
    vt_jw_u64(&w, "max_tokens", c->max_tokens);
    vt_jw_bool(&w, "stream", true);
    vt_jw_bool(&w, "ignore_eos", true);
    vt_jw_u64(&w, "temperature", 0);
    vt_jw_bool(&w, "return_token_ids", true);
    vt_jw_end(&w);
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

static int send_case(struct http_call *call, struct replay_case *c, struct vt_err *err)
{
    const struct net_header header[] = {{"Content-Type", "application/json"},
                                        {"X-Request-Id", c->rec->id}};
    struct vt_buf body = {0};
    struct net_ask ask = {
        .path = "/v1/completions", .header = header, .n_headers = VT_COUNT(header)};

    put_body(&body, call->in->r, c);
    ask.body = body.data;
    ask.body_len = body.len;
    vt_buf_clear(&call->request);
    net_ask_write(&call->in->client, &ask, &call->request);
    if (body.failed || call->request.failed) {
        vt_buf_free(&body);
        return vt_nomem(err);
    }
    vt_buf_free(&body);
    call->c = c;
    call->stream = (struct sse){.on_chunk = on_chunk, .user = call};
    call->in->n_calls++;
    c->sent_ns = vt_wall_ns();
    net_call_begin(&call->net, call->request.data, call->request.len);
    return VT_OK;
}

static int send_some(struct http_replay *u, struct vt_err *err)
{
    for (size_t i = 0; i < IN_FLIGHT && u->next < u->r->n; i++) {
        int rc =
            u->call[i].c ? VT_OK : send_case(&u->call[i], &u->r->c[u->next++], err);

        if (rc != VT_OK)
            return rc;
    }
    return VT_OK;
}

/* The first request that fails ends the run. */
static int send_cases(struct http_replay *u, struct vt_err *err)
{
    int rc = send_some(u, err);
    vt_ns now;

    while (rc == VT_OK && u->n_calls > 0) {
        (void)net_client_wait(&u->client, 100 * VT_MS);
        now = vt_wall_ns();
        for (size_t i = 0; i < IN_FLIGHT; i++) {
            struct http_call *call = &u->call[i];
            vt_ns heard = call->net.read_at;

            if (!call->c)
                continue;
            heard = heard > call->c->sent_ns ? heard : call->c->sent_ns;
            if (now - heard > SILENCE_S * VT_SEC)
                fail_call(call, "nothing has come for too long");
        }
        if (u->failure.code != VT_OK) {
            *err = u->failure;
            return VT_EIO;
        }
        if ((rc = stop_if(u, err)) == VT_OK)
            rc = send_some(u, err);
    }
    return rc;
}

int replay_http(struct replay *r, struct vt_err *err)
{
    struct http_replay *u = calloc(1, sizeof(*u));
    int rc = u ? check_ids(r, err) : vt_nomem(err);

    if (rc != VT_OK)
        goto out;
    u->r = r;
    for (size_t i = 0; i < IN_FLIGHT; i++) {
        struct http_call *call = &u->call[i];

        call->in = u;
        net_call_init(&call->net, &u->client);
        call->net.user = call->net.response.sse.user = call;
        call->net.ended = on_end;
        call->net.response.max_body = MAX_REFUSAL;
        call->net.response.sink = on_bytes;
    }
    rc = start_programs(u, err);
    if (rc == VT_OK)
        rc = send_cases(u, err);
    for (size_t i = 0; i < IN_FLIGHT; i++) {
        net_call_free(&u->call[i].net);
        sse_end(&u->call[i].stream);
        vt_buf_free(&u->call[i].request);
    }
    net_client_close(&u->client);
    vt_proc_stop(&u->engine);
    vt_proc_stop(&u->frontend);
out:
    free(u);
    return rc;
}
