/* admin.c - routes that look at what runs, or change it: load, metrics, caches,
 * sleep, pause, adapters. */
#include <string.h>
#include <strings.h>

#include "http/serve/serve.h"

typedef void answer_fn(struct exchange *x, const struct net_request *r);

static void answer_json(struct exchange *x, const char *json)
{
    serve_answer(x, 200, "application/json", json, strlen(json));
}

/* ---- looking --------------------------------------------------------- */

/* Requests that the server works on, this one not. */
static void get_load(struct exchange *x, const struct net_request *r)
{
    char json[64];

    (void)r;
    (void)snprintf(json, sizeof(json), "{\"server_load\":%u}",
                   vt_driver_requests(x->s->driver));
    answer_json(x, json);
}

static void add_name(struct vt_buf *b, const char *name)
{
    size_t len = strlen(name);
    const char *at = b->data;

    /* Each name once. Lists are as short as max_loras. */
    for (; at != NULL && (at = strstr(at, name)) != NULL; at += len)
        if ((at == b->data || at[-1] == ',') && (at[len] == ',' || at[len] == '\0'))
            return;
    if (b->len > 0)
        vt_buf_char(b, ',');
    vt_buf_str(b, name);
}

static void tell_loras(struct server *s)
{
    struct vt_buf running = {0}, waiting = {0};
    const struct choice *c;

    for (size_t at = 0; (c = vt_driver_each(s->driver, &at)) != NULL;)
        if (c->x->r.lora)
            add_name(c->scheduled >= 0 ? &running : &waiting, c->x->r.model);
    metrics_loras(s->metrics, running.len > 0 ? running.data : "",
                  waiting.len > 0 ? waiting.data : "", vt_unix_s());
    vt_buf_free(&running);
    vt_buf_free(&waiting);
}

static void get_metrics(struct exchange *x, const struct net_request *r)
{
    struct server *s = x->s;

    (void)r;
    for (uint32_t i = 0; i < s->c->n_engines; i++) {
        struct metrics_load load = serve_load(&s->rank[i]);

        metrics_load(s->metrics, i, &load);
    }
    if (s->c->max_loras > 0)
        tell_loras(s);
    vt_buf_clear(&s->text);
    metrics_write(s->metrics, &s->text, vt_unix_s());
    serve_answer(x, 200, metrics_content_type, s->text.data, s->text.len);
}

static void get_is_sleeping(struct exchange *x, const struct net_request *r)
{
    (void)r;
    answer_json(x, x->s->rank[0].sleep_level > 0 ? "{\"is_sleeping\":true}"
                                                 : "{\"is_sleeping\":false}");
}

static void get_is_paused(struct exchange *x, const struct net_request *r)
{
    (void)r;
    answer_json(x, x->s->rank[0].paused ? "{\"is_paused\":true}"
                                        : "{\"is_paused\":false}");
}

static void get_world_size(struct exchange *x, const struct net_request *r)
{
    char json[64];

    (void)r;
    (void)snprintf(json, sizeof(json), "{\"world_size\":%u}", x->s->c->n_engines);
    answer_json(x, json);
}

/* ---- caches ---------------------------------------------------------- */

static bool query_bool(const struct net_request *r, const char *key)
{
    char value[16];

    return net_query_value(r->query, key, value, sizeof(value)) &&
           (strcasecmp(value, "true") == 0 || strcmp(value, "1") == 0);
}

static bool reset_cache(struct server *s, bool preempt)
{
    vt_ns now = vt_axis_now(&s->axis);
    bool ok = true;

    for (uint32_t i = 0; i < s->c->n_engines; i++) {
        const uint64_t *tags;
        uint32_t n;

        if (vt_engine_clear_cache(s->rank[i].core, now, preempt, &tags, &n) == VT_OK)
            metrics_cache_reset(s->metrics, i);
        else
            ok = false;
        if (s->c->kv_events && serve_kv(s, &s->rank[i], NULL) != VT_OK)
            ok = false; /* an idle engine has no step that would tell */
    }
    return ok;
}

static void post_reset_prefix_cache(struct exchange *x, const struct net_request *r)
{
    bool ok = reset_cache(x->s, query_bool(r, "reset_running_requests"));

    answer_json(x, ok ? "{\"success\":true}" : "{\"success\":false}");
}

/* There is nothing in them. */
static void post_reset_other(struct exchange *x, const struct net_request *r)
{
    (void)r;
    serve_answer(x, 200, NULL, NULL, 0);
}

/* ---- sleep and pause -------------------------------------------------- */

static void pause_all(struct server *s, enum vt_pause how)
{
    vt_ns now = vt_axis_now(&s->axis);

    for (uint32_t i = 0; i < s->c->n_engines; i++)
        vt_engine_pause(s->rank[i].core, now, how);
}

