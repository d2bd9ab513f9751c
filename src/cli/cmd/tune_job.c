/* tune_job.c - from flags to a search. */
#include <math.h>
#include <string.h>

#include "cli/cmd/tune.h"
#include "cli/progress.h"

/* ---- lists ----------------------------------------------------------- */

static int read_whole_numbers(const struct opt_row *row, const char *text, void *field,
                              struct vt_err *err)
{
    const struct opt_numbers *v = field;
    int rc = opt_read_numbers(row, text, field, err);

    for (uint32_t i = 0; i < v->n && rc == VT_OK; i++)
        if (v->at[i] < floor(v->at[i]) || v->at[i] > floor(v->at[i]))
            rc = vt_fail(err, VT_EINPUT, "--%s: %g is not a whole number", row->name,
                         v->at[i]);
    return rc;
}

static int read_on_off(const struct opt_row *row, const char *text, void *field,
                       struct vt_err *err)
{
    bool both = strcmp(text, "on,off") == 0 || strcmp(text, "off,on") == 0;
    struct opt_numbers *v = field;

    if (!both && strcmp(text, "on") != 0 && strcmp(text, "off") != 0)
        return vt_fail(err, VT_EINPUT, "--%s: '%s' is not on, off or on,off", row->name,
                       text);
    v->at[0] = strncmp(text, "on", 2) == 0;
    v->at[1] = !(v->at[0] > 0);
    v->n = both ? 2 : 1;
    return VT_OK;
}

/* As the bytes of an element, which is all that counts of them. */
static int read_kv_dtypes(const struct opt_row *row, const char *text, void *field,
                          struct vt_err *err)
{
    struct opt_numbers *v = field;

    for (v->n = 0; text; v->n++) {
        size_t len = strcspn(text, ",");
        int which = 0;

        while (engine_kv_dtypes[which] &&
               !vt_is_text(engine_kv_dtypes[which], text, len))
            which++;
        if (!engine_kv_dtypes[which] || v->n == VT_TUNE_VALUES)
            return vt_fail(err, VT_EINPUT,
                           "--%s: '%.*s' is none of auto, fp8, bfloat16, ...",
                           row->name, (int)len, text);
        v->at[v->n] = engine_kv_bytes(which);
        text = text[len] ? text + len + 1 : NULL;
    }
    return VT_OK;
}

#define OPT_T struct tune_options
#define AXIS(i, n, reader, a, z, d, ...)                                   \
    OPT_READ(axis[i], n, "LIST", reader, d, __VA_ARGS__, .lo = a, .hi = z, \
             .most = VT_TUNE_VALUES)
const struct opt_row tune_axis_rows[] = {
    AXIS(VT_AXIS_SEQS, "max-num-seqs", read_whole_numbers, 1, 1 << 20,
         "64,128,256,512,1024", "requests running at once"),
    AXIS(VT_AXIS_BATCHED_TOKENS, "max-num-batched-tokens", read_whole_numbers, 1,
         1 << 30, "8192,16384,32768", "token budget of a step"),
    AXIS(VT_AXIS_MEMORY, "gpu-memory-utilization", opt_read_numbers, 0.01, 1, "0.9",
         "share of a GPU's memory; sizes the KV cache"),
    AXIS(VT_AXIS_TP, "tensor-parallel-size", read_whole_numbers, 1, 1024, "1",
         "GPUs of an engine", .shown = "the profile's"),
    AXIS(VT_AXIS_DP, "data-parallel-size", read_whole_numbers, 1, 1024, "1",
         "engines behind a router"),
    OPT_TEXT(routing, "routing", "LIST", "round-robin",
             "who gets a request; several with ';' between them"),
    AXIS(VT_AXIS_DRAFTS, "num-speculative-tokens", read_whole_numbers, 0, 64, "0",
         "drafts per request and step"),
    AXIS(VT_AXIS_CACHING, "prefix-caching", read_on_off, 0, 1, "on",
         "on, off or both: on,off"),
    AXIS(VT_AXIS_KV, "kv-cache-dtype", read_kv_dtypes, 0, 4, "auto",
         "number formats of the KV cache: auto,fp8"),
    {0},
};

