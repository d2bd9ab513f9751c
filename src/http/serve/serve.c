/* serve.c - vt_serve(): what is opened, the loop, and its end. */
#include <stdlib.h>
#include <string.h>

#include "http/serve/serve.h"

enum {
    MAX_UNSENT = 4 << 20, /* of a peer that does not read */
    MAX_HEADER = 64 << 10,
    LEAST_VALUES = 2 << 20, /* of JSON in a body: 64 MB of tree */
    KEEP_TEXT = 1 << 20,    /* bytes of scratch */
};
#define TICK         (100 * VT_MS) /* how often a stop is asked for */
#define READ_TIMEOUT (30 * VT_SEC) /* for a request to come in whole */

void serve_log(const struct server *s, const char *fmt, ...)
{
    char line[512];
    va_list args;

    if (!s->c->log)
        return;
    va_start(args, fmt);
    (void)vsnprintf(line, sizeof(line), fmt, args);
    va_end(args);
    s->c->log(s->c->user, line);
}

/* ---- opening --------------------------------------------------------- */

static void open_api(struct server *s)
{
    const struct vt_serve_config *c = s->c;
    uint64_t h = vt_hash_bytes(c->name[0], strlen(c->name[0]), c->engine.max_num_seqs);

    /* As vLLM's: the version and eight digits of what it was configured with. */
    h = vt_hash2(h, (uint64_t)c->engine.max_num_batched_tokens << 32 |
                        c->engine.num_gpu_blocks);
    (void)snprintf(s->fingerprint, sizeof(s->fingerprint), "vllm-%.40s-%08x",
                   c->vllm_version, (unsigned)(h & 0xffffffff));
    s->api = (struct api_context){
        .tokenizer = c->tokenizer,
        /* Bodies changed between 0.26 and 0.32. */
        .line = c->engine.vllm >= 30 ? API_LINE_032 : API_LINE_026,
        .version = c->vllm_version,
        .fingerprint = s->fingerprint,
        .max_model_len = c->engine.max_model_len,
        .max_choices = c->max_choices,
        .max_values = c->engine.max_model_len > LEAST_VALUES / 4
                          ? 4 * c->engine.max_model_len
                          : LEAST_VALUES,
        .force_usage = c->force_usage,
        .prompt_details = c->prompt_details,
        .max_logprobs = 20,
        .embedding_dimensions = c->embedding_dimensions,
        .find = models_find,
        .admit = gate_admits,
        .gate = &s->gate,
        .model = c->name[0],
        .user = &s->models,
    };
}

static int open_engines(struct server *s, struct vt_err *err)
{
    const struct vt_serve_config *c = s->c;
    struct vt_driver_config d = {
        .engine = c->engine,
        .model = c->model,
        .n_engines = c->n_engines,
        .seed = c->seed,
        .axis = s->axis,
        .parcel_bytes = sizeof(struct parcel),
        .ops = &serve_driver_ops,
        .user = s,
    };
    int rc;

    if ((rc = vt_blocks_check(&c->engine, err)))
        return rc;
    d.engine.kv_events = c->kv.on;
    s->rank = calloc(c->n_engines, sizeof(*s->rank));
    if (!s->rank)
        return vt_nomem(err);
    rc = vt_driver_open(&s->driver, &d, err);
    for (uint32_t i = 0; i < c->n_engines && rc == VT_OK; i++)
        s->rank[i].core = vt_driver_engine(s->driver, i);
    if (rc == VT_OK && c->engine.remote.on)
        rc = serve_peers_open(s, err);
    return rc == VT_OK && c->kv.on ? serve_kv_open(s, err) : rc;
}

static int open_telemetry(struct server *s, struct vt_err *err)
{
    const struct vt_serve_config *c = s->c;
    struct export_config x = {
        .endpoint = c->otlp.endpoint,
        .protocol = c->otlp.protocol,
        .model = c->name[0],
        .headers = c->otlp.headers,
        .journey = c->otlp.journey,
        .steps = c->otlp.steps,
        .journey_rate = c->otlp.journey_rate,
        .engine = &c->engine,
        .time_scale = c->time_scale,
        .step_rate = c->otlp.step_rate,
        .rich_rate = c->otlp.rich_rate,
    };
    int rc = metrics_open(&s->metrics, c, s->api.line, err);

    if (rc == VT_OK && c->otlp.endpoint)
        rc = export_open(&s->export, &x, err);
    return rc;
}

static int open_net(struct server *s, struct vt_err *err)
{
    const struct vt_serve_config *c = s->c;
    struct net_config n = {
        .host = c->host,
        .port = c->port,
        .certfile = c->certfile,
        .keyfile = c->keyfile,
        .max_body_bytes = c->max_body_bytes,
        .max_header_bytes = MAX_HEADER,
        .max_unsent_bytes = MAX_UNSENT,
        .max_connections = c->max_connections,
        .request_ids = c->request_id_headers,
        .header_timeout_ns = READ_TIMEOUT,
        .body_timeout_ns = READ_TIMEOUT,
        .idle_timeout_ns = c->idle_timeout_ns,
    };
    struct net_handler h = {.user = s,
                            .request = serve_request,
                            .gone = serve_gone,
                            .refused = serve_refused};
    int rc = net_open(&s->net, &n, &h, err);

    if (rc == VT_OK)
        rc = net_watch(s->net, s->worker.from.fd, serve_worker_done, s, err);
    if (rc == VT_OK && s->peers)
        rc = net_watch(s->net, s->told.fd, serve_peers_heard, s, err);
    return rc;
}

