/* make_records.h - records of a run that never was. */
#ifndef VT_TEST_MAKE_RECORDS_H
#define VT_TEST_MAKE_RECORDS_H

#include <stdlib.h>

#include "load/load.h"

/* A request of session and turn that was begun at `begun` ms, sent 1 ms later, had its
 * first event after ttft ms and then one every gap ms. */
struct made {
    uint32_t session, turn;
    double begun, ttft, gap;
    uint32_t events, prompt, output, cached;
    bool fails;
};

static void add_made(struct vt_load_records *r, const struct made *m)
{
    struct vt_err err = {0};
    vt_ns *stamp = vt_arena_alloc(&r->arena, (m->events + 1) * sizeof(*stamp));
    vt_ns begun = vt_ns_from_ms(m->begun);
    struct vt_load_record q = {
        .session = m->session,
        .turn = m->turn,
        .planned = begun,
        .begun = begun,
        .sent = begun + VT_MS,
        .stamp = stamp,
        .n_stamps = m->events,
        .prompt_tokens = m->prompt,
        .output_tokens = m->output,
        .cached_tokens = m->cached,
        .asked_tokens = m->output,
        .counted_by_server = true,
        .ok = !m->fails,
        .failure = m->fails ? VT_LOAD_STATUS : VT_LOAD_FINE,
        .status = m->fails ? 503 : 200,
        .error = m->fails ? "Service Unavailable" : NULL,
        .finish = "length",
    };

    if (!stamp || vt_grow(&r->record, &r->cap, r->n + 1, sizeof(q), &err) != VT_OK)
        abort();
    for (uint32_t i = 0; i < m->events; i++)
        stamp[i] = q.sent + vt_ns_from_ms(m->ttft + m->gap * i);
    q.first = q.first_text = m->events > 0 ? stamp[0] : 0;
    q.last = q.last_event = m->events > 0 ? stamp[m->events - 1] : 0;
    q.ended = q.last > 0 ? q.last : q.sent + VT_MS;
    r->record[r->n++] = q;
    r->end = q.ended > r->end ? q.ended : r->end;
}

#endif
