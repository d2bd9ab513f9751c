/* msg.c - what a frontend says to engines, and what it makes of answers. */
#include "wire/frontend/frontend.h"

/* ---- to engines ------------------------------------------------------- */

static int send_head(struct vt_frontend *f, uint32_t client, uint32_t engine,
                     struct vt_err *err)
{
    uint8_t id[2] = {(uint8_t)engine, (uint8_t)(engine >> 8)};

    if (client >= f->n_clients || engine >= f->n_engines)
        return vt_fail(err, VT_EINPUT, "there is no client %u or engine %u", client,
                       engine);
    return vt_within(err, sock_put(f->client[client].input, id, sizeof(id), true, err),
                     "engine %u", engine);
}

static int send_frames(void *sock, const struct vt_bytes *frame, size_t n, bool more,
                       struct vt_err *err)
{
    int rc = VT_OK;

    for (size_t i = 0; i < n && rc == VT_OK; i++)
        rc = sock_put(sock, frame[i].at, frame[i].len, more || i + 1 < n, err);
    return rc;
}

int vt_frontend_send(struct vt_frontend *f, uint32_t client, uint32_t engine,
                     const struct vt_bytes *frame, size_t n, struct vt_err *err)
{
    int rc = send_head(f, client, engine, err);

    return rc ? rc : send_frames(f->client[client].input, frame, n, false, err);
}

/* f->out as the payload of a message of this type. */
static int send_out(struct vt_frontend *f, uint32_t client, uint32_t engine, int type,
                    const struct vt_bytes *aux, size_t n_aux, struct vt_err *err)
{
    uint8_t byte = (uint8_t)type;
    const struct vt_bytes head[] = {{&byte, 1}, {f->out.data, f->out.len}};
    int rc = f->out.failed ? vt_nomem(err) : send_head(f, client, engine, err);

    if (rc || (rc = send_frames(f->client[client].input, head, 2, n_aux > 0, err)))
        return rc;
    return send_frames(f->client[client].input, aux, n_aux, false, err);
}

static void put_u64(struct vt_buf *b, const char *key, uint64_t v)
{
    mp_put_str(b, key);
    mp_put_u64(b, v);
}

/* A sparse map, as Python's frontend sends it. */
static void put_sampling(struct vt_buf *b, const struct vt_frontend_request *r)
{
    int n = (r->temperature >= 0) + (r->max_tokens > 0) + (r->min_tokens > 0) +
            r->ignore_eos + r->has_seed + (r->eos_token_id > 0) +
            (r->n_stop_token_ids > 0) + r->has_logprobs;

    mp_put_map(b, (uint32_t)n);
    if (r->temperature >= 0) {
        mp_put_str(b, "temperature");
        mp_put_f64(b, r->temperature);
    }
    if (r->has_seed) {
        mp_put_str(b, "seed");
        mp_put_i64(b, r->seed);
    }
    if (r->n_stop_token_ids > 0) {
        mp_put_str(b, "stop_token_ids");
        mp_put_array(b, r->n_stop_token_ids);
        for (uint32_t i = 0; i < r->n_stop_token_ids; i++)
            mp_put_u64(b, r->stop_token_ids[i]);
    }
    if (r->ignore_eos) {
        mp_put_str(b, "ignore_eos");
        mp_put_bool(b, true);
    }
    if (r->max_tokens > 0)
        put_u64(b, "max_tokens", r->max_tokens);
    if (r->min_tokens > 0)
        put_u64(b, "min_tokens", r->min_tokens);
    if (r->has_logprobs) {
        mp_put_str(b, "logprobs");
        mp_put_i64(b, r->logprobs);
    }
    if (r->eos_token_id > 0)
        put_u64(b, "_eos_token_id", (uint64_t)r->eos_token_id);
}

int vt_frontend_add(struct vt_frontend *f, uint32_t client, uint32_t engine,
                    const struct vt_frontend_request *r, struct vt_err *err)
{
    struct vt_buf parts = {0}; /* values that a request keeps encoded */
    size_t sampling, lora;     /* where they end */
    struct wire_request w = {
        .n_fields = f->line->request_fields,
        .id = wire_text(r->id),
        .n_prompt = r->n_prompt,
        .arrival_time = r->arrival_time > 0 ? r->arrival_time : vt_unix_s(),
        .data_parallel_rank = -1,
        .client_index = client,
        .priority = r->priority,
        .external_id = wire_text(r->external_id),
    };
    int rc;

    vt_arena_reset(&f->out_arena);
    w.prompt = vt_arena_alloc(&f->out_arena, (size_t)r->n_prompt * sizeof(*w.prompt));
    if (!w.prompt)
        return vt_nomem(err);
    if (r->n_prompt > 0)
        memcpy(w.prompt, r->prompt, (size_t)r->n_prompt * sizeof(*w.prompt));
    if (r->sampling.at)
        vt_buf_add(&parts, r->sampling.at, r->sampling.len);
    else
        put_sampling(&parts, r);
    sampling = parts.len;
    if (r->lora) {
        mp_put_array(&parts, 6);
        mp_put_str(&parts, r->lora);
        mp_put_u64(&parts, r->lora_id > 0 ? r->lora_id : 1);
        mp_put_str(&parts, r->lora); /* path */
        mp_put_nil(&parts);
        mp_put_bool(&parts, false);
        mp_put_bool(&parts, false);
    }
    lora = parts.len;
    if (r->cache_salt)
        mp_put_str(&parts, r->cache_salt);
    w.sampling = wire_part(&parts, 0, sampling);
    w.lora = wire_part(&parts, sampling, lora);
    w.cache_salt = wire_part(&parts, lora, parts.len);
    vt_buf_clear(&f->out);
    wire_request_write(&f->out, &w);
    rc = parts.failed ? vt_nomem(err)
                      : send_out(f, client, engine, WIRE_ADD, r->aux, r->n_aux, err);
    vt_buf_free(&parts);
    return rc;
}

