/* predict.h - loads made to size, and what a model says of them; private to learn. */
#ifndef VT_LEARN_PREDICT_H
#define VT_LEARN_PREDICT_H

#include "learn/plan.h"

/* The engine that a server's limits describe. Times are the client's: `front` has its
 * pause between the requests of a closed loop, and how bursts are read; NULL: neither.
 */
int predict(const struct vt_workload *w, const struct vt_meta *engine,
            const struct vt_latency *model, const struct vt_front *front,
            struct vt_summary *out, struct vt_err *err) VT_MUST_CHECK;

/* Makes a row's load so long that the model needs s->seconds for it. *out is zeroed. */
int predict_size(struct vt_workload *out, const struct plan_row *p,
                 const struct plan_sizes *s, const struct vt_meta *engine,
                 const struct vt_latency *model, uint64_t seed,
                 struct vt_err *err) VT_MUST_CHECK;

#endif
