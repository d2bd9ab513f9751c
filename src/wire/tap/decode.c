/* decode.c - what messages mean for the trace: requests come, give tokens, end. */
#include "wire/tap/tap.h"

#include <assert.h>
#include <inttypes.h>

enum { FLUSH_BYTES = 1 << 20 };

static void flush_if_long(struct tap_recorder *r, struct tap_output *f)
{
    if (f->lines.len >= FLUSH_BYTES)
        tap_output_flush(r, f);
}

/* ---- rows ------------------------------------------------------------- */

void tap_decode_meta(struct tap_recorder *r)
{
    if (r->meta_written || !r->trace.file)
        return;
    r->meta_written = true;
    tap_meta_write(&r->trace.lines, r);
    tap_output_flush(r, &r->trace);
}

/* What counts is the text that will stand there: bytes that are not text share one. */
uint64_t *tap_id_count(struct tap_recorder *r, const char *id)
{
    struct vt_buf text = {0};
    uint64_t *times = NULL;

    vt_buf_json_str(&text, id, strlen(id));
    if (!text.failed)
        times = vt_map_put(&r->written, vt_hash_bytes(text.data, text.len, 0));
    vt_buf_free(&text);
    return times;
}

/* Readers want ids that are not empty and do not repeat. Without memory nothing is
 * remembered. */
static void make_unique(struct tap_recorder *r, struct tap_request *q)
{
    for (;;) {
        bool empty = q->id.data[0] == '\0';
        uint64_t *times = empty ? NULL : tap_id_count(r, q->id.data);

        if (!empty && (!times || (*times)++ == 0))
            return;
        q->id.len = strlen(q->id.data);
        vt_buf_printf(&q->id, "#%" PRIu64, r->n_rows);
        if (q->id.failed)
            return;
    }
}

static void end_request(struct tap_recorder *r, struct tap_request *q,
                        const struct tap_end *end)
{
    assert(r->in_flight[q->engine] > 0);
    r->in_flight[q->engine]--;
    if (r->trace.file && (q->prompt_tokens > 0 || q->output_tokens == 0)) {
        make_unique(r, q);
        tap_row_write(&r->trace.lines, q, end, r->zero.mono, &r->arena);
        tap_output_flush(r, &r->trace);
        r->n_rows++;
        r->sum.requests++;
        r->sum.aborted += strcmp(end->finish_reason, "abort") == 0;
    }
    tap_requests_remove(&r->requests, q);
}

static void abort_request(struct tap_recorder *r, struct tap_request *q, const char *by)
{
    end_request(r, q, &(struct tap_end){.finish_reason = "abort", .aborted_by = by});
}

void tap_abort_all(struct tap_recorder *r, uint32_t engine, const char *by)
{
    for (struct tap_request *q = r->requests.oldest, *next; q; q = next) {
        next = q->next;
        if (engine == TAP_NO_ENGINE || q->engine == engine)
            abort_request(r, q, by);
    }
}

void tap_decode_missed(struct tap_recorder *r)
{
    while (r->requests.oldest) {
        struct tap_request *q = r->requests.oldest;

        r->in_flight[q->engine]--;
        r->sum.incomplete++;
        tap_requests_remove(&r->requests, q);
    }
}

/* ---- messages --------------------------------------------------------- */

static void count_undecodable(struct tap_recorder *r, const struct tap_item *item,
                              const struct vt_err *why)
{
    uint32_t bit = UINT32_C(1) << item->what;

    if (item->what == TAP_INPUT && item->n_frames > 0 && item->frame[0].len == 1)
        bit = UINT32_C(1) << (8 + (item->frame[0].at[0] & 7));
    r->sum.undecodable++;
    if (r->told & bit)
        return;
    r->told |= bit;
    tap_tell(r->log, "a message cannot be decoded (it was forwarded): %s", why->msg);
}

static int on_add(struct tap_recorder *r, const struct tap_item *item,
                  struct vt_err *err)
{
    struct wire_request w;
    struct tap_request *q;
    size_t before = r->cap_in_flight;
    int rc =
        wire_request_read(&w, &r->arena, item->frame[1].at, item->frame[1].len, err);

    if (rc != VT_OK)
        return rc;
    tap_decode_meta(r);
    q = tap_requests_find(&r->requests, w.id);
    if (q)
        abort_request(r, q, "frontend");
    rc = vt_grow(&r->in_flight, &r->cap_in_flight, (size_t)item->engine + 1,
                 sizeof(*r->in_flight), err);
    if (rc != VT_OK)
        return rc;
    if (r->cap_in_flight > before)
        memset(r->in_flight + before, 0,
               (r->cap_in_flight - before) * sizeof(*r->in_flight));
    q = tap_requests_add(&r->requests, w.id);
    if (!q)
        return vt_nomem(err);
    r->in_flight[item->engine]++;
    q->client = item->client;
    q->engine = item->engine;
    q->arrival = item->at;
    q->concurrency = r->in_flight[item->engine];
    tap_row_asked(q, &w, &r->arena);
    return tap_request_blocks(q, w.prompt, w.n_prompt, r->block_size, err);
}

