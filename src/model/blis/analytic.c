#include "model/blis/blis.h"

#include <math.h>

/* ---- parameters ------------------------------------------------------- */

static int read_arch(struct analytic *m, const struct vt_node *params,
                     struct vt_err *err)
{
    const struct vt_node *n = vt_get(params, "hf_config");
    const char *path = NULL;
    int rc;

    if (n && n->kind == VT_MAP)
        return vt_within(err, vt_arch_read(&m->arch, n, err), "field 'hf_config'");
    if (!n)
        return vt_fail(err, VT_EINPUT,
                       "field 'hf_config' is missing: a config.json or a known model");
    rc = vt_get_str(params, "hf_config", VT_REQUIRED, &path, err);
    return rc == VT_OK ? vt_arch_load(&m->arch, path, err) : rc;
}

static int read_gpu(struct analytic *m, const struct vt_node *params,
                    struct vt_err *err)
{
    const char *name = NULL, *file = NULL;
    int rc;

    if (!vt_get(params, "gpu"))
        return vt_fail(err, VT_EINPUT, "field 'gpu' is missing");
    if ((rc = vt_get_str(params, "gpu", VT_REQUIRED, &name, err)) ||
        (rc = vt_get_str(params, "hw", VT_OPTIONAL, &file, err)))
        return rc;
    return vt_gpu_find(&m->gpu, name, file, err);
}

static int read_parallel(struct analytic *m, const struct vt_node *params,
                         struct vt_err *err)
{
    uint32_t tp = 1, dp = 1;
    int rc;

    if ((rc = vt_get_u32(params, "tp", VT_OPTIONAL, 1, 1024, &tp, err)) ||
        (rc = vt_get_u32(params, "dp", VT_OPTIONAL, 1, 1024, &dp, err)) ||
        (rc = vt_arch_check_tp(&m->arch, tp, err)))
        return rc;
    m->tp = tp;
    m->dp = dp;
    if (dp == 1 || (m->spec->dp && m->arch.experts > 0))
        return VT_OK;
    return vt_fail(err, VT_EINPUT,
                   "field 'dp' must be 1: only trained-physics knows data parallelism, "
                   "of mixtures of experts");
}

static int read_betas(struct analytic *m, const struct vt_node *params,
                      struct vt_err *err)
{
    const struct vt_node *list = vt_get(params, "beta");
    const struct analytic_spec *s = m->spec;

    m->n_beta = s->n_beta;
    if (!list)
        return VT_OK;
    if (list->kind != VT_LIST || list->n < s->min_betas || list->n > s->max_betas)
        return s->min_betas == s->max_betas
                   ? vt_fail(err, VT_EINPUT,
                             "field 'beta' must be a list of %u numbers", s->max_betas)
                   : vt_fail(err, VT_EINPUT,
                             "field 'beta' must be a list of %u to %u numbers",
                             s->min_betas, s->max_betas);
    m->n_beta = list->n;
    memset(m->beta, 0, sizeof(m->beta));
    return params_list(params, "beta", m->beta, list->n, err);
}

/* ---- sizes ------------------------------------------------------------ */

static void set_sizes(struct analytic *m)
{
    const struct vt_arch *a = &m->arch;
    double peak = m->gpu.fp16_tflops;
    uint32_t moe = 0;

    m->l = a->layers;
    m->d = a->hidden;
    m->heads = a->heads;
    m->h = floor(m->d / m->heads);
    m->dkv = a->kv_heads * m->h;
    if (a->experts > 0)
        moe = a->moe_interleave > 0 ? a->layers / (a->moe_interleave + 1) : a->layers;
    m->l_moe = moe;
    m->l_dense = a->layers - moe;
    m->f_moe = a->expert_ffn;
    m->f_dense = a->dense_ffn;
    m->f_shared = a->shared_stated ? a->shared_ffn : 0;
    m->experts = a->experts;
    m->k = a->experts_per_token;
    m->element_bytes = a->dtype_bytes;
    m->weight_bytes = a->weight_bytes;
    if (a->weight_bytes >= 1 && a->weight_bytes <= 1 && m->gpu.fp8_tflops > 0)
        peak = m->gpu.fp8_tflops;
    m->flop_us = peak * 1e6;
    m->byte_us = m->gpu.bandwidth_tbs * 1e6;
}

