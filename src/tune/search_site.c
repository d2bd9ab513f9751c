/* search_site.c - a setting made ready to run: KV pool, model, router. */
#include <math.h>
#include <string.h>

#include "tune/tune_search.h"

#define GIB       0x1p30
#define REDUCE_US 8.0 /* one all-reduce of few bytes over NVLink: assumed */

/* Where a pool is too small for a request of the greatest length. */
static int refuse_length(const struct vt_deployment *d, const struct vt_kv_query *q,
                         uint32_t room, struct vt_err *err)
{
    char advice[VT_KV_ADVICE] = "";

    if (q->gpu)
        vt_kv_advice(advice, q, d->engine.max_model_len);
    return vt_fail(err, VT_EINPUT,
                   "%u KV blocks hold %u tokens of a request, less than max-model-len "
                   "%u%s%s",
                   d->engine.num_gpu_blocks, room, d->engine.max_model_len,
                   advice[0] ? "; enough would be " : "", advice);
}

static void query_pool(struct vt_kv_query *q, const struct vt_deployment *d,
                       const struct vt_site *site, const struct vt_setting *s)
{
    vt_kv_query_init(q);
    q->engine = d->engine;
    q->kv = site->kv;
    q->kv.tp = s->tp;
    q->gpu = site->kv.arch ? site->gpu : NULL;
    q->gpu_memory_utilization = s->gpu_memory_utilization;
    q->sampler_bytes = site->sampler_bytes;
}

static int size_pool(struct vt_deployment *d, const struct vt_site *site,
                     const struct vt_setting *s, const struct vt_kv_query *q,
                     struct vt_err *err)
{
    struct vt_kv_capacity room;
    uint64_t block;
    double blocks;
    int rc;

    if (!site->kv.arch)
        return VT_OK;
    if (!site->gpu)
        return vt_kv_groups(&d->engine, &q->kv, &block, err);
    rc = vt_kv_capacity(q, &room, err);
    if (rc != VT_OK)
        return rc;
    d->kv_gib = room.cache - (s->spec_tokens > 0 ? site->draft_gib / s->tp : 0);
    blocks = floor(d->kv_gib * GIB / (double)room.block_bytes);
    if (!(blocks >= 2))
        return vt_fail(err, VT_EINPUT, "the draft model leaves no room for a KV cache");
    d->engine = room.engine;
    d->engine.num_gpu_blocks = (uint32_t)fmin(blocks, 0x1p30);
    return VT_OK;
}

/* ---- a step model for an engine that was not captured ------------------- */

/* Halving a KV element halves what decoding reads of the context. n GPUs share weights,
 * matrices and KV heads, so what is proportional to those is divided by n; to it comes
 * what they tell each other: two all-reduces a layer. How long the host takes stays. */
static struct vt_step_scaling scaling_of(const struct vt_site *site, uint32_t from,
                                         uint32_t to)
{
    const struct vt_arch *a = site->kv.arch;
    double measured = site->measured_kv_bytes > 0 ? site->measured_kv_bytes : 2;
    double element = site->kv.element_bytes > 0 ? site->kv.element_bytes : measured;
    struct vt_step_scaling s = {.share = (double)from / to};

    s.context = element / measured * s.share;
    if (from != to && to > 1 && a && site->gpu) {
        double n = to, sent = 2.0 * a->layers * a->hidden * 2.0 * 2 * (n - 1) / n;
        double link = site->gpu->link_gbs > 0 ? site->gpu->link_gbs / 2 : 25;

        s.step_us = 2.0 * a->layers * REDUCE_US;
        s.token_us = sent / (link * 1e3);
    }
    return s;
}

/* The profile's model for engines that differ from the captured ones: another number of
 * GPUs, another size of a KV element. d->scaled stays NULL where it is right as it is.
 */
static int scale_model(struct vt_deployment *d, const struct vt_site *site, uint32_t tp,
                       struct vt_err *err)
{
    const struct vt_node *model =
        site->profile ? vt_get(site->profile->root, "model") : NULL;
    const char *kind = "";
    struct vt_step_params *p = &d->params;
    struct vt_step_scaling c;
    uint32_t from = 1;
    int rc;

