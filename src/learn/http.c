/* http.c - a server over HTTP as the place where loads are measured. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "learn/told.h"
#include "live/live.h"

#define ASK_TIMEOUT (30 * VT_SEC)
#define SETTLE      (2 * VT_SEC) /* for gauges to say that our requests are gone */
#define LOOK        (20 * VT_MS)
/* A stream that fills the KV cache: long enough for blocks of 256 tokens. */
#define POOL_TIME (60 * VT_SEC)
#define POOL_LOOK (5 * VT_MS) /* shorter than any engine takes for a block */
enum { POOL_PROMPT = 500, POOL_OUTPUT = 1100, POOL_RISES = 8 };

/* ---- asking ------------------------------------------------------------- */

/* *reply is the caller's to free. */
static int call_server(struct vt_learn_http *h, const char *path, const char *body,
                       int *status, struct vt_buf *reply, struct vt_err *err)
{
    const struct vt_load_call call = {.path = path,
                                      .body = body,
                                      .body_len = body ? strlen(body) : 0,
                                      .timeout_ns = ASK_TIMEOUT};

    return vt_load_call(&h->config, &call, status, reply, err);
}

static int ask_version(struct vt_learn_http *h, struct vt_arena *arena,
                       struct vt_meta *m, struct vt_err *err)
{
    const struct vt_node *root = NULL;
    struct vt_buf reply = {0};
    int status = 0, rc = call_server(h, "/version", NULL, &status, &reply, err);

    if (rc == VT_OK &&
        (status != 200 || reply.len == 0 ||
         vt_json_parse(arena, reply.data, reply.len, 1, &root, err) ||
         vt_get_str(root, "version", VT_REQUIRED, &m->vllm_version, err)))
        rc = vt_fail(err, VT_ECHECK, "/version tells no version: this is not vLLM");
    vt_buf_free(&reply);
    return rc;
}

/* *there: it tells how large the KV cache is. */
static int ask_metrics(struct vt_learn_http *h, struct vt_meta *m, bool *there,
                       struct vt_err *err)
{
    struct vt_buf reply = {0};
    int status = 0, rc = call_server(h, "/metrics", NULL, &status, &reply, err);

    if (rc == VT_OK && status != 200)
        rc = vt_fail(err, VT_ECHECK, "/metrics: status %d: this is not vLLM", status);
    if (rc == VT_OK)
        rc = told_cache(m, there, reply.data ? reply.data : "", reply.len, err);
    vt_buf_free(&reply);
    return rc;
}

/* Only servers with VLLM_SERVER_DEV_MODE have it. */
static void ask_config(struct vt_learn_http *h, struct vt_meta *m)
{
    const struct vt_node *root = NULL;
    struct vt_arena arena = {0};
    struct vt_buf reply = {0};
    struct vt_err err;
    int status = 0;

    if (call_server(h, "/server_info?config_format=json", NULL, &status, &reply,
                    &err) == VT_OK &&
        status == 200 && reply.len > 0 &&
        vt_json_parse(&arena, reply.data, reply.len, 1, &root, &err) == VT_OK)
        told_config(m, root);
    vt_buf_free(&reply);
    vt_arena_free(&arena);
}

/* The largest of some ranges of ids that the model has. Lengths are exact only if the
 * server takes ids. */
static int find_ids(struct vt_learn_http *h, struct vt_err *err)
{
    static const uint32_t below[] = {8000, 2000, 400, 100};
    int status = 0, rc = VT_OK;

    for (size_t i = 0; i < VT_COUNT(below) && rc == VT_OK && status != 200; i++) {
        struct vt_buf body = {0}, reply = {0};
        struct vt_jw w;

        vt_jw_init(&w, &body, &vt_json_tight);
        vt_jw_map(&w, NULL);
        vt_jw_str(&w, "model", h->config.model);
        vt_jw_row_list(&w, "prompt");
        vt_jw_u64(&w, NULL, below[i] - 1);
        vt_jw_end(&w);
        vt_jw_u64(&w, "max_tokens", 1);
        vt_jw_end(&w);
        rc = body.failed
                 ? vt_nomem(err)
                 : call_server(h, "/v1/completions", body.data, &status, &reply, err);
        h->ids_below = below[i];
        if (rc == VT_OK && status != 200 && (status != 400 || i + 1 == VT_COUNT(below)))
            rc = vt_fail(err, status == 400 ? VT_ECHECK : VT_EIO,
                         "/v1/completions with token ids: status %d: %.*s", status,
                         (int)(reply.len < 120 ? reply.len : 120),
                         reply.data ? reply.data : "");
        vt_buf_free(&body);
        vt_buf_free(&reply);
    }
    return rc;
}

/* ---- counters beside a load --------------------------------------------- */

