/* engine.c - from flags to an engine's settings and its latency model. */
#include "cli/cmd/engine.h"

#define RETENTION_VARIABLE "VLLM_PREFIX_CACHE_RETENTION_INTERVAL"
enum { LAST_VARIABLE = 28 }; /* the release that read it last */

/* In the order of their enums. */
static const char *const policies[] = {"fcfs", "priority", NULL};
static const char *const methods[] = {"eagle", "ngram", NULL};
static const char *const backends[] = {"native", "lmcache", NULL};
static const char *const links[] = {"network", "nvlink", NULL};
static const char *const mamba_modes[] = {"none", "align", "all", NULL};
const char *const engine_kv_dtypes[] = {"auto",     "fp8",     "fp8_e4m3", "fp8_e5m2",
                                        "bfloat16", "float16", NULL};

#define OPT_T struct engine_options
const struct opt_row model_rows[] = {
    OPT_TEXT(profile, "profile", "NAME|FILE", NULL,
             "limits and times; see vtwin profile list", .shown = VT_DEFAULT_PROFILE),
    OPT_TEXT(latency, "latency", "SPEC", NULL,
             "a latency model inline; see vtwin model list"),
    OPT_TEXT(model, "model", "NAME|DIR", NULL, "the model that is served, as MODEL"),
    OPT_TEXT(hf_config, "hf-config", "NAME|DIR|FILE", NULL,
             "the model, by name or config.json", .shown = "the profile's model"),
    OPT_TEXT(hf_config, "hf-config-path", "NAME|DIR|FILE", NULL,
             "the same, as vLLM calls it"),
    OPT_TEXT(gpu, "gpu", "NAME", NULL, "what it runs on", .shown = "the profile's"),
    OPT_TEXT(hw, "hw", "FILE", NULL, "GPUs that are not built in"),
    OPT_WORD(basis, "basis", "WHAT", vt_basis_names, "auto",
             "what times of a model and GPU come from"),
    OPT_TEXT(profiles, "profiles", "DIR", NULL,
             "profiles of your own, which count before built-in ones",
             .shown = "$VTWIN_PROFILES"),
    OPT_F64(host_speed, "host-speed", "X", 0.05, 20, "1",
            "estimates: so many times as fast as the measured hosts"),
    OPT_TEXT(host_from, "host-from", "FILE|DIR", NULL,
             "or as fast as the host of these captures"),
    {0},
};

/* To add a setting of vt_engine_config: one row here. If not all releases of vLLM have
 * it: one more in core/config.c. */
