/* values.c - medians, means, and what simulators and experiments took. */
#include <math.h>

#include "validate/figures/figures.h"

int fig_values_add(struct fig_values *x, double v, struct vt_err *err)
{
    int rc = vt_grow(&x->v, &x->cap, x->n + 1, sizeof(v), err);

    if (rc == VT_OK)
        x->v[x->n++] = v;
    return rc;
}

double fig_quantile(struct fig_values *x, double percent)
{
    double place;
    size_t below;

    if (x->n == 0)
        return (double)NAN;
    vt_sort_f64(x->v, x->n);
    place = percent / 100 * (double)(x->n - 1);
    below = (size_t)place;
    if (below + 1 >= x->n || place - (double)below <= 0)
        return x->v[below];
    if (!isfinite(x->v[below]) || !isfinite(x->v[below + 1]))
        return isfinite(x->v[below]) ? x->v[below + 1] : x->v[below];
    return vt_quantile(x->v, x->n, percent);
}

double fig_mean(const struct fig_values *x)
{
    double sum = 0;

    for (size_t i = 0; i < x->n; i++)
        sum += x->v[i];
    return x->n > 0 ? sum / (double)x->n : (double)NAN;
}

/* ---- runtimes ----------------------------------------------------------- */

int fig_runtime_quartiles(double out[3], bool *any, const struct fig_set *s,
                          const char *simulator, bool scaled, struct vt_err *err)
{
    bool sampled = scaled && strcmp(simulator, FIG_SAMPLED) == 0;
    struct fig_values x = {0};
    int rc = VT_OK;

    for (size_t i = 0; i < s->n_runtimes && rc == VT_OK; i++) {
        const struct fig_runtime *r = &s->runtime[i];
        const struct fig_truth *t = sampled ? fig_truth_of(s, r->at.folder) : NULL;
        double longer = t ? t->requests / FIG_SAMPLED_REQUESTS : 1;

        /* It would have been longer with all requests. */
        if (strcmp(r->at.simulator, simulator) == 0)
            rc = fig_values_add(&x, r->seconds * fmax(1, longer), err);
    }
    *any = x.n > 0;
    for (int q = 0; q < 3; q++)
        out[q] = fig_quantile(&x, 25.0 * (q + 1));
    free(x.v);
    return rc;
}

int fig_real_seconds(double *out, const struct fig_set *s, const char *simulator,
                     struct vt_err *err)
{
    bool sampled = strcmp(simulator, FIG_SAMPLED) == 0;
    struct fig_values x = {0};
    int rc = VT_OK;

    for (size_t i = 0; i < s->n_truths && rc == VT_OK; i++) {
        const struct fig_truth *t = &s->truth[i];
        double share = FIG_SAMPLED_REQUESTS / t->requests;

        rc = fig_values_add(&x, t->seconds * (sampled && share < 1 ? share : 1), err);
    }
    *out = x.n > 0 ? fig_quantile(&x, 50) : 1200;
    free(x.v);
    return rc;
}
