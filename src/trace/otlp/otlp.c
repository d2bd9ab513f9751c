/* otlp.c - OpenTelemetry files: reading them one after the other, and what comes out at
 * the end. */
#include "trace/otlp/otlp.h"

/* ---- life ------------------------------------------------------------- */

int vt_otlp_new(struct vt_otlp **out, const struct vt_otlp_options *options,
                struct vt_err *err)
{
    struct vt_otlp *o = calloc(1, sizeof(*o));

    *out = o;
    if (!o)
        return vt_nomem(err);
    o->options = *options;
    return VT_OK;
}

void vt_otlp_free(struct vt_otlp *o)
{
    if (!o)
        return;
    for (size_t i = 0; i < o->n_engines; i++) {
        free(o->engine[i].step);
        free(o->engine[i].snap);
        free(o->engine[i].mark);
        free(o->engine[i].request);
        vt_names_free(&o->engine[i].ids);
    }
    for (size_t i = 0; i < o->n_captures; i++) {
        vt_steps_free(&o->capture[i].steps);
        vt_workload_free(&o->capture[i].work);
    }
    free(o->engine);
    vt_names_free(&o->engine_names);
    free(o->front);
    free(o->call);
    free(o->kv);
    free(o->span);
    vt_names_free(&o->span_names);
    free(o->capture);
    vt_arena_free(&o->arena);
    free(o);
}

const struct vt_otlp_stats *vt_otlp_stats(const struct vt_otlp *o)
{
    return &o->stats;
}

size_t vt_otlp_captures(const struct vt_otlp *o)
{
    return o->n_captures;
}

const struct vt_otlp_capture *vt_otlp_capture(const struct vt_otlp *o, size_t i)
{
    return &o->capture[i];
}

/* ---- files ------------------------------------------------------------ */

/* What the file gave: at least one span or batch that could be read. */
static int check_file(const struct vt_otlp *o, const struct vt_otlp_stats *before,
                      size_t useful, const struct trace_reader *r, struct vt_err *err)
{
    uint64_t malformed = o->stats.malformed - before->malformed;

    if (o->useful > useful)
        return VT_OK;
    if (o->stats.lines == before->lines)
        return vt_fail(err, VT_EINPUT, "%s: the file is empty", r->name);
    if (malformed == 0)
        return vt_fail(err, VT_EINPUT, "%s: line %u: no span of vLLM up to the end",
                       r->name, r->number);
    if (before->n_reasons < VT_OTLP_REASONS)
        return vt_fail(err, VT_EINPUT, "%s", o->stats.reason[before->n_reasons]);
    return vt_fail(err, VT_EINPUT, "%s: line %u: all spans are malformed", r->name,
                   r->number);
}

int otlp_add_lines(void *otlp, struct vt_lines *lines, struct vt_err *err)
{
    struct vt_otlp *o = otlp;
    struct trace_reader r = {.lines = lines, .name = vt_lines_name(lines)};
    struct vt_otlp_stats before = o->stats;
    size_t useful = o->useful;
    int rc = VT_OK;

    if (!o->source)
        rc = vt_arena_text(&o->arena, r.name, &o->source, err);
    while (rc == VT_OK && !(rc = trace_reader_next(&r, err)) && r.line) {
        const struct vt_node *root;

        o->stats.lines++;
        rc = vt_within(err, trace_reader_value(&r, &root, err), "%s", r.name);
        if (rc == VT_OK)
            rc = otlp_read_line(o, root, r.name, err);
    }
    vt_arena_free(&r.scratch);
    return rc == VT_OK ? check_file(o, &before, useful, &r, err) : rc;
}

int vt_otlp_add_file(struct vt_otlp *o, const char *path, struct vt_err *err)
{
    return trace_load(o, path, otlp_add_lines, err);
}

/* ---- the end ---------------------------------------------------------- */

static bool has_told(const struct otlp_engine *e)
{
    if (e->n_steps > 0)
        return true;
    for (size_t i = 0; i < e->n_requests; i++)
        if (e->request[i].known)
            return true;
    return false;
}

/* The first time there is; 0: none. */
static vt_ns find_origin(const struct vt_otlp *o, const struct otlp_engine *e)
{
    const struct otlp_front *front;
    vt_ns origin = VT_NEVER;

    for (size_t i = 0; i < e->n_steps; i++)
        origin = e->step[i].start_ns < origin ? e->step[i].start_ns : origin;
    for (size_t i = 0; i < e->n_requests; i++) {
        const struct otlp_request *r = &e->request[i];
        const vt_ns at[] = {otlp_arrival(o, r, &front), r->scheduled_ns,
                            r->first_token_ns, r->finished_ns};

        for (size_t k = 0; r->known && k < VT_COUNT(at); k++)
            origin = at[k] < origin ? at[k] : origin;
    }
    return origin == VT_NEVER ? 0 : origin;
}

static int add_capture(struct vt_otlp *o, const char *name,
                       struct vt_otlp_capture **out, struct vt_err *err)
{
    int rc = vt_grow(&o->capture, &o->cap_captures, o->n_captures + 1,
                     sizeof(*o->capture), err);

    if (rc != VT_OK)
        return rc;
    *out = &o->capture[o->n_captures++];
    **out = (struct vt_otlp_capture){.name = name};
    return VT_OK;
}

static int add_engine(struct vt_otlp *o, size_t i, bool alone, struct vt_err *err)
{
    struct otlp_engine *e = &o->engine[i];
    struct vt_otlp_capture *c;
    vt_ns origin;
    int rc = add_capture(o, e->name, &c, err);

    if (rc != VT_OK)
        return rc;
    otlp_link(o, e);
    origin = find_origin(o, e);
    if ((rc = otlp_make_steps(o, e, origin, &c->steps, err)) ||
        (rc = otlp_make_batches(o, e, origin, c, err)) ||
        (rc = otlp_make_work(o, e, origin, c, err)))
        return rc;
    return otlp_make_kv(o, i, alone, origin, c, err);
}

int vt_otlp_finish(struct vt_otlp *o, struct vt_err *err)
{
    struct vt_otlp_capture *c;
    size_t n_told = 0;
    bool is_any_use = false;
    int rc = VT_OK;

    otlp_sort_fronts(o);
    for (size_t i = 0; i < o->n_engines; i++)
        n_told += has_told(&o->engine[i]);
    for (size_t i = 0; i < o->n_engines && rc == VT_OK; i++)
        if (has_told(&o->engine[i]))
            rc = add_engine(o, i, n_told == 1, err);
    if (rc == VT_OK && o->n_calls > 0 && !(rc = add_capture(o, "llm_request", &c, err)))
        rc = otlp_make_calls(o, c, err);
    for (size_t i = 0; i < o->n_kv; i++)
        o->stats.kv_events[o->kv[i].kind]++;
    for (size_t i = 0; i < o->n_captures; i++)
        is_any_use |= o->capture[i].steps.n > 0 || o->capture[i].work.n > 0;
    if (rc == VT_OK && !is_any_use && !(o->options.kv_alone && o->n_kv > 0))
        rc = vt_fail(err, VT_EINPUT,
                     "%s: neither a step nor a request whose time is known",
                     o->source ? o->source : "OTLP");
    return rc;
}
