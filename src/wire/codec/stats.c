/* stats.c - scheduler_stats: keys and their order as each line's engine writes them
 * (0.26 and 0.32 as captured, the others by their sources). */
#include "wire/codec/stats.h"

#include "base/base.h"

/* ---- reading ---------------------------------------------------------- */

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
};
static const struct msg_table prefix_table = MSG_TABLE(prefix_fields);

static int prefix_read(void *thing, struct msg_in *r)
{
    return msg_read_map(&prefix_table, thing, r);
}

static const struct msg_field iteration_fields[] = {
    STAT("iteration_index", MSG_U64, iteration.index),
    STAT("num_ctx_requests", MSG_U32, iteration.prefills),
    STAT("num_ctx_tokens", MSG_U32, iteration.prefill_tokens),
    STAT("num_generation_requests", MSG_U32, iteration.decodes),
    STAT("num_generation_tokens", MSG_U32, iteration.decode_tokens),
    STAT("elapsed_ms", MSG_F64, iteration.elapsed_ms),
    STAT("is_dummy", MSG_BOOL, iteration.dummy),
};
static const struct msg_table iteration_table = MSG_TABLE(iteration_fields);

static int iteration_read(void *thing, struct msg_in *r)
{
    struct wire_stats *s = thing;

    s->has_iteration = true;
    return msg_read_map(&iteration_table, s, r);
}

struct spec_reading {
    struct wire_spec spec;
    uint64_t *accepted_at, *drafted_at;
    uint32_t n_accepted_at, n_drafted_at;
};

#define SPEC(text, kind, member) \
    MSG_FIELD(struct spec_reading, text, kind, MSG_NIL_OK, spec.member)
#define SPEC_LIST(text, member, n_member) \
    MSG_LIST(struct spec_reading, text, MSG_U64S, MSG_NIL_OK, member, n_member)

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
    struct spec_reading reading = {0};
    int rc = msg_read_map(&spec_table, &reading, r);

    s->has_spec = true;
    s->spec = reading.spec;
    if (reading.n_accepted_at == s->spec.num_spec_tokens)
        s->spec.accepted_at = reading.accepted_at;
    if (reading.n_drafted_at == s->spec.num_spec_tokens)
        s->spec.drafted_at = reading.drafted_at;
    return rc;
}

