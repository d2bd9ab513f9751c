/* values.c - see values.h. */
#include "validate/values.h"

#include <math.h>

int values_add(struct values *x, double v, struct vt_err *err)
{
    int rc = vt_grow(&x->v, &x->cap, x->n + 1, sizeof(v), err);

    if (rc == VT_OK)
        x->v[x->n++] = v;
    return rc;
}

double values_quantile(struct values *x, double percent)
{
    double place;
    size_t below;

    if (x->n == 0)
        return (double)NAN;
    vt_sort_f64(x->v, x->n);
    place = percent / 100 * (double)(x->n - 1);
    below = (size_t)place;
    if (below + 1 >= x->n || place - (double)below <= 0)
        return x->v[below];
    if (!isfinite(x->v[below]) || !isfinite(x->v[below + 1]))
        return isfinite(x->v[below]) ? x->v[below + 1] : x->v[below];
    return vt_quantile(x->v, x->n, percent);
}

double values_mean(const struct values *x)
{
    double sum = 0;

    for (size_t i = 0; i < x->n; i++)
        sum += x->v[i];
    return x->n > 0 ? sum / (double)x->n : (double)NAN;
}

int keys_add(struct keys *k, const char *key, struct vt_err *err)
{
    size_t at = 0;
    int rc;

    while (at < k->n && strcmp(k->key[at], key) < 0)
        at++;
    if (at < k->n && strcmp(k->key[at], key) == 0)
        return VT_OK;
    rc = vt_grow(&k->key, &k->cap, k->n + 1, sizeof(*k->key), err);
    if (rc != VT_OK)
        return rc;
    memmove(&k->key[at + 1], &k->key[at], (k->n - at) * sizeof(*k->key));
    k->key[at] = key;
    k->n++;
    return VT_OK;
}

const char *path_in(struct vt_arena *a, const char *directory, const char *name)
{
    size_t size = strlen(directory) + strlen(name) + 2;
    char *path = vt_arena_alloc(a, size);

    if (path)
        snprintf(path, size, "%s/%s", directory, name);
    return path;
}
