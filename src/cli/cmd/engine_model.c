/* engine_model.c - an engine described by its model and GPU: which these are, what its
 * steps are timed by, and vLLM's standards for them. */
#include "cli/cmd/engine.h"
#include "cli/cmd/fit.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- which model ------------------------------------------------------------ */

/* --model is the model that is served; once it was what --latency is now, which looks
 * like KIND or KIND:key=value. */
static bool is_model_name(const char *text)
{
    char kind[64];
    size_t len = strcspn(text, ":");

    (void)snprintf(kind, sizeof(kind), "%.*s", (int)len, text);
    return !vt_model_find(kind) && !(text[len] == ':' && strchr(text, '='));
}

const char *engine_inline_model(const struct engine_options *o)
{
    if (o->latency)
        return o->latency;
    return o->model && !is_model_name(o->model) ? o->model : NULL;
}

/* Behind a subcommand's name, where the command has such. */
static const char *model_operand(const struct opt_args *a)
{
    size_t at = a->command->subs ? 1 : 0;

    return a->n_operands > at ? a->operand[at] : NULL;
}

static bool has_config(const char *dir)
{
    char path[4096];

    return (size_t)snprintf(path, sizeof(path), "%s/config.json", dir) < sizeof(path) &&
           access(path, R_OK) == 0;
}

const char *engine_asked_model(const struct opt_args *a, const struct engine_options *o)
{
    const char *operand = model_operand(a);
    bool tokenizer =
        strcmp(a->command->name, "serve") == 0 || strcmp(a->command->name, "play") == 0;

    if (o->hf_config)
        return o->hf_config;
    if (operand && tokenizer && vt_is_directory(operand) && !o->gpu &&
        !opt_given(a, &o->basis) &&
        (o->profile || engine_inline_model(o) || !has_config(operand)))
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
        .graphs = engine_asks_graphs(j) ? &j->graphs : NULL,
        .kv_bytes = engine_kv_bytes(o->kv_dtype),
        .host_speed = j->host_speed,
    };
}

struct own_profiles {
    struct vt_arena arena;
    const char **name;
    size_t n, cap;
};

static int note_own(void *user, const char *file, struct vt_err *err)
{
    struct own_profiles *own = user;
    int rc;

    if (!vt_is_named(file, ".json"))
        return VT_OK;
    if ((rc = vt_grow(&own->name, &own->cap, own->n + 2, sizeof(*own->name), err)) ||
        (rc = vt_arena_text(&own->arena, file, &own->name[own->n], err)))
        return rc;
    own->name[++own->n] = NULL;
    return VT_OK;
}

/* As stated, or as captures of any model show it. */
static int find_host(struct engine_job *j, const struct opt_args *a,
                     const struct engine_options *o, struct vt_err *err)
{
    int rc = opt_exclude(a, &o->host_speed, &o->host_from, err);

    j->host_speed = o->host_speed;
    if (rc != VT_OK || !o->host_from)
        return rc;
    rc = vt_within(err, fit_host_speed(o->host_from, &j->host_speed, err),
                   "--host-from");
    if (rc == VT_OK)
        cli_say("vtwin: note: --host-from: that host is one of --host-speed %.3f\n",
                j->host_speed);
    return rc;
}

/* With profiles of the user's own from --profiles or $VTWIN_PROFILES. */
static int choose(struct engine_job *j, const struct engine_options *o,
                  struct vt_err *err)
{
    struct vt_estimate_query q = engine_estimate(j, o);
    const char *dir = o->profiles ? o->profiles : getenv("VTWIN_PROFILES");
    struct own_profiles own = {0};
    int rc = VT_OK;

    if (dir && *dir)
        rc = vt_within(err, vt_each_entry(dir, note_own, &own, err), "%s",
                       o->profiles ? "--profiles" : "VTWIN_PROFILES");
    if (rc == VT_OK)
        rc = vt_choose(&j->choice, &q, (enum vt_basis_kind)o->basis, own.name, err);
    if (o->basis > 0)
        rc = vt_within(err, rc, "--basis %s: %s", vt_basis_names[o->basis], j->label);
    free(own.name);
    vt_arena_free(&own.arena);
    return rc;
}

int engine_choose(struct engine_job *j, const struct opt_args *a,
                  const struct engine_options *o, const char **profile,
                  struct vt_err *err)
{
    int rc;

    j->described = j->asked || o->gpu || opt_given(a, &o->basis) || o->quantization ||
                   o->dtype || o->pp > 1 || engine_asks_graphs(j);
    *profile = VT_DEFAULT_PROFILE;
    if (!j->described) {
        j->basis = VT_MEASURED;
        return VT_OK;
    }
    if ((rc = find_model(j, o, err)) || (rc = choose(j, o, err)))
        return rc;
    j->basis = j->choice.kind;
    *profile = j->basis == VT_ESTIMATED ? NULL : j->choice.source.name;
    if (j->basis != VT_ESTIMATED)
        return VT_OK;
    j->timed_by = j->label;
    return find_host(j, a, o, err);
}