static void end_all(struct server *s)
{
    struct choice *c;

    for (size_t at = 0; (c = vt_driver_each(s->driver, &at)) != NULL;)
        serve_cut(c->x);
}

static bool keeps_requests(const struct net_request *r)
{
    char mode[16];

    return net_query_value(r->query, "mode", mode, sizeof(mode)) &&
           strcmp(mode, "abort") != 0;
}

static void set_sleep(struct server *s, uint32_t level)
{
    for (uint32_t i = 0; i < s->c->n_engines; i++) {
        s->rank[i].sleep_level = level;
        metrics_sleep(s->metrics, i, level);
    }
}

static void post_sleep(struct exchange *x, const struct net_request *r)
{
    struct server *s = x->s;
    char level[16] = "1";

    (void)net_query_value(r->query, "level", level, sizeof(level));
    if (!keeps_requests(r))
        end_all(s);
    pause_all(s, VT_PAUSE_ALL);
    (void)reset_cache(s, true);
    set_sleep(s, strcmp(level, "2") == 0 ? 2 : 1);
    serve_answer(x, 200, NULL, NULL, 0);
}

/* With tags, weights and cache wake up one by one; work goes on with the last. */
static void post_wake_up(struct exchange *x, const struct net_request *r)
{
    struct server *s = x->s;
    char tags[64];

    if (net_query_value(r->query, "tags", tags, sizeof(tags)) &&
        strcmp(tags, "weights") == 0) {
        serve_answer(x, 200, NULL, NULL, 0);
        return;
    }
    set_sleep(s, 0);
    if (!s->rank[0].paused)
        pause_all(s, VT_RUN);
    serve_answer(x, 200, NULL, NULL, 0);
}

/* False: the request has been answered. */
static bool known_mode(struct exchange *x, const struct net_request *r)
{
    bool newer = x->s->api.line == API_LINE_032;
    struct api_error e;
    char mode[32];

    if (!net_query_value(r->query, "mode", mode, sizeof(mode)) ||
        strcmp(mode, "abort") == 0 || strcmp(mode, "wait") == 0 ||
        strcmp(mode, "keep") == 0)
        return true;
    api_error_set(
        &e, 400, "Bad Request", "query.mode",
        "1 validation error:\n  {'type': 'literal_error', 'loc': %s, 'msg': "
        "\"Input should be 'abort', 'wait' or 'keep'\", 'input': '%s', 'ctx': "
        "{'expected': \"'abort', 'wait' or 'keep'\"}}",
        newer ? "'query.mode'" : "('query', 'mode')", mode);
    serve_error(x, &e);
    return false;
}

static void post_pause(struct exchange *x, const struct net_request *r)
{
    struct server *s = x->s;

    if (!known_mode(x, r))
        return;
    if (!keeps_requests(r))
        end_all(s);
    pause_all(s, VT_PAUSE_ALL);
    if (!query_bool(r, "keep_cache"))
        (void)reset_cache(s, true);
    for (uint32_t i = 0; i < s->c->n_engines; i++)
        s->rank[i].paused = true;
    answer_json(x, "{\"status\":\"paused\"}");
}

static void post_resume(struct exchange *x, const struct net_request *r)
{
    struct server *s = x->s;

    (void)r;
    for (uint32_t i = 0; i < s->c->n_engines; i++)
        s->rank[i].paused = false;
    if (s->rank[0].sleep_level == 0)
        pause_all(s, VT_RUN);
    answer_json(x, "{\"status\":\"resumed\"}");
}

/* ---- adapters --------------------------------------------------------- */

struct adapter_ask {
    const char *name, *path; /* of the arena */
    bool in_place;
};

/* False: the request has been answered. */
static bool read_adapter(struct exchange *x, const struct net_request *r,
                         struct adapter_ask *a)
{
    const struct vt_node *body = NULL;
    struct vt_err why = {0};
    struct api_error e;

    *a = (struct adapter_ask){0};
    if (vt_json_parse(&x->copies, r->body, r->body_len, 1, &body, &why) == VT_OK &&
        vt_get_str(body, "lora_name", VT_OPTIONAL, &a->name, &why) == VT_OK &&
        vt_get_str(body, "lora_path", VT_OPTIONAL, &a->path, &why) == VT_OK &&
        vt_get_bool(body, "load_inplace", VT_OPTIONAL, &a->in_place, &why) == VT_OK)
        return true;
    api_error_set(&e, 400, "Bad Request", NULL, "1 validation error:\n  %s", why.msg);
    serve_error(x, &e);
    return false;
}

static void answer_sentence(struct exchange *x, const char *name, const char *done)
{
    struct vt_buf *b = &x->s->text;

    vt_buf_clear(b);
    vt_buf_printf(b, "Success: LoRA adapter '%s' %s successfully.", name, done);
    serve_answer(x, 200, "text/plain; charset=utf-8", b->data, b->len);
}

