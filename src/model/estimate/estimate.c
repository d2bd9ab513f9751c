/* estimate.c - engines that nobody measured: the law with its constants, what it may be
 * off by, and what of a question leaves the range of what was measured. */
#include <math.h>
#include <stdarg.h>

#include "model/params.h"

#define CONSTANTS "estimate.json"
#define GPUS      "gpus.json"

const char *const vt_trust_names[VT_TRUSTS] = {"e2e", "ttft",    "ttft_p99",
                                               "itl", "itl_p99", "throughput"};

/* ---- what a GPU reaches ------------------------------------------------- */

#define RATIO(field) {#field, offsetof(struct vt_gpu_reach, field)}

static const struct {
    const char *name;
    size_t offset;
} ratios[] = {
    RATIO(bw),       RATIO(bw8),     RATIO(mfu16),       RATIO(mfu8),
    RATIO(kv_bw),    RATIO(kv_bw8),  RATIO(attn_mfu),    RATIO(mla_bw),
    RATIO(mla_mfu),  RATIO(moe_bw),  RATIO(moe_mfu16),   RATIO(moe_bw8),
    RATIO(moe_mfu8), RATIO(mx_bw),   RATIO(mx_mfu),      RATIO(layer),
    RATIO(mx8_bw),   RATIO(mx8_mfu), RATIO(moe_us),      RATIO(moe8_us),
    RATIO(mx_us),    RATIO(mx8_us),  RATIO(int4_own_bw), RATIO(int4_own_mfu),
};

static int read_links(const struct vt_node *gpu, const char *key, double *out,
                      struct vt_err *err)
{
    static const char *const sizes[] = {"2", "4", "8"};
    const struct vt_node *map = vt_get(gpu, key);
    int rc = VT_OK;

    for (size_t i = 0; i < VT_COUNT(sizes) && rc == VT_OK; i++)
        rc = vt_get_f64(map, sizes[i], VT_REQUIRED, 1e-3, 1e6, &out[i], err);
    return rc;
}

static int read_reach(struct vt_gpu_reach *r, const struct vt_node *gpu,
                      struct vt_err *err)
{
    int rc = VT_OK;

    for (size_t i = 0; i < VT_COUNT(ratios) && rc == VT_OK; i++)
        rc = vt_get_f64(gpu, ratios[i].name, VT_REQUIRED, 1e-2, 1000,
                        (double *)(void *)((char *)r + ratios[i].offset), err);
    if (rc != VT_OK ||
        (rc = vt_get_f64(gpu, "share_nvfp4_bw", VT_OPTIONAL, 1e-2, 1,
                         &r->share_nvfp4_bw, err)) ||
        (rc = vt_get_f64(gpu, "share_nvfp4_mfu", VT_OPTIONAL, 1e-2, 1,
                         &r->share_nvfp4_mfu, err)) ||
        (rc = vt_get_bool(gpu, "measured", VT_REQUIRED, &r->measured, err)) ||
        (rc = read_links(gpu, "allreduce_us", r->allreduce_us, err)) ||
        (rc = read_links(gpu, "allreduce_eager_us", r->allreduce_eager_us, err)))
        return rc;
    return read_links(gpu, "allreduce_gbs", r->allreduce_gbs, err);
}

/* What a share is of: it is compared between GPUs times that. */
enum of { OF_BANDWIDTH, OF_FP16, OF_FP8, OF_FP4, OF_TIME, OF_RATE };

