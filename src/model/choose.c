/* choose.c - what an engine's steps are timed by: a profile that was measured so, one
 * that is carried over, or the law alone. */
#include <math.h>

#include "model/params.h"

/* ---- what a profile was measured on -------------------------------------- */

static int read_arch(struct vt_source *s, const struct vt_profile *p,
                     const struct vt_estimate_query *asked, struct vt_err *err)
{
    const char *model = NULL;
    int rc = vt_get_str(p->engine, "model", VT_OPTIONAL, &model, err);

    if (rc != VT_OK)
        return rc;
    if (model && vt_arch_load(&s->arch, model, asked ? NULL : err) == VT_OK)
        return VT_OK;
    if (asked && asked->arch) {
        s->arch = *asked->arch;
        return VT_OK;
    }
    return vt_fail(err, VT_EINPUT, "profile '%s' is of no model that is known",
                   p->name);
}

static int read_gpu(struct vt_source *s, const struct vt_profile *p,
                    const struct vt_estimate_query *asked, struct vt_err *err)
{
    const char *gpu = NULL;
    int rc = vt_get_str(p->engine, "gpu", VT_OPTIONAL, &gpu, err);

    if (rc != VT_OK)
        return rc;
    if (gpu && vt_gpu_find(&s->gpu, gpu, NULL, asked ? NULL : err) == VT_OK)
        return VT_OK;
    if (asked && asked->gpu) {
        s->gpu = *asked->gpu;
        return VT_OK;
    }
    return vt_fail(err, VT_EINPUT, "profile '%s' is of no GPU that is known", p->name);
}

int vt_source_of(struct vt_source *s, const struct vt_profile *p,
                 const struct vt_estimate_query *asked, struct vt_err *err)
{
    const struct vt_node *model = vt_get(p->root, "model");
    const char *kind = "", *dtype = NULL;
    int rc = vt_get_str(model, "kind", VT_OPTIONAL, &kind, err);

    *s = (struct vt_source){.tp = 1};
    if (rc != VT_OK)
        return rc;
    if (strcmp(kind, "step") != 0)
        return vt_fail(err, VT_EINPUT, "profile '%s' is not of kind 'step'", p->name);
    vt_step_params_init(&s->params);
    if ((rc = vt_step_params_read(&s->params, vt_get(model, "params"), err)) ||
        (rc = read_arch(s, p, asked, err)) || (rc = read_gpu(s, p, asked, err)) ||
        (rc = vt_get_u32(p->engine, "tensor_parallel_size", VT_OPTIONAL, 1, 1024,
                         &s->tp, err)) ||
        (rc = vt_get_str(p->engine, "kv_cache_dtype", VT_OPTIONAL, &dtype, err)))
        return rc;
    s->kv_bytes = vt_kv_dtype_bytes(dtype);
    (void)snprintf(s->name, sizeof(s->name), "%s", p->name);
    return VT_OK;
}

struct vt_estimate_query vt_source_query(const struct vt_source *s)
{
    return (struct vt_estimate_query){
        .arch = &s->arch, .gpu = &s->gpu, .tp = s->tp, .kv_bytes = s->kv_bytes};
}

static bool asks_graphs(const struct vt_graphs *g)
{
    return g && (g->none || g->most > 0 || g->n > 0);
}

bool vt_source_holds(const struct vt_source *s, const struct vt_estimate_query *q)
{
    struct vt_estimate_query own = vt_source_query(s);

    return vt_arch_same(&s->arch, q->arch) && strcmp(s->gpu.name, q->gpu->name) == 0 &&
           s->tp == (q->tp > 0 ? q->tp : 1) && q->pp <= 1 &&
           vt_arch_ranks(q->arch, q->dp) == 1 && !asks_graphs(q->graphs) && !q->draft &&
           fabs(vt_arch_kv_element(own.arch, own.kv_bytes) -
                vt_arch_kv_element(q->arch, q->kv_bytes)) < 1e-9;
}

/* ---- which is best --------------------------------------------------------- */

int vt_source_best(struct vt_estimate *e, const struct vt_source *s,
                   const struct vt_estimate_query *q, struct vt_err *err)
{
    struct vt_estimate alone = {0};
    int rc = vt_estimate_from(e, s, q, err);

    if (rc == VT_OK)
        rc = vt_estimate(&alone, q, err);
    if (rc == VT_OK &&
        !(e->class && e->expected[VT_TRUST_E2E] <= alone.expected[VT_TRUST_E2E]))
        *e = alone;
    return rc;
}

