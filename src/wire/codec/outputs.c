/* outputs.c - what an engine answers; read by the recorder and by our own frontend.
 *
 * A step of hundreds of requests is one message, written in one go: room for a row
 * first, then every byte of it. */
#include "wire/codec/codec.h"
#include "wire/codec/fields.h"

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
#define FIELDS_AFTER                                                                   \
    OUTPUT("trace_headers", MSG_MAP, MSG_NIL_OK, trace_headers),                       \
        {MSG_NAMED("prefill_stats", MSG_NESTED, MSG_NIL_OK),                           \
         .n_at = offsetof(struct wire_output, has_prefill), .nested = &prefill_table}, \
        OUTPUT("routed_experts", MSG_TENSORS, MSG_NIL_OK, routed_experts),             \
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

/* ---- scheduler_stats: keys and their order as each line's engine writes them (0.26
 * and 0.32 as captured, the others by their sources) ---- */

#define STAT(text, kind, member) \
    MSG_FIELD(struct wire_outputs, text, kind, MSG_NIL_OK, stats.member)
#define STAT_LIST(text, member, n_member)                                   \
    MSG_LIST(struct wire_outputs, text, MSG_U64S, MSG_NIL_OK, stats.member, \
             stats.n_member)

#define CACHE_STATS(of)                                                        \
    STAT("reset", MSG_BOOL, of.reset), STAT("requests", MSG_U64, of.requests), \
        STAT("queries", MSG_U64, of.queries), STAT("hits", MSG_U64, of.hits),  \
        STAT("preempted_requests", MSG_U64, of.preempted_requests),            \
        STAT("preempted_queries", MSG_U64, of.preempted_queries),              \
        STAT("preempted_hits", MSG_U64, of.preempted_hits)

static const struct msg_field prefix_fields[] = {
    CACHE_STATS(cache), MSG_CONST("hits_by_source", MSG_NO_PAIRS, MSG_FROM_0_32)};
static const struct msg_table prefix_table = MSG_TABLE(prefix_fields);

static const struct msg_field source_fields[] = {
    MSG_FIELD(struct wire_outputs, "host", MSG_U64, MSG_LEFT_OUT, stats.host_hits),
    MSG_FIELD(struct wire_outputs, "p2p", MSG_U64, MSG_LEFT_OUT, stats.p2p_hits),
};
static const struct msg_table source_table = MSG_TABLE(source_fields);

static const struct msg_field external_fields[] = {
    CACHE_STATS(external),
    {MSG_NAMED("hits_by_source", MSG_NESTED, MSG_NIL_OK), .since = MSG_FROM_0_32,
     .nested = &source_table},
};
static const struct msg_table external_table = MSG_TABLE(external_fields);

static const struct msg_field iteration_fields[] = {
    STAT("iteration_index", MSG_U64, iteration.index),
    STAT("num_ctx_requests", MSG_U32, iteration.prefills),
    STAT("num_ctx_tokens", MSG_U32, iteration.prefill_tokens),
    STAT("num_generation_requests", MSG_U32, iteration.decodes),
    STAT("num_generation_tokens", MSG_U32, iteration.decode_tokens),
    STAT("elapsed_ms", MSG_F64, iteration.elapsed_ms),
    MSG_CONST("num_encoder_inputs", MSG_ZERO, MSG_ALL_LINES),
    MSG_CONST("num_encoder_output_tokens", MSG_ZERO, MSG_ALL_LINES),
    STAT("is_dummy", MSG_BOOL, iteration.dummy),
};
static const struct msg_table iteration_table = MSG_TABLE(iteration_fields);

static const struct msg_field spec_fields[] = {
    STAT("num_spec_tokens", MSG_U32, spec.num_spec_tokens),
    STAT("num_drafts", MSG_U64, spec.drafts),
    STAT("num_draft_tokens", MSG_U64, spec.draft_tokens),
    STAT("num_accepted_tokens", MSG_U64, spec.accepted_tokens),
    STAT_LIST("num_accepted_tokens_per_pos", spec.accepted_at, spec.n_accepted_at),
    STAT_LIST("num_draft_tokens_per_pos", spec.drafted_at, spec.n_drafted_at),
};
static const struct msg_table spec_table = MSG_TABLE(spec_fields);

/* Requests that fetch KV blocks from elsewhere. */
static const struct msg_field fetch_fields[] = {
    STAT("waiting_to_start", MSG_U32, fetches.waiting),
    STAT("in_progress", MSG_U32, fetches.pulling),
    STAT("completed_waiting", MSG_U32, fetches.pulled),
};
static const struct msg_table fetch_table = MSG_TABLE(fetch_fields);

