/* journey.c - spans of single requests: the API server's and the engine's view of
 * a journey, and upstream vLLM's summary of a finished request. */
#include "trace/otlp/otlp.h"

/* ---- events ----------------------------------------------------------- */

struct event {
    const char *word; /* QUEUED of journey.QUEUED */
    vt_ns at_ns, unix_ns;
    double seconds;
    uint64_t step;
    uint32_t prompt, done, max_tokens, preemptions; /* UINT32_MAX: not stated */
    const char *finish;                             /* NULL: not stated */
};

#define FIELD(name, type, need, member) \
    {name, type, need, offsetof(struct event, member)}

static const struct otlp_field core_fields[] = {
    FIELD("ts.monotonic", OTLP_F64, VT_OPTIONAL, seconds),
    FIELD("ts.monotonic_ns", OTLP_NS, VT_OPTIONAL, at_ns),
    FIELD("scheduler.step", OTLP_U64, VT_OPTIONAL, step),
    FIELD("prefill.total_tokens", OTLP_U32, VT_OPTIONAL, prompt),
    FIELD("decode.done_tokens", OTLP_U32, VT_OPTIONAL, done),
    FIELD("decode.max_tokens", OTLP_U32, VT_OPTIONAL, max_tokens),
    FIELD("num_preemptions", OTLP_U32, VT_OPTIONAL, preemptions),
    FIELD("finish.status", OTLP_STR, VT_OPTIONAL, finish),
};
static const struct otlp_field api_fields[] = {
    FIELD("event.ts.monotonic", OTLP_F64, VT_OPTIONAL, seconds),
};

struct event_kinds {          /* what a span's events of interest look like */
    const char *const *words; /* end with NULL */
    const struct otlp_field *fields;
    size_t n_fields;
    const char *time_key;
};

static int read_event(const struct vt_node *node, const struct event_kinds *k,
                      struct event *ev, struct vt_err *err)
{
    const struct vt_node *attributes;
    int rc = otlp_event(node, &ev->word, &attributes, err);

    if (rc != VT_OK)
        return rc;
    *ev = (struct event){.word = ev->word,
                         .at_ns = -1,
                         .seconds = -1,
                         .step = UINT64_MAX,
                         .prompt = UINT32_MAX,
                         .done = UINT32_MAX,
                         .max_tokens = UINT32_MAX,
                         .preemptions = UINT32_MAX};
    if (!(rc = otlp_get_ns(node, "timeUnixNano", &ev->unix_ns, err)) &&
        !(rc = otlp_read(attributes, k->fields, k->n_fields, ev, err)) &&
        ev->at_ns <= 0) { /* its own clock, without nanoseconds: by the seconds */
        if (ev->seconds < 0 || ev->seconds > 1e9)
            rc = vt_fail(err, VT_EINPUT, "attribute '%s' is %s", k->time_key,
                         ev->seconds < 0 ? "missing" : "out of range");
        else
            ev->at_ns = otlp_ns_from_s(ev->seconds);
    }
    return vt_within(err, rc, "event '%.60s'", otlp_get_text(node, "name"));
}

/* The next one from *next on; ev->word is NULL behind the last. Tracers add events of
 * their own, such as "exception". A nameless one is malformed. */
static int next_event(const struct otlp_span *s, const struct event_kinds *k,
                      uint32_t *next, struct event *ev, struct vt_err *err)
{
    for (; s->events && *next < s->events->n; ++*next) {
        const struct vt_node *node = &s->events->u.item[*next];
        const char *name = otlp_get_text(node, "name");
        const char *const *word = k->words;

        while (name && *word && strcmp(otlp_last_word(name), *word) != 0)
            word++;
        if (*word) {
            ++*next;
            return read_event(node, k, ev, err);
        }
    }
    ev->word = NULL;
    return VT_OK;
}

/* ---- the engine's view ------------------------------------------------ */

struct core { /* a span while it is read */
    struct otlp_request r;
    struct otlp_mark *mark;
    size_t n_marks, cap_marks;
    size_t n_events;
};

static int add_mark(struct core *c, const struct event *ev, enum otlp_event event,
                    bool is_result, struct vt_err *err)
{
    int rc = VT_OK;

    if (ev->step == UINT64_MAX)
        return VT_OK;
    rc = vt_grow(&c->mark, &c->cap_marks, c->n_marks + 1, sizeof(*c->mark), err);
    if (rc == VT_OK)
        c->mark[c->n_marks++] = (struct otlp_mark){.step = ev->step,
                                                   .at_ns = ev->at_ns,
                                                   .event = (uint8_t)event,
                                                   .is_result = is_result};
    return rc;
}

