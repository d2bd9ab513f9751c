/* distribution.c - how lengths and turns of made-up conversations are spread. */
#include <math.h>

#include "load/multiturn.h"

/* ---- reading --------------------------------------------------------- */

static const double most = 1e9;

static int get_number(const struct vt_node *map, const char *key, double lo,
                      double *out, struct vt_err *err)
{
    return vt_get_f64(map, key, VT_REQUIRED, lo, most, out, err);
}

static int read_uniform(const struct vt_node *map, struct dist *d, struct vt_err *err)
{
    const struct vt_node *lo = vt_get(map, "min"), *hi = vt_get(map, "max");
    int rc = get_number(map, "min", 1e-9, &d->a, err);

    if (rc == VT_OK)
        rc = get_number(map, "max", d->a, &d->b, err);
    if (!lo || !hi || lo->kind != VT_INT || hi->kind != VT_INT)
        d->kind = DIST_UNIFORM_REAL;
    return rc;
}

/* By its average, and the median as a share of it; or by the normal one below it. */
static int read_lognormal(const struct vt_node *map, struct dist *d, struct vt_err *err)
{
    double ratio = 0.85;
    int rc;

    if (!vt_get(map, "average")) {
        rc = get_number(map, "mean", 1e-9, &d->a, err);
        return rc == VT_OK ? get_number(map, "sigma", 0, &d->b, err) : rc;
    }
    rc = get_number(map, "average", 1, &d->average, err);
    if (rc == VT_OK)
        rc = vt_get_f64(map, "median_ratio", VT_OPTIONAL, 1e-6, 1 - 1e-9, &ratio, err);
    d->a = log(d->average * ratio);
    d->b = sqrt(-2 * log(ratio));
    return rc;
}

int dist_read(const struct vt_node *map, struct dist *out, struct vt_err *err)
{
    static const struct {
        const char *name;
        enum dist_kind kind;
        const char *key; /* of its one number, */
        double least;
        int (*read)(const struct vt_node *map, struct dist *d, struct vt_err *err);
    } kinds[] = {{"constant", DIST_CONSTANT, "value", 0, NULL},
                 {"uniform", DIST_UNIFORM, NULL, 0, read_uniform},
                 {"lognormal", DIST_LOGNORMAL, NULL, 0, read_lognormal},
                 {"zipf", DIST_ZIPF, "alpha", 1.001, NULL},
                 {"poisson", DIST_POISSON, "alpha", 0, NULL}};
    const char *name = NULL;
    int rc = vt_get_str(map, "distribution", VT_REQUIRED, &name, err);

    *out = (struct dist){0};
    if (rc != VT_OK)
        return rc;
    for (size_t i = 0; i < VT_COUNT(kinds); i++)
        if (strcmp(kinds[i].name, name) == 0) {
            out->kind = kinds[i].kind;
            rc = kinds[i].key
                     ? get_number(map, kinds[i].key, kinds[i].least, &out->a, err)
                     : kinds[i].read(map, out, err);
            if (rc == VT_OK && out->kind >= DIST_LOGNORMAL)
                rc = vt_get_f64(map, "max", VT_OPTIONAL, 0, most, &out->max, err);
            return rc;
        }
    return vt_fail(err, VT_EINPUT,
                   "line %u: distribution '%s' is none of constant, uniform, "
                   "lognormal, zipf, poisson",
                   map->line, name);
}

/* ---- drawing --------------------------------------------------------- */

/* Devroye's rejection from a Pareto tail. */
static double draw_zipf(struct vt_rng *rng, double alpha)
{
    double less = alpha - 1, b = pow(2, less);

    if (less >= 1024) /* b overflows, and nobody draws a 2 any more */
        return 1;
    for (;;) {
        double u = 1 - vt_rng_f64(rng), v = vt_rng_f64(rng);
        double x = floor(pow(u, -1 / less)), t;

        if (!(x >= 1) || x > most)
            continue;
        t = pow(1 + 1 / x, less);
        if (v * x * (t - 1) / (b - 1) <= t / b)
            return x;
    }
}

/* Counts arrivals of a unit of time. */
static double count_arrivals(struct vt_rng *rng, double mean)
{
    double product = vt_rng_f64(rng), n = 0;

    for (double least = exp(-mean); product > least; n++)
        product *= vt_rng_f64(rng);
    return n;
}

/* Hoermann's transformed rejection, whose cost does not grow with the mean. */
static double reject_poisson(struct vt_rng *rng, double mean)
{
    double b = 0.931 + 2.53 * sqrt(mean), a = -0.059 + 0.02483 * b;
    double inverse = 1.1239 + 1.1328 / (b - 3.4), v_r = 0.9277 - 3.6224 / (b - 2);

    for (;;) {
        double u = vt_rng_f64(rng) - 0.5, v = 1 - vt_rng_f64(rng);
        double us = 0.5 - fabs(u), k;

        if (us < 1e-12)
            continue;
        k = floor((2 * a / us + b) * u + mean + 0.43);
        if (us >= 0.07 && v <= v_r)
            return k;
        if (k < 0 || (us < 0.013 && v > us))
            continue;
        if (log(v) + log(inverse) - log(a / (us * us) + b) <=
            k * log(mean) - mean - lgamma(k + 1))
            return k;
    }
}

static double draw_one(const struct dist *d, struct vt_rng *rng)
{
    switch (d->kind) {
    case DIST_UNIFORM:
        return d->a + (double)vt_rng_below(rng, (uint64_t)(d->b - d->a) + 1);
    case DIST_UNIFORM_REAL:
        return d->a + (d->b - d->a) * vt_rng_f64(rng);
    case DIST_LOGNORMAL:
        return exp(fmin(d->a + d->b * vt_rng_normal(rng), log(most)));
    case DIST_ZIPF:
        return draw_zipf(rng, d->a);
    case DIST_POISSON:
        return d->a < 10 ? count_arrivals(rng, d->a) : reject_poisson(rng, d->a);
    default:
        return d->a;
    }
}

void dist_sample(const struct dist *d, struct vt_rng *rng, uint32_t least,
                 double *scratch, uint32_t *out, size_t n)
{
    double sum = 0, scale = 1;

    for (size_t i = 0; i < n; i++) {
        scratch[i] = draw_one(d, rng);
        sum += scratch[i];
    }
    if (d->average > 0 && sum > 0)
        scale = d->average * (double)n / sum;
    for (size_t i = 0; i < n; i++) {
        double v = scratch[i] * scale;

        if (d->max > 0 && v > d->max)
            v = d->max;
        v = d->kind == DIST_LOGNORMAL ? nearbyint(v) : floor(v);
        out[i] = !(v > least)               ? least
                 : v < MULTITURN_MAX_TOKENS ? (uint32_t)v
                                            : MULTITURN_MAX_TOKENS;
    }
}
