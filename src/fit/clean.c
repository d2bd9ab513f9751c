/* clean.c - steps that something else held up: first uses of a kernel, a host that was
 * busy elsewhere. They are found before anything is learned, because a few of them
 * outweigh all that is to be learned.
 *
 * What a step should take is judged by its like: a crude sum of what steps hold, whose
 * weights are a low quantile over all captures (stalls only ever add time, so the
 * middle would be theirs where many steps of a kind are stalled). They are learned
 * over windows between clean boundaries: with two steps in flight, what one takes may
 * show in the gap of the step before. */
#include "fit/internal.h"

#include <math.h>

enum { TERMS = 10, ROUNDS = 30, SWEEPS = 100, WINDOW_STEPS = 4 };

static const double QUANTILE = 0.4;
/* Errors of less than that share of a time are all the same to the regression. */
static const double LEVEL = 0.01;
/* A stall takes longer than what it held up should have taken, and than this. */
static const double STALL_SHARE = 1.0, STALL_MS = 30;

/* ---- what steps should take ------------------------------------------- */

struct likes { /* milliseconds for each term */
    double b[TERMS];
};

struct sums { /* normal equations */
    double xx[TERMS][TERMS], xy[TERMS];
};

struct stretch { /* of steps: what they hold together, and what they took */
    double x[TERMS], ms;
};

double own_gap(const struct capture *c, size_t i)
{
    const struct observed *o = &c->step[i];

    return o->idle || i == 0 ? o->out - o->sched : o->out - c->step[i - 1].out;
}

static void add_step(struct stretch *t, const struct vt_step_features *f)
{
    t->x[0] += 1;
    t->x[1] += f->context_k;
    t->x[2] += f->prefills;
    t->x[3] += f->depth_m;
    t->x[4 + f->mode] += f->tokens; /* graph, mixed, eager */
    if (f->mode == VT_STEP_GRAPH)
        t->x[7] += log(f->tokens); /* more and more experts */
    else
        t->x[7 + f->mode] += 1; /* mixed, eager */
}

static double expected(const struct likes *l, const struct stretch *t)
{
    double ms = 0;

    for (int k = 0; k < TERMS; k++)
        ms += l->b[k] * t->x[k];
    return ms;
}

/* Errors count by their share of the time. */
static void add_stretch(struct sums *s, const struct stretch *t, const struct likes *l)
{
    double share = l ? (t->ms - expected(l, t)) / t->ms : 1;
    double side = share > 0 ? QUANTILE : 1 - QUANTILE;
    double weight = side / fmax(fabs(share), LEVEL) / (t->ms * t->ms);

    for (int i = 0; i < TERMS; i++) {
        s->xy[i] += weight * t->x[i] * t->ms;
        for (int k = 0; k < TERMS; k++)
            s->xx[i][k] += weight * t->x[i] * t->x[k];
    }
}

/* A clean boundary: nothing that one side costs shows on the other. */
static bool is_boundary(const struct capture *c, size_t i)
{
    return c->step[i].idle || (c->step[i].f.mode == VT_STEP_GRAPH &&
                               c->step[i - 1].f.mode == VT_STEP_GRAPH);
}

/* `l`: what is believed so far, or NULL. */
static void add_capture(struct sums *s, const struct capture *c, const struct likes *l)
{
    struct stretch t = {0};
    int steps = 0;

    for (size_t i = 0; i < c->n; i++) {
        if (i > 0 && is_boundary(c, i) && (steps >= WINDOW_STEPS || c->step[i].idle)) {
            if (t.ms > 0)
                add_stretch(s, &t, l);
            t = (struct stretch){0};
            steps = 0;
        }
        add_step(&t, &c->step[i].f);
        t.ms += own_gap(c, i);
        steps++;
    }
    if (t.ms > 0)
        add_stretch(s, &t, l);
}

/* Least squares without negative terms, one term after the other. */
static void solve_sums(const struct sums *s, struct likes *l)
{
    for (int sweep = 0; sweep < SWEEPS; sweep++)
        for (int i = 0; i < TERMS; i++) {
            double rest = s->xy[i];

            for (int k = 0; k < TERMS; k++)
                rest -= k == i ? 0 : s->xx[i][k] * l->b[k];
            l->b[i] = s->xx[i][i] > 0 ? fmax(rest / s->xx[i][i], 0) : 0;
        }
}

/* A quantile by reweighted least squares. */
static struct likes learn_likes(const struct vt_fit *f)
{
    struct likes l = {0};

    for (int round = 0; round < ROUNDS; round++) {
        struct sums s = {0};

        for (size_t i = 0; i < f->n; i++)
            if (capture_used(f, i, VT_FIT_ALL))
                add_capture(&s, &f->capture[i], round > 0 ? &l : NULL);
        solve_sums(&s, &l);
    }
    return l;
}

/* ---- what took longer ------------------------------------------------- */