/* A weighted sum has commas of its own. */
static int split_routings(struct tune_job *j, const char *text, struct vt_err *err)
{
    struct vt_tune_space *s = &j->spec.space;
    uint32_t *n = &s->n[VT_AXIS_ROUTING];

    for (*n = 0; text; (*n)++) {
        size_t len = strcspn(text, ";");
        int rc;

        if (*n == VT_TUNE_VALUES)
            return vt_fail(err, VT_EINPUT, "--routing: more than %d", VT_TUNE_VALUES);
        s->routing[*n] = vt_arena_copy(&j->arena, text, len);
        if (!s->routing[*n])
            return vt_nomem(err);
        rc = vt_within(err, vt_routing_check(s->routing[*n], err), "--routing");
        if (rc != VT_OK)
            return rc;
        s->value[VT_AXIS_ROUTING][*n] = *n;
        text = text[len] ? text + len + 1 : NULL;
    }
    return VT_OK;
}

/* ---- what it is served by -------------------------------------------- */

/* The release that the workload was recorded with, if it is a trace. Its limits are
 * what is searched for. */
static int read_release(struct tune_job *j, struct vt_meta *meta, struct vt_err *err)
{
    struct vt_trial t = {.workload = j->spec.workload,
                         .input = j->spec.input,
                         .requests = j->spec.requests,
                         .seed = j->spec.seed,
                         .rate = 1};
    struct vt_workload w;
    int rc = vt_trials_new(&t.kept, err);

    *meta = (struct vt_meta){.async_scheduling = -1, .enable_prefix_caching = -1};
    if (rc == VT_OK && !(rc = vt_trial_workload(&t, &w, err))) {
        meta->vllm_version = w.meta.vllm_version;
        if (meta->vllm_version) {
            const char *text = meta->vllm_version;

            meta->vllm_version = vt_arena_copy(&j->arena, text, strlen(text));
            rc = meta->vllm_version ? VT_OK : vt_nomem(err);
        }
        vt_trial_workload_free(&w);
    }
    vt_trials_free(t.kept);
    return rc;
}

/* What holds for every setting is said once, not as the problem of each. */
static int check_layers(const struct engine_job *j, const struct vt_kv_wish *kv,
                        struct vt_err *err)
{
    struct vt_engine_config any = j->config;
    uint64_t block_bytes;

    return kv->arch ? vt_kv_groups(&any, kv, &block_bytes, err) : VT_OK;
}

