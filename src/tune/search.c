/* search.c - the space of settings, and the trials of those that are asked for. */
#include <stdlib.h>
#include <string.h>

#include "tune/trial.h"
#include "tune/tune_search.h"

/* ---- the space ------------------------------------------------------ */

size_t vt_tune_space_size(const struct vt_tune_space *s)
{
    size_t n = 1;

    for (int i = 0; i < VT_TUNE_AXES; i++) {
        if (s->n[i] > 0 && n > SIZE_MAX / s->n[i])
            return SIZE_MAX;
        n *= s->n[i];
    }
    return n;
}

struct vt_setting vt_tune_space_at(const struct vt_tune_space *s, size_t i)
{
    double v[VT_TUNE_AXES];

    for (int axis = VT_TUNE_AXES - 1; axis >= 0; axis--) {
        v[axis] = s->value[axis][i % s->n[axis]];
        i /= s->n[axis];
    }
    return (struct vt_setting){
        .max_num_seqs = (uint32_t)v[VT_AXIS_SEQS],
        .max_num_batched_tokens = (uint32_t)v[VT_AXIS_BATCHED_TOKENS],
        .gpu_memory_utilization = v[VT_AXIS_MEMORY],
        .tp = (uint32_t)v[VT_AXIS_TP],
        .dp = (uint32_t)v[VT_AXIS_DP],
        .routing = s->routing[(size_t)v[VT_AXIS_ROUTING]],
        .spec_tokens = (uint32_t)v[VT_AXIS_DRAFTS],
        .prefix_caching = v[VT_AXIS_CACHING] != 0,
        .kv_bytes = v[VT_AXIS_KV],
    };
}

const char *vt_setting_kv_dtype(const struct vt_setting *s)
{
    return !(s->kv_bytes > 0) ? "auto" : s->kv_bytes < 2 ? "fp8" : "bfloat16";
}

/* ---- trials --------------------------------------------------------- */

static int run_setting(void *user, size_t i, struct vt_buf *result, struct vt_err *err)
{
    struct search *s = user;
    struct vt_setting setting = vt_tune_space_at(&s->spec->space, s->want[i]);
    struct vt_tuned t;
    enum vt_capacity_how how = s->spec->once ? VT_CAPACITY_ONCE : VT_CAPACITY_ROUGH;
    int rc = search_judge(&t, s->spec, s->kept, &setting, how, err);

    if (rc == VT_OK)
        vt_buf_add(result, &t, sizeof(t));
    return rc;
}

static int store_tuned(void *user, size_t i, const char *result, size_t len,
                       struct vt_err *err)
{
    struct search *s = user;
    struct vt_tuned *t = &s->result->tuned[s->want[i]];

    if (len != sizeof(*t))
        return vt_fail(err, VT_EIO, "a result of %zu bytes", len);
    memcpy(t, result, len);
    s->result->trials++;
    s->result->runs += t->runs;
    if (s->spec->progress)
        s->spec->progress(s->spec->user, s->result->trials);
    return VT_OK;
}

int search_try(struct search *s, const size_t *want, size_t n, struct vt_err *err)
{
    struct vt_jobs jobs = {
        .n = n,
        .run = run_setting,
        .done = store_tuned,
        .user = s,
        .workers = s->spec->workers,
    };

    s->want = want;
    return n > 0 ? vt_jobs_run(&jobs, err) : VT_OK;
}

/* ---- which is best --------------------------------------------------- */

static double worth_of(const struct vt_tune_spec *spec, const struct vt_tuned *t,
                       size_t i)
{
    struct vt_setting s = vt_tune_space_at(&spec->space, i);
    double v = spec->goal == VT_TUNE_CAPACITY ? t->rate : t->at.req_per_s;

    return t->meets ? v / ((double)s.tp * s.dp) : -1;
}

