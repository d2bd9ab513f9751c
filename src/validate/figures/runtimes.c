/* runtimes.c - what simulators and experiments took. */
#include <math.h>

#include "validate/figures/figures.h"

int fig_runtime_quartiles(double out[3], bool *any, const struct fig_set *s,
                          const char *simulator, bool scaled, struct vt_err *err)
{
    bool sampled = scaled && strcmp(simulator, FIG_SAMPLED) == 0;
    struct values x = {0};
    int rc = VT_OK;

    for (size_t i = 0; i < s->n_runtimes && rc == VT_OK; i++) {
        const struct fig_runtime *r = &s->runtime[i];
        const struct fig_truth *t = sampled ? fig_truth_of(s, r->at.folder) : NULL;
        double longer = t ? t->requests / FIG_SAMPLED_REQUESTS : 1;

        /* It would have been longer with all requests. */
        if (strcmp(r->at.simulator, simulator) == 0)
            rc = values_add(&x, r->seconds * fmax(1, longer), err);
    }
    *any = x.n > 0;
    for (int q = 0; q < 3; q++)
        out[q] = values_quantile(&x, 25.0 * (q + 1));
    free(x.v);
    return rc;
}

int fig_real_seconds(double *out, const struct fig_set *s, const char *simulator,
                     struct vt_err *err)
{
    bool sampled = strcmp(simulator, FIG_SAMPLED) == 0;
    struct values x = {0};
    int rc = VT_OK;

    for (size_t i = 0; i < s->n_truths && rc == VT_OK; i++) {
        const struct fig_truth *t = &s->truth[i];
        double share = FIG_SAMPLED_REQUESTS / t->requests;

        rc = values_add(&x, t->seconds * (sampled && share < 1 ? share : 1), err);
    }
    *out = x.n > 0 ? values_quantile(&x, 50) : 1200;
    free(x.v);
    return rc;
}