static void close_all(struct server *s)
{
    if (s->metrics)
        serve_end_all(s, NULL);
    while (s->waits) {
        struct exchange *x = s->waits;

        s->waits = x->next;
        exchange_free(x);
    }
    worker_close(&s->worker);
    net_close(s->net);
    export_close(s->export, 2000);
    metrics_close(s->metrics);
    reply_source_close(s->replies);
    serve_peers_close(s);
    serve_kv_close(s);
    free(s->rank);
    exchange_pool_free(s);
    vt_driver_close(s->driver);
    models_close(&s->models);
    vt_buf_free(&s->text);
    vt_buf_free(&s->tokens);
}

/* ---- the loop -------------------------------------------------------- */

static vt_ns sooner(vt_ns a, vt_ns b)
{
    return a < b ? a : b;
}

static int run_loop(struct server *s, struct vt_err *err)
{
    struct vt_driver *d = s->driver;
    double patience_s = s->c->shutdown_timeout_s;
    struct api_error e;
    vt_ns ask = 0;
    int rc = VT_OK;

    vt_wait_sharply();
    while (rc == VT_OK) {
        vt_ns wall = vt_wall_ns(), until;

        rc = vt_driver_pass(d, vt_axis_now(&s->axis), err);
        serve_turns(s);
        if (s->waits)
            serve_drained(s);
        net_flush(s->net);
        if (wall >= ask) {
            ask = wall + TICK;
            if (!vt_driver_draining(d) && s->c->stopped && s->c->stopped(s->c->user)) {
                uint32_t n = vt_driver_requests(d);

                vt_driver_drain(d, patience_s);
                net_drain(s->net);
                if (n > 0)
                    serve_log(s, "waiting for %u requests, %.0f s at most", n,
                              patience_s);
            }
            serve_kv_replay(s);
        }
        if (rc == VT_OK && vt_driver_over(d, s->n_exchanges)) {
            api_error_set(&e, 503, "ServiceUnavailableError", NULL,
                          "The server is shutting down.");
            serve_end_all(s, &e);
            serve_waits_end(s, &e);
            net_flush(s->net);
            break;
        }
        if (s->text.cap > KEEP_TEXT)
            vt_buf_free(&s->text);
        until = vt_axis_wall(
            &s->axis, sooner(vt_driver_engines_due(d), vt_driver_parcels_due(d)));
        if (s->turn) /* who else has something to do goes first */
            until = wall;
        if (rc == VT_OK)
            rc = net_wait(s->net, sooner(until, ask), until <= ask, err);
    }
    return rc;
}

/* Gives peers a moment to take what has been written for them. */
static void flush_peers(struct server *s)
{
    vt_ns until = vt_wall_ns() + 500 * VT_MS;

    net_drain(s->net);
    while (net_stats(s->net).open > 0 && vt_wall_ns() < until)
        if (net_wait(s->net, vt_wall_ns() + 10 * VT_MS, false, NULL) != VT_OK)
            break;
}

static void tell_ready(struct server *s)
{
    char url[128];
    bool v6 = strchr(s->c->host, ':');

    (void)snprintf(url, sizeof(url), "http%s://%s%.80s%s:%u", s->c->certfile ? "s" : "",
                   v6 ? "[" : "", s->c->host, v6 ? "]" : "", net_port(s->net));
    if (s->c->ready)
        s->c->ready(s->c->user, url);
}

int vt_serve(const struct vt_serve_config *c, struct vt_serve_summary *out,
             struct vt_err *err)
{
    struct server *s = calloc(1, sizeof(*s));
    const struct vt_late *late;
    int rc;

    *out = (struct vt_serve_summary){0};
    if (!s)
        return vt_nomem(err);
    s->c = c;
    s->worker.to.fd = s->worker.from.fd = s->told.fd = -1;
    s->axis = (struct vt_axis){.zero_ns = vt_wall_ns(), .scale = c->time_scale};
    s->zero_unix_s = vt_unix_s();
    if ((rc = vt_engine_config_check(&c->engine, err)) != VT_OK ||
        (rc = models_open(&s->models, c, err)) != VT_OK ||
        (rc = faults_open(&s->faults, c, err)) != VT_OK)
        goto out;
    gate_open(&s->gate, s->c);
    open_api(s);
    if ((rc = open_engines(s, err)) != VT_OK ||
        (rc = reply_source_open(&s->replies, c, err)) != VT_OK ||
        (rc = open_telemetry(s, err)) != VT_OK ||
        (rc = worker_open(&s->worker, err)) != VT_OK ||
        (rc = open_net(s, err)) != VT_OK)
        goto out;
    tell_ready(s);
    rc = run_loop(s, err);
    flush_peers(s);
    late = vt_driver_late(s->driver);
    *out = s->sums;
    out->connections = net_stats(s->net).connections;
    out->late_p50_us = (double)vt_late_at(late, 0.5) / 1e3;
    out->late_p99_us = (double)vt_late_at(late, 0.99) / 1e3;
    out->late_max_us = (double)late->max / 1e3;
    out->extent = vt_driver_extent(s->driver);
out:
    close_all(s);
    free(s);
    return rc;
}
