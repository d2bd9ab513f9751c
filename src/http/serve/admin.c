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

/* Names of adapters with a comma between them, each once. */
struct name_list {
    struct vt_buf text;
    struct vt_map known;         /* to their first bytes' places in the text */
    const struct exchange *last; /* whose name was added last: most choices follow */
};

struct sought_name {
    const struct name_list *list;
    const char *name;
};

static bool same_name(const void *sought, uint64_t at)
{
    const struct sought_name *s = sought;
    const char *text = s->list->text.data + at;
    size_t len = strlen(s->name);

    return strncmp(text, s->name, len) == 0 && (text[len] == ',' || text[len] == '\0');
}

static void add_name(struct name_list *l, const struct exchange *x)
{
    struct sought_name sought = {l, x->r.model};
    uint64_t hash = vt_hash_bytes(x->r.model, strlen(x->r.model), 0), *place;

    if (l->last == x || vt_map_find(&l->known, hash, same_name, &sought))
        return;
    l->last = x;
    if (l->text.len > 0)
        vt_buf_char(&l->text, ',');
    place = vt_map_add(&l->known, hash);
    if (place)
        *place = l->text.len;
    vt_buf_str(&l->text, x->r.model);
}

static const char *names_in(const struct name_list *l)
{
    return l->text.len > 0 && !l->text.failed ? l->text.data : "";
}

static void names_free(struct name_list *l)
{
    vt_buf_free(&l->text);
    vt_map_free(&l->known);
}

