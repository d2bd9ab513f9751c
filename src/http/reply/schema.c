/* schema.c - JSON drawn by a JSON schema: arguments of tools, structured output.
 *
 * Not looked at: not, if/then/else, contains, dependencies, patternProperties and
 * propertyNames, and that only one of oneOf may fit. Schemas are foreign: values,
 * depth, bytes and work are bounded. */
#include "http/reply/schema.h"

#include <string.h>

enum {
    MAX_ITEMS = 1024,
    MORE_ITEMS = 3,
    UNIQUE_TRIES = 32,
    SIMPLE_TRIES = 1, /* of a simplest item; the next may be richer */
    VALUE_WORK = 4,   /* for a value of any kind */
    FIXED_WORK = 4,   /* for each value of a const or an enum */
    COMPARED = 16,    /* items that are compared in the time of a node */
};

/* ---- objects --------------------------------------------------------- */

struct object {
    struct schema_draw *d;
    /* Of those parts that have them: */
    const struct vt_node *properties[SCHEMA_PARTS]; /* maps */
    const struct vt_node *required[SCHEMA_PARTS];   /* lists */
    uint32_t n_properties, n_required;
    const struct vt_node *other; /* additionalProperties; NULL: not stated */
    uint32_t depth, written, max;
};

static void look_into(struct object *o, const struct schema_view *v)
{
    for (uint32_t i = 0; i < v->n; i++) {
        const struct vt_node *known = schema_look(v->d, v->part[i], "properties");
        const struct vt_node *needed = schema_look(v->d, v->part[i], "required");

        if (known && known->kind == VT_MAP)
            o->properties[o->n_properties++] = known;
        if (needed && needed->kind == VT_LIST)
            o->required[o->n_required++] = needed;
    }
}

/* Is the key in one of the first n lists of what is required? */
static bool is_required(const struct object *o, uint32_t n, const char *key)
{
    for (uint32_t i = 0; i < n; i++)
        if (schema_child(o->d, o->required[i], key))
            return true;
    return false;
}

/* Schemas that the first `maps` of properties have for one; 0: it is an additional
 * one. */
static uint32_t property_schemas(const struct object *o, uint32_t maps, const char *key,
                                 const struct vt_node **schema)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < maps; i++) {
        const struct vt_node *s = schema_child(o->d, o->properties[i], key);

        if (s)
            schema[n++] = s;
    }
    return n;
}

static void write_property(struct object *o, const char *key)
{
    const struct vt_node *schema[SCHEMA_PARTS];
    uint32_t n = property_schemas(o, o->n_properties, key, schema);
    struct schema_draw *d = o->d;
    size_t len = strlen(key);

    if (n == 0 && o->other && o->other->kind == VT_MAP)
        schema[n++] = o->other;
    if (len > SCHEMA_BYTES)
        d->failed = true;
    schema_spend(d, len / 4);
    if (d->failed)
        return;
    if (o->written++ > 0)
        vt_buf_str(d->b, ", ");
    vt_buf_json_str(d->b, key, len);
    vt_buf_str(d->b, ": ");
    schema_value(d, schema, n, o->depth + 1);
}

/* One of two optional properties is there, if it may be at all. */
static bool is_taken(struct schema_draw *d, const struct vt_node *schema)
{
    return schema_below(d, 2) != 0 && !(schema->kind == VT_BOOL && !schema->u.boolean);
}

/* Properties in the schema's order, so that what is written reads as it was meant. */
static void write_known(struct object *o, uint32_t optional)
{
    const struct vt_node *schema[SCHEMA_PARTS];
    struct schema_draw *d = o->d;

    for (uint32_t i = 0; i < o->n_properties; i++) {
        const struct vt_node *all = o->properties[i];

        for (uint32_t k = 0; k < all->n; k++) {
            const char *key = all->u.item[k].key;
            bool needed = is_required(o, o->n_required, key);

            schema_spend(d, 1);
            if (d->failed)
                return;
            if (!needed && (optional == 0 || schema_is_bare(d, o->depth)))
                continue;
            if (property_schemas(o, i, key, schema) > 0) /* another part had it */
                continue;
            if (!needed && !is_taken(d, &all->u.item[k]))
                continue;
            if (!needed)
                optional--;
            write_property(o, key);
        }
    }
}

