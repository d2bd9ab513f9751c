/* fleet.h - many engines behind a router in one virtual time. */
#ifndef VT_SIM_FLEET_H
#define VT_SIM_FLEET_H

#include "sim/run.h"

/* Runs the workload to its end. *t: of all engines together; the spec's `replica`,
 * where it has room for them, gets those of each one. */
int fleet_simulate(struct sim_run *r, struct vt_engine_totals *t, struct vt_err *err);

#endif
