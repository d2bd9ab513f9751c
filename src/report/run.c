/* run.c - a run in buckets of time: queues, KV cache, tokens, as steps and requests
 * tell of them. Buckets double in width as the run grows longer, so that their number,
 * and the page, stay the same. */
#include "report/run.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_WIDTH_NS = 1000000 };

/* ---- buckets ----------------------------------------------------------- */

static int line_new(struct run_line *l, size_t cap, struct vt_err *err)
{
    *l = (struct run_line){.cap = cap, .width = FIRST_WIDTH_NS};
    l->bucket = calloc(cap, sizeof(*l->bucket));
    return l->bucket ? VT_OK : vt_nomem(err);
}

static void gauge_join(struct run_gauge *to, const struct run_gauge *from)
{
    if (!from->seen)
        return;
    to->least = to->seen ? fmin(to->least, from->least) : from->least;
    to->most = to->seen ? fmax(to->most, from->most) : from->most;
    to->sum_ns += from->sum_ns;
    to->seen = true;
}

static void bucket_join(struct run_bucket *to, const struct run_bucket *from)
{
    gauge_join(&to->running, &from->running);
    gauge_join(&to->waiting, &from->waiting);
    gauge_join(&to->kv, &from->kv);
    to->in_flight_ns += from->in_flight_ns;
    to->batch_tokens += from->batch_tokens;
    to->steps += from->steps;
    to->preempted += from->preempted;
    to->output_tokens += from->output_tokens;
    to->ended += from->ended;
}

/* The bucket of a time since the origin, after as many doublings as that takes. */
static size_t line_at(struct run_line *l, vt_ns t)
{
    size_t i;

    if (t < 0)
        t = 0;
    while ((i = (size_t)(t / l->width)) >= l->cap) {
        for (size_t k = 0; k < l->cap; k++) {
            struct run_bucket one = l->bucket[k];

            l->bucket[k] = (struct run_bucket){0};
            bucket_join(&l->bucket[k / 2], &one);
        }
        l->width *= 2;
        l->n = (l->n + 1) / 2;
    }
    l->n = i + 1 > l->n ? i + 1 : l->n;
    l->end = t > l->end ? t : l->end;
    return i;
}

static void gauge_hold(struct run_gauge *g, double v, double ns)
{
    gauge_join(g, &(struct run_gauge){v * ns, v, v, true});
}

/* Calls for each bucket that [from, to) lies in, and how much of it does. */
typedef void holds(struct run_bucket *b, double ns, const void *what);
static void line_hold(struct run_line *l, vt_ns from, vt_ns to, holds *f,
                      const void *what)
{
    size_t last;

    from = from < 0 ? 0 : from;
    if (to <= from)
        return;
    last = line_at(l, to - 1);
    for (size_t i = line_at(l, from); i <= last; i++) {
        vt_ns begin = (vt_ns)i * l->width, end = begin + l->width;

        f(&l->bucket[i],
          (double)((to < end ? to : end) - (from > begin ? from : begin)), what);
    }
}

static void hold_step(struct run_bucket *b, double ns, const void *what)
{
    const struct run_last *s = what;

    gauge_hold(&b->running, s->running, ns);
    gauge_hold(&b->waiting, s->waiting, ns);
    gauge_hold(&b->kv, s->kv, ns);
}

static void hold_request(struct run_bucket *b, double ns, const void *what)
{
    (void)what;
    b->in_flight_ns += ns;
}

/* ---- a run ------------------------------------------------------------- */

int vt_run_new(struct vt_run **out, uint32_t instances, struct vt_err *err)
{
    struct vt_run *r = calloc(1, sizeof(*r));
    uint32_t lanes = instances > RUN_LANES ? RUN_LANES : instances;
    int rc;

    *out = NULL;
    if (!r)
        return vt_nomem(err);
    r->instances = instances > 1 ? instances : 1;
    r->last = calloc(r->instances, sizeof(*r->last));
    rc = r->last ? vt_timings_new(&r->timings, err) : vt_nomem(err);
    if (rc == VT_OK)
        rc = line_new(&r->all, RUN_BUCKETS, err);
    if (rc == VT_OK && instances > 1) {
        r->lane = calloc(lanes, sizeof(*r->lane));
        rc = r->lane ? VT_OK : vt_nomem(err);
        for (uint32_t i = 0; i < lanes && rc == VT_OK; i++)
            rc = line_new(&r->lane[i], RUN_LANE_BUCKETS, err);
    }
    if (rc == VT_OK)
        *out = r;
    else
        vt_run_free(r);
    return rc;
}

void vt_run_free(struct vt_run *r)
{
    if (!r)
        return;
    for (uint32_t i = 0; r->lane && i < r->instances && i < RUN_LANES; i++)
        free(r->lane[i].bucket);
    free(r->lane);
    free(r->all.bucket);
    free(r->last);
    vt_timings_free(r->timings);
    free(r);
}

static vt_ns since(struct vt_run *r, vt_ns t)
{
    if (!r->begun) {
        r->begun = true;
        r->origin = t;
    }
    return t - r->origin;
}

/* ---- steps ------------------------------------------------------------- */

/* A step's counts hold until its result, or until the next one is scheduled, which with
 * async scheduling is sooner. */
static void end_last(struct vt_run *r, uint32_t engine, vt_ns at)
{
    struct run_last *s = &r->last[engine];
    vt_ns to = s->to < at ? s->to : at;

    if (!s->there)
        return;
    line_hold(&r->all, s->from, to, hold_step, s);
    if (r->lane && engine < RUN_LANES)
        line_hold(&r->lane[engine], s->from, to, hold_step, s);
    s->there = false;
}

