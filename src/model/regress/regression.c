/* regression.c - a step as a sum of coefficients times named terms, as a regression
 * over traced steps finds them. How long requests wait is not taken from a formula: the
 * scheduler decides it, step by step. */
#include "model/params.h"

#include <math.h>

struct regression {
    struct vt_latency head;
    struct vt_terms step, arrive;
    double engine[VT_FEATURES]; /* what does not change */
    double least;               /* no step is shorter */
    double seen_step_tokens, seen_running, seen_context;
};

static void regression_step(const struct vt_latency *base,
                            const struct vt_step_shape *s, struct vt_step_cost *cost)
{
    const struct regression *m = (const struct regression *)base;
    const struct vt_step_plan *p = s->plan;
    struct vt_step_batch b = {
        .prefills = p->n_prefills,
        .decodes = p->n_decodes,
        .prefill_tokens = p->prefill_tokens,
        .decode_tokens = p->decode_tokens,
        .decode_context = (double)p->decode_ctx,
        .kv_ratio = p->kv_usage,
        .kv_blocks = p->kv_usage * s->kv_blocks,
        .running = p->running,
        .waiting = p->waiting,
    };
    double v[VT_FEATURES];

    for (uint32_t i = 0; i < p->n; i++)
        if (p->item[i].prefill)
            b.prefill_context +=
                p->item[i].tokens * (p->item[i].computed + 0.5 * p->item[i].tokens);
    memcpy(v, m->engine, sizeof(v));
    vt_features_of_step(v, &b);
    cost->gpu_us = fmax(vt_terms_value(&m->step, v), m->least);
}

static double regression_arrival(const struct vt_latency *base, uint32_t prompt_tokens)
{
    const struct regression *m = (const struct regression *)base;
    double v[VT_FEATURES];

    memcpy(v, m->engine, sizeof(v));
    v[VT_F_PROMPT_TOKENS] = prompt_tokens;
    return fmax(vt_terms_value(&m->arrive, v), 0);
}

static const struct vt_latency_ops ops = {
    .name = "regression",
    .step = regression_step,
    .arrival_us = regression_arrival,
};

/* ---- parameters --------------------------------------------------------- */

static const struct param params[] = {
    {"least", offsetof(struct regression, least), 0, PARAM_MAX},
    {"seen_step_tokens", offsetof(struct regression, seen_step_tokens), 0, 1e9},
    {"seen_running", offsetof(struct regression, seen_running), 0, 1e9},
    {"seen_context", offsetof(struct regression, seen_context), 0, 1e15},
    {NULL, 0, 0, 0},
};

static bool is_own(const char *key)
{
    for (const struct param *p = params; p->name; p++)
        if (strcmp(p->name, key) == 0)
            return true;
    return strcmp(key, "arrive") == 0 || strcmp(key, "engine") == 0;
}

static int read_term(struct vt_terms *out, const struct vt_node *map,
                     const struct vt_node *n, unsigned of, struct vt_err *err)
{
    double c = 0;
    int rc = params_number(map, n->key, -PARAM_MAX, PARAM_MAX, &c, err);

    if (rc != VT_OK)
        return rc;
    if (strcmp(n->key, "intercept") == 0) {
        out->intercept = c;
        return VT_OK;
    }
    if (out->n == VT_TERMS)
        return vt_fail(err, VT_EINPUT, "more than %d terms", VT_TERMS);
    rc = vt_term_parse(&out->term[out->n], n->key, strlen(n->key), err);
    if (rc == VT_OK && !(vt_term_of(&out->term[out->n]) & of))
        rc = vt_fail(err, VT_EINPUT, "'%.60s' is not known of %s", n->key,
                     of == VT_OF_STEP ? "a step" : "a request that arrives");
    out->coefficient[out->n++] = c;
    return rc;
}