const struct opt_row engine_rows[] = {
    OPT_READ(release, "vllm-version", "V", engine_read_release, NULL,
             "whose scheduler: 0.26 to 0.32",
             .shown = "the trace's or profile's, or 0.32"),
    OPT_U32(config.max_num_seqs, "max-num-seqs", "N", 1, INT32_MAX, NULL,
            "requests running at once", .shown = "vLLM's on that GPU: 1024"),
    OPT_U32(config.max_num_batched_tokens, "max-num-batched-tokens", "N", 1, INT32_MAX,
            NULL, "token budget of a step", .shown = "vLLM's on that GPU: 8192"),
    OPT_U32(config.max_num_scheduled_tokens, "max-num-scheduled-tokens", "N", 1,
            INT32_MAX, NULL, "a smaller one", .shown = "that"),
    OPT_U32(config.max_num_active_seqs, "max-num-active-seqs", "N", 1, INT32_MAX, NULL,
            "admit no more than so many; since 0.31", .shown = "max-num-seqs"),
    OPT_U32(config.max_loras, "max-loras", "N", 1, 1024, NULL,
            "adapters whose requests run together", .shown = "1"),
    OPT_U32(config.max_model_len, "max-model-len", "N", 1, INT32_MAX, NULL,
            "prompt and output together", .shown = "32768"),
    OPT_U32(config.block_size, "block-size", "N", 1, INT32_MAX, NULL,
            "tokens in a KV block", .shown = "16"),
    OPT_U32(config.num_gpu_blocks, "num-gpu-blocks", "N", 2, INT32_MAX, NULL,
            "KV blocks in the pool", .shown = "the profile's, or computed"),
    OPT_U32(config.num_gpu_blocks, "num-gpu-blocks-override", "N", 2, INT32_MAX, NULL,
            "the same, as vLLM calls it"),
    OPT_F64(gpu_memory_utilization, "gpu-memory-utilization", "SHARE", 0.01, 1, "0.9",
            "share of a GPU's memory; sizes the KV cache"),
    OPT_WORD(kv_dtype, "kv-cache-dtype", "TYPE", engine_kv_dtypes, "auto",
             "number format of the KV cache"),
    OPT_U32(tp, "tensor-parallel-size", "N", 1, 1024, NULL, "GPUs of an engine",
            .shown = "the profile's"),
    OPT_U32(pp, "pipeline-parallel-size", "N", 1, 1024, "1", "stages of such GPUs"),
    OPT_U32(dp, "data-parallel-size", "N", 1, 1024, "1", "engines behind a router"),
    OPT_SWITCH(ep, "enable-expert-parallel", NULL,
               "a mixture of experts: ranks go in lockstep", .shown = "the model's"),
    OPT_TEXT(quantization, "quantization", "METHOD", NULL,
             "of the weights: fp8, awq, gptq, ...", .shown = "as config.json says"),
    OPT_TEXT(dtype, "dtype", "TYPE", NULL, "of weights that are not quantised",
             .shown = "auto"),
    OPT_FLAG(enforce_eager, "enforce-eager", "no CUDA graphs"),
    OPT_LIST(graph_sizes, "cudagraph-capture-sizes", "N ...",
             "tokens of the CUDA graphs; steps are padded to the next",
             .shown = "as vLLM decides"),
    OPT_U32(largest_graph, "max-cudagraph-capture-size", "N", 1, ENGINE_GRAPH_TOKENS,
            NULL, "tokens of the largest", .shown = "as vLLM decides"),
    OPT_READ(graphs, "compilation-config", "JSON", engine_read_graphs, NULL,
             "as vLLM's; of it, which CUDA graphs there are"),
    OPT_SWITCH(config.enable_prefix_caching, "enable-prefix-caching", NULL,
               "reuse blocks of equal prefixes", .shown = "on"),
    OPT_SWITCH(config.enable_chunked_prefill, "enable-chunked-prefill", NULL,
               "split prompts over steps", .shown = "on"),
    OPT_U32(config.long_prefill_token_threshold, "long-prefill-token-threshold", "N", 0,
            INT32_MAX, NULL, "most prompt tokens per request and step",
            .shown = "0: off"),
    OPT_SWITCH(config.long_prefill_token_threshold_adaptive,
               "long-prefill-token-threshold-adaptive", NULL,
               "more than that while few requests are there; since 0.31",
               .shown = "off"),
    OPT_U32(partial_prefills, "max-num-partial-prefills", "N", 1, INT32_MAX, "1",
            "of 0.26, which takes 1 only"),
    OPT_U32(long_partial_prefills, "max-long-partial-prefills", "N", 1, INT32_MAX, "1",
            "of 0.26, which takes 1 only"),
    OPT_U32(config.prefill_schedule_interval, "prefill-schedule-interval", "N", 1,
            1 << 20, NULL, "ranks in lockstep: new prompts in every N-th pass only",
            .shown = "1: in any"),
    OPT_WORD(config.policy, "scheduling-policy", "P", policies, "fcfs",
             "who goes first"),
    OPT_SWITCH(config.async_scheduling, "async-scheduling", NULL,
               "schedule ahead of the last step's result", .shown = "on"),
    OPT_U32(config.num_spec_tokens, "num-speculative-tokens", "N", 0, INT32_MAX, NULL,
            "drafts per request and step", .shown = "0: off"),
    OPT_READ(acceptance, "speculative-acceptance", "P[,P]", engine_read_acceptance,
             NULL, "chance of each draft, or a share for each place", .shown = "0"),
    OPT_F64(config.spec_draft_us, "speculative-draft-us", "US", 0, 1e9, NULL,
            "GPU time of one pass of the draft model",
            .shown = "an EAGLE-3 head's, estimated", .unit = VT_US),
    OPT_WORD(method, "speculative-method", "M", methods, "eagle",
             "eagle needs look-ahead slots"),
    OPT_F64(config.watermark, "watermark", "P", 0, 1, NULL,
            "share of blocks kept free on admission", .shown = "0"),
    /* What a model's layers keep (src/model/kv_groups.c). */
    OPT_SWITCH(disable_hybrid, "disable-hybrid-kv-cache-manager", NULL,
               "windows free no blocks", .shown = "as vLLM does"),
    OPT_READ(retention, "prefix-cache-retention-interval", "N", engine_read_retention,
             NULL, "windows and states stay cached every N tokens; None: all",
             .shown = "as the release does"),
    OPT_F64(offload.size_gib, "kv-offloading-size", "GIB", 1e-6, 1e9, NULL,
            "host memory for KV blocks, of all GPUs of an engine", .shown = "0: none"),
    OPT_WORD(offload.backend, "kv-offloading-backend", "NAME", backends, "native",
             "who moves them"),
    OPT_READ(offload, "kv-transfer-config", "JSON", engine_read_transfer, NULL,
             "as vLLM's; of it, Offloading- and NixlConnector"),
    OPT_F64(offload.gbs, "kv-offloading-bandwidth", "GB/S", 1e-3, 1e6, NULL,
            "of a GPU's link, each way", .shown = "by its PCIe"),
    OPT_F64(offload.setup_us, "kv-offloading-setup-us", "US", 0, 1e9, NULL,
            "of each transfer", .shown = "200", .unit = VT_US),
    OPT_F64(offload.link_gbs, "kv-transfer-gb-per-s", "GB", 1e-6, 1e9, NULL,
            "from prefill to decode, by the link of one GPU", .shown = "the link's"),
    OPT_WORD(offload.link, "kv-transfer-link", "KIND", links, "network",
             "what that goes over: a NIC for each GPU, or NVLink within a node"),
    OPT_F64(offload.base_us, "kv-transfer-base-us", "US", 0, 1e9, "50",
            "of every transfer", .unit = VT_US),
    OPT_FLAG(offload.contention, "kv-transfer-contention",
             "transfers under way to an engine share the bandwidth"),
    OPT_F64(offload.token_bytes, "kv-bytes-per-token", "BYTES", 0, 1e9, NULL,
            "what a transfer carries", .shown = "of the profile's model"),
    OPT_WORD(mamba_mode, "mamba-cache-mode", "MODE", mamba_modes, NULL,
             "which states stay cached", .shown = "as the release does"),
    {0},
};