static const struct {
    size_t offset;
    enum of of;
    uint32_t n;
} compared[] = {
#define IS(field, what) {offsetof(struct vt_gpu_reach, field), what, 1}
    IS(bw, OF_BANDWIDTH),
    IS(bw8, OF_BANDWIDTH),
    IS(kv_bw, OF_BANDWIDTH),
    IS(kv_bw8, OF_BANDWIDTH),
    IS(mla_bw, OF_BANDWIDTH),
    IS(moe_bw, OF_BANDWIDTH),
    IS(moe_bw8, OF_BANDWIDTH),
    IS(mx_bw, OF_BANDWIDTH),
    IS(mx8_bw, OF_BANDWIDTH),
    IS(share_nvfp4_bw, OF_BANDWIDTH),
    IS(mfu16, OF_FP16),
    IS(attn_mfu, OF_FP16),
    IS(mla_mfu, OF_FP16),
    IS(moe_mfu16, OF_FP16),
    IS(mx_mfu, OF_FP16),
    IS(mx8_mfu, OF_FP16),
    IS(mfu8, OF_FP8),
    IS(moe_mfu8, OF_FP8),
    IS(share_nvfp4_mfu, OF_FP4),
    IS(layer, OF_TIME),
    IS(moe_us, OF_TIME),
    IS(moe8_us, OF_TIME),
    IS(mx_us, OF_TIME),
    IS(mx8_us, OF_TIME),
    {offsetof(struct vt_gpu_reach, allreduce_us), OF_TIME, 3},
    {offsetof(struct vt_gpu_reach, allreduce_eager_us), OF_TIME, 3},
    {offsetof(struct vt_gpu_reach, allreduce_gbs), OF_RATE, 3},
#undef IS
};

static double peak_of(const struct vt_gpu *g, enum of of)
{
    return of == OF_BANDWIDTH ? g->bandwidth_tbs
           : of == OF_FP16    ? g->fp16_tflops
           : of == OF_FP8     ? g->fp8_tflops
           : of == OF_FP4     ? g->fp4_tflops
                              : 1;
}

/* Takes over what another GPU reaches, as a share of this one's peaks, where that is
 * `better`, or else where it is worse. */
static void take_reach(struct vt_gpu_reach *r, const struct vt_gpu *own,
                       const struct vt_gpu_reach *of, const struct vt_gpu *other,
                       bool better)
{
    for (size_t i = 0; i < VT_COUNT(compared); i++) {
        double *mine = (double *)(void *)((char *)r + compared[i].offset);
        const double *its =
            (const double *)(const void *)((const char *)of + compared[i].offset);
        double peak = peak_of(own, compared[i].of);
        bool larger = better == (compared[i].of != OF_TIME);

        for (uint32_t k = 0; k < compared[i].n && peak > 0; k++) {
            double there = its[k] * peak_of(other, compared[i].of) / peak;

            if (there > 0)
                mine[k] = larger ? fmax(mine[k], there) : fmin(mine[k], there);
        }
    }
}

/* Tables of different days, drivers and hosts are compared. A GPU that has no less of
 * anything than another of its make is not slower with the same kernels, whatever they
 * say; and what was taken over for one that nobody measured is no better than what was
 * measured of a larger one. */
static int keep_order(struct vt_gpu_reach *r, const struct vt_gpu *own,
                      const struct vt_node *root, struct vt_err *err)
{
    struct vt_gpu other;
    int rc = VT_OK;

    for (size_t i = 0; rc == VT_OK && vt_gpu_next(&i, &other);) {
        const struct vt_node *known = vt_get(root, other.name);
        struct vt_gpu_reach of = {0};

        if (!known || own->capability == 0 ||
            own->capability / 10 != other.capability / 10 ||
            strcmp(own->name, other.name) == 0)
            continue;
        if ((rc = read_reach(&of, known, err)) || !of.measured)
            continue;
        if (r->measured && vt_gpu_dominates(own, &other))
            take_reach(r, own, &of, &other, true);
        else if (!r->measured && vt_gpu_dominates(&other, own))
            take_reach(r, own, &of, &other, false);
    }
    return rc;
}

int vt_gpu_reach(struct vt_gpu_reach *r, const char *gpu, struct vt_err *err)
{
    struct vt_arena a = {0};
    const struct vt_node *root = NULL, *known;
    struct vt_gpu own;
    int rc = vt_builtin_tree(&a, GPUS, &root, err);

    memset(r, 0, sizeof(*r));
    if (rc == VT_OK) {
        known = vt_get(root, gpu);
        /* Of a GPU that only a user's file knows, nothing: it is taken for an H200 with
         * another data sheet. */
        rc = read_reach(r, known ? known : vt_get(root, "H200"), err);
        if (!known)
            r->measured = false;
        else if (rc == VT_OK && (rc = vt_gpu_find(&own, gpu, NULL, err)) == VT_OK)
            rc = keep_order(r, &own, root, err);
        rc = vt_within(err, rc, "%s: %s", GPUS, gpu);
    }
    vt_arena_free(&a);
    return rc;
}

/* ---- the constants ------------------------------------------------------ */

