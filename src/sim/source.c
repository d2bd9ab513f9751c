#include "sim/source.h"

static bool sooner(const struct source_event *a, const struct source_event *b)
{
    return a->at != b->at ? a->at < b->at : a->order < b->order;
}

static int push(struct source *s, size_t req, vt_ns at, struct vt_err *err)
{
    struct source_event e = {.at = at, .order = s->order++, .req = req};
    int rc = vt_grow(&s->heap, &s->cap, s->n + 1, sizeof(e), err);
    size_t i = s->n;

    if (rc != VT_OK)
        return rc;
    for (s->n++; i > 0 && sooner(&e, &s->heap[(i - 1) / 2]); i = (i - 1) / 2)
        s->heap[i] = s->heap[(i - 1) / 2];
    s->heap[i] = e;
    return VT_OK;
}

static size_t pop(struct source *s)
{
    size_t req = s->heap[0].req, i = 0, child;
    struct source_event last = s->heap[--s->n];

    for (; (child = 2 * i + 1) < s->n; i = child) {
        if (child + 1 < s->n && sooner(&s->heap[child + 1], &s->heap[child]))
            child++;
        if (!sooner(&s->heap[child], &last))
            break;
        s->heap[i] = s->heap[child];
    }
    s->heap[i] = last;
    return req;
}

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
    return push(s, req, not_before >= 0 ? not_before : at, err);
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
    free(s->heap);
    memset(s, 0, sizeof(*s));
}

static vt_ns next_recorded(const struct source *s)
{
    return s->limit == 0 && s->next < s->w->n ? s->w->req[s->next].arrival_ns
                                              : VT_NEVER;
}

vt_ns source_due(const struct source *s)
{
    vt_ns at = next_recorded(s);

    return s->n > 0 && s->heap[0].at < at ? s->heap[0].at : at;
}

size_t source_take(struct source *s)
{
    size_t req = s->next;

    if (s->n > 0 && s->heap[0].at < next_recorded(s))
        return pop(s);
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
        return push(s, r->next_turn, at + pause + s->w->req[r->next_turn].think_ns,
                    err);
    return s->limit > 0 ? start_next(s, at + pause, err) : VT_OK;
}