const struct opt_row lockstep_rows[] = {
    OPT_U32(config.dp_sync_interval, "dp-sync-interval", "N", 1, 1 << 20, NULL,
            "passes between agreements of ranks to go on",
            .shown = "16; before 0.30: 32"),
    {0},
};

double engine_kv_bytes(int dtype)
{
    return vt_kv_dtype_bytes(engine_kv_dtypes[dtype]);
}

/* One number is the chance of every draft, given those before it. Several are shares by
 * place as vLLM logs them: of all drafts at that place, accepted or not reached. */
int engine_read_acceptance(const struct opt_row *row, const char *text, void *field,
                           struct vt_err *err)
{
    struct engine_acceptance *c = field;
    double before = 1, share = 0;
    uint32_t n = 0;

    for (const char *at = text; n == 0 || *at; n++) {
        size_t len = strcspn(at, ",");
        bool good = vt_parse_f64(at, len, &share) && share >= 0 && share <= 1;

        at += len + (at[len] == ',' && at[len + 1] != '\0');
        if (n == VT_SPEC_POSITIONS)
            return vt_fail(err, VT_EINPUT, "--%s: more than %d places", row->name,
                           VT_SPEC_POSITIONS);
        if (!good || *at == ',')
            return vt_fail(err, VT_EINPUT,
                           "--%s '%s': must be 0 to 1, or a list of such", row->name,
                           text);
        if (share > before)
            return vt_fail(err, VT_EINPUT,
                           "--%s '%s': a draft can't be accepted more often than the "
                           "one before it",
                           row->name, text);
        c->position[n] = before > 0 ? share / before : 0;
        before = share;
    }
    c->given = true;
    c->n_positions = n > 1 ? n : 0;
    c->all = n > 1 ? c->position[0] : share;
    return VT_OK;
}

int engine_read_release(const struct opt_row *row, const char *text, void *field,
                        struct vt_err *err)
{
    struct engine_release *r = field;

    r->text = text;
    return vt_within(err, vt_vllm_release(text, &r->vllm, err), "--%s", row->name);
}

