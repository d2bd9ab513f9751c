/* stats.c - scheduler_stats: keys and their order as each line's engine writes them
 * (0.26 and 0.32 as captured, the others by their sources). */
#include "wire/codec/stats.h"

#define STAT(text, kind, member) \
    MSG_FIELD(struct wire_stats, text, kind, MSG_NIL_OK, member)

static const struct msg_field prefix_fields[] = {
    STAT("reset", MSG_BOOL, reset),
    STAT("requests", MSG_U64, requests),
    STAT("queries", MSG_U64, queries),
    STAT("hits", MSG_U64, hits),
    STAT("preempted_requests", MSG_U64, preempted_requests),
    STAT("preempted_queries", MSG_U64, preempted_queries),
    STAT("preempted_hits", MSG_U64, preempted_hits),
    MSG_CONST("hits_by_source", MSG_NO_PAIRS, MSG_FROM_0_32),
};
static const struct msg_table prefix_table = MSG_TABLE(prefix_fields);

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

/* ---- speculative decoding --------------------------------------------- */

struct spec_lists { /* each with a length of its own */
    struct wire_spec spec;
    const uint64_t *accepted_at, *drafted_at;
    uint32_t n_accepted_at, n_drafted_at;
};

#define SPEC(text, kind, member) \
    MSG_FIELD(struct spec_lists, text, kind, MSG_NIL_OK, spec.member)
#define SPEC_LIST(text, member, n_member) \
    MSG_LIST(struct spec_lists, text, MSG_U64S, MSG_NIL_OK, member, n_member)

static const struct msg_field spec_fields[] = {
    SPEC("num_spec_tokens", MSG_U32, num_spec_tokens),
    SPEC("num_drafts", MSG_U64, drafts),
    SPEC("num_draft_tokens", MSG_U64, draft_tokens),
    SPEC("num_accepted_tokens", MSG_U64, accepted_tokens),
    SPEC_LIST("num_accepted_tokens_per_pos", accepted_at, n_accepted_at),
    SPEC_LIST("num_draft_tokens_per_pos", drafted_at, n_drafted_at),
};
static const struct msg_table spec_table = MSG_TABLE(spec_fields);

/* Lists that are not as long as announced are taken for none: whoever reads them goes
 * by the number of tokens. */
static int spec_read(void *thing, struct msg_in *r)
{
    struct wire_stats *s = thing;
    struct spec_lists lists = {0};
    int rc = msg_read_map(&spec_table, &lists, r);

    s->has_spec = true;
    s->spec = lists.spec;
    if (lists.n_accepted_at == s->spec.num_spec_tokens)
        s->spec.accepted_at = lists.accepted_at;
    if (lists.n_drafted_at == s->spec.num_spec_tokens)
        s->spec.drafted_at = lists.drafted_at;
    return rc;
}

static uint8_t *spec_poke(uint8_t *p, const struct vt_wire_line *line,
                          const void *thing)
{
    const struct wire_stats *s = thing;
    struct spec_lists lists = {s->spec, s->spec.accepted_at, s->spec.drafted_at, 0, 0};

    if (!s->has_spec)
        return poke_nil(p);
    lists.n_accepted_at = lists.accepted_at ? s->spec.num_spec_tokens : 0;
    lists.n_drafted_at = lists.drafted_at ? s->spec.num_spec_tokens : 0;
    return msg_poke_map(p, line, &spec_table, &lists);
}

/* ---- all of it -------------------------------------------------------- */

/* Requests that fetch KV blocks from elsewhere: none here. */
static const struct msg_field fetch_fields[] = {
    MSG_CONST("waiting_to_start", MSG_ZERO, MSG_ALL_LINES),
    MSG_CONST("in_progress", MSG_ZERO, MSG_ALL_LINES),
    MSG_CONST("completed_waiting", MSG_ZERO, MSG_ALL_LINES),
};
static const struct msg_table fetch_table = MSG_TABLE(fetch_fields);

static const struct msg_field fields[] = {
    STAT("num_running_reqs", MSG_U32, running),
    STAT("num_waiting_reqs", MSG_U32, waiting),
    STAT("num_skipped_waiting_reqs", MSG_U32, skipped_waiting),
    {MSG_NAMED("num_kv_fetch_reqs_by_stage", MSG_ZEROS, MSG_NIL_OK),
     .since = MSG_FROM_0_32, .nested = &fetch_table},
    STAT("step_counter", MSG_U64, step_counter),
    STAT("current_wave", MSG_I64, current_wave),
    STAT("kv_cache_usage", MSG_F64, kv_usage),
    {MSG_NAMED("iteration_details", MSG_NESTED, MSG_NIL_OK), .since = MSG_FROM_0_26,
     .n_at = offsetof(struct wire_stats, has_iteration), .nested = &iteration_table},
    {MSG_NAMED("prefix_cache_stats", MSG_NESTED, MSG_NIL_OK), .nested = &prefix_table},
    MSG_CONST("connector_prefix_cache_stats", MSG_NIL, MSG_ALL_LINES),
    MSG_CONST("kv_cache_eviction_events", MSG_NO_ITEMS, MSG_ALL_LINES),
    {MSG_NAMED("spec_decoding_stats", MSG_OTHER, MSG_NIL_OK), .read = spec_read,
     .poke = spec_poke},
    MSG_CONST("kv_connector_stats", MSG_NIL, MSG_ALL_LINES),
    MSG_CONST("ec_connector_stats", MSG_NIL, MSG_FROM_0_32),
    MSG_CONST("waiting_lora_adapters", MSG_NO_PAIRS, MSG_ALL_LINES),
    MSG_CONST("running_lora_adapters", MSG_NO_PAIRS, MSG_ALL_LINES),
    MSG_CONST("cudagraph_stats", MSG_NIL, MSG_ALL_LINES),
    MSG_CONST("perf_stats", MSG_NIL, MSG_ALL_LINES),
};
static const struct msg_table table = MSG_TABLE(fields);

int stats_read(struct wire_stats *s, struct msg_in *r)
{
    const uint8_t *from = r->in.at;
    int rc = msg_read_map(&table, s, r);

    if (rc == VT_OK)
        s->raw = (struct mp_span){from, (size_t)(r->in.at - from)};
    return rc;
}

/* All keys and the longest numbers are below 1,400 bytes. */
size_t stats_room(const struct wire_stats *s)
{
    return 1400 + (s->has_spec ? (size_t)s->spec.num_spec_tokens * 2 * POKE_NUMBER : 0);
}

uint8_t *stats_poke(uint8_t *p, const struct vt_wire_line *line,
                    const struct wire_stats *s)
{
    return msg_poke_map(p, line, &table, s);
}
