/* windows.c - engines side by side on threads, as if one event came after the other.
 *
 * Between two of the router's looks engines know nothing of each other. So time is cut
 * into windows: all that arrives within one is routed first, then every engine runs to
 * the window's end by itself, and what all of them have in common is booked afterwards
 * in the order in which events come: by time, then by engine. Even one thread gains by
 * it: an engine that goes on for a while finds its memory in the processor's cache.
 *
 * A window is conservative: it ends before anything that its own steps could bring
 * about. Recorded arrivals depend on none; a session's next turn comes no sooner than
 * the user has thought; a router that looks at queues does so when its last look is
 * old, and then all engines have to be there; what it knows of caches is as old as its
 * view is late. What looks at engines at every arrival leaves no room for windows. */
#include <stdlib.h>
#include <string.h>

#include "sim/fleet/parts.h"

enum {
    CACHE_LINE = 64,
    MOST_THREADS = 256,
    /* Arrivals of a window: some for each engine, that its state is worth fetching. */
    SOME = 4096,
    SOME_EACH = 16,
    FEW_STEPS = 256, /* not worth waking others: a tenth of a millisecond */
};

struct lane {                              /* what a thread has for itself */
    _Alignas(CACHE_LINE) struct sim_run r; /* of the run's: what is common, borrowed */
    struct run_later later;
    struct vt_err err;
    int rc;
    vt_ns next; /* when the first of its engines is due after the window */
    uint64_t steps;
};

struct windows {
    struct fleet *f;
    struct vt_crew *crew;
    struct lane *lane;
    uint32_t n_lanes;
    vt_ns span;     /* how far ahead what is known reaches */
    vt_ns from;     /* all before it is done */
    vt_ns until;    /* the window's end, which is not part of it */
    vt_ns next;     /* when the first engine is due */
    uint64_t steps; /* of the window before */
    struct came {
        size_t req;
        vt_ns at;
    } *came; /* in the window */
    size_t n_came, cap_came;
    struct run_end *end; /* of all lanes */
    size_t cap_ends;
};

/* ---- whether, and how far ahead ---------------------------------------- */

static vt_ns least_think(const struct vt_workload *w)
{
    vt_ns least = VT_NEVER;

    for (size_t i = 0; w->req && i < w->n; i++)
        if (!w->req[i].first_turn && w->req[i].think_ns < least)
            least = w->req[i].think_ns;
    return w->req ? least : w->least_think_ns;
}

/* 0: no window would hold. */
static vt_ns find_span(const struct fleet *f)
{
    const struct sim_run *r = f->r;
    unsigned wants = router_wants(f->router);
    vt_ns span = VT_NEVER;

    if (r->source.limit > 0 || r->source.held_to > 0 ||
        r->source.mode == VT_ARRIVALS_CLOSED || (wants & WANT_EXACT))
        return 0;
    if (r->source.mode == VT_ARRIVALS_SESSION)
        span = least_think(r->w);
    if ((wants & (WANT_STATE | WANT_CACHED)) && f->f->staleness_ns < span)
        span = f->f->staleness_ns;
    return span;
}

/* Whether only a router stands between its engines, and nobody watches every step. */
static bool runs_freely(const struct fleet *f)
{
    const struct vt_sim_spec *spec = f->r->spec;
    const struct run_clock *c = &f->r->clock;
    /* A frontend that reads one request after the other counts those in flight. */
    bool queues = c->whose == VT_CLOCK_CLIENT && c->frontend->read_us > 0;

    return f->f->threads > 0 && f->n > 1 && !f->lockstep && !queues &&
           f->f->prefill_instances == 0 && f->f->autoscale.interval_ns == 0 &&
           !spec->stopped && !spec->patience && !(spec->sink && spec->sink->step);
}

/* ---- life --------------------------------------------------------------- */

static int open_lane(struct lane *l, const struct sim_run *r, struct vt_err *err)
{
    memset(l, 0, sizeof(*l));
    l->r = *r;
    l->r.later = &l->later;
    l->r.finished = 0;
    l->r.timings = NULL;
    return vt_timings_new(&l->r.timings, err);
}