/* How far a source's model is from the one that is asked for; 0: it is the same. */
static double distance(const struct vt_source *s, const struct vt_estimate_query *q)
{
    double ratio = vt_arch_active_params(&s->arch) / vt_arch_active_params(q->arch);

    return vt_arch_same(&s->arch, q->arch) ? 0 : 1 + fabs(log(ratio));
}

struct choosing {
    struct vt_choice *c;
    const struct vt_estimate_query *q; /* tp 0: as measured */
    bool holds, carried; /* c->source is as asked for; can be carried over */
    double off, away;    /* expected error and distance of the latter */
};

static bool is_better(const struct choosing *x, double off, double away)
{
    return !x->carried || off < x->off || (!(off > x->off) && away < x->away);
}

/* Takes a source that is nearer than those before. */
static int consider(struct choosing *x, const struct vt_source *s, struct vt_err *err)
{
    struct vt_estimate_query q = *x->q;
    bool here = strcmp(s->gpu.name, q.gpu->name) == 0;
    bool same = vt_arch_same(&s->arch, q.arch);
    struct vt_estimate e;
    double off, away;
    int rc;

    if (x->holds || (!same && !(here && vt_arch_related(&s->arch, q.arch))))
        return VT_OK;
    if (q.tp == 0)
        q.tp = here && same ? s->tp : 1;
    if ((rc = vt_estimate_from(&e, s, &q, err)) || !e.class)
        return rc;
    x->holds = vt_source_holds(s, &q);
    off = e.expected[VT_TRUST_E2E];
    away = distance(s, &q);
    if (!x->holds && !is_better(x, off, away))
        return VT_OK;
    x->carried = true;
    x->off = off;
    x->away = away;
    x->c->source = *s;
    x->c->estimate = e;
    return VT_OK;
}

/* What was forced or does not say what it was measured on is no source. */
static int consider_profile(struct choosing *x, const char *name, struct vt_err *err)
{
    struct vt_profile p;
    struct vt_source s;
    int rc = vt_profile_open(&p, name, err);

    if (rc != VT_OK)
        return rc;
    if (!p.forced && !vt_get(p.engine, "num_speculative_tokens") &&
        vt_source_of(&s, &p, NULL, NULL) == VT_OK) {
        (void)snprintf(s.name, sizeof(s.name), "%s", name);
        rc = consider(x, &s, err);
    }
    vt_profile_close(&p);
    return rc;
}

static int consider_all(struct choosing *x, const char *const *own, struct vt_err *err)
{
    struct vt_arena scratch = {0};
    struct vt_profile_entry *entry = NULL;
    size_t n = 0;
    int rc = VT_OK;

    for (; own && *own && rc == VT_OK; own++)
        rc = consider_profile(x, *own, err);
    if (rc == VT_OK)
        rc = vt_profile_list(&scratch, &entry, &n, err);
    for (size_t i = 0; i < n && rc == VT_OK; i++)
        if (!entry[i].blackbox)
            rc = consider_profile(x, entry[i].name, err);
    vt_arena_free(&scratch);
    return rc;
}

int vt_choose(struct vt_choice *c, const struct vt_estimate_query *q,
              enum vt_basis_kind wish, const char *const *own, struct vt_err *err)
{
    struct choosing x = {.c = c, .q = q};
    struct vt_estimate_query alone_q = *q;
    struct vt_estimate alone;
    int rc;

    memset(c, 0, sizeof(*c));
    if (alone_q.tp == 0)
        alone_q.tp = 1;
    if ((wish != VT_ESTIMATED && (rc = consider_all(&x, own, err))) ||
        (rc = vt_estimate(&alone, &alone_q, err)))
        return rc;
    if (wish == VT_MEASURED && !x.holds)
        return vt_fail(err, VT_EINPUT, "no profile was measured so");
    if (wish == VT_TRANSFERRED && !x.carried)
        return vt_fail(err, VT_EINPUT, "no profile was measured that is near it");
    if (wish != VT_BASIS_UNKNOWN)
        c->kind = wish;
    else if (x.holds)
        c->kind = VT_MEASURED;
    else if (x.carried && x.off <= alone.expected[VT_TRUST_E2E])
        c->kind = VT_TRANSFERRED;
    else
        c->kind = VT_ESTIMATED;
    if (c->kind == VT_ESTIMATED) {
        memset(&c->source, 0, sizeof(c->source));
        c->estimate = alone;
    }
    return VT_OK;
}
