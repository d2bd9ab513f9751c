/* lm.c - Levenberg-Marquardt with numeric derivatives for a few dozen parameters.
 *
 * By hand and not by a library, because the systems are tiny (50 x 50) and the order of
 * every sum must be ours: the same captures give the same profile, byte for byte. */
#include "fit/internal.h"

#include <math.h>

/* Parameters are logarithms. */
static const double STEP = 1e-4, TOLERANCE = 1e-6, MOST_DAMPING = 1e6;

struct lm {
    const struct lm_problem *p;
    double *r, *trial_r, *jacobian; /* n, n, m x n */
    double *jj;                     /* m x m: the lower half of J'J */
    double *a, *b, *dx, *trial_x;   /* m x m, m, m, m */
};

static double sum_of_squares(const double *r, size_t n)
{
    double s = 0;

    for (size_t i = 0; i < n; i++)
        s += r[i] * r[i];
    return s;
}

static double dot(const double *a, const double *b, size_t n)
{
    double s = 0;

    for (size_t i = 0; i < n; i++)
        s += a[i] * b[i];
    return s;
}

/* Fills the Jacobian and its square, which serves every damping. */
static void differentiate(struct lm *l, const double *x)
{
    const struct lm_problem *p = l->p;
    double step = p->step > 0 ? p->step : STEP;

    memcpy(l->trial_x, x, p->m * sizeof(*x));
    for (size_t j = 0; j < p->m; j++) {
        double *column = l->jacobian + j * p->n;

        l->trial_x[j] = x[j] + step;
        p->residuals(p->user, l->trial_x, column);
        l->trial_x[j] = x[j];
        for (size_t i = 0; i < p->n; i++)
            column[i] = (column[i] - l->r[i]) / step;
        for (size_t i = 0; i <= j; i++)
            l->jj[j * p->m + i] = dot(column, l->jacobian + i * p->n, p->n);
    }
}

/* Solves (J'J + damping * diag) dx = -J'r by Cholesky. False: not positive definite. */
static bool solve_damped(struct lm *l, double damping)
{
    size_t m = l->p->m, n = l->p->n;
    double *a = l->a, *b = l->b;

    for (size_t i = 0; i < m; i++) {
        b[i] = -dot(l->jacobian + i * n, l->r, n);
        memcpy(&a[i * m], &l->jj[i * m], (i + 1) * sizeof(*a));
        a[i * m + i] += damping * (a[i * m + i] + 1e-9);
    }
    for (size_t i = 0; i < m; i++) {
        for (size_t j = 0; j <= i; j++) {
            double s = a[i * m + j];

            for (size_t k = 0; k < j; k++)
                s -= a[i * m + k] * a[j * m + k];
            if (i == j && s <= 0)
                return false;
            a[i * m + j] = i == j ? sqrt(s) : s / a[j * m + j];
        }
        for (size_t k = 0; k < i; k++)
            b[i] -= a[i * m + k] * b[k];
        b[i] /= a[i * m + i];
    }
    for (size_t i = m; i-- > 0;) {
        for (size_t k = i + 1; k < m; k++)
            b[i] -= a[k * m + i] * l->dx[k];
        l->dx[i] = b[i] / a[i * m + i];
    }
    return true;
}

/* One accepted step. False: no direction improves any more. */
static bool improve(struct lm *l, double *x, double *cost, double *damping)
{
    const struct lm_problem *p = l->p;
    double least = p->tolerance > 0 ? p->tolerance : TOLERANCE;
    double most = p->most_damping > 0 ? p->most_damping : MOST_DAMPING;

    for (; *damping < most; *damping *= 4) {
        double trial;

        if (!solve_damped(l, *damping))
            continue;
        for (size_t i = 0; i < p->m; i++) /* far jumps leave where the slope holds */
            l->trial_x[i] = x[i] + fmax(-0.7, fmin(0.7, l->dx[i]));
        p->residuals(p->user, l->trial_x, l->trial_r);
        trial = sum_of_squares(l->trial_r, p->n);
        if (trial >= *cost)
            continue;
        memcpy(x, l->trial_x, p->m * sizeof(*x));
        memcpy(l->r, l->trial_r, p->n * sizeof(*l->r));
        *damping = fmax(*damping / 5, 1e-7);
        if (*cost - trial < least * *cost) {
            *cost = trial;
            return false;
        }
        *cost = trial;
        return true;
    }
    return false;
}

int lm_solve(const struct lm_problem *p, double *x, double *least, struct vt_err *err)
{
    size_t m = p->m, n = p->n;
    double *cells = calloc(2 * n + m * n + 2 * m * m + 3 * m, sizeof(*cells));
    double damping = 1e-3, cost;
    struct lm l = {.p = p};
    int rc = VT_OK;

    if (!cells)
        return vt_nomem(err);
    l.r = cells;
    l.trial_r = l.r + n;
    l.jacobian = l.trial_r + n;
    l.jj = l.jacobian + m * n;
    l.a = l.jj + m * m;
    l.b = l.a + m * m;
    l.dx = l.b + m;
    l.trial_x = l.dx + m;
    p->residuals(p->user, x, l.r);
    cost = sum_of_squares(l.r, n);
    for (int i = 0; i < p->max_steps && !(rc = vt_stopped(err)); i++) {
        differentiate(&l, x);
        if (!improve(&l, x, &cost, &damping))
            break;
    }
    *least = cost;
    free(cells);
    return rc;
}