void engine_time_site(struct vt_site *site, const struct engine_job *j,
                      const struct engine_options *o, struct vt_estimate_query *q)
{
    site->gpu = j->has_sizes ? &j->gpu : NULL;
    site->estimate = j->has_sizes ? q : NULL;
    site->may_estimate = j->described && o->basis == VT_BASIS_UNKNOWN;
    if (!j->described) /* a profile's launches are as they were measured */
        q->graphs = j->graphs.none ? NULL : q->graphs;
}

/* A profile that was not measured itself is no better for being carried over. */
static void widen(struct vt_basis *b, const struct vt_basis *own)
{
    if (own->kind == VT_MEASURED || own->kind == VT_BASIS_UNKNOWN)
        return;
    b->kind = own->kind;
    for (size_t i = 0; i < VT_TRUSTS && own->has_expected; i++)
        if (!(b->expected[i] >= own->expected[i])) /* NAN too */
            b->expected[i] = own->expected[i];
    for (size_t i = 0; i < own->n_outside && b->n_outside < VT_MOST_OUTSIDE; i++)
        memcpy(b->outside[b->n_outside++], own->outside[i], sizeof(b->outside[0]));
}

void engine_note(struct engine_job *j, const char *fmt, ...)
{
    struct vt_basis *b = &j->trust;
    va_list args;

    if (b->n_outside >= VT_MOST_OUTSIDE || b->kind == VT_BASIS_UNKNOWN)
        return;
    va_start(args, fmt);
    (void)vsnprintf(b->outside[b->n_outside++], sizeof(b->outside[0]), fmt, args);
    va_end(args);
}

/* Settings that what a profile says was not measured with. */
static int note_settings(struct engine_job *j, struct vt_err *err)
{
    const struct vt_node *own = j->profile.engine;
    bool async = j->config.async_scheduling; /* unless it says so */
    int rc = vt_get_bool(own, "async_scheduling", VT_OPTIONAL, &async, err);

    if (rc != VT_OK)
        return rc;
    if (j->config.async_scheduling != async)
        engine_note(j, "%s scheduling: it was measured with %s",
                    async ? "synchronous" : "asynchronous",
                    async ? "asynchronous" : "synchronous");
    if (j->config.num_spec_tokens > 0 && !vt_get(own, "num_speculative_tokens"))
        engine_note(j, "drafts of %u tokens: it was measured without any",
                    j->config.num_spec_tokens);
    if (j->graphs.none && !j->described)
        engine_note(j, "--enforce-eager: it was measured with CUDA graphs");
    return VT_OK;
}

int engine_trust(struct engine_job *j, const struct vt_site *site,
                 const struct vt_setting *s, struct vt_err *err)
{
    struct vt_basis own = {0};
    struct vt_estimate e;
    bool as_it_is;
    int rc;

    j->trust = own;
    if (j->inline_model || !(site->profile || site->estimate))
        return VT_OK;
    if ((site->profile && (rc = vt_basis_of_profile(&own, site->profile, err))) ||
        (rc = vt_site_timing(site, s, &as_it_is, &e, err)))
        return rc;
    if (as_it_is) {
        j->trust = own;
    } else {
        vt_basis_of_estimate(&j->trust, &e);
        if (site->profile)
            widen(&j->trust, &own);
    }
    return site->profile ? note_settings(j, err) : VT_OK;
}

void engine_caption(char *out, size_t size, const struct engine_job *j,
                    const char *workload)
{
    const struct vt_basis *b = &j->trust;
    size_t n = (size_t)snprintf(out, size, "%.80s, %.80s", j->timed_by, workload);

    if (b->kind == VT_BASIS_UNKNOWN || n >= size)
        return;
    n += (size_t)snprintf(out + n, size - n, "; simulated, basis %s",
                          vt_basis_names[b->kind]);
    if (n < size && b->has_expected && !isnan(b->expected[VT_TRUST_E2E]))
        (void)snprintf(out + n, size - n, ", E2E within %.0f %%",
                       b->expected[VT_TRUST_E2E]);
}

bool engine_tells_trust(const struct engine_job *j)
{
    return j->trust.kind != VT_BASIS_UNKNOWN;
}

struct vt_notes engine_notes(const struct engine_job *j)
{
    return (struct vt_notes){j->trust.outside, j->trust.n_outside};
}

void engine_recommend(struct vt_buf *b, const struct engine_job *j,
                      const struct engine_options *o, const struct vt_site *site,
                      const struct vt_engine_config *engine, const struct vt_setting *s)
{
    const struct vt_served_model model = {
        .name = j->asked ? j->asked : j->model_name,
        .quantization = o->quantization,
        .dtype = o->dtype,
        .graphs = &j->graphs,
    };

    vt_recommend(b, &model, site, engine, s);
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
