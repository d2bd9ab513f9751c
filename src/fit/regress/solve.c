/* solve.c - linear, ridge, lasso and non-negative least squares, all from the sums of
 * products: a few dozen terms, however many rows. */
#include "fit/regress/regress.h"

#include <math.h>

enum { PASSES = 20000 }; /* of lasso, at most */
/* Of a column's variance, or of what other columns leave of it. */
static const double LEAST_VARIANCE = 1e-10;

/* ---- sums ---------------------------------------------------------------- */

void moments_add(struct moments *m, const double *x, double y)
{
    m->n += 1;
    m->y += y;
    m->yy += y * y;
    for (size_t i = 0; i < m->p; i++) {
        m->x[i] += x[i];
        m->xy[i] += x[i] * y;
        for (size_t k = 0; k <= i; k++)
            m->xx[i][k] += x[i] * x[k];
    }
}

void moments_subtract(struct moments *m, const struct moments *other)
{
    m->n -= other->n;
    m->y -= other->y;
    m->yy -= other->yy;
    for (size_t i = 0; i < m->p; i++) {
        m->x[i] -= other->x[i];
        m->xy[i] -= other->xy[i];
        for (size_t k = 0; k <= i; k++)
            m->xx[i][k] -= other->xx[i][k];
    }
}

double regress_misfit(const struct moments *m, const struct solution *s)
{
    double a = s->intercept, e = m->yy - 2 * a * m->y + m->n * a * a;

    for (size_t i = 0; i < m->p; i++) {
        e += 2 * s->b[i] * (a * m->x[i] - m->xy[i]) + s->b[i] * s->b[i] * m->xx[i][i];
        for (size_t k = 0; k < i; k++)
            e += 2 * s->b[i] * s->b[k] * m->xx[i][k];
    }
    return m->n > 0 ? e / m->n : 0;
}

/* ---- one symmetric system ------------------------------------------------ */

struct system { /* a b = r, of which the lower half of a is there */
    size_t n;
    double a[VT_TERMS + 1][VT_TERMS + 1], r[VT_TERMS + 1];
};

/* Cholesky, in order. A column that the ones before it explain gets 0, and keeps[i] is
 * false. */
static void solve_system(const struct system *s, double least, double *b, bool *keeps)
{
    double l[VT_TERMS + 1][VT_TERMS + 1], z[VT_TERMS + 1] = {0};

    for (size_t i = 0; i < s->n; i++) {
        double rest = s->a[i][i];

        for (size_t k = 0; k < i; k++) {
            double v = s->a[i][k];

            for (size_t q = 0; q < k; q++)
                v -= l[i][q] * l[k][q];
            l[i][k] = keeps[k] ? v / l[k][k] : 0;
            rest -= l[i][k] * l[i][k];
        }
        keeps[i] = s->a[i][i] > 0 && rest > least * s->a[i][i];
        l[i][i] = keeps[i] ? sqrt(rest) : 1;
        z[i] = keeps[i] ? s->r[i] : 0;
        for (size_t k = 0; k < i && keeps[i]; k++)
            z[i] -= l[i][k] * z[k];
        z[i] /= l[i][i];
    }
    for (size_t i = s->n; i-- > 0;) {
        b[i] = keeps[i] ? z[i] : 0;
        for (size_t k = i + 1; k < s->n && keeps[i]; k++)
            b[i] -= keeps[k] ? l[k][i] * b[k] : 0;
        b[i] = keeps[i] ? b[i] / l[i][i] : 0;
    }
}

/* ---- with columns of mean 0 and variance 1 --------------------------------- */

struct standard {
    double mean[VT_TERMS], sd[VT_TERMS], y_mean, y_sd;
    struct system s; /* correlations */
    bool varies[VT_TERMS];
};