/* Without sizes the pool is the profile's; then its size can't be searched over. */
static int open_site(struct tune_job *j, const struct opt_args *a, struct vt_err *err)
{
    const struct tune_options *o = a->options;
    const struct engine_options *e = &o->engine;
    /* An inline model takes limits and pool from the default profile. */
    const char *profile =
        engine_inline_model(e) && !e->profile ? VT_DEFAULT_PROFILE : NULL;
    struct vt_site *s = &j->spec.site;
    struct vt_kv_wish kv;
    bool must = engine_asked_model(a, e) || opt_given(a, &o->axis[VT_AXIS_MEMORY]) ||
                opt_given(a, &o->axis[VT_AXIS_TP]) ||
                opt_given(a, &o->axis[VT_AXIS_KV]);
    struct vt_setting first;
    struct vt_meta meta;
    const char *why;
    bool lockstep = false, ranks = false;
    uint32_t tp;
    int rc = read_release(j, &meta, err);

    if (rc == VT_OK)
        rc = engine_read(&j->engine, a, e, profile, &meta, err);
    if (rc == VT_OK && !opt_given(a, &e->config.num_gpu_blocks))
        rc = engine_find_sizes(&j->engine, e, must, err);
    if (rc != VT_OK || (rc = engine_profile_tp(&j->engine, &tp, err)) ||
        (rc = engine_find_arch(&j->engine, e, err)) ||
        (rc = engine_kv_wish(&kv, &j->engine, a, e, err)) ||
        (rc = check_layers(&j->engine, &kv, err)) ||
        (rc = engine_lockstep(&j->engine, a, e, &lockstep, &why, err)))
        return rc;
    kv.caching_stated |= opt_given(a, &o->axis[VT_AXIS_CACHING]);
    if (!opt_given(a, &o->axis[VT_AXIS_TP]))
        j->spec.space.value[VT_AXIS_TP][0] = tp;
    j->estimate = engine_estimate(&j->engine, e);
    j->spec.trust = &j->engine.trust;
    *s = (struct vt_site){.profile = j->engine.has_profile ? &j->engine.profile : NULL,
                          .shrink = j->engine.basis == VT_ESTIMATED &&
                                    !opt_given(a, &e->config.max_model_len),
                          .model = j->engine.inline_model,
                          .engine = j->engine.config,
                          .kv = kv,
                          .staleness_ns = o->staleness_ns,
                          .lockstep = lockstep};
    engine_time_site(s, &j->engine, e, &j->estimate);
    first = vt_tune_space_at(&j->spec.space, 0);
    if ((rc = engine_trust(&j->engine, s, &first, err)))
        return rc;
    for (uint32_t i = 0; i < o->axis[VT_AXIS_DP].n; i++)
        ranks |= o->axis[VT_AXIS_DP].at[i] > 1;
    if (!o->trial.quiet && ranks)
        engine_tell_ranks(lockstep, why);
    if (!o->trial.quiet && !(ranks && lockstep))
        engine_warn_interval(e, ENGINE_ALONE);
    s->engine.use_eagle = e->method == 0;
    s->engine.spec_draft_us = e->config.spec_draft_us;
    s->law_drafts = !opt_given(a, &e->config.spec_draft_us);
    return VT_OK;
}

/* ---- a live server --------------------------------------------------- */

static int open_target(struct tune_job *j, const struct opt_args *a, struct vt_err *err)
{
    const struct tune_options *o = a->options;
    struct target_job *t = &j->target;
    struct vt_tune_space *s = &j->spec.space;
    int rc = target_open(t, a, &o->trial, &j->spec.slo, err);

    if (rc != VT_OK)
        return rc;
    if (!t->on) {
        if ((rc = opt_refuse(a, &o->restart, " needs --target", err)) ||
            (rc = opt_refuse(a, &o->ready_timeout_ns, " needs --target", err)))
            return rc;
        return VT_OK;
    }
    t->target.restart = o->restart;
    t->target.ready_timeout_ns = o->ready_timeout_ns;
    j->spec.target = &t->target;
    j->spec.set = vt_target_set;
    j->spec.measure = vt_target_measure;
    j->spec.workers = 1;
    j->engine.timed_by = t->load.base_url;
    if (o->restart)
        return VT_OK;
    /* A server that cannot be started anew has the settings it has. */
    for (int i = 0; i < VT_TUNE_AXES; i++) {
        if (s->n[i] > 1 && opt_row_given(a, &tune_axis_rows[i]))
            return vt_fail(err, VT_EINPUT,
                           "--%s: a live server needs --restart-cmd to change it",
                           tune_axis_rows[i].name);
        s->n[i] = 1;
    }
    cli_tell(NULL,
             "no --restart-cmd: the server stays as it is, only the load is searched");
    return VT_OK;
}

/* ---- the whole ------------------------------------------------------- */

/* How long it may take, if the rest is like what was tried; a smart search tries fewer
 * than all. */
static void tell_progress(void *user, size_t tried)
{
    struct tune_job *j = user;
    double seconds = cli_progress_passed();
    size_t all = vt_tune_space_size(&j->spec.space);

    if (tried < all)
        cli_progress("%zu of %zu configurations in %.1f s, %s %.0f s more", tried, all,
                     seconds, j->spec.search == VT_TUNE_SMART ? "at most" : "about",
                     seconds / (double)tried * (double)(all - tried));
    else
        cli_progress("%zu configurations in %.1f s; the best again, for longer", tried,
                     seconds);
}

