/* row.c - what the trace says: its meta line, and one line for each request.
 *
 * Fields that vllm-vcr's traces have too are written by the room of traces; the others
 * are listed in docs/trace-format.md. */
#include "wire/tap/tap.h"

static void put_span(struct vt_jw *w, const char *key, struct mp_span text)
{
    if (text.at)
        vt_jw_strn(w, key, (const char *)text.at, text.len);
}

/* A value that is not nil. What the readers of traces would refuse (keys that repeat,
 * deep nesting) is left out, or one request could spoil the file. */
static void put_value(struct vt_jw *w, const char *key, struct mp_span value,
                      struct vt_arena *scratch)
{
    const struct vt_node *ignored;
    struct vt_buf text = {0};

    if (mp_is_nil(value))
        return;
    if (mp_json(&text, value) && !text.failed &&
        vt_json_parse(scratch, text.data, text.len, 1, &ignored, NULL) == VT_OK)
        vt_jw_raw(w, key, text.data, text.len);
    w->b->failed |= text.failed;
    vt_buf_free(&text);
}

static void put_unix(struct vt_jw *w, const char *key, int64_t unix_ns)
{
    vt_jw_printf(w, key, "%lld.%06lld", (long long)(unix_ns / VT_SEC),
                 (long long)(unix_ns % VT_SEC / VT_US));
}

/* ---- what a request asks for ------------------------------------------ */

/* Of each image or sound, its hash. */
static void put_mm_hashes(struct vt_jw *w, struct mp_span features)
{
    struct mp_in in;
    uint32_t n, shown = 0;

    if (mp_is_nil(features))
        return;
    mp_in_init(&in, features.at, features.len);
    n = mp_array(&in);
    for (uint32_t i = 0; i < n && !in.bad; i++) {
        struct mp_span hash = mp_text(mp_get(mp_raw(&in), "mm_hash"));

        if (!hash.at)
            continue;
        if (shown++ == 0)
            vt_jw_list(w, "mm_hashes");
        put_span(w, NULL, hash);
    }
    if (shown > 0)
        vt_jw_end(w);
}

void tap_row_asked(struct tap_request *q, const struct wire_request *r,
                   struct vt_arena *scratch)
{
    struct mp_span transfer =
        mp_get(mp_get(r->sampling, "extra_args"), "kv_transfer_params");
    struct mp_span remote = mp_get(transfer, "do_remote_prefill");
    struct wire_sampling s;
    struct wire_lora lora;
    struct vt_jw w;

    q->prompt_tokens =
        r->n_prompt ? r->n_prompt : wire_embedded_tokens(r->prompt_embeds);
    q->priority = r->priority;
    /* The prompt was computed by another engine: its first token costs no prefill. */
    q->remote_prefill = remote.at && remote.len == 1 && *remote.at == 0xc3;
    if (!mp_is_nil(r->sampling) &&
        wire_sampling_read(&s, scratch, r->sampling, NULL) == VT_OK &&
        s.max_tokens != UINT32_MAX)
        q->max_tokens = s.max_tokens;
    vt_jw_members(&w, &q->asked, NULL, true);
    put_unix(&w, "start_unix", q->arrival.unix_ns);
    vt_jw_f64(&w, "arrival_time", r->arrival_time);
    vt_jw_u64(&w, "client_index", q->client);
    vt_jw_u64(&w, "engine_index", q->engine);
    put_span(&w, "external_id", r->external_id);
    put_value(&w, "sampling", r->sampling, scratch);
    put_value(&w, "pooling", r->pooling, scratch);
    if (wire_lora_read(&lora, r->lora, NULL) == VT_OK)
        put_span(&w, "lora", lora.name);
    if (!mp_is_nil(r->cache_salt))
        vt_jw_bool(&w, "cache_salt", true);
    put_mm_hashes(&w, r->mm_features);
    put_value(&w, "session_id", r->session_id, scratch);
    put_value(&w, "trace_headers", r->trace_headers, scratch);
}

/* ---- what became of it ------------------------------------------------ */

void tap_row_events(struct tap_request *q, const struct wire_output *o)
{
    static const char *const names[] = {[WIRE_QUEUED] = "QUEUED",
                                        [WIRE_SCHEDULED] = "SCHEDULED",
                                        [WIRE_PREEMPTED] = "PREEMPTED"};

    for (uint32_t i = 0; i < o->n_events; i++) {
        const struct wire_event *e = &o->event[i];
        const char *name =
            e->type >= 0 && (size_t)e->type < VT_COUNT(names) ? names[e->type] : NULL;

        if (e->type == WIRE_QUEUED && q->queued <= 0)
            q->queued = e->timestamp;
        if (e->type == WIRE_SCHEDULED && q->scheduled <= 0)
            q->scheduled = e->timestamp;
        q->preemptions += e->type == WIRE_PREEMPTED;
        vt_buf_str(&q->events, q->events.len > 0 ? ",[" : "[");
        if (name)
            vt_buf_json_str(&q->events, name, strlen(name));
        else
            vt_buf_i64(&q->events, e->type);
        vt_buf_char(&q->events, ',');
        vt_buf_f64(&q->events, e->timestamp);
        vt_buf_char(&q->events, ']');
    }
}

