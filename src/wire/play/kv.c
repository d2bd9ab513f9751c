/* kv.c - block events, encoded while the requests that know their tokens are there, on
 * their way to intake, which publishes them. */
#include "wire/play/engines.h"

static const struct vt_blocks *blocks_of(void *engines, uint64_t tag)
{
    const struct play_request *q = engines_request(engines, tag);

    return q ? &q->blocks : NULL; /* one aborted in this very pass is gone */
}

int engines_kv(struct play_engines *k, struct rank *r, struct vt_err *err)
{
    const struct vt_play_config *c = k->p->c;
    struct vt_kv_batch *b = &k->kv;
    struct note *n;

    b->session_ids = c->line && c->line->kv_fetch_stats;
    vt_kv_batch_collect(b, vt_engine_sched(r->core), blocks_of, k);
    if (b->events.failed)
        return vt_nomem(err);
    if (b->n_events == 0)
        return VT_OK;
    n = note_with(NOTE_KV, r->number, b->events.data, b->events.len);
    if (!n)
        return vt_nomem(err);
    n->n_events = b->n_events;
    n->unix_s = vt_unix_s();
    vt_buf_clear(&b->events);
    b->n_events = 0;
    play_to_intake(k->p, n);
    return VT_OK;
}
