/* link.c - an engine's steps in order, with their snapshots, and when the result
 * of each came.
 *
 * The spans do not say when a step's result came. A scheduler that works one step at a
 * time schedules the next one then; one that keeps two in flight schedules the one
 * after the next. Where that one is missing, a token's event may tell; else the end of
 * the step is not known, and no time is made up for it. */
#include "trace/otlp/otlp.h"

/* ---- order ------------------------------------------------------------ */

/* Steps, snapshots and marks all begin so. */
struct place {
    uint64_t step;
    size_t order; /* of reading */
};
_Static_assert(offsetof(struct otlp_step, id) == offsetof(struct place, step) &&
                   offsetof(struct otlp_step, order) == offsetof(struct place, order) &&
                   offsetof(struct otlp_snap, step) == offsetof(struct place, step) &&
                   offsetof(struct otlp_snap, order) == offsetof(struct place, order) &&
                   offsetof(struct otlp_mark, step) == offsetof(struct place, step) &&
                   offsetof(struct otlp_mark, order) == offsetof(struct place, order),
               "they begin alike");

static struct place place_of(const void *cell)
{
    struct place p;

    memcpy(&p, cell, sizeof(p));
    return p;
}

static int by_step(const void *pa, const void *pb)
{
    struct place a = place_of(pa), b = place_of(pb);

    if (a.step != b.step)
        return a.step < b.step ? -1 : 1;
    return a.order < b.order ? -1 : a.order > b.order;
}

static void sort_by_step(void *cells, size_t n, size_t cell)
{
    if (n > 1)
        qsort(cells, n, cell, by_step);
}