/* As auto_tune finds it: downwards from 0.98 until the largest setting starts. */
static int highest_memory(struct vt_tune_spec *spec, struct vt_err *err)
{
    struct vt_tune_space *space = &spec->space;
    struct vt_setting s = vt_tune_space_at(space, 0);
    struct vt_err why;

    s.max_num_seqs = (uint32_t)space->value[VT_AXIS_SEQS][space->n[VT_AXIS_SEQS] - 1];
    s.max_num_batched_tokens =
        (uint32_t)
            space->value[VT_AXIS_BATCHED_TOKENS][space->n[VT_AXIS_BATCHED_TOKENS] - 1];
    for (int percent = 98; percent >= 90; percent--) {
        struct vt_deployment d;
        int rc;

        s.gpu_memory_utilization = percent / 100.0;
        rc = vt_deploy(&d, &spec->site, &s, &why);
        vt_undeploy(&d);
        space->value[VT_AXIS_MEMORY][0] = s.gpu_memory_utilization;
        if (rc == VT_OK)
            return VT_OK;
    }
    return vt_fail(err, VT_ECHECK,
                   "it starts with no gpu-memory-utilization from 0.98 to 0.9: %s",
                   why.msg);
}

int tune_job_open(struct tune_job *j, const struct opt_args *a, struct vt_err *err)
{
    const struct tune_options *o = a->options;
    struct vt_tune_space *s = &j->spec.space;
    int rc;

    *j = (struct tune_job){.spec = {.goal = o->goal,
                                    .search = o->search,
                                    .slo = trial_limits(a, &o->trial),
                                    .seeds = o->trial.seeds,
                                    .seed = (uint64_t)o->trial.seed,
                                    .once = o->trial.once,
                                    .workers = o->trial.jobs}};
    if ((rc = trial_traffic(&j->traffic, a, &o->trial, err)))
        return rc;
    j->spec.workload = j->traffic.input.name;
    j->spec.input = &j->traffic.input;
    j->spec.requests = j->traffic.first;
    j->spec.concurrency = j->traffic.concurrency;
    j->spec.rate = trial_rates(&o->trial, &j->spec.n_rates);
    if (o->goal == VT_TUNE_THROUGHPUT && !o->trial.named.given &&
        !opt_given(a, &o->trial.slo.ttft_p99))
        j->spec.slo.ttft_p99 = 0;
    if (o->goal == VT_TUNE_THROUGHPUT && !o->trial.named.given &&
        !opt_given(a, &o->trial.slo.tpot_p99))
        j->spec.slo.tpot_p99 = 0;
    for (int i = 0; i < VT_TUNE_AXES; i++) {
        s->n[i] = o->axis[i].n;
        memcpy(s->value[i], o->axis[i].at, sizeof(s->value[i]));
    }
    if (opt_given(a, &o->engine.config.enable_prefix_caching) &&
        !opt_given(a, &o->axis[VT_AXIS_CACHING]))
        s->value[VT_AXIS_CACHING][0] = o->engine.config.enable_prefix_caching;
    trial_progress_begin(&o->trial);
    j->spec.progress = tell_progress;
    j->spec.user = j;
    if ((rc = split_routings(j, o->routing, err)) || (rc = open_site(j, a, err)))
        return rc;
    if (o->auto_tune && !opt_given(a, &o->axis[VT_AXIS_MEMORY]) &&
        (rc = highest_memory(&j->spec, err)))
        return rc;
    return open_target(j, a, err);
}

void tune_job_close(struct tune_job *j)
{
    vt_target_close(&j->target.target);
    traffic_close(&j->traffic);
    engine_close(&j->engine);
    vt_arena_free(&j->arena);
}