/* "" and "None" stand for every block, as on vLLM's command line. */
int engine_read_retention(const struct opt_row *row, const char *text, void *field,
                          struct vt_err *err)
{
    struct engine_retention *r = field;
    uint64_t n = 0;

    r->given = true;
    r->every = VT_RETENTION_DENSE;
    if (*text == '\0' || strcmp(text, "None") == 0)
        return VT_OK;
    if (!vt_parse_u64(text, strlen(text), &n) || n > INT32_MAX)
        return vt_fail(err, VT_EINPUT, "--%s '%s': must be 0 to %d, or None", row->name,
                       text, INT32_MAX);
    r->every = (uint32_t)n;
    return VT_OK;
}

/* ---- limits: a flag beats the trace, that the profile, that vLLM ------- */

void engine_apply(struct vt_engine_config *c, const struct opt_args *a,
                  const struct engine_options *o)
{
    opt_overlay(a, engine_rows, o, c, sizeof(*c));
    if (o->release.text)
        c->vllm = o->release.vllm;
    opt_overlay(a, lockstep_rows, o, c, sizeof(*c));
    if (o->acceptance.given) {
        memcpy(c->spec_position, o->acceptance.position, sizeof(c->spec_position));
        c->n_spec_positions = o->acceptance.n_positions;
        c->spec_acceptance = o->acceptance.all;
    }
    c->use_eagle = c->num_spec_tokens > 0 && o->method == 0;
}

/* "0.26.0", or with the patch that a flag names. */
static void name_release(struct engine_job *j, const char *flag)
{
    if (flag && *flag == 'v')
        flag++;
    if (flag)
        snprintf(j->vllm_version, sizeof(j->vllm_version), "%s%s", flag,
                 strchr(flag + strlen("0."), '.') ? "" : ".0");
    else
        snprintf(j->vllm_version, sizeof(j->vllm_version), "0.%u.0", j->config.vllm);
}

/* What the profile says it is of; a model that is computed from sizes names them. */
static int find_model_name(struct engine_job *j, struct vt_err *err)
{
    const struct vt_node *params = vt_get(vt_get(j->profile.root, "model"), "params");
    const struct vt_node *sizes = vt_get(params, "hf_config");

    if (!vt_get(j->profile.engine, "model") && sizes && sizes->kind == VT_STR)
        j->model_name = sizes->u.str;
    return vt_get_str(j->profile.engine, "model", VT_OPTIONAL, &j->model_name, err);
}

static int open_model(struct engine_job *j, const struct opt_args *a,
                      const struct engine_options *o, const char *profile,
                      struct vt_err *err)
{
    const char *inline_model = engine_inline_model(o);
    int rc = VT_OK;

    if (!profile)
        profile = o->profile;
    if (profile || inline_model) {
        rc = opt_refuse(a, &o->basis, " chooses what times steps: not with --profile",
                        err);
        if (j->graphs.none)
            cli_say("vtwin: warning: --enforce-eager changes no times that "
                    "--profile or --latency state\n");
    } else {
        rc = engine_choose(j, a, o, &profile, err);
    }
    if (rc == VT_OK && j->basis != VT_ESTIMATED &&
        !(rc = opt_refuse(a, &o->host_speed, " is of estimates: give --basis estimated",
                          err)))
        rc = opt_refuse(a, &o->host_from, " is of estimates: give --basis estimated",
                        err);
    if (rc == VT_OK && inline_model && inline_model == o->model && !opt_is_quiet(a))
        cli_tell(NULL, "note: --model KIND:... is now --latency; --model names what is "
                       "served");
    if (rc == VT_OK && inline_model)
        rc = vt_within(err, vt_model_open_inline(&j->inline_model, inline_model, err),
                       "--latency");
    if (rc == VT_OK && inline_model && !profile)
        rc = vt_within(err, engine_inline_sizes(j, o, inline_model, err), "--latency");
    if (rc == VT_OK && profile)
        rc = vt_profile_open(&j->profile, profile, err);
    if (rc != VT_OK)
        return rc;
    j->has_profile = profile != NULL;
    j->model = inline_model ? j->inline_model : j->profile.model;
    if (inline_model)
        j->timed_by = inline_model;
    else if (profile)
        j->timed_by = j->profile.name;
    if (!inline_model && j->profile.forced) { /* every summary names what timed it */
        (void)snprintf(j->label, sizeof(j->label), "%.140s (by force)",
                       j->profile.name);
        j->timed_by = j->label;
        engine_warn_forced(&j->profile);
    }
    return find_model_name(j, err);
}

