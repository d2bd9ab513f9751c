/* outputs.c - what an engine answers; read by the recorder and by our own frontend.
 *
 * A step of hundreds of requests is one message, written in one go: room for a row
 * first, then every byte of it. */
#include "wire/codec/codec.h"
#include "wire/codec/fields.h"
#include "wire/codec/stats.h"

/* What a hostile message can make us allocate is bounded: by a number far beyond any
 * engine's batch, and by the fewest bytes that a row or an event takes. */
enum { MAX_OUTPUTS = 1 << 18, MIN_OUTPUT_BYTES = 3, MIN_EVENT_BYTES = 18 };

const char *wire_finish_name(int finish)
{
    static const char *const names[] = {"stop", "length", "abort", "error",
                                        "repetition"};

    return finish >= 0 && (size_t)finish < VT_COUNT(names) ? names[finish] : NULL;
}

/* ---- one output ------------------------------------------------------- */

static const struct msg_field event_fields[] = {
    MSG_FIELD(struct wire_event, "type", MSG_U31, MSG_NEVER_NIL, type),
    MSG_FIELD(struct wire_event, "timestamp", MSG_F64, MSG_NEVER_NIL, timestamp),
};
static const struct msg_table event_table = MSG_TABLE(event_fields);

static int events_read(void *thing, struct msg_in *r)
{
    struct wire_output *o = thing;
    uint32_t n = mp_array(&r->in);
    struct wire_event *event = NULL;
    int rc;

    if (n > (size_t)(r->in.end - r->in.at) / MIN_EVENT_BYTES)
        mp_fail(&r->in, "ends too early");
    else if (!r->in.bad)
        event = msg_alloc(r, n, sizeof(*event));
    rc = msg_problem(r);
    for (uint32_t i = 0; i < n && rc == VT_OK; i++)
        rc = msg_read_map(&event_table, &event[i], r);
    o->event = event;
    o->n_events = rc == VT_OK ? n : 0;
    return rc;
}

#define PREFILL(text, member) \
    MSG_FIELD(struct wire_output, text, MSG_U32, MSG_NIL_OK, prefill.member)

static const struct msg_field prefill_fields[] = {
    PREFILL("num_prompt_tokens", prompt),
    PREFILL("num_computed_tokens", computed),
    PREFILL("num_cached_tokens", cached),
    PREFILL("num_local_cached_tokens", local_cached),
    PREFILL("num_external_cached_tokens", external_cached),
    {MSG_NAMED("num_cache_creation_tokens", MSG_U32, MSG_NIL_OK),
     .since = MSG_FROM_0_26,
     .at = offsetof(struct wire_output, prefill.cache_creation)},
};
static const struct msg_table prefill_table = MSG_TABLE(prefill_fields);

#define PREFILL_FIELD                                       \
    {                                                       \
        MSG_NAMED("prefill_stats", MSG_NESTED, MSG_NIL_OK), \
        .n_at = offsetof(struct wire_output, has_prefill),  \
        .nested = &prefill_table,                           \
    }
/* For the writer, which writes all else without a table: rows are many. */
static const struct msg_field prefill_field = PREFILL_FIELD;

#define OUTPUT(text, kind, nil, member) \
    MSG_FIELD(struct wire_output, text, kind, nil, member)

/* What follows kv_transfer_params differs: 0.25 has no ec_transfer_params. */
#define FIELDS_BEFORE                                                            \
    OUTPUT("request_id", MSG_TEXT, MSG_NEVER_NIL, id),                           \
        MSG_LIST(struct wire_output, "new_token_ids", MSG_TOKENS, MSG_NEVER_NIL, \
                 token, n_tokens),                                               \
        OUTPUT("new_logprobs", MSG_TENSORS, MSG_NIL_OK, logprobs),               \
        OUTPUT("new_prompt_logprobs_tensors", MSG_TENSORS, MSG_NIL_OK,           \
               prompt_logprobs),                                                 \
        OUTPUT("pooling_output", MSG_TENSORS, MSG_NIL_OK, pooling),              \
        OUTPUT("finish_reason", MSG_U31, MSG_NIL_OK, finish),                    \
        OUTPUT("stop_reason", MSG_VALUE, MSG_NIL_OK, stop_reason),               \
        MSG_READ("events", MSG_NIL_OK, events_read),                             \
        OUTPUT("kv_transfer_params", MSG_MAP, MSG_NIL_OK, kv_transfer)
#define FIELDS_AFTER                                                            \
    OUTPUT("trace_headers", MSG_MAP, MSG_NIL_OK, trace_headers), PREFILL_FIELD, \
        OUTPUT("routed_experts", MSG_TENSORS, MSG_NIL_OK, routed_experts),      \
        OUTPUT("num_nans_in_logits", MSG_U64, MSG_NEVER_NIL, n_nans)