static const struct msg_field fields[] = {
    STAT("num_running_reqs", MSG_U32, running),
    STAT("num_waiting_reqs", MSG_U32, waiting),
    STAT("num_skipped_waiting_reqs", MSG_U32, skipped_waiting),
    STAT("step_counter", MSG_U64, step_counter),
    STAT("current_wave", MSG_I64, current_wave),
    STAT("kv_cache_usage", MSG_F64, kv_usage),
    MSG_READ("iteration_details", MSG_NIL_OK, iteration_read),
    MSG_READ("prefix_cache_stats", MSG_NIL_OK, prefix_read),
    MSG_READ("spec_decoding_stats", MSG_NIL_OK, spec_read),
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

/* ---- writing ---------------------------------------------------------- */

#define KEY_U64(p, key, v)  poke_u64(POKE_KEY(p, key), v)
#define KEY_BOOL(p, key, v) poke_bool(POKE_KEY(p, key), v)
#define KEY_F64(p, key, v)  poke_f64(POKE_KEY(p, key), v)
#define KEY_NIL(p, key)     poke_nil(POKE_KEY(p, key))

static uint8_t *poke_prefix(uint8_t *p, const struct vt_wire_line *line,
                            const struct wire_stats *s)
{
    p = poke_map(POKE_KEY(p, "prefix_cache_stats"), line->kv_fetch_stats ? 8 : 7);
    p = KEY_BOOL(p, "reset", s->reset);
    p = KEY_U64(p, "requests", s->requests);
    p = KEY_U64(p, "queries", s->queries);
    p = KEY_U64(p, "hits", s->hits);
    p = KEY_U64(p, "preempted_requests", s->preempted_requests);
    p = KEY_U64(p, "preempted_queries", s->preempted_queries);
    p = KEY_U64(p, "preempted_hits", s->preempted_hits);
    if (line->kv_fetch_stats)
        p = poke_map(POKE_KEY(p, "hits_by_source"), 0);
    return p;
}

static uint8_t *poke_iteration(uint8_t *p, const struct wire_stats *s)
{
    const struct wire_iteration *it = &s->iteration;

    p = POKE_KEY(p, "iteration_details");
    if (!s->has_iteration)
        return poke_nil(p);
    p = poke_map(p, 9);
    p = KEY_U64(p, "iteration_index", it->index);
    p = KEY_U64(p, "num_ctx_requests", it->prefills);
    p = KEY_U64(p, "num_ctx_tokens", it->prefill_tokens);
    p = KEY_U64(p, "num_generation_requests", it->decodes);
    p = KEY_U64(p, "num_generation_tokens", it->decode_tokens);
    p = KEY_F64(p, "elapsed_ms", it->elapsed_ms);
    p = KEY_U64(p, "num_encoder_inputs", 0);
    p = KEY_U64(p, "num_encoder_output_tokens", 0);
    return KEY_BOOL(p, "is_dummy", it->dummy);
}

static uint8_t *poke_counts(uint8_t *p, const uint64_t *count, uint32_t n)
{
    p = poke_array(p, count ? n : 0);
    for (uint32_t i = 0; count && i < n; i++)
        p = poke_u64(p, count[i]);
    return p;
}

static uint8_t *poke_spec(uint8_t *p, const struct wire_stats *s)
{
    const struct wire_spec *spec = &s->spec;
    uint32_t n = spec->num_spec_tokens;

    p = POKE_KEY(p, "spec_decoding_stats");
    if (!s->has_spec)
        return poke_nil(p);
    p = poke_map(p, 6);
    p = KEY_U64(p, "num_spec_tokens", n);
    p = KEY_U64(p, "num_drafts", spec->drafts);
    p = KEY_U64(p, "num_draft_tokens", spec->draft_tokens);
    p = KEY_U64(p, "num_accepted_tokens", spec->accepted_tokens);
    p = poke_counts(POKE_KEY(p, "num_accepted_tokens_per_pos"), spec->accepted_at, n);
    return poke_counts(POKE_KEY(p, "num_draft_tokens_per_pos"), spec->drafted_at, n);
}

/* Requests that fetch KV blocks from elsewhere: none here. */
static uint8_t *poke_fetches(uint8_t *p)
{
    p = poke_map(POKE_KEY(p, "num_kv_fetch_reqs_by_stage"), 3);
    p = KEY_U64(p, "waiting_to_start", 0);
    p = KEY_U64(p, "in_progress", 0);
    return KEY_U64(p, "completed_waiting", 0);
}

static uint8_t *poke_tail(uint8_t *p, const struct vt_wire_line *line,
                          const struct wire_stats *s)
{
    p = KEY_NIL(p, "connector_prefix_cache_stats");
    p = poke_array(POKE_KEY(p, "kv_cache_eviction_events"), 0);
    p = poke_spec(p, s);
    p = KEY_NIL(p, "kv_connector_stats");
    if (line->kv_fetch_stats)
        p = KEY_NIL(p, "ec_connector_stats");
    p = poke_map(POKE_KEY(p, "waiting_lora_adapters"), 0);
    p = poke_map(POKE_KEY(p, "running_lora_adapters"), 0);
    p = KEY_NIL(p, "cudagraph_stats");
    return KEY_NIL(p, "perf_stats");
}

/* All keys and the longest numbers are below 1,400 bytes. */
size_t stats_room(const struct wire_stats *s)
{
    return 1400 + (s->has_spec ? (size_t)s->spec.num_spec_tokens * 2 * POKE_NUMBER : 0);
}

uint8_t *stats_poke(uint8_t *p, const struct vt_wire_line *line,
                    const struct wire_stats *s)
{
    /* iteration_details came in 0.26, as ec_transfer_params did. */
    bool details = line->ec_transfer;

    p = poke_map(p, 15u + details + (line->kv_fetch_stats ? 2 : 0));
    p = KEY_U64(p, "num_running_reqs", s->running);
    p = KEY_U64(p, "num_waiting_reqs", s->waiting);
    p = KEY_U64(p, "num_skipped_waiting_reqs", s->skipped_waiting);
    if (line->kv_fetch_stats)
        p = poke_fetches(p);
    p = KEY_U64(p, "step_counter", s->step_counter);
    p = poke_i64(POKE_KEY(p, "current_wave"), s->current_wave);
    p = KEY_F64(p, "kv_cache_usage", s->kv_usage);
    if (details)
        p = poke_iteration(p, s);
    p = poke_prefix(p, line, s);
    return poke_tail(p, line, s);
}