/* What should show in a step's gap at most: itself, and the next one's launch. */
static double should_take(const struct capture *c, size_t i, const struct likes *l)
{
    struct stretch t = {0};

    add_step(&t, &c->step[i].f);
    if (i + 1 < c->n && !c->step[i + 1].idle)
        add_step(&t, &c->step[i + 1].f);
    return expected(l, &t);
}

/* Work that a trace does not tell of shows in the gap of its step or of the one before.
 */
static bool is_untold(const struct capture *c, size_t i)
{
    return c->step[i].untold || (i + 1 < c->n && c->step[i + 1].untold);
}

static void note_stalls(struct capture *c, const struct likes *l)
{
    c->n_stalls = 0;
    c->stall_ms = 0;
    for (size_t i = 0; i < c->n; i++) {
        c->step[i].stalled = is_untold(c, i);
        c->step[i].stall = 0;
    }
    for (size_t i = 0; i < c->n; i++) {
        double should = should_take(c, i, l), over = own_gap(c, i) - should;

        if (over <= fmax(STALL_MS, STALL_SHARE * should) || is_untold(c, i))
            continue;
        c->step[i].stall = over;
        c->n_stalls++;
        c->stall_ms += over;
        /* What was held up may be the launch of the next, whose result then is there
         * at once. */
        c->step[i].stalled = true;
        if (i + 1 < c->n)
            c->step[i + 1].stalled = true;
    }
}

static void sum_span(void *user, struct window w)
{
    *(double *)user += w.point ? 0 : w.measured;
}

void clean_captures(struct vt_fit *f)
{
    struct vt_step_params any; /* lengths of windows are the log's */
    struct likes l;

    if (f->cleaned)
        return;
    vt_step_params_init(&any);
    l = learn_likes(f);

    for (size_t i = 0; i < f->n; i++) {
        note_stalls(&f->capture[i], &l);
        f->capture[i].span = 0;
        replay(&f->capture[i], &any, sum_span, &f->capture[i].span);
    }
    f->cleaned = true;
}

size_t vt_fit_count(const struct vt_fit *f)
{
    return f->n;
}

struct vt_fit_look vt_fit_look(const struct vt_fit *f, size_t i)
{
    const struct capture *c = &f->capture[i];

    return (struct vt_fit_look){
        .name = c->name,
        .steps = c->n,
        .stalls = c->n_stalls,
        .requests = c->n_requests,
        .seconds = 1e-3 * (c->n > 0 ? c->step[c->n - 1].out - c->step[0].sched
                                    : c->clients_ms),
        .stall_seconds = 1e-3 * c->stall_ms,
        .odd = c->odd,
    };
}

/* ---- a trace without them --------------------------------------------- */

static vt_ns in_ns(double ms)
{
    return (vt_ns)llround(1e6 * ms);
}

/* A clock that stands while something stalls: at the end of the gap that it is in. */
static vt_ns calm_time(const struct capture *c, vt_ns t)
{
    vt_ns stood = 0;

    for (size_t i = 0; i < c->n; i++) {
        vt_ns stall = in_ns(c->step[i].stall), from = in_ns(c->step[i].out) - stall;

        if (stall > 0 && t > from)
            stood += t - from < stall ? t - from : stall;
    }
    return t - stood;
}

static void calm_request(const struct capture *c, struct vt_workload *w, size_t i)
{
    struct vt_measured *m = &w->measured[i];
    vt_ns at = w->req[i].arrival_ns, start = calm_time(c, at), last, now;

    w->req[i].arrival_ns = start;
    m->e2e_ns = calm_time(c, at + m->e2e_ns) - start;
    at += m->ttft_ns;
    last = calm_time(c, at);
    m->ttft_ns = last - start;
    for (uint32_t g = 0; g < m->n_gaps; g++) {
        at += w->gap[m->first_gap + g];
        now = calm_time(c, at);
        w->gap[m->first_gap + g] = now - last;
        last = now;
    }
}

static void *copy_of(const void *p, size_t n, size_t size)
{
    void *copy = malloc((n + 1) * size);

    if (copy && n > 0)
        memcpy(copy, p, n * size);
    return copy;
}

int clean_trace(const struct capture *c, const struct vt_workload *trace,
                struct vt_workload *out, struct vt_err *err)
{
    *out = *trace;
    out->req = copy_of(trace->req, trace->n, sizeof(*out->req));
    out->measured = copy_of(trace->measured, trace->n, sizeof(*out->measured));
    out->gap = copy_of(trace->gap, trace->n_gaps, sizeof(*out->gap));
    if (!out->req || !out->measured || !out->gap) {
        clean_trace_free(out);
        return vt_nomem(err);
    }
    for (size_t i = 0; i < out->n; i++)
        calm_request(c, out, i);
    return VT_OK;
}

void clean_trace_free(struct vt_workload *w)
{
    free(w->req);
    free(w->measured);
    free(w->gap);
}