static int open_windows(struct windows *x, struct fleet *f, struct vt_err *err)
{
    uint32_t n = f->f->threads < f->n ? f->f->threads : f->n;
    int rc = VT_OK;

    n = n < MOST_THREADS ? n : MOST_THREADS;
    x->f = f;
    x->next = VT_NEVER;
    x->lane = aligned_alloc(CACHE_LINE, n * sizeof(*x->lane));
    if (!x->lane)
        return vt_nomem(err);
    for (; x->n_lanes < n && rc == VT_OK; x->n_lanes++)
        rc = open_lane(&x->lane[x->n_lanes], f->r, err);
    return rc ? rc : vt_crew_new(&x->crew, n, err);
}

/* All that lanes have counted goes to the run's books. */
static int close_lane(struct lane *l, struct sim_run *r, int rc, struct vt_err *err)
{
    if (rc == VT_OK && !(rc = run_flush_gaps(&l->r, err)))
        rc = vt_timings_join(r->timings, l->r.timings, err);
    vt_timings_free(l->r.timings);
    free(l->later.end);
    free(l->later.over);
    return rc;
}

static int close_windows(struct windows *x, int rc, struct vt_err *err)
{
    vt_crew_free(x->crew);
    for (uint32_t i = 0; i < x->n_lanes; i++)
        rc = close_lane(&x->lane[i], x->f->r, rc, err);
    free(x->lane);
    free(x->came);
    free(x->end);
    return rc;
}

/* ---- what arrives in a window ------------------------------------------- */

static bool all_came(const struct sim_run *r)
{
    return r->finished + r->in_flight == r->w->n;
}

static int take_arrival(struct windows *x, vt_ns at, struct vt_err *err)
{
    struct inbox *box;
    struct sent s = {.at = at};
    int rc = vt_grow(&x->came, &x->cap_came, x->n_came + 1, sizeof(*x->came), err);

    if (rc || (rc = fleet_arrive(x->f, at, &s.req, &s.on, err)))
        return rc;
    x->came[x->n_came++] = (struct came){s.req, at};
    box = &x->f->inst[window_live(&x->f->r->window, s.req)->instance].inbox;
    rc = vt_grow(&box->sent, &box->cap, box->n + 1, sizeof(s), err);
    if (rc == VT_OK)
        box->sent[box->n++] = s;
    return rc;
}

/* Routes what arrives in the window, and says where that ends. */
static int gather(struct windows *x, struct vt_err *err)
{
    struct sim_run *r = x->f->r;
    size_t most = SOME + (size_t)SOME_EACH * x->f->n;
    vt_ns limit = x->span < VT_NEVER - x->from ? x->from + x->span : VT_NEVER, at;
    int rc = VT_OK;

    x->n_came = 0;
    while ((at = run_due(r)) < limit && x->n_came < most && rc == VT_OK) {
        /* A look needs all engines to be there. */
        if (look_is_due(x->f, at) && (x->n_came > 0 || x->next < at))
            break;
        rc = take_arrival(x, at, err);
    }
    x->until = at < limit ? at : limit;
    /* The last end ends the run: who comes to it has to look at each event. */
    if (all_came(r) && x->n_came > 0)
        x->until = x->came[x->n_came - 1].at;
    return rc;
}

/* ---- engines -------------------------------------------------------------- */

/* What arrives goes before what the engine does at the same time. */
static int run_engine(struct windows *x, struct lane *l, uint32_t i)
{
    struct instance *inst = &x->f->inst[i];
    struct inbox *box = &inst->inbox;
    vt_ns due = x->f->turns.due[i];
    size_t k = 0;
    int rc = VT_OK;

    while (rc == VT_OK) {
        if (k < box->n && box->sent[k].at <= due) {
            const struct sent *s = &box->sent[k++];
            struct vt_request q = run_hand_over(&l->r, s->req);

            q.arrival = window_live(&l->r.window, s->req)->arrival;
            rc = vt_engine_add(inst->engine, s->on, &q, &l->err);
        } else if (due < x->until) {
            l->later.due = due;
            l->steps++;
            rc = fleet_act(x->f, &l->r, i, due, &l->err);
        } else {
            break;
        }
        due = vt_engine_due(inst->engine);
    }
    box->n = 0;
    x->f->turns.due[i] = due;
    return rc;
}

static void run_item(void *user, uint32_t member, uint32_t i)
{
    struct windows *x = user;
    struct lane *l = &x->lane[member];
    const vt_ns *due = &x->f->turns.due[i];

    if (l->rc == VT_OK && (x->f->inst[i].inbox.n > 0 || *due < x->until))
        l->rc = run_engine(x, l, i);
    if (*due < l->next)
        l->next = *due;
}