void admin_metrics(struct exchange *x)
{
    struct name_list running = {0}, waiting = {0};
    const struct choice *c;
    struct server *s = x->s;

    for (uint32_t i = 0; i < s->c->n_engines; i++) {
        struct metrics_load load = serve_load(&s->rank[i]);

        metrics_set_load(s->metrics, i, &load);
    }
    for (size_t at = 0; s->c->max_loras > 0 && (c = vt_driver_each(s->driver, &at));)
        if (c->x->r.lora)
            add_name(c->scheduled >= 0 ? &running : &waiting, c->x);
    if (s->c->max_loras > 0)
        metrics_loras(s->metrics, names_in(&running), names_in(&waiting), vt_unix_s());
    names_free(&running);
    names_free(&waiting);
    metrics_rejected(s->metrics, atomic_load(&s->gate.refused[GATE_REQUESTS]),
                     atomic_load(&s->gate.refused[GATE_TOKENS]));
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

static bool query_bool(const struct exchange *x, const char *key, bool otherwise)
{
    static const char *const yes[] = {"1", "true", "t", "y", "yes", "on"};
    char value[16];

    if (!net_query_value(x->request.query, key, value, sizeof(value)))
        return otherwise;
    for (size_t i = 0; i < VT_COUNT(yes); i++)
        if (strcasecmp(value, yes[i]) == 0)
            return true;
    return false;
}

static bool query_is(const struct exchange *x, const char *key, const char *word)
{
    char value[16];

    return net_query_value(x->request.query, key, value, sizeof(value)) &&
           strcmp(value, word) == 0;
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
    bool ok = reset_cache(x->s, query_bool(x, "reset_running_requests", false));

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

/* How many ends that makes as vLLM counts them: every choice, and every prompt that
 * stands above several. */
static uint32_t cut_all(struct server *s)
{
    struct choice *c;
    uint32_t n = 0;

    for (size_t at = 0; (c = vt_driver_each(s->driver, &at));) {
        bool first = c->x->r.n > 1 && (size_t)(c - c->x->choice) % c->x->r.n == 0;

        n += first ? 2 : 1;
        serve_cut(c->x);
    }
    serve_turns(s);
    return n;
}

/* What runs has ended, and its last tokens are out. */
static bool is_drained(const struct server *s)
{
    for (uint32_t i = 0; i < s->c->n_engines; i++)
        if (vt_sched_has_requests(vt_engine_sched(s->rank[i].core)))
            return false;
    return vt_driver_parcels_due(s->driver) == VT_NEVER;
}

/* Does it as soon as all that runs has ended: now, or after the step that ends it. */
static void when_drained(struct exchange *x, admin_fn *then)
{
    struct server *s = x->s;
    const char *query = x->request.query;

    if (is_drained(s)) {
        then(x);
        return;
    }
    query = vt_arena_copy(&x->copies, query, strlen(query));
    x->request = (struct net_request){.query = query ? query : "",
                                      .body_len = x->request.body_len};
    x->then = then;
    x->next = s->waits;
    s->waits = x;
}

void serve_drained(struct server *s)
{
    struct exchange *x;

    while (is_drained(s) && (x = s->waits)) {
        s->waits = x->next;
        x->then(x);
    }
}

void serve_waits_end(struct server *s, const struct api_error *e)
{
    struct exchange *x;

    while ((x = s->waits)) {
        s->waits = x->next;
        serve_error(x, e);
    }
}

static void set_sleep(struct server *s, uint32_t level)
{
    s->sleep_level = level;
    for (uint32_t i = 0; i < s->c->n_engines; i++)
        metrics_sleep(s->metrics, i, level);
}

static void fall_asleep(struct exchange *x)
{
    struct server *s = x->s;
    uint32_t level = query_is(x, "level", "2") ? 2 : 1;

    pause_all(s, VT_PAUSE_ALL);
    (void)reset_cache(s, true);
    set_sleep(s, level);
    if (s->api.line == API_LINE_026)
        serve_answer(x, 200, NULL, NULL, 0);
    else
        answer_json(x, "{\"status\":\"sleeping\",\"level\":%u}", level);
}

/* By mode: "abort" ends what there is, "wait" lets it end while nothing new begins,
 * and "keep" goes on with it later. */
void admin_sleep(struct exchange *x)
{
    if (query_is(x, "mode", "wait")) {
        pause_all(x->s, VT_PAUSE_NEW);
        when_drained(x, fall_asleep);
        return;
    }
    if (!query_is(x, "mode", "keep"))
        (void)cut_all(x->s);
    fall_asleep(x);
}

/* The next of the query's tags, of which it may have any number. */
static bool next_tag(const char **query, char tag[32])
{
    for (const char *q = *query; *q; q = *query) {
        *query += strcspn(q, "&");
        *query += **query == '&';
        if (strncmp(q, "tags=", 5) == 0 && net_query_value(q, "tags", tag, 32))
            return true;
    }
    return false;
}

static void answer_woken(struct exchange *x, bool awake)
{
    const char *query = x->request.query;
    struct vt_buf json = {0};
    struct vt_jw w;
    char tag[32];
    bool any = next_tag(&query, tag);

    vt_jw_init(&w, &json, NULL);
    vt_jw_map(&w, NULL);
    vt_jw_str(&w, "status", awake ? "awake" : "sleeping");
    if (any)
        vt_jw_list(&w, "tags");
    else
        vt_jw_null(&w, "tags");
    for (bool more = any; more; more = next_tag(&query, tag))
        vt_jw_str(&w, NULL, tag);
    if (any)
        vt_jw_end(&w);
    vt_jw_end(&w);
    serve_answer(x, 200, "application/json", json.failed ? NULL : json.data,
                 json.failed ? 0 : json.len);
    vt_buf_free(&json);
}

/* With tags, weights and cache wake up one by one; work goes on with the last. */
void admin_wake_up(struct exchange *x)
{
    const char *query = x->request.query;
    struct server *s = x->s;
    bool awake = true;
    char tag[32];

    if (next_tag(&query, tag))
        for (awake = strcmp(tag, "weights") != 0; !awake && next_tag(&query, tag);)
            awake = strcmp(tag, "weights") != 0;
    if (awake) {
        set_sleep(s, 0);
        if (!s->paused)
            pause_all(s, VT_RUN);
    }
    if (s->api.line == API_LINE_026)
        serve_answer(x, 200, NULL, NULL, 0);
    else
        answer_woken(x, awake);
}

static void answer_paused(struct exchange *x)
{
    if (query_bool(x, "clear_cache", true))
        (void)reset_cache(x->s, true);
    answer_json(x, "{\"status\":\"paused\"}");
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
    s->paused = true;
    if (query_is(x, "mode", "wait") || /* the same, as 0.26 still lets it be said */
        (s->api.line == API_LINE_026 &&
         query_bool(x, "wait_for_inflight_requests", false))) {
        pause_all(s, VT_PAUSE_NEW);
        when_drained(x, answer_paused);
        return;
    }
    if (!given || strcmp(mode, "abort") == 0)
        (void)cut_all(s);
    pause_all(s, VT_PAUSE_ALL);
    answer_paused(x);
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
    struct vt_err why = {0};
    struct api_error e;

    *a = (struct adapter_ask){0};
    if (x->tree &&
        vt_get_str(x->tree, "lora_name", VT_OPTIONAL, &a->name, &why) == VT_OK &&
        vt_get_str(x->tree, "lora_path", VT_OPTIONAL, &a->path, &why) == VT_OK &&
        vt_get_bool(x->tree, "load_inplace", VT_OPTIONAL, &a->in_place, &why) == VT_OK)
        return true;
    if (!x->tree && x->why)
        why = *x->why;
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
    else if (strlen(a.name) > MODELS_NAME || strlen(a.path) > MODELS_PATH)
        api_error_set(&e, 400, "InvalidUserInput", NULL,
                      "'lora_name' may have %d bytes and 'lora_path' %d.", MODELS_NAME,
                      MODELS_PATH);
    else if (models_full(&x->s->models, a.name))
        api_error_set(&e, 400, "InvalidUserInput", NULL,
                      "There are %d lora adapters, which is as many as this server "
                      "holds.",
                      MODELS_ADAPTERS);
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
    const struct vt_node *ids =
        x->tree ? vt_get_non_null(x->tree, "request_ids") : NULL;
    struct server *s = x->s;
    struct exchange *cut;
    struct api_error e;

    if (x->tree && (!ids || (ids->kind == VT_LIST && ids->n == 0))) {
        answer_json(x, "{\"status\":\"aborted\",\"aborted\":%u}", cut_all(s));
        return;
    }
    if (!ids || ids->kind != VT_LIST) {
        api_error_set(&e, 400, "Bad Request", NULL,
                      "'request_ids' must be a list of ids, of at most %d",
                      ADMIN_VALUES - 2);
        serve_error(x, &e);
        return;
    }
    for (uint32_t i = 0; i < ids->n; i++)
        while (ids->u.item[i].kind == VT_STR &&
               (cut = exchange_by_id(s, ids->u.item[i].u.str)))
            serve_cut(cut);
    serve_turns(s);
    answer_json(x, "{\"status\":\"aborted\",\"aborted\":%u}", ids->n);
}
