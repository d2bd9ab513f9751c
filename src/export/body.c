/* body.c - steps as events, and what is sent at once: the spans of the API
 * server and of each engine, a resource each. */
#include <inttypes.h>

#include "export/impl.h"

/* ---- steps -------------------------------------------------------------- */

static void put_summary(struct vt_jw *w, const struct export_names *names,
                        const struct export_step_note *n)
{
    int64_t start = export_mono_ns(names, n->start_ns);
    int64_t end = export_mono_ns(names, n->end_ns);

    export_event_begin(w, "step.BATCH_SUMMARY", n->end_ns);
    export_attr_u64(w, "step.id", n->id);
    export_attr_u64(w, "step.ts_start_ns", (uint64_t)start);
    export_attr_u64(w, "step.ts_end_ns", (uint64_t)end);
    export_attr_u64(w, "step.duration_us",
                    end > start ? (uint64_t)(end - start) / 1000 : 0);
    export_attr_u64(w, "queue.running_depth", n->running);
    export_attr_u64(w, "queue.waiting_depth", n->waiting);
    export_attr_u64(w, "batch.num_prefill_reqs", n->prefills);
    export_attr_u64(w, "batch.num_decode_reqs", n->decodes);
    export_attr_u64(w, "batch.scheduled_tokens",
                    (uint64_t)n->prefill_tokens + n->decode_tokens);
    export_attr_u64(w, "batch.prefill_tokens", n->prefill_tokens);
    export_attr_u64(w, "batch.decode_tokens", n->decode_tokens);
    export_attr_u64(w, "batch.num_finished", n->finished);
    export_attr_u64(w, "batch.num_preempted", n->preempted);
    export_attr_f64(w, "kv.usage_gpu_ratio", n->kv_usage);
    if (n->blocks > 0) {
        export_attr_u64(w, "kv.blocks_total_gpu", n->blocks);
        export_attr_u64(w, "kv.blocks_free_gpu", n->free_blocks);
    }
    export_event_end(w);
}

static void put_move_event(struct vt_jw *w, const struct export_step_note *n,
                           const struct export_move *m, const char *name, int64_t at)
{
    char id[32];

    snprintf(id, sizeof(id), "req-%" PRIu64, m->tag);
    export_event_begin(w, name, at);
    export_attr_u64(w, "step.id", n->id);
    export_attr_u64(w, "transfer_id", m->id);
    export_attr_str(w, "request.id", id);
    export_attr_str(w, "source", m->store ? "GPU" : "CPU");
    export_attr_str(w, "destination", m->store ? "CPU" : "GPU");
    export_attr_u64(w, "block_count", m->blocks);
    export_event_end(w);
}

/* Told when it is over, with the times at which each happened. */
static void put_move(struct vt_jw *w, const struct export_step_note *n,
                     const struct export_move *m)
{
    put_move_event(w, n, m, "kv.TransferInitiated", m->given_ns);
    put_move_event(w, n, m, "kv.TransferCompleted", m->ended_ns);
    if (m->store)
        put_move_event(w, n, m, "kv.CacheStoreCommitted", m->ended_ns);
}

void export_put_step(struct export_body *b, const struct export_names *names,
                     const struct export_step_note *n)
{
    const struct export_item *item = (const void *)(n + 1);
    struct export_part *part = export_part_of(b, n->engine);
    struct vt_jw w;

    if (!part)
        return;
    if (!part->has_steps) {
        part->first = n->id;
        part->start_ns = n->start_ns;
    }
    part->has_steps = true;
    part->last = n->id;
    part->end_ns = n->end_ns;
    export_continue(&w, &part->events);
    put_summary(&w, names, n);
    for (uint32_t i = 0; i < n->n_items; i++, item++) {
        char id[32];

        snprintf(id, sizeof(id), "req-%" PRIu64, item->tag);
        export_event_begin(&w, "step.REQUEST_SNAPSHOT", n->end_ns);
        export_attr_u64(&w, "step.id", n->id);
        export_attr_str(&w, "request.id", id);
        export_attr_str(&w, "request.phase", item->decodes ? "DECODE" : "PREFILL");
        export_attr_u64(&w, "request.num_prompt_tokens", item->prompt);
        export_attr_u64(&w, "request.num_computed_tokens", item->computed);
        export_attr_u64(&w, "request.num_output_tokens", item->output);
        export_attr_u64(&w, "request.num_preemptions", item->preemptions);
        export_attr_u64(&w, "request.scheduled_tokens_this_step", item->tokens);
        if (item->blocks != UINT32_MAX)
            export_attr_u64(&w, "kv.blocks_allocated_gpu", item->blocks);
        export_attr_u64(&w, "kv.blocks_cached_gpu", item->cached_blocks);
        if (item->effective != UINT32_MAX)
            export_attr_u64(&w, "request.effective_prompt_len", item->effective);
        export_event_end(&w);
    }
    for (uint32_t i = 0; i < n->n_moves; i++)
        put_move(&w, n, (const struct export_move *)(const void *)item + i);
    b->n++;
}