static int run_engines(struct windows *x, struct vt_err *err)
{
    struct sim_run *r = x->f->r;
    bool alone = x->steps < FEW_STEPS && x->n_came < FEW_STEPS;
    int rc = VT_OK;

    for (uint32_t i = 0; i < x->n_lanes; i++) {
        struct lane *l = &x->lane[i];

        l->r.window = r->window; /* which moves between windows */
        l->r.gaps = r->gaps;
        l->next = VT_NEVER;
        l->steps = 0;
        l->later.n_ends = l->later.n_over = 0;
    }
    vt_crew_run(x->crew, x->f->n, alone, run_item, x);
    x->next = VT_NEVER;
    x->steps = 0;
    for (uint32_t i = 0; i < x->n_lanes; i++) {
        const struct lane *l = &x->lane[i];

        x->next = l->next < x->next ? l->next : x->next;
        x->steps += l->steps;
        if (l->rc != VT_OK && rc == VT_OK) {
            *err = l->err;
            rc = l->rc;
        }
    }
    return rc;
}

/* ---- the books -------------------------------------------------------------- */

/* An engine's ends of one window are all of one lane. */
static int by_time(const void *pa, const void *pb)
{
    const struct run_end *a = pa, *b = pb;

    if (a->due != b->due)
        return a->due < b->due ? -1 : 1;
    if (a->instance != b->instance)
        return a->instance < b->instance ? -1 : 1;
    return a->order < b->order ? -1 : 1;
}

static int gather_ends(struct windows *x, size_t *n, struct vt_err *err)
{
    *n = 0;
    for (uint32_t i = 0; i < x->n_lanes; i++) {
        const struct run_later *l = &x->lane[i].later;
        int rc = vt_grow(&x->end, &x->cap_ends, *n + l->n_ends, sizeof(*x->end), err);

        if (rc != VT_OK)
            return rc;
        if (l->n_ends > 0)
            memcpy(x->end + *n, l->end, l->n_ends * sizeof(*x->end));
        *n += l->n_ends;
    }
    if (*n > 1)
        qsort(x->end, *n, sizeof(*x->end), by_time);
    return VT_OK;
}

/* Arrivals and ends in their order: each arrival counts those in flight. */
static int book(struct windows *x, uint32_t in_flight, struct vt_err *err)
{
    struct sim_run *r = x->f->r;
    size_t n, k = 0;
    int rc = gather_ends(x, &n, err);

    r->in_flight = in_flight;
    for (size_t i = 0; i < n && rc == VT_OK; i++) {
        for (; k < x->n_came && x->came[k].at <= x->end[i].due; k++)
            window_live(&r->window, x->came[k].req)->concurrency = ++r->in_flight;
        rc = run_book_end(r, &x->end[i], err);
    }
    for (; k < x->n_came; k++)
        window_live(&r->window, x->came[k].req)->concurrency = ++r->in_flight;
    for (uint32_t i = 0; i < x->n_lanes && rc == VT_OK; i++)
        for (size_t j = 0; j < x->lane[i].later.n_over; j++)
            window_let_go(&r->window, x->lane[i].later.over[j]);
    for (uint32_t i = 0; i < x->f->n && rc == VT_OK; i++)
        rc = look_hear(x->f, i, err);
    return rc;
}

static int run_window(struct windows *x, struct vt_err *err)
{
    uint32_t in_flight = x->f->r->in_flight;
    int rc;

    if ((rc = gather(x, err)) || (rc = run_engines(x, err)) ||
        (rc = book(x, in_flight, err)))
        return rc;
    x->from = x->until;
    return run_look_up(x->f->r, x->until, err);
}

int windows_run(struct fleet *f, struct vt_err *err)
{
    struct windows x = {.span = runs_freely(f) ? find_span(f) : 0};
    int rc;

    if (x.span <= 0)
        return VT_OK;
    rc = open_windows(&x, f, err);
    while (rc == VT_OK && !all_came(f->r)) {
        vt_ns arrival = run_due(f->r), soonest = arrival < x.next ? arrival : x.next;

        if (soonest == VT_NEVER)
            break;
        if (soonest > x.from)
            x.from = soonest;
        rc = run_window(&x, err);
    }
    return close_windows(&x, rc, err);
}
