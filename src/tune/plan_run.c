/* plan_run.c - every row of a plan at every rate, with several seeds. */
#include <stdlib.h>
#include <string.h>

#include "tune/trial.h"
#include "tune/tune_search.h"

struct plan_trials {
    const struct vt_tuning_plan *p;
    struct vt_tuning_result *r;
    struct vt_deployment *d; /* heap; one a row */
    struct vt_trials *kept;
    uint64_t seed;
};

/* ---- one row at one rate --------------------------------------------- */

/* The slow ones first, so that the last to end is a short one. */
static size_t cell_of(const struct plan_trials *u, size_t job)
{
    return u->p->n * u->p->n_rates - 1 - job;
}

static const char *workload_of(const struct vt_tuning_plan *p, size_t row)
{
    return p->row[row].workload ? p->row[row].workload : p->workload;
}

static int run_cell(void *user, size_t i, struct vt_buf *result, struct vt_err *err)
{
    struct plan_trials *u = user;
    size_t at = cell_of(u, i), row = at / u->p->n_rates;
    const struct vt_deployment *d = &u->d[row];
    uint32_t engines = d->many ? d->fleet.instances : 1;
    struct vt_tuning_cell out;
    struct vt_trial t = {
        .engine = d->engine,
        .model = d->model,
        .fleet = d->many ? &d->fleet : NULL,
        .workload = workload_of(u->p, row),
        .rate = u->p->rate[at % u->p->n_rates] * engines,
        .requests = u->p->requests * engines,
        .kept = u->kept,
    };
    int rc = VT_OK;

    memset(&out, 0, sizeof(out)); /* padding too: it travels as bytes */
    for (uint32_t k = 0; k < u->p->seeds && rc == VT_OK; k++) {
        struct vt_summary s;

        t.seed = u->seed + k;
        rc = vt_trial_run(&t, &s, err);
        if (rc == VT_OK)
            vt_summary_add(&out.mean, &s, 1.0 / u->p->seeds);
        if (rc == VT_OK && !vt_slo_broken(&u->p->slo, &s, NULL))
            out.passed++;
    }
    out.runs = u->p->seeds;
    out.known = d->model->known;
    vt_buf_add(result, &out, sizeof(out));
    return vt_within(err, rc, "row '%s'", u->p->row[row].name);
}

static int store_cell(void *user, size_t i, const char *result, size_t len,
                      struct vt_err *err)
{
    struct plan_trials *u = user;
    struct vt_tuning_cell *to = &u->r->at[cell_of(u, i)];

    if (len != sizeof(*to))
        return vt_fail(err, VT_EIO, "a result of %zu bytes", len);
    memcpy(to, result, len);
    vt_slo_all_broken(to->broken, sizeof(to->broken), &u->p->slo, &to->mean);
    return VT_OK;
}

/* ---- the whole ------------------------------------------------------- */

static int run_rows(struct plan_trials *u, uint32_t workers, struct vt_err *err)
{
    struct vt_jobs jobs = {
        .n = u->p->n * u->p->n_rates,
        .run = run_cell,
        .done = store_cell,
        .user = u,
        .workers = workers,
    };
    int rc = VT_OK;

    for (size_t i = 0; i < u->p->n && rc == VT_OK; i++) {
        struct vt_trial t = {
            .workload = workload_of(u->p, i), .seed = u->seed, .kept = u->kept};

        rc = trial_preload(&t, u->p->seeds, err);
    }
    if (rc != VT_OK && vt_stopped(NULL) != VT_OK)
        return vt_fail(err, VT_EIO, "stopped after 0 of %zu trials", jobs.n);
    if (rc == VT_OK)
        rc = vt_jobs_run(&jobs, err);
    /* The highest rate below which all keep the limits in the mean of their seeds. */
    for (size_t i = 0; i < u->p->n && rc == VT_OK; i++) {
        const struct vt_tuning_cell *at = &u->r->at[i * u->p->n_rates];
        size_t k = 0;

        while (k < u->p->n_rates && at[k].broken[0] == '\0')
            k++;
        u->r->best[i] = k > 0 ? k - 1 : u->p->n_rates;
    }
    return rc;
}

/* The plan's words become a site. */
static int open_site(struct vt_site *site, const struct vt_tuning_plan *p,
                     struct vt_profile *profile, struct vt_arch *arch,
                     struct vt_gpu *gpu, struct vt_err *err)
{
    struct vt_engine_config drafts = p->site.engine;
    int rc = vt_arch_load(arch, p->hf_config, err);

    if (rc == VT_OK)
        rc = vt_gpu_find(gpu, p->gpu, NULL, err);
    *site = p->site;
    vt_engine_config_init(&site->engine);
    if (rc == VT_OK)
        rc = vt_profile_limits(profile, &site->engine, err);
    memcpy(site->engine.spec_position, drafts.spec_position,
           sizeof(drafts.spec_position));
    site->engine.n_spec_positions = drafts.n_spec_positions;
    site->engine.spec_acceptance = drafts.spec_acceptance;
    site->engine.spec_draft_us = drafts.spec_draft_us;
    site->engine.use_eagle = drafts.use_eagle;
    if (p->max_model_len > 0)
        site->engine.max_model_len = p->max_model_len;
    site->profile = profile;
    site->kv.arch = arch;
    site->lockstep = rc == VT_OK && arch->experts > 0;
    site->gpu = gpu;
    return rc;
}

static int run_with(struct plan_trials *u, struct vt_profile *profile, uint32_t workers,
                    struct vt_err *err)
{
    struct vt_arch arch;
    struct vt_gpu gpu;
    struct vt_site site;
    int rc = open_site(&site, u->p, profile, &arch, &gpu, err);

    for (size_t i = 0; i < u->p->n && rc == VT_OK; i++) {
        rc = vt_deploy(&u->d[i], &site, &u->p->row[i].setting, err);
        u->r->kv_gib[i] = u->d[i].kv_gib;
        rc = vt_within(err, rc, "row '%s'", u->p->row[i].name);
    }
    if (rc == VT_OK)
        rc = vt_trials_new(&u->kept, err);
    if (rc == VT_OK)
        rc = run_rows(u, workers, err);
    vt_trials_free(u->kept);
    for (size_t i = 0; i < u->p->n; i++)
        vt_undeploy(&u->d[i]);
    return rc;
}

int vt_tuning_plan_run(struct vt_tuning_result *r, const struct vt_tuning_plan *p,
                       uint64_t seed, uint32_t workers, struct vt_err *err)
{
    struct plan_trials u = {.p = p, .r = r, .seed = seed};
    struct vt_profile profile;
    int rc = vt_profile_open(&profile, p->profile, err);

    *r = (struct vt_tuning_result){0};
    if (rc != VT_OK)
        return rc;
    r->at = calloc(p->n * p->n_rates, sizeof(*r->at));
    r->kv_gib = calloc(p->n, sizeof(*r->kv_gib));
    r->best = calloc(p->n, sizeof(*r->best));
    u.d = calloc(p->n, sizeof(*u.d));
    rc = r->at && r->kv_gib && r->best && u.d ? run_with(&u, &profile, workers, err)
                                              : vt_nomem(err);
    free(u.d);
    vt_profile_close(&profile);
    if (rc != VT_OK)
        vt_tuning_result_free(r);
    return rc;
}

void vt_tuning_result_free(struct vt_tuning_result *r)
{
    free(r->at);
    free(r->kv_gib);
    free(r->best);
    *r = (struct vt_tuning_result){0};
}