int vt_frontend_abort(struct vt_frontend *f, uint32_t client, uint32_t engine,
                      const char *const *id, uint32_t n, struct vt_err *err)
{
    struct mp_span *text;

    vt_arena_reset(&f->out_arena);
    text = vt_arena_alloc(&f->out_arena, n * sizeof(*text));
    if (!text)
        return vt_nomem(err);
    for (uint32_t i = 0; i < n; i++)
        text[i] = wire_text(id[i]);
    vt_buf_clear(&f->out);
    wire_abort_write(&f->out, text, n);
    return send_out(f, client, engine, WIRE_ABORT, NULL, 0, err);
}

int vt_frontend_call(struct vt_frontend *f, uint32_t client, uint32_t engine,
                     uint64_t call_id, const char *method, struct vt_bytes args,
                     struct vt_err *err)
{
    uint8_t id[POKE_NUMBER];
    struct wire_call c = {
        .client_index = client,
        .call_id = {id, (size_t)(poke_u64(id, call_id) - id)},
        .method = wire_text(method),
        .args = {args.at, args.len},
    };

    vt_buf_clear(&f->out);
    wire_call_write(&f->out, &c);
    return send_out(f, client, engine, WIRE_UTILITY, NULL, 0, err);
}

int vt_frontend_wave(struct vt_frontend *f, int64_t wave, int64_t exclude,
                     struct vt_err *err)
{
    uint8_t type = WIRE_START_DP_WAVE;
    int rc;

    if (!f->waves)
        return vt_fail(err, VT_EINPUT, "there is no coordinator");
    vt_buf_clear(&f->out);
    wire_wave_write(&f->out, wave, exclude);
    rc = sock_put(f->waves, &type, 1, true, err);
    return rc == VT_OK ? sock_put(f->waves, f->out.data, f->out.len, false, err) : rc;
}

/* ---- from engines ----------------------------------------------------- */

static const char *copy_text(struct vt_frontend *f, struct mp_span s)
{
    return s.at ? vt_arena_copy(&f->arena, (const char *)s.at, s.len) : NULL;
}

static struct vt_bytes bytes_unless_nil(struct mp_span value)
{
    struct vt_bytes none = {0}, some = {value.at, value.len};

    return mp_is_nil(value) ? none : some;
}

static int fill_message(struct vt_frontend *f, const struct wire_outputs *w,
                        struct vt_err *err)
{
    struct vt_frontend_message *m = &f->message;
    struct vt_frontend_output *list =
        vt_arena_alloc(&f->arena, w->n_outputs * sizeof(*list));
    struct mp_in call_id;

    if (!list)
        return vt_nomem(err);
    for (uint32_t i = 0; i < w->n_outputs; i++) {
        const struct wire_output *o = &w->output[i];

        list[i] = (struct vt_frontend_output){
            .id = copy_text(f, o->id),
            .token = o->token,
            .n_tokens = o->n_tokens,
            .finish_reason = wire_finish_name(o->finish),
            .stop_reason = bytes_unless_nil(o->stop_reason),
            .has_prefill = o->has_prefill,
            .cached_tokens = o->prefill.cached,
            .has_logprobs = !mp_is_nil(o->logprobs),
        };
        if (!list[i].id)
            return vt_nomem(err);
        for (uint32_t k = 0; k < o->n_events; k++) {
            if (o->event[k].type == WIRE_QUEUED)
                list[i].queued = o->event[k].timestamp;
            else if (o->event[k].type == WIRE_SCHEDULED)
                list[i].scheduled = o->event[k].timestamp;
            else if (o->event[k].type == WIRE_PREEMPTED)
                list[i].preemptions++;
        }
    }
    m->output = list;
    m->n_outputs = w->n_outputs;
    m->engine = w->engine_index;
    m->timestamp = w->timestamp;
    m->has_stats = w->has_stats;
    m->running = w->stats.running;
    m->waiting = w->stats.waiting;
    m->kv_usage = w->stats.kv_usage;
    m->queries = w->stats.cache.queries;
    m->hits = w->stats.cache.hits;
    m->has_utility = w->has_utility;
    mp_in_init(&call_id, w->call_id.at, w->call_id.len);
    m->call_id = w->has_utility ? mp_u64(&call_id) : 0;
    m->failure = copy_text(f, w->failure);
    m->result = bytes_unless_nil(w->result);
    m->wave_complete = w->wave_complete;
    m->start_wave = w->start_wave;
    return VT_OK;
}

int frontend_decode(struct vt_frontend *f, struct vt_err *err)
{
    struct vt_frontend_message *m = &f->message;
    struct vt_bytes *frame;
    struct wire_outputs w;
    const void *bytes;
    size_t len;

    vt_arena_reset(&f->arena);
    frame = vt_arena_alloc(&f->arena, f->in.n * sizeof(*frame));
    if (!frame)
        return vt_nomem(err);
    for (size_t i = 0; i < f->in.n; i++)
        frame[i].at = sock_data(&f->in, i, &frame[i].len);
    m->frame = frame;
    m->n_frames = f->in.n;
    bytes = sock_data(&f->in, 0, &len);
    m->wave_complete = m->start_wave = -1;
    m->dead = vt_is_text(WIRE_DEAD, bytes, len);
    if (m->dead)
        return VT_OK;
    if (wire_outputs_read(&w, &f->arena, bytes, len, (uint32_t)f->in.n - 1, &f->bad) !=
        VT_OK) {
        m->bad = f->bad.msg;
        return VT_OK;
    }
    return fill_message(f, &w, err);
}
