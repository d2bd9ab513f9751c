/* arrival.c - when requests are sent: vLLM's arrival process. */
#include <math.h>
#include <stdlib.h>

#include "load/load.h"

double vt_load_rate_at(const struct vt_load_arrivals *a, size_t i, size_t n)
{
    double share = n > 1 ? (double)i / (double)(n - 1) : 0;

    switch (a->ramp) {
    case VT_RAMP_LINEAR:
        return a->ramp_start + (a->ramp_end - a->ramp_start) * share;
    case VT_RAMP_EXPONENTIAL:
        return a->ramp_start * pow(a->ramp_end / a->ramp_start, share);
    default:
        return a->rate;
    }
}

static double draw_gap(const struct vt_load_arrivals *a, struct vt_rng *rng,
                       double rate)
{
    if (isinf(rate))
        return 0;
    if (isinf(a->burstiness))
        return 1 / rate;
    return vt_rng_gamma(rng, a->burstiness) / (rate * a->burstiness);
}

/* A ramp that starts at 0 would wait for ever: the first request sets out at the rate
 * of the second. */
int vt_load_arrivals_make(const struct vt_load_arrivals *a, vt_ns *at, size_t n,
                          struct vt_err *err)
{
    double sum = 0, scale = 1;
    struct vt_rng rng;

    if (a->ramp == VT_RAMP_NONE && !(a->rate > 0))
        return vt_fail(err, VT_EINPUT, "a request rate must be above 0");
    if (!(a->burstiness > 0))
        return vt_fail(err, VT_EINPUT, "burstiness must be above 0");
    if (a->ramp != VT_RAMP_NONE && !(a->ramp_start >= 0 && a->ramp_end > 0))
        return vt_fail(err, VT_EINPUT, "rates of a ramp must not be negative");
    if (a->ramp == VT_RAMP_EXPONENTIAL && !(a->ramp_start > 0))
        return vt_fail(err, VT_EINPUT, "an exponential ramp starts above 0");
    for (int pass = 0; pass < 2; pass++) {
        vt_rng_init(&rng, a->seed, "arrivals");
        sum = 0;
        for (size_t i = 0; i < n; i++) {
            double rate = vt_load_rate_at(a, i, n);

            sum += draw_gap(a, &rng, rate > 0 ? rate : vt_load_rate_at(a, i + 1, n));
            at[i] = vt_ns_from_ms(sum * scale * 1e3);
        }
        if (a->ramp != VT_RAMP_NONE || isinf(a->rate) || !(sum > 0))
            break;
        scale = (double)n / a->rate / sum;
    }
    return VT_OK;
}

void vt_load_plan_free(struct vt_load_plan *p)
{
    vt_arena_free(&p->arena);
    free(p->session);
    *p = (struct vt_load_plan){0};
}

void vt_load_records_free(struct vt_load_records *r)
{
    vt_arena_free(&r->arena);
    free(r->record);
    free(r->probe);
    *r = (struct vt_load_records){0};
}
