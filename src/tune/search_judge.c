/* search_judge.c - what a setting is worth: the highest load within the limits. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tune/tune_search.h"

#define AT_ONCE 1e9 /* requests per second */

struct judge {
    const struct vt_tune_spec *spec;
    struct vt_trial trial;
    struct vt_tuned *out;
    enum vt_capacity_how how;
};

static void note_run(struct vt_tuned *t, double rate, const struct search_outcome *r)
{
    struct vt_iteration *i = &t->iteration[t->runs];

    if (t->runs++ >= VT_TUNE_ITERATIONS)
        return;
    *i = (struct vt_iteration){
        .rate = rate,
        .req_per_s = r->s.req_per_s,
        .goodput = r->s.duration_s > 0 ? (double)r->good / r->s.duration_s : 0,
        .ttft_p99 = r->s.ttft.p99,
        .tpot_p99 = r->s.tpot.p99,
        .itl_p99 = r->s.itl.p99,
        .e2e_p99 = r->s.e2e.p99,
        .cut = r->hopeless,
    };
    if (r->broken)
        snprintf(i->broken, sizeof(i->broken), "%s", r->broken);
}

static int try_rate(struct judge *j, double rate, bool stop_early, bool *meets,
                    struct vt_err *err)
{
    struct vt_tuned *t = j->out;
    struct search_outcome r;
    int rc;

    j->trial.rate = isinf(rate) ? AT_ONCE : rate;
    rc = search_simulate(&r, &j->trial, &j->spec->slo, stop_early, err);
    if (rc != VT_OK)
        return rc;
    note_run(t, rate, &r);
    *meets = !r.broken;
    if (*meets) {
        t->meets = true;
        t->rate = rate;
        t->at = r.s;
        t->goodput = r.s.duration_s > 0 ? (double)r.good / r.s.duration_s : 0;
        return VT_OK;
    }
    if (!(t->failed_rate > 0) || rate < t->failed_rate) {
        t->failed_rate = rate;
        snprintf(t->binding, sizeof(t->binding), "%s", r.broken);
    }
    if (!r.hopeless && !t->meets)
        t->at = r.s;
    return VT_OK;
}

/* Rates below 1, which auto_tune does not know: halved until one holds, or requests
 * meet nobody. The last one is run to its end: it says why not. */
static int below_one(struct judge *j, struct vt_err *err)
{
    bool meets = false;
    double rate = 1;
    int rc = VT_OK;

    for (int i = 0; i < 7 && rc == VT_OK && !meets; i++) {
        rate /= 2;
        rc = try_rate(j, rate, i < 6, &meets, err);
    }
    if (rc == VT_OK && meets) /* between it and its double */
        rc = try_rate(j, rate * 1.5, true, &meets, err);
    return rc;
}

/* auto_tune goes down from one above the throughput in steps of 1 until the limits
 * hold. Latency grows with the rate, so halving the range finds the same one. */
static int as_auto_tune(struct judge *j, struct vt_err *err)
{
    double low = 0, high;
    bool meets = false;
    int rc = try_rate(j, INFINITY, false, &meets, err);

    if (rc != VT_OK || meets)
        return rc;
    high = floor(j->out->at.req_per_s) + 2;
    while (rc == VT_OK && high - low > 1) {
        double mid = floor((low + high) / 2);

        rc = try_rate(j, mid, true, &meets, err);
        *(meets ? &low : &high) = mid;
    }
    return rc || low > 0 ? rc : below_one(j, err);
}

/* Latency grows with the rate here too, so the highest one that holds is found by
 * halving. */
static int among_rates(struct judge *j, struct vt_err *err)
{
    size_t low = 0, high = j->spec->n_rates;
    int rc = VT_OK;

    while (rc == VT_OK && low < high) {
        size_t mid = low + (high - low) / 2;
        bool meets = false;

        rc = try_rate(j, j->spec->rate[mid], true, &meets, err);
        if (meets)
            low = mid + 1;
        else
            high = mid;
    }
    return rc;
}

static int by_capacity(struct judge *j, struct vt_err *err)
{
    struct vt_capacity_spec spec = {
        .trial = j->trial,
        .slo = j->spec->slo,
        .seeds = j->spec->seeds,
        .workers = j->how == VT_CAPACITY_SURE ? j->spec->workers : 1,
        .how = j->how,
    };
    struct vt_tuned *t = j->out;
    struct vt_capacity c;
    int rc = vt_capacity_find(&c, &spec, err);

    if (rc != VT_OK)
        return rc;
    t->rate = c.rate;
    t->meets = c.rate > 0;
    t->sure = j->how == VT_CAPACITY_SURE;
    t->run_requests = c.requests;
    t->run_s = c.span_s;
    t->runs += (uint32_t)c.trials;
    if (c.binding)
        snprintf(t->binding, sizeof(t->binding), "%s", c.binding);
    for (size_t i = 0; i < c.n; i++) {
        if (c.point[i].rate <= c.rate || (i == 0 && !t->meets))
            t->at = c.point[i].mean;
        else if (!(t->failed_rate > 0) && c.point[i].broken)
            t->failed_rate = c.point[i].rate;
    }
    t->goodput = t->meets ? t->at.req_per_s : 0;
    vt_capacity_free(&c);
    return VT_OK;
}

int search_judge(struct vt_tuned *out, const struct vt_tune_spec *spec,
                 struct vt_trials *kept, const struct vt_setting *s,
                 enum vt_capacity_how how, struct vt_err *err)
{
    struct vt_deployment d;
    struct judge j = {.spec = spec, .out = out, .how = how};
    struct vt_err why = {0};
    int rc = vt_deploy(&d, &spec->site, s, &why);

    if (spec->target) /* a real one says itself what it can't bear */
        rc = spec->set(spec->target, s, &why);
    memset(out, 0, sizeof(*out)); /* padding too: it travels as bytes */
    out->tried = true;
    out->kv_gib = d.kv_gib;
    out->num_gpu_blocks = d.engine.num_gpu_blocks;
    out->known = d.model ? d.model->known : (struct vt_extent){0};
    if (rc != VT_OK) { /* vLLM would not start: the others go on */
        snprintf(out->problem, sizeof(out->problem), "%.150s", why.msg);
        vt_undeploy(&d);
        return rc == VT_EINPUT ? VT_OK : vt_fail(err, (enum vt_code)rc, "%s", why.msg);
    }
    j.trial = (struct vt_trial){
        .engine = d.engine,
        .model = d.model,
        .fleet = d.many ? &d.fleet : NULL,
        .workload = spec->workload,
        .input = spec->input,
        .requests = spec->requests,
        .concurrency = spec->concurrency,
        .seed = spec->seed,
        .kept = kept,
        .measure = spec->measure,
        .measure_user = spec->target,
    };
    rc = spec->n_rates > 0                ? among_rates(&j, &why)
         : spec->goal == VT_TUNE_CAPACITY ? by_capacity(&j, &why)
                                          : as_auto_tune(&j, &why);
    vt_undeploy(&d);
    out->at.profile = out->at.workload = out->at.version = NULL;
    if (rc != VT_EINPUT)
        return rc == VT_OK ? VT_OK : vt_fail(err, (enum vt_code)rc, "%s", why.msg);
    /* The workload itself is known to be sound: a request that is refused is too large
     * for this setting. */
    snprintf(out->problem, sizeof(out->problem), "%.150s", why.msg);
    out->meets = false;
    return VT_OK;
}
