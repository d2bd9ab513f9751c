/* spans.c - what play tells an OpenTelemetry collector: each request's way through the
 * engine, below the span that the frontend made of it, and the steps. */
#include "wire/play/engines.h"

#include <string.h>

static double unix_s(const struct play *p, vt_ns at)
{
    return p->zero_unix_s +
           (double)(vt_axis_wall(&p->axis, at) - p->axis.zero_ns) / 1e9;
}

int play_spans_open(struct play *p, struct vt_err *err)
{
    const struct vt_play_config *c = p->c;
    struct export_config x = {
        .endpoint = c->otlp.endpoint,
        .headers = c->otlp.headers,
        .protocol = c->otlp.protocol,
        .journey = c->otlp.journey,
        .steps = c->otlp.steps,
        .journey_rate = c->otlp.journey_rate,
        .step_rate = c->otlp.step_rate,
        .rich_rate = c->otlp.rich_rate,
        .core_only = true,
        .engine = &p->engine,
        .time_scale = c->time_scale,
    };

    p->zero_unix_s = vt_unix_s() - (double)(vt_wall_ns() - p->axis.zero_ns) / 1e9;
    return c->otlp.endpoint ? export_open(&p->spans, &x, err) : VT_OK;
}

/* ---- requests ----------------------------------------------------------------- */

void spans_parent(struct play_request *q, struct mp_span headers)
{
    struct mp_span text = {0};

    if (!mp_is_nil(headers))
        text = mp_text(mp_get(headers, "traceparent"));
    if (!text.at || text.len >= sizeof(q->way.parent))
        return;
    memcpy(q->way.parent, text.at, text.len);
    q->way.parent[text.len] = '\0';
}

/* One that is preempted often has more stages than are kept: its end replaces the last
 * of them. */
void spans_stage(struct play_request *q, enum export_stage stage, vt_ns at,
                 uint64_t step)
{
    struct play_way *w = &q->way;
    double now = unix_s(q->play, at);

    if (!q->play->spans || (w->n == PLAY_STAGES && stage != EXPORT_FINISHED))
        return;
    if (w->n < PLAY_STAGES)
        w->n++;
    w->event[w->n - 1] = (struct export_event){
        .stage = stage,
        .unix_s = now,
        .step = step,
        .prompt_done =
            w->first_s > 0 || stage == EXPORT_FIRST_TOKEN ? q->blocks.n_prompt : 0,
        .output_done = w->output,
    };
    if (stage == EXPORT_QUEUED)
        w->queued_s = now;
    else if (stage == EXPORT_SCHEDULED && !(w->scheduled_s > 0))
        w->scheduled_s = now;
    else if (stage == EXPORT_FIRST_TOKEN)
        w->first_s = now;
    else if (stage == EXPORT_FINISHED)
        w->last_s = now;
}

static void tell_request(struct play_request *q, const char *finish)
{
    struct play_way *w = &q->way;
    struct export_request e = {
        .id = q->id,
        .tag = q->tag,
        .engine = q->engine,
        .traceparent = w->parent[0] ? w->parent : NULL,
        .finish = finish,
        .arrival_s = w->queued_s,
        .queued_s = w->queued_s,
        .scheduled_s = w->scheduled_s,
        .first_s = w->first_s,
        .last_s = w->last_s,
        .prompt_tokens = q->blocks.n_prompt,
        .output_tokens = w->output,
        .max_tokens = q->script.max_tokens,
        .n = 1,
        .event = w->event,
        .n_events = w->n,
    };

    w->is_told = true;
    export_request(q->play->spans, &e);
}

/* One that goes before it has ended was aborted. */
void spans_gone(struct play_request *q)
{
    if (!q->play->spans || q->way.is_told || !(q->way.scheduled_s > 0))
        return;
    spans_stage(q, EXPORT_FINISHED, vt_axis_now(&q->play->axis), 0);
    tell_request(q, "abort");
}

/* ---- steps ----------------------------------------------------------------------- */

void spans_step(struct play_engines *k, const struct rank *r, const struct vt_step *s)
{
    struct play *p = k->p;

    if (!p->spans)
        return;
    for (uint32_t i = 0; i < s->n_rows; i++) {
        const struct vt_row *row = &s->row[i];
        struct play_request *q = vt_driver_find(k->driver, row->tag);

        if (!q)
            continue;
        q->way.output = row->first_index + row->new_tokens;
        if (row->first)
            spans_stage(q, EXPORT_FIRST_TOKEN, row->at, s->number);
        if (row->finish == VT_RUNNING_ON)
            continue;
        spans_stage(q, EXPORT_FINISHED, row->at, s->number);
        tell_request(q, row->finish == VT_LENGTH ? "length" : "stop");
    }
    export_step(p->spans, r->number, s, p->zero_unix_s, vt_engine_sched(r->core));
}
