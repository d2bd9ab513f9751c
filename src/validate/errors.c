/* errors.c - predicted against measured, pair by pair. */
#include <math.h>

#include "validate/validate.h"

const char *const vt_error_metric_names[] = {
    "e2e_mean", "e2e_p90",  "e2e_p99", "ttft_mean", "ttft_p90",
    "ttft_p99", "itl_mean", "itl_p90", "itl_p99",   NULL};

double vt_error_mpe(double predicted, double actual)
{
    if (actual == 0)
        return predicted == 0 ? 0 : predicted > 0 ? INFINITY : -INFINITY;
    return (predicted - actual) / fabs(actual) * 100;
}

double vt_error_mape(double predicted, double actual)
{
    return fabs(vt_error_mpe(predicted, actual));
}

/* Pairs of which one side is not known say nothing. */
static int add_stage(struct vt_harness *h, struct vt_error_record like,
                     const struct vt_stage_metrics *p, const struct vt_stage_metrics *a,
                     struct vt_err *err)
{
    int rc = VT_OK;

    like.stage_index = p->index;
    for (uint32_t i = 0; i < VT_ERROR_METRICS && rc == VT_OK; i++) {
        if (isnan(p->ms[i]) || isnan(a->ms[i]))
            continue;
        like.metric = i;
        like.predicted = p->ms[i];
        like.actual = a->ms[i];
        like.mape = vt_error_mape(p->ms[i], a->ms[i]);
        like.mpe = vt_error_mpe(p->ms[i], a->ms[i]);
        like.absolute = fabs(p->ms[i] - a->ms[i]);
        rc =
            vt_grow(&h->error, &h->cap_errors, h->n_errors + 1, sizeof(*h->error), err);
        if (rc == VT_OK)
            h->error[h->n_errors++] = like;
    }
    return rc;
}

int vt_errors_add(struct vt_harness *h, const char *simulator,
                  const struct vt_experiment *e, const struct vt_stage_metrics *stage,
                  size_t n_stages, const struct vt_stage_metrics *summary,
                  struct vt_err *err)
{
    const struct vt_error_record like = {.simulator = simulator, .experiment = e};
    int rc = VT_OK;

    for (size_t i = 0; i < n_stages && rc == VT_OK; i++) {
        int32_t index = stage[i].index;

        if (index >= 0 && (size_t)index < e->n_stages)
            rc = add_stage(h, like, &stage[i], &e->stage[index], err);
    }
    return rc == VT_OK ? add_stage(h, like, summary, &e->summary, err) : rc;
}
