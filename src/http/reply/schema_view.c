/* schema_view.c - what holds for one value: references followed, alternatives
 * chosen, keywords of all parts taken together. */
#include "http/reply/schema.h"

#include <math.h>
#include <string.h>

enum { STEP_CHUNK = 8 }; /* bytes of a pointer that are compared in a node's time */

uint64_t schema_below(struct schema_draw *d, uint64_t n)
{
    return n > 1 ? vt_rng_below(&d->rng, n) : 0;
}

void schema_spend(struct schema_draw *d, uint64_t work)
{
    if (!d->failed && !reply_spend(d->forms, work))
        d->failed = true;
}

const struct vt_node *schema_look(struct schema_draw *d, const struct vt_node *map,
                                  const char *keyword)
{
    const struct vt_node *n;

    if (d->failed)
        return NULL;
    n = reply_forms_get(d->forms, map, keyword);
    schema_spend(d, 0);
    return n;
}

const struct vt_node *schema_child(struct schema_draw *d, const struct vt_node *parent,
                                   const char *name)
{
    const struct vt_node *n;

    if (d->failed)
        return NULL;
    n = reply_forms_child(d->forms, parent, name);
    schema_spend(d, 0);
    return n;
}

/* ---- references ------------------------------------------------------ */

/* A step of a JSON pointer, in which ~1 is a slash and ~0 a tilde. */
static bool is_step(const char *step, size_t len, const char *key)
{
    for (size_t i = 0; i < len; i++, key++) {
        char c = step[i];

        if (c == '~' && i + 1 < len)
            c = step[++i] == '1' ? '/' : '~';
        if (*key != c)
            return false;
    }
    return *key == '\0';
}

static const struct vt_node *child_at(struct schema_draw *d, const struct vt_node *n,
                                      const char *step, size_t len)
{
    int64_t at;

    if (n->kind == VT_LIST)
        return vt_parse_i64(step, len, &at) && at >= 0 && at < (int64_t)n->n
                   ? &n->u.item[at]
                   : NULL;
    for (uint32_t i = 0; n->kind == VT_MAP && i < n->n && !d->failed; i++) {
        if (is_step(step, len, n->u.item[i].key))
            return &n->u.item[i];
        schema_spend(d, 1 + len / STEP_CHUNK);
    }
    return NULL;
}

static const struct vt_node *follow_pointer(struct schema_draw *d, const char *p)
{
    const struct vt_node *n = d->root;

    if (*p++ != '#')
        return NULL;
    while (n && *p == '/' && !d->failed) {
        const char *end = strchr(++p, '/');
        size_t len = end ? (size_t)(end - p) : strlen(p);

        n = child_at(d, n, p, len);
        p += len;
    }
    return n && *p == '\0' ? n : NULL;
}

/* Where it leads to is looked for once. */
static const struct vt_node *resolve_ref(struct schema_draw *d,
                                         const struct vt_node *ref)
{
    uint64_t *place = vt_map_get(&d->forms->known, (uintptr_t)ref);
    const struct vt_node *n;

    if (place)
        return (const struct vt_node *)(uintptr_t)*place;
    n = follow_pointer(d, ref->kind == VT_STR ? ref->u.str : "");
    if (!n || d->failed)
        return NULL;
    place = vt_map_put(&d->forms->known, (uintptr_t)ref);
    if (place)
        *place = (uintptr_t)n;
    d->forms->no_memory |= !place;
    return n;
}

/* ---- gathering ------------------------------------------------------- */

static const struct vt_node *choose_branch(struct schema_draw *d,
                                           const struct vt_node *list, uint32_t depth)
{
    uint32_t from = d->simple ? 0 : (uint32_t)schema_below(d, list->n);

    /* Deep down, a branch that does not go on. */
    for (uint32_t i = 0; schema_is_bare(d, depth) && i < list->n && !d->failed; i++) {
        const struct vt_node *one = &list->u.item[(from + i) % list->n];
        const struct vt_node *type = schema_look(d, one, "type");

        if (schema_look(d, one, "const") || schema_look(d, one, "enum"))
            return one;
        if (!type || type->kind != VT_STR ? one->kind != VT_MAP
                                          : strcmp(type->u.str, "object") != 0 &&
                                                strcmp(type->u.str, "array") != 0)
            return one;
    }
    return &list->u.item[from];
}

void schema_gather(struct schema_view *v, const struct vt_node *schema, uint32_t depth,
                   uint32_t hops)
{
    static const char *const chosen[] = {"anyOf", "oneOf"};
    struct schema_draw *d = v->d;
    const struct vt_node *ref = schema_look(d, schema, "$ref");
    const struct vt_node *all = schema_look(d, schema, "allOf");

    if (schema->kind == VT_BOOL) {
        d->failed |= !schema->u.boolean;
        return;
    }
    if (schema->kind != VT_MAP || v->n == SCHEMA_PARTS || hops == SCHEMA_DEPTH) {
        d->failed = true;
        return;
    }
    v->part[v->n++] = schema;
    if (d->failed)
        return;
    if (ref) {
        ref = resolve_ref(d, ref);
        if (!ref)
            d->failed = true;
        else
            schema_gather(v, ref, depth, hops + 1);
    }
    for (uint32_t i = 0; all && all->kind == VT_LIST && i < all->n && !d->failed; i++)
        schema_gather(v, &all->u.item[i], depth, hops + 1);
    for (size_t i = 0; i < VT_COUNT(chosen); i++) {
        const struct vt_node *list = schema_look(d, schema, chosen[i]);

        if (list && list->kind == VT_LIST && list->n > 0)
            schema_gather(v, choose_branch(d, list, depth), depth, hops + 1);
    }
}

