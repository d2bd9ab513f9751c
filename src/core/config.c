#include <math.h>

#include "core/kv/kv.h"

void vt_engine_config_init(struct vt_engine_config *c)
{
    *c = (struct vt_engine_config){
        .vllm = VT_VLLM_NEWEST,
        .prefix_cache_retention_interval = VT_RETENTION_DEFAULT,
        .max_num_seqs = 1024,
        .max_num_batched_tokens = 8192,
        .max_model_len = 32768,
        .block_size = 16,
        .num_gpu_blocks = 32768,
        .max_loras = 1,
        .prefill_schedule_interval = 1,
        .enable_prefix_caching = true,
        .enable_chunked_prefill = true,
        .scheduler_reserve_full_isl = true,
        .async_scheduling = true,
    };
}

/* The number behind "0."; a release 1.0 or above counts as UINT32_MAX. */
static bool read_release(const char *text, uint32_t *release)
{
    const char *at = text + (*text == 'v');
    size_t major = strspn(at, "0123456789");
    const char *minor = at + major + 1;
    size_t digits = major > 0 && at[major] == '.' ? strspn(minor, "0123456789") : 0;
    uint32_t n = 0;

    if (digits == 0 || (minor[digits] != '\0' && minor[digits] != '.'))
        return false;
    for (size_t i = 0; i < digits && n < 1000; i++)
        n = n * 10 + (uint32_t)(minor[i] - '0');
    *release = major == 1 && *at == '0' ? n : UINT32_MAX;
    return true;
}

int vt_vllm_release(const char *text, uint32_t *release, struct vt_err *err)
{
    uint32_t n;

    if (!read_release(text, &n) || n < VT_VLLM_OLDEST || n > VT_VLLM_NEWEST)
        return vt_fail(err, VT_EINPUT, "vLLM '%s': known are 0.%d to 0.%d", text,
                       VT_VLLM_OLDEST, VT_VLLM_NEWEST);
    *release = n;
    return VT_OK;
}

uint32_t vt_vllm_nearest(const char *text)
{
    uint32_t n;

    if (!text || !read_release(text, &n))
        return 0;
    return n < VT_VLLM_OLDEST   ? VT_VLLM_OLDEST
           : n > VT_VLLM_NEWEST ? VT_VLLM_NEWEST
                                : n;
}

static int check_range(const char *name, uint32_t v, uint32_t lo, uint32_t hi,
                       struct vt_err *err)
{
    if (v < lo || v > hi)
        return vt_fail(err, VT_EINPUT, "%s is %u, must be %u to %u", name, v, lo, hi);
    return VT_OK;
}

static int check_share(const char *name, double v, struct vt_err *err)
{
    if (!isfinite(v) || v < 0.0 || v > 1.0)
        return vt_fail(err, VT_EINPUT, "%s is %g, must be 0 to 1", name, v);
    return VT_OK;
}

static int check_groups(const struct vt_engine_config *c, struct vt_err *err)
{
    int rc;

    for (uint32_t i = 0; i < c->n_kv_groups; i++) {
        const struct vt_kv_group *g = &c->kv_group[i];
        bool windowed =
            g->type == VT_ATTENTION_SLIDING || g->type == VT_ATTENTION_CHUNKED;

        if ((rc = check_range("a group's block-size", g->block_size, 1, 1u << 30,
                              err)) ||
            (rc = check_range("a group's window", g->window, windowed, 1u << 30, err)))
            return rc;
        if (g->type > VT_ATTENTION_MAMBA)
            return vt_fail(err, VT_EINPUT, "a KV group of an unknown kind");
        if (g->type == VT_ATTENTION_MAMBA && c->num_spec_tokens > 0)
            return vt_fail(err, VT_EINPUT,
                           "drafts for a model whose layers have states are not "
                           "modelled");
    }
    if (vt_scheduler_block_size(c) == 0)
        return vt_fail(err, VT_EINPUT, "KV groups whose blocks never end together");
    return VT_OK;
}