static void post_load_lora(struct exchange *x, const struct net_request *r)
{
    struct adapter_ask a;
    struct api_error e;
    bool added = true;

    if (!read_adapter(x, r, &a))
        return;
    if (a.name == NULL || *a.name == '\0' || a.path == NULL || *a.path == '\0')
        api_error_set(&e, 400, "InvalidUserInput", NULL,
                      "Both 'lora_name' and 'lora_path' must be provided.");
    else if (models_add(&x->s->models, a.name, a.path, &added, NULL) != VT_OK)
        api_error_set(&e, 500, "InternalServerError", NULL, "out of memory");
    else if (!added && !a.in_place)
        api_error_set(&e, 400, "InvalidUserInput", NULL,
                      "The lora adapter '%s' has already been loaded. If you want to "
                      "load the adapter in place, set 'load_inplace' to True.",
                      a.name);
    else {
        answer_sentence(x, a.name, "added");
        return;
    }
    serve_error(x, &e);
}

static void post_unload_lora(struct exchange *x, const struct net_request *r)
{
    struct adapter_ask a;
    struct api_error e;

    if (!read_adapter(x, r, &a))
        return;
    if (a.name == NULL || *a.name == '\0')
        api_error_set(&e, 400, "InvalidUserInput", NULL,
                      "'lora_name' needs to be provided to unload a LoRA adapter.");
    else if (!models_remove(&x->s->models, a.name))
        api_error_set(&e, 404, "NotFoundError", NULL,
                      "The lora adapter '%s' cannot be found.", a.name);
    else {
        answer_sentence(x, a.name, "removed");
        return;
    }
    serve_error(x, &e);
}

/* ---- requests --------------------------------------------------------- */

static void end_named(struct server *s, const char *id)
{
    struct choice *c;

    for (size_t at = 0; (c = vt_driver_each(s->driver, &at)) != NULL;)
        if (strcmp(c->x->r.id, id) == 0)
            serve_cut(c->x);
}

static void post_abort_requests(struct exchange *x, const struct net_request *r)
{
    static const struct vt_node none = {.kind = VT_LIST};
    const struct vt_node *body = NULL, *ids = NULL;
    struct api_error e;
    char json[64];
    int rc = vt_json_parse(&x->copies, r->body, r->body_len, 1, &body, NULL);

    if (rc == VT_OK && (ids = vt_get(body, "request_ids")) == NULL)
        ids = &none;
    if (rc != VT_OK || ids->kind != VT_LIST) {
        api_error_set(&e, 400, "Bad Request", NULL,
                      "'request_ids' must be a list of ids");
        serve_error(x, &e);
        return;
    }
    for (uint32_t i = 0; i < ids->n; i++)
        if (ids->u.item[i].kind == VT_STR)
            end_named(x->s, ids->u.item[i].u.str);
    (void)snprintf(json, sizeof(json), "{\"status\":\"aborted\",\"aborted\":%u}",
                   ids->n);
    answer_json(x, json);
}

/* ---- the table -------------------------------------------------------- */

enum admin_when { ALWAYS, DEV_MODE, LORA };

static const struct {
    const char *method, *path;
    answer_fn *answer;
    enum admin_when when;
} admin_routes[] = {
    {"GET", "/load", get_load, ALWAYS},
    {"GET", "/metrics", get_metrics, ALWAYS},
    {"POST", "/v1/load_lora_adapter", post_load_lora, LORA},
    {"POST", "/v1/unload_lora_adapter", post_unload_lora, LORA},
    {"GET", "/is_sleeping", get_is_sleeping, DEV_MODE},
    {"GET", "/is_paused", get_is_paused, DEV_MODE},
    {"GET", "/get_world_size", get_world_size, DEV_MODE},
    {"POST", "/reset_prefix_cache", post_reset_prefix_cache, DEV_MODE},
    {"POST", "/reset_mm_cache", post_reset_other, DEV_MODE},
    {"POST", "/reset_encoder_cache", post_reset_other, DEV_MODE},
    {"POST", "/sleep", post_sleep, DEV_MODE},
    {"POST", "/wake_up", post_wake_up, DEV_MODE},
    {"POST", "/pause", post_pause, DEV_MODE},
    {"POST", "/resume", post_resume, DEV_MODE},
    {"POST", "/abort_requests", post_abort_requests, DEV_MODE},
};

bool serve_admin(struct exchange *x, const struct net_request *r)
{
    const struct vt_serve_config *c = x->s->c;

    for (size_t i = 0; i < VT_COUNT(admin_routes); i++) {
        enum admin_when when = admin_routes[i].when;

        if (strcmp(r->path, admin_routes[i].path) != 0 ||
            strcmp(r->method, admin_routes[i].method) != 0 ||
            (when == DEV_MODE && !c->dev_mode) || (when == LORA && c->fixed_loras))
            continue;
        admin_routes[i].answer(x, r);
        return true;
    }
    return false;
}
