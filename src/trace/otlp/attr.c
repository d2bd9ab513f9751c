/* attr.c - attributes and scalars of OTLP JSON.
 *
 * An attribute is {"key":"step.id","value":{"intValue":"7"}}; 64-bit integers are
 * strings as the collector writes them and may be numbers elsewhere. */
#include <math.h>

#include "trace/otlp/otlp.h"

/* ---- scalars ---------------------------------------------------------- */

static bool node_u64(const struct vt_node *n, uint64_t *out)
{
    if (n->kind == VT_STR)
        return vt_parse_u64(n->u.str, n->n, out);
    if (n->kind == VT_REAL) {
        if (!(n->u.real >= 0 && n->u.real < 0x1p63) || n->u.real != floor(n->u.real))
            return false;
        *out = (uint64_t)n->u.real;
        return true;
    }
    return vt_node_u64(n, UINT64_MAX, out);
}

static bool node_f64(const struct vt_node *n, double *out)
{
    if (n->kind == VT_STR)
        return vt_parse_f64(n->u.str, n->n, out);
    return vt_node_f64(n, out);
}

vt_ns otlp_ns_from_s(double s)
{
    return (vt_ns)llround(s * 1e9);
}

const char *otlp_last_word(const char *name)
{
    const char *dot = strrchr(name, '.');

    return dot ? dot + 1 : name;
}

const char *otlp_get_text(const struct vt_node *map, const char *key)
{
    const struct vt_node *n = vt_get(map, key);

    return n && n->kind == VT_STR ? n->u.str : NULL;
}

int otlp_get_list(const struct vt_node *map, const char *key,
                  const struct vt_node **out, struct vt_err *err)
{
    *out = vt_get_non_null(map, key);
    if (*out && (*out)->kind != VT_LIST)
        return vt_fail(err, VT_EINPUT, "field '%s' is not a list", key);
    return VT_OK;
}

int otlp_event(const struct vt_node *event, const char **word,
               const struct vt_node **attributes, struct vt_err *err)
{
    const char *name = otlp_get_text(event, "name");

    if (!name)
        return vt_fail(err, VT_EINPUT, "an event has no name");
    *word = otlp_last_word(name);
    return vt_within(err, otlp_get_list(event, "attributes", attributes, err),
                     "event '%.60s'", name);
}

int otlp_get_ns(const struct vt_node *map, const char *key, vt_ns *out,
                struct vt_err *err)
{
    const struct vt_node *n = vt_get(map, key);
    uint64_t v;

    if (!n)
        return vt_fail(err, VT_EINPUT, "field '%s' is missing", key);
    if (!node_u64(n, &v))
        return vt_fail(err, VT_EINPUT, "field '%s' is not an integer from 0", key);
    if (v > (uint64_t)OTLP_MAX_NS)
        return vt_fail(err, VT_EINPUT, "field '%s' is out of range", key);
    *out = (vt_ns)v;
    return VT_OK;
}

int otlp_get_hex(const struct vt_node *map, const char *key, uint64_t *words, size_t n,
                 struct vt_err *err)
{
    const struct vt_node *node = vt_get(map, key);

    if (!node)
        return vt_fail(err, VT_EINPUT, "field '%s' is missing", key);
    if (node->kind != VT_STR || node->n != 16 * n)
        return vt_fail(err, VT_EINPUT, "field '%s' is not %zu hex digits", key, 16 * n);
    for (size_t i = 0; i < 16 * n; i++) {
        int digit = vt_hex_value(node->u.str[i]);

        if (digit < 0)
            return vt_fail(err, VT_EINPUT, "field '%s' is not %zu hex digits", key,
                           16 * n);
        words[i / 16] = words[i / 16] << 4 | (uint64_t)digit;
    }
    return VT_OK;
}

/* ---- attributes ------------------------------------------------------- */

/* Attributes mostly come in the order in which they are asked for. */
static const struct vt_node *find_value(const struct vt_node *list, const char *key,
                                        uint32_t *from)
{
    for (uint32_t i = 0; list && i < list->n; i++) {
        uint32_t at = (*from + i) % list->n;
        const char *name = otlp_get_text(&list->u.item[at], "key");

        if (name && strcmp(name, key) == 0) {
            *from = at + 1;
            return vt_get(&list->u.item[at], "value");
        }
    }
    return NULL;
}

static int bad_attribute(const struct otlp_field *f, const char *what,
                         struct vt_err *err)
{
    return vt_fail(err, VT_EINPUT, "attribute '%s' %s", f->key, what);
}

static int read_number(const struct otlp_field *f, const struct vt_node *n, void *out,
                       struct vt_err *err)
{
    uint64_t v, max = INT64_MAX;
    double real;

    if (f->type == OTLP_F64) {
        if (!n || !node_f64(n, &real))
            return bad_attribute(f, "is not a number", err);
        if (!(real >= 0 && real <= 1e15))
            return bad_attribute(f, "is out of range", err);
        memcpy(out, &real, sizeof(real));
        return VT_OK;
    }
    if (!n || !node_u64(n, &v))
        return bad_attribute(f, "is not an integer from 0", err);
    if (f->type == OTLP_U32)
        max = INT32_MAX;
    else if (f->type == OTLP_NS)
        max = (uint64_t)OTLP_MAX_NS;
    if (v > max)
        return bad_attribute(f, "is out of range", err);
    if (f->type == OTLP_U32)
        *(uint32_t *)out = (uint32_t)v;
    else
        memcpy(out, &v, sizeof(v)); /* vt_ns has the same size and fits */
    return VT_OK;
}

int otlp_read(const struct vt_node *attributes, const struct otlp_field *fields,
              size_t n, void *out, struct vt_err *err)
{
    uint32_t from = 0;
    int rc = VT_OK;

    for (size_t i = 0; i < n && rc == VT_OK; i++) {
        const struct otlp_field *f = &fields[i];
        const struct vt_node *value = find_value(attributes, f->key, &from);
        const struct vt_node *number = vt_get(value, "intValue");
        const char *text = otlp_get_text(value, "stringValue");
        void *to = (char *)out + f->offset;

        if (!value)
            rc = f->need == VT_REQUIRED ? bad_attribute(f, "is missing", err) : VT_OK;
        else if (f->type != OTLP_STR)
            rc =
                read_number(f, number ? number : vt_get(value, "doubleValue"), to, err);
        else if (!text || !*text)
            rc = bad_attribute(f, "is not a text", err);
        else
            memcpy(to, &text, sizeof(text));
    }
    return rc;
}
