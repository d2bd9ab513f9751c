/* engine_model.c - an engine described by its model and GPU: which these are, what its
 * steps are timed by, and vLLM's standards for them. */
#include "cli/cmd/engine.h"

#include <stdlib.h>

/* ---- which model ------------------------------------------------------------ */

/* --model is a latency model's, but vLLM's users write the model there. */
static bool is_model_name(const char *text)
{
    char kind[64];
    size_t len = strcspn(text, ":");

    (void)snprintf(kind, sizeof(kind), "%.*s", (int)len, text);
    return !vt_model_find(kind) && (vt_arch_is_known(text) || vt_is_directory(text));
}

const char *engine_inline_model(const struct engine_options *o)
{
    return o->model && !is_model_name(o->model) ? o->model : NULL;
}

/* Behind a subcommand's name, where the command has such. */
static const char *model_operand(const struct opt_args *a)
{
    size_t at = a->command->subs ? 1 : 0;

    return a->n_operands > at ? a->operand[at] : NULL;
}

const char *engine_asked_model(const struct opt_args *a, const struct engine_options *o)
{
    const char *operand = model_operand(a);
    bool tokenizer =
        strcmp(a->command->name, "serve") == 0 || strcmp(a->command->name, "play") == 0;

    if (o->hf_config)
        return o->hf_config;
    if (operand && tokenizer && vt_is_directory(operand) && !o->gpu &&
        !opt_given(a, &o->basis))
        operand = NULL;
    if (operand)
        return operand;
    return o->model && is_model_name(o->model) ? o->model : NULL;
}

/* What the flags ask for where a profile does not; the default profile's fill up. */
static int find_model(struct engine_job *j, const struct engine_options *o,
                      struct vt_err *err)
{
    const char *model = j->asked, *gpu = o->gpu;
    struct vt_profile p;
    int rc = vt_profile_open(&p, VT_DEFAULT_PROFILE, err);

    if (rc != VT_OK)
        return rc;
    if (o->model && model == o->model)
        fprintf(
            stderr,
            "vtwin: note: --model '%s' is no latency model: taken as the model that "
            "is served\n",
            model);
    j->model_name = model; /* the default profile's has no name here that would stay */
    if ((!model && (rc = vt_get_str(p.engine, "model", VT_REQUIRED, &model, err))) ||
        (!gpu && (rc = vt_get_str(p.engine, "gpu", VT_REQUIRED, &gpu, err))) ||
        (rc = vt_within(err, vt_arch_load(&j->arch, model, err), "%s",
                        o->hf_config ? "--hf-config" : "MODEL")) ||
        (rc = vt_within(err, vt_arch_quantize(&j->arch, o->quantization, err), "--%s",
                        "quantization")) ||
        (rc = vt_within(err, vt_arch_set_dtype(&j->arch, o->dtype, err), "--dtype")) ||
        (rc = vt_within(err, vt_gpu_find(&j->gpu, gpu, o->hw, err), "--gpu")))
        goto out;
    j->has_arch = j->has_sizes = true;
    (void)snprintf(j->label, sizeof(j->label), "%.80s on %u x %s", model,
                   (o->tp > 0 ? o->tp : 1) * (o->pp > 0 ? o->pp : 1), j->gpu.name);
out:
    vt_profile_close(&p);
    return rc;
}

/* The value of a parameter in "kind:key=value,key=value". */
static bool inline_value(const char *spec, const char *key, char *out, size_t size)
{
    const char *at = strchr(spec, ':');
    size_t len = strlen(key);

    for (; at && *at != '\0'; at = strchr(at, ',')) {
        at++;
        if (strncmp(at, key, len) != 0 || at[len] != '=')
            continue;
        at += len + 1;
        (void)snprintf(out, size, "%.*s", (int)strcspn(at, ","), at);
        return true;
    }
    return false;
}

int engine_inline_sizes(struct engine_job *j, const struct engine_options *o,
                        const char *spec, struct vt_err *err)
{
    char model[512], gpu[64], tp[16];
    uint64_t n;
    int rc;

    if (j->asked || o->gpu || !inline_value(spec, "hf_config", model, sizeof(model)) ||
        !inline_value(spec, "gpu", gpu, sizeof(gpu)))
        return VT_OK;
    if ((rc = vt_arch_load(&j->arch, model, err)) ||
        (rc = vt_gpu_find(&j->gpu, gpu, o->hw, err)))
        return rc;
    j->has_arch = j->has_sizes = true;
    if (inline_value(spec, "tp", tp, sizeof(tp)) && vt_parse_u64(tp, strlen(tp), &n) &&
        n <= 1024)
        j->inline_tp = (uint32_t)n;
    return VT_OK;
}

/* ---- what times it ------------------------------------------------------------ */