/* ---- keywords -------------------------------------------------------- */

const struct vt_node *schema_get(const struct schema_view *v, const char *key)
{
    for (uint32_t i = 0; i < v->n; i++) {
        const struct vt_node *n = schema_look(v->d, v->part[i], key);

        if (n)
            return n;
    }
    return NULL;
}

bool schema_bound(const struct schema_view *v, const char *key, bool most, double *out)
{
    bool any = false;

    for (uint32_t i = 0; i < v->n; i++) {
        const struct vt_node *n = schema_look(v->d, v->part[i], key);
        double x = api_get_real(n, 0);

        if (n && (n->kind == VT_INT || n->kind == VT_REAL) &&
            (!any || (most ? x > *out : x < *out))) {
            *out = x;
            any = true;
        }
    }
    return any;
}

uint32_t schema_count(const struct schema_view *v, const char *key, bool most,
                      uint32_t otherwise, uint32_t limit)
{
    double x = 0;

    if (!schema_bound(v, key, most, &x))
        return otherwise;
    return x < 0 ? 0 : x < limit ? (uint32_t)ceil(x) : limit;
}

/* ---- types ----------------------------------------------------------- */

static const struct {
    const char *name;
    uint32_t type;
} types[] = {
    {"null", TYPE_NULL},       {"boolean", TYPE_BOOL},
    {"integer", TYPE_INTEGER}, {"number", TYPE_NUMBER | TYPE_INTEGER},
    {"string", TYPE_STRING},   {"array", TYPE_ARRAY},
    {"object", TYPE_OBJECT},
};

static uint32_t type_named(const struct vt_node *name)
{
    for (size_t i = 0; name->kind == VT_STR && i < VT_COUNT(types); i++)
        if (strcmp(name->u.str, types[i].name) == 0)
            return types[i].type;
    return 0;
}

/* What a schema without a type speaks of. */
static uint32_t guessed_types(const struct schema_view *v)
{
    static const struct {
        const char *key;
        uint32_t type;
    } hints[] = {
        {"properties", TYPE_OBJECT},
        {"required", TYPE_OBJECT},
        {"additionalProperties", TYPE_OBJECT},
        {"minProperties", TYPE_OBJECT},
        {"items", TYPE_ARRAY},
        {"prefixItems", TYPE_ARRAY},
        {"minItems", TYPE_ARRAY},
        {"minimum", TYPE_NUMBER},
        {"maximum", TYPE_NUMBER},
        {"exclusiveMinimum", TYPE_NUMBER},
        {"exclusiveMaximum", TYPE_NUMBER},
        {"multipleOf", TYPE_NUMBER},
    };

    for (size_t i = 0; i < VT_COUNT(hints); i++)
        if (schema_get(v, hints[i].key))
            return hints[i].type;
    return TYPE_STRING;
}

uint32_t schema_types(const struct schema_view *v)
{
    uint32_t sum = ~0U;

    for (uint32_t i = 0; i < v->n; i++) {
        const struct vt_node *type = schema_look(v->d, v->part[i], "type");
        const struct vt_node *nullable = schema_look(v->d, v->part[i], "nullable");
        uint32_t own = 0;

        if (!type)
            continue;
        if (type->kind == VT_STR)
            own = type_named(type);
        for (uint32_t k = 0; type->kind == VT_LIST && k < type->n && !v->d->failed;
             k++) {
            own |= type_named(&type->u.item[k]);
            schema_spend(v->d, VT_COUNT(types));
        }
        if (nullable && nullable->kind == VT_BOOL && nullable->u.boolean)
            own |= TYPE_NULL;
        sum &= own;
    }
    return sum == ~0U ? guessed_types(v) : sum;
}

uint32_t schema_type_of(const struct vt_node *value)
{
    static const uint32_t type[] = {
        [VT_NULL] = TYPE_NULL,   [VT_BOOL] = TYPE_BOOL,   [VT_INT] = TYPE_INTEGER,
        [VT_BIG] = TYPE_INTEGER, [VT_REAL] = TYPE_NUMBER, [VT_STR] = TYPE_STRING,
        [VT_LIST] = TYPE_ARRAY,  [VT_MAP] = TYPE_OBJECT,
    };

    if (value->kind == VT_REAL && value->u.real == floor(value->u.real))
        return TYPE_INTEGER;
    return value->kind < VT_COUNT(type) ? type[value->kind] : 0;
}