static void look(struct vt_learn_http *h, struct told_counters *t)
{
    struct vt_buf reply = {0};
    struct vt_err err;
    int status = 0;

    *t = (struct told_counters){0};
    if (call_server(h, "/metrics", NULL, &status, &reply, &err) == VT_OK &&
        status == 200)
        told_counters(t, reply.data ? reply.data : "", reply.len);
    vt_buf_free(&reply);
}

struct vt_learn_looks { /* at a KV cache that fills */
    struct told_usage look[512];
    size_t n, rises;
    uint32_t prompt; /* tokens that are there from the first */
};

static void keep_look(struct vt_learn_looks *l, const struct told_counters *t,
                      uint64_t tokens)
{
    if (l->n >= VT_COUNT(l->look) || t->running != 1 || !(t->kv_usage > 0))
        return;
    l->rises += l->n == 0 || t->kv_usage > l->look[l->n - 1].usage;
    l->look[l->n++] =
        (struct told_usage){.usage = t->kv_usage, .tokens = l->prompt + tokens};
}

/* While the generator waits. */
static void watch(void *user, const struct vt_load_progress *p)
{
    struct vt_learn_http *h = user;
    struct told_counters t;

    h->failed = p->failed;
    if (!h->watched)
        return;
    look(h, &t);
    if (h->looks)
        keep_look(h->looks, &t, p->tokens);
    if (t.running > h->watched->running)
        h->watched->running = t.running;
    if (t.waiting > h->watched->waiting)
        h->watched->waiting = t.waiting;
}

/* The counters when no request is left and so many have ended, or after a while:
 * gauges are told with the next step. */
static struct told_counters settle(struct vt_learn_http *h, uint64_t ended)
{
    vt_ns until = vt_wall_ns() + SETTLE;
    struct told_counters t;

    for (;;) {
        look(h, &t);
        if (!t.found || (t.running + t.waiting == 0 && t.ended >= ended) ||
            vt_wall_ns() >= until)
            return t;
        vt_sleep_ns(LOOK);
    }
}

static void look_after(struct vt_learn_http *h, const struct told_counters *before,
                       size_t sent, struct vt_learn_done *done)
{
    struct told_counters t = settle(h, before->ended + sent);

    done->told = t.found && before->found;
    if (!done->told)
        return;
    done->others_now = t.running + t.waiting;
    done->others = (int64_t)(t.ended - before->ended) - (int64_t)sent;
    done->preemptions = t.preemptions - before->preemptions;
    done->drafts = t.drafts > before->drafts;
}

/* ---- measuring ---------------------------------------------------------- */

static void note_failures(const struct vt_load_records *r, struct vt_learn_done *done)
{
    for (size_t i = 0; i < r->n; i++) {
        const struct vt_load_record *q = &r->record[i];

        if (q->ok || q->failure == VT_LOAD_STOPPED)
            continue;
        if (done->failed++ == 0)
            (void)snprintf(done->error, sizeof(done->error), "%s%s%.150s",
                           vt_load_failure_name(q->failure), q->detail ? ": " : "",
                           q->detail ? q->detail : "");
    }
}

static bool is_stopped(void *user)
{
    const struct vt_learn_http *h = user;

    return vt_wall_ns() >= h->until || h->failed > 0 ||
           (h->looks && h->looks->rises >= POOL_RISES) ||
           (h->config.stopped && h->config.stopped(h->config.user));
}

/* A seed for each load: nothing of one may be cached for the next. */
static struct vt_load_data new_data(struct vt_learn_http *h)
{
    return (struct vt_load_data){.token_ids = true,
                                 .seed = vt_hash2(h->seed, ++h->loads),
                                 .id_range = {h->ids_below / 8, h->ids_below}};
}

/* *r is the caller's to free whatever happens. */
static int send_load(struct vt_learn_http *h, const struct vt_load_plan *plan,
                     uint32_t concurrency, vt_ns most, struct vt_load_records *r,
                     struct vt_err *err)
{
    struct vt_load_config c = h->config;

    c.max_concurrency = concurrency;
    c.tick_ns = h->looks ? POOL_LOOK : 0;
    c.progress = watch;
    c.stopped = is_stopped;
    c.user = h;
    h->failed = 0;
    h->until = vt_wall_ns() + most;
    return vt_load_run(r, plan, NULL, &c, err);
}

static int http_measure(void *user, const struct vt_learn_ask *ask,
                        struct vt_learn_done *done, struct vt_err *err)
{
    struct vt_learn_http *h = user;
    const struct vt_workload *load = ask->load;
    bool closed = load->arrivals == VT_ARRIVALS_CLOSED;
    struct vt_load_data data = new_data(h);
    struct vt_load_origin origin = {.model = ask->engine->model,
                                    .name = ask->engine->workload_name,
                                    .workload = load,
                                    .engine = ask->engine,
                                    .max_concurrency = load->concurrency,
                                    .rate = closed ? INFINITY : 1};
    struct vt_load_records r = {0};
    struct vt_load_plan plan = {0};
    struct told_counters before;
    size_t left_out;
    int rc;

