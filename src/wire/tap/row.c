/* row.c - what the trace says: its meta line, and one line for each request.
 *
 * Fields that vllm-vcr's traces have too are written by the room of traces; the others
 * are listed in docs/trace-format.md. */
#include "wire/tap/tap.h"

/* ---- JSON ------------------------------------------------------------- */

static void put_key(struct vt_buf *b, const char *key)
{
    vt_buf_printf(b, ",\"%s\":", key);
}

static void put_text(struct vt_buf *b, const char *key, const char *text, size_t len)
{
    put_key(b, key);
    vt_buf_json_str(b, text, len);
}

static void put_str(struct vt_buf *b, const char *key, const char *text)
{
    if (text)
        put_text(b, key, text, strlen(text));
}

static void put_u64(struct vt_buf *b, const char *key, uint64_t v)
{
    put_key(b, key);
    vt_buf_u64(b, v);
}

static void put_stated(struct vt_buf *b, const char *key, uint64_t v)
{
    if (v > 0)
        put_u64(b, key, v);
}

static void put_f64(struct vt_buf *b, const char *key, double v)
{
    put_key(b, key);
    vt_buf_f64(b, v);
}

/* A value that is not nil. What the readers of traces would refuse (keys that repeat,
 * deep nesting) is left out, or one request could spoil the file. */
static void put_value(struct vt_buf *b, const char *key, struct mp_span value,
                      struct vt_arena *scratch)
{
    size_t before = b->len, start;
    const struct vt_node *ignored;

    if (mp_is_nil(value))
        return;
    put_key(b, key);
    start = b->len;
    if (mp_json(b, value) && !b->failed &&
        vt_json_parse(scratch, b->data + start, b->len - start, 1, &ignored, NULL) ==
            VT_OK)
        return;
    if (b->failed)
        return;
    b->len = before;
    b->data[before] = '\0';
}

static void put_unix(struct vt_buf *b, const char *key, int64_t unix_ns)
{
    put_key(b, key);
    vt_buf_printf(b, "%lld.%06lld", (long long)(unix_ns / VT_SEC),
                  (long long)(unix_ns % VT_SEC / VT_US));
}

/* ---- what a request asks for ------------------------------------------ */

static void put_lora(struct vt_buf *b, struct mp_span value)
{
    struct wire_lora lora;

    if (wire_lora_read(&lora, value, NULL) == VT_OK && lora.name.at)
        put_text(b, "lora", (const char *)lora.name.at, lora.name.len);
}

/* Of each image or sound, its hash. */
static void put_mm_hashes(struct vt_buf *b, struct mp_span features)
{
    struct mp_in in;
    uint32_t n, shown = 0;

    if (mp_is_nil(features))
        return;
    mp_in_init(&in, features.at, features.len);
    n = mp_array(&in);
    for (uint32_t i = 0; i < n && !in.bad; i++) {
        struct mp_span hash = mp_get(mp_raw(&in), "mm_hash");
        struct mp_in one;

        if (mp_is_nil(hash))
            continue;
        mp_in_init(&one, hash.at, hash.len);
        hash = mp_str(&one);
        if (one.bad)
            continue;
        vt_buf_str(b, shown++ > 0 ? "," : ",\"mm_hashes\":[");
        vt_buf_json_str(b, (const char *)hash.at, hash.len);
    }
    if (shown > 0)
        vt_buf_char(b, ']');
}

static bool is_true(struct mp_span value)
{
    return value.at && value.len == 1 && *value.at == 0xc3;
}

/* The prompt was computed by another engine: its first token costs no prefill here. */
static bool is_remote_prefill(struct mp_span sampling)
{
    struct mp_span transfer =
        mp_get(mp_get(sampling, "extra_args"), "kv_transfer_params");

    return is_true(mp_get(transfer, "do_remote_prefill"));
}

/* Embeddings instead of token ids: [dtype, [rows, columns], data]. */
static uint32_t embedded_tokens(struct mp_span embeds)
{
    struct mp_in in;
    uint32_t rows;

    if (mp_is_nil(embeds))
        return 0;
    mp_in_init(&in, embeds.at, embeds.len);
    if (mp_array(&in) < 2)
        return 0;
    mp_skip(&in);
    if (mp_array(&in) < 1)
        return 0;
    rows = mp_u32(&in);
    return in.bad ? 0 : rows;
}

void tap_row_asked(struct tap_request *q, const struct wire_request *r,
                   struct vt_arena *scratch)
{
    struct vt_buf *b = &q->asked;
    struct wire_sampling s;

    q->prompt_tokens = r->n_prompt ? r->n_prompt : embedded_tokens(r->prompt_embeds);
    q->priority = r->priority;
    q->remote_prefill = is_remote_prefill(r->sampling);
    if (!mp_is_nil(r->sampling) &&
        wire_sampling_read(&s, scratch, r->sampling, NULL) == VT_OK &&
        s.max_tokens != UINT32_MAX)
        q->max_tokens = s.max_tokens;
    put_unix(b, "start_unix", q->arrival.unix_ns);
    put_f64(b, "arrival_time", r->arrival_time);
    put_u64(b, "client_index", q->client);
    put_u64(b, "engine_index", q->engine);
    if (r->external_id.at)
        put_text(b, "external_id", (const char *)r->external_id.at, r->external_id.len);
    put_value(b, "sampling", r->sampling, scratch);
    put_value(b, "pooling", r->pooling, scratch);
    put_lora(b, r->lora);
    if (!mp_is_nil(r->cache_salt))
        vt_buf_str(b, ",\"cache_salt\":true");
    put_mm_hashes(b, r->mm_features);
    put_value(b, "session_id", r->session_id, scratch);
    put_value(b, "trace_headers", r->trace_headers, scratch);
}