static int core_event(struct core *c, const struct event *ev, struct vt_err *err)
{
    int rc = VT_OK;

    if (strcmp(ev->word, "QUEUED") == 0) {
        c->r.queued_ns = ev->at_ns;
    } else if (strcmp(ev->word, "SCHEDULED") == 0) {
        if (c->r.scheduled_ns == VT_NEVER)
            c->r.scheduled_ns = ev->at_ns;
        rc = add_mark(c, ev, OTLP_SCHEDULED, false, err);
    } else if (strcmp(ev->word, "FIRST_TOKEN") == 0) {
        c->r.first_token_ns = ev->at_ns;
        rc = add_mark(c, ev, OTLP_FIRST_TOKEN, true, err);
    } else if (strcmp(ev->word, "PREEMPTED") == 0) {
        rc = add_mark(c, ev, OTLP_PREEMPTED, false, err);
    } else if (ev->done == UINT32_MAX) {
        rc = vt_fail(err, VT_EINPUT,
                     "event 'journey.FINISHED': attribute 'decode.done_tokens' is "
                     "missing");
    } else if (ev->done > OTLP_MAX_OUTPUT) {
        rc = vt_fail(err, VT_EINPUT, "more than %d output tokens", OTLP_MAX_OUTPUT);
    } else {
        c->r.finished_ns = ev->at_ns;
        c->r.output = ev->done;
        c->r.finish = ev->finish;
        rc = add_mark(c, ev, OTLP_FINISHED,
                      !ev->finish || strcmp(ev->finish, "aborted") != 0, err);
    }
    if (c->n_events++ == 0)
        c->r.to_unix_ns = ev->unix_ns - ev->at_ns;
    if (ev->prompt != UINT32_MAX)
        c->r.prompt = ev->prompt;
    if (ev->max_tokens != UINT32_MAX)
        c->r.max_tokens = ev->max_tokens;
    if (ev->preemptions != UINT32_MAX && ev->preemptions > c->r.preemptions)
        c->r.preemptions = ev->preemptions;
    return rc;
}

static int core_events(struct core *c, const struct otlp_span *s, struct vt_err *err)
{
    static const char *const words[] = {"QUEUED",    "SCHEDULED", "FIRST_TOKEN",
                                        "PREEMPTED", "FINISHED",  NULL};
    static const struct event_kinds kinds = {words, core_fields, VT_COUNT(core_fields),
                                             "ts.monotonic_ns"};
    struct event ev;
    uint32_t next = 0;
    int rc;

    while ((rc = next_event(s, &kinds, &next, &ev, err)) == VT_OK && ev.word)
        if ((rc = core_event(c, &ev, err)))
            return rc;
    if (rc == VT_OK && c->n_events == 0)
        rc = vt_fail(err, VT_EINPUT, "it has no journey event");
    return rc;
}

/* Keeps the request and its marks. */
static int keep_core(struct vt_otlp *o, const struct otlp_span *s, struct core *c,
                     const char *id, struct vt_err *err)
{
    struct otlp_engine *e = &o->engine[s->engine];
    struct otlp_request *r;
    uint32_t index;
    int rc;

    if ((rc = otlp_find_request(o, e, id, &index, err)) ||
        (rc = vt_grow(&e->mark, &e->cap_marks, e->n_marks + c->n_marks,
                      sizeof(*e->mark), err)))
        return rc;
    r = &e->request[index];
    if (r->known) {
        o->stats.repeated++;
        return VT_OK;
    }
    if ((rc = vt_arena_text(&o->arena, c->r.finish, &c->r.finish, err)))
        return rc;
    c->r.id = r->id;
    *r = c->r;
    for (size_t i = 0; i < c->n_marks; i++) {
        c->mark[i].request = index;
        c->mark[i].order = e->n_marks;
        e->mark[e->n_marks++] = c->mark[i];
    }
    return VT_OK;
}

int otlp_read_core(struct vt_otlp *o, const struct otlp_span *s, struct vt_err *err)
{
    static const struct otlp_field field = {"gen_ai.request.id", OTLP_STR, VT_REQUIRED,
                                            0};
    struct core c = {.r = otlp_unseen};
    const char *id = NULL;
    int rc;

    c.r.known = true;
    c.r.parent = s->parent;
    c.r.line = s->line;
    if (!(rc = otlp_read(s->attributes, &field, 1, &id, err)) &&
        !(rc = core_events(&c, s, err)))
        rc = keep_core(o, s, &c, id, err);
    free(c.mark);
    return rc;
}