static void standardise(const struct moments *m, struct standard *o)
{
    double variance;

    *o = (struct standard){.s.n = m->p, .y_mean = m->y / m->n};
    variance = m->yy / m->n - o->y_mean * o->y_mean;
    o->y_sd = variance > 0 ? sqrt(variance) : 0;
    for (size_t i = 0; i < m->p; i++) {
        o->mean[i] = m->x[i] / m->n;
        variance = m->xx[i][i] / m->n - o->mean[i] * o->mean[i];
        o->varies[i] = variance > LEAST_VARIANCE * m->xx[i][i] / m->n;
        o->sd[i] = o->varies[i] ? sqrt(variance) : 1;
    }
    for (size_t i = 0; i < m->p; i++) {
        if (!o->varies[i])
            continue;
        for (size_t k = 0; k <= i; k++)
            if (o->varies[k])
                o->s.a[i][k] = (m->xx[i][k] / m->n - o->mean[i] * o->mean[k]) /
                               (o->sd[i] * o->sd[k]);
        if (o->y_sd > 0)
            o->s.r[i] =
                (m->xy[i] / m->n - o->mean[i] * o->y_mean) / (o->sd[i] * o->y_sd);
    }
}

static void unstandardise(const struct standard *o, const double *b,
                          struct solution *out)
{
    out->intercept = o->y_mean;
    for (size_t i = 0; i < o->s.n; i++) {
        out->standard[i] = b[i];
        out->b[i] = b[i] * o->y_sd / o->sd[i];
        out->intercept -= out->b[i] * o->mean[i];
    }
}

static void solve_ridge(struct standard *o, double lambda, struct solution *out)
{
    double b[VT_TERMS + 1];
    bool keeps[VT_TERMS + 1];

    for (size_t i = 0; i < o->s.n; i++)
        o->s.a[i][i] += o->varies[i] ? lambda : 0;
    solve_system(&o->s, LEAST_VARIANCE, b, keeps);
    for (size_t i = 0; i < o->s.n; i++)
        if (o->varies[i] && !keeps[i])
            out->state[i] = VT_TERM_EXPLAINED;
    unstandardise(o, b, out);
}

static double correlation(const struct system *s, size_t i, size_t k)
{
    return k <= i ? s->a[i][k] : s->a[k][i];
}

/* Coordinate descent: each coefficient in turn as if the others were right. */
static void solve_lasso(const struct standard *o, double share, struct solution *out)
{
    double b[VT_TERMS] = {0}, most = 0, lambda, moved = 1;

    for (size_t i = 0; i < o->s.n; i++)
        most = fmax(most, fabs(o->s.r[i]));
    lambda = share * most;
    for (int pass = 0; pass < PASSES && moved > 1e-10; pass++) {
        moved = 0;
        for (size_t i = 0; i < o->s.n; i++) {
            double r = o->s.r[i], was = b[i];

            if (!o->varies[i])
                continue;
            for (size_t k = 0; k < o->s.n; k++)
                if (k != i)
                    r -= correlation(&o->s, i, k) * b[k];
            b[i] = fabs(r) <= lambda ? 0 : (r > 0 ? r - lambda : r + lambda);
            moved = fmax(moved, fabs(b[i] - was));
        }
    }
    for (size_t i = 0; i < o->s.n; i++)
        if (o->varies[i] && !(fabs(b[i]) > 0))
            out->state[i] = VT_TERM_ZERO;
    unstandardise(o, b, out);
}

/* ---- non-negative ---------------------------------------------------------- */

/* The intercept is a column like others here: no engine takes less than no time. */
static void square_system(const struct moments *m, struct system *s, double *scale)
{
    *s = (struct system){.n = m->p + 1};
    s->a[0][0] = scale[0] = 1;
    s->r[0] = m->y / m->n;
    for (size_t i = 0; i < m->p; i++) {
        double size = sqrt(m->xx[i][i] / m->n);

        scale[i + 1] = size > 0 ? size : 1;
        s->r[i + 1] = m->xy[i] / m->n / scale[i + 1];
        s->a[i + 1][0] = m->x[i] / m->n / scale[i + 1];
        for (size_t k = 0; k <= i; k++)
            s->a[i + 1][k + 1] = m->xx[i][k] / m->n / scale[i + 1] / scale[k + 1];
    }
}

