/* trial.h - what capacity and tune share: limits, loads, seeds, and live servers that
 * trials are measured at in place of simulated; private to cmd. */
#ifndef VT_CLI_TRIAL_H
#define VT_CLI_TRIAL_H

#include "cli/cli.h"
#include "cli/cmd/limits.h"
#include "cli/cmd/traffic.h"
#include "cli/workers.h"
#include "load/load.h"
#include "tune/tune.h"

struct trial_options {
    struct traffic_options traffic;
    uint32_t seeds, jobs;
    int64_t seed;
    struct opt_numbers rates; /* ascending; none: searched for */
    struct vt_slo slo;        /* one by one, or their standards */
    struct limits_named named;
    const char *target, *target_model, *workers;
    uint32_t warmups;
    bool once, json, quiet, progress;
};
extern const struct opt_row trial_rows[];
#define TRIAL_BLOCKS(type, member) \
    OPT_BLOCK(trial_rows, type, member), TRAFFIC_BLOCKS(type, member.traffic)

/* The traffic whose rate is searched for; as traffic_open(). */
int trial_traffic(struct traffic *t, const struct opt_args *a,
                  const struct trial_options *o, struct vt_err *err) VT_MUST_CHECK;
/* The limits: those of --slo and no others, or those of the single flags, which go over
 * it where they were given. */
struct vt_slo trial_limits(const struct opt_args *a, const struct trial_options *o);
/* The rates that are asked for; *n 0: none. */
const double *trial_rates(const struct trial_options *o, size_t *n);

struct target_job {
    bool on; /* --target is given */
    struct vt_load_config load;
    struct vt_target target;
};

/* Nothing where --target is not given. End t->target with vt_target_close() whatever
 * happens; *t must not move between. */
int target_open(struct target_job *t, const struct opt_args *a,
                const struct trial_options *o, const struct vt_slo *slo,
                struct vt_err *err) VT_MUST_CHECK;

void trial_progress_begin(const struct trial_options *o); /* cli_progress_begin() */

/* "12 trials in 0.35 s", if somebody looks. */
void trial_tell_time(const struct trial_options *o, size_t n, const char *what,
                     vt_ns began_ns);

#endif
