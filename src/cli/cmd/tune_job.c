/* tune_job.c - from flags to a search. */
#include <math.h>
#include <string.h>

#include "cli/cmd/tune.h"

/* ---- lists ----------------------------------------------------------- */

int tune_list(const struct cli_args *a, const char *name, double lo, double hi,
              double *out, uint32_t most, uint32_t *n, struct vt_err *err)
{
    const char *text = cli_str(a, name);

    if (text == NULL)
        return VT_OK;
    for (*n = 0; text != NULL; (*n)++) {
        const char *comma = strchr(text, ',');
        size_t len = comma ? (size_t)(comma - text) : strlen(text);

        if (*n == most || !vt_parse_f64(text, len, &out[*n]) || !(out[*n] >= lo) ||
            !(out[*n] <= hi))
            return vt_fail(err, VT_EINPUT,
                           "--%s: '%.*s' is not a number from %g to %g, or there are "
                           "more than %u",
                           name, (int)len, text, lo, hi, most);
        text = comma ? comma + 1 : NULL;
    }
    return VT_OK;
}

static int whole_list(const struct cli_args *a, const char *name, double lo, double hi,
                      struct vt_tune_space *s, int axis, struct vt_err *err)
{
    int rc =
        tune_list(a, name, lo, hi, s->value[axis], VT_TUNE_VALUES, &s->n[axis], err);

    for (uint32_t i = 0; i < s->n[axis] && rc == VT_OK; i++)
        if (s->value[axis][i] < floor(s->value[axis][i]) ||
            s->value[axis][i] > floor(s->value[axis][i]))
            rc = vt_fail(err, VT_EINPUT, "--%s: %g is not a whole number", name,
                         s->value[axis][i]);
    return rc;
}

/* A weighted sum has commas of its own. */
static int routing_list(struct tune_job *j, const struct cli_args *a,
                        struct vt_err *err)
{
    struct vt_tune_space *s = &j->spec.space;
    const char *text = cli_str_or(a, "routing", "round-robin");
    uint32_t n = 0;

    while (text != NULL) {
        const char *end = strchr(text, ';');
        size_t len = end ? (size_t)(end - text) : strlen(text);
        int rc;

        if (n == VT_TUNE_VALUES)
            return vt_fail(err, VT_EINPUT, "--routing: more than %d", VT_TUNE_VALUES);
        s->routing[n] = vt_arena_copy(&j->arena, text, len);
        if (s->routing[n] == NULL)
            return vt_nomem(err);
        rc = vt_within(err, vt_routing_check(s->routing[n], err), "--routing");
        if (rc != VT_OK)
            return rc;
        s->value[5][n] = n;
        n++;
        text = end ? end + 1 : NULL;
    }
    s->n[5] = n;
    return VT_OK;
}

static int caching_list(struct vt_tune_space *s, const struct cli_args *a,
                        struct vt_err *err)
{
    const char *text = cli_str_or(a, "prefix-caching", "on");
    bool both = strcmp(text, "on,off") == 0 || strcmp(text, "off,on") == 0;

    if (!both && strcmp(text, "on") != 0 && strcmp(text, "off") != 0)
        return vt_fail(err, VT_EINPUT,
                       "--prefix-caching: '%s' is not on, off or on,off", text);
    s->value[7][0] = strncmp(text, "on", 2) == 0;
    s->value[7][1] = !(s->value[7][0] > 0);
    s->n[7] = both ? 2 : 1;
    return VT_OK;
}

