/* replay.c - requests that follow recorded times: every chunk leaves when it did,
 * counted from the request's arrival, whatever else runs. The scheduler is not asked.
 */
#include "wire/play/engines.h"

static uint64_t blocks_of(const struct play_engines *k, const struct play_request *q)
{
    return vt_blocks_of_request(&k->p->engine,
                                (uint64_t)q->blocks.n_prompt + q->script.max_tokens);
}

int engines_replay_begin(struct play_engines *k, struct rank *r, struct play_request *q,
                         vt_ns now, struct vt_err *err)
{
    vt_ns ttft = q->script.steps->ttft_ns;

    q->chunk = 0;
    q->next_ns = now + (ttft > 0 ? ttft : 0);
    play_request_event(q, WIRE_SCHEDULED, play_timestamp(k->p, now));
    if (vt_agenda_push(&r->replays, q->next_ns, q->tag, err) != VT_OK)
        return VT_ENOMEM;
    r->replay_blocks += blocks_of(k, q);
    return VT_OK;
}

static void end_replay(struct play_engines *k, struct rank *r, size_t at,
                       const struct play_request *q)
{
    vt_agenda_remove(&r->replays, at);
    r->replay_blocks -= blocks_of(k, q);
}

void engines_replay_drop(struct play_engines *k, struct rank *r, struct play_request *q)
{
    for (size_t i = 0; i < r->replays.n; i++)
        if (r->replays.due[i].item == q->tag) {
            end_replay(k, r, i, q);
            return;
        }
}

/* Tokens of chunk number q->chunk as it was recorded. */
static uint32_t chunk_tokens(const struct play_request *q)
{
    const struct vt_record *rec = q->script.steps;
    uint32_t later = rec->n_gaps;

    if (q->chunk > 0)
        return rec->gap_tokens ? rec->gap_tokens[q->chunk - 1] : 1;
    if (rec->gap_tokens) {
        later = 0;
        for (uint32_t i = 0; i < rec->n_gaps; i++)
            later += rec->gap_tokens[i];
    }
    return rec->output_tokens > later ? rec->output_tokens - later : 1;
}

int engines_replay_step(struct play_engines *k, struct rank *r, vt_ns now,
                        struct vt_err *err)
{
    int rc = VT_OK;

    while (rc == VT_OK && r->replays.n > 0 && r->replays.due[0].at <= now) {
        struct play_request *q = vt_driver_find(k->driver, r->replays.due[0].item);
        vt_ns at = r->replays.due[0].at;
        const struct script *s = &q->script;
        bool last, first = q->chunk == 0;
        uint32_t n = chunk_tokens(q), end = s->max_tokens;

        /* Cut where a stop token or the limit ends the request. */
        if (s->eos_at != VT_NO_STOP && s->eos_at < end)
            end = s->eos_at + 1;
        if (s->stop_at != VT_NO_STOP && s->stop_at < end)
            end = s->stop_at + 1;
        last = q->told + n >= end || q->chunk >= s->steps->n_gaps;
        if (q->told + n > end)
            n = end - q->told;
        if (last) {
            end_replay(k, r, 0, q);
        } else {
            vt_agenda_remove(&r->replays, 0);
            q->next_ns = at + vt_record_gap(q->script.steps, q->chunk);
            q->chunk++;
            rc = vt_agenda_push(&r->replays, q->next_ns, q->tag, err);
        }
        if (rc == VT_OK)
            rc = engines_emit_chunk(k, r, q, n, first, last, at, err);
    }
    return rc;
}
