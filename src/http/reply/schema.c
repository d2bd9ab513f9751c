/* schema.c - JSON drawn by a JSON schema: arguments of tools, structured output.
 *
 * Not looked at: not, if/then/else, contains, dependencies, patternProperties and
 * propertyNames, and that only one of oneOf may fit. Schemas are foreign: values,
 * depth and bytes are bounded. */
#include "http/reply/schema.h"

#include <string.h>

enum { MAX_ITEMS = 1024, MORE_ITEMS = 3, UNIQUE_TRIES = 32 };

/* ---- objects --------------------------------------------------------- */

struct object {
    const struct schema_view *v;
    uint32_t depth, written;
    uint32_t max;
};

/* A part's list of that name; an empty one if it has none. */
static const struct vt_node *list_of(const struct vt_node *part, const char *key)
{
    static const struct vt_node none = {.kind = VT_LIST};
    const struct vt_node *list = vt_get(part, key);

    return list && list->kind == VT_LIST ? list : &none;
}

/* Is the key required by the parts before `part`, or by the first n names of its own
 * list? */
static bool is_required(const struct schema_view *v, uint32_t part, uint32_t n,
                        const char *key)
{
    for (uint32_t i = 0; i < v->n && i <= part; i++) {
        const struct vt_node *list = list_of(v->part[i], "required");

        for (uint32_t k = 0; k < (i == part ? n : list->n); k++)
            if (list->u.item[k].kind == VT_STR &&
                strcmp(list->u.item[k].u.str, key) == 0)
                return true;
    }
    return false;
}

/* Schemas that the parts have for a property; 0: it is an additional one. */
static uint32_t property_schemas(const struct schema_view *v, const char *key,
                                 const struct vt_node **schema)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < v->n; i++) {
        const struct vt_node *s = vt_get(vt_get(v->part[i], "properties"), key);

        if (s)
            schema[n++] = s;
    }
    return n;
}

static void write_property(struct schema_draw *d, struct object *o, const char *key)
{
    const struct vt_node *schema[SCHEMA_PARTS];
    uint32_t n = property_schemas(o->v, key, schema);
    const struct vt_node *other = schema_get(o->v, "additionalProperties");

    if (n == 0 && other && other->kind == VT_MAP)
        schema[n++] = other;
    if (o->written++ > 0)
        vt_buf_str(d->b, ", ");
    vt_buf_json_str(d->b, key, strlen(key));
    vt_buf_str(d->b, ": ");
    schema_value(d, schema, n, o->depth + 1);
}

/* Properties in the schema's order, so that what is written reads as it was meant. */
static void write_known(struct schema_draw *d, struct object *o, uint32_t optional)
{
    for (uint32_t i = 0; i < o->v->n; i++) {
        const struct vt_node *all = vt_get(o->v->part[i], "properties");

        for (uint32_t k = 0; all && all->kind == VT_MAP && k < all->n; k++) {
            const char *key = all->u.item[k].key;
            bool needed = is_required(o->v, o->v->n, 0, key), first = true;

            for (uint32_t j = 0; j < i; j++)
                first = first && !vt_get(vt_get(o->v->part[j], "properties"), key);
            if (d->failed || !first) /* another part had it */
                continue;
            if (!needed &&
                (optional == 0 || (o->depth >= SCHEMA_SHALLOW) ||
                 schema_below(d, 2) == 0 ||
                 (all->u.item[k].kind == VT_BOOL && !all->u.item[k].u.boolean)))
                continue;
            if (!needed)
                optional--;
            write_property(d, o, key);
        }
    }
}

