/* toy_model.h - step times that are easy to add up, where tiers and peers are tested.
 */
#ifndef VT_TEST_TOY_MODEL_H
#define VT_TEST_TOY_MODEL_H

#include "core/core.h"

/* A prompt token costs 1 us, a step 100 us. */
static void toy_step(const struct vt_latency *m, const struct vt_step_shape *s,
                     struct vt_step_cost *cost)
{
    (void)m;
    cost->gpu_us = 100 + s->plan->prefill_tokens;
}
static const struct vt_latency_ops toy_ops = {.name = "toy", .step = toy_step};
static const struct vt_latency toy = {.ops = &toy_ops};

#endif