/* ---- what became of it ------------------------------------------------ */

static const char *event_name(int type)
{
    switch (type) {
    case WIRE_QUEUED:
        return "QUEUED";
    case WIRE_SCHEDULED:
        return "SCHEDULED";
    case WIRE_PREEMPTED:
        return "PREEMPTED";
    default:
        return NULL;
    }
}

void tap_row_events(struct tap_request *q, const struct wire_output *o)
{
    for (uint32_t i = 0; i < o->n_events; i++) {
        const struct wire_event *e = &o->event[i];
        const char *name = event_name(e->type);

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

static void put_became(struct vt_buf *b, const struct tap_request *q,
                       const struct tap_end *end, struct vt_arena *scratch)
{
    double queue_s = q->scheduled - q->queued;

    put_value(b, "stop_reason", end->stop_reason, scratch);
    put_str(b, "aborted_by", end->aborted_by);
    if (q->queued > 0 && q->scheduled > 0 && queue_s >= 0 && queue_s < 1e6) {
        put_key(b, "queue_ms");
        vt_buf_ms(b, vt_ns_from_ms(queue_s * 1e3));
    }
    put_stated(b, "preemptions", q->preemptions);
    if (q->events.len > 0)
        vt_buf_printf(b, ",\"events\":[%s]", q->events.data);
    if (q->output_tokens > 0) {
        put_f64(b, "first_ts", q->first_ts);
        put_f64(b, "last_ts", q->last_ts);
    }
}

static uint32_t at_most(uint32_t v, uint32_t limit)
{
    return v < limit ? v : limit;
}

void tap_row_write(struct vt_buf *b, const struct tap_request *q,
                   const struct tap_end *end, vt_ns zero, struct vt_arena *scratch)
{
    struct vt_buf more = {0};
    struct vt_record r = {
        .id = q->id.data,
        .arrival_ns = q->arrival.mono > zero ? q->arrival.mono - zero : 0,
        .ttft_ns = q->output_tokens > 0 ? q->first.mono - q->arrival.mono : -1,
        .prompt_tokens = q->prompt_tokens,
        .cached_tokens = at_most(q->cached_tokens, q->prompt_tokens),
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
    put_became(&more, q, end, scratch);
    vt_record_write(b, &r, more.data);
    b->failed = b->failed || more.failed || q->asked.failed || q->events.failed;
    vt_buf_free(&more);
}

/* ---- the meta line ---------------------------------------------------- */

const char *tap_vllm_version(struct mp_span registration, struct vt_arena *scratch)
{
    struct mp_span value = mp_get(registration, "vllm_version");
    struct mp_in in;

    if (mp_is_nil(value))
        return NULL;
    mp_in_init(&in, value.at, value.len);
    value = mp_str(&in);
    return in.bad ? NULL : vt_arena_copy(scratch, (const char *)value.at, value.len);
}

static uint64_t registered(struct mp_span registration, const char *key)
{
    struct mp_span value = mp_get(registration, key);
    struct mp_in in;
    uint64_t v;

    if (mp_is_nil(value))
        return 0;
    mp_in_init(&in, value.at, value.len);
    v = mp_u64(&in);
    return in.bad || v > INT32_MAX ? 0 : v; /* readers take no more */
}

static void put_limits(struct vt_buf *b, struct mp_span registration, const char *key,
                       uint64_t given)
{
    put_stated(b, key, given > 0 ? given : registered(registration, key));
}

static void put_hex(struct vt_buf *b, const char *key, struct mp_span bytes)
{
    put_key(b, key);
    vt_buf_char(b, '"');
    for (size_t i = 0; i < bytes.len; i++)
        vt_buf_printf(b, "%02x", bytes.at[i]);
    vt_buf_char(b, '"');
}

void tap_meta_write(struct vt_buf *b, const struct vt_tap_config *c,
                    const struct tap_meta *m, struct vt_arena *scratch)
{
    const char *version = tap_vllm_version(m->registration, scratch);
    const char *tag = c->vllm_version ? c->vllm_version : version;
    char hash[65];

    vt_config_hash(hash, c->gpu, tag, c->engine_config);
    vt_buf_str(b, "{\"meta\":{\"source\":\"tap\"");
    put_str(b, "model", c->model);
    put_str(b, "gpu", c->gpu);
    put_stated(b, "tp",
               c->tp ? c->tp : registered(m->registration, "tensor_parallel_size"));
    put_str(b, "vllm_version", version);
    put_str(b, "config_hash", c->config_hash ? c->config_hash : hash);
    put_str(b, "engine_config", c->engine_config);
    put_stated(b, "block_size", m->block_size);
    put_limits(b, m->registration, "num_gpu_blocks", 0);
    put_limits(b, m->registration, "max_num_seqs", c->max_num_seqs);
    put_limits(b, m->registration, "max_num_batched_tokens", 0);
    put_limits(b, m->registration, "max_model_len", 0);
    put_u64(b, "engines", m->n_engines);
    put_unix(b, "start_unix", m->start_unix_ns);
    if (m->registration.at)
        put_hex(b, "ready_response_hex", m->registration);
    vt_buf_str(b, "}}\n");
}
