/* settings.c - how a result was made, so that two of them can be told apart. */
#include "cli/cmd/settings.h"

#include <math.h>

enum { MOST_SPEC = 1000 };

static void put_engine(struct vt_jw *w, const struct engine_job *e,
                       const struct vt_engine_config *c, const struct vt_setting *s)
{
    const struct {
        const char *key;
        uint64_t v;
    } number[] = {
        {"max_num_seqs", c->max_num_seqs},
        {"max_num_batched_tokens", c->max_num_batched_tokens},
        {"max_model_len", c->max_model_len},
        {"block_size", c->block_size},
        {"num_gpu_blocks", c->num_gpu_blocks},
        {"long_prefill_token_threshold", c->long_prefill_token_threshold},
        {"num_speculative_tokens", c->num_spec_tokens},
    };

    vt_jw_str(w, "model", e->model_name ? e->model_name : e->asked);
    vt_jw_str(w, "timed_by", e->timed_by);
    vt_jw_str(w, "gpu", e->has_sizes ? e->gpu.name : NULL);
    vt_jw_u64(w, "tensor_parallel_size", s->tp);
    if (s->gpu_memory_utilization > 0)
        vt_jw_f64(w, "gpu_memory_utilization", s->gpu_memory_utilization);
    vt_jw_str(w, "kv_cache_dtype", vt_setting_kv_dtype(s));
    vt_release_json(w, c->vllm);
    for (size_t i = 0; i < VT_COUNT(number); i++)
        vt_jw_u64(w, number[i].key, number[i].v);
    if (c->num_spec_tokens > 0)
        vt_jw_f64(w, "speculative_acceptance",
                  c->n_spec_positions > 0 ? c->spec_position[0] : c->spec_acceptance);
    vt_jw_bool(w, "enable_prefix_caching", c->enable_prefix_caching);
    vt_jw_bool(w, "enable_chunked_prefill", c->enable_chunked_prefill);
    vt_jw_bool(w, "async_scheduling", c->async_scheduling);
    vt_jw_str(w, "scheduling_policy", c->policy == VT_PRIORITY ? "priority" : "fcfs");
}

static void put_traffic(struct vt_jw *w, const struct traffic *t)
{
    const struct vt_traffic *over = &t->input.over;

    vt_jw_str(w, "workload", t->input.name);
    if (over->rate > 0 && !isinf(over->rate))
        vt_jw_f64(w, "request_rate", over->rate);
    else if (over->rate > 0)
        vt_jw_str(w, "request_rate", "inf");
    if (over->burstiness > 0 && !isinf(over->burstiness))
        vt_jw_f64(w, "burstiness", over->burstiness);
    if (over->requests > 0)
        vt_jw_u64(w, "num_prompts", over->requests);
    if (over->concurrency > 0 || t->concurrency > 0)
        vt_jw_u64(w, "max_concurrency",
                  over->concurrency > 0 ? over->concurrency : t->concurrency);
    if (over->prompt_tokens > 0)
        vt_jw_u64(w, "input_len", over->prompt_tokens);
    if (over->output_tokens > 0)
        vt_jw_u64(w, "output_len", over->output_tokens);
    /* What flags made; a file's lengths are too many. */
    if (t->text.len > 0 && t->text.len <= MOST_SPEC)
        vt_jw_strn(w, "dataset", t->text.data, t->text.len);
}

void settings_json(struct vt_jw *w, const struct engine_job *e,
                   const struct vt_engine_config *c, const struct vt_setting *s,
                   const struct vt_fleet *fleet, const struct traffic *t)
{
    vt_jw_map(w, "settings");
    put_engine(w, e, c, s);
    if (fleet) {
        vt_jw_u64(w, "instances", fleet->instances);
        vt_jw_str(w, "routing", fleet->routing);
    }
    put_traffic(w, t);
    vt_jw_end(w);
}
