/* link.c - how fast KV blocks go to the host's memory and back, from transfers as an
 * engine told of them, and what its steps had to hand over.
 *
 * A way moves one transfer after the other, so one begins when it was handed over and
 * those before it were over. Those that ended at the same moment were looked for then,
 * and count as one. */
#include "fit/internal.h"

#include <math.h>

enum { LEAST_TRANSFERS = 8, LM_STEPS = 60 };
/* A way is told apart from what every transfer costs if some move twice what others do.
 */
static const double LEAST_SPREAD = 2;
/* Times of one step are the same to so many milliseconds. */
static const double SAME_MS = 0.002;
/* Both ways were busy for at least this share of the time, or nothing is learned of how
 * they slow each other. */
static const double LEAST_OVERLAP = 0.03;
/* Errors beyond this count less and less; in the median they must stay below the other.
 */
static const double SOFT = 0.1, BAD = 0.3;

/* ---- what was told ------------------------------------------------------ */

static int by_end(const void *pa, const void *pb)
{
    const struct moved *a = pa, *b = pb;

    if (a->store != b->store)
        return a->store ? 1 : -1;
    if (a->end != b->end)
        return a->end < b->end ? -1 : 1;
    return a->begin < b->begin ? -1 : a->begin > b->begin;
}

/* Sorted by way and end; each begins when its turn came. */
static void put_in_line(struct capture *c)
{
    size_t n = 0;

    if (c->n_moved == 0)
        return;
    qsort(c->moved, c->n_moved, sizeof(*c->moved), by_end);
    for (size_t i = 0; i < c->n_moved; i++) {
        struct moved m = c->moved[i], *last = n > 0 ? &c->moved[n - 1] : NULL;

        if (last && last->store != m.store)
            last = NULL;
        if (last && m.end - last->end < SAME_MS) {
            last->jobs += m.jobs;
            last->blocks += m.blocks;
            continue;
        }
        if (last && m.begin < last->end)
            m.begin = last->end;
        c->moved[n++] = m;
    }
    c->n_moved = n;
}