    if ((rc = vt_get_u32(site->profile ? site->profile->engine : NULL,
                         "tensor_parallel_size", VT_OPTIONAL, 1, 1024, &from, err)) ||
        (rc = vt_get_str(model, "kind", VT_OPTIONAL, &kind, err)))
        return rc;
    if (site->model && site->model_tp > 0)
        from = site->model_tp;
    c = scaling_of(site, from, tp);
    if (tp == from && c.context == 1)
        return VT_OK;
    if (site->model || strcmp(kind, "step") != 0)
        return vt_fail(err, VT_EINPUT,
                       "other GPUs per engine or KV elements than the profile's need "
                       "a profile of kind 'step'");
    if (tp != from && !(site->kv.arch && site->gpu))
        return vt_fail(err, VT_EINPUT,
                       "tensor-parallel-size %u: the model's sizes are not known; give "
                       "--hf-config",
                       tp);
    vt_step_params_init(p);
    if ((rc = vt_step_params_read(p, vt_get(model, "params"), err)))
        return rc;
    vt_step_scale(p, &c);
    return vt_step_open(&d->scaled, p, err);
}

static int estimate_model(struct vt_deployment *d, const struct vt_site *site,
                          const struct vt_setting *s, struct vt_err *err)
{
    struct vt_estimate_query q = *site->estimate;
    struct vt_estimate e;
    int rc = VT_OK;

    q.tp = s->tp;
    q.dp = s->dp;
    if (site->profile) {
        vt_step_params_init(&d->params);
        rc = vt_step_params_read(
            &d->params, vt_get(vt_get(site->profile->root, "model"), "params"), err);
        if (rc == VT_OK)
            rc = vt_estimate_from(&e, &d->params, site->measured_on, &q, err);
    } else {
        rc = vt_estimate(&e, &q, err);
    }
    if (rc != VT_OK)
        return rc;
    d->params = e.params;
    return vt_step_open(&d->scaled, &d->params, err);
}

/* ---- the whole ------------------------------------------------------- */

int vt_deploy(struct vt_deployment *d, const struct vt_site *site,
              const struct vt_setting *s, struct vt_err *err)
{
    struct vt_kv_query q;
    uint32_t room;
    int rc;

    *d = (struct vt_deployment){
        .engine = site->engine,
        .many = s->dp > 1,
        .fleet = {.instances = s->dp,
                  .ranks = site->lockstep ? s->dp : 1,
                  .routing = s->routing ? s->routing : "round-robin",
                  .staleness_ns = site->staleness_ns,
                  .seed = site->engine.seed},
    };
    d->engine.max_num_seqs = s->max_num_seqs;
    d->engine.max_num_batched_tokens = s->max_num_batched_tokens;
    d->engine.num_spec_tokens = s->spec_tokens;
    d->engine.use_eagle = s->spec_tokens > 0 && site->engine.use_eagle;
    d->engine.enable_prefix_caching = s->prefix_caching;
    query_pool(&q, d, site, s);
    rc = size_pool(d, site, s, &q, err);
    /* vLLM would refuse to start with a pool that can't hold one request of the
     * greatest length. */
    room = vt_longest_request(&d->engine);
    if (rc == VT_OK && room < d->engine.max_model_len) {
        if (site->shrink && room > 1)
            vt_set_max_model_len(&d->engine, room);
        else
            rc = refuse_length(d, &q, room, err);
    }
    if (rc == VT_OK)
        rc = vt_engine_config_check(&d->engine, err);
    if (rc == VT_OK)
        rc = site->estimate ? estimate_model(d, site, s, err)
                            : scale_model(d, site, s->tp, err);
    d->model = d->scaled       ? d->scaled
               : site->model   ? site->model
               : site->profile ? site->profile->model
                               : NULL;
    return rc;
}

void vt_undeploy(struct vt_deployment *d)
{
    vt_latency_close(d->scaled);
    d->scaled = NULL;
}