static int read_space(struct tune_job *j, const struct cli_args *a, struct vt_err *err)
{
    static const double seqs[] = {64, 128, 256, 512, 1024};
    static const double batched[] = {8192, 16384, 32768};
    struct vt_tune_space *s = &j->spec.space;
    int rc;

    memcpy(s->value[0], seqs, sizeof(seqs));
    memcpy(s->value[1], batched, sizeof(batched));
    s->n[0] = VT_COUNT(seqs);
    s->n[1] = VT_COUNT(batched);
    s->value[2][0] = 0.9;
    s->value[3][0] = s->value[4][0] = 1;
    s->n[2] = s->n[3] = s->n[4] = s->n[6] = 1;
    if ((rc = whole_list(a, "max-num-seqs", 1, 1 << 20, s, 0, err)) ||
        (rc = whole_list(a, "max-num-batched-tokens", 1, 1 << 30, s, 1, err)) ||
        (rc = tune_list(a, "gpu-memory-utilization", 0.01, 1, s->value[2],
                        VT_TUNE_VALUES, &s->n[2], err)) ||
        (rc = whole_list(a, "tensor-parallel-size", 1, 1024, s, 3, err)) ||
        (rc = whole_list(a, "data-parallel-size", 1, 1024, s, 4, err)) ||
        (rc = whole_list(a, "num-speculative-tokens", 0, 64, s, 6, err)) ||
        (rc = routing_list(j, a, err)))
        return rc;
    return caching_list(s, a, err);
}

/* ---- what it is served by -------------------------------------------- */

static int open_model(struct tune_job *j, const struct cli_args *a, struct vt_err *err)
{
    const char *text = cli_str(a, "model");
    const char *profile = cli_str_or(a, "profile", VT_DEFAULT_PROFILE);
    struct vt_site *s = &j->spec.site;
    int rc = VT_OK;

    if (text != NULL)
        rc = vt_within(err, vt_model_open_inline(&j->inline_model, text, err),
                       "--model");
    if (rc == VT_OK)
        rc = vt_profile_open(&j->profile, profile, err);
    if (rc != VT_OK)
        return rc;
    j->has_profile = true;
    s->profile = &j->profile;
    s->model = j->inline_model;
    j->timed_by = text != NULL ? text : j->profile.name;
    vt_engine_config_init(&s->engine);
    return vt_profile_limits(&j->profile, &s->engine, err);
}

/* Without sizes the pool is the profile's; then its size can't be searched over. */
static int open_sizes(struct tune_job *j, const struct cli_args *a, struct vt_err *err)
{
    const struct vt_node *e = j->profile.engine;
    const char *config = cli_str(a, "hf-config"), *gpu = NULL;
    bool pool_given = cli_has(a, "num-gpu-blocks"), asked = config != NULL;
    struct vt_err why;
    int rc = vt_get_str(e, "model", VT_OPTIONAL, &j->model_name, err);

    if (rc == VT_OK)
        rc = vt_get_str(e, "gpu", VT_OPTIONAL, &gpu, err);
    if (rc != VT_OK || pool_given)
        return rc;
    gpu = cli_str_or(a, "gpu", gpu);
    if (config == NULL)
        config = j->model_name;
    rc = config != NULL && gpu != NULL ? vt_arch_load(&j->arch, config, &why)
                                       : vt_fail(&why, VT_EINPUT, "not stated");
    if (rc == VT_OK)
        rc = vt_gpu_find(&j->gpu, gpu, cli_str(a, "hw"), &why);
    if (rc != VT_OK && (asked || cli_has(a, "gpu-memory-utilization") ||
                        cli_has(a, "tensor-parallel-size")))
        return vt_fail(err, VT_EINPUT, "the KV cache needs --hf-config and --gpu (%s)",
                       why.msg);
    if (rc == VT_OK) {
        j->spec.site.arch = &j->arch;
        j->spec.site.gpu = &j->gpu;
    }
    return VT_OK;
}

