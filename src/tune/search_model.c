/* search_model.c - a step model for an engine that was not captured.
 *
 * Halving a KV element halves what decoding reads of the context. n GPUs share weights,
 * matrices and KV heads, so what is proportional to those is divided by n; to it comes
 * what they tell each other: two all-reduces a layer. How long the host takes stays. */
#include <string.h>

#include "tune/tune_search.h"

#define REDUCE_US 8.0 /* one all-reduce of few bytes over NVLink: assumed */

struct change {
    double context;  /* factor on reading the context */
    double share;    /* factor on what GPUs share */
    double step_us;  /* added to every step, */
    double token_us; /* and to every token */
};

static struct change change_of(const struct vt_site *site, uint32_t from, uint32_t to)
{
    const struct vt_arch *a = site->arch;
    double measured = site->measured_kv_bytes > 0 ? site->measured_kv_bytes : 2;
    double element = site->kv_element_bytes > 0 ? site->kv_element_bytes : measured;
    struct change c = {.share = (double)from / to};

    c.context = element / measured * c.share;
    if (from != to && a != NULL) {
        double n = to, sent = 2.0 * a->layers * a->hidden * 2.0 * 2 * (n - 1) / n;
        double link = site->gpu->link_gbs > 0 ? site->gpu->link_gbs / 2 : 25;

        c.step_us = to > 1 ? 2.0 * a->layers * REDUCE_US : 0;
        c.token_us = to > 1 ? sent / (link * 1e3) : 0;
    }
    return c;
}

/* ---- parameters -------------------------------------------------------------------
 */

enum part { CONTEXT, SHARED, STEP, TOKEN };

static const struct {
    const char *name;
    enum part part;
} parts[] = {
    {"base", STEP},         {"eager", STEP},
    {"expert", SHARED},     {"context_ktoken", CONTEXT},
    {"graph_token", TOKEN}, {"mixed_token", TOKEN},
    {"eager_token", TOKEN}, {"depth_mtoken", SHARED},
};

static double changed(enum part part, double v, const struct change *c)
{
    if (part == CONTEXT)
        return v * c->context;
    return v * c->share + (part == STEP    ? c->step_us
                           : part == TOKEN ? c->token_us
                                           : 0.0);
}

static void apply(struct vt_node *n, const struct change *c)
{
    double v = n->kind == VT_INT ? (double)n->u.integer : n->u.real;

    if (n->kind != VT_INT && n->kind != VT_REAL)
        return;
    for (size_t i = 0; i < VT_COUNT(parts); i++)
        if (strcmp(parts[i].name, n->key) == 0) {
            n->kind = VT_REAL;
            n->u.real = changed(parts[i].part, v, c);
            return;
        }
}

static int open_changed(struct vt_latency **out, const struct vt_node *params,
                        const struct change *c, struct vt_err *err)
{
    struct vt_arena arena = {0};
    struct vt_node map = *params;
    int rc;

    map.u.item = vt_arena_alloc(&arena, params->n * sizeof(*map.u.item));
    if (map.u.item == NULL)
        return vt_nomem(err);
    memcpy(map.u.item, params->u.item, params->n * sizeof(*map.u.item));
    for (uint32_t i = 0; i < map.n; i++)
        apply(&map.u.item[i], c);
    rc = vt_model_find("step")->open(out, &map, err);
    vt_arena_free(&arena);
    return rc;
}

/* ---- the model ------------------------------------------------------------------- */

static int captured_tp(const struct vt_profile *p, uint32_t *tp, struct vt_err *err)
{
    *tp = 1;
    return vt_get_u32(p != NULL ? p->engine : NULL, "tensor_parallel_size", VT_OPTIONAL,
                      1, 1024, tp, err);
}

int search_model(struct vt_latency **out, const struct vt_site *site, uint32_t tp,
                 struct vt_err *err)
{
    const struct vt_node *model =
        site->profile != NULL ? vt_get(site->profile->root, "model") : NULL;
    const char *kind = "";
    struct change c;
    uint32_t from;
    int rc = captured_tp(site->profile, &from, err);

    *out = NULL;
    if (rc == VT_OK)
        rc = vt_get_str(model, "kind", VT_OPTIONAL, &kind, err);
    if (rc != VT_OK)
        return rc;
    c = change_of(site, from, tp);
    if (tp == from && c.context == 1)
        return VT_OK;
    if (site->model != NULL || strcmp(kind, "step") != 0)
        return vt_fail(err, VT_EINPUT,
                       "other GPUs per engine or KV elements than the profile's need "
                       "a profile of kind 'step'");
    if (tp != from && site->arch == NULL)
        return vt_fail(err, VT_EINPUT,
                       "tensor-parallel-size %u: the model's sizes are not known; give "
                       "--hf-config",
                       tp);
    return open_changed(out, vt_get(model, "params"), &c, err);
}
