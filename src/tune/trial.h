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

/* A copy of the first `go_on`, else `requests` (0: all), that arrive at `rate`. Shares
 * everything but its requests with *w, which must outlive it; free out->req. */
int trial_layout(struct vt_workload *out, const struct vt_workload *w,
                 const struct vt_trial *t, struct vt_err *err) VT_MUST_CHECK;

/* Whole rounds of its stages that a run has been laid out for; 0: it has no stages, or
 * is as long as it is. */
uint32_t trial_rounds(const struct vt_workload *w, const struct vt_trial *t);

/* Of workloads with sessions: how long one goes on in the mean, all thinking together;
 * it is so long until as many end as begin. 0: there are none. */
double trial_session_s(const struct vt_workload *w);

/* A run of a workload that is laid out, with the trial's engine, model and seed.
 * Borrows all of them. */
struct vt_sim_spec trial_spec(const struct vt_trial *t, const struct vt_workload *w,
                              const struct vt_fleet *fleet,
                              const struct vt_sim_sink *sink);

/* ---- what is borne --------------------------------------------------- */

/* Where fewer leave than arrive the number of those under way grows, whatever the
 * scheduler does with them. So its mean over one part of the run is set against that
 * over the next: the third quarter and the fourth, by when an engine that bears its
 * load has filled up; of stages equally many rounds. */
struct backlog {
    vt_ns from, part; /* where the first begins, and how long each is */
    double area[2];   /* requests under way, times seconds, in these */
};
/* span: from first to last arrival. */
struct backlog backlog_of(vt_ns span);
void backlog_add(struct backlog *b, vt_ns arrival_ns, vt_ns end_ns);
double backlog_rate(const struct backlog *b, double rate); /* that was borne */

/* ---- limits that are broken for certain ------------------------------ */

/* The p99 of n samples lies between the two around place 0.99 (n - 1), counted from 0.
 * With the lower one and all behind it above the limit the p99 is, whatever is still to
 * come. */
struct limit_watch {
    vt_ns limit[VT_SLO_LIMITS]; /* VT_NEVER: none, or not to be known so early */
    uint64_t above[VT_SLO_LIMITS];
    uint64_t enough; /* above a limit: the p99 is */
    uint64_t good;   /* requests that kept all */
};
void watch_start(struct limit_watch *w, const struct vt_slo *slo, size_t n);
vt_ns served_e2e(const struct vt_served *s);
/* The limit that is broken by now, and stays so; NULL: none is. e2e_ns: served_e2e().
 */
const char *watch_add(struct limit_watch *w, const struct vt_served *s, vt_ns e2e_ns);

/* Whether a request by itself keeps the limits of TTFT, TPOT and E2E. */
bool slo_means_kept(const struct vt_slo *slo, vt_ns ttft_ns, vt_ns e2e_ns,
                    uint32_t output_tokens);

#endif
