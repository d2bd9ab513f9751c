/* engine_job.c - from flags to an engine's settings and its latency model. */
#include "cli/cmd/engine_job.h"

const char *const cli_policies[] = {"fcfs", "priority", NULL};
const char *const cli_methods[] = {"eagle", "ngram", NULL};

/* ---- time ------------------------------------------------------------- */

static int open_model(struct engine_job *j, const struct cli_args *a,
                      const char *profile, struct vt_err *err)
{
    const char *inline_model = cli_str(a, "model");
    int rc = VT_OK;

    if (!profile && !inline_model)
        profile = VT_DEFAULT_PROFILE;
    if (inline_model) {
        rc = vt_model_open_inline(&j->inline_model, inline_model, err);
        if (rc != VT_OK)
            return vt_within(err, rc, "--model");
    }
    if (profile)
        rc = vt_profile_open(&j->profile, profile, err);
    if (rc != VT_OK)
        return rc;
    j->has_profile = profile != NULL;
    j->model = inline_model ? j->inline_model : j->profile.model;
    j->timed_by = inline_model ? inline_model : j->profile.name;
    return VT_OK;
}

/* ---- limits: a flag beats the trace, that the profile, that vLLM ------- */

static bool next_share(const char **at, double *share)
{
    size_t len = strcspn(*at, ",");
    bool good = vt_parse_f64(*at, len, share) && *share >= 0 && *share <= 1;

    *at += len + ((*at)[len] == ',' && (*at)[len + 1] != '\0');
    return good;
}

/* One number is the chance of every draft, given those before it. Several are shares by
 * place as vLLM logs them: of all drafts at that place, accepted or not reached. */
static int apply_acceptance(struct vt_engine_config *c, const char *text,
                            struct vt_err *err)
{
    double before = 1, share = 0;
    uint32_t n = 0;

    if (!text)
        return VT_OK;
    for (const char *at = text; n == 0 || *at; n++) {
        if (n == VT_SPEC_POSITIONS)
            return vt_fail(err, VT_EINPUT,
                           "--speculative-acceptance: more than %d places",
                           VT_SPEC_POSITIONS);
        if (!next_share(&at, &share) || *at == ',')
            return vt_fail(err, VT_EINPUT,
                           "--speculative-acceptance '%s': must be 0 to 1, or a list "
                           "of such",
                           text);
        if (share > before)
            return vt_fail(err, VT_EINPUT,
                           "--speculative-acceptance '%s': a draft can't be accepted "
                           "more often than the one before it",
                           text);
        c->spec_position[n] = before > 0 ? share / before : 0;
        before = share;
    }
    c->n_spec_positions = n > 1 ? n : 0;
    c->spec_acceptance = n > 1 ? c->spec_position[0] : share;
    return VT_OK;
}

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
        rc = apply_acceptance(c, cli_str(a, "speculative-acceptance"), err);
    if (rc == VT_OK)
        rc = cli_f64(a, "speculative-draft-us", 0, 1e9, &c->spec_draft_us, err);
    if (rc == VT_OK)
        rc = cli_f64(a, "watermark", 0, 1, &c->watermark, err);
    return rc;
}

static int apply_choices(struct vt_engine_config *c, const struct cli_args *a,
                         struct vt_err *err)
{
    int policy = (int)c->policy, ngram = 0;
    int rc = cli_word(a, "scheduling-policy", &policy, err);

    if (rc == VT_OK)
        rc = cli_word(a, "speculative-method", &ngram, err);
    c->policy = (enum vt_policy)policy;
    c->use_eagle = c->num_spec_tokens > 0 && !ngram;
    cli_switch(a, "enable-prefix-caching", &c->enable_prefix_caching);
    cli_switch(a, "enable-chunked-prefill", &c->enable_chunked_prefill);
    cli_switch(a, "async-scheduling", &c->async_scheduling);
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

static int configure(struct engine_job *j, const struct cli_args *a,
                     const struct vt_meta *meta, struct vt_err *err)
{
    struct vt_engine_config *c = &j->config;
    int rc = VT_OK;

    vt_engine_config_init(c);
    if (j->has_profile)
        rc = vt_profile_limits(&j->profile, c, err);
    if (rc != VT_OK)
        return rc;
    if (meta != NULL)
        vt_engine_config_take(c, meta);
    rc = apply_numbers(c, a, err);
    if (rc == VT_OK)
        rc = apply_choices(c, a, err);
    if (rc == VT_OK && c->num_gpu_blocks == 0)
        rc = assume_blocks(c, err);
    return rc;
}

/* ---- the whole -------------------------------------------------------- */

int engine_job_check(const struct cli_args *a, struct vt_err *err)
{
    struct vt_engine_config scratch;
    int rc;

    vt_engine_config_init(&scratch);
    rc = apply_numbers(&scratch, a, err);
    return rc == VT_OK ? apply_choices(&scratch, a, err) : rc;
}

int engine_job_open_as(struct engine_job *j, const struct cli_args *a,
                       const char *profile, const struct vt_meta *meta,
                       struct vt_err *err)
{
    int rc;

    *j = (struct engine_job){0};
    rc = open_model(j, a, profile, err);
    return rc == VT_OK ? configure(j, a, meta, err) : rc;
}

int engine_job_open(struct engine_job *j, const struct cli_args *a,
                    const struct vt_meta *meta, struct vt_err *err)
{
    return engine_job_open_as(j, a, cli_str(a, "profile"), meta, err);
}

int engine_fit_pool(struct vt_engine_config *e, bool asked, struct vt_err *err)
{
    uint64_t room = (uint64_t)(e->num_gpu_blocks - 1) * e->block_size;

    if (room >= e->max_model_len || room == 0)
        return VT_OK;
    if (asked)
        return vt_fail(err, VT_EINPUT,
                       "--max-model-len %u is more than %u KV blocks of %u tokens hold "
                       "(one is vLLM's own)",
                       e->max_model_len, e->num_gpu_blocks, e->block_size);
    e->max_model_len = (uint32_t)room;
    return VT_OK;
}

void engine_job_close(struct engine_job *j)
{
    vt_latency_close(j->inline_model);
    if (j->has_profile)
        vt_profile_close(&j->profile);
}
