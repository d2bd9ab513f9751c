/* search_site.c - a setting made ready to run: KV pool, model, router. */
#include <math.h>
#include <string.h>

#include "tune/tune_search.h"

#define GIB 0x1p30

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

static double element_of(const struct vt_site *site, const struct vt_setting *s)
{
    return s->kv_bytes > 0 ? s->kv_bytes : site->kv.element_bytes;
}

/* Of a setting, or of the fleet that the caller has. */
static uint32_t ranks_of(const struct vt_site *site, const struct vt_setting *s)
{
    if (s->dp > 1)
        return s->dp;
    return site->estimate && site->estimate->dp > 1 ? site->estimate->dp : 1;
}

static void query_pool(struct vt_kv_query *q, const struct vt_deployment *d,
                       const struct vt_site *site, const struct vt_setting *s)
{
    vt_kv_query_init(q);
    q->engine = d->engine;
    q->kv = site->kv;
    q->kv.tp = s->tp;
    q->kv.element_bytes = element_of(site, s);
    q->gpu = site->kv.arch ? site->gpu : NULL;
    q->dp = ranks_of(site, s);
    q->gpu_memory_utilization = s->gpu_memory_utilization;
    q->sampler_bytes = site->sampler_bytes;
    q->graphs = site->estimate ? site->estimate->graphs : NULL;
}

static uint32_t gpus_of(const struct vt_kv_query *q)
{
    return (q->kv.tp > 0 ? q->kv.tp : 1) * (q->kv.pp > 0 ? q->kv.pp : 1);
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
        return vt_offload_settle(&d->engine, site->gpu, 0, 0, s->tp, err);
    if (!site->gpu) {
        rc = vt_kv_groups(&d->engine, &q->kv, &block, err);
        return rc == VT_OK ? vt_offload_settle(&d->engine, NULL, block,
                                               site->kv.arch->layers, gpus_of(q), err)
                           : rc;
    }
    rc = vt_kv_capacity(q, &room, err);
    if (rc != VT_OK)
        return rc;
    d->kv_gib = room.cache - (s->spec_tokens > 0 ? site->draft_gib / s->tp : 0);
    blocks = floor(d->kv_gib * GIB / (double)room.block_bytes);
    if (!(blocks >= 2))
        return vt_fail(err, VT_EINPUT, "the draft model leaves no room for a KV cache");
    d->engine = room.engine;
    d->engine.num_gpu_blocks = (uint32_t)fmin(blocks, 0x1p30);
    return vt_offload_settle(&d->engine, site->gpu, room.block_bytes,
                             site->kv.arch->layers, gpus_of(q), err);
}

/* ---- what times it ------------------------------------------------------- */

static struct vt_estimate_query query_of(const struct vt_site *site,
                                         const struct vt_setting *s)
{
    struct vt_estimate_query q = {.arch = site->kv.arch,
                                  .gpu = site->gpu,
                                  .pp = site->kv.pp,
                                  .kv_bytes = site->kv.element_bytes};

    if (site->estimate)
        q = *site->estimate;
    q.tp = s->tp;
    q.budget = s->max_num_batched_tokens;
    q.most_decode = s->max_num_seqs * (1 + s->spec_tokens);
    q.vllm = site->engine.vllm;
    if (s->kv_bytes > 0)
        q.kv_bytes = s->kv_bytes;
    q.dp = ranks_of(site, s);
    return q;
}

/* Times that nothing can be made of but what they are. */
static int check_fixed(const struct vt_site *site, const struct vt_setting *s,
                       struct vt_err *err)
{
    double measured = site->measured_kv_bytes > 0 ? site->measured_kv_bytes : 2;
    double element = element_of(site, s) > 0 ? element_of(site, s) : measured;
    uint32_t own_tp = 1, tp = s->tp;
    int rc = vt_get_u32(site->profile ? site->profile->engine : NULL,
                        "tensor_parallel_size", VT_OPTIONAL, 1, 1024, &own_tp, err);

    if (rc != VT_OK)
        return rc;
    if (site->model && site->model_tp > 0)
        own_tp = site->model_tp;
    if (tp == own_tp && fabs(element - measured) < 1e-9)
        return VT_OK;
    if (!site->model && tp != own_tp && !(site->kv.arch && site->gpu))
        return vt_fail(err, VT_EINPUT,
                       "tensor-parallel-size %u: the model's sizes are not known; give "
                       "--hf-config",
                       tp);
    return vt_fail(err, VT_EINPUT,
                   "other GPUs per engine or KV elements than the profile's need "
                   "a profile of kind 'step'");
}

/* Who states the width of the profile's KV elements says that reading them takes as
 * long as they are wide, whatever the law found of other engines. */
static void read_as_stated(struct vt_source *from, const struct vt_site *site,
                           const struct vt_estimate_query *q)
{
    double element = vt_arch_kv_element(q->arch, q->kv_bytes);

    if (!(site->measured_kv_bytes > 0))
        return;
    from->params.context_ktoken *= element / site->measured_kv_bytes;
    from->kv_bytes = element;
}

/* A profile for what it was measured on, or carried over from there. */
static int time_profile(const struct vt_site *site, const struct vt_setting *s,
                        const struct vt_estimate_query *q, bool *as_it_is,
                        struct vt_estimate *e, struct vt_err *err)
{
    struct vt_source from;

    if (!q->arch || !q->gpu || vt_source_of(&from, site->profile, q, NULL) != VT_OK) {
        *as_it_is = true;
        return check_fixed(site, s, err);
    }
    read_as_stated(&from, site, q);
    *as_it_is = vt_source_holds(&from, q) && !(site->measured_kv_bytes > 0);
    if (*as_it_is)
        return VT_OK;
    return site->may_estimate ? vt_source_best(e, &from, q, err)
                              : vt_estimate_from(e, &from, q, err);
}

int vt_site_timing(const struct vt_site *site, const struct vt_setting *s,
                   bool *as_it_is, struct vt_estimate *e, struct vt_err *err)
{
    struct vt_estimate_query q = query_of(site, s);

    *as_it_is = site->model != NULL;
    if (site->model)
        return check_fixed(site, s, err);
    return site->profile ? time_profile(site, s, &q, as_it_is, e, err)
                         : vt_estimate(e, &q, err);
}

static int time_steps(struct vt_deployment *d, const struct vt_site *site,
                      const struct vt_setting *s, struct vt_err *err)
{
    struct vt_estimate e;
    bool as_it_is;
    int rc = vt_site_timing(site, s, &as_it_is, &e, err);

    if (rc != VT_OK)
        return rc;
    d->model = site->model ? site->model : site->profile ? site->profile->model : NULL;
    if (as_it_is)
        return VT_OK;
    d->params = e.params;
    rc = vt_step_open(&d->scaled, &d->params, err);
    d->model = d->scaled;
    return rc;
}

static int time_drafts(struct vt_deployment *d, const struct vt_site *site,
                       const struct vt_setting *s, struct vt_err *err)
{
    struct vt_estimate_query q = query_of(site, s);

    if (!site->law_drafts || !d->engine.use_eagle || !q.arch || !q.gpu)
        return VT_OK;
    return vt_estimate_draft(&d->engine.spec_draft_us, &q, err);
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
        rc = time_drafts(d, site, s, err);
    if (rc == VT_OK)
        rc = vt_engine_config_check(&d->engine, err);
    return rc == VT_OK ? time_steps(d, site, s, err) : rc;
}

void vt_undeploy(struct vt_deployment *d)
{
    vt_latency_close(d->scaled);
    d->scaled = NULL;
}