static int on_abort(struct tap_recorder *r, const struct tap_item *item,
                    struct vt_err *err)
{
    struct mp_span *id;
    uint32_t n;
    int rc =
        wire_abort_read(&id, &n, &r->arena, item->frame[1].at, item->frame[1].len, err);

    for (uint32_t i = 0; i < n && rc == VT_OK; i++) {
        struct tap_request *q = tap_requests_find(&r->requests, id[i]);

        if (q)
            abort_request(r, q, "frontend");
    }
    return rc;
}

/* ---- outputs ---------------------------------------------------------- */

struct step { /* what a message says of all its requests */
    struct tap_stamp at;
    double timestamp;
    uint32_t running; /* 0: not said */
    uint32_t prefill;
};

static int on_tokens(struct tap_recorder *r, struct tap_request *q,
                     const struct wire_output *o, const struct step *s,
                     struct vt_err *err)
{
    uint32_t running = s->running > 0 ? s->running : r->in_flight[q->engine];
    int rc = VT_OK;

    if (q->output_tokens == 0) {
        q->first = s->at;
        q->first_ts = s->timestamp;
    } else {
        rc = tap_request_gap(q, s->at.mono - q->last.mono, o->n_tokens,
                             running > 0 ? running : 1, s->prefill, err);
    }
    if (rc == VT_OK && r->config->record_tokens)
        rc = tap_request_token(q, o->token, o->n_tokens, err);
    q->last = s->at;
    q->last_ts = s->timestamp;
    q->output_tokens += o->n_tokens;
    return rc;
}

static int on_output(struct tap_recorder *r, struct tap_request *q,
                     const struct wire_output *o, const struct step *s,
                     struct vt_err *err)
{
    const char *finish = wire_finish_name(o->finish);
    struct tap_end end = {.finish_reason = finish, .stop_reason = o->stop_reason};
    int rc = VT_OK;

    if (o->has_prefill) {
        q->cached_tokens = o->prefill.local_cached + o->prefill.external_cached;
        if (q->prompt_tokens == 0)
            q->prompt_tokens = o->prefill.prompt;
    }
    tap_row_events(q, o);
    if (o->n_tokens > 0)
        rc = on_tokens(r, q, o, s, err);
    if (rc != VT_OK || !finish)
        return rc;
    if (o->finish == WIRE_ABORTED)
        end.aborted_by = "engine";
    end_request(r, q, &end);
    return VT_OK;
}

/* Prompt tokens that the step computed: said outright, or those of requests that have
 * their first token from it. */
static uint32_t step_prefill(const struct wire_outputs *w, struct tap_request *const *q)
{
    uint64_t sum = 0;

    if (w->has_stats && w->stats.has_iteration)
        return w->stats.iteration.prefill_tokens;
    for (uint32_t i = 0; i < w->n_outputs; i++)
        if (q[i] && q[i]->output_tokens == 0 && w->output[i].n_tokens > 0 &&
            !q[i]->remote_prefill)
            sum += q[i]->prompt_tokens;
    return sum < UINT32_MAX ? (uint32_t)sum : UINT32_MAX;
}

static void put_stats(struct tap_recorder *r, const struct tap_item *item,
                      const struct wire_outputs *w)
{
    struct vt_buf *b = &r->stats.lines;
    struct vt_jw j;

    if (!r->stats.file)
        return;
    vt_jw_init(&j, b, NULL);
    vt_jw_map(&j, NULL);
    vt_jw_ms(&j, "ts_ms", item->at.mono - r->zero.mono);
    vt_jw_u64(&j, "engine", w->engine_index);
    vt_jw_u64(&j, "client", item->client);
    vt_jw_f64(&j, "timestamp", w->timestamp);
    vt_jw_key(&j, "scheduler");
    if (!mp_json(b, w->stats.raw))
        vt_buf_str(b, "null");
    vt_jw_end(&j);
    vt_buf_char(b, '\n');
    flush_if_long(r, &r->stats);
}

static int on_outputs(struct tap_recorder *r, const struct tap_item *item,
                      struct vt_err *err)
{
    struct step s = {.at = item->at};
    struct tap_request **q;
    struct wire_outputs w;
    int rc;