/* ---- the whole ---------------------------------------------------------- */

struct export_part *export_part_of(struct export_body *b, uint32_t engine)
{
    if (engine >= EXPORT_MAX_ENGINES ||
        vt_grow(&b->part, &b->cap_parts, (size_t)engine + 1, sizeof(*b->part), NULL) !=
            VT_OK)
        return NULL;
    for (; b->n_parts <= engine; b->n_parts++)
        b->part[b->n_parts] = (struct export_part){.core.max = 0};
    return &b->part[engine];
}

size_t export_body_bytes(const struct export_body *b)
{
    size_t n = b->api.len;

    for (size_t i = 0; i < b->n_parts; i++)
        n += b->part[i].core.len + b->part[i].events.len;
    return n;
}

void export_body_free(struct export_body *b)
{
    for (size_t i = 0; i < b->n_parts; i++) {
        vt_buf_free(&b->part[i].core);
        vt_buf_free(&b->part[i].events);
    }
    free(b->part);
    vt_buf_free(&b->api);
    vt_buf_free(&b->text);
}

/* Up to its list of scopes, which is open. */
static void resource_begin(struct vt_jw *w, const struct export_names *names,
                           const char *role)
{
    char instance[64];

    snprintf(instance, sizeof(instance), "%s-%s", names->instance, role);
    vt_jw_map(w, NULL);
    vt_jw_map(w, "resource");
    vt_jw_list(w, "attributes");
    export_attr_str(w, "telemetry.sdk.language", "c");
    export_attr_str(w, "telemetry.sdk.name", "vtwin");
    export_attr_str(w, "telemetry.sdk.version", VT_VERSION);
    export_attr_str(w, "service.instance.id", instance);
    export_attr_str(w, "service.name", "vtwin");
    vt_jw_end(w);
    vt_jw_end(w);
    vt_jw_list(w, "scopeSpans");
}

/* Of a resource or scope: its list and itself. */
static void end_both(struct vt_jw *w)
{
    vt_jw_end(w);
    vt_jw_end(w);
}

static void scope_begin(struct vt_jw *w, const char *name)
{
    vt_jw_map(w, NULL);
    vt_jw_map(w, "scope");
    vt_jw_str(w, "name", name);
    vt_jw_end(w);
    vt_jw_list(w, "spans");
}

/* What was written before, members of a list; then it is empty. */
static void put_written(struct vt_jw *w, struct vt_buf *list)
{
    if (list->len > 0)
        vt_jw_raw(w, NULL, list->data, list->len);
    w->b->failed |= list->failed;
    vt_buf_clear(list);
}

static void put_scope(struct vt_jw *w, const char *name, struct vt_buf *spans)
{
    bool any = spans->len > 0;

    if (any)
        scope_begin(w, name);
    put_written(w, spans);
    if (any)
        end_both(w);
}

static void put_part(struct vt_jw *w, const struct export_names *names,
                     struct export_part *p, size_t engine, struct vt_rng *rng)
{
    char role[32], name[48];

    if (p->core.len == 0 && !p->core.failed && !p->has_steps)
        return;
    if ((p->trace[0] | p->trace[1]) == 0) {
        p->trace[0] = vt_rng_u64(rng);
        p->trace[1] = vt_rng_u64(rng) | 1;
    }
    snprintf(role, sizeof(role), "engine-%zu", engine);
    resource_begin(w, names, role);
    put_scope(w, "vllm.scheduler", &p->core);
    if (p->has_steps) {
        struct export_span s = {.trace = {p->trace[0], p->trace[1]},
                                .id = vt_rng_u64(rng) | 1,
                                .name = name,
                                .kind = 1,
                                .start_ns = p->start_ns,
                                .end_ns = p->end_ns};

        p->n_spans++;
        snprintf(name, sizeof(name), "scheduler_steps_%" PRIu64, p->n_spans);
        scope_begin(w, "vllm.scheduler.step");
        export_span_begin(w, &s);
        export_attr_u64(w, "scheduler.span_sequence", p->n_spans);
        export_attr_u64(w, "scheduler.step_range_start", p->first);
        export_attr_u64(w, "scheduler.step_range_end", p->last);
        export_events_begin(w);
        put_written(w, &p->events);
        export_span_end(w);
        end_both(w);
    }
    end_both(w);
    p->has_steps = false;
}

void export_put_body(struct export_body *b, const struct export_names *names,
                     struct vt_rng *rng)
{
    struct vt_jw w;

    vt_buf_clear(&b->text);
    vt_jw_init(&w, &b->text, NULL);
    vt_jw_map(&w, NULL);
    vt_jw_list(&w, "resourceSpans");
    if (b->api.len > 0 || b->api.failed) {
        resource_begin(&w, names, "api");
        put_scope(&w, names->journey ? "vllm.api" : "vllm.tracing.otel", &b->api);
        end_both(&w);
    }
    for (size_t i = 0; i < b->n_parts; i++)
        put_part(&w, names, &b->part[i], i, rng);
    vt_jw_end(&w);
    vt_jw_end(&w);
    b->n = 0;
}
