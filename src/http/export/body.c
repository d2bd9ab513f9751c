/* body.c - steps as events, and what is sent at once: the spans of the API
 * server and of each engine, a resource each. */
#include <inttypes.h>

#include "http/export/impl.h"

/* ---- steps -------------------------------------------------------------- */

static void put_summary(struct vt_buf *b, const struct export_names *names,
                        const struct export_step_note *n)
{
    int64_t start = export_mono_ns(names, n->start_ns);
    int64_t end = export_mono_ns(names, n->end_ns);

    export_event_begin(b, "step.BATCH_SUMMARY", n->end_ns);
    export_attr_u64(b, "step.id", n->id);
    export_attr_u64(b, "step.ts_start_ns", (uint64_t)start);
    export_attr_u64(b, "step.ts_end_ns", (uint64_t)end);
    export_attr_u64(b, "step.duration_us",
                    end > start ? (uint64_t)(end - start) / 1000 : 0);
    export_attr_u64(b, "queue.running_depth", n->running);
    export_attr_u64(b, "queue.waiting_depth", n->waiting);
    export_attr_u64(b, "batch.num_prefill_reqs", n->prefills);
    export_attr_u64(b, "batch.num_decode_reqs", n->decodes);
    export_attr_u64(b, "batch.scheduled_tokens",
                    (uint64_t)n->prefill_tokens + n->decode_tokens);
    export_attr_u64(b, "batch.prefill_tokens", n->prefill_tokens);
    export_attr_u64(b, "batch.decode_tokens", n->decode_tokens);
    export_attr_u64(b, "batch.num_finished", n->finished);
    export_attr_u64(b, "batch.num_preempted", n->preempted);
    export_attr_f64(b, "kv.usage_gpu_ratio", n->kv_usage);
    if (n->blocks > 0) {
        export_attr_u64(b, "kv.blocks_total_gpu", n->blocks);
        export_attr_u64(b, "kv.blocks_free_gpu", n->free_blocks);
    }
    export_event_end(b);
}

static void put_snapshot(struct vt_buf *b, const struct export_step_note *n,
                         const struct export_item *item)
{
    char id[32];

    snprintf(id, sizeof(id), "req-%" PRIu64, item->tag);
    export_event_begin(b, "step.REQUEST_SNAPSHOT", n->end_ns);
    export_attr_u64(b, "step.id", n->id);
    export_attr_str(b, "request.id", id);
    export_attr_str(b, "request.phase", item->decodes ? "DECODE" : "PREFILL");
    export_attr_u64(b, "request.num_prompt_tokens", item->prompt);
    export_attr_u64(b, "request.num_computed_tokens", item->computed);
    export_attr_u64(b, "request.num_output_tokens", item->output);
    export_attr_u64(b, "request.scheduled_tokens_this_step", item->tokens);
    if (item->blocks != UINT32_MAX)
        export_attr_u64(b, "kv.blocks_allocated_gpu", item->blocks);
    if (item->effective != UINT32_MAX)
        export_attr_u64(b, "request.effective_prompt_len", item->effective);
    export_event_end(b);
}

void export_put_step(struct export_body *b, const struct export_names *names,
                     const struct export_step_note *n)
{
    const struct export_item *item = (const void *)(n + 1);
    struct export_part *part = export_part_of(b, n->engine);

    if (!part)
        return;
    if (!part->has_steps) {
        part->first = n->id;
        part->start_ns = n->start_ns;
    }
    part->has_steps = true;
    part->last = n->id;
    part->end_ns = n->end_ns;
    put_summary(&part->events, names, n);
    for (uint32_t i = 0; i < n->n_items; i++)
        put_snapshot(&part->events, n, &item[i]);
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
static void resource_begin(struct vt_buf *b, const struct export_names *names,
                           const char *role)
{
    char instance[64];

    if (b->failed)
        return;
    if (b->data[b->len - 1] == '}')
        vt_buf_char(b, ',');
    snprintf(instance, sizeof(instance), "%s-%s", names->instance, role);
    vt_buf_str(b, "{\"resource\":{\"attributes\":[");
    export_attr_str(b, "telemetry.sdk.language", "c");
    export_attr_str(b, "telemetry.sdk.name", "vtwin");
    export_attr_str(b, "telemetry.sdk.version", VT_VERSION);
    export_attr_str(b, "service.instance.id", instance);
    export_attr_str(b, "service.name", names->service);
    vt_buf_str(b, "]},\"scopeSpans\":[");
}

static void put_scope(struct vt_buf *b, const char *name, struct vt_buf *spans)
{
    if (spans->failed)
        b->failed = true;
    if (spans->len == 0 || b->failed) {
        vt_buf_clear(spans);
        return;
    }
    if (b->data[b->len - 1] == '}')
        vt_buf_char(b, ',');
    vt_buf_printf(b, "{\"scope\":{\"name\":\"%s\"},\"spans\":[", name);
    vt_buf_add(b, spans->data, spans->len);
    vt_buf_str(b, "]}");
    vt_buf_clear(spans);
}

static void put_step_span(struct vt_buf *out, struct export_part *p, struct vt_rng *rng)
{
    char name[48];
    struct export_span s = {.trace = {p->trace[0], p->trace[1]},
                            .id = vt_rng_u64(rng) | 1,
                            .name = name,
                            .kind = 1,
                            .start_ns = p->start_ns,
                            .end_ns = p->end_ns};

    p->n_spans++;
    snprintf(name, sizeof(name), "scheduler_steps_%" PRIu64, p->n_spans);
    export_span_begin(out, &s);
    export_attr_u64(out, "scheduler.span_sequence", p->n_spans);
    export_attr_u64(out, "scheduler.step_range_start", p->first);
    export_attr_u64(out, "scheduler.step_range_end", p->last);
    export_events_begin(out);
    if (p->events.len > 0)
        vt_buf_add(out, p->events.data, p->events.len);
    export_span_end(out);
}

static void put_part(struct vt_buf *b, const struct export_names *names,
                     struct export_part *p, size_t engine, struct vt_rng *rng)
{
    struct vt_buf steps = {0};
    char role[32];

    if (p->core.len == 0 && !p->core.failed && !p->has_steps)
        return;
    if ((p->trace[0] | p->trace[1]) == 0) {
        p->trace[0] = vt_rng_u64(rng);
        p->trace[1] = vt_rng_u64(rng) | 1;
    }
    snprintf(role, sizeof(role), "engine-%zu", engine);
    resource_begin(b, names, role);
    put_scope(b, "vllm.scheduler", &p->core);
    if (p->has_steps)
        put_step_span(&steps, p, rng);
    if (p->events.failed)
        b->failed = true;
    put_scope(b, "vllm.scheduler.step", &steps);
    vt_buf_str(b, "]}");
    vt_buf_free(&steps);
    vt_buf_clear(&p->events);
    p->has_steps = false;
}

void export_put_body(struct export_body *b, const struct export_names *names,
                     struct vt_rng *rng)
{
    struct vt_buf *t = &b->text;

    vt_buf_clear(t);
    vt_buf_str(t, "{\"resourceSpans\":[");
    if (b->api.len > 0 || b->api.failed) {
        resource_begin(t, names, "api");
        put_scope(t, names->journey ? "vllm.api" : "vllm.tracing.otel", &b->api);
        vt_buf_str(t, "]}");
    }
    for (size_t i = 0; i < b->n_parts; i++)
        put_part(t, names, &b->part[i], i, rng);
    vt_buf_str(t, "]}");
    b->n = 0;
}
