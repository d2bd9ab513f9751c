/* json.c - records as OTLP's JSON: 64-bit numbers are strings there, ids hex.
 * The spans are upstream vLLM's llm_request, or with journeys those of the fork that
 * traces them: llm_request of the API server and llm_core of the engine, its child. */
#include <inttypes.h>
#include <math.h>

#include "export/impl.h"

/* ---- attributes --------------------------------------------------------- */

/* By far the most of what is written: each in one go. Keys need no escapes. */
void export_attr_str(struct vt_jw *w, const char *key, const char *value)
{
    vt_jw_printf(w, NULL, "{\"key\":\"%s\",\"value\":{\"stringValue\":", key);
    vt_buf_json_str(w->b, value, strlen(value));
    vt_buf_str(w->b, "}}");
}

void export_attr_u64(struct vt_jw *w, const char *key, uint64_t value)
{
    vt_jw_printf(w, NULL, "{\"key\":\"%s\",\"value\":{\"intValue\":\"%" PRIu64 "\"}}",
                 key, value);
}

void export_attr_f64(struct vt_jw *w, const char *key, double value)
{
    vt_jw_printf(w, NULL, "{\"key\":\"%s\",\"value\":{\"doubleValue\":", key);
    vt_buf_f64(w->b, value);
    vt_buf_str(w->b, "}}");
}

int64_t export_unix_ns(double unix_s)
{
    return unix_s > 0 && unix_s < 3e9 ? llround(unix_s * 1e9) : 0;
}

int64_t export_mono_ns(const struct export_names *names, int64_t unix_ns)
{
    return unix_ns > names->base_ns ? unix_ns - names->base_ns : 1;
}

/* ---- spans -------------------------------------------------------------- */

void export_span_begin(struct vt_jw *w, const struct export_span *s)
{
    vt_jw_map(w, NULL);
    vt_jw_printf(w, "traceId", "\"%016" PRIx64 "%016" PRIx64 "\"", s->trace[0],
                 s->trace[1]);
    vt_jw_printf(w, "spanId", "\"%016" PRIx64 "\"", s->id);
    if (s->parent)
        vt_jw_printf(w, "parentSpanId", "\"%016" PRIx64 "\"", s->parent);
    vt_jw_u64(w, "flags", 256);
    vt_jw_str(w, "name", s->name);
    vt_jw_i64(w, "kind", s->kind);
    vt_jw_printf(w, "startTimeUnixNano", "\"%" PRId64 "\"", s->start_ns);
    vt_jw_printf(w, "endTimeUnixNano", "\"%" PRId64 "\"", s->end_ns);
    vt_jw_list(w, "attributes");
}

void export_events_begin(struct vt_jw *w)
{
    vt_jw_end(w);
    vt_jw_list(w, "events");
}

void export_span_end(struct vt_jw *w)
{
    vt_jw_end(w);
    vt_jw_raw(w, "status", "{}", 2);
    vt_jw_end(w);
}

void export_event_begin(struct vt_jw *w, const char *name, int64_t unix_ns)
{
    vt_jw_map(w, NULL);
    vt_jw_printf(w, "timeUnixNano", "\"%" PRId64 "\"", unix_ns);
    vt_jw_str(w, "name", name);
    vt_jw_list(w, "attributes");
}

void export_event_end(struct vt_jw *w)
{
    vt_jw_end(w);
    vt_jw_end(w);
}

/* ---- requests ----------------------------------------------------------- */

static void put_front_event(struct vt_jw *w, const struct export_names *names,
                            const char *name, double unix_s)
{
    int64_t at = export_unix_ns(unix_s);

    export_event_begin(w, name, at);
    export_attr_f64(w, "event.ts.monotonic", (double)export_mono_ns(names, at) / 1e9);
    export_event_end(w);
}

/* ---- journeys ----------------------------------------------------------- */

static const char *const stage_name[EXPORT_STAGES] = {
    "QUEUED", "SCHEDULED", "FIRST_TOKEN", "PREEMPTED", "FINISHED"};

