/* trained_physics.c - rooflines with learned factors, tensor and data
 * parallelism and mixtures of experts: BLIS's default.
 *
 * All experts of a GPU are read in every step, however few tokens there are, and the KV
 * cache always has two bytes. The default factor of a decode's computing is 0, so very
 * large batches come out too fast. */
#include "model/blis/blis.h"

#include <math.h>

/* Order of the coefficients; more than 8 split the maxima. */
enum {
    PREFILL,     /* b1: computing, or the larger one */
    DECODE,      /* b2: the same */
    WEIGHTS,     /* b3 */
    PEERS,       /* b4: all-reduce */
    LAYER,       /* b5: us each */
    REQUEST,     /* b6: us each */
    STEP,        /* b7: us */
    INTERLEAVED, /* b8: us for each layer with experts between dense ones */
    PREFILL_KV,  /* b9: given by 9 or more */
    DECODE_KV,   /* b10: given by 10 or more */
    DISPATCH     /* b11: tokens to experts; b4 if not given */
};

struct trained_physics {
    struct analytic a;
    struct bases_unit unit;
    double weights_us;
    double reduce_us, dispatch_us; /* each token */
    double fixed_us;               /* layers, step, interleaving */
};

static const struct analytic_spec spec = {
    .alpha_kind = ALPHA_POST,
    .alpha = {15563.199579, 777.3455, 45.907545},
    .beta = {0.152128, 0.0, 1.36252915, 0.752037, 32.09546717, 4.41684444, 126.024825,
             481.8613888, 0.0, 1.94710771, 0.752037},
    .n_beta = 11,
    .min_betas = 7,
    .max_betas = 11,
    .dp = true,
    .also = "moe_comm_backend",
};

static void trained_physics_step(const struct vt_latency *base,
                                 const struct vt_step_shape *s,
                                 struct vt_step_cost *cost)
{
    const struct trained_physics *m = (const struct trained_physics *)base;
    const double *beta = m->a.beta;
    const struct vt_step_plan *p = s->plan;
    double tokens = (double)p->prefill_tokens + p->decode_tokens;
    struct bases b = bases_of(&m->unit, p);
    double prefill = beta[PREFILL] * fmax(b.prefill_compute, b.prefill_kv);
    double decode = beta[DECODE] * fmax(b.decode_compute, b.decode_kv);

    if (m->a.n_beta > PREFILL_KV)
        prefill = beta[PREFILL] * b.prefill_compute + beta[PREFILL_KV] * b.prefill_kv;
    if (m->a.n_beta > DECODE_KV)
        decode = beta[DECODE] * b.decode_compute + beta[DECODE_KV] * b.decode_kv;
    cost->gpu_us = prefill + decode + beta[WEIGHTS] * m->weights_us +
                   beta[PEERS] * m->reduce_us * tokens +
                   beta[DISPATCH] * m->dispatch_us * tokens + beta[REQUEST] * p->n +
                   m->fixed_us;
}

/* ---- opening ---------------------------------------------------------- */

static double weights_us(const struct analytic *a)
{
    double group = a->tp * a->dp;
    double elements = a->l * a->d * (2 * a->d + 2 * a->dkv) / a->tp +
                      a->l_dense * 3 * a->d * a->f_dense / a->tp +
                      a->l_moe * (3 * a->d * a->f_moe * a->experts / group +
                                  3 * a->d * a->f_shared / a->tp);

    return elements * a->weight_bytes / a->byte_us;
}

/* Attention and dense layers reduce within each data-parallel rank; a mixture's own
 * layers do so only where there is one rank, and send tokens to experts otherwise. */
static double reduce_us(const struct analytic *a)
{
    double unit = a->d * a->element_bytes * 2 * (a->tp - 1) / a->tp / a->byte_us;
    double units = (a->l + a->l_dense) / a->dp;

    if (a->dp <= 1)
        units += a->l_moe;
    return units * unit;
}

/* How often a token is sent: once to all, or once to each of its experts. */
static int read_copies(const struct vt_node *params, double k, double *copies,
                       struct vt_err *err)
{
    static const struct {
        const char *name;
        bool each;
    } row[] = {
        {"allgather_reducescatter", false},
        {"naive", false},
        {"pplx", true},
        {"deepep_high_throughput", true},
        {"deepep_low_latency", true},
        {"mori", true},
        {"flashinfer_all2allv", true},
    };
    const char *name = row[0].name;
    int rc = vt_get_str(params, "moe_comm_backend", VT_OPTIONAL, &name, err);

    if (rc != VT_OK)
        return rc;
    for (size_t i = 0; i < VT_COUNT(row); i++)
        if (strcmp(name, row[i].name) == 0) {
            *copies = row[i].each ? k : 1;
            return VT_OK;
        }
    return vt_fail(err, VT_EINPUT, "unknown moe_comm_backend '%.40s'", name);
}

static const struct vt_latency_ops ops = {
    .name = "trained-physics",
    .step = trained_physics_step,
    .arrival_us = analytic_arrival,
};

static int trained_physics_open(struct vt_latency **out, const struct vt_node *params,
                                struct vt_err *err)
{
    struct trained_physics *m;
    struct analytic *a;
    double copies = 1, group;
    int rc = analytic_open(out, sizeof(*m), &ops, params, &spec, err);

    if (rc != VT_OK)
        return rc;
    m = (struct trained_physics *)*out;
    a = &m->a;
    if ((rc = read_copies(params, a->k, &copies, err))) {
        vt_latency_close(*out);
        *out = NULL;
        return rc;
    }
    group = a->tp * a->dp;
    if (a->n_beta <= DISPATCH)
        a->beta[DISPATCH] = a->beta[PEERS];
    m->unit = bases_unit_of(a);
    m->unit.ffn_flop =
        6 * a->d *
        (a->l_dense * a->f_dense + a->l_moe * (a->f_moe * a->k + a->f_shared)) / group;
    m->weights_us = weights_us(a);
    m->reduce_us = reduce_us(a);
    if (a->dp > 1)
        m->dispatch_us = a->l_moe * copies / a->dp * (group - 1) / group * 2 * a->d *
                         a->element_bytes / a->byte_us;
    m->fixed_us = a->beta[LAYER] * a->l + a->beta[STEP];
    if (a->arch.moe_interleave > 0)
        m->fixed_us += a->beta[INTERLEAVED] * a->l_moe;
    return VT_OK;
}

const struct vt_model_kind model_trained_physics = {
    .name = "trained-physics",
    .help = "rooflines, parallelism and experts with learned factors (BLIS's default)",
    .example = "trained-physics:hf_config=mixtral-8x7b-instruct-v0.1,gpu=H100,tp=2",
    .open = trained_physics_open,
};
