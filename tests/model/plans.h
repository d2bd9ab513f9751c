/* plans.h - a plan around a test's items. */
#ifndef VT_TEST_PLANS_H
#define VT_TEST_PLANS_H

#include "core/core.h"

static inline struct vt_step_plan plan_of(struct vt_item *item, uint32_t n)
{
    struct vt_step_plan p = {.item = item, .n = n, .running = n};

    for (uint32_t i = 0; i < n; i++) {
        if (item[i].prefill) {
            p.n_prefills++;
            p.prefill_tokens += item[i].tokens;
        } else {
            p.n_decodes++;
            p.decode_tokens += item[i].tokens;
            p.decode_ctx += item[i].computed;
        }
    }
    return p;
}

#endif