size_t otlp_first_of(const void *cells, size_t n, size_t cell, uint64_t step)
{
    size_t lo = 0, hi = n;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (place_of((const char *)cells + mid * cell).step < step)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* ---- snapshots -------------------------------------------------------- */

static void link_snaps(struct vt_otlp *o, struct otlp_engine *e)
{
    size_t n = 0, step = 0;

    o->stats.snapshots += e->n_snaps;
    sort_by_step(e->snap, e->n_snaps, sizeof(*e->snap));
    for (size_t i = 0; i < e->n_snaps; i++) {
        const struct otlp_snap s = e->snap[i];
        struct otlp_request *r = &e->request[s.request];

        while (step < e->n_steps && e->step[step].id < s.step)
            step++;
        if (step == e->n_steps || e->step[step].id != s.step) {
            o->stats.lone_snapshots++;
            continue;
        }
        if (e->step[step].n_snaps == 0)
            e->step[step].first_snap = n;
        if (r->effective == UINT32_MAX)
            r->effective = s.effective;
        if (r->seen_in == step + 1)
            continue; /* a step that was told of twice has all its snapshots twice */
        r->seen_in = step + 1;
        e->snap[n++] = s;
        e->step[step].n_snaps++;
    }
    e->n_snaps = n;
}

/* The only power of two by which every snapshot's blocks hold its tokens. */
static uint32_t find_block_size(const struct otlp_engine *e)
{
    uint32_t fits = 0x7ff; /* bit i: 1 << i */

    for (size_t i = 0; i < e->n_snaps; i++) {
        const struct otlp_snap *s = &e->snap[i];
        uint32_t tokens = s->computed + s->scheduled;

        for (unsigned k = 0; k <= 10; k++)
            if (s->blocks != UINT32_MAX && (tokens + (1U << k) - 1) >> k != s->blocks)
                fits &= ~(1U << k);
    }
    for (unsigned k = 0; k <= 10; k++)
        if (fits == 1U << k)
            return 1U << k;
    return 0;
}

/* ---- holes ------------------------------------------------------------ */

static void count_holes(struct vt_otlp *o, const struct otlp_engine *e)
{
    uint64_t first, last, next;

    if (e->n_steps == 0)
        return;
    first = e->step[0].id;
    last = e->step[e->n_steps - 1].id;
    if (e->has_range && e->range_first < first)
        first = e->range_first;
    if (e->has_range && e->range_last > last)
        last = e->range_last;
    o->stats.steps += e->n_steps;
    o->stats.missing_steps += last - first + 1 - e->n_steps;
    next = first;
    for (size_t i = 0; i < e->n_steps; i++) {
        o->stats.holes += e->step[i].id != next;
        next = e->step[i].id + 1;
    }
    o->stats.holes += last >= next;
}

/* ---- results ---------------------------------------------------------- */

const struct otlp_mark *otlp_marks_of(const struct otlp_engine *e, uint64_t step,
                                      size_t *n)
{
    size_t lo = otlp_first_of(e->mark, e->n_marks, sizeof(*e->mark), step), hi;

    for (hi = lo; hi < e->n_marks && e->mark[hi].step == step; hi++)
        ;
    *n = hi - lo;
    return *n > 0 ? e->mark + lo : NULL;
}

/* When the scheduler was called k steps after step i; VT_NEVER: that is not known. */
static vt_ns start_after(const struct otlp_engine *e, size_t i, size_t k)
{
    if (e->n_steps - i <= k || e->step[i + k].id != e->step[i].id + k ||
        e->step[i + k].start_ns <= e->step[i].start_ns)
        return VT_NEVER;
    return e->step[i + k].start_ns;
}

/* First tokens come after one more call of the scheduler, or after two. */
static void find_depth(struct otlp_engine *e)
{
    size_t votes[3] = {0};

    for (size_t i = 0; i < e->n_steps; i++) {
        for (uint32_t k = 0; k < e->step[i].n_snaps; k++) {
            const struct otlp_snap *s = &e->snap[e->step[i].first_snap + k];
            vt_ns at = e->request[s->request].first_token_ns;

            if (otlp_decodes(s) || s->output > 0 ||
                s->computed + s->scheduled < s->prompt || at == VT_NEVER ||
                at <= e->step[i].start_ns || start_after(e, i, 2) == VT_NEVER)
                continue;
            if (at <= start_after(e, i, 1))
                votes[1]++;
            else if (at <= start_after(e, i, 2))
                votes[2]++;
        }
    }
    e->saw_depth = votes[1] + votes[2] > 0;
    e->depth = votes[2] > votes[1] ? 2 : 1;
}

bool otlp_starts_anew(const struct otlp_engine *e, const struct otlp_step *s)
{
    for (uint32_t k = 0; k < s->n_snaps; k++) {
        const struct otlp_snap *x = &e->snap[s->first_snap + k];
        uint32_t cached = x->effective <= x->prompt ? x->prompt - x->effective : 0;

        if (x->output > 0 || x->computed > cached)
            return false;
    }
    return s->n_snaps > 0 || s->decodes == 0;
}

/* Whether the engine may have been idle before the call that would end step i. vLLM
 * writes a step without requests when it has none left; other tracers may not. */
static bool may_have_idled(const struct otlp_engine *e, size_t i)
{
    const struct otlp_step *next = &e->step[i + 1];

    if (e->depth == 2 && otlp_is_empty(next))
        return !otlp_is_empty(&e->step[i + 2]);
    return !e->rests && otlp_starts_anew(e, next);
}

/* The first sign of the result, which cannot be later than a later call. */
static vt_ns token_time(const struct otlp_engine *e, size_t i)
{
    const struct otlp_step *s = &e->step[i];
    size_t n;
    const struct otlp_mark *mark = otlp_marks_of(e, s->id + e->depth - 1, &n);
    vt_ns at = VT_NEVER;

    for (size_t k = 0; k < n; k++)
        if (mark[k].is_result && mark[k].at_ns > s->start_ns && mark[k].at_ns < at)
            at = mark[k].at_ns;
    if (e->n_steps - i > e->depth && at > e->step[i + e->depth].start_ns)
        return VT_NEVER;
    return at;
}

void otlp_link(struct vt_otlp *o, struct otlp_engine *e)
{
    size_t n = 0;

    sort_by_step(e->step, e->n_steps, sizeof(*e->step));
    for (size_t i = 0; i < e->n_steps; i++)
        if (n == 0 || e->step[i].id != e->step[n - 1].id)
            e->step[n++] = e->step[i];
    o->stats.repeated += e->n_steps - n;
    e->n_steps = n;
    for (size_t i = 0; i < n; i++)
        e->rests = e->rests || otlp_is_empty(&e->step[i]);
    link_snaps(o, e);
    sort_by_step(e->mark, e->n_marks, sizeof(*e->mark));
    count_holes(o, e);
    find_depth(e);
    e->block_size = find_block_size(e);
    for (size_t i = 0; i < n; i++) {
        struct otlp_step *s = &e->step[i];

        if (o->options.step_time != VT_STEP_DURATION) {
            s->out_ns = start_after(e, i, e->depth);
            if (s->out_ns == VT_NEVER || may_have_idled(e, i))
                s->out_ns = token_time(e, i);
        } else {
            s->out_ns = s->duration_us < 0
                            ? VT_NEVER
                            : s->start_ns + vt_ns_from_us(s->duration_us);
        }
    }
}