/* Of a request nothing but its prompt is known before it is in the queue. */
static int check_arrive(const struct vt_terms *s, struct vt_err *err)
{
    for (size_t i = 0; i < s->n; i++)
        for (uint8_t k = 0; k < s->term[i].n; k++) {
            uint8_t f = s->term[i].factor[k].feature;

            if (f != VT_F_PROMPT_TOKENS && !(vt_features[f].of & VT_OF_ENGINE))
                return vt_fail(err, VT_EINPUT,
                               "'arrive': '%s' is not known when a request arrives",
                               vt_features[f].name);
        }
    return VT_OK;
}

static int read_terms(struct vt_terms *out, const struct vt_node *map, bool outer,
                      struct vt_err *err)
{
    int rc = VT_OK;

    for (uint32_t i = 0; i < map->n && rc == VT_OK; i++)
        if (!outer || !is_own(map->u.item[i].key))
            rc = read_term(out, map, &map->u.item[i],
                           outer ? VT_OF_STEP : VT_OF_REQUEST, err);
    return rc;
}

static int read_engine(double v[VT_FEATURES], const struct vt_node *map,
                       struct vt_err *err)
{
    for (uint32_t i = 0; i < map->n; i++) {
        const char *key = map->u.item[i].key;
        struct vt_term t;
        double x = 0;
        int rc;

        if ((rc = vt_term_parse(&t, key, strlen(key), err)) ||
            (rc = params_number(map, key, 0, 1e15, &x, err)))
            return vt_within(err, rc, "'engine'");
        if (t.n != 1 || t.factor[0].power != 1 ||
            !(vt_features[t.factor[0].feature].of & VT_OF_ENGINE))
            return vt_fail(err, VT_EINPUT, "'engine': '%.40s' is none of its features",
                           key);
        v[t.factor[0].feature] = x;
    }
    return VT_OK;
}

static int read_maps(struct regression *m, const struct vt_node *node,
                     struct vt_err *err)
{
    const struct vt_node *arrive = vt_get(node, "arrive"),
                         *engine = vt_get(node, "engine");
    int rc = VT_OK;

    if (engine && engine->kind != VT_MAP)
        return vt_fail(err, VT_EINPUT, "field 'engine' must be an object");
    if (engine && (rc = read_engine(m->engine, engine, err)))
        return rc;
    if (arrive && arrive->kind != VT_MAP)
        return params_number(node, "arrive", 0, PARAM_MAX, &m->arrive.intercept, err);
    if (!arrive)
        return VT_OK;
    if ((rc = read_terms(&m->arrive, arrive, false, err)) == VT_OK)
        rc = check_arrive(&m->arrive, err);
    return vt_within(err, rc, "'arrive'");
}

static int regression_open(struct vt_latency **out, const struct vt_node *node,
                           struct vt_err *err)
{
    struct regression *m = calloc(1, sizeof(*m));
    int rc = m ? VT_OK : vt_nomem(err);

    if (m)
        m->least = 1;
    for (const struct param *p = params; p->name && rc == VT_OK; p++)
        rc = params_number(node, p->name, p->lo, p->hi,
                           (double *)(void *)((char *)m + p->offset), err);
    if (rc != VT_OK || (rc = read_terms(&m->step, node, true, err)) ||
        (rc = read_maps(m, node, err))) {
        free(m);
        return rc;
    }
    if (m->step.n == 0 && !(m->step.intercept > 0)) {
        free(m);
        return vt_fail(err, VT_EINPUT, "a step needs an intercept or a term");
    }
    m->head.ops = &ops;
    m->head.known = (struct vt_extent){.step_tokens = (uint32_t)m->seen_step_tokens,
                                       .running = (uint32_t)m->seen_running,
                                       .context = (uint64_t)m->seen_context};
    *out = &m->head;
    return VT_OK;
}

const struct vt_model_kind model_regression = {
    .name = "regression",
    .help = "step = intercept + a sum of coefficients times named terms (us)",
    .example =
        "regression:intercept=5000,prefill_tokens=9,num_decode=12,decode_context=0.02",
    .open = regression_open,
};