static int read_all(struct analytic *m, const struct vt_node *params,
                    struct vt_err *err)
{
    const struct analytic_spec *spec = m->spec;
    const char *known[9] = {"hf_config", "gpu", "hw", "tp", "dp", "alpha"};
    size_t n = 6;
    int rc;

    if (spec->max_betas > 0)
        known[n++] = "beta";
    if (spec->also)
        known[n++] = spec->also;
    memcpy(m->alpha, spec->alpha, sizeof(m->alpha));
    memcpy(m->beta, spec->beta, sizeof(m->beta));
    if ((rc = vt_only_keys(params, known, err)) || (rc = read_arch(m, params, err)) ||
        (rc = read_gpu(m, params, err)) || (rc = read_parallel(m, params, err)) ||
        (vt_get(params, "alpha") &&
         (rc = params_list(params, "alpha", m->alpha, 3, err))))
        return rc;
    return read_betas(m, params, err);
}

int analytic_open(struct vt_latency **out, size_t size,
                  const struct vt_latency_ops *ops, const struct vt_node *params,
                  const struct analytic_spec *spec, struct vt_err *err)
{
    struct analytic *m = calloc(1, size);
    int rc;

    *out = NULL;
    if (!m)
        return vt_nomem(err);
    m->spec = spec;
    m->head.ops = ops;
    rc = read_all(m, params, err);
    if (rc != VT_OK) {
        free(m);
        return rc;
    }
    set_sizes(m);
    m->head.token_us = m->alpha[2];
    /* BLIS counts whole microseconds; here is nobody behind us to cut them off. */
    m->head.post_us = spec->alpha_kind == ALPHA_POST ? floor(m->alpha[1]) : 0;
    *out = &m->head;
    return VT_OK;
}

bool analytic_blocks(const struct vt_node *params, const struct vt_engine_config *c,
                     uint32_t *blocks)
{
    static const struct analytic_spec any = {.dp = true};
    struct analytic m = {.spec = &any};
    struct vt_kv_capacity room;
    struct vt_kv_query q;

    if (!vt_get(params, "hf_config") || !vt_get(params, "gpu") ||
        read_arch(&m, params, NULL) != VT_OK || read_gpu(&m, params, NULL) != VT_OK ||
        read_parallel(&m, params, NULL) != VT_OK)
        return false;
    vt_kv_query_init(&q);
    q.engine = *c;
    q.kv.arch = &m.arch;
    q.kv.tp = (uint32_t)m.tp;
    q.gpu = &m.gpu;
    if (vt_kv_capacity(&q, &room, NULL) != VT_OK)
        return false;
    *blocks = room.engine.num_gpu_blocks;
    return true;
}

double analytic_arrival(const struct vt_latency *base, uint32_t prompt_tokens)
{
    const struct analytic *m = (const struct analytic *)base;

    if (m->spec->alpha_kind == ALPHA_POST)
        return m->alpha[0];
    return m->alpha[0] + m->alpha[1] * prompt_tokens;
}

/* ---- bases ------------------------------------------------------------ */

struct bases_unit bases_unit_of(const struct analytic *m)
{
    return (struct bases_unit){
        .projection_flop = m->l * 2 * m->d * (2 * m->d + 2 * m->dkv) / (m->tp * m->dp),
        .attention_flop = m->l * 4 * (m->heads / m->tp) * m->h / m->dp,
        .kv_bytes = m->l * 2 * (m->dkv / (m->tp * m->dp)) * 2,
        .flop_us = m->flop_us,
        .byte_us = m->byte_us,
    };
}

struct bases bases_of(const struct bases_unit *u, const struct vt_step_plan *p)
{
    double prefill = p->prefill_tokens, decode = p->decode_tokens;
    double ctx = (double)p->decode_ctx, token = u->projection_flop + u->ffn_flop;
    double products = 0;

    /* A prompt's chunk pays for the whole prompt's length, wherever it lies in it. */
    for (uint32_t i = 0; i < p->n; i++)
        if (p->item[i].prefill)
            products +=
                p->item[i].tokens * (p->item[i].known + p->item[i].tokens / 2.0);

    return (struct bases){
        .prefill_compute =
            (token * prefill + u->attention_flop * products) / u->flop_us,
        .prefill_kv = u->kv_bytes * prefill / u->byte_us,
        .decode_compute = (token * decode + u->attention_flop * ctx) / u->flop_us,
        .decode_kv = u->kv_bytes * (ctx + decode) / u->byte_us,
    };
}
