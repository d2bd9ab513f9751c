/* outputs_write.c - what an engine answers. A step of hundreds of requests is one
 * message, written in one go: room for a row first, then every byte of it. */
#include "base/base.h"
#include "wire/codec/codec.h"
#include "wire/codec/stats.h"

/* ---- one output ------------------------------------------------------- */

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

static uint8_t *poke_events(uint8_t *p, const struct wire_event *event, uint32_t n)
{
    if (n == 0)
        return poke_nil(p);
    p = poke_array(p, n);
    for (uint32_t i = 0; i < n; i++) {
        p = poke_map(p, 2);
        p = poke_i64(POKE_KEY(p, "type"), event[i].type);
        p = poke_f64(POKE_KEY(p, "timestamp"), event[i].timestamp);
    }
    return p;
}

/* num_cache_creation_tokens came in 0.26, as ec_transfer_params did. */
static uint8_t *poke_prefill(uint8_t *p, const struct vt_wire_line *line,
                             const struct wire_output *o)
{
    const struct wire_prefill *f = &o->prefill;

    if (!o->has_prefill)
        return poke_nil(p);
    p = poke_map(p, line->ec_transfer ? 6 : 5);
    p = poke_u64(POKE_KEY(p, "num_prompt_tokens"), f->prompt);
    p = poke_u64(POKE_KEY(p, "num_computed_tokens"), f->computed);
    p = poke_u64(POKE_KEY(p, "num_cached_tokens"), f->cached);
    p = poke_u64(POKE_KEY(p, "num_local_cached_tokens"), f->local_cached);
    p = poke_u64(POKE_KEY(p, "num_external_cached_tokens"), f->external_cached);
    if (line->ec_transfer)
        p = poke_u64(POKE_KEY(p, "num_cache_creation_tokens"), f->cache_creation);
    return p;
}

/* request_id to stop_reason: the same in every line. */
static uint8_t *poke_first_fields(uint8_t *p, const struct wire_output *o)
{
    p = poke_str(p, o->id.at, (uint32_t)o->id.len);
    p = poke_array(p, o->n_tokens);
    for (uint32_t i = 0; i < o->n_tokens; i++)
        p = poke_u64(p, o->token[i]);
    p = poke_raw(p, o->logprobs);
    p = poke_raw(p, o->prompt_logprobs);
    p = poke_raw(p, o->pooling);
    p = o->finish == WIRE_UNFINISHED ? poke_nil(p) : poke_i64(p, o->finish);
    return poke_raw(p, o->stop_reason);
}

void wire_output_write(struct vt_buf *b, const struct vt_wire_line *line,
                       const struct wire_output *o)
{
    uint32_t n_tail = line->output_fields - line->prefill_at - 3;
    uint8_t *p = poke_room(b, output_room(o));

    if (!p)
        return;
    p = poke_array(p, line->output_fields);
    p = poke_first_fields(p, o);
    p = poke_events(p, o->event, o->n_events);
    p = poke_raw(p, o->kv_transfer);
    if (line->ec_transfer)
        p = poke_raw(p, o->ec_transfer);
    p = poke_raw(p, o->trace_headers);
    p = poke_prefill(p, line, o);
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

static void stats_write(struct vt_buf *b, const struct vt_wire_line *line,
                        const struct wire_outputs *o)
{
    uint8_t *p = o->has_stats ? poke_room(b, stats_room(&o->stats)) : NULL;

    if (p)
        poke_done(b, stats_poke(p, line, &o->stats));
    else
        mp_put_nil(b);
}

static void utility_write(struct vt_buf *b, const struct wire_outputs *o)
{
    if (!o->has_utility) {
        mp_put_nil(b);
        return;
    }
    mp_put_array(b, 3);
    mp_put_raw(b, o->call_id);
    if (o->failure.at)
        mp_put_strn(b, o->failure.at, o->failure.len);
    else
        mp_put_nil(b);
    mp_put_raw(b, o->result);
}

static void finished_write(struct vt_buf *b, const struct wire_outputs *o)
{
    if (!o->finished) {
        mp_put_nil(b);
        return;
    }
    mp_put_array(b, o->n_finished);
    for (uint32_t i = 0; i < o->n_finished; i++)
        mp_put_strn(b, o->finished[i].at, o->finished[i].len);
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
    stats_write(b, line, o);
    mp_put_f64(b, o->timestamp);
    utility_write(b, o);
    finished_write(b, o);
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