int engine_check_prefills(const struct opt_args *a, const struct engine_options *o,
                          uint32_t vllm, struct vt_err *err)
{
    const uint32_t *const row[] = {&o->partial_prefills, &o->long_partial_prefills};
    int rc = VT_OK;

    for (size_t i = 0; i < VT_COUNT(row) && rc == VT_OK; i++)
        if (vllm > VT_VLLM_OLDEST)
            rc = opt_refuse(a, row[i], " is of vLLM 0.26 only", err);
        else if (*row[i] != 1)
            rc = vt_fail(err, VT_EINPUT,
                         "Concurrent Partial Prefill is not supported. We recommend to "
                         "remove Concurrent Partial Prefill from your config.");
    return rc;
}

/* On another GPU or with another model than what it starts from, limits are vLLM's. */
static bool is_elsewhere(const struct engine_job *j)
{
    return j->basis == VT_ESTIMATED ||
           (j->basis == VT_TRANSFERRED &&
            (strcmp(j->choice.source.gpu.name, j->gpu.name) != 0 ||
             !vt_arch_same(&j->choice.source.arch, &j->arch)));
}

int engine_read(struct engine_job *j, const struct opt_args *a,
                const struct engine_options *o, const char *profile,
                const struct vt_meta *meta, struct vt_err *err)
{
    struct vt_engine_config *c = &j->config, shipped;
    struct vt_profile p;
    int rc;

    *j = (struct engine_job){.asked = engine_asked_model(a, o)};
    if ((rc = engine_find_graphs(&j->graphs, a, o, err)))
        return rc;
    rc = open_model(j, a, o, profile, err);
    if (rc != VT_OK)
        return rc;
    vt_engine_config_init(c);
    rc = j->has_profile ? vt_profile_limits(&j->profile, c, err) : VT_OK;
    if (rc != VT_OK)
        return rc;
    if (j->basis == VT_TRANSFERRED &&
        strcmp(j->choice.source.gpu.name, j->gpu.name) != 0)
        c->offload = (struct vt_offload){0}; /* another GPU's link */
    if (is_elsewhere(j)) {
        struct vt_engine_config asked = *c; /* the release decides on the limits */

        if (meta)
            vt_engine_config_take(&asked, meta);
        engine_apply(&asked, a, o);
        c->vllm = asked.vllm;
        engine_standards(j, c);
    }
    if (meta)
        vt_engine_config_take(c, meta);
    engine_apply(c, a, o);
    name_release(j, o->release.text);
    if ((rc = engine_ask_offload(j, a, o, err)) ||
        (rc = engine_check_prefills(a, o, c->vllm, err)) ||
        (rc = engine_settle_limits(j, a, o, err)))
        return rc;
    /* An inline model knows no memory size. Where nobody states one, the default
     * profile's is taken: a run with a plausible pool beats a demand for a number. */
    if (c->num_gpu_blocks > 0 || j->basis == VT_ESTIMATED ||
        (rc = vt_profile_open(&p, VT_DEFAULT_PROFILE, err)) != VT_OK)
        return rc;
    vt_engine_config_init(&shipped);
    rc = vt_profile_limits(&p, &shipped, err);
    c->num_gpu_blocks = shipped.num_gpu_blocks;
    vt_profile_close(&p);
    return rc;
}

/* ---- memory and GPUs ------------------------------------------------------ */

int engine_profile_tp(const struct engine_job *j, uint32_t *tp, struct vt_err *err)
{
    *tp = 1;
    return vt_get_u32(j->profile.engine, "tensor_parallel_size", VT_OPTIONAL, 1, 1024,
                      tp, err);
}

static const char *config_name(const struct engine_job *j)
{
    return j->asked ? j->asked : j->model_name;
}

/* Once, however many ask for it. */
static int load_arch(struct engine_job *j, const struct engine_options *o,
                     struct vt_err *err)
{
    const char *name = config_name(j);
    int rc = j->has_arch ? VT_OK
             : name      ? vt_arch_load(&j->arch, name, err)
                         : vt_fail(err, VT_EINPUT, "not stated");

