/* trial.c - flags of capacity and tune, and the live server that they may name. */
#include "cli/cmd/trial.h"

#include <math.h>
#include <stdlib.h>

#include "cli/progress.h"
#include "cli/signals.h"
#include "live/live.h"

static int read_rates(const struct opt_row *row, const char *text, void *field,
                      struct vt_err *err)
{
    const struct opt_numbers *r = field;
    int rc = opt_read_numbers(row, text, field, err);

    for (uint32_t i = 1; i < r->n && rc == VT_OK; i++)
        if (!(r->at[i] > r->at[i - 1]))
            rc = vt_fail(err, VT_EINPUT, "--%s must ascend", row->name);
    return rc;
}

#define OPT_T struct trial_options
const struct opt_row trial_rows[] = {
    OPT_U32(traffic.num_prompts, "requests", "N", 2, UINT32_MAX, NULL, "",
            .now = "num-prompts"),
    LIMITS_ROW(named, .shown = "the next four"),
    OPT_READ(slo.ttft_p99, "slo-ttft-p99", "MS", opt_read_limit, "1000",
             "limit; 0: none"),
    OPT_READ(slo.tpot_p99, "slo-tpot-p99", "MS", opt_read_limit, "60",
             "limit; 0: none"),
    OPT_READ(slo.itl_p99, "slo-itl-p99", "MS", opt_read_limit, "0", "limit; 0: none"),
    OPT_READ(slo.e2e_p99, "slo-e2e-p99", "MS", opt_read_limit, "0", "limit; 0: none"),
    OPT_READ(rates, "rates", "LIST", read_rates, NULL, "try these only: 0.5,1,1.5",
             .shown = "searched for", .lo = 1e-6, .hi = 1e6),
    OPT_U32(seeds, "seeds", "N", 1, 1000, "3", "runs of each rate"),
    OPT_I64(seed, "seed", "N", 0, INT64_MAX - 1000, "1", "the first of them"),
    OPT_U32(jobs, "jobs", "N", 1, 4096, NULL, "processes; the answer is the same",
            .shown = "all cores"),
    WORKERS_ROW(workers),
    OPT_TEXT(target, "target", "URL", NULL,
             "measure at a live server instead of simulating"),
    OPT_TEXT(target_model, "target-model", "NAME", NULL, "what requests to it ask for",
             .shown = "the first it has"),
    OPT_U32(warmups, "num-warmups", "N", 1, 100000, "1",
            "requests to it before the first trial"),
    OPT_FLAG(once, "once",
             "a capacity of these requests as they are, not of the long run"),
    OPT_FLAG(json, "json", "print JSON instead of a table"),
    OPT_FLAG(quiet, "quiet", "no warnings, no word on how long it took"),
    PROGRESS_ROW(progress),
    {0},
};

int trial_traffic(struct traffic *t, const struct opt_args *a,
                  const struct trial_options *o, struct vt_err *err)
{
    int rc = traffic_open(t, a, &o->traffic, TRAFFIC_SEARCHED, err);

    if (rc || (rc = opt_exclude(a, &o->rates, &o->traffic.rate, err)))
        return rc;
    if (isinf(o->traffic.rate))
        return vt_fail(err, VT_EINPUT,
                       "--request-rate inf: give a number, or nothing to search");
    return VT_OK;
}

struct vt_slo trial_limits(const struct opt_args *a, const struct trial_options *o)
{
    struct vt_slo slo = o->named.given ? o->named.at : o->slo;

    for (size_t i = 0; i < VT_SLO_LIMITS; i++)
        if (opt_given(a, (const char *)&o->slo + vt_slo_rows[i].limit))
            *vt_slo_limit(&slo, i) = vt_slo_at(&o->slo, i);
    return slo;
}

const double *trial_rates(const struct trial_options *o, size_t *n)
{
    *n = o->traffic.rate > 0 ? 1 : o->rates.n;
    return o->traffic.rate > 0 ? &o->traffic.rate : o->rates.at;
}

int target_open(struct target_job *t, const struct opt_args *a,
                const struct trial_options *o, const struct vt_slo *slo,
                struct vt_err *err)
{
    int rc = VT_OK;

    *t = (struct target_job){.on = o->target != NULL};
    if (!t->on) {
        rc = opt_refuse(a, &o->warmups, " needs --target", err);
        return rc ? rc : opt_refuse(a, &o->target_model, " needs --target", err);
    }
    if ((rc = opt_exclude(a, &o->target, &o->workers, err)))
        return rc;
    cli_signals_catch();
    t->load = (struct vt_load_config){
        .base_url = cli_base_url(o->target),
        .api_key = getenv("OPENAI_API_KEY"),
        .model = o->target_model,
        .logprobs = -1,
        .stopped = cli_stopped,
    };
    t->target = (struct vt_target){
        .load = &t->load, .slo = *slo, .warmups = o->warmups, .tell = cli_tell};
    return vt_within(err, vt_load_url_check(t->load.base_url, err), "--target");
}

void trial_progress_begin(const struct trial_options *o)
{
    cli_progress_begin(o->progress, o->quiet);
    cli_progress_bare();
}

void trial_tell_time(const struct trial_options *o, size_t n, const char *what,
                     vt_ns began_ns)
{
    if (!o->quiet && cli_seen())
        fprintf(stderr, "%zu %s in %.2f s\n", n, what,
                (double)(vt_wall_ns() - began_ns) / 1e9);
}
