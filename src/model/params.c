#include "model/params.h"

/* A word where a number belongs, from an inline spec. */
static int not_a_number(const struct vt_node *n, const char *field, struct vt_err *err)
{
    return vt_fail(err, VT_EINPUT, "field '%s': '%s' is not a finite number", field,
                   n->u.str);
}

int params_number(const struct vt_node *map, const char *key, double lo, double hi,
                  double *out, struct vt_err *err)
{
    const struct vt_node *n = vt_get(map, key);

    if (n && n->kind == VT_STR && n->line == 0)
        return not_a_number(n, key, err);
    return vt_get_f64(map, key, VT_OPTIONAL, lo, hi, out, err);
}

int params_read(const struct vt_node *map, const struct param *table,
                const char *const *also, void *model, struct vt_err *err)
{
    const char *known[64];
    size_t n = 0;
    int rc;

    for (const struct param *p = table; p->name && n + 1 < VT_COUNT(known); p++)
        known[n++] = p->name;
    for (; also && *also && n + 1 < VT_COUNT(known); also++)
        known[n++] = *also;
    known[n] = NULL;
    rc = vt_only_keys(map, known, err);
    for (; table->name && rc == VT_OK; table++) {
        double v;

        memcpy(&v, (char *)model + table->offset, sizeof(v));
        rc = params_number(map, table->name, table->lo, table->hi, &v, err);
        memcpy((char *)model + table->offset, &v, sizeof(v));
    }
    return rc;
}

int params_list(const struct vt_node *map, const char *key, double *out, uint32_t n,
                struct vt_err *err)
{
    const struct vt_node *list = vt_get(map, key);

    if (!list || list->kind != VT_LIST || list->n != n)
        return vt_fail(err, VT_EINPUT, "field '%s' must be a list of %u numbers", key,
                       n);
    for (uint32_t i = 0; i < n; i++) {
        const struct vt_node *x = &list->u.item[i];
        double v = x->kind == VT_REAL  ? x->u.real
                   : x->kind == VT_INT ? (double)x->u.integer
                                       : -1.0;

        if (x->kind == VT_STR)
            return not_a_number(x, key, err);
        if (!(v >= 0.0 && v <= PARAM_MAX))
            return vt_fail(err, VT_EINPUT, "field '%s': element %u must be 0 to %g",
                           key, i, PARAM_MAX);
        out[i] = v;
    }
    return VT_OK;
}