static const struct msg_field fields_0_25[] = {FIELDS_BEFORE, FIELDS_AFTER};
static const struct msg_field fields_0_26[] = {
    FIELDS_BEFORE,
    OUTPUT("ec_transfer_params", MSG_MAP, MSG_NIL_OK, ec_transfer),
    FIELDS_AFTER,
    OUTPUT("mm_cache_miss_hashes", MSG_VALUE, MSG_NIL_OK, tail[0]),
    OUTPUT("new_sampling_mask", MSG_TENSORS, MSG_NIL_OK, tail[1]),
    OUTPUT("spec_decode_metrics", MSG_VALUE, MSG_NIL_OK, tail[2]),
    OUTPUT("prompt_token_id_logprobs", MSG_TENSORS, MSG_NIL_OK, tail[3]),
};
static const struct msg_table table_0_25 = MSG_TABLE(fields_0_25);
static const struct msg_table table_0_26 = MSG_TABLE(fields_0_26);

/* An engine never trims its arrays, so 13 elements are 0.25; a mock that does trim
 * stops before the fields that moved. */
static const struct msg_table *output_table(const struct msg_in *r)
{
    struct mp_in ahead = r->in;

    return mp_array(&ahead) == VT_COUNT(fields_0_25) ? &table_0_25 : &table_0_26;
}

/* ---- the whole message ------------------------------------------------ */

/* Rows take a hundred times the bytes of the shortest ones, so their number is held
 * against those bytes before anything is allocated. */
static int list_read(void *thing, struct msg_in *r)
{
    struct wire_outputs *o = thing;
    uint32_t n = mp_array(&r->in);
    int rc;

    if (n > (size_t)(r->in.end - r->in.at) / MIN_OUTPUT_BYTES)
        mp_fail(&r->in, "ends too early");
    else if (n > MAX_OUTPUTS)
        mp_fail(&r->in, "too many");
    else if (!r->in.bad)
        o->output = msg_alloc(r, n, sizeof(*o->output));
    rc = msg_problem(r);
    for (uint32_t i = 0; i < n && rc == VT_OK; i++) {
        uint32_t n_fields;

        o->output[i].finish = WIRE_UNFINISHED;
        rc = msg_read_array(output_table(r), &o->output[i], r, &n_fields);
        if (rc == VT_OK && n_fields < 2)
            rc = vt_fail(r->err, VT_EINPUT, "no request_id and new_token_ids");
        rc = vt_within(r->err, rc, "output %u", i);
    }
    o->n_outputs = rc == VT_OK ? n : 0;
    return rc;
}

static int scheduler_stats_read(void *thing, struct msg_in *r)
{
    struct wire_outputs *o = thing;

    o->has_stats = true;
    return stats_read(&o->stats, r);
}

#define OUTPUTS(text, kind, nil, member) \
    MSG_FIELD(struct wire_outputs, text, kind, nil, member)

static const struct msg_field utility_fields[] = {
    OUTPUTS("call_id", MSG_VALUE, MSG_NEVER_NIL, call_id),
    OUTPUTS("failure_message", MSG_TEXT, MSG_NIL_OK, failure),
    OUTPUTS("result", MSG_ARRAY, MSG_NIL_OK, result),
};
static const struct msg_table utility_table = MSG_TABLE(utility_fields);

static int utility_read(void *thing, struct msg_in *r)
{
    struct wire_outputs *o = thing;
    uint32_t n;
    int rc = msg_read_array(&utility_table, o, r, &n);

    o->has_utility = true;
    if (rc == VT_OK && n == 0)
        rc = vt_fail(r->err, VT_EINPUT, "no call_id");
    return rc;
}

static const struct msg_field fields[] = {
    OUTPUTS("engine_index", MSG_U32, MSG_NEVER_NIL, engine_index),
    MSG_READ("outputs", MSG_NEVER_NIL, list_read),
    MSG_READ("scheduler_stats", MSG_NIL_OK, scheduler_stats_read),
    OUTPUTS("timestamp", MSG_F64, MSG_NEVER_NIL, timestamp),
    MSG_READ("utility_output", MSG_NIL_OK, utility_read),
    MSG_LIST(struct wire_outputs, "finished_requests", MSG_TEXTS, MSG_NIL_OK, finished,
             n_finished),
    OUTPUTS("wave_complete", MSG_I64, MSG_NIL_OK, wave_complete),
    OUTPUTS("start_wave", MSG_I64, MSG_NIL_OK, start_wave),
    OUTPUTS("weight_version", MSG_VALUE, MSG_NIL_OK, weight_version),
};
static const struct msg_table table = MSG_TABLE(fields);

