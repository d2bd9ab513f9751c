/* native.c - simulators in this process: the twin with vtwin's models, and with
 * BLIS's models and rules. */
#include <math.h>
#include <stdlib.h>

#include "model/model.h"
#include "report/report.h"
#include "sim/sim.h"
#include "validate/adapters/adapter.h"

static bool is_blis(const struct adapter *a)
{
    return strncmp(a->name, "blis-", strlen("blis-")) == 0;
}

/* BLIS is given the profile, as its own harness does; vtwin what was sent. */
static enum vt_harness_workload workload_of(const struct adapter_job *j)
{
    if (j->c->workload != VT_WORKLOAD_ADAPTER)
        return j->c->workload;
    return is_blis(j->a) ? VT_WORKLOAD_PROFILE : VT_WORKLOAD_ADAPTER;
}

int native_can_run(const struct adapter_job *j, struct vt_err *err)
{
    int rc = adapter_work_check(j->e, workload_of(j), err);

    return rc == VT_OK ? adapter_timing_check(j, err) : rc;
}

struct sink {
    const struct adapter_job *job;
    const struct adapter_work *work;
    struct gather *g;
    double post_ms; /* of each request, after its last token */
    vt_ns *gap;     /* scratch; heap */
    size_t cap_gaps;
};

/* BLIS of March 2026 counts the step that ends a request twice. */
static int repeat_last(struct sink *k, struct gather_request *r, struct vt_err *err)
{
    int rc =
        vt_grow(&k->gap, &k->cap_gaps, (size_t)r->n_gaps + 1, sizeof(*k->gap), err);

    if (rc != VT_OK)
        return rc;
    memcpy(k->gap, r->gap, r->n_gaps * sizeof(*k->gap));
    k->gap[r->n_gaps] = k->gap[r->n_gaps - 1];
    r->gap = k->gap;
    r->n_gaps++;
    return VT_OK;
}

/* And its requests have means over the gaps that there should be. */
static void repeat_in_means(struct gather *g, const struct vt_experiment *e)
{
    double n = e->prefix.output_len;

    for (size_t i = 0; i < g->n_stages && n > 1; i++)
        g->stage[i].ms[6] *= n / (n - 1);
}

static int on_request(void *user, const struct vt_served *s, struct vt_err *err)
{
    struct sink *k = user;
    struct gather_request r = {.stage = k->work->stage[s->req - k->work->w.req],
                               .ttft_ms = (double)s->ttft_ns / 1e6,
                               .output_tokens = s->output_tokens,
                               .gap = s->gap,
                               .n_gaps = s->n_gaps};
    vt_ns rest = 0;
    int rc;

    if (k->work->w.arrivals == VT_ARRIVALS_SESSION) /* when a turn came is seen now */
        r.stage = blis_stage_at(k->job->e, (double)s->arrival_ns / 1e9);
    if (strcmp(s->finish_reason, "abort") == 0 ||
        (k->work->sent && k->work->sent[s->index].failed)) {
        gather_leave_out(k->g, r.stage);
        return is_blis(k->job->a) && s->ttft_ns >= 0
                   ? gather_first_token(k->g, r.ttft_ms, err)
                   : VT_OK;
    }
    if (k->job->a->arrivals == ARRIVALS_EARLY && r.n_gaps > 0 &&
        (rc = repeat_last(k, &r, err)))
        return rc;
    for (uint32_t i = 0; i < r.n_gaps; i++)
        rest += r.gap[i];
    r.e2e_ms = (double)(s->ttft_ns + rest) / 1e6 + k->post_ms;
    return gather_add(k->g, &r, err);
}

/* The second tier of an experiment that had one; evictions are not told there, so that
 * without a size in its log it is as large as what was ever seen in it. */
static int add_offload(const struct adapter_job *j, struct vt_engine_config *c,
                       struct vt_err *err)
{
    const struct vt_experiment *e = j->e;
    uint32_t chunks = e->cpu_kv_blocks > 0 ? e->cpu_kv_blocks : e->kv_events_peak;
    struct vt_engine_config plain = *c;
    struct vt_kv_wish wish = {.tp = e->tp};
    struct vt_arch arch;
    struct vt_gpu gpu;
    uint64_t block_bytes;
    int rc;

