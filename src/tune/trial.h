/* trial.h - a trial's workload: loaded once, laid out for each rate. Private to tune.
 */
#ifndef VT_TUNE_TRIAL_H
#define VT_TUNE_TRIAL_H

#include "tune/tune.h"

/* The workload of a trial before it is laid out: from t->kept, or loaded and kept
 * there. Owned by t->kept. */
int trial_load(const struct vt_trial *t, const struct vt_workload **out,
               struct vt_err *err) VT_MUST_CHECK;

/* Loads it for so many seeds. Workers are forks: what is loaded before is loaded for
 * all, and a bad file is told once. */
int trial_preload(const struct vt_trial *t, uint32_t seeds,
                  struct vt_err *err) VT_MUST_CHECK;

/* A copy of the first `requests` (0: all) that arrive at `rate`. Shares everything but
 * its requests with *w, which must outlive it; free out->req. */
int trial_layout(struct vt_workload *out, const struct vt_workload *w,
                 const struct vt_trial *t, struct vt_err *err) VT_MUST_CHECK;

/* Runs a workload that is laid out, with the trial's engine, model and seed. */
int trial_simulate(const struct vt_trial *t, const struct vt_workload *w,
                   const struct vt_fleet *fleet, const struct vt_sim_sink *sink,
                   struct vt_summary *out, struct vt_err *err) VT_MUST_CHECK;

/* An engine that falls behind serves each request later than the one before. So those
 * that came in the third quarter of the run are set against the fourth: by then an
 * engine that bears its load has filled up. Outputs of different length are no news, so
 * a request's decoding is what one of mean length would have taken. After the last
 * arrival decoding gets faster again, which must not hide that first tokens come later:
 * both count for themselves. */
struct growth {
    double mean_tokens;
    vt_ns span;             /* from first to last arrival */
    struct growth_quarter { /* sums, in seconds */
        double n, arrived, waited, decoded;
    } q[2];
};
/* A request sink; user: the growth. Wants arrival, first token, gaps and tokens. */
int growth_add(void *user, const struct vt_served *s, struct vt_err *err);
double growth_rate(const struct growth *g, double rate); /* that was borne */

#endif
