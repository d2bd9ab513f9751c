/* admin.c - routes that look at what runs, or change it: load, metrics, caches,
 * sleep, pause, adapters. */
#include <string.h>
#include <strings.h>

#include "http/serve/serve.h"

static void answer_json(struct exchange *x, const char *fmt, ...) VT_PRINTF(2, 3);
static void answer_json(struct exchange *x, const char *fmt, ...)
{
    char json[64];
    va_list args;

    va_start(args, fmt);
    (void)vsnprintf(json, sizeof(json), fmt, args);
    va_end(args);
    serve_answer(x, 200, "application/json", json, strlen(json));
}

static const char *truth(bool v)
{
    return v ? "true" : "false";
}

/* ---- looking --------------------------------------------------------- */

/* Requests that the server works on, this one not. */
void admin_load(struct exchange *x)
{
    answer_json(x, "{\"server_load\":%u}", vt_driver_requests(x->s->driver));
}

/* Names of adapters with a comma between them, each once: as short as max_loras. */
static void add_name(struct vt_buf *b, const char *name)
{
    size_t len = strlen(name);
    const char *at = b->data;

    for (; at && (at = strstr(at, name)); at += len)
        if ((at == b->data || at[-1] == ',') && (at[len] == ',' || at[len] == '\0'))
            return;
    vt_buf_printf(b, "%s%s", b->len > 0 ? "," : "", name);
}

void admin_metrics(struct exchange *x)
{
    struct vt_buf running = {0}, waiting = {0};
    const struct choice *c;
    struct server *s = x->s;

    for (uint32_t i = 0; i < s->c->n_engines; i++) {
        struct metrics_load load = serve_load(&s->rank[i]);

        metrics_set_load(s->metrics, i, &load);
    }
    for (size_t at = 0; s->c->max_loras > 0 && (c = vt_driver_each(s->driver, &at));)
        if (c->x->r.lora)
            add_name(c->scheduled >= 0 ? &running : &waiting, c->x->r.model);
    if (s->c->max_loras > 0)
        metrics_loras(s->metrics, running.len > 0 ? running.data : "",
                      waiting.len > 0 ? waiting.data : "", vt_unix_s());
    vt_buf_free(&running);
    vt_buf_free(&waiting);
    vt_buf_clear(&s->text);
    metrics_write(s->metrics, &s->text, vt_unix_s());
    serve_answer(x, 200, metrics_content_type, s->text.data, s->text.len);
}

void admin_is_sleeping(struct exchange *x)
{
    answer_json(x, "{\"is_sleeping\":%s}", truth(x->s->sleep_level > 0));
}

void admin_is_paused(struct exchange *x)
{
    answer_json(x, "{\"is_paused\":%s}", truth(x->s->paused));
}

void admin_world_size(struct exchange *x)
{
    answer_json(x, "{\"world_size\":%u}", x->s->c->n_engines);
}

/* ---- caches ---------------------------------------------------------- */

static bool query_bool(const struct exchange *x, const char *key)
{
    char value[16];

    return net_query_value(x->request.query, key, value, sizeof(value)) &&
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
        if (s->c->kv.on && serve_kv_publish(s, &s->rank[i], NULL) != VT_OK)
            ok = false; /* an idle engine has no step that would tell */
    }
    return ok;
}

void admin_reset_prefix_cache(struct exchange *x)
{
    bool ok = reset_cache(x->s, query_bool(x, "reset_running_requests"));

    answer_json(x, "{\"success\":%s}", truth(ok));
}

/* There is nothing in them. */
void admin_reset_other(struct exchange *x)
{
    serve_answer(x, 200, NULL, NULL, 0);
}

/* ---- sleep and pause -------------------------------------------------- */

static void pause_all(struct server *s, enum vt_pause how)
{
    vt_ns now = vt_axis_now(&s->axis);

    for (uint32_t i = 0; i < s->c->n_engines; i++)
        vt_engine_pause(s->rank[i].core, now, how);
}

/* id NULL: all of them. */
static void cut_requests(struct server *s, const char *id)
{
    struct choice *c;

    for (size_t at = 0; (c = vt_driver_each(s->driver, &at));)
        if (!id || strcmp(c->x->r.id, id) == 0)
            serve_cut(c->x);
}

static void set_sleep(struct server *s, uint32_t level)
{
    s->sleep_level = level;
    for (uint32_t i = 0; i < s->c->n_engines; i++)
        metrics_sleep(s->metrics, i, level);
}