struct constants {
    struct vt_law law;
    struct vt_arena arena;
    const struct vt_node *root;
};

static double *term_at(struct vt_law *law, const struct vt_law_term *t)
{
    return (double *)(void *)((char *)law + t->offset);
}

static int read_law(struct vt_law *law, const struct vt_node *map, struct vt_err *err)
{
    size_t n;
    const struct vt_law_term *t = vt_law_terms(&n);
    int rc = VT_OK;

    for (size_t i = 0; i < n && rc == VT_OK; i++)
        rc = t[i].n > 1 ? params_list(map, t[i].name, term_at(law, &t[i]), t[i].n, err)
                        : vt_get_f64(map, t[i].name, VT_REQUIRED, 0, PARAM_MAX,
                                     term_at(law, &t[i]), err);
    return rc;
}

static void put_short(struct vt_buf *b, double v)
{
    char text[32];

    (void)snprintf(text, sizeof(text), "%.5g", v);
    vt_buf_f64(b, strtod(text, NULL));
}

void vt_law_write(struct vt_buf *b, const struct vt_law *law, const char *indent)
{
    struct vt_law copy = *law;
    size_t n;
    const struct vt_law_term *t = vt_law_terms(&n);

    for (size_t i = 0; i < n; i++) {
        vt_buf_printf(b, "%s\"%s\": %s", indent, t[i].name, t[i].n > 1 ? "[" : "");
        for (uint32_t k = 0; k < t[i].n; k++) {
            vt_buf_str(b, k > 0 ? ", " : "");
            put_short(b, term_at(&copy, &t[i])[k]);
        }
        vt_buf_printf(b, "%s%s\n", t[i].n > 1 ? "]" : "", i + 1 < n ? "," : "");
    }
}

/* The caller ends it with constants_free() whatever happens. */
static int constants_load(struct constants *c, struct vt_err *err)
{
    int rc;

    memset(c, 0, sizeof(*c));
    if ((rc = vt_builtin_tree(&c->arena, CONSTANTS, &c->root, err)))
        return rc;
    return vt_within(err, read_law(&c->law, vt_get(c->root, "law"), err), "%s",
                     CONSTANTS);
}

static void constants_free(struct constants *c)
{
    vt_arena_free(&c->arena);
}

int vt_law_load(struct vt_law *law, struct vt_err *err)
{
    struct constants c;
    int rc = constants_load(&c, err);

    *law = c.law;
    constants_free(&c);
    return rc;
}

/* ---- what it may be off by ---------------------------------------------- */

/* Adds what a class of questions was found to be off by, where that is more. */
/* Where tails were not judged they are no surer than means. */
static const char *judged_as(const struct vt_node *map, size_t i)
{
    if (vt_get(map, vt_trust_names[i]))
        return vt_trust_names[i];
    return i == VT_TRUST_TTFT_P99  ? vt_trust_names[VT_TRUST_TTFT]
           : i == VT_TRUST_ITL_P99 ? vt_trust_names[VT_TRUST_ITL]
                                   : vt_trust_names[i];
}

static int take_errors(struct vt_estimate *e, const struct constants *c,
                       const char *class, struct vt_err *err)
{
    const struct vt_node *map = vt_get(vt_get(c->root, "expected_error_pct"), class);
    int rc = VT_OK;

    for (size_t i = 0; map && i < VT_TRUSTS && rc == VT_OK; i++) {
        double v = 0;

        rc = vt_get_f64(map, judged_as(map, i), VT_OPTIONAL, 0, 1e4, &v, err);
        e->expected[i] = fmax(e->expected[i], v);
    }
    if (map)
        e->class = class;
    return vt_within(err, rc, "%s: %s", CONSTANTS, class);
}

static void VT_PRINTF(2, 3) note(struct vt_estimate *e, const char *fmt, ...)
{
    va_list args;

    if (e->n_outside >= VT_MOST_OUTSIDE)
        return;
    va_start(args, fmt);
    (void)vsnprintf(e->outside[e->n_outside++], sizeof(e->outside[0]), fmt, args);
    va_end(args);
}

