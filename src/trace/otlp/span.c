/* span.c - one line of OTLP JSON: resources, scopes, and which reader a span goes
 * to.
 *
 * A malformed span is counted, named and skipped. What is wrong above the spans makes
 * the line, and so the file, unusable. */
#include <inttypes.h>

#include "trace/otlp/otlp.h"

struct span_kind {
    const char *scope; /* NULL: any */
    const char *name;  /* NULL: any */
    int (*read)(struct vt_otlp *o, const struct otlp_span *s, struct vt_err *err);
    size_t count; /* of them: offset into the stats */
};

/* To read another kind of span: write its reader, add a row here, describe it in
 * docs/otlp.md. The first row that fits is taken. */
static const struct span_kind kinds[] = {
    {"vllm.api", "llm_request", otlp_read_front,
     offsetof(struct vt_otlp_stats, api_spans)},
    {"vllm.scheduler", "llm_core", otlp_read_core,
     offsetof(struct vt_otlp_stats, core_spans)},
    {"vllm.scheduler.step", NULL, otlp_read_steps,
     offsetof(struct vt_otlp_stats, step_spans)},
    {NULL, "llm_request", otlp_read_call, offsetof(struct vt_otlp_stats, call_spans)},
};

static const struct span_kind *find_kind(const char *scope, const char *name)
{
    for (size_t i = 0; i < VT_COUNT(kinds); i++)
        if ((!kinds[i].scope || strcmp(kinds[i].scope, scope) == 0) &&
            (!kinds[i].name || strcmp(kinds[i].name, name) == 0))
            return &kinds[i];
    return NULL;
}

/* ---- engines ---------------------------------------------------------- */

/* Makes room for one more and claims its name; *index is n if that is new. */
static int claim_name(struct vt_names *names, void *array_ptr, size_t *cap, size_t n,
                      size_t cell, const char *name, uint32_t *index, bool *is_new,
                      struct vt_err *err)
{
    const void *first;
    int rc = vt_grow(array_ptr, cap, n + 1, cell, err);

    if (rc != VT_OK)
        return rc;
    *index = (uint32_t)n;
    memcpy(&first, array_ptr, sizeof(first));
    return vt_names_claim(names, first, cell, name, strlen(name), index, is_new, err);
}

static int find_engine(struct vt_otlp *o, const char *name, size_t *out,
                       struct vt_err *err)
{
    uint32_t index;
    bool is_new;
    int rc = claim_name(&o->engine_names, &o->engine, &o->cap_engines, o->n_engines,
                        sizeof(*o->engine), name, &index, &is_new, err);

    if (rc != VT_OK)
        return rc;
    *out = index;
    if (!is_new)
        return VT_OK;
    o->engine[index] = (struct otlp_engine){.depth = 1};
    rc = vt_arena_text(&o->arena, name, &o->engine[index].name, err);
    o->n_engines += rc == VT_OK;
    return rc;
}

int otlp_find_request(struct vt_otlp *o, struct otlp_engine *e, const char *id,
                      uint32_t *out, struct vt_err *err)
{
    bool is_new;
    int rc = claim_name(&e->ids, &e->request, &e->cap_requests, e->n_requests,
                        sizeof(*e->request), id, out, &is_new, err);

    if (rc != VT_OK || !is_new)
        return rc;
    e->request[*out] = otlp_unseen;
    rc = vt_arena_text(&o->arena, id, &e->request[*out].id, err);
    e->n_requests += rc == VT_OK;
    return rc;
}

const struct otlp_request otlp_unseen = {.queued_ns = VT_NEVER,
                                         .scheduled_ns = VT_NEVER,
                                         .first_token_ns = VT_NEVER,
                                         .finished_ns = VT_NEVER,
                                         .effective = UINT32_MAX};

