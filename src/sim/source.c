#include "sim/run.h"

/* Later turns wait for their predecessor, not for their place in the list. */
static int go_to_next_start(struct source *s, struct vt_err *err)
{
    int rc = window_reach(s->x, s->next, err);

    while (rc == VT_OK && s->mode == VT_ARRIVALS_SESSION && s->next < s->x->w->n &&
           !window_work(s->x, s->next)->first_turn)
        rc = window_reach(s->x, ++s->next, err);
    return rc;
}

static int start_next(struct source *s, vt_ns not_before, struct vt_err *err)
{
    size_t req = s->next;
    vt_ns at;
    int rc;

    if (req >= s->x->w->n)
        return VT_OK;
    at = not_before >= 0 ? not_before : window_work(s->x, req)->arrival_ns;
    s->next++;
    rc = go_to_next_start(s, err);
    return rc ? rc : vt_agenda_push(&s->agenda, at, req, err);
}

static int open_trees(struct source *s, const struct vt_workload *w, struct vt_err *err)
{
    if (s->mode != VT_ARRIVALS_SESSION || !w->forked)
        return VT_OK;
    s->before = calloc(w->n, sizeof(*s->before));
    s->open = calloc(w->n, sizeof(*s->open)); /* sessions are fewer than requests */
    if (!s->before || !s->open)
        return vt_nomem(err);
    for (size_t i = 0; i < w->n; i++) {
        s->before[i] = w->req[i].n_before;
        s->open[w->req[i].session]++;
    }
    return VT_OK;
}

int source_init(struct source *s, const struct vt_sim_spec *spec, struct window *x,
                struct vt_err *err)
{
    vt_ns together = -1;
    int rc;

    *s = (struct source){
        .x = x,
        .mode = spec->arrivals,
        .limit = spec->arrivals == VT_ARRIVALS_RECORDED ? 0 : spec->concurrency,
        .held_to = spec->arrivals == VT_ARRIVALS_RECORDED ? spec->held_to : 0,
    };
    if (s->mode == VT_ARRIVALS_CLOSED && s->limit == 0)
        return vt_fail(err, VT_EINPUT, "closed arrivals need a concurrency");
    if ((rc = open_trees(s, x->w, err)) == VT_OK)
        rc = go_to_next_start(s, err);
    if (rc == VT_OK && spec->start_together && s->next < x->w->n)
        together = window_work(x, s->next)->arrival_ns;
    for (uint32_t i = 0; i < s->limit && s->next < x->w->n && rc == VT_OK; i++)
        rc = start_next(s, together, err);
    if (rc != VT_OK)
        source_free(s);
    return rc;
}

void source_free(struct source *s)
{
    vt_agenda_free(&s->agenda);
    free(s->before);
    free(s->open);
}

/* A client without a free place waits; what waits longest goes when there is one. */
static vt_ns next_recorded(const struct source *s)
{
    vt_ns at;

    if (s->limit > 0 || s->next >= s->x->w->n ||
        (s->held_to > 0 && s->sent >= s->held_to))
        return VT_NEVER;
    at = window_work(s->x, s->next)->arrival_ns;
    return at > s->free_ns ? at : s->free_ns;
}

vt_ns source_due(const struct source *s)
{
    vt_ns at = next_recorded(s);

    return s->agenda.n > 0 && s->agenda.due[0].at < at ? s->agenda.due[0].at : at;
}

int source_take(struct source *s, size_t *req, struct vt_err *err)
{
    if (s->agenda.n > 0 && s->agenda.due[0].at < next_recorded(s)) {
        *req = s->agenda.due[0].item;
        vt_agenda_remove(&s->agenda, 0);
        return VT_OK;
    }
    *req = s->next++;
    s->sent++;
    return go_to_next_start(s, err);
}

/* Those that waited for it alone, or for it as the last one, come; when nothing of a
 * session is left, the next session may. Ends are told in the order of time. */
static int tree_ended(struct source *s, const struct vt_work *r, vt_ns at,
                      struct vt_err *err)
{
    int rc = VT_OK;

    for (uint32_t i = r->next_turn; i != VT_NO_TURN && rc == VT_OK;) {
        const struct vt_work *q = window_work(s->x, i);

        if (--s->before[i] == 0)
            rc = vt_agenda_push(&s->agenda, at + q->think_ns, i, err);
        i = q->beside;
    }
    if (rc == VT_OK && --s->open[r->session] == 0 && s->limit > 0)
        rc = start_next(s, at, err);
    return rc;
}

int source_ended(struct source *s, size_t req, vt_ns at, vt_ns pause,
                 struct vt_err *err)
{
    const struct vt_work *r = window_work(s->x, req);

    if (s->mode == VT_ARRIVALS_RECORDED) {
        if (s->held_to > 0 && s->sent-- == s->held_to)
            s->free_ns = at + pause;
        return VT_OK;
    }
    if (s->before)
        return tree_ended(s, r, at + pause, err);
    if (s->mode == VT_ARRIVALS_SESSION && r->next_turn != VT_NO_TURN)
        return vt_agenda_push(&s->agenda,
                              at + pause + window_work(s->x, r->next_turn)->think_ns,
                              r->next_turn, err);
    return s->limit > 0 ? start_next(s, at + pause, err) : VT_OK;
}

int source_dropped(struct source *s, size_t req, vt_ns at, size_t *n,
                   struct vt_err *err)
{
    *n = 0;
    if (s->mode != VT_ARRIVALS_SESSION)
        return source_ended(s, req, at, 0, err);
    for (uint32_t i = window_work(s->x, req)->next_turn; i != VT_NO_TURN;
         i = window_work(s->x, i)->next_turn)
        ++*n;
    return s->limit > 0 ? start_next(s, at, err) : VT_OK;
}