/* Notes a profile that is nearer to what is asked for than those before. */
static void note_nearer(struct engine_job *j, const char *name)
{
    const char *model = NULL, *gpu = NULL;
    struct vt_profile p;
    struct vt_arch arch;
    struct vt_gpu g;
    uint32_t tp = 1;
    int near = 0;

    if (vt_profile_open(&p, name, NULL) != VT_OK)
        return;
    if (vt_get_str(p.engine, "model", VT_OPTIONAL, &model, NULL) == VT_OK &&
        vt_get_str(p.engine, "gpu", VT_OPTIONAL, &gpu, NULL) == VT_OK && model && gpu &&
        vt_get_u32(p.engine, "tensor_parallel_size", VT_OPTIONAL, 1, 1024, &tp, NULL) ==
            VT_OK &&
        vt_arch_load(&arch, model, NULL) == VT_OK && vt_arch_same(&arch, &j->arch) &&
        vt_gpu_find(&g, gpu, NULL, NULL) == VT_OK)
        near = strcmp(g.name, j->gpu.name) == 0 ? 2 : 1;
    if (near > j->nearness) {
        j->nearness = near;
        j->measured_gpu = g;
        j->measured_on = (struct vt_estimate_query){
            .arch = &j->arch, .gpu = &j->measured_gpu, .tp = tp};
        (void)snprintf(j->measured, sizeof(j->measured), "%s", name);
    }
    vt_profile_close(&p);
}

/* Puts the nearest profile's name into j->measured; "": there is none. */
static int find_measured(struct engine_job *j, struct vt_err *err)
{
    struct vt_arena scratch = {0};
    struct vt_profile_entry *entry = NULL;
    size_t n = 0;
    int rc = vt_profile_list(&scratch, &entry, &n, err);

    j->measured[0] = '\0';
    for (size_t i = 0; i < n && rc == VT_OK && j->nearness < 2; i++)
        if (!entry[i].blackbox)
            note_nearer(j, entry[i].name);
    vt_arena_free(&scratch);
    return rc;
}

struct vt_estimate_query engine_estimate(const struct engine_job *j,
                                         const struct engine_options *o)
{
    return (struct vt_estimate_query){
        .arch = &j->arch,
        .gpu = &j->gpu,
        .tp = o->tp,
        .pp = o->pp,
        .dp = o->dp,
        .expert_parallel = o->ep,
        .enforce_eager = o->enforce_eager,
        .kv_bytes = engine_kv_bytes(o->kv_dtype),
        .host_speed = o->host_speed,
    };
}

/* What the nearest profile becomes here. */
static int carry_over(const struct engine_job *j, const struct vt_estimate_query *q,
                      struct vt_estimate *e, struct vt_err *err)
{
    struct vt_step_params p;
    struct vt_profile from;
    int rc = vt_profile_open(&from, j->measured, err);

    if (rc != VT_OK)
        return rc;
    vt_step_params_init(&p);
    rc = vt_step_params_read(&p, vt_get(vt_get(from.root, "model"), "params"), err);
    if (rc == VT_OK)
        rc = vt_estimate_from(e, &p, &j->measured_on, q, err);
    vt_profile_close(&from);
    return rc;
}

/* Carried over or estimated: what was found to be off by less. */
static int better_of(const struct engine_job *j, const struct engine_options *o,
                     enum vt_basis_kind *best, struct vt_err *err)
{
    struct vt_estimate_query q = engine_estimate(j, o);
    struct vt_estimate moved, alone;
    int rc;

    if (q.tp == 0)
        q.tp = j->nearness == 2 ? j->measured_on.tp : 1;
    if ((rc = carry_over(j, &q, &moved, err)) || (rc = vt_estimate(&alone, &q, err)))
        return rc;
    *best = moved.expected[VT_TRUST_E2E] <= alone.expected[VT_TRUST_E2E]
                ? VT_TRANSFERRED
                : VT_ESTIMATED;
    return VT_OK;
}

static int choose_basis(struct engine_job *j, const struct engine_options *o,
                        struct vt_err *err)
{
    enum vt_basis_kind best = VT_ESTIMATED;
    bool like, same;
    int rc = find_measured(j, err);

    like = j->nearness > 0;
    same = j->nearness == 2 && o->pp <= 1 && !o->enforce_eager &&
           (o->tp == 0 || o->tp == j->measured_on.tp) &&
           engine_kv_bytes(o->kv_dtype) < 1;
    if (same)
        best = VT_MEASURED;
    else if (rc == VT_OK && like)
        rc = better_of(j, o, &best, err);
    if (rc != VT_OK)
        return rc;
    j->basis = o->basis > 0 ? (enum vt_basis_kind)o->basis : best;
    if (j->basis == VT_MEASURED && !same)
        return vt_fail(err, VT_EINPUT,
                       "--basis measured: no profile of %s was measured so", j->label);
    if (j->basis == VT_TRANSFERRED && !like)
        return vt_fail(err, VT_EINPUT,
                       "--basis transferred: no profile was measured that is near %s",
                       j->label);
    return VT_OK;
}

int engine_choose(struct engine_job *j, const struct opt_args *a,
                  const struct engine_options *o, const char **profile,
                  struct vt_err *err)
{
    int rc;

