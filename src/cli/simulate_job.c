/* simulate_job.c - from flags to everything that a run needs. */
#include "cli/simulate.h"

/* ---- the workload ----------------------------------------------------- */

static int one_input(const struct cli_args *a, struct vt_err *err)
{
    static const char *const names[] = {"workload", "trace", "requests"};
    const char *first = NULL;

    for (size_t i = 0; i < VT_COUNT(names); i++) {
        if (!cli_has(a, names[i]))
            continue;
        if (first)
            return vt_fail(err, VT_EINPUT, "--%s and --%s: give one of them", first,
                           names[i]);
        first = names[i];
    }
    return VT_OK;
}

static int load_builtin(struct vt_workload *w, int64_t seed, struct vt_err *err)
{
    const struct vt_builtin *f = vt_builtin_find(VT_DEFAULT_WORKLOAD);

    if (!f)
        return vt_fail(err, VT_EINPUT,
                       "no built-in workload; give --workload, --trace or "
                       "--requests");
    return vt_workload_generate_text(w, f->name, f->text, f->len, seed, err);
}

static int load_workload(struct simulate_job *j, const struct cli_args *a,
                         struct vt_err *err)
{
    int64_t seed = -1;
    int rc = one_input(a, err);

    if (rc == VT_OK)
        rc = cli_i64(a, "seed", 0, INT64_MAX, &seed, err);
    if (rc != VT_OK)
        return rc;
    if (cli_has(a, "workload"))
        rc = vt_workload_generate(&j->workload, cli_str(a, "workload"), seed, err);
    else if (cli_has(a, "trace"))
        rc = vt_trace_load(&j->workload, cli_str(a, "trace"), err);
    else if (cli_has(a, "requests"))
        rc = vt_requests_load(&j->workload, cli_str(a, "requests"), err);
    else
        rc = load_builtin(&j->workload, seed, err);
    if (rc != VT_OK)
        return rc;
    if (cli_has(a, "compare") && !j->workload.measured)
        return vt_fail(err, VT_EINPUT,
                       "%s: --compare needs a trace with measured times",
                       j->workload.source);
    j->seed = seed >= 0 ? (uint64_t)seed : j->workload.seed;
    j->spec.workload = &j->workload;
    return cli_has(a, "compare") ? vt_summary_measured(&j->measured, &j->workload, err)
                                 : VT_OK;
}

/* Requests that were to come at their own times and are now to keep `concurrency` in
 * flight: the first ones start together, as clients of a closed loop do. */
static void start_together(struct vt_workload *w, uint32_t concurrency)
{
    for (size_t i = 1; i < w->n && i < concurrency; i++)
        w->req[i].arrival_ns = w->req[0].arrival_ns;
}

static int choose_arrivals(struct simulate_job *j, const struct cli_args *a,
                           struct vt_err *err)
{
    int mode = (int)j->workload.arrivals;
    int rc = cli_word(a, "arrivals", &mode, err);

    j->spec.concurrency = j->workload.concurrency;
    if (rc == VT_OK)
        rc = cli_u32(a, "concurrency", 1, UINT32_MAX, &j->spec.concurrency, err);
    if (rc != VT_OK)
        return rc;
    j->spec.arrivals = (enum vt_arrivals)mode;
    if (mode == VT_ARRIVALS_CLOSED && j->workload.arrivals != VT_ARRIVALS_CLOSED)
        start_together(&j->workload, j->spec.concurrency);
    j->workload.arrivals = j->spec.arrivals; /* what the report's meta line states */
    j->workload.concurrency = j->spec.concurrency;
    if (mode == VT_ARRIVALS_CLOSED && j->spec.concurrency == 0)
        return vt_fail(err, VT_EINPUT, "--arrivals closed needs --concurrency");
    if (mode == VT_ARRIVALS_RECORDED && cli_has(a, "concurrency"))
        return vt_fail(err, VT_EINPUT,
                       "--concurrency needs --arrivals closed or session");
    return VT_OK;
}

/* ---- time ------------------------------------------------------------- */

static int open_model(struct simulate_job *j, const struct cli_args *a,
                      struct vt_err *err)
{
    const char *inline_model = cli_str(a, "model"), *profile = cli_str(a, "profile");
    int rc = VT_OK;

    if (!profile && !inline_model)
        profile = VT_DEFAULT_PROFILE;
    if (inline_model) {
        rc = vt_model_open_inline(&j->model, inline_model, err);
        if (rc != VT_OK)
            return vt_within(err, rc, "--model");
    }
    if (profile)
        rc = vt_profile_open(&j->profile, profile, err);
    if (rc != VT_OK)
        return rc;
    j->has_profile = profile != NULL;
    j->spec.model = inline_model ? j->model : j->profile.model;
    j->timed_by = inline_model ? inline_model : j->profile.name;
    return VT_OK;
}

/* ---- limits: a flag beats the trace, that the profile, that vLLM ------- */