static int check_offload(const struct vt_engine_config *c, struct vt_err *err)
{
    const struct vt_offload *o = &c->offload;
    struct vt_kv_group one;
    uint32_t n;
    const struct vt_kv_group *g = layout_groups(c, &one, &n);
    int rc;

    if (o->num_cpu_blocks == 0 && o->cpu_bytes_to_use > 0)
        return vt_fail(err, VT_EINPUT,
                       "kv-offloading-size: what a KV block takes is not known; give "
                       "--hf-config");
    if (o->num_cpu_blocks == 0)
        return VT_OK;
    if ((rc = check_range("CPU blocks", o->num_cpu_blocks, 1, 1u << 28, err)) ||
        (rc = check_range("blocks_per_chunk", o->blocks_per_chunk, 0, 4096, err)))
        return rc;
    if (c->compat != VT_COMPAT_VLLM)
        return vt_fail(err, VT_EINPUT, "CPU offload is not known by BLIS's rules");
    for (uint32_t i = 0; i < n; i++)
        if ((uint64_t)g[i].block_size * o->blocks_per_chunk > 1u << 30)
            return vt_fail(err, VT_EINPUT,
                           "chunks of %u blocks with %u tokens each are too large",
                           o->blocks_per_chunk, g[i].block_size);
    return VT_OK;
}

static int check_remote(const struct vt_engine_config *c, struct vt_err *err)
{
    const struct vt_remote *r = &c->remote;

    if (!r->on)
        return VT_OK;
    if (c->compat != VT_COMPAT_VLLM)
        return vt_fail(err, VT_EINPUT,
                       "prefills elsewhere are not known by BLIS's rules");
    if (c->offload.num_cpu_blocks > 0)
        return vt_fail(err, VT_EINPUT,
                       "CPU offload and prefills elsewhere together are not modelled");
    if (!(r->lease_s >= 0 && r->lease_s <= 1e9) || !(r->gbs >= 0 && r->gbs <= 1e9) ||
        !(r->setup_us >= 0 && r->setup_us <= 1e12) || r->block_bytes > 1ull << 40)
        return vt_fail(
            err, VT_EINPUT,
            "a KV transfer needs bandwidth, base time, lease and bytes of at "
            "least 0");
    return VT_OK;
}

/* What not every release has, and what it says of what it has. */
static int check_release(const struct vt_engine_config *c, struct vt_err *err)
{
    const struct {
        const char *name;
        bool asked;
        uint32_t since;
    } row[] = {
        {"dp-sync-interval", c->dp_sync_interval > 0, 30},
        {"max-num-active-seqs", c->max_num_active_seqs > 0, 31},
        {"long-prefill-token-threshold-adaptive",
         c->long_prefill_token_threshold_adaptive, 31},
    };

    for (size_t i = 0; i < VT_COUNT(row); i++)
        if (row[i].asked && c->vllm < row[i].since)
            return vt_fail(err, VT_EINPUT, "%s came with vLLM 0.%u, but this is 0.%u",
                           row[i].name, row[i].since, c->vllm);
    if (c->max_num_active_seqs > c->max_num_seqs)
        return vt_fail(err, VT_EINPUT,
                       "max_num_active_seqs (%u) cannot be greater than max_num_seqs "
                       "(%u).",
                       c->max_num_active_seqs, c->max_num_seqs);
    /* 0.26 asked only where prompts in parts were limited, which it did not take. */
    if (c->long_prefill_token_threshold > c->max_model_len && c->vllm >= 27)
        return vt_fail(err, VT_EINPUT,
                       "long_prefill_token_threshold (%u) cannot be greater than the "
                       "max_model_len (%u).",
                       c->long_prefill_token_threshold, c->max_model_len);
    return VT_OK;
}