static void write_object(struct schema_draw *d, const struct schema_view *v,
                         uint32_t depth)
{
    uint32_t least = schema_count(v, "minProperties", true, 0, MAX_ITEMS);
    const struct vt_node *schema[SCHEMA_PARTS];
    const struct vt_node *other = schema_get(v, "additionalProperties");
    bool closed = other && other->kind == VT_BOOL && !other->u.boolean;
    uint32_t needed = 0;
    struct object o = {
        .v = v,
        .depth = depth,
        .max = schema_count(v, "maxProperties", false, MAX_ITEMS, MAX_ITEMS)};

    for (uint32_t i = 0; i < v->n; i++)
        needed += list_of(v->part[i], "required")->n;
    vt_buf_char(d->b, '{');
    write_known(d, &o, o.max > needed ? o.max - needed : 0);
    for (uint32_t i = 0; i < v->n; i++) { /* must be there, but is not described */
        const struct vt_node *list = list_of(v->part[i], "required");

        for (uint32_t k = 0; k < list->n; k++) {
            const struct vt_node *key = &list->u.item[k];

            if (key->kind == VT_STR && !d->failed &&
                !is_required(v, i, k, key->u.str) &&
                property_schemas(v, key->u.str, schema) == 0)
                write_property(d, &o, key->u.str);
        }
    }
    /* Keys are made up where the schema asks for more of them or names none at all. */
    if (o.written == 0 && other && other->kind == VT_MAP && least == 0 &&
        depth < SCHEMA_SHALLOW)
        least = 1 + (uint32_t)schema_below(d, 2);
    least = least < o.max ? least : o.max;
    if (closed && o.written < least)
        d->failed = true;
    while (o.written < least && !d->failed) {
        char key[32];

        snprintf(key, sizeof(key), "%s_%u", schema_word(d), o.written);
        write_property(d, &o, key);
    }
    vt_buf_char(d->b, '}');
}

/* ---- arrays ---------------------------------------------------------- */

/* Schemas for item i; n_prefix: how many have one of their own. False: none may be
 * there. */
static bool item_schemas(const struct schema_view *v, uint32_t i,
                         const struct vt_node **schema, uint32_t *n, uint32_t *n_prefix)
{
    *n = *n_prefix = 0;
    for (uint32_t p = 0; p < v->n; p++) {
        const struct vt_node *items = vt_get(v->part[p], "items");
        const struct vt_node *prefix = vt_get(v->part[p], "prefixItems");
        uint32_t own;

        if (!prefix && items && items->kind == VT_LIST) {
            prefix = items;
            items = vt_get(v->part[p], "additionalItems");
        }
        own = prefix && prefix->kind == VT_LIST ? prefix->n : 0;
        *n_prefix = own > *n_prefix ? own : *n_prefix;
        if (i < own)
            schema[(*n)++] = &prefix->u.item[i];
        else if (items && items->kind == VT_BOOL && !items->u.boolean)
            return false;
        else if (items)
            schema[(*n)++] = items;
    }
    return true;
}

/* One item; false: none that is unlike all others was found, and none was written. */
static bool write_item(struct schema_draw *d, const struct schema_view *v, uint32_t i,
                       uint32_t depth, size_t *start, bool unique)
{
    const struct vt_node *schema[SCHEMA_PARTS];
    size_t before = d->b->len;
    uint32_t n, n_prefix;

    if (!item_schemas(v, i, schema, &n, &n_prefix))
        return false;
    if (i > 0)
        vt_buf_str(d->b, ", ");
    start[i] = d->b->len;
    for (int tries = 0; tries < UNIQUE_TRIES && !d->failed; tries++) {
        bool repeated = false;
        size_t len;

        d->b->len = start[i];
        schema_value(d, schema, n, depth + 1);
        if (!unique || d->failed)
            return true;
        len = d->b->len - start[i];
        for (uint32_t k = 0; k < i && !repeated; k++) /* ", " stands between them */
            repeated = start[k + 1] - start[k] - 2 == len &&
                       memcmp(d->b->data + start[k], d->b->data + start[i], len) == 0;
        if (!repeated)
            return true;
    }
    d->b->len = before;
    return d->failed;
}

static void write_array(struct schema_draw *d, const struct schema_view *v,
                        uint32_t depth)
{
    const struct vt_node *unique = schema_get(v, "uniqueItems");
    bool is_unique = unique && unique->kind == VT_BOOL && unique->u.boolean;
    uint32_t min = schema_count(v, "minItems", true, 0, MAX_ITEMS + 1);
    uint32_t max = schema_count(v, "maxItems", false, MAX_ITEMS, MAX_ITEMS);
    const struct vt_node *schema[SCHEMA_PARTS];
    uint32_t n_schemas, n_prefix, n, i = 0;
    size_t start[MAX_ITEMS + 1];

    if (min > max)
        d->failed = true;
    (void)item_schemas(v, 0, schema, &n_schemas, &n_prefix);
    n = n_prefix > min ? n_prefix : min;
    if (n_prefix == 0 && depth < SCHEMA_SHALLOW)
        n += (uint32_t)schema_below(d, MORE_ITEMS + 1);
    if (n == 0 && max > 0 && depth < SCHEMA_SHALLOW)
        n = 1;
    n = n < max ? n : max;
    vt_buf_char(d->b, '[');
    while (i < n && !d->failed && write_item(d, v, i, depth, start, is_unique))
        i++;
    if (i < min)
        d->failed = true;
    vt_buf_char(d->b, ']');
}

