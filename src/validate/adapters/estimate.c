/* estimate.c - llm-optimizer's estimate: a roofline of whole batches, and the
 * concurrency whose throughput is the stage's rate. It knows no scheduler, no prefix
 * cache and no experts. */
#include <math.h>

#include "validate/adapters/adapter.h"

enum { POINTS = 11 }; /* concurrencies 1, 2, 4, ..., 1024 */

#define NEAR_ENOUGH 0.15
#define GIB         1073741824.0

/* ---- throughput matching --------------------------------------------- */

/* The first point that is near enough, or else the nearest. */
static const struct estimate_point *match_rate(const struct estimate_point *p, size_t n,
                                               double rate)
{
    const struct estimate_point *best = NULL;
    double least = INFINITY;

    for (size_t i = 0; i < n; i++) {
        double off = fabs(p[i].req_per_s - rate) / rate;

        if (!(p[i].req_per_s > 0) || isinf(p[i].ttft_ms) || !(off < least))
            continue;
        best = &p[i];
        least = off;
        if (off <= NEAR_ENOUGH)
            break;
    }
    return best;
}

static void set_means(struct vt_stage_metrics *m, double e2e, double ttft, double itl)
{
    for (int i = 0; i < VT_ERROR_METRICS; i++)
        m->ms[i] = NAN;
    m->ms[0] = e2e;
    m->ms[3] = ttft;
    m->ms[6] = itl;
}

int estimate_match(struct gather *g, const struct vt_experiment *e,
                   const struct estimate_point *p, size_t n, struct vt_err *err)
{
    double e2e = 0, ttft = 0, itl = 0, requests = 0;

    for (size_t i = 0; i < e->n_plan; i++) {
        const struct estimate_point *at;
        double weight = (double)e->plan[i].requests;

        if (!(e->plan[i].rate > 0))
            return vt_fail(err, VT_EINPUT, "stage %zu has a rate of %g", i,
                           e->plan[i].rate);
        at = match_rate(p, n, e->plan[i].rate);
        if (!at)
            return vt_fail(err, VT_EINPUT, "no concurrency that fits into memory");
        g->stage[i].index = (int32_t)i;
        g->stage[i].requests = e->plan[i].requests;
        set_means(&g->stage[i], at->e2e_ms, at->ttft_ms, at->itl_ms);
        e2e += weight * at->e2e_ms;
        ttft += weight * at->ttft_ms;
        itl += weight * at->itl_ms;
        requests += weight;
    }
    if (requests == 0)
        return vt_fail(err, VT_EINPUT, "the profile has no requests");
    g->summary.index = -1;
    g->summary.requests = g->summary.sent = (uint64_t)requests;
    set_means(&g->summary, e2e / requests, ttft / requests, itl / requests);
    return VT_OK;
}

/* ---- the roofline ---------------------------------------------------- */

struct roofline {
    double layers, d, heads, d_head, d_kv, d_ff, element; /* element: bytes */
    double weights;                                       /* bytes */
    double peak, bandwidth, memory; /* of all GPUs: FLOP/s, bytes/s, bytes */
};

/* Milliseconds for `batch` requests that compute `fresh` tokens each with a context of
 * `context`. */
static double roofline_ms(const struct roofline *r, double batch, double fresh,
                          double context, double mfu)
{
    double flops =
        batch * r->layers *
        (2 * fresh * (r->d * r->d + 2 * r->d * r->d_kv) +
         4 * r->heads * fresh * context * r->d_head + 3 * r->heads * fresh * context +
         2 * fresh * r->d * r->d + 4 * fresh * r->d * r->d_ff);
    double bytes = r->weights + 2 * r->layers * r->d_kv * r->element * context * batch +
                   batch * context * r->d * r->element +
                   batch * r->heads * context * context * r->element;

    if (flops / bytes < r->peak / r->bandwidth)
        return bytes / r->bandwidth * 1e3;
    return flops / (r->peak * mfu) * 1e3;
}

static size_t sweep_concurrencies(const struct roofline *r,
                                  const struct vt_experiment *e,
                                  struct estimate_point p[POINTS])
{
    double in = e->prefix.question_len + (double)e->prefix.system_prompt_len,
           out = e->prefix.output_len;
    size_t n = 0;

    for (uint32_t c = 1; n < POINTS && c <= e->max_num_seqs; c *= 2) {
        double cache = 2 * r->layers * r->d_kv * r->element * (in + out) * c;
        struct estimate_point *at = &p[n];

        if (r->weights + cache > r->memory)
            break;
        at->ttft_ms = roofline_ms(r, c, in, in, 0.45);
        at->itl_ms = roofline_ms(r, c, 1, in + 1, 0.30);
        at->e2e_ms = at->ttft_ms + out * at->itl_ms;
        at->req_per_s = c / (at->e2e_ms / 1e3);
        n++;
    }
    return n;
}

/* ---- the adapter ----------------------------------------------------- */

int estimate_can_run(const struct adapter_job *j, struct vt_err *err)
{
    bool fp8 = strcmp(j->e->precision, "FP8") == 0;
    struct vt_arch arch;
    struct vt_gpu gpu;
    int rc = vt_gpu_find(&gpu, adapter_gpu(j->e), NULL, err);

    if (rc == VT_OK && fp8 && gpu.fp8_tflops <= 0)
        rc = vt_fail(err, VT_EINPUT, "%s computes no FP8", j->e->hardware);
    if (rc == VT_OK)
        rc = adapter_work_check(j->e, VT_WORKLOAD_PROFILE, err);
    return rc == VT_OK ? adapter_arch(&arch, j, NULL, err) : rc;
}

int estimate_run(const struct adapter_job *j, struct gather *g, struct vt_err *err)
{
    bool fp8 = strcmp(j->e->precision, "FP8") == 0;
    struct estimate_point p[POINTS];
    struct roofline r;
    struct vt_arch arch;
    struct vt_gpu gpu;
    int rc = vt_gpu_find(&gpu, adapter_gpu(j->e), NULL, err);

    if (rc == VT_OK)
        rc = adapter_arch(&arch, j, NULL, err);
    if (rc != VT_OK)
        return rc;
    r = (struct roofline){.layers = arch.layers, .d = arch.hidden, .heads = arch.heads};
    r.d_head = floor(r.d / r.heads);
    r.d_kv = arch.kv_heads * r.d_head;
    r.d_ff = 4 * r.d;
    r.element = fp8 ? 1 : 2;
    r.weights = r.element * r.layers *
                (r.d * (r.d + 2 * r.d_kv) + r.d * r.d + 2 * r.d * r.d_ff);
    r.peak = (fp8 ? gpu.fp8_tflops : gpu.fp16_tflops) * 1e12 * j->e->tp;
    r.bandwidth = gpu.bandwidth_tbs * 1000 * GIB * j->e->tp;
    r.memory = gpu.memory_gb * GIB * j->e->tp;
    return estimate_match(g, j->e, p, sweep_concurrencies(&r, j->e, p), err);
}
