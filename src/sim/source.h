/* source.h - when the workload's requests arrive: at recorded times, or as earlier ones
 * end. */
#ifndef VT_SIM_SOURCE_H
#define VT_SIM_SOURCE_H

#include "sim/sim.h"

struct source {
    const struct vt_workload *w;
    enum vt_arrivals mode;
    uint32_t limit;          /* starts in flight; 0: no limit, recorded times */
    size_t next;             /* first request not yet looked at as a start */
    struct vt_agenda agenda; /* requests whose time is set */
};

int source_init(struct source *s, const struct vt_sim_spec *spec, struct vt_err *err);
void source_free(struct source *s);

vt_ns source_due(const struct source *s); /* VT_NEVER: nothing until something ends */
size_t source_take(struct source *s);     /* the request that is due */
/* A request has ended: its next turn, or the next one in line, may now come, `pause`
 * after it. */
int source_ended(struct source *s, size_t req, vt_ns at, vt_ns pause,
                 struct vt_err *err);

#endif