/* Processes are told apart by what their SDK calls them, else by number. */
static const char *resource_name(const struct vt_node *resource_spans)
{
    static const struct otlp_field names[] = {
        {"service.instance.id", OTLP_STR, VT_OPTIONAL, 0},
        {"vllm.process_id", OTLP_STR, VT_OPTIONAL, 0},
    };
    const struct vt_node *resource = vt_get(resource_spans, "resource"), *attributes;
    const char *name = NULL;

    if (otlp_get_list(resource, "attributes", &attributes, NULL) != VT_OK)
        return "vllm";
    for (size_t i = 0; i < VT_COUNT(names) && !name; i++)
        if (otlp_read(attributes, &names[i], 1, &name, NULL) != VT_OK)
            name = NULL;
    return name ? name : "vllm";
}

/* ---- spans ------------------------------------------------------------ */

static int read_head(const struct vt_node *node, struct otlp_span *s,
                     struct vt_err *err)
{
    const char *parent = otlp_get_text(node, "parentSpanId");
    int rc;

    if ((rc = otlp_get_hex(node, "traceId", s->key.trace, 2, err)) ||
        (rc = otlp_get_hex(node, "spanId", &s->key.span, 1, err)) ||
        (parent && *parent &&
         (rc = otlp_get_hex(node, "parentSpanId", &s->parent.span, 1, err))) ||
        (rc = otlp_get_ns(node, "startTimeUnixNano", &s->start_unix_ns, err)) ||
        (rc = otlp_get_list(node, "attributes", &s->attributes, err)) ||
        (rc = otlp_get_list(node, "events", &s->events, err)))
        return rc;
    s->parent.trace[0] = s->key.trace[0];
    s->parent.trace[1] = s->key.trace[1];
    return VT_OK;
}

/* A collector may get a span twice. Ids alone do not tell, because tracers draw them
 * from generators with a fixed seed. */
static int is_repeated(struct vt_otlp *o, const struct otlp_span *s, bool *repeated,
                       struct vt_err *err)
{
    char name[80];
    uint32_t index;
    bool is_new = false;
    int len = snprintf(name, sizeof(name),
                       "%016" PRIx64 "%016" PRIx64 "%016" PRIx64 "%" PRId64,
                       s->key.trace[0], s->key.trace[1], s->key.span, s->start_unix_ns);
    int rc = claim_name(&o->span_names, &o->span, &o->cap_spans, o->n_spans,
                        sizeof(*o->span), name, &index, &is_new, err);

    *repeated = !is_new;
    if (rc != VT_OK || !is_new)
        return rc;
    o->span[o->n_spans] = vt_arena_copy(&o->arena, name, (size_t)len);
    return o->span[o->n_spans++] ? VT_OK : vt_nomem(err);
}

static int read_kind(struct vt_otlp *o, const struct span_kind *k,
                     const struct vt_node *node, struct otlp_span *s,
                     struct vt_err *err)
{
    const struct vt_node *dropped = vt_get(node, "droppedEventsCount");
    size_t n_kv = 0;
    bool repeated = false;
    int rc;

    if ((rc = read_head(node, s, err)) ||
        (k && (rc = is_repeated(o, s, &repeated, err))))
        return rc;
    if (repeated) {
        o->stats.repeated++;
        o->useful++;
        return VT_OK;
    }
    if ((strncmp(s->scope, "vllm.", 5) == 0 && (rc = otlp_read_kv(o, s, &n_kv, err))) ||
        (k && (rc = k->read(o, s, err))))
        return rc;
    if (k && dropped && dropped->kind == VT_INT && !dropped->is_u64 &&
        dropped->u.integer > 0)
        o->stats.dropped_events += (uint64_t)dropped->u.integer & UINT32_MAX;
    o->useful += k || n_kv > 0;
    return VT_OK;
}

static int note_malformed(struct vt_otlp *o, const struct otlp_span *s,
                          const char *file, struct vt_err *err)
{
    vt_within(err, VT_EINPUT, "%s: line %u: span '%.60s'", file, s->line, s->name);
    o->stats.malformed++;
    if (o->stats.n_reasons == VT_OTLP_REASONS)
        return VT_OK;
    return vt_arena_text(&o->arena, err->msg, &o->stats.reason[o->stats.n_reasons++],
                         err);
}