/* Goes from b towards the least squares over the chosen columns, until the first of
 * them would be negative; false: that happened. */
static bool solve_chosen(const struct system *s, const bool *chosen, double *b)
{
    struct system part = {0};
    double z[VT_TERMS + 1], way = 1;
    size_t at[VT_TERMS + 1] = {0};
    bool keeps[VT_TERMS + 1], whole = true;

    for (size_t i = 0; i < s->n; i++)
        if (chosen[i])
            at[part.n++] = i;
    for (size_t i = 0; i < part.n; i++) {
        part.r[i] = s->r[at[i]];
        for (size_t k = 0; k <= i; k++)
            part.a[i][k] = s->a[at[i]][at[k]];
    }
    solve_system(&part, LEAST_VARIANCE, z, keeps);
    for (size_t i = 0; i < part.n; i++)
        if (z[i] <= 0) {
            double from = b[at[i]];

            way = fmin(way, from > z[i] ? from / (from - z[i]) : 0);
            whole = false;
        }
    for (size_t i = 0; i < part.n; i++)
        b[at[i]] += way * (z[i] - b[at[i]]);
    return whole;
}

/* Lawson and Hanson's active set. */
static void solve_nonnegative(const struct moments *m, struct solution *out)
{
    static const double TINY = 1e-10;
    struct system s;
    double scale[VT_TERMS + 1], b[VT_TERMS + 1] = {0};
    bool chosen[VT_TERMS + 1] = {false}, tried[VT_TERMS + 1] = {false};

    square_system(m, &s, scale);
    for (int pass = 0; pass < 10 * (VT_TERMS + 1); pass++) {
        size_t best = s.n;
        double steepest = TINY * fabs(s.r[0]);

        for (size_t i = 0; i < s.n; i++) {
            double w = s.r[i];

            for (size_t k = 0; k < s.n; k++)
                w -= correlation(&s, i, k) * b[k];
            if (!chosen[i] && !tried[i] && w > steepest) {
                steepest = w;
                best = i;
            }
        }
        if (best == s.n)
            break;
        chosen[best] = tried[best] = true;
        while (!solve_chosen(&s, chosen, b)) {
            bool any = false;

            for (size_t i = 0; i < s.n; i++)
                if (chosen[i] && b[i] <= TINY * fabs(s.r[0])) {
                    chosen[i] = false;
                    b[i] = 0;
                    any = true;
                }
            if (!any)
                break;
        }
        /* One that went out at once would come in again for ever; others may. */
        for (size_t i = 0; i < s.n && chosen[best]; i++)
            tried[i] = chosen[i];
    }
    out->intercept = b[0];
    for (size_t i = 0; i < m->p; i++) {
        out->b[i] = b[i + 1] / scale[i + 1];
        if (out->state[i] == VT_TERM_USED && !(b[i + 1] > 0))
            out->state[i] = VT_TERM_ZERO;
    }
}

/* ---- all of them ------------------------------------------------------------ */

void regress_solve(const struct moments *m, enum vt_learner learner, double lambda,
                   struct solution *out)
{
    struct standard o;

    *out = (struct solution){0};
    standardise(m, &o);
    for (size_t i = 0; i < m->p; i++)
        out->state[i] = o.varies[i] ? VT_TERM_USED : VT_TERM_CONSTANT;
    if (learner == VT_LEARN_NONNEGATIVE) {
        solve_nonnegative(m, out);
        for (size_t i = 0; i < m->p; i++)
            out->standard[i] = o.y_sd > 0 ? out->b[i] * o.sd[i] / o.y_sd : 0;
    } else if (learner == VT_LEARN_LASSO) {
        solve_lasso(&o, lambda, out);
    } else {
        solve_ridge(&o, learner == VT_LEARN_RIDGE ? lambda : 0, out);
    }
    for (size_t i = 0; i < m->p; i++)
        if (out->state[i] == VT_TERM_CONSTANT || out->state[i] == VT_TERM_EXPLAINED)
            out->b[i] = out->standard[i] = 0;
}