/* ---- the API server's view -------------------------------------------- */

int otlp_read_front(struct vt_otlp *o, const struct otlp_span *s, struct vt_err *err)
{
    static const char *const words[] = {"ARRIVED", "HANDOFF_TO_CORE", "DEPARTED", NULL};
    static const struct event_kinds kinds = {words, api_fields, VT_COUNT(api_fields),
                                             "event.ts.monotonic"};
    struct otlp_front f = {.key = s->key,
                           .start_unix_ns = s->start_unix_ns,
                           .arrived_ns = VT_NEVER,
                           .handoff_ns = VT_NEVER,
                           .departed_ns = VT_NEVER};
    static const struct otlp_field model_field = {"gen_ai.response.model", OTLP_STR,
                                                  VT_OPTIONAL, 0};
    const char *model = NULL;
    struct event ev;
    uint32_t next = 0;
    int rc;

    while ((rc = next_event(s, &kinds, &next, &ev, err)) == VT_OK && ev.word) {
        if (strcmp(ev.word, "HANDOFF_TO_CORE") == 0) {
            f.handoff_ns = ev.at_ns;
        } else if (strcmp(ev.word, "DEPARTED") == 0) {
            f.departed_ns = ev.at_ns;
        } else {
            f.arrived_ns = ev.at_ns;
            f.to_unix_ns = ev.unix_ns - ev.at_ns;
        }
    }
    if (rc == VT_OK && f.arrived_ns == VT_NEVER)
        rc = vt_fail(err, VT_EINPUT, "it has no event 'api.ARRIVED'");
    if (rc || (rc = otlp_read(s->attributes, &model_field, 1, &model, err)))
        return rc;
    if ((!o->model && (rc = vt_arena_text(&o->arena, model, &o->model, err))) ||
        (rc = vt_grow(&o->front, &o->cap_fronts, o->n_fronts + 1, sizeof(f), err)))
        return rc;
    o->front[o->n_fronts++] = f;
    return VT_OK;
}

/* ---- upstream --------------------------------------------------------- */

#define CALL(name, type, need, member) \
    {name, type, need, offsetof(struct otlp_call, member)}

static const struct otlp_field call_fields[] = {
    CALL("gen_ai.latency.time_to_first_token", OTLP_F64, VT_REQUIRED, ttft_s),
    CALL("gen_ai.latency.e2e", OTLP_F64, VT_REQUIRED, e2e_s),
    CALL("gen_ai.latency.time_in_queue", OTLP_F64, VT_OPTIONAL, queue_s),
    CALL("gen_ai.usage.prompt_tokens", OTLP_U32, VT_REQUIRED, prompt),
    CALL("gen_ai.usage.completion_tokens", OTLP_U32, VT_REQUIRED, output),
    CALL("gen_ai.latency.time_in_model_prefill", OTLP_F64, VT_OPTIONAL, prefill_s),
    CALL("gen_ai.request.id", OTLP_STR, VT_REQUIRED, id),
    CALL("gen_ai.request.max_tokens", OTLP_U32, VT_OPTIONAL, max_tokens),
};

int otlp_read_call(struct vt_otlp *o, const struct otlp_span *s, struct vt_err *err)
{
    struct otlp_call c = {
        .start_ns = s->start_unix_ns, .queue_s = -1, .prefill_s = -1, .line = s->line};
    int rc;

    if ((rc = otlp_read(s->attributes, call_fields, VT_COUNT(call_fields), &c, err)))
        return rc;
    if (c.output > OTLP_MAX_OUTPUT)
        return vt_fail(err, VT_EINPUT, "more than %d output tokens", OTLP_MAX_OUTPUT);
    if (c.e2e_s > 1e9 || c.queue_s > 1e9 || c.prefill_s > 1e9)
        return vt_fail(err, VT_EINPUT, "a latency is out of range");
    if (c.ttft_s > c.e2e_s)
        return vt_fail(err, VT_EINPUT, "the first token comes after the end");
    if ((rc = vt_grow(&o->call, &o->cap_calls, o->n_calls + 1, sizeof(c), err)) ||
        (rc = vt_arena_text(&o->arena, c.id, &c.id, err)))
        return rc;
    o->call[o->n_calls++] = c;
    return VT_OK;
}
