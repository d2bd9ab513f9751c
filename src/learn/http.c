/* http.c - a server over HTTP as the place where loads are measured. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "learn/told.h"
#include "live/live.h"

#define ASK_TIMEOUT (30 * VT_SEC)
#define SETTLE      (2 * VT_SEC) /* for gauges to say that our requests are gone */
#define LOOK        (20 * VT_MS)

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

static int ask_metrics(struct vt_learn_http *h, struct vt_meta *m, struct vt_err *err)
{
    struct vt_buf reply = {0};
    int status = 0, rc = call_server(h, "/metrics", NULL, &status, &reply, err);

    if (rc == VT_OK && status != 200)
        rc = vt_fail(err, VT_ECHECK, "/metrics: status %d: this is not vLLM", status);
    if (rc == VT_OK)
        rc = told_cache(m, reply.data ? reply.data : "", reply.len, err);
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

static int http_ask(void *user, struct vt_arena *arena, struct vt_meta *m,
                    struct vt_err *err)
{
    struct vt_learn_http *h = user;
    struct vt_load_model found;
    int rc = vt_load_find_model(&h->config, &h->arena, &found, err);

    if (rc != VT_OK)
        return rc;
    if (!h->config.model)
        h->config.model = found.id;
    m->max_model_len = found.max_model_len;
    if ((rc = vt_arena_text(arena, found.root, &m->model, err)) ||
        (rc = ask_version(h, arena, m, err)) || (rc = ask_metrics(h, m, err)))
        return rc;
    ask_config(h, m);
    return find_ids(h, err);
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

/* While the generator waits. */
static void watch(void *user, const struct vt_load_progress *p)
{
    struct vt_learn_http *h = user;
    struct told_counters t;

    h->failed = p->failed;
    if (!h->watched)
        return;
    look(h, &t);
    if (t.running > h->watched->running)
        h->watched->running = t.running;
    if (t.waiting > h->watched->waiting)
        h->watched->waiting = t.waiting;
}

/* Gauges are told with the next step: they get a while to reach 0. */
static void look_after(struct vt_learn_http *h, const struct told_counters *before,
                       size_t sent, struct vt_learn_done *done)
{
    vt_ns until = vt_wall_ns() + SETTLE;
    struct told_counters t;

    for (;;) {
        look(h, &t);
        if (!t.found || (t.running + t.waiting == 0 && t.ended >= before->ended + sent))
            break;
        if (vt_wall_ns() >= until)
            break;
        vt_sleep_ns(LOOK);
    }
    done->told = t.found && before->found;
    if (!done->told)
        return;
    done->others_now = t.running + t.waiting;
    done->others = (int64_t)(t.ended - before->ended) - (int64_t)sent;
    done->preemptions = t.preemptions - before->preemptions;
    done->drafts = t.drafts;
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
           (h->config.stopped && h->config.stopped(h->config.user));
}

static int http_measure(void *user, const struct vt_learn_ask *ask,
                        struct vt_learn_done *done, struct vt_err *err)
{
    struct vt_learn_http *h = user;
    const struct vt_workload *load = ask->load;
    bool closed = load->arrivals == VT_ARRIVALS_CLOSED;
    /* A seed for each load: nothing of one may be cached for the next. */
    struct vt_load_data data = {.token_ids = true,
                                .seed = vt_hash2(h->seed, ++h->loads),
                                .id_range = {h->ids_below / 8, h->ids_below}};
    struct vt_load_origin origin = {.model = ask->engine->model,
                                    .name = ask->engine->workload_name,
                                    .workload = load,
                                    .engine = ask->engine,
                                    .max_concurrency = load->concurrency,
                                    .rate = closed ? INFINITY : 1};
    struct vt_load_config c = h->config;
    struct vt_load_records r = {0};
    struct vt_load_plan plan = {0};
    struct told_counters before;
    size_t left_out;
    int rc;

    if ((rc = vt_load_plan_of(&plan, &data, load, err)) != VT_OK)
        return rc;
    origin.plan = &plan;
    c.max_concurrency = load->concurrency;
    c.progress = watch;
    c.stopped = is_stopped;
    c.user = h;
    h->watched = ask->watch ? done : NULL;
    h->failed = 0;
    look(h, &before);
    h->until = vt_wall_ns() + (vt_ns)(1e9 * ask->most_s);
    if ((rc = vt_load_run(&r, &plan, NULL, &c, err)))
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