void admin_sleep(struct exchange *x)
{
    struct server *s = x->s;
    char level[16] = "1", mode[16] = "abort";

    (void)net_query_value(x->request.query, "level", level, sizeof(level));
    if (!net_query_value(x->request.query, "mode", mode, sizeof(mode)) ||
        strcmp(mode, "abort") == 0)
        cut_requests(s, NULL);
    pause_all(s, VT_PAUSE_ALL);
    (void)reset_cache(s, true);
    set_sleep(s, strcmp(level, "2") == 0 ? 2 : 1);
    serve_answer(x, 200, NULL, NULL, 0);
}

/* With tags, weights and cache wake up one by one; work goes on with the last. */
void admin_wake_up(struct exchange *x)
{
    struct server *s = x->s;
    char tags[64];

    if (net_query_value(x->request.query, "tags", tags, sizeof(tags)) &&
        strcmp(tags, "weights") == 0) {
        serve_answer(x, 200, NULL, NULL, 0);
        return;
    }
    set_sleep(s, 0);
    if (!s->paused)
        pause_all(s, VT_RUN);
    serve_answer(x, 200, NULL, NULL, 0);
}

void admin_pause(struct exchange *x)
{
    struct server *s = x->s;
    struct api_error e;
    char mode[32];
    bool given = net_query_value(x->request.query, "mode", mode, sizeof(mode));

    if (given && strcmp(mode, "abort") != 0 && strcmp(mode, "wait") != 0 &&
        strcmp(mode, "keep") != 0) {
        api_error_set(
            &e, 400, "Bad Request", "query.mode",
            "1 validation error:\n  {'type': 'literal_error', 'loc': %s, 'msg': "
            "\"Input should be 'abort', 'wait' or 'keep'\", 'input': '%s', 'ctx': "
            "{'expected': \"'abort', 'wait' or 'keep'\"}}",
            s->api.line == API_LINE_032 ? "'query.mode'" : "('query', 'mode')", mode);
        serve_error(x, &e);
        return;
    }
    if (!given || strcmp(mode, "abort") == 0)
        cut_requests(s, NULL);
    pause_all(s, VT_PAUSE_ALL);
    if (!query_bool(x, "keep_cache"))
        (void)reset_cache(s, true);
    s->paused = true;
    answer_json(x, "{\"status\":\"paused\"}");
}

void admin_resume(struct exchange *x)
{
    struct server *s = x->s;

    s->paused = false;
    if (s->sleep_level == 0)
        pause_all(s, VT_RUN);
    answer_json(x, "{\"status\":\"resumed\"}");
}

/* ---- adapters --------------------------------------------------------- */

struct adapter_ask {
    const char *name, *path; /* of the arena */
    bool in_place;
};

/* False: the request has been answered. */
static bool read_adapter(struct exchange *x, struct adapter_ask *a)
{
    const struct vt_node *body = NULL;
    struct vt_err why = {0};
    struct api_error e;

    *a = (struct adapter_ask){0};
    if (vt_json_parse(&x->copies, x->request.body, x->request.body_len, 1, &body,
                      &why) == VT_OK &&
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

void admin_load_lora(struct exchange *x)
{
    struct adapter_ask a;
    struct api_error e;
    bool added = true;

    if (!read_adapter(x, &a))
        return;
    if (!a.name || *a.name == '\0' || !a.path || *a.path == '\0')
        api_error_set(&e, 400, "InvalidUserInput", NULL,
                      "Both 'lora_name' and 'lora_path' must be provided.");
    else if (models_add(&x->s->models, a.name, a.path, &added, NULL) != VT_OK)
        (void)api_nomem(&e);
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

void admin_unload_lora(struct exchange *x)
{
    struct adapter_ask a;
    struct api_error e;

    if (!read_adapter(x, &a))
        return;
    if (!a.name || *a.name == '\0')
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

void admin_abort_requests(struct exchange *x)
{
    static const struct vt_node none = {.kind = VT_LIST};
    const struct vt_node *body = NULL, *ids = NULL;
    struct api_error e;
    int rc =
        vt_json_parse(&x->copies, x->request.body, x->request.body_len, 1, &body, NULL);

    if (rc == VT_OK && !(ids = vt_get(body, "request_ids")))
        ids = &none;
    if (rc != VT_OK || ids->kind != VT_LIST) {
        api_error_set(&e, 400, "Bad Request", NULL,
                      "'request_ids' must be a list of ids");
        serve_error(x, &e);
        return;
    }
    for (uint32_t i = 0; i < ids->n; i++)
        if (ids->u.item[i].kind == VT_STR)
            cut_requests(x->s, ids->u.item[i].u.str);
    answer_json(x, "{\"status\":\"aborted\",\"aborted\":%u}", ids->n);
}
