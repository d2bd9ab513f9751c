/* search_site.c - a setting made ready to run: KV pool, model, router. */
#include <math.h>

#include "tune/tune_search.h"

#define GIB 0x1p30

static int size_pool(struct vt_deployment *d, const struct vt_site *site,
                     const struct vt_setting *s, struct vt_err *err)
{
    struct vt_kv_capacity room;
    struct vt_kv_query q;
    double block;
    int rc;

    if (!site->arch)
        return VT_OK;
    vt_kv_query_init(&q);
    q.arch = site->arch;
    q.gpu = site->gpu;
    q.tp = s->tp;
    q.gpu_memory_utilization = s->gpu_memory_utilization;
    q.max_num_batched_tokens = s->max_num_batched_tokens;
    q.max_num_seqs = s->max_num_seqs;
    q.block_size = d->engine.block_size;
    q.kv_element_bytes = site->kv_element_bytes;
    q.sampler_bytes = site->sampler_bytes;
    rc = vt_kv_capacity(&q, &room, err);
    if (rc != VT_OK)
        return rc;
    d->kv_gib = room.cache - (s->spec_tokens > 0 ? site->draft_gib / s->tp : 0);
    block = floor(room.token_bytes * q.block_size);
    if (!(d->kv_gib * GIB / block >= 2))
        return vt_fail(err, VT_EINPUT, "the draft model leaves no room for a KV cache");
    d->engine.num_gpu_blocks = (uint32_t)fmin(floor(d->kv_gib * GIB / block), 0x1p30);
    return VT_OK;
}

int vt_deploy(struct vt_deployment *d, const struct vt_site *site,
              const struct vt_setting *s, struct vt_err *err)
{
    uint64_t room;
    int rc;

    *d = (struct vt_deployment){
        .engine = site->engine,
        .many = s->dp > 1,
        .fleet = {.instances = s->dp,
                  .routing = s->routing ? s->routing : "round-robin",
                  .staleness_ns = site->staleness_ns,
                  .seed = site->engine.seed},
    };
    d->engine.max_num_seqs = s->max_num_seqs;
    d->engine.max_num_batched_tokens = s->max_num_batched_tokens;
    d->engine.num_spec_tokens = s->spec_tokens;
    d->engine.use_eagle = s->spec_tokens > 0 && site->engine.use_eagle;
    d->engine.enable_prefix_caching = s->prefix_caching;
    rc = size_pool(d, site, s, err);
    /* vLLM would refuse to start with a pool that can't hold one request of the
     * greatest length. */
    room = (uint64_t)(d->engine.num_gpu_blocks - 1) * d->engine.block_size;
    if (rc == VT_OK && room < d->engine.max_model_len)
        rc = vt_fail(err, VT_EINPUT,
                     "%u KV blocks hold %llu tokens, less than max-model-len %u",
                     d->engine.num_gpu_blocks, (unsigned long long)room,
                     d->engine.max_model_len);
    if (rc == VT_OK)
        rc = vt_engine_config_check(&d->engine, err);
    if (rc == VT_OK)
        rc = search_model(&d->scaled, site, s->tp, err);
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