/* Spans of other scopes, and those of vLLM's start-up, are of no interest. */
static int read_span(struct vt_otlp *o, const struct vt_node *node, struct otlp_span *s,
                     const char *file, struct vt_err *err)
{
    const char *name = otlp_get_text(node, "name");
    const struct span_kind *k;
    struct vt_err why = {0};
    size_t n_kv = o->n_kv;
    int rc;

    s->name = name ? name : "?";
    k = find_kind(s->scope, s->name);
    if (k)
        ++*(uint64_t *)(void *)((char *)&o->stats + k->count);
    else
        o->stats.other_spans++;
    if (!k && (strncmp(s->scope, "vllm.", 5) != 0 || (name && !vt_get(node, "events"))))
        return VT_OK;
    rc = name ? read_kind(o, k, node, s, &why)
              : vt_fail(&why, VT_EINPUT, "field 'name' is missing");
    if (rc == VT_EINPUT) {
        o->n_kv = n_kv;
        rc = note_malformed(o, s, file, &why);
    }
    if (rc != VT_OK && err)
        *err = why;
    return rc;
}

/* ---- lines ------------------------------------------------------------ */

static int get_objects(const struct vt_node *map, const char *key,
                       const struct vt_node **out, struct vt_err *err)
{
    int rc = otlp_get_list(map, key, out, err);

    for (uint32_t i = 0; rc == VT_OK && *out && i < (*out)->n; i++)
        if ((*out)->u.item[i].kind != VT_MAP)
            rc = vt_fail(err, VT_EINPUT, "field '%s' must hold objects", key);
    return rc;
}

static int read_resource(struct vt_otlp *o, const struct vt_node *resource,
                         const char *file, struct vt_err *err)
{
    const struct vt_node *scopes, *spans;
    size_t engine = 0;
    int rc;

    if ((rc = get_objects(resource, "scopeSpans", &scopes, err)) ||
        (rc = find_engine(o, resource_name(resource), &engine, err)))
        return rc;
    for (uint32_t i = 0; rc == VT_OK && scopes && i < scopes->n; i++) {
        const struct vt_node *scope = &scopes->u.item[i];
        const char *name = otlp_get_text(vt_get(scope, "scope"), "name");

        rc = otlp_get_list(scope, "spans", &spans, err);
        for (uint32_t k = 0; rc == VT_OK && spans && k < spans->n; k++) {
            struct otlp_span s = {
                .scope = name ? name : "", .engine = engine, .line = scope->line};

            rc = read_span(o, &spans->u.item[k], &s, file, err);
        }
    }
    return rc;
}

static int read_root(struct vt_otlp *o, const struct vt_node *root, const char *file,
                     struct vt_err *err)
{
    const struct vt_node *list, *batch = vt_get(root, "decoded");
    int rc;

    if (root->kind == VT_LIST)
        return otlp_read_kv_batch(o, root, err);
    if (batch)
        return otlp_read_kv_batch(o, batch, err);
    if (root->kind == VT_MAP && /* of another signal */
        (root->n == 0 || vt_get(root, "resourceMetrics") ||
         vt_get(root, "resourceLogs") || vt_get(root, "resourceProfiles")))
        return VT_OK;
    if (!vt_get(root, "resourceSpans"))
        return vt_fail(err, VT_EINPUT,
                       "neither OTLP spans ('resourceSpans') nor KV-cache events");
    rc = get_objects(root, "resourceSpans", &list, err);
    for (uint32_t i = 0; rc == VT_OK && list && i < list->n; i++)
        rc = read_resource(o, &list->u.item[i], file, err);
    return rc;
}

int otlp_read_line(struct vt_otlp *o, const struct vt_node *root, const char *name,
                   struct vt_err *err)
{
    int rc = read_root(o, root, name, err);

    return vt_within(err, rc, "%s: line %u", name, root->line);
}
