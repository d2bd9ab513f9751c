/* hear.c - unknowns from what replayed windows say: of one model's captures for a fit,
 * of all models' for the law. */
#include "fit/internal.h"

#include <math.h>

/* A point lies within a window that counts already. */
static const double POINT_WEIGHT = 0.3;
/* A window twice as long as predicted (e^0.7) was stalled by something else. */
static const double STALL = 0.7;

/* Pseudo-Huber. */
double softened(double e, double soft)
{
    double a = e / soft;

    return copysign(soft * sqrt(2 * (sqrt(1 + a * a) - 1)), e);
}

static void add_residual(void *user, struct window w)
{
    struct hearing *h = user;
    double ms = h->speaks ? h->speaks[h->n] : w.weight_ms;
    double share = ms * h->weight * (w.point ? POINT_WEIGHT : 1);

    if (h->r)
        h->r[h->n] = softened(window_error(w), h->soft) * sqrt(share);
    h->n++;
}

/* First uses of a kernel, garbage collection: rare, long, and nothing to learn from. */
static void note_first(void *user, struct window w)
{
    struct hearing *h = user;

    h->speaks[h->n++] = fabs(window_error(w)) > STALL ? 0 : fmax(w.expected_ms, 0);
}

static void replay_all(struct hearing *h, window_fn *tell, double *r)
{
    h->tell = tell;
    h->r = r;
    h->n = 0;
    h->replay(h->user, h);
}

static void residuals(void *user, const double *x, double *r)
{
    struct hearing *h = user;

    h->set(h->user, x);
    replay_all(h, add_residual, r);
    for (size_t i = 0; i < h->m; i++)
        r[h->n++] = h->u[i].pull * (x[i] - h->u[i].start);
}

/* Twice: the first solution says what the second is to listen to. */
int hear(struct hearing *h, double *x, struct vt_err *err)
{
    struct lm_problem lm = {.residuals = residuals,
                            .user = h,
                            .m = h->m,
                            .tolerance = h->tolerance,
                            .max_steps = h->max_steps};
    double cost, *speaks;
    int rc;

    replay_all(h, add_residual, NULL); /* counts them */
    if (h->n == 0)
        return vt_fail(err, VT_EINPUT, "the captures hold no steps to %s", h->purpose);
    lm.n = h->n + h->m;
    speaks = calloc(h->n, sizeof(*speaks));
    if (!speaks)
        return vt_nomem(err);
    rc = h->begun ? VT_OK : lm_solve(&lm, x, &cost, err);
    if (rc == VT_OK) {
        h->set(h->user, x);
        h->speaks = speaks;
        replay_all(h, note_first, NULL);
        rc = lm_solve(&lm, x, &cost, err);
        h->set(h->user, x);
    }
    free(speaks);
    h->speaks = NULL;
    return rc;
}
