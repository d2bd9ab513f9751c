/* replay.c - logged steps through the pipeline of core/engine.c.
 *
 * The batches and their order are the log's; when things happen is the model's. At
 * every clean boundary (two decode steps in a row) a window ends and the model's clock
 * is set to the log's, so that errors stay where they arise. */
#include "fit/internal.h"

#include <math.h>

#define WINDOW_STEPS 4

struct pipeline {
    double host, gpu;   /* free from then on */
    double ready;       /* the step in flight */
    double handling;    /* of its result */
    double from, start; /* of the window: model's time, log's time */
    double last;        /* result handed out, model's time */
    int steps;
    bool open;
};

static double us_in_ms(double us)
{
    return 1e-3 * us;
}

static void launch(struct pipeline *k, const struct vt_step_params *p,
                   const struct observed *o)
{
    struct vt_step_cost cost = {0};
    struct vt_placement at;
    double handover = p->host_move * o->moves + p->host_move_block * o->moved_blocks;

    vt_step_cost(p, &o->f, &cost);
    cost.lead_us += handover; /* as engines do */
    cost.launch_us += handover;
    at = vt_step_place(&cost, k->host, k->gpu, us_in_ms);
    k->host = at.host_free;
    k->gpu = k->ready = at.ready;
    k->handling = us_in_ms(cost.done_us);
}

/* A result that a stall delayed says nothing about the window that it lies in. */
static void drop_stalled(struct pipeline *k, const struct observed *o)
{
    if (o->stalled)
        k->open = false;
}

static void end_window(struct pipeline *k, double at, double measured, window_fn *tell,
                       void *user)
{
    if (k->open && k->steps > 0 && measured > k->start)
        tell(user, (struct window){.predicted = at - k->from,
                                   .measured = measured - k->start,
                                   .weight_ms = measured - k->start,
                                   .expected_ms = at - k->from});
    k->open = false;
}

/* Launch and tail of a long launch trade places in a window's length, not in here. */
static void tell_delay(const struct pipeline *k, const struct capture *c, size_t i,
                       double at, window_fn *tell, void *user)
{
    const struct observed *o = &c->step[i - 1];
    double gap = i >= 2 ? o->out - fmax(c->step[i - 2].out, k->start) : 0;

    if (k->open && gap > 0 && o->out > k->start &&
        (c->step[i].f.mode != VT_STEP_GRAPH || o->f.mode != VT_STEP_GRAPH))
        tell(user, (struct window){.predicted = at - k->from,
                                   .measured = o->out - k->start,
                                   .weight_ms = gap,
                                   .expected_ms = at - fmax(k->last, k->from),
                                   .point = true});
}

static void begin_window(struct pipeline *k, double at)
{
    k->from = k->start = k->last = at;
    k->steps = 0;
    k->open = true;
}

void replay(const struct capture *c, const struct vt_step_params *p, window_fn *tell,
            void *user)
{
    struct pipeline k = {0};

    for (size_t i = 0; i < c->n; i++) {
        const struct observed *o = &c->step[i];
        double ready = k.ready, handling = k.handling, out, shift;

        if (o->idle) {
            /* What was in flight has ended, time starts anew. A step alone is a window:
             * all are, of a synchronous engine. */
            if (i > 0) {
                drop_stalled(&k, &c->step[i - 1]);
                end_window(&k, fmax(k.host, k.ready), c->step[i - 1].out, tell, user);
            }
            k.host = o->sched;
            k.gpu = -INFINITY;
            begin_window(&k, o->sched);
            k.steps = 1;
            launch(&k, p, o);
            continue;
        }
        drop_stalled(&k, &c->step[i - 1]);
        launch(&k, p, o);
        out = fmax(k.host, ready); /* of the step before */
        tell_delay(&k, c, i, out, tell, user);
        k.last = out;
        k.host = out + handling;
        k.steps++;
        if (k.steps < WINDOW_STEPS || o->f.mode != VT_STEP_GRAPH ||
            c->step[i - 1].f.mode != VT_STEP_GRAPH)
            continue;
        end_window(&k, out, c->step[i - 1].out, tell, user);
        shift = c->step[i - 1].out - out;
        k.host += shift;
        k.gpu += shift;
        k.ready += shift;
        begin_window(&k, c->step[i - 1].out);
    }
}

/* ---- errors ----------------------------------------------------------- */

/* A few milliseconds keep points near a window's start from shouting. */
double window_error(struct window w)
{
    double least = w.point ? 3 : 0;

    return log((fmax(w.predicted, 1e-3) + least) / (w.measured + least));
}

static void keep_error(void *user, struct window w)
{
    struct window_errors *s = user;

    if (w.point || s->failed)
        return;
    s->failed = vt_grow(&s->e, &s->cap, s->n + 1, sizeof(*s->e), NULL) != VT_OK;
    if (!s->failed)
        s->e[s->n++] = window_error(w);
}

void replay_errors(const struct capture *c, const struct vt_step_params *p,
                   struct window_errors *out)
{
    replay(c, p, keep_error, out);
}
