#include "sim/run.h"

/* Later turns wait for their predecessor, not for their place in the list. */
static void skip_later_turns(struct source *s)
{
    while (s->mode == VT_ARRIVALS_SESSION && s->next < s->w->n &&
           !s->w->req[s->next].first_turn)
        s->next++;
}

static int start_next(struct source *s, vt_ns not_before, struct vt_err *err)
{
    size_t req = s->next;
    vt_ns at;

    if (req >= s->w->n)
        return VT_OK;
    s->next++;
    skip_later_turns(s);
    at = s->w->req[req].arrival_ns;
    return vt_agenda_push(&s->agenda, not_before >= 0 ? not_before : at, req, err);
}

int source_init(struct source *s, const struct vt_sim_spec *spec, struct vt_err *err)
{
    int rc = VT_OK;

    *s = (struct source){
        .w = spec->workload,
        .mode = spec->arrivals,
        .limit = spec->arrivals == VT_ARRIVALS_RECORDED ? 0 : spec->concurrency,
    };
    if (s->mode == VT_ARRIVALS_CLOSED && s->limit == 0)
        return vt_fail(err, VT_EINPUT, "closed arrivals need a concurrency");
    skip_later_turns(s);
    for (uint32_t i = 0; i < s->limit && s->next < s->w->n && rc == VT_OK; i++)
        rc = start_next(s, -1, err);
    if (rc != VT_OK)
        source_free(s);
    return rc;
}

void source_free(struct source *s)
{
    vt_agenda_free(&s->agenda);
}

static vt_ns next_recorded(const struct source *s)
{
    return s->limit == 0 && s->next < s->w->n ? s->w->req[s->next].arrival_ns
                                              : VT_NEVER;
}

vt_ns source_due(const struct source *s)
{
    vt_ns at = next_recorded(s);

    return s->agenda.n > 0 && s->agenda.due[0].at < at ? s->agenda.due[0].at : at;
}

size_t source_take(struct source *s)
{
    size_t req = s->next;

    if (s->agenda.n > 0 && s->agenda.due[0].at < next_recorded(s)) {
        req = s->agenda.due[0].item;
        vt_agenda_remove(&s->agenda, 0);
        return req;
    }
    s->next++;
    skip_later_turns(s);
    return req;
}

int source_ended(struct source *s, size_t req, vt_ns at, vt_ns pause,
                 struct vt_err *err)
{
    const struct vt_work *r = &s->w->req[req];

    if (s->mode == VT_ARRIVALS_RECORDED)
        return VT_OK;
    if (s->mode == VT_ARRIVALS_SESSION && r->next_turn != VT_NO_TURN)
        return vt_agenda_push(&s->agenda, at + pause + s->w->req[r->next_turn].think_ns,
                              r->next_turn, err);
    return s->limit > 0 ? start_next(s, at + pause, err) : VT_OK;
}