int vt_engine_config_check(const struct vt_engine_config *c, struct vt_err *err)
{
    const struct {
        const char *name;
        uint32_t v, lo, hi;
    } row[] = {
        {"vllm-version: the number behind '0.'", c->vllm, VT_VLLM_OLDEST,
         VT_VLLM_NEWEST},
        {"max-num-seqs", c->max_num_seqs, 1, 1u << 20},
        {"max-num-active-seqs", c->max_num_active_seqs, 0, 1u << 20},
        {"max-loras", c->max_loras, 0, 1u << 20},
        {"max-num-batched-tokens", c->max_num_batched_tokens, 1, 1u << 30},
        {"max-num-scheduled-tokens", c->max_num_scheduled_tokens, 0, 1u << 30},
        {"max-model-len", c->max_model_len, 2, 1u << 30},
        {"block-size", c->block_size, 1, 1u << 16},
        {"num-gpu-blocks", c->num_gpu_blocks, 2, 1u << 25},
        {"KV groups", c->n_kv_groups, 0, VT_KV_GROUPS},
        {"long-prefill-token-threshold", c->long_prefill_token_threshold, 0, 1u << 30},
        {"num-speculative-tokens", c->num_spec_tokens, 0, 64},
        {"prefill-schedule-interval", c->prefill_schedule_interval, 1, 1u << 20},
        {"dp-sync-interval", c->dp_sync_interval, 0, 1u << 20},
    };
    int rc;

    for (size_t i = 0; i < VT_COUNT(row); i++)
        if ((rc = check_range(row[i].name, row[i].v, row[i].lo, row[i].hi, err)))
            return rc;
    if ((rc = check_share("speculative-acceptance", c->spec_acceptance, err)) ||
        (rc = check_range("positions of speculative-acceptance", c->n_spec_positions, 0,
                          VT_SPEC_POSITIONS, err)))
        return rc;
    for (uint32_t i = 0; i < c->n_spec_positions; i++)
        if ((rc = check_share("speculative-acceptance", c->spec_position[i], err)))
            return rc;
    if (!(c->spec_draft_us >= 0.0 && c->spec_draft_us <= 1e9))
        return vt_fail(err, VT_EINPUT, "speculative-draft-us is %g, must be 0 to 1e9",
                       c->spec_draft_us);
    if ((rc = check_share("watermark", c->watermark, err)) ||
        (rc = check_groups(c, err)) || (rc = check_offload(c, err)) ||
        (rc = check_remote(c, err)) || (rc = check_release(c, err)))
        return rc;
    if (!c->enable_chunked_prefill && c->max_num_batched_tokens < c->max_model_len)
        return vt_fail(err, VT_EINPUT,
                       "without chunked prefill max-num-batched-tokens (%u) must be at "
                       "least max-model-len (%u)",
                       c->max_num_batched_tokens, c->max_model_len);
    return VT_OK;
}

int vt_request_check(const struct vt_engine_config *c, const struct vt_request *r,
                     struct vt_err *err)
{
    uint64_t total = (uint64_t)r->prompt_tokens + r->max_tokens;
    uint64_t most = total < c->max_model_len ? total : c->max_model_len;
    uint64_t need = vt_blocks_of_request(c, most);
    uint64_t have = c->num_gpu_blocks - (c->compat == VT_COMPAT_VLLM ? 1 : 0);

    if (r->prompt_tokens == 0)
        return vt_fail(err, VT_EINPUT, "the prompt is empty");
    if (r->max_tokens == 0)
        return vt_fail(err, VT_EINPUT, "it asks for no output");
    if (r->prompt_tokens >= c->max_model_len)
        return vt_fail(err, VT_EINPUT,
                       "its prompt of %u tokens leaves no room for output in "
                       "max-model-len %u",
                       r->prompt_tokens, c->max_model_len);
    if (r->given_tokens >= r->prompt_tokens ||
        (r->given_tokens > 0 && c->compat != VT_COMPAT_VLLM))
        return vt_fail(err, VT_EINPUT, "%u tokens of a prompt of %u can't be given",
                       r->given_tokens, r->prompt_tokens);
    if (need > have)
        return vt_fail(
            err, VT_EINPUT,
            "it needs %llu KV blocks for %llu tokens, but the engine has %llu "
            "(num-gpu-blocks %u)",
            (unsigned long long)need, (unsigned long long)most,
            (unsigned long long)have, c->num_gpu_blocks);
    return VT_OK;
}