/* The step in whose schedule call something was handed over; c->n: none. */
static size_t step_of(const struct capture *c, double at)
{
    size_t lo = 0, hi = c->n;

    while (lo < hi) {
        size_t mid = (lo + hi) / 2;

        if (c->step[mid].sched <= at + SAME_MS)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo > 0 ? lo - 1 : c->n;
}

int vt_fit_moves(struct vt_fit *f, size_t i, const struct vt_otlp_kv *kv, size_t n,
                 struct vt_err *err)
{
    struct capture *c = &f->capture[i];

    for (size_t k = 0; k < n; k++) {
        struct moved m = {.jobs = 1};
        size_t s;
        int rc;

        if (kv[k].kind != VT_KV_TRANSFER_COMPLETED || kv[k].took_ns <= 0 ||
            kv[k].blocks == 0)
            continue;
        rc = vt_grow(&c->moved, &c->cap_moved, c->n_moved + 1, sizeof(m), err);
        if (rc != VT_OK)
            return rc;
        m.end = in_ms(kv[k].at_ns);
        m.begin = in_ms(kv[k].at_ns - kv[k].took_ns);
        m.blocks = kv[k].blocks;
        m.store = !kv[k].to_gpu;
        c->moved[c->n_moved++] = m;
        s = step_of(c, m.begin);
        if (s < c->n) {
            c->step[s].moves += 1;
            c->step[s].moved_blocks += m.blocks;
        }
    }
    put_in_line(c);
    return VT_OK;
}

/* ---- what the link makes of it ------------------------------------------ */

struct links {
    const struct vt_fit *f;
    struct vt_fit_link *is;
    double block_gb_ms; /* a block at 1 GB/s, in milliseconds */
    size_t at[4];       /* where in x: setup, both ways, what the other costs */
};
enum { SETUP, LOAD, STORE, SLOWED, NOT_ASKED = 9 };

static double value(const struct links *l, const double *x, int what)
{
    return l->at[what] == NOT_ASKED ? 0 : exp(x[l->at[what]]);
}

/* How long the other way was busy while this one moved bytes. `*from` is where to look
 * first, since both are in order. */
static double overlap(const struct capture *c, const struct moved *m, double begin,
                      size_t *from)
{
    double sum = 0;

    for (size_t k = *from; k < c->n_moved; k++) {
        const struct moved *o = &c->moved[k];

        if (o->store == m->store)
            break;
        if (o->end <= m->begin)
            *from = k + 1;
        if (o->begin >= m->end)
            break;
        sum += fmax(fmin(o->end, m->end) - fmax(o->begin, begin), 0);
    }
    return sum;
}

/* Calls for each transfer of a way that is asked for, with what it should take. */
typedef void each_fn(void *user, const struct moved *m, double predicted_ms);
static void predict(const struct links *l, const double *x, each_fn *tell, void *user)
{
    double setup = value(l, x, SETUP), slowed = fmin(value(l, x, SLOWED), 0.95);

    for (size_t i = 0; i < l->f->n; i++) {
        const struct capture *c = &l->f->capture[i];
        size_t stores = 0, other[2];

        while (stores < c->n_moved && !c->moved[stores].store)
            stores++;
        other[0] = stores; /* for loads; the loads come first */
        other[1] = 0;
        for (size_t k = 0; k < c->n_moved; k++) {
            const struct moved *m = &c->moved[k];
            double rate = value(l, x, m->store ? STORE : LOAD);
            double first = setup * m->jobs, moving = m->end - m->begin - first;
            double both = 0; /* share of its time */

            if (rate <= 0 || m->end <= m->begin)
                continue;
            if (slowed > 0 && moving > 0)
                both = overlap(c, m, m->begin + first, &other[m->store]) / moving;
            tell(user, m,
                 first + m->blocks * l->block_gb_ms / (rate * (1 - slowed * both)));
        }
    }
}

struct filling {
    double *r;
    size_t n;
};

static void fill_residual(void *user, const struct moved *m, double predicted_ms)
{
    struct filling *f = user;
    double e = log(fmax(predicted_ms, 1e-6) / (m->end - m->begin));

    if (f->r)
        f->r[f->n] = softened(e, SOFT);
    f->n++;
}

/* Where both ways are always busy, only rate and slowing together show: then it stays
 * where it was assumed. */
static const double SLOWED_START = 0.15, SLOWED_PULL = 0.03;

static void residuals(void *user, const double *x, double *r)
{
    const struct links *l = user;
    struct filling f = {.r = r};

    predict(l, x, fill_residual, &f);
    r[f.n] = l->at[SLOWED] == NOT_ASKED
                 ? 0
                 : SLOWED_PULL * (x[l->at[SLOWED]] - log(SLOWED_START));
}

struct judging {
    double *e[2];
    size_t n[2];
};

static void note_error(void *user, const struct moved *m, double predicted_ms)
{
    struct judging *j = user;

    j->e[m->store][j->n[m->store]++] = fabs(predicted_ms / (m->end - m->begin) - 1);
}

static int judge_ways(const struct links *l, const double *x, size_t n,
                      struct vt_err *err)
{
    double *cells = calloc(2 * n + 2, sizeof(*cells));
    struct judging j = {.e = {cells, cells + n}};

    if (!cells)
        return vt_nomem(err);
    predict(l, x, note_error, &j);
    for (int i = 0; i < 2; i++) {
        vt_sort_f64(j.e[i], j.n[i]);
        l->is->error[i] = j.n[i] > 0 ? vt_quantile(j.e[i], j.n[i], 50) : 0;
    }
    free(cells);
    return VT_OK;
}

/* What each way shows: transfers, the least and the most blocks of one; and the share
 * of time that both were busy. */
struct seen {
    double least[2], most[2], busy, both;
};

static struct seen look(const struct links *l)
{
    struct seen s = {.least = {INFINITY, INFINITY}};

    for (size_t i = 0; i < l->f->n; i++) {
        const struct capture *c = &l->f->capture[i];
        size_t stores = 0;

        while (stores < c->n_moved && !c->moved[stores].store)
            stores++;
        for (size_t k = 0, other = stores; k < c->n_moved; k++) {
            const struct moved *m = &c->moved[k];
            double blocks = m->blocks / m->jobs;

            l->is->n[m->store] += (size_t)m->jobs;
            s.least[m->store] = fmin(s.least[m->store], blocks);
            s.most[m->store] = fmax(s.most[m->store], blocks);
            s.busy += m->end - m->begin;
            if (!m->store)
                s.both += 2 * overlap(c, m, m->begin, &other);
        }
    }
    return s;
}

static bool varies(const struct links *l, const struct seen *s, int way)
{
    return l->is->n[way] >= LEAST_TRANSFERS &&
           s->most[way] >= LEAST_SPREAD * s->least[way];
}

static void ask(struct links *l, size_t *m, double *x, int what, double start)
{
    l->at[what] = *m;
    x[(*m)++] = log(start);
}

static void take(struct links *l, const double *x)
{
    l->is->setup_us = 1e3 * value(l, x, SETUP);
    for (int i = 0; i < 2; i++)
        l->is->gbs[i] = value(l, x, LOAD + i);
    if (l->at[SLOWED] != NOT_ASKED)
        l->is->duplex = 1 - fmin(value(l, x, SLOWED), 0.95);
}

int vt_fit_link(struct vt_fit_link *out, const struct vt_fit *f, double block_bytes,
                struct vt_err *err)
{
    struct links l = {.f = f,
                      .is = out,
                      .block_gb_ms = block_bytes / 1e6,
                      .at = {NOT_ASKED, NOT_ASKED, NOT_ASKED, NOT_ASKED}};
    struct lm_problem lm = {.residuals = residuals, .user = &l, .max_steps = LM_STEPS};
    struct filling count = {0};
    double x[4] = {0}, cost;
    struct seen s;
    int rc;

    *out = (struct vt_fit_link){0};
    s = look(&l);
    if (!(block_bytes > 0) || (!varies(&l, &s, 0) && !varies(&l, &s, 1)))
        return VT_OK;
    ask(&l, &lm.m, x, SETUP, 0.2);
    for (int i = 0; i < 2; i++)
        if (out->n[i] >= LEAST_TRANSFERS)
            ask(&l, &lm.m, x, LOAD + i, 30);
    if (s.both > LEAST_OVERLAP * s.busy)
        ask(&l, &lm.m, x, SLOWED, SLOWED_START);
    predict(&l, x, fill_residual, &count);
    lm.n = count.n + 1;
    if ((rc = lm_solve(&lm, x, &cost, err)) || (rc = judge_ways(&l, x, count.n, err)))
        return rc;
    if (fmax(out->error[0], out->error[1]) > BAD)
        return VT_OK; /* no line */
    take(&l, x);
    return VT_OK;
}