void run_settle(struct vt_run *r)
{
    for (uint32_t i = 0; i < r->instances; i++)
        end_last(r, i, VT_NEVER);
}

static void count_step(struct run_bucket *b, const struct vt_step_line *s)
{
    b->steps++;
    b->batch_tokens += s->decodes;
    for (uint32_t i = 0; i < s->n_prefill; i++)
        b->batch_tokens += s->prefill[i].tokens;
    b->preempted += s->n_preempted;
}

int vt_run_step(struct vt_run *r, const struct vt_step_line *s, struct vt_err *err)
{
    uint32_t engine = s->instance ? *s->instance : 0;
    vt_ns from = since(r, s->sched_ns);

    if (engine >= r->instances)
        return vt_fail(err, VT_EINPUT, "a step of engine %u of %u", engine,
                       r->instances);
    end_last(r, engine, from);
    r->last[engine] = (struct run_last){.there = true,
                                        .from = from,
                                        .to = since(r, s->out_ns),
                                        .running = s->running,
                                        .waiting = s->waiting,
                                        .kv = s->kv_usage};
    count_step(&r->all.bucket[line_at(&r->all, from)], s);
    if (r->lane && engine < RUN_LANES)
        count_step(&r->lane[engine].bucket[line_at(&r->lane[engine], from)], s);
    r->stepped = true;
    return VT_OK;
}

/* ---- requests ---------------------------------------------------------- */

static void count_request(struct vt_run *r, vt_ns arrival_ns, vt_ns end_ns)
{
    line_hold(&r->all, since(r, arrival_ns), since(r, end_ns), hold_request, NULL);
    r->all.bucket[line_at(&r->all, since(r, end_ns))].ended++;
}

static void count_tokens(struct vt_run *r, vt_ns at, double n)
{
    r->all.bucket[line_at(&r->all, since(r, at))].output_tokens += n;
}

struct told { /* one request, whoever tells of it */
    struct vt_timing t;
    const vt_ns *gap;
    const uint32_t *gap_tokens; /* NULL: all have the same share of the rest */
    uint32_t n_gaps;
};

static int take_request(struct vt_run *r, const struct told *q, struct vt_err *err)
{
    vt_ns at = q->t.arrival_ns + q->t.ttft_ns;
    double rest = q->t.output_tokens > 1 ? (double)q->t.output_tokens - 1 : 0;
    double each = q->n_gaps > 0 ? rest / q->n_gaps : 0;
    int rc = vt_timings_add(r->timings, &q->t, err);

    (void)since(r, q->t.arrival_ns);
    if (q->t.output_tokens > 0)
        count_tokens(r, at, 1);
    for (uint32_t i = 0; i < q->n_gaps && rc == VT_OK; i++) {
        at += q->gap[i];
        count_tokens(r, at, q->gap_tokens ? q->gap_tokens[i] : each);
        rc = vt_timings_gap(r->timings, q->gap[i], 1, err);
    }
    count_request(r, q->t.arrival_ns, q->t.arrival_ns + q->t.e2e_ns);
    return rc;
}

int vt_run_request(struct vt_run *r, const struct vt_served *s, struct vt_err *err)
{
    struct told q = {.t = {.arrival_ns = s->arrival_ns,
                           .ttft_ns = s->ttft_ns,
                           .e2e_ns = s->ttft_ns,
                           .queue_ns = s->queue_ns,
                           .prompt_tokens = s->req->prompt_tokens,
                           .cached_tokens = s->cached_tokens,
                           .output_tokens = s->output_tokens},
                     .gap = s->gap,
                     .gap_tokens = s->gap_tokens,
                     .n_gaps = s->n_gaps};

    for (uint32_t i = 0; i < s->n_gaps; i++)
        q.t.e2e_ns += s->gap[i];
    return take_request(r, &q, err);
}

int vt_run_measured(struct vt_run *r, const struct vt_workload *w, struct vt_err *err)
{
    int rc = VT_OK;

    for (size_t i = 0; w->measured && i < w->n && rc == VT_OK; i++) {
        const struct vt_measured *m = &w->measured[i];
        const struct told q = {.t = {.arrival_ns = w->req[i].arrival_ns,
                                     .ttft_ns = m->ttft_ns,
                                     .e2e_ns = m->e2e_ns,
                                     .queue_ns = -1,
                                     .prompt_tokens = w->req[i].prompt_tokens,
                                     .cached_tokens = m->cached_tokens,
                                     .output_tokens = w->req[i].output_tokens},
                               .gap = w->gap + m->first_gap,
                               .n_gaps = m->n_gaps};

        rc = take_request(r, &q, err);
    }
    return rc;
}

int vt_run_tokens(struct vt_run *r, const struct vt_run_tokens *t, struct vt_err *err)
{
    vt_ns *gap;
    struct told q = {.t = {.arrival_ns = t->arrival_ns,
                           .queue_ns = -1,
                           .output_tokens = t->output_tokens}};
    int rc;

    if (t->n == 0)
        return VT_OK;
    gap = malloc(t->n * sizeof(*gap));
    if (!gap)
        return vt_nomem(err);
    for (uint32_t i = 1; i < t->n; i++)
        gap[i - 1] = t->at[i] - t->at[i - 1];
    q.t.ttft_ns = t->at[0];
    q.t.e2e_ns = t->at[t->n - 1];
    q.gap = gap;
    q.n_gaps = t->n - 1;
    rc = take_request(r, &q, err);
    free(gap);
    return rc;
}
