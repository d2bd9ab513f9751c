/* outputs_read.c - what an engine answers, read by the recorder and by our own
 * frontend. */
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
    MSG_FIELD(struct wire_prefill, text, MSG_U32, MSG_NIL_OK, member)

static const struct msg_field prefill_fields[] = {
    PREFILL("num_prompt_tokens", prompt),
    PREFILL("num_computed_tokens", computed),
    PREFILL("num_cached_tokens", cached),
    PREFILL("num_local_cached_tokens", local_cached),
    PREFILL("num_external_cached_tokens", external_cached),
    PREFILL("num_cache_creation_tokens", cache_creation),
};
static const struct msg_table prefill_table = MSG_TABLE(prefill_fields);

static int prefill_read(void *thing, struct msg_in *r)
{
    struct wire_output *o = thing;

    o->has_prefill = true;
    return msg_read_map(&prefill_table, &o->prefill, r);
}

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
#define FIELDS_AFTER                                                       \
    OUTPUT("trace_headers", MSG_MAP, MSG_NIL_OK, trace_headers),           \
        MSG_READ("prefill_stats", MSG_NIL_OK, prefill_read),               \
        OUTPUT("routed_experts", MSG_TENSORS, MSG_NIL_OK, routed_experts), \
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

static int output_read(struct wire_output *o, struct msg_in *r)
{
    uint32_t n;
    int rc;

    o->finish = WIRE_UNFINISHED;
    rc = msg_read_array(output_table(r), o, r, &n);
    if (rc == VT_OK && n < 2)
        rc = vt_fail(r->err, VT_EINPUT, "no request_id and new_token_ids");
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
    for (uint32_t i = 0; i < n && rc == VT_OK; i++)
        rc = vt_within(r->err, output_read(&o->output[i], r), "output %u", i);
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
