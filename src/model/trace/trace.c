/* trace.c - steps and first tokens drawn from a recorded trace, by vllm-vcr's
 * rules: a step lasts as long as the gap that one of its decoders draws from a recorded
 * request like it, or as the step's prompt chunks, whichever is longer. What a lone
 * request's first token takes beyond its chunks delays that request's whole output.
 *
 * Not modelled: how many tokens a recorded chunk of output held (the engine decides),
 * KV transfers, host costs apart from the GPU's. */
#include "model/params.h"
#include "model/trace/fit.h"

struct trace_model {
    struct vt_latency head;
    struct trace_fit fit;
};

/* One stream of draws for each purpose. */
enum { DRAW_DONOR = 0xd0, DRAW_GAP = 0x9a, DRAW_FIRST = 0xf1 };

/* ---- draws ------------------------------------------------------------ */

/* Between the neighbours of a place among n ascending values. */
static double quantile(const double *v, uint32_t n, double u)
{
    double at = u * (n - 1), part;
    uint32_t lo = (uint32_t)at;

    if (lo + 1 >= n)
        return v[n - 1];
    part = at - lo;
    return v[lo] * (1 - part) + v[lo + 1] * part;
}

/* By weight: the first whose weights, summed, exceed the draw. */
static const struct trace_donor *pick_donor(const struct trace_cell *c, double u)
{
    double at = u * c->donor[c->n - 1].upto;
    size_t lo = 0, hi = c->n - 1;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (c->donor[mid].upto <= at)
            lo = mid + 1;
        else
            hi = mid;
    }
    return &c->donor[lo];
}

/* A request keeps its donor as long as the load stays in its bucket. */
static double draw_gap(const struct trace_fit *f, const struct vt_step_shape *s,
                       const struct vt_item *it)
{
    uint32_t row =
        trace_prompt_bucket(it->prompt_tokens) + (it->churn ? TRACE_PROMPTS : 0);
    uint32_t col = trace_load_bucket(s->plan->running);
    double u = vt_draw_f64(vt_hash2(s->seed, DRAW_DONOR), it->tag, col);
    const struct trace_donor *d = pick_donor(f->near[row][col], u);

    return quantile(d->gap, d->n,
                    vt_draw_f64(vt_hash2(s->seed, DRAW_GAP), it->tag, s->step));
}

/* ---- steps ------------------------------------------------------------ */

/* The decoder whose draw the whole batch keeps pace with: the one with the longest
 * prompt, by buckets; the earliest of equals. */
static const struct vt_item *find_pacer(const struct vt_step_plan *p)
{
    const struct vt_item *best = NULL;
    uint32_t best_bucket = 0;

    for (uint32_t i = 0; i < p->n; i++) {
        const struct vt_item *it = &p->item[i];
        uint32_t bucket;

        if (it->prefill)
            continue;
        bucket = trace_prompt_bucket(it->prompt_tokens);
        if (best &&
            (bucket < best_bucket || (bucket == best_bucket && it->tag >= best->tag)))
            continue;
        best = it;
        best_bucket = bucket;
    }
    return best;
}

static void trace_step(const struct vt_latency *base, const struct vt_step_shape *s,
                       struct vt_step_cost *cost)
{
    const struct trace_model *m = (const struct trace_model *)base;
    const struct vt_item *it = find_pacer(s->plan);
    double gap = it ? draw_gap(&m->fit, s, it) : 0.0;
    const struct vt_step_plan *p = s->plan;
    double chunks = 0.0;

    for (uint32_t i = 0; i < p->n && p->n_prefills > 0; i++)
        if (p->item[i].prefill)
            chunks += trace_chunk_cost(&m->fit, p->item[i].tokens, p->item[i].computed);
    if (p->n_prefills > 0 && p->prefill_tokens + p->decode_tokens >= m->fit.budget &&
        chunks < m->fit.full_step)
        chunks = m->fit.full_step;
    cost->gpu_us = 1e3 * (gap > chunks ? gap : chunks);
}

/* ---- first tokens ----------------------------------------------------- */