/* Sizes of what the law was learned from. */
static int note_range(struct vt_estimate *e, const struct constants *c,
                      const struct vt_estimate_query *q, struct vt_err *err)
{
    const struct vt_node *seen = vt_get(c->root, "seen");
    double lo = 0, hi = 0, size = vt_arch_active_params(q->arch) / 1e9;
    int rc;

    if ((rc = vt_get_f64(seen, "least_active_billions", VT_REQUIRED, 0, 1e6, &lo,
                         err)) ||
        (rc =
             vt_get_f64(seen, "most_active_billions", VT_REQUIRED, 0, 1e6, &hi, err)) ||
        (rc = vt_get_f64(seen, "step_tokens", VT_REQUIRED, 0, 1e9,
                         &e->params.seen_step_tokens, err)) ||
        (rc = vt_get_f64(seen, "running", VT_REQUIRED, 0, 1e9, &e->params.seen_running,
                         err)) ||
        (rc = vt_get_f64(seen, "context_ktokens", VT_REQUIRED, 0, 1e9,
                         &e->params.seen_context_ktokens, err)))
        return vt_within(err, rc, "%s: seen", CONSTANTS);
    if (size < 0.8 * lo || size > 1.25 * hi)
        note(e, "%.3g billion active parameters: models of %.3g to %.3g were measured",
             size, lo, hi);
    return VT_OK;
}

static void note_outside(struct vt_estimate *e, const struct vt_estimate_query *q,
                         const struct vt_gpu_reach *reach, bool other_gpu,
                         uint32_t measured_tp)
{
    double dense = vt_arch_dense_bytes(q->arch), expert = vt_arch_expert_bytes(q->arch);
    uint32_t ranks = vt_arch_ranks(q->arch, q->dp);

    if (other_gpu && reach->measured)
        note(e, "%s: its kernels were measured, no engine on it", q->gpu->name);
    else if (other_gpu)
        note(e, "%s: known by its data sheet alone", q->gpu->name);
    if (q->tp > 8)
        note(e, "%u GPUs: all-reduces are taken as within a node of 8", q->tp);
    else if (q->tp > 1 && q->tp != measured_tp)
        note(e, "%u GPUs: all-reduces were measured, no engine with them", q->tp);
    if (q->pp > 1)
        note(e, "%u pipeline stages: an approximation that is kind to single prompts",
             q->pp);
    if (ranks > 1)
        note(e,
             "experts shared by %u ranks: all-reduces%s were measured, no such engine",
             ranks, ranks > 8 ? " of a node of 8" : "");
    else if (q->expert_parallel && q->arch->experts > 0 && q->tp > 1)
        note(e, "expert parallel: experts evenly in use; no such engine was measured");
    if (!(e->params.graph_limit > 0))
        note(e, "without CUDA graphs: taken as what larger steps cost with them");
    if (e->params.graph_stated > 0 && e->params.graph_limit > VT_STEP_GRAPH_LIMIT)
        note(e, "graphs of up to %.0f tokens: taken as those of up to %.0f go on",
             e->params.graph_limit, VT_STEP_GRAPH_LIMIT);
    if (dense < 0.9)
        note(e,
             "weights of %.0f bits: kernels of another model's experts were measured",
             8 * dense);
    if (q->arch->experts > 0 && expert > 0.9 && expert < 1.5)
        note(e, "experts of 8 bits were not measured");
    if (q->arch->index_topk > 0)
        note(e,
             "sparse attention, %u tokens: by its bytes and arithmetic; none was "
             "measured",
             q->arch->index_topk);
    if (q->arch->block_scales)
        note(e,
             "FP8 with scales by blocks: its kernels (DeepGEMM's, or by blocks) were "
             "not measured");
    if (vt_arch_state_layers(q->arch) > 0)
        note(e, "layers with a state: by their weights and bytes; none was measured");
}

/* Layers that no capture has, unless it is of this very model. */
static bool knows_by_bytes(const struct vt_arch *a, const char *class)
{
    return (a->index_topk > 0 || vt_arch_state_layers(a) > 0) &&
           strcmp(class, "transferred") != 0;
}

/* Errors by class: of the model by itself or of what it was carried over from, and of
 * what is different from where it was measured. */
static int expect(struct vt_estimate *e, const struct constants *c,
                  const char *measured_on, const char *class, uint32_t measured_tp,
                  const struct vt_estimate_query *q, const struct vt_gpu_reach *reach,
                  struct vt_err *err)
{
    bool other_gpu = strcmp(q->gpu->name, measured_on) != 0;
    int rc = take_errors(e, c, class, err);