    if (rc == VT_OK && !j->has_arch &&
        !(rc = vt_arch_quantize(&j->arch, o->quantization, err)))
        rc = vt_arch_set_dtype(&j->arch, o->dtype, err);
    j->has_arch = rc == VT_OK;
    return rc;
}

int engine_find_arch(struct engine_job *j, const struct engine_options *o,
                     struct vt_err *err)
{
    int rc = load_arch(j, o, err);

    return j->asked ? vt_within(err, rc, "--hf-config") : VT_OK;
}

int engine_find_sizes(struct engine_job *j, const struct engine_options *o, bool must,
                      struct vt_err *err)
{
    const char *gpu = NULL;
    struct vt_err why;
    int rc = vt_get_str(j->profile.engine, "gpu", VT_OPTIONAL, &gpu, err);

    if (rc != VT_OK || j->has_sizes)
        return rc;
    gpu = o->gpu ? o->gpu : gpu;
    rc = gpu ? load_arch(j, o, &why) : vt_fail(&why, VT_EINPUT, "not stated");
    if (rc == VT_OK)
        rc = vt_gpu_find(&j->gpu, gpu, o->hw, &why);
    if (rc != VT_OK && must)
        return vt_fail(err, VT_EINPUT, "the KV cache needs --hf-config and --gpu (%s)",
                       why.msg);
    j->has_sizes = rc == VT_OK;
    return VT_OK;
}

int engine_lockstep(const struct engine_job *j, const struct opt_args *a,
                    const struct engine_options *o, bool *lockstep, const char **why,
                    struct vt_err *err)
{
    *why = NULL;
    *lockstep = o->ep;
    if (!j->has_arch) {
        *why = o->ep                  ? "as --enable-expert-parallel says"
               : opt_given(a, &o->ep) ? "as --no-enable-expert-parallel says"
                                      : "the model is not known";
        return VT_OK;
    }
    *lockstep = j->arch.experts > 0;
    if (o->ep && !*lockstep)
        return vt_fail(err, VT_EINPUT,
                       "--enable-expert-parallel: '%s' is no mixture of experts",
                       config_name(j));
    return VT_OK;
}

void engine_warn_interval(const struct engine_options *o, const char *why)
{
    if (o->config.prefill_schedule_interval > 1)
        cli_say("vtwin: warning: --prefill-schedule-interval has no effect: %s\n", why);
}

void engine_tell_ranks(bool lockstep, const char *why)
{
    if (why)
        cli_say("vtwin: data-parallel engines are %s: %s\n",
                lockstep ? "in lockstep" : "independent of each other", why);
}

/* Until 0.28 it is no setting but a variable of vLLM's environment. */
static int read_retention(struct engine_job *j, const struct engine_options *o,
                          struct vt_err *err)
{
    static const struct opt_row variable = {.name = RETENTION_VARIABLE};
    const char *text =
        j->config.vllm <= LAST_VARIABLE ? getenv(RETENTION_VARIABLE) : NULL;
    struct engine_retention r = o->retention;
    int rc = VT_OK;

    if (!r.given && text)
        rc = engine_read_retention(&variable, text, &r, err);
    if (rc == VT_OK && r.given)
        j->config.prefix_cache_retention_interval = r.every;
    if (rc == VT_OK && r.given && !j->has_arch && r.every > 0 &&
        r.every != VT_RETENTION_DENSE)
        rc = vt_fail(err, VT_EINPUT,
                     "prefix-cache-retention-interval: what the model's layers keep is "
                     "not known; give --hf-config");
    return rc;
}

int engine_kv_wish(struct vt_kv_wish *w, struct engine_job *j, const struct opt_args *a,
                   const struct engine_options *o, struct vt_err *err)
{
    *w = (struct vt_kv_wish){
        .arch = j->has_arch ? &j->arch : NULL,
        .pp = o->pp,
        .element_bytes = engine_kv_bytes(o->kv_dtype),
        .hybrid = !opt_given(a, &o->disable_hybrid) ? VT_HYBRID_AUTO
                  : o->disable_hybrid               ? VT_HYBRID_OFF
                                                    : VT_HYBRID_ON,
        .mamba = (enum vt_mamba_wish)(o->mamba_mode + 1),
        .caching_stated = opt_given(a, &o->config.enable_prefix_caching),
    };
    return read_retention(j, o, err);
}