static double sampled_service(const struct trace_fit *f, double tokens, double u)
{
    int own = (int)trace_prompt_bucket((uint32_t)tokens), best = -1, best_far = 0;
    const struct trace_service *s;
    double scale = 1.0;

    for (int i = 0; i < TRACE_PROMPTS; i++) {
        int far = i > own ? i - own : own - i;

        if (f->service[i].n > 0 && (best < 0 || far < best_far)) {
            best = i;
            best_far = far;
        }
    }
    if (best < 0) /* trace_fit_open() has seen to it that there is one */
        return 0.0;
    s = &f->service[best];
    if (best_far > 0) {
        scale = tokens / s->median_tokens;
        scale = scale < 0.25 ? 0.25 : scale > 8.0 ? 8.0 : scale;
    }
    return scale * quantile(s->ms, s->n, u);
}

static double trace_first_token(const struct vt_latency *base,
                                const struct vt_step_shape *s, uint64_t tag,
                                uint32_t prompt_tokens, uint32_t uncached)
{
    const struct trace_fit *f = &((const struct trace_model *)base)->fit;
    uint32_t tokens = uncached > 0 ? uncached : 1;
    double u = vt_draw_f64(vt_hash2(s->seed, DRAW_FIRST), tag, 0);
    double all = tokens, depth = prompt_tokens - uncached;
    double ms = f->a + f->b * all + f->c * all * all, charged = 0.0;

    if (!f->has_curve)
        ms = sampled_service(f, all, u);
    else if (!(ms > f->floor))
        ms = f->floor;
    /* What the steps of a lone request charge it. */
    for (; tokens > f->budget; tokens -= f->budget, depth += f->budget) {
        double chunk = trace_chunk_cost(f, f->budget, depth);

        charged += chunk > f->full_step ? chunk : f->full_step;
    }
    ms -= charged + trace_chunk_cost(f, tokens, depth);
    return ms > 0.0 ? 1e3 * ms : 0.0;
}

/* ---- life ------------------------------------------------------------- */

static void trace_close(struct vt_latency *base)
{
    struct trace_model *m = (struct trace_model *)base;

    trace_fit_free(&m->fit);
    free(m);
}

static const struct vt_latency_ops ops = {
    .name = "trace",
    .step = trace_step,
    .first_token_us = trace_first_token,
    .close = trace_close,
};

static int open_files(struct trace_model *m, const struct vt_node *file, uint32_t n,
                      uint32_t budget, struct vt_err *err)
{
    struct vt_records *sets = calloc(n, sizeof(*sets));
    uint32_t loaded = 0;
    int rc = !sets ? vt_nomem(err) : VT_OK;

    for (; rc == VT_OK && loaded < n; loaded++) {
        if (file[loaded].kind != VT_STR)
            rc = vt_fail(err, VT_EINPUT, "field 'file' must hold paths");
        else
            rc = vt_records_load(&sets[loaded], file[loaded].u.str, err);
    }
    if (rc == VT_OK)
        rc = vt_within(err, trace_fit_open(&m->fit, sets, n, budget, err), "%s",
                       file[0].u.str);
    while (loaded > 0)
        vt_records_free(&sets[--loaded]);
    free(sets);
    return rc;
}

static int trace_open(struct vt_latency **out, const struct vt_node *node,
                      struct vt_err *err)
{
    static const char *const known[] = {"file", "max_num_batched_tokens", NULL};
    const struct vt_node *file = vt_get(node, "file");
    double budget = 0;
    struct trace_model *m;
    int rc = vt_only_keys(node, known, err);

    if (rc != VT_OK)
        return rc;
    if (!file || (file->kind != VT_STR && file->kind != VT_LIST) ||
        (file->kind == VT_LIST && file->n == 0))
        return vt_fail(err, VT_EINPUT,
                       "field 'file' must be a path or a list of paths");
    rc = params_number(node, "max_num_batched_tokens", 1, 1 << 30, &budget, err);
    if (rc != VT_OK)
        return rc;
    m = calloc(1, sizeof(*m));
    if (!m)
        return vt_nomem(err);
    if (file->kind == VT_LIST)
        rc = open_files(m, file->u.item, file->n, (uint32_t)budget, err);
    else
        rc = open_files(m, file, 1, (uint32_t)budget, err);
    if (rc != VT_OK) {
        trace_close(&m->head);
        return rc;
    }
    m->head.ops = &ops;
    m->head.serial = true;
    m->head.needs_churn = m->fit.has_churn;
    *out = &m->head;
    return VT_OK;
}

const struct vt_model_kind model_trace = {
    .name = "trace",
    .help = "gaps and first tokens sampled from a recorded trace, as vllm-vcr does",
    .example = "trace:file=tests/sim/data/poisson-r18.trace.jsonl.gz",
    .open = trace_open,
};