static const struct msg_field stats_fields[] = {
    STAT("num_running_reqs", MSG_U32, running),
    STAT("num_waiting_reqs", MSG_U32, waiting),
    STAT("num_skipped_waiting_reqs", MSG_U32, skipped_waiting),
    {MSG_NAMED("num_kv_fetch_reqs_by_stage", MSG_NESTED, MSG_NIL_OK),
     .since = MSG_FROM_0_32, .nested = &fetch_table},
    STAT("step_counter", MSG_U64, step_counter),
    STAT("current_wave", MSG_I64, current_wave),
    STAT("kv_cache_usage", MSG_F64, kv_usage),
    {MSG_NAMED("iteration_details", MSG_NESTED, MSG_NIL_OK), .since = MSG_FROM_0_26,
     .n_at = offsetof(struct wire_outputs, stats.has_iteration),
     .nested = &iteration_table},
    {MSG_NAMED("prefix_cache_stats", MSG_NESTED, MSG_NIL_OK), .nested = &prefix_table},
    {MSG_NAMED("connector_prefix_cache_stats", MSG_NESTED, MSG_NIL_OK),
     .n_at = offsetof(struct wire_outputs, stats.has_external),
     .nested = &external_table},
    MSG_CONST("kv_cache_eviction_events", MSG_NO_ITEMS, MSG_ALL_LINES),
    {MSG_NAMED("spec_decoding_stats", MSG_NESTED, MSG_NIL_OK),
     .n_at = offsetof(struct wire_outputs, stats.has_spec), .nested = &spec_table},
    STAT("kv_connector_stats", MSG_VALUE, connector),
    MSG_CONST("ec_connector_stats", MSG_NIL, MSG_FROM_0_31),
    MSG_CONST("waiting_lora_adapters", MSG_NO_PAIRS, MSG_ALL_LINES),
    MSG_CONST("running_lora_adapters", MSG_NO_PAIRS, MSG_ALL_LINES),
    MSG_CONST("cudagraph_stats", MSG_NIL, MSG_ALL_LINES),
    MSG_CONST("perf_stats", MSG_NIL, MSG_ALL_LINES),
};
static const struct msg_table stats_table = MSG_TABLE(stats_fields);

static int stats_read(void *thing, struct msg_in *r)
{
    struct wire_outputs *o = thing;
    const uint8_t *from = r->in.at;
    int rc = msg_read_map(&stats_table, o, r);

    o->has_stats = true;
    if (rc == VT_OK)
        o->stats.raw = (struct mp_span){from, (size_t)(r->in.at - from)};
    return rc;
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
    {MSG_NAMED("scheduler_stats", MSG_NESTED, MSG_NIL_OK), .read = stats_read,
     .n_at = offsetof(struct wire_outputs, has_stats), .nested = &stats_table},
    OUTPUTS("timestamp", MSG_F64, MSG_NEVER_NIL, timestamp),
    {MSG_NAMED("utility_output", MSG_TUPLE, MSG_NIL_OK), .read = utility_read,
     .n_at = offsetof(struct wire_outputs, has_utility), .nested = &utility_table},
    MSG_LIST(struct wire_outputs, "finished_requests", MSG_TEXTS, MSG_NIL_OK, finished,
             n_finished),
    OUTPUTS("wave_complete", MSG_I64, MSG_NIL_BELOW_0, wave_complete),
    OUTPUTS("start_wave", MSG_I64, MSG_NIL_BELOW_0, start_wave),
    OUTPUTS("weight_version", MSG_VALUE, MSG_NIL_OK, weight_version),
};
static const struct msg_table table = MSG_TABLE(fields);
enum { BEFORE_TAIL = 2 }; /* fields up to the outputs */

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

/* Without a table: rows are many. */
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
    if (line->minor >= 26)
        p = poke_raw(p, o->ec_transfer);
    p = poke_raw(p, o->trace_headers);
    p = o->has_prefill ? msg_poke_map(p, line, &prefill_table, o) : poke_nil(p);
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

void wire_outputs_tail(struct vt_buf *b, const struct vt_wire_line *line,
                       const struct wire_outputs *o)
{
    msg_write_fields(b, line, &table, BEFORE_TAIL, line->outputs_fields, o);
}

void wire_outputs_write(struct vt_buf *b, const struct vt_wire_line *line,
                        const struct wire_outputs *o)
{
    wire_outputs_head(b, line, o->engine_index, o->n_outputs);
    for (uint32_t i = 0; i < o->n_outputs; i++)
        wire_output_write(b, line, &o->output[i]);
    wire_outputs_tail(b, line, o);
}