    j->described = j->asked || o->gpu || opt_given(a, &o->basis) || o->quantization ||
                   o->dtype || o->pp > 1 || o->enforce_eager;
    *profile = VT_DEFAULT_PROFILE;
    if (!j->described) {
        j->basis = VT_MEASURED;
        return VT_OK;
    }
    if ((rc = find_model(j, o, err)) || (rc = choose_basis(j, o, err)))
        return rc;
    *profile = j->basis == VT_ESTIMATED ? NULL : j->measured;
    if (j->basis == VT_ESTIMATED)
        j->timed_by = j->label;
    return VT_OK;
}

/* Of a profile for other GPUs or formats than its own: not better than the estimate
 * that the change goes by. */
static void widen(struct vt_basis *b, const struct vt_estimate *e)
{
    for (size_t i = 0; i < VT_TRUSTS; i++)
        if (!b->has_expected || !(b->expected[i] >= e->expected[i])) /* NAN too */
            b->expected[i] = e->expected[i];
    b->has_expected = true;
    for (size_t i = 0; i < e->n_outside && b->n_outside < VT_MOST_OUTSIDE; i++)
        memcpy(b->outside[b->n_outside++], e->outside[i], sizeof(b->outside[0]));
}

int engine_trust(struct engine_job *j, const struct engine_options *o, uint32_t tp,
                 struct vt_err *err)
{
    struct vt_estimate_query q = engine_estimate(j, o);
    struct vt_estimate e;
    uint32_t own_tp;
    int rc;

    j->trust = (struct vt_basis){0};
    if (j->inline_model || (!j->has_profile && j->basis != VT_ESTIMATED))
        return VT_OK;
    if (j->has_profile && ((rc = vt_basis_of_profile(&j->trust, &j->profile, err)) ||
                           (rc = engine_profile_tp(j, &own_tp, err))))
        return rc;
    q.tp = tp;
    if (j->basis == VT_ESTIMATED) {
        if ((rc = vt_estimate(&e, &q, err)) == VT_OK)
            vt_basis_of_estimate(&j->trust, &e);
        return rc;
    }
    if (j->basis == VT_TRANSFERRED && j->described) {
        if ((rc = carry_over(j, &q, &e, err)) == VT_OK) {
            vt_basis_of_estimate(&j->trust, &e);
            j->trust.kind = VT_TRANSFERRED;
        }
        return rc;
    }
    if (j->trust.kind != VT_MEASURED || !j->has_sizes ||
        (tp == own_tp && q.kv_bytes <= 0 && o->pp <= 1))
        return VT_OK;
    j->trust.kind = VT_TRANSFERRED;
    if ((rc = vt_estimate(&e, &q, err)) == VT_OK)
        widen(&j->trust, &e);
    return rc;
}

bool engine_tells_trust(const struct engine_job *j)
{
    return j->described || j->trust.kind > VT_MEASURED;
}

struct vt_notes engine_notes(const struct engine_job *j)
{
    return (struct vt_notes){j->trust.outside, j->trust.n_outside};
}

/* ---- limits --------------------------------------------------------------------- */

void engine_standards(struct engine_job *j, struct vt_engine_config *c)
{
    vt_gpu_limits(&j->gpu, c);
    if (j->arch.max_len > 0)
        c->max_model_len = j->arch.max_len;
}

/* Positions that the model was made for, stretched ones too. */
static double longest(const struct vt_arch *a)
{
    return a->rope_rows > a->max_len ? a->rope_rows : a->max_len;
}

/* vLLM: what is given must be right, what is not follows it. */
int engine_settle_limits(struct engine_job *j, const struct opt_args *a,
                         const struct engine_options *o, struct vt_err *err)
{
    struct vt_engine_config *c = &j->config;
    bool seqs = opt_given(a, &o->config.max_num_seqs);
    bool tokens = opt_given(a, &o->config.max_num_batched_tokens);

    if (j->described && opt_given(a, &o->config.max_model_len) && j->arch.max_len > 0 &&
        c->max_model_len > longest(&j->arch))
        return vt_fail(err, VT_EINPUT,
                       "User-specified max_model_len (%u) is greater than the derived "
                       "max_model_len (%.0f in the model's config.json)",
                       c->max_model_len, longest(&j->arch));
    if (!tokens && !c->enable_chunked_prefill && j->basis == VT_ESTIMATED &&
        c->max_num_batched_tokens < c->max_model_len)
        c->max_num_batched_tokens = c->max_model_len;
    if (c->max_num_batched_tokens >= c->max_num_seqs)
        return VT_OK;
    if (seqs && tokens)
        return vt_fail(err, VT_EINPUT,
                       "max_num_batched_tokens (%u) must be greater than or equal to "
                       "max_num_seqs (%u).",
                       c->max_num_batched_tokens, c->max_num_seqs);
    if (tokens)
        c->max_num_seqs = c->max_num_batched_tokens;
    return VT_OK;
}