int wire_outputs_read(struct wire_outputs *o, struct vt_arena *a, const void *bytes,
                      size_t len, uint32_t n_aux, struct vt_err *err)
{
    struct msg_in r;
    int rc;

    *o = (struct wire_outputs){.wave_complete = -1, .start_wave = -1};
    msg_begin(&r, a, bytes, len, err);
    r.n_aux = n_aux;
    rc = msg_read_array(&table, o, &r, NULL);
    if (rc == VT_OK)
        rc = msg_end(&r);
    return vt_within(err, rc, "outputs");
}

/* ---- writing one output ------------------------------------------------ */

enum {
    ROW_ROOM = 32 * POKE_NUMBER, /* heads, nils and single numbers */
    EVENT_ROOM = 48,
    PREFILL_ROOM = 256,
};

static size_t output_room(const struct wire_output *o)
{
    size_t room = ROW_ROOM + PREFILL_ROOM + o->id.len;

    room += (size_t)o->n_tokens * POKE_HEAD + (size_t)o->n_events * EVENT_ROOM;
    room += o->logprobs.len + o->prompt_logprobs.len + o->pooling.len;
    room += o->stop_reason.len + o->kv_transfer.len + o->ec_transfer.len;
    room += o->trace_headers.len + o->routed_experts.len;
    for (size_t i = 0; i < VT_COUNT(o->tail); i++)
        room += o->tail[i].len;
    return room;
}

void wire_output_write(struct vt_buf *b, const struct vt_wire_line *line,
                       const struct wire_output *o)
{
    uint32_t n_tail = line->output_fields - line->prefill_at - 3;
    uint8_t *p = poke_room(b, output_room(o));

    if (!p)
        return;
    p = poke_array(p, line->output_fields);
    p = poke_str(p, o->id.at, (uint32_t)o->id.len);
    p = poke_array(p, o->n_tokens);
    for (uint32_t i = 0; i < o->n_tokens; i++)
        p = poke_u64(p, o->token[i]);
    p = poke_raw(p, o->logprobs);
    p = poke_raw(p, o->prompt_logprobs);
    p = poke_raw(p, o->pooling);
    p = o->finish == WIRE_UNFINISHED ? poke_nil(p) : poke_i64(p, o->finish);
    p = poke_raw(p, o->stop_reason);
    p = o->n_events > 0 ? poke_array(p, o->n_events) : poke_nil(p);
    for (uint32_t i = 0; i < o->n_events; i++)
        p = msg_poke_map(p, line, &event_table, &o->event[i]);
    p = poke_raw(p, o->kv_transfer);
    if (line->ec_transfer)
        p = poke_raw(p, o->ec_transfer);
    p = poke_raw(p, o->trace_headers);
    p = msg_poke_field(p, line, &prefill_field, o);
    p = poke_raw(p, o->routed_experts);
    p = poke_u64(p, o->n_nans);
    for (uint32_t i = 0; i < n_tail && i < VT_COUNT(o->tail); i++)
        p = poke_raw(p, o->tail[i]);
    poke_done(b, p);
}

/* ---- around the outputs ----------------------------------------------- */

void wire_outputs_head(struct vt_buf *b, const struct vt_wire_line *line,
                       uint32_t engine_index, uint32_t n_outputs)
{
    uint8_t *p = poke_room(b, 3 * POKE_NUMBER);

    if (!p)
        return;
    p = poke_array(p, line->outputs_fields);
    p = poke_u64(p, engine_index);
    p = poke_array(p, n_outputs);
    poke_done(b, p);
}

static void wave_write(struct vt_buf *b, int64_t wave)
{
    if (wave < 0)
        mp_put_nil(b);
    else
        mp_put_i64(b, wave);
}

void wire_outputs_tail(struct vt_buf *b, const struct vt_wire_line *line,
                       const struct wire_outputs *o)
{
    uint8_t *p = o->has_stats ? poke_room(b, stats_room(&o->stats)) : NULL;

    if (p)
        poke_done(b, stats_poke(p, line, &o->stats));
    else
        mp_put_nil(b);
    mp_put_f64(b, o->timestamp);
    if (o->has_utility) {
        mp_put_array(b, 3);
        mp_put_raw(b, o->call_id);
        if (o->failure.at)
            mp_put_strn(b, o->failure.at, o->failure.len);
        else
            mp_put_nil(b);
        mp_put_raw(b, o->result);
    } else {
        mp_put_nil(b);
    }
    if (o->finished)
        wire_texts_write(b, o->finished, o->n_finished);
    else
        mp_put_nil(b);
    wave_write(b, o->wave_complete);
    wave_write(b, o->start_wave);
    if (line->outputs_fields > 8)
        mp_put_raw(b, o->weight_version);
}

void wire_outputs_write(struct vt_buf *b, const struct vt_wire_line *line,
                        const struct wire_outputs *o)
{
    wire_outputs_head(b, line, o->engine_index, o->n_outputs);
    for (uint32_t i = 0; i < o->n_outputs; i++)
        wire_output_write(b, line, &o->output[i]);
    wire_outputs_tail(b, line, o);
}