/* What must be there, but is not described. */
static void write_undescribed(struct object *o)
{
    const struct vt_node *schema[SCHEMA_PARTS];

    for (uint32_t i = 0; i < o->n_required; i++) {
        const struct vt_node *list = o->required[i];

        for (uint32_t k = 0; k < list->n && !o->d->failed; k++) {
            const struct vt_node *key = &list->u.item[k];

            schema_spend(o->d, 1);
            if (key->kind == VT_STR && !is_required(o, i, key->u.str) &&
                schema_child(o->d, list, key->u.str) == key && /* its first */
                property_schemas(o, o->n_properties, key->u.str, schema) == 0)
                write_property(o, key->u.str);
        }
    }
}

static void write_object(struct schema_draw *d, const struct schema_view *v,
                         uint32_t depth)
{
    uint32_t least = schema_count(v, "minProperties", true, 0, MAX_ITEMS);
    struct object o = {
        .d = d,
        .depth = depth,
        .other = schema_get(v, "additionalProperties"),
        .max = schema_count(v, "maxProperties", false, MAX_ITEMS, MAX_ITEMS)};
    bool closed = o.other && o.other->kind == VT_BOOL && !o.other->u.boolean;
    uint32_t needed = 0;

    look_into(&o, v);
    for (uint32_t i = 0; i < o.n_required; i++)
        needed += o.required[i]->n;
    vt_buf_char(d->b, '{');
    write_known(&o, o.max > needed ? o.max - needed : 0);
    write_undescribed(&o);
    /* Keys are made up where the schema asks for more of them or names none at all. */
    if (o.written == 0 && o.other && o.other->kind == VT_MAP && least == 0 &&
        !schema_is_bare(d, depth))
        least = 1 + (uint32_t)schema_below(d, 2);
    least = least < o.max ? least : o.max;
    if (closed && o.written < least)
        d->failed = true;
    while (o.written < least && !d->failed) {
        char key[32];

        snprintf(key, sizeof(key), "%s_%u", schema_word(d), o.written);
        write_property(&o, key);
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
        const struct vt_node *items = schema_look(v->d, v->part[p], "items");
        const struct vt_node *prefix = schema_look(v->d, v->part[p], "prefixItems");
        uint32_t own;

        if (!prefix && items && items->kind == VT_LIST) {
            prefix = items;
            items = schema_look(v->d, v->part[p], "additionalItems");
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

struct written { /* items of an array */
    size_t start[MAX_ITEMS + 1];
    uint64_t hash[MAX_ITEMS]; /* of their texts; only if they must differ */
    bool unique;
};

/* Is the item that ends the buffer like one before it? */
static bool is_repeated(struct schema_draw *d, struct written *w, uint32_t i)
{
    const char *text = d->b->data + w->start[i];
    size_t len = d->b->len - w->start[i];

    schema_spend(d, 1 + i / COMPARED + len / COMPARED);
    if (d->failed)
        return false;
    w->hash[i] = vt_hash_bytes(text, len, 0);
    for (uint32_t k = 0; k < i; k++) /* ", " stands between them */
        if (w->hash[k] == w->hash[i] && w->start[k + 1] - w->start[k] - 2 == len &&
            memcmp(d->b->data + w->start[k], text, len) == 0)
            return true;
    return false;
}

/* One item; false: none that is unlike all others was found, and none was written. */
static bool write_item(struct schema_draw *d, const struct schema_view *v, uint32_t i,
                       uint32_t depth, struct written *w)
{
    const struct vt_node *schema[SCHEMA_PARTS];
    size_t before = d->b->len;
    bool simple = d->simple, fits = false;
    uint32_t n, n_prefix;

    if (!item_schemas(v, i, schema, &n, &n_prefix))
        return false;
    if (i > 0)
        vt_buf_str(d->b, ", ");
    w->start[i] = d->b->len;
    for (int tries = 0; tries < UNIQUE_TRIES && !d->failed && !fits; tries++) {
        d->simple = simple && tries < SIMPLE_TRIES;
        d->b->len = w->start[i];
        schema_value(d, schema, n, depth + 1);
        fits = !w->unique || d->failed || !is_repeated(d, w, i);
    }
    d->simple = simple;
    if (!fits)
        d->b->len = before;
    return fits;
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
    struct written w;

    w.unique = is_unique;
    if (min > max)
        d->failed = true;
    (void)item_schemas(v, 0, schema, &n_schemas, &n_prefix);
    n = n_prefix > min && !d->simple ? n_prefix : min;
    if (n_prefix == 0 && !schema_is_bare(d, depth))
        n += (uint32_t)schema_below(d, MORE_ITEMS + 1);
    if (n == 0 && max > 0 && !schema_is_bare(d, depth))
        n = 1;
    n = n < max ? n : max;
    vt_buf_char(d->b, '[');
    while (i < n && !d->failed && write_item(d, v, i, depth, &w))
        i++;
    if (i < min)
        d->failed = true;
    vt_buf_char(d->b, ']');
}

/* ---- values ---------------------------------------------------------- */

/* A value of the schema's own, as it stands; too large a one is not looked at whole. */
static bool is_small(struct schema_draw *d, const struct vt_node *value, size_t *left)
{
    size_t own = 1 + (value->kind == VT_STR ? value->n : 0) +
                 (value->key ? strlen(value->key) : 0);

    schema_spend(d, FIXED_WORK + own / COMPARED);
    if (own > *left || d->failed)
        return false;
    *left -= own;
    for (uint32_t i = 0; value->kind >= VT_LIST && i < value->n; i++)
        if (!is_small(d, &value->u.item[i], left))
            return false;
    return true;
}

static void write_fixed(struct schema_draw *d, const struct vt_node *value)
{
    size_t left = SCHEMA_BYTES;

    if (is_small(d, value, &left))
        vt_buf_json_node(d->b, value, &json_dumps);
    else
        d->failed = true;
}

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
    from = d->simple ? 0 : (uint32_t)schema_below(d, list->n);
    for (uint32_t i = 0; i < list->n && !d->failed; i++) {
        const struct vt_node *one = &list->u.item[(from + i) % list->n];

        schema_spend(d, 1);
        if (schema_type_of(one) & types) {
            write_fixed(d, one);
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
    if (schema_is_bare(d, depth) && simple)
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
    struct schema_view v = {.d = d};
    const struct vt_node *fixed;

    if (d->left == 0 || depth > SCHEMA_DEPTH || d->b->len > d->limit || d->b->failed)
        d->failed = true;
    else
        d->left--;
    schema_spend(d, VALUE_WORK);
    for (uint32_t i = 0; i < n && !d->failed; i++)
        schema_gather(&v, schema[i], depth, 0);
    if (d->failed)
        return;
    fixed = schema_get(&v, "const");
    if (fixed)
        write_fixed(d, fixed);
    else if ((fixed = schema_get(&v, "enum")))
        write_listed(d, &v, fixed);
    else
        write_typed(d, &v, depth);
}

static bool write_whole(struct reply_forms *f, struct vt_buf *b,
                        const struct vt_node *schema, uint64_t key,
                        enum reply_effort effort)
{
    struct schema_draw d = {.forms = f,
                            .b = b,
                            .root = schema,
                            .limit = b->len + SCHEMA_BYTES,
                            .left = SCHEMA_VALUES,
                            .simple = effort == REPLY_SIMPLE};
    size_t before = b->len;

    reply_forms_limit(f, effort);
    vt_rng_init(&d.rng, key, "schema");
    schema_value(&d, &schema, 1, 0);
    if (d.failed || b->len > d.limit)
        b->len = before;
    b->failed |= f->no_memory;
    return b->len > before;
}

bool reply_schema_write(struct reply_forms *f, struct vt_buf *b,
                        const struct vt_node *schema, uint64_t key)
{
    return write_whole(f, b, schema, key, REPLY_DRAWN) ||
           write_whole(f, b, schema, key, REPLY_SIMPLE);
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