    note_outside(e, q, reach, other_gpu, measured_tp);
    if (rc != VT_OK || !e->class) /* such were never judged */
        return rc;
    if (other_gpu)
        rc = take_errors(e, c, "other_gpu", err);
    /* No better for being less known: a GPU by its data sheet, layers by their bytes.
     */
    if (rc == VT_OK &&
        ((other_gpu && !reach->measured) || knows_by_bytes(q->arch, class)))
        rc = take_errors(e, c, "unmeasured_gpu", err);
    /* Neither stages nor ranks were ever judged: no better than what is known better.
     */
    if (rc == VT_OK && ((q->tp > 1 && q->tp != measured_tp) || q->pp > 1 ||
                        vt_arch_ranks(q->arch, q->dp) > 1))
        rc = take_errors(e, c, "tensor_parallel", err);
    return rc;
}

static int law_of(const struct constants *c, const struct vt_estimate_query *q,
                  struct vt_gpu_reach *reach, struct vt_step_params *out,
                  struct vt_err *err)
{
    int rc = vt_arch_check_tp(q->arch, q->tp > 0 ? q->tp : 1, err);

    if (rc == VT_OK && (rc = vt_gpu_reach(reach, q->gpu->name, err)) == VT_OK)
        vt_law_params(&c->law, reach, q, out);
    return rc;
}

int vt_estimate(struct vt_estimate *out, const struct vt_estimate_query *q,
                struct vt_err *err)
{
    const char *learned_on = NULL;
    struct vt_gpu_reach reach;
    struct constants c;
    int rc;

    memset(out, 0, sizeof(*out));
    if ((rc = constants_load(&c, err)) == VT_OK &&
        (rc = vt_get_str(c.root, "gpu", VT_REQUIRED, &learned_on, err)) == VT_OK &&
        (rc = law_of(&c, q, &reach, &out->params, err)) == VT_OK &&
        (rc = expect(out, &c, learned_on, q->arch->experts > 0 ? "mixture" : "dense", 1,
                     q, &reach, err)) == VT_OK)
        rc = note_range(out, &c, q, err);
    constants_free(&c);
    return rc;
}

int vt_estimate_draft(double *us, const struct vt_estimate_query *q, struct vt_err *err)
{
    struct vt_arch head = vt_arch_eagle3(q->arch);
    struct vt_estimate_query pass = *q;
    struct vt_gpu_reach reach;
    struct constants c;
    int rc = constants_load(&c, err);

    pass.draft = &head;
    if (rc == VT_OK && (rc = vt_gpu_reach(&reach, q->gpu->name, err)) == VT_OK)
        *us = vt_law_draft_us(&c.law, &reach, &pass);
    constants_free(&c);
    return rc;
}

/* A relative's errors say nothing of mixtures where none was judged so. */
static const char *class_from(const struct vt_source *s, const struct vt_arch *here)
{
    if (vt_arch_same(&s->arch, here))
        return "transferred";
    if (!vt_arch_related(&s->arch, here))
        return "another model";
    return here->experts > 0 ? "relative_mixture" : "relative";
}

int vt_estimate_from(struct vt_estimate *out, const struct vt_source *s,
                     const struct vt_estimate_query *q, struct vt_err *err)
{
    struct vt_estimate_query there = vt_source_query(s);
    struct vt_step_params was, will;
    struct vt_gpu_reach reach;
    struct constants c;
    int rc;

    memset(out, 0, sizeof(*out));
    (void)snprintf(out->from, sizeof(out->from), "%s", s->name);
    if ((rc = constants_load(&c, err)) == VT_OK &&
        (rc = law_of(&c, &there, &reach, &was, err)) == VT_OK &&
        (rc = law_of(&c, q, &reach, &will, err)) == VT_OK) {
        vt_step_transfer(&s->params, &was, &will, &out->params);
        if (!vt_arch_same(&s->arch, q->arch))
            note(out, "carried over from a model of %.3g billion active parameters",
                 vt_arch_active_params(&s->arch) / 1e9);
        rc =
            expect(out, &c, s->gpu.name, class_from(s, q->arch), s->tp, q, &reach, err);
    }
    constants_free(&c);
    return rc;
}