static const char *phase_of(const struct export_event *e)
{
    if (e->stage == EXPORT_QUEUED)
        return "WAITING";
    return e->output_done > 0 || e->stage == EXPORT_FIRST_TOKEN ? "DECODE" : "PREFILL";
}

static void put_stage(struct vt_jw *w, const struct export_names *names,
                      const struct export_note *n, const struct export_event *e,
                      uint32_t preemptions, uint64_t earliest)
{
    int64_t at = export_unix_ns(e->unix_s), mono = export_mono_ns(names, at);
    bool token = e->stage == EXPORT_FIRST_TOKEN || e->stage == EXPORT_FINISHED;
    uint32_t done = e->output_done;
    char name[32];

    if (e->stage == EXPORT_FINISHED)
        done = n->r.output_tokens;
    else if (e->stage == EXPORT_FIRST_TOKEN && done == 0)
        done = 1;
    snprintf(name, sizeof(name), "journey.%s", stage_name[e->stage]);
    export_event_begin(w, name, at);
    export_attr_str(w, "event.type", stage_name[e->stage]);
    export_attr_f64(w, "ts.monotonic", (double)mono / 1e9);
    export_attr_u64(w, "ts.monotonic_ns", (uint64_t)mono);
    /* The scheduler's count when it happened. With two steps in flight the next one has
     * begun when a token comes. `earliest` is the first step it can have come from. */
    if (e->step < UINT64_MAX && (!token || e->step >= earliest))
        export_attr_u64(w, "scheduler.step",
                        e->step + (token                       ? names->in_flight
                                   : e->stage == EXPORT_QUEUED ? 0
                                                               : 1));
    export_attr_str(w, "phase", phase_of(e));
    export_attr_u64(w, "prefill.done_tokens", e->prompt_done);
    export_attr_u64(w, "prefill.total_tokens", n->r.prompt_tokens);
    export_attr_u64(w, "decode.done_tokens", done);
    export_attr_u64(w, "decode.max_tokens", n->r.max_tokens);
    export_attr_u64(w, "num_preemptions", preemptions);
}

static void put_stages(struct vt_jw *w, const struct export_names *names,
                       const struct export_note *n, const struct export_event *event,
                       uint32_t n_events, const char *finish)
{
    uint32_t preemptions = 0, scheduled = 0;
    uint64_t earliest = 1;

    for (uint32_t i = 0; i < n_events; i++) {
        const struct export_event *e = &event[i];

        preemptions += e->stage == EXPORT_PREEMPTED;
        if (e->stage == EXPORT_SCHEDULED && scheduled == 0)
            earliest = e->step;
        put_stage(w, names, n, e, preemptions, earliest);
        if (e->stage == EXPORT_SCHEDULED)
            export_attr_str(w, "schedule.kind", scheduled++ ? "RESUME" : "FIRST");
        if (e->stage == EXPORT_FINISHED)
            export_attr_str(w, "finish.status",
                            strcmp(finish, "stop") == 0    ? "stopped"
                            : strcmp(finish, "abort") == 0 ? "aborted"
                                                           : finish);
        export_event_end(w);
    }
}

static void put_core(struct export_body *body, const struct export_names *names,
                     const struct export_note *n, const struct export_span *parent,
                     const struct export_event *event, const char *id,
                     const char *finish, uint64_t span_id)
{
    const struct export_request *r = &n->r;
    const struct export_event made[] = {
        {EXPORT_QUEUED, r->queued_s, UINT64_MAX, 0, 0},
        {EXPORT_SCHEDULED, r->scheduled_s, UINT64_MAX, 0, 0},
        {EXPORT_FIRST_TOKEN, r->first_s, UINT64_MAX, r->prompt_tokens, 1},
        {EXPORT_FINISHED, r->last_s, UINT64_MAX, r->prompt_tokens, r->output_tokens},
    };
    bool there[EXPORT_STAGES] = {0};
    struct export_part *part = export_part_of(body, r->engine);
    struct export_span s = *parent;
    struct vt_jw w;
    char name[32];

    if (!part)
        return;
    for (uint32_t i = 0; i < r->n_events; i++)
        there[event[i].stage] = true;
    snprintf(name, sizeof(name), "req-%" PRIu64, n->r.tag);
    s.parent = parent->id;
    s.id = span_id;
    s.name = "llm_core";
    s.kind = 1;
    s.start_ns = export_unix_ns(n->r.queued_s);
    export_continue(&w, &part->core);
    export_span_begin(&w, &s);
    export_attr_str(&w, "gen_ai.request.id", n->r.tag ? name : id);
    export_events_begin(&w);
    put_stages(&w, names, n, event, n->r.n_events, finish);
    /* What was not noted on the way, or had no room any more. */
    for (size_t i = 0; i < VT_COUNT(made); i++)
        if (!there[made[i].stage] && made[i].unix_s > 0)
            put_stages(&w, names, n, &made[i], 1, finish);
    export_span_end(&w);
}