/* ---- values ---------------------------------------------------------- */

/* An enum's value that the types allow, and that all other enums have too. */
static void write_listed(struct schema_draw *d, const struct schema_view *v,
                         const struct vt_node *list)
{
    uint32_t types = ~0U, from;

    if (list->kind != VT_LIST || list->n == 0) {
        d->failed = true;
        return;
    }
    if (schema_get(v, "type"))
        types = schema_types(v);
    from = (uint32_t)schema_below(d, list->n);
    for (uint32_t i = 0; i < list->n; i++) {
        const struct vt_node *one = &list->u.item[(from + i) % list->n];

        if (schema_type_of(one) & types) {
            vt_buf_json_node(d->b, one, &json_dumps);
            return;
        }
    }
    d->failed = true;
}

static void write_typed(struct schema_draw *d, const struct schema_view *v,
                        uint32_t depth)
{
    uint32_t types = schema_types(v) & 127, type;
    uint32_t simple = types & ~(uint32_t)(TYPE_ARRAY | TYPE_OBJECT);

    if (types == 0) {
        d->failed = true;
        return;
    }
    if (types & TYPE_NUMBER)
        types &= ~(uint32_t)TYPE_INTEGER;
    if (depth >= SCHEMA_SHALLOW && simple)
        types &= simple;
    if ((types & (types - 1)) && schema_below(d, 4) > 0) /* null now and then */
        types &= ~(uint32_t)TYPE_NULL;
    do
        type = 1U << schema_below(d, 7);
    while (!(types & type));
    switch (type) {
    case TYPE_NULL:
        vt_buf_str(d->b, "null");
        break;
    case TYPE_BOOL:
        vt_buf_str(d->b, schema_below(d, 2) ? "true" : "false");
        break;
    case TYPE_INTEGER:
        schema_numeric(d, v, true);
        break;
    case TYPE_NUMBER:
        schema_numeric(d, v, false);
        break;
    case TYPE_ARRAY:
        write_array(d, v, depth);
        break;
    case TYPE_OBJECT:
        write_object(d, v, depth);
        break;
    default:
        schema_string(d, v);
    }
}

void schema_value(struct schema_draw *d, const struct vt_node *const *schema,
                  uint32_t n, uint32_t depth)
{
    struct schema_view v = {.n = 0};
    const struct vt_node *fixed;

    if (d->left == 0 || depth > SCHEMA_DEPTH || d->b->len > d->limit || d->b->failed)
        d->failed = true;
    else
        d->left--;
    for (uint32_t i = 0; i < n && !d->failed; i++)
        schema_gather(d, &v, schema[i], depth, 0);
    if (d->failed)
        return;
    fixed = schema_get(&v, "const");
    if (fixed)
        vt_buf_json_node(d->b, fixed, &json_dumps);
    else if ((fixed = schema_get(&v, "enum")))
        write_listed(d, &v, fixed);
    else
        write_typed(d, &v, depth);
}

bool reply_schema_write(struct vt_buf *b, const struct vt_node *schema, uint64_t key)
{
    struct schema_draw d = {
        .b = b, .root = schema, .limit = b->len + SCHEMA_BYTES, .left = SCHEMA_VALUES};
    size_t before = b->len;

    vt_rng_init(&d.rng, key, "schema");
    schema_value(&d, &schema, 1, 0);
    if (d.failed)
        b->len = before;
    return !d.failed;
}

void reply_schema_any(struct vt_buf *b, uint64_t key)
{
    struct schema_draw d = {.b = b};
    uint64_t n;

    vt_rng_init(&d.rng, key, "schema");
    n = 2 + schema_below(&d, 3);
    vt_buf_char(b, '{');
    for (uint64_t i = 0; i < n; i++) {
        vt_buf_printf(b, "%s\"%s_%u\": ", i > 0 ? ", " : "", schema_word(&d),
                      (unsigned)i);
        if (schema_below(&d, 2))
            vt_buf_u64(b, schema_below(&d, 1000));
        else
            vt_buf_printf(b, "\"%s %s\"", schema_word(&d), schema_word(&d));
    }
    vt_buf_char(b, '}');
}