    if ((rc = vt_load_plan_of(&plan, &data, load, err)) != VT_OK)
        return rc;
    origin.plan = &plan;
    h->watched = ask->watch ? done : NULL;
    look(h, &before);
    if ((rc = send_load(h, &plan, load->concurrency, (vt_ns)(1e9 * ask->most_s), &r,
                        err)))
        goto out;
    done->sent = r.n;
    note_failures(&r, done);
    done->cut = r.interrupted && vt_wall_ns() >= h->until;
    if (r.interrupted && !done->cut && done->failed == 0)
        rc = vt_fail(err, VT_EIO, "stopped");
    if (r.interrupted)
        goto out;
    look_after(h, &before, r.n - done->failed, done);
    rc = vt_load_write_trace(&r, &origin, ask->path, &left_out, err);
out:
    vt_load_records_free(&r);
    vt_load_plan_free(&plan);
    return rc;
}

/* ---- a KV cache of which the server tells nothing ------------------------ */

static int plan_stream(struct vt_load_plan *plan, const struct vt_load_data *data,
                       uint32_t prompt, uint32_t output, struct vt_err *err)
{
    struct vt_workload stream = {0};
    struct vt_buf b = {0};
    int rc;

    vt_buf_printf(
        &b,
        "name: pool\nrequests: 1\narrival: {process: closed, concurrency: 1}\n"
        "prompt: %u\noutput: %u\n",
        (unsigned)prompt, (unsigned)output);
    rc = b.failed ? vt_nomem(err)
                  : vt_workload_generate_text(&stream, "pool", b.data, b.len, 1, err);
    if (rc == VT_OK)
        rc = vt_load_plan_of(plan, data, &stream, err);
    vt_workload_free(&stream);
    vt_buf_free(&b);
    return rc;
}

/* vLLM's Rust frontend tells how full the KV cache is and not how large: one stream
 * alone fills it block by block. */
static int find_pool(struct vt_learn_http *h, struct vt_meta *m, struct vt_err *err)
{
    struct vt_load_data data = new_data(h);
    uint32_t room = m->max_model_len > 0 ? m->max_model_len : 2048;
    struct vt_learn_looks looks = {.prompt =
                                       room / 4 < POOL_PROMPT ? room / 4 : POOL_PROMPT};
    struct vt_learn_done seen = {0};
    struct vt_load_records r = {0};
    struct vt_load_plan plan = {0};
    struct told_counters t;
    int rc = plan_stream(&plan, &data, looks.prompt,
                         room / 2 < POOL_OUTPUT ? room / 2 : POOL_OUTPUT, err);

    if (rc == VT_OK) {
        h->watched = &seen;
        h->looks = &looks;
        rc = send_load(h, &plan, 1, POOL_TIME, &r, err);
        h->watched = NULL;
        h->looks = NULL;
        note_failures(&r, &seen);
    }
    if (rc == VT_OK && h->config.stopped && h->config.stopped(h->config.user))
        rc = vt_fail(err, VT_EIO, "stopped");
    if (rc == VT_OK && seen.failed > 0)
        rc = vt_fail(err, VT_EIO, "a stream to fill the KV cache failed: %s",
                     seen.error);
    if (rc == VT_OK) {
        t = settle(h, 0);
        m->enable_prefix_caching = t.prefix_queries > 0;
        if (!told_pool(m, looks.look, looks.n))
            rc = vt_fail(err, VT_ECHECK,
                         "/metrics has no vllm:cache_config_info, and "
                         "vllm:kv_cache_usage_perc does not tell how large the KV "
                         "cache is");
    }
    vt_load_records_free(&r);
    vt_load_plan_free(&plan);
    return rc;
}

static int http_ask(void *user, struct vt_arena *arena, struct vt_meta *m,
                    struct vt_err *err)
{
    struct vt_learn_http *h = user;
    struct vt_load_model found;
    bool there;
    int rc = vt_load_find_model(&h->config, &h->arena, &found, err);

    if (rc != VT_OK)
        return rc;
    if (!h->config.model)
        h->config.model = found.id;
    m->max_model_len = found.max_model_len;
    if ((rc = vt_arena_text(arena, found.root, &m->model, err)) ||
        (rc = ask_version(h, arena, m, err)) || (rc = ask_metrics(h, m, &there, err)))
        return rc;
    ask_config(h, m);
    rc = find_ids(h, err);
    return rc == VT_OK && !there ? find_pool(h, m, err) : rc;
}

static double http_seconds(void *user)
{
    (void)user;
    return (double)vt_wall_ns() / 1e9;
}

struct vt_learn_site vt_learn_http(struct vt_learn_http *h)
{
    return (struct vt_learn_site){h, http_ask, http_measure, http_seconds};
}

void vt_learn_http_close(struct vt_learn_http *h)
{
    vt_arena_free(&h->arena);
}