static int read_engine(struct tune_job *j, const struct cli_args *a, struct vt_err *err)
{
    struct vt_engine_config *e = &j->spec.site.engine;
    double stale_ms = 0;
    int rc;

    e->use_eagle = true;
    e->spec_acceptance = 0.7;
    e->spec_draft_us = 450;
    if ((rc = cli_u32(a, "max-model-len", 2, 1u << 30, &e->max_model_len, err)) ||
        (rc = cli_u32(a, "block-size", 1, 1u << 16, &e->block_size, err)) ||
        (rc = cli_u32(a, "num-gpu-blocks", 2, 1u << 30, &e->num_gpu_blocks, err)) ||
        (rc = cli_f64(a, "speculative-acceptance", 0, 1, &e->spec_acceptance, err)) ||
        (rc = cli_f64(a, "speculative-draft-us", 0, 1e6, &e->spec_draft_us, err)) ||
        (rc = cli_f64(a, "staleness-ms", 0, 1e9, &stale_ms, err)))
        return rc;
    j->spec.site.staleness_ns = vt_ns_from_ms(stale_ms);
    return VT_OK;
}

/* ---- limits and loads ------------------------------------------------ */

static int read_limits(struct vt_tune_spec *s, const struct cli_args *a,
                       struct vt_err *err)
{
    const struct {
        const char *name;
        double *to;
    } row[] = {
        {"slo-ttft-p99", &s->slo.ttft_p99},
        {"slo-tpot-p99", &s->slo.tpot_p99},
        {"slo-itl-p99", &s->slo.itl_p99},
        {"max-latency-allowed-ms", &s->slo.e2e_p99},
    };
    int rc = VT_OK;

    if (s->goal == VT_TUNE_CAPACITY)
        s->slo = (struct vt_slo){.ttft_p99 = 1000, .tpot_p99 = 60};
    for (size_t i = 0; i < VT_COUNT(row) && rc == VT_OK; i++)
        rc = cli_f64(a, row[i].name, 0, 1e12, row[i].to, err);
    return rc;
}

static int read_load(struct tune_job *j, const struct cli_args *a, struct vt_err *err)
{
    struct vt_tune_spec *s = &j->spec;
    int goal = VT_TUNE_THROUGHPUT, search = VT_TUNE_GRID;
    uint32_t n = 0;
    int64_t seed = 1;
    int rc;

    s->workload = cli_str_or(a, "workload", "default-workload");
    s->seeds = 3;
    if ((rc = cli_word(a, "objective", &goal, err)) ||
        (rc = cli_word(a, "search", &search, err)) ||
        (rc = cli_u32(a, "requests", 2, UINT32_MAX, &s->requests, err)) ||
        (rc = cli_u32(a, "seeds", 1, 1000, &s->seeds, err)) ||
        (rc = cli_u32(a, "jobs", 1, 4096, &s->workers, err)) ||
        (rc = cli_i64(a, "seed", 0, INT64_MAX - 1000, &seed, err)) ||
        (rc = tune_list(a, "rates", 1e-6, 1e6, j->rate, VT_COUNT(j->rate), &n, err)))
        return rc;
    for (uint32_t i = 1; i < n; i++)
        if (!(j->rate[i] > j->rate[i - 1]))
            return vt_fail(err, VT_EINPUT, "--rates must ascend");
    s->seed = (uint64_t)seed;
    s->goal = (enum vt_tune_goal)goal;
    s->search = (enum vt_tune_search)search;
    s->rate = j->rate;
    s->n_rates = n;
    return read_limits(s, a, err);
}

/* ---- the whole ------------------------------------------------------- */

int tune_job_open(struct tune_job *j, const struct cli_args *a, struct vt_err *err)
{
    int rc;

    *j = (struct tune_job){0};
    if ((rc = read_load(j, a, err)) || (rc = read_space(j, a, err)) ||
        (rc = open_model(j, a, err)) || (rc = open_sizes(j, a, err)))
        return rc;
    if (!cli_has(a, "tensor-parallel-size")) {
        uint32_t tp = 1;

        rc = vt_get_u32(j->profile.engine, "tensor_parallel_size", VT_OPTIONAL, 1, 1024,
                        &tp, err);
        j->spec.space.value[3][0] = tp;
    }
    return rc == VT_OK ? read_engine(j, a, err) : rc;
}

void tune_job_close(struct tune_job *j)
{
    vt_latency_close(j->inline_model);
    if (j->has_profile)
        vt_profile_close(&j->profile);
    vt_arena_free(&j->arena);
}