/* Whether the pool is the one that was stated with the times. */
static bool keeps_pool(const struct engine_job *j, const struct opt_args *a,
                       const struct engine_options *o)
{
    if (o->kv_dtype > 0 || o->pp > 1 || opt_given(a, &o->gpu_memory_utilization) ||
        ((o->quantization || o->dtype || j->graphs.most > 0) && !j->described))
        return false;
    if (j->described)
        return j->basis == VT_MEASURED;
    return !j->asked && !o->gpu && !(j->inline_model && j->has_sizes);
}

/* Ranks of a mixture hold a part of its experts each, which leaves room for more. */
static bool shares_experts(const struct engine_job *j, const struct engine_options *o)
{
    return j->has_sizes && !j->inline_model && vt_arch_ranks(&j->arch, o->dp) > 1;
}

/* Nobody states what a draft's pass takes: an EAGLE-3 head's, unless the profile was
 * measured with drafts, whose passes are in its times. */
static int time_drafts(struct engine_job *j, const struct opt_args *a,
                       const struct engine_options *o, uint32_t tp, struct vt_err *err)
{
    struct vt_estimate_query q;
    int rc;

    if (j->config.num_spec_tokens > 0 && !(j->config.spec_acceptance > 0))
        cli_say("vtwin: note: no draft is accepted; --speculative-acceptance "
                "says how many are\n");
    if (j->config.num_spec_tokens == 0 || !j->config.use_eagle ||
        opt_given(a, &o->config.spec_draft_us) ||
        vt_get(j->profile.engine, "num_speculative_tokens"))
        return VT_OK;
    rc = engine_find_sizes(j, o, false, err);
    if (rc != VT_OK || !j->has_sizes)
        return rc;
    q = engine_estimate(j, o);
    q.tp = tp;
    return vt_estimate_draft(&j->config.spec_draft_us, &q, err);
}

static int size_engine(struct engine_job *j, const struct opt_args *a,
                       const struct engine_options *o, uint32_t tp, struct vt_err *err)
{
    const struct vt_engine_config asked = j->config;
    struct vt_setting s = {.max_num_seqs = asked.max_num_seqs,
                           .max_num_batched_tokens = asked.max_num_batched_tokens,
                           .gpu_memory_utilization = o->gpu_memory_utilization,
                           .dp = 1,
                           .spec_tokens = asked.num_spec_tokens,
                           .prefix_caching = asked.enable_prefix_caching};
    struct vt_site site = {.profile = j->has_profile ? &j->profile : NULL,
                           .model = j->inline_model};
    struct vt_estimate_query estimate;
    uint32_t own_tp;
    uint64_t block_bytes;
    bool as_measured;
    int rc = engine_profile_tp(j, &own_tp, err);

    if (rc != VT_OK)
        return rc;
    if (o->hw && !o->gpu)
        return vt_fail(err, VT_EINPUT, "--hw needs --gpu");
    site.model_tp = j->inline_tp;
    if (j->inline_tp > 0)
        own_tp = j->inline_tp;
    s.tp = tp > 0 ? tp : own_tp;
    if (o->dp > 1 && (rc = engine_find_sizes(j, o, false, err)))
        return rc;
    as_measured = s.tp == own_tp && !shares_experts(j, o) && keeps_pool(j, a, o);
    j->setting = s;
    j->setting.kv_bytes = engine_kv_bytes(o->kv_dtype);
    if (as_measured || opt_given(a, &o->config.num_gpu_blocks))
        j->setting.gpu_memory_utilization = 0;
    if ((rc = opt_exclude(a, &o->config.num_gpu_blocks, &o->gpu_memory_utilization,
                          err)) ||
        (!as_measured && (rc = engine_find_sizes(j, o, true, err))) ||
        (rc = engine_find_arch(j, o, err)) ||
        (rc = engine_kv_wish(&site.kv, j, a, o, err)))
        return rc;
    if ((rc = time_drafts(j, a, o, s.tp, err)))
        return rc;
    site.kv.tp = s.tp;
    estimate = engine_estimate(j, o);
    engine_time_site(&site, j, o, &estimate);
    if ((rc = engine_trust(j, &site, &s, err)))
        return rc;
    if (as_measured && j->has_arch) {
        rc = vt_kv_groups(&j->config, &site.kv, &block_bytes, err);
        return rc == VT_OK ? engine_settle_offload(j, o, block_bytes, s.tp, err) : rc;
    }
    if (as_measured) {
        rc = opt_given(a, &o->config.block_size) ? vt_kv_groups_resize(&j->config, err)
                                                 : VT_OK;
        return rc == VT_OK ? engine_settle_offload(j, o, 0, s.tp, err) : rc;
    }
    site.engine = j->config;
    site.shrink = j->basis == VT_ESTIMATED && !opt_given(a, &o->config.max_model_len);
    if ((rc = vt_deploy(&j->deployed, &site, &s, err)))
        return rc;
    j->config = j->deployed.engine;
    engine_count_parts(j);
    if (j->config.max_model_len < asked.max_model_len)
        cli_say("vtwin: note: max-model-len is %u, which the KV cache holds, not the "
                "model's %u: vLLM would want it given\n",
                j->config.max_model_len, asked.max_model_len);
    if (opt_given(a, &o->config.num_gpu_blocks))
        j->config.num_gpu_blocks = asked.num_gpu_blocks;
    j->model = j->deployed.model;
    return VT_OK;
}