    if (!e->cpu_offload || is_blis(j->a) || chunks == 0)
        return VT_OK;
    wish.arch = &arch;
    if ((rc = adapter_arch(&arch, j, NULL, err)) ||
        (rc = vt_gpu_find(&gpu, adapter_gpu(e), NULL, err)) ||
        (rc = vt_kv_groups(&plain, &wish, &block_bytes, err)))
        return vt_within(err, rc, "CPU offload");
    c->offload.num_cpu_blocks = chunks;
    return vt_offload_settle(c, &gpu, block_bytes, arch.layers, e->tp, err);
}

static int simulate_experiment(const struct adapter_job *j,
                               const struct adapter_work *work,
                               const struct vt_profile *profile, struct gather *g,
                               struct vt_err *err)
{
    const struct vt_latency *model = profile->model;
    uint32_t release = vt_profile_release(profile);
    struct sink k = {.job = j, .work = work, .g = g, .post_ms = model->post_us / 1e3};
    struct vt_sim_sink sink = {.user = &k, .request = on_request};
    struct vt_fleet fleet = {.routing = "round-robin", .seed = 42};
    struct vt_sim_spec spec = {.workload = &work->w,
                               .model = model,
                               .patience = work->patience,
                               .arrivals = work->w.arrivals,
                               .sink = &sink};
    struct vt_engine_config *c = &spec.engine;
    const struct vt_experiment *e = j->e;
    struct vt_summary summary = {0};
    int rc;

    g->known = model->known;
    /* Other models were made from what clients saw. */
    if (strcmp(model->ops->name, "step") == 0 && profile->clock != VT_CLOCK_CLIENT) {
        spec.clock = j->c->clock;
        spec.frontend = profile->frontend.name ? &profile->frontend
                                               : vt_front_find(VT_DEFAULT_FRONT);
    }
    vt_engine_config_init(c);
    if (release > 0)
        c->vllm = release;
    c->max_num_seqs = e->max_num_seqs;
    c->max_num_batched_tokens = e->max_num_batched_tokens;
    c->num_gpu_blocks = e->total_kv_blocks;
    /* What was served was within the limit, whatever tokenizers disagree about. */
    c->max_model_len =
        work->longest > e->max_model_len ? work->longest : e->max_model_len;
    c->seed = 42;
    fleet.instances = e->dp > 1 && adapter_ranks(j) == 1 ? e->dp : 1;
    c->num_gpu_blocks *= adapter_ranks(j);
    if (j->c->change)
        j->c->change(j->c->user, c, &fleet.instances);
    if (is_blis(j->a)) {
        c->compat = VT_COMPAT_BLIS;
        c->async_scheduling = false;
    }
    spec.fleet = fleet.instances > 1 ? &fleet : NULL;
    rc = add_offload(j, c, err);
    if (rc == VT_OK)
        rc = vt_engine_config_check(c, err);
    if (rc == VT_OK)
        rc = vt_sim_run(&spec, &summary, err);
    free(k.gap);
    g->extent = summary.extent;
    return rc;
}

/* Folders of a study are called after the capture that they are of, behind a number;
 * its workloads write "_" for "-". */
static bool was_fitted_on(const struct vt_profile *p, const struct vt_experiment *e)
{
    const struct vt_meta meta = {.gpu = adapter_gpu(e)};
    const char *slash = strrchr(e->folder, '/');
    const char *name = slash ? slash + 1 : e->folder;
    char workload[128];

    (void)snprintf(workload, sizeof(workload), "%s", e->workload);
    for (char *c = workload; *c; c++)
        if (*c == '_')
            *c = '-';
    return vt_profile_saw(p, name, &meta) ||
           vt_profile_saw(p, name + strspn(name, "0123456789-"), &meta) ||
           vt_profile_saw(p, workload, &meta);
}

int native_run(const struct adapter_job *j, struct gather *g, struct vt_err *err)
{
    struct adapter_timing timing;
    struct adapter_work work;
    int rc = adapter_timing_open(&timing, j, err);

    if (rc != VT_OK)
        return rc;
    rc = adapter_work_open(&work, j->e, workload_of(j), j->a->arrivals, err);
    if (rc == VT_OK)
        rc = vt_basis_of_profile(&g->basis, &timing.profile, err);
    g->basis.in_sample = rc == VT_OK && was_fitted_on(&timing.profile, j->e);
    if (rc == VT_OK)
        rc = simulate_experiment(j, &work, &timing.profile, g, err);
    if (rc == VT_OK)
        rc = gather_finish(g, err);
    if (rc == VT_OK && j->a->arrivals == ARRIVALS_EARLY)
        repeat_in_means(g, j->e);
    adapter_work_close(&work);
    adapter_timing_close(&timing);
    return rc;
}