static void put_became(struct vt_jw *w, const struct tap_request *q,
                       const struct tap_end *end, struct vt_arena *scratch)
{
    double queue_s = q->scheduled - q->queued;

    put_value(w, "stop_reason", end->stop_reason, scratch);
    if (end->aborted_by)
        vt_jw_str(w, "aborted_by", end->aborted_by);
    if (q->queued > 0 && q->scheduled > 0 && queue_s >= 0 && queue_s < 1e6)
        vt_jw_ms(w, "queue_ms", vt_ns_from_ms(queue_s * 1e3));
    if (q->preemptions > 0)
        vt_jw_u64(w, "preemptions", q->preemptions);
    if (q->events.len > 0) {
        vt_jw_list(w, "events");
        vt_buf_add(w->b, q->events.data, q->events.len);
        vt_jw_end(w);
    }
    if (q->output_tokens > 0) {
        vt_jw_f64(w, "first_ts", q->first_ts);
        vt_jw_f64(w, "last_ts", q->last_ts);
    }
}

void tap_row_write(struct vt_buf *b, const struct tap_request *q,
                   const struct tap_end *end, vt_ns zero, struct vt_arena *scratch)
{
    struct vt_buf more = {0};
    struct vt_jw w;
    struct vt_record r = {
        .id = q->id.data,
        .arrival_ns = q->arrival.mono > zero ? q->arrival.mono - zero : 0,
        .ttft_ns = q->output_tokens > 0 ? q->first.mono - q->arrival.mono : -1,
        .prompt_tokens = q->prompt_tokens,
        .cached_tokens =
            q->cached_tokens < q->prompt_tokens ? q->cached_tokens : q->prompt_tokens,
        .output_tokens = q->output_tokens,
        .concurrency = q->concurrency,
        .max_tokens = q->max_tokens >= q->output_tokens ? q->max_tokens : 0,
        .n_gaps = q->gaps.n,
        .gap = q->gaps.gap,
        .gap_tokens = q->gaps.all_ones ? NULL : q->gaps.tokens,
        .gap_running = q->gaps.running,
        .gap_prefill = q->gaps.prefill,
        .block_hash = q->block_hash,
        .n_block_hashes = (uint32_t)q->n_blocks,
        .token_id = q->n_tokens > 0 ? q->token : NULL,
        .priority = q->priority,
        .finish_reason = end->finish_reason,
    };

    vt_buf_add(&more, q->asked.data, q->asked.len);
    vt_jw_members(&w, &more, NULL, true);
    put_became(&w, q, end, scratch);
    vt_record_write(b, &r, more.data);
    b->failed = b->failed || more.failed || q->asked.failed || q->events.failed;
    vt_buf_free(&more);
}

/* ---- the meta line ---------------------------------------------------- */

const char *tap_vllm_version(struct mp_span registration, struct vt_arena *scratch)
{
    struct mp_span text = mp_text(mp_get(registration, "vllm_version"));

    return text.at ? vt_arena_copy(scratch, (const char *)text.at, text.len) : NULL;
}

/* As it was given, or else as the engine registers; readers take no more. */
static uint32_t limit_of(uint32_t given, struct mp_span registration,
                         const char *registered)
{
    return given ? given
                 : (uint32_t)mp_natural(mp_get(registration, registered), INT32_MAX, 0);
}

void tap_meta_write(struct vt_buf *b, struct tap_recorder *r)
{
    const struct vt_tap_config *c = r->config;
    struct mp_span said = wire_part(&r->registration, 0, r->registration.len);
    const char *version = tap_vllm_version(said, &r->arena);
    const char *tag = c->vllm_version ? c->vllm_version : version;
    struct vt_buf more = {0};
    struct vt_jw w;
    char hash[65];
    struct vt_meta meta = {
        .model = c->model,
        .gpu = c->gpu,
        .tp = limit_of(c->tp, said, "tensor_parallel_size"),
        .vllm_version = version,
        .config_hash = c->config_hash ? c->config_hash : hash,
        .engine_config = c->engine_config,
        .block_size = r->block_size,
        .num_gpu_blocks = limit_of(0, said, "num_gpu_blocks"),
        .max_num_seqs = limit_of(c->max_num_seqs, said, "max_num_seqs"),
        .max_num_batched_tokens = limit_of(0, said, "max_num_batched_tokens"),
        .max_model_len = limit_of(0, said, "max_model_len"),
    };

    vt_config_hash(hash, c->gpu, tag, c->engine_config);
    vt_jw_members(&w, &more, NULL, true);
    vt_jw_u64(&w, "engines", r->n_engines);
    put_unix(&w, "start_unix", r->zero.unix_ns);
    if (said.at) {
        vt_jw_key(&w, "ready_response_hex");
        vt_buf_char(&more, '"');
        vt_buf_hex(&more, said.at, said.len);
        vt_buf_char(&more, '"');
    }
    vt_capture_write_meta(b, &meta, "tap", more.data);
    b->failed |= more.failed;
    vt_buf_free(&more);
}
