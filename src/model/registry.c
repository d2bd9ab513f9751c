#include "model/params.h"

/* To add a model: write latency_<name>.c, add its row here and in params.h, and a
 * case to tests/model. The order here is the order of help and reports. */
static const struct vt_model_kind *const kinds[] = {
    &model_step,
    &model_blackbox,
    &model_regression,
    &model_roofline,
    &model_crossmodel,
    &model_trained_roofline,
    &model_trained_physics,
    &model_linear,
    &model_knob,
    &model_trace,
    &model_null,
};

const struct vt_model_kind *const *vt_model_kinds(size_t *n)
{
    *n = VT_COUNT(kinds);
    return kinds;
}

const struct vt_model_kind *vt_model_find(const char *name)
{
    for (size_t i = 0; i < VT_COUNT(kinds); i++)
        if (strcmp(kinds[i]->name, name) == 0)
            return kinds[i];
    return NULL;
}

void vt_latency_close(struct vt_latency *m)
{
    if (m && m->ops->close)
        m->ops->close(m);
    else
        free(m);
}

int model_open(struct vt_latency **out, const char *name, const struct vt_node *params,
               struct vt_err *err)
{
    const struct vt_model_kind *kind = vt_model_find(name);
    const char *names[VT_COUNT(kinds) + 1] = {NULL}, *near;

    *out = NULL;
    if (kind)
        return vt_within(err, kind->open(out, params, err), "model %s", name);
    for (size_t i = 0; i < VT_COUNT(kinds); i++)
        names[i] = kinds[i]->name;
    near = vt_nearest(name, names);
    if (near)
        return vt_fail(err, VT_EINPUT, "unknown model '%s' (did you mean '%s'?)", name,
                       near);
    return vt_fail(err, VT_EINPUT, "unknown model '%s'; `vtwin model list` shows them",
                   name);
}

/* ---- "kind:key=value,key=v0,v1" --------------------------------------- */

/* A piece "key=value" opens a new entry, a bare "value" extends the last one. */
static int parse_piece(struct vt_node *map, const char *piece, size_t len,
                       struct vt_arena *a, struct vt_err *err)
{
    const char *eq = memchr(piece, '=', len);
    struct vt_node *e, *value;
    char *key;

    if (eq) {
        e = &map->u.item[map->n++];
        *e = (struct vt_node){.kind = VT_LIST};
        e->key = key = vt_arena_copy(a, piece, (size_t)(eq - piece));
        e->u.item = vt_arena_alloc(a, 64 * sizeof(*e));
        if (!key || !e->u.item)
            return vt_nomem(err);
        for (; *key != '\0'; key++)
            if (*key == '-') /* as flags are written */
                *key = '_';
        len -= (size_t)(eq + 1 - piece);
        piece = eq + 1;
    } else if (map->n == 0) {
        return vt_fail(err, VT_EINPUT, "'%.*s' is not key=value", (int)len, piece);
    }
    e = &map->u.item[map->n - 1];
    if (e->n == 64)
        return vt_fail(err, VT_EINPUT, "too many values for '%s'", e->key);
    value = &e->u.item[e->n++];
    value->kind = VT_REAL;
    if (vt_parse_f64(piece, len, &value->u.real))
        return VT_OK;
    value->kind = VT_STR; /* who wants a number refuses it by its field */
    value->n = (uint32_t)len;
    value->u.str = vt_arena_copy(a, piece, len);
    return value->u.str ? VT_OK : vt_nomem(err);
}

static int parse_params(struct vt_node *map, const char *text, struct vt_arena *a,
                        struct vt_err *err)
{
    int rc;

    *map = (struct vt_node){.kind = VT_MAP};
    map->u.item = vt_arena_alloc(a, (strlen(text) + 1) * sizeof(*map));
    if (!map->u.item)
        return vt_nomem(err);
    while (*text != '\0') {
        size_t len = strcspn(text, ",");

        rc = parse_piece(map, text, len, a, err);
        if (rc != VT_OK)
            return rc;
        text += len + (text[len] == ',');
    }
    for (uint32_t i = 0; i < map->n; i++) {
        struct vt_node *e = &map->u.item[i];
        const char *key = e->key;

        for (uint32_t k = 0; k < i; k++)
            if (strcmp(key, map->u.item[k].key) == 0)
                return vt_fail(err, VT_EINPUT, "'%s' is given twice", key);
        if (e->n == 1) { /* one value stands for itself, several are a list */
            *e = e->u.item[0];
            e->key = key;
        }
    }
    return VT_OK;
}

int vt_model_open_inline(struct vt_latency **out, const char *text, struct vt_err *err)
{
    size_t len = strcspn(text, ":");
    struct vt_arena a = {0};
    struct vt_node map;
    char *name = vt_arena_copy(&a, text, len);
    int rc = !name ? vt_nomem(err)
                   : parse_params(&map, text + len + (text[len] == ':'), &a, err);

    *out = NULL;
    if (rc == VT_OK)
        rc = model_open(out, name, &map, err);
    vt_arena_free(&a);
    return rc;
}