int engine_take_layers(struct engine_job *j, const struct opt_args *a,
                       const struct engine_options *o, const struct vt_arch *arch,
                       uint32_t tp, struct vt_err *err)
{
    struct vt_engine_config was = j->config;
    struct vt_kv_wish wish;
    uint64_t block_bytes;
    int rc;

    if (j->asked)
        return VT_OK;
    j->arch = *arch;
    j->has_arch = true;
    if ((rc = engine_kv_wish(&wish, j, a, o, err)) ||
        (tp == 0 && (rc = engine_profile_tp(j, &tp, err))))
        return rc;
    wish.tp = tp;
    rc = vt_kv_groups(&j->config, &wish, &block_bytes, err);
    if (rc == VT_OK)
        rc = engine_settle_offload(j, o, block_bytes, tp, err);
    if (rc != VT_OK)
        j->config = was;
    return rc;
}

/* ---- the whole -------------------------------------------------------- */

int engine_open(struct engine_job *j, const struct opt_args *a,
                const struct engine_options *o, const char *profile,
                const struct vt_meta *meta, uint32_t tp, struct vt_err *err)
{
    int rc = engine_read(j, a, o, profile, meta, err);

    return rc == VT_OK ? size_engine(j, a, o, tp, err) : rc;
}

const char *engine_name(const struct engine_job *j)
{
    return j->model_name ? j->model_name : j->timed_by;
}

void engine_close(struct engine_job *j)
{
    vt_undeploy(&j->deployed);
    vt_latency_close(j->inline_model);
    vt_profile_close(&j->profile);
}

int engine_fit_pool(struct vt_engine_config *e, bool asked, struct vt_err *err)
{
    uint32_t room = vt_longest_request(e);

    if (room >= e->max_model_len || room == 0)
        return VT_OK;
    if (asked)
        return vt_fail(err, VT_EINPUT,
                       "--max-model-len %u is more than %u KV blocks of %u tokens hold "
                       "(one is vLLM's own)",
                       e->max_model_len, e->num_gpu_blocks, e->block_size);
    vt_set_max_model_len(e, room);
    return VT_OK;
}

void engine_warn_forced(const struct vt_profile *p)
{
    if (p->forced)
        cli_say("vtwin: warning: profile '%s' was written by force: %s\n", p->name,
                p->forced);
}

void engine_warn_profile(const char *name)
{
    struct vt_profile p;
    struct vt_err ignored; /* who uses it will say */

    if (vt_profile_open(&p, name, &ignored) != VT_OK)
        return;
    engine_warn_forced(&p);
    vt_profile_close(&p);
}

void engine_warn_extent(const struct vt_extent *run, const struct vt_extent *known,
                        const char *whose)
{
    struct vt_outside way[VT_OUTSIDE];
    size_t n = vt_outside(run, known, way);

    for (size_t i = 0; i < n; i++)
        cli_say("vtwin: warning: %s%s reached %llu, but the profile was fitted up to "
                "%llu\n",
                whose, way[i].what, (unsigned long long)way[i].reached,
                (unsigned long long)way[i].fitted);
}