bool vt_tune_better(const struct vt_tune_spec *spec, const struct vt_tune_result *r,
                    size_t a, size_t b)
{
    const struct vt_tuned *x = &r->tuned[a], *y = &r->tuned[b];
    double vx = worth_of(spec, x, a), vy = worth_of(spec, y, b);

    if (vx > vy || vx < vy)
        return vx > vy;
    if (spec->goal == VT_TUNE_CAPACITY && x->meets) {
        double nx, ny; /* the share of the nearest limit that is used */

        (void)vt_slo_nearest(&spec->slo, &x->at, &nx);
        (void)vt_slo_nearest(&spec->slo, &y->at, &ny);
        if (nx < ny || nx > ny)
            return nx < ny;
    }
    return a < b;
}

/* ---- the whole ------------------------------------------------------- */

static int search_grid(struct search *s, struct vt_err *err)
{
    size_t *all = malloc(s->result->n * sizeof(*all));
    int rc;

    if (!all)
        return vt_nomem(err);
    for (size_t i = 0; i < s->result->n; i++)
        all[i] = i;
    rc = search_try(s, all, s->result->n, err);
    free(all);
    return rc;
}

static void find_best(struct vt_tune_result *r, const struct vt_tune_spec *spec)
{
    r->best = r->n;
    for (size_t i = 0; i < r->n; i++)
        if (r->tuned[i].meets &&
            (r->best == r->n || vt_tune_better(spec, r, i, r->best)))
            r->best = i;
}

/* Short runs compare settings; the answer is to hold in the long run. So the best is
 * asked again, until one that was stays the best. */
static int make_best_sure(struct search *s, struct vt_err *err)
{
    enum { MOST = 5 };
    struct vt_tune_result *r = s->result;
    const struct vt_tune_spec *spec = s->spec;
    int rc = VT_OK;

    for (int i = 0; i < MOST && rc == VT_OK; i++) {
        struct vt_setting setting;
        struct vt_tuned t;

        find_best(r, spec);
        if (r->best == r->n || r->tuned[r->best].sure)
            break;
        setting = vt_tune_space_at(&spec->space, r->best);
        rc = search_judge(&t, spec, s->kept, &setting, VT_CAPACITY_SURE, err);
        if (rc != VT_OK)
            break;
        r->runs += t.runs;
        t.runs += r->tuned[r->best].runs;
        r->tuned[r->best] = t;
    }
    return rc;
}

int vt_tune(struct vt_tune_result *r, const struct vt_tune_spec *spec,
            struct vt_err *err)
{
    struct search s = {.spec = spec, .result = r};
    int rc;

    *r = (struct vt_tune_result){.n = vt_tune_space_size(&spec->space)};
    if (r->n == 0 || r->n > VT_TUNE_MOST)
        return vt_fail(err, VT_EINPUT, "%zu configurations: from 1 to %d", r->n,
                       VT_TUNE_MOST);
    r->tuned = calloc(r->n, sizeof(*r->tuned));
    rc = r->tuned ? vt_trials_new(&s.kept, err) : vt_nomem(err);
    if (rc == VT_OK)
        rc = trial_preload(&(struct vt_trial){.workload = spec->workload,
                                              .input = spec->input,
                                              .requests = spec->requests,
                                              .seed = spec->seed,
                                              .kept = s.kept},
                           1, err);
    if (rc == VT_OK)
        rc = spec->search == VT_TUNE_SMART ? search_smart(&s, err)
                                           : search_grid(&s, err);
    if (rc == VT_OK && spec->goal == VT_TUNE_CAPACITY && spec->n_rates == 0 &&
        !spec->target && !spec->once)
        rc = make_best_sure(&s, err);
    vt_trials_free(s.kept);
    if (rc != VT_OK && (!r->tuned || vt_stopped(NULL) == VT_OK))
        vt_tune_result_free(r);
    find_best(r, spec);
    return rc;
}

void vt_tune_result_free(struct vt_tune_result *r)
{
    free(r->tuned);
    *r = (struct vt_tune_result){0};
}