void export_put_request(struct export_body *b, const struct export_names *names,
                        const struct export_note *n, struct vt_rng *rng)
{
    const struct export_event *event = (const void *)(n + 1);
    const char *id = (const char *)(event + n->r.n_events), *finish = id + n->id_bytes;
    const struct export_request *r = &n->r;
    const struct {
        const char *name;
        double from, to;
    } latency[] = {
        {"time_to_first_token", r->arrival_s, r->first_s},
        {"e2e", r->arrival_s, r->last_s},
        {"time_in_queue", r->queued_s, r->scheduled_s},
        {"time_in_model_prefill", r->scheduled_s, r->first_s},
        {"time_in_model_decode", r->first_s, r->last_s},
        {"time_in_model_inference", r->scheduled_s, r->last_s},
    };
    struct export_span s = {.trace = {n->trace[0], n->trace[1]},
                            .parent = n->parent,
                            .id = vt_rng_u64(rng) | 1,
                            .name = "llm_request",
                            .kind = 2,
                            .start_ns = export_unix_ns(n->r.arrival_s),
                            .end_ns = export_unix_ns(n->r.last_s)};
    struct vt_jw w;

    if (!n->parent) {
        s.trace[0] = vt_rng_u64(rng);
        s.trace[1] = vt_rng_u64(rng) | 1;
    }
    if (names->core_only) { /* the parent, if there is one, is in another's spans */
        s.id = n->parent;
        put_core(b, names, n, &s, event, id, finish, vt_rng_u64(rng) | 1);
        b->n++;
        return;
    }
    export_continue(&w, &b->api);
    export_span_begin(&w, &s);
    for (size_t i = 0; i < VT_COUNT(latency); i++) { /* in upstream's order */
        char key[64];

        snprintf(key, sizeof(key), "gen_ai.latency.%s", latency[i].name);
        export_attr_f64(
            &w, key,
            latency[i].to > latency[i].from ? latency[i].to - latency[i].from : 0);
        if (i == 2) {
            export_attr_u64(&w, "gen_ai.usage.prompt_tokens", r->prompt_tokens);
            export_attr_u64(&w, "gen_ai.usage.completion_tokens", r->output_tokens);
        }
    }
    export_attr_str(&w, "gen_ai.request.id", id);
    if (names->journey)
        export_attr_str(&w, "gen_ai.response.model", names->model);
    if (isfinite(r->temperature))
        export_attr_f64(&w, "gen_ai.request.temperature", r->temperature);
    if (isfinite(r->top_p))
        export_attr_f64(&w, "gen_ai.request.top_p", r->top_p);
    export_attr_u64(&w, "gen_ai.request.max_tokens", r->max_tokens);
    export_attr_u64(&w, "gen_ai.request.n", r->n);
    export_events_begin(&w);
    if (names->journey) {
        put_front_event(&w, names, "api.ARRIVED", n->r.arrival_s);
        put_front_event(&w, names, "api.HANDOFF_TO_CORE", n->r.queued_s);
        put_front_event(&w, names, "api.FIRST_RESPONSE_FROM_CORE", n->r.first_s);
        put_front_event(&w, names, "api.DEPARTED", n->r.last_s);
    }
    export_span_end(&w);
    if (names->journey)
        put_core(b, names, n, &s, event, id, finish, vt_rng_u64(rng) | 1);
    b->n++;
}