static int apply_numbers(struct vt_engine_config *c, const struct cli_args *a,
                         struct vt_err *err)
{
    const struct {
        const char *name;
        uint32_t lo;
        uint32_t *to;
    } row[] = {
        {"max-num-seqs", 1, &c->max_num_seqs},
        {"max-num-batched-tokens", 1, &c->max_num_batched_tokens},
        {"max-model-len", 1, &c->max_model_len},
        {"block-size", 1, &c->block_size},
        {"num-gpu-blocks", 1, &c->num_gpu_blocks},
        {"long-prefill-token-threshold", 0, &c->long_prefill_token_threshold},
        {"num-speculative-tokens", 0, &c->num_spec_tokens},
    };
    int rc = VT_OK;

    for (size_t i = 0; i < VT_COUNT(row) && rc == VT_OK; i++)
        rc = cli_u32(a, row[i].name, row[i].lo, INT32_MAX, row[i].to, err);
    if (rc == VT_OK)
        rc = cli_f64(a, "speculative-acceptance", 0, 1, &c->spec_acceptance, err);
    if (rc == VT_OK)
        rc = cli_f64(a, "watermark", 0, 1, &c->watermark, err);
    return rc;
}

static int apply_choices(struct vt_engine_config *c, const struct cli_args *a,
                         struct vt_err *err)
{
    int policy = (int)c->policy, compat = (int)c->compat, ngram = 0;
    int rc = cli_word(a, "scheduling-policy", &policy, err);

    if (rc == VT_OK)
        rc = cli_word(a, "compat", &compat, err);
    if (rc == VT_OK)
        rc = cli_word(a, "speculative-method", &ngram, err);
    c->policy = (enum vt_policy)policy;
    c->compat = (enum vt_compat)compat;
    c->use_eagle = c->num_spec_tokens > 0 && !ngram;
    cli_switch(a, "enable-prefix-caching", &c->enable_prefix_caching);
    cli_switch(a, "enable-chunked-prefill", &c->enable_chunked_prefill);
    cli_switch(a, "async-scheduling", &c->async_scheduling);
    if (c->compat == VT_COMPAT_BLIS)
        c->async_scheduling = false; /* BLIS schedules when the last step is over */
    return rc;
}

/* An inline model knows no memory size. Where nobody states one, the default
 * profile's is taken: a run with a plausible pool beats a demand for a number. */
static int assume_blocks(struct vt_engine_config *c, struct vt_err *err)
{
    struct vt_engine_config shipped;
    struct vt_profile p;
    int rc = vt_profile_open(&p, VT_DEFAULT_PROFILE, err);

    if (rc != VT_OK)
        return rc;
    vt_engine_config_init(&shipped);
    rc = vt_profile_limits(&p, &shipped, err);
    c->num_gpu_blocks = shipped.num_gpu_blocks;
    vt_profile_close(&p);
    return rc;
}

static int configure(struct simulate_job *j, const struct cli_args *a,
                     struct vt_err *err)
{
    struct vt_engine_config *c = &j->spec.engine;
    int rc = VT_OK;

    vt_engine_config_init(c);
    if (j->has_profile)
        rc = vt_profile_limits(&j->profile, c, err);
    if (rc != VT_OK)
        return rc;
    vt_engine_config_take(c, &j->workload.meta);
    rc = apply_numbers(c, a, err);
    if (rc == VT_OK)
        rc = apply_choices(c, a, err);
    if (rc == VT_OK && c->num_gpu_blocks == 0)
        rc = assume_blocks(c, err);
    c->seed = j->seed;
    return rc == VT_OK ? vt_engine_config_check(c, err) : rc;
}

/* Bad numbers are told before anything large is read. */
static int check_flags(const struct cli_args *a, struct vt_err *err)
{
    struct vt_engine_config scratch;
    uint32_t concurrency = 0;
    int arrivals = 0;
    int rc;

    vt_engine_config_init(&scratch);
    rc = apply_numbers(&scratch, a, err);
    if (rc == VT_OK)
        rc = apply_choices(&scratch, a, err);
    if (rc == VT_OK)
        rc = cli_word(a, "arrivals", &arrivals, err);
    if (rc == VT_OK)
        rc = cli_u32(a, "concurrency", 1, UINT32_MAX, &concurrency, err);
    return rc;
}

int simulate_job_open(struct simulate_job *j, const struct cli_args *a,
                      struct vt_err *err)
{
    int rc;

    *j = (struct simulate_job){0};
    rc = check_flags(a, err);
    if (rc == VT_OK)
        rc = load_workload(j, a, err);
    if (rc == VT_OK)
        rc = choose_arrivals(j, a, err);
    if (rc == VT_OK)
        rc = open_model(j, a, err);
    if (rc == VT_OK)
        rc = configure(j, a, err);
    return rc;
}

void simulate_job_close(struct simulate_job *j)
{
    vt_workload_free(&j->workload);
    vt_latency_close(j->model);
    if (j->has_profile)
        vt_profile_close(&j->profile);
}