    if (item->n_frames == 0 || mp_span_is(item->frame[0], WIRE_DEAD))
        return VT_OK;
    rc = wire_outputs_read(&w, &r->arena, item->frame[0].at, item->frame[0].len,
                           item->n_frames - 1, err);
    if (rc != VT_OK)
        return rc;
    q = vt_arena_alloc(&r->arena, w.n_outputs * sizeof(struct tap_request *));
    if (!q)
        return vt_nomem(err);
    for (uint32_t i = 0; i < w.n_outputs; i++)
        q[i] = tap_requests_find(&r->requests, w.output[i].id);
    if (w.has_stats)
        put_stats(r, item, &w);
    s.timestamp = w.timestamp;
    s.running = w.has_stats ? w.stats.running : 0;
    s.prefill = step_prefill(&w, q);
    for (uint32_t i = 0; i < w.n_outputs && rc == VT_OK; i++) {
        /* Looked up again: a request may be in a message twice. */
        struct tap_request *now =
            q[i] ? tap_requests_find(&r->requests, w.output[i].id) : NULL;

        if (now)
            rc = on_output(r, now, &w.output[i], &s, err);
    }
    return rc;
}

/* ---- the rest --------------------------------------------------------- */

void tap_decode_registration(struct tap_recorder *r, struct mp_span registration)
{
    uint64_t size;

    if (r->registration.len > 0)
        return;
    vt_buf_add(&r->registration, registration.at, registration.len);
    size = mp_natural(mp_get(registration, "block_size"), INT32_MAX, 0);
    if (r->config->block_size == 0 && size > 0)
        r->block_size = (uint32_t)size;
}

static void on_register(struct tap_recorder *r, const struct tap_item *item)
{
    if (item->client > 0 || item->n_frames < 2)
        return;
    if (item->engine >= r->n_engines)
        r->n_engines = item->engine + 1;
    tap_decode_registration(r, item->frame[1]);
}

static void log_message(struct tap_recorder *r, const struct tap_item *item,
                        struct mp_span *frame)
{
    static const struct {
        const char *sock, *dir, *kind;
    } rows[] = {
        [TAP_HANDSHAKE] = {"handshake", "E>F", NULL},
        [TAP_INIT] = {"handshake", "F>E", "INIT"},
        [TAP_INIT_REWRITTEN] = {"handshake", "F>E", "INIT(rewritten by tap)"},
        [TAP_REGISTER] = {"input", "E>F", NULL},
        [TAP_INPUT] = {"input", "F>E", NULL},
        [TAP_OUTPUT] = {"output", "E>F", NULL},
    };
    char identity[16];
    struct wirelog_entry e = {
        .seq = item->seq,
        .t_mono_ns = item->at.mono,
        .t_unix = (double)item->at.unix_ns * 1e-9,
        .sock = rows[item->what].sock,
        .dir = rows[item->what].dir,
        .kind = rows[item->what].kind,
        .client = item->what >= TAP_REGISTER ? (int64_t)item->client : -1,
        .frame = frame,
        .n_frames = item->n_frames,
    };

    if (item->engine <= UINT16_MAX) {
        snprintf(identity, sizeof(identity), "%02x%02x", item->engine & 255,
                 item->engine >> 8);
        e.identity = identity;
    }
    wirelog_write(&r->wire.lines, &e, &r->arena);
    flush_if_long(r, &r->wire);
}

static int decode_message(struct tap_recorder *r, const struct tap_item *item,
                          struct vt_err *err)
{
    switch (item->what) {
    case TAP_INPUT:
        if (item->n_frames < 2 || item->frame[0].len != 1)
            return vt_fail(err, VT_EINPUT, "a request of %u frames", item->n_frames);
        if (item->frame[0].at[0] == WIRE_ADD)
            return on_add(r, item, err);
        return item->frame[0].at[0] == WIRE_ABORT ? on_abort(r, item, err) : VT_OK;
    case TAP_OUTPUT:
        return on_outputs(r, item, err);
    case TAP_REGISTER:
        on_register(r, item);
        return VT_OK;
    case TAP_ENGINE_LOST:
        tap_abort_all(r, item->engine, "engine");
        return VT_OK;
    case TAP_FRONTEND_LOST:
        tap_abort_all(r, TAP_NO_ENGINE, "frontend");
        return VT_OK;
    default:
        return VT_OK;
    }
}

void tap_decode(struct tap_recorder *r, struct tap_item *item)
{
    struct vt_err err = {0};
    int rc;

    if (item->missed > 0)
        tap_decode_missed(r);
    if (r->wire.file && item->what < TAP_ENGINE_LOST)
        log_message(r, item, item->frame);
    vt_arena_reset(&r->arena);
    rc = decode_message(r, item, &err);
    if (rc == VT_ENOMEM)
        tap_recorder_failed(r, &err);
    else if (rc != VT_OK)
        count_undecodable(r, item, &err);
}
