/* search_simulate.c - one simulation within limits; it ends when it can't keep them.
 *
 * The p99 of n samples lies between the two around place 0.99 (n - 1), counted from 0.
 * With the lower one and all behind it above the limit the p99 is, whatever is still to
 * come: then the run stops. It could say nothing else, so results stay as they are. */
#include <math.h>

#include "tune/trial.h"
#include "tune/tune_search.h"

enum { TTFT, TPOT, E2E, N_LIMITS };

static const char *const limit_names[N_LIMITS] = {"TTFT p99", "TPOT p99", "E2E p99"};

struct watch {
    vt_ns limit[N_LIMITS]; /* VT_NEVER: none */
    uint64_t above[N_LIMITS];
    uint64_t enough; /* above the limit: the p99 is */
    uint64_t good;
    bool stop_early;
    const char *broken;
};

static vt_ns limit_ns(double ms)
{
    return ms > 0 && ms < 1e12 ? vt_ns_from_ms(ms) : VT_NEVER;
}

static int on_request(void *user, const struct vt_served *s, struct vt_err *err)
{
    struct watch *w = user;
    vt_ns value[N_LIMITS] = {s->ttft_ns, 0, s->ttft_ns};
    bool good = true;

    for (uint32_t i = 0; i < s->n_gaps; i++)
        value[E2E] += s->gap[i];
    if (s->output_tokens > 1)
        value[TPOT] = (value[E2E] - s->ttft_ns) / (s->output_tokens - 1);
    for (int i = 0; i < N_LIMITS; i++) {
        if (value[i] <= w->limit[i])
            continue;
        good = false;
        if (++w->above[i] < w->enough || !w->stop_early)
            continue;
        w->broken = limit_names[i];
        return vt_fail(err, VT_ECHECK, "%s is above its limit", limit_names[i]);
    }
    w->good += good;
    return VT_OK;
}

/* At a live server, which ends hopeless runs itself. */
static int measure_at_server(struct search_outcome *r, const struct vt_trial *t,
                             const struct vt_slo *slo, struct vt_err *err)
{
    const struct vt_target *x = t->measure_user;
    int rc;

    *r = (struct search_outcome){0};
    rc = vt_trial_run(t, &r->s, err);
    r->good = x->good;
    r->broken = vt_slo_broken(slo, &r->s, NULL);
    return rc;
}

int search_simulate(struct search_outcome *r, const struct vt_trial *t,
                    const struct vt_slo *slo, bool stop_early, struct vt_err *err)
{
    struct watch watch;
    struct vt_sim_sink sink = {.user = &watch, .request = on_request};
    struct vt_workload w;
    int rc;

    if (t->measure)
        return measure_at_server(r, t, slo, err);
    *r = (struct search_outcome){0};
    rc = vt_trial_workload(t, &w, err);
    if (rc != VT_OK)
        return rc;
    watch = (struct watch){
        .limit = {limit_ns(slo->ttft_p99), limit_ns(slo->tpot_p99),
                  limit_ns(slo->e2e_p99)},
        .enough = w.n - (uint64_t)floor(0.99 * (double)(w.n - 1)),
        .stop_early = stop_early,
    };
    rc = trial_simulate(t, &w, t->fleet, &sink, &r->s, err);
    vt_trial_workload_free(&w);
    r->good = watch.good;
    r->hopeless = watch.broken != NULL;
    if (r->hopeless) {
        r->s = (struct vt_summary){0};
        rc = VT_OK;
    }
    r->broken = r->hopeless ? watch.broken : vt_slo_broken(slo, &r->s, NULL);
    return rc;
}
