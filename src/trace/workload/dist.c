/* dist.c - the distributions that a workload.yaml draws lengths and times from. */
#include <assert.h>
#include <math.h>

#include "trace/workload/workload.h"

#define MAX_PARAMETER 1e12 /* of means and the like; keeps sums finite */

/* What is being read. */
struct source {
    struct vt_arena *arena;
    const struct vt_node *map;
    struct trace_range range;
    const struct trace_files *files;
};

struct trace_dist_kind {
    const char *name;
    const char *const *keys; /* NULL-terminated; `dist` and those below */
    int (*read)(struct trace_dist *d, const struct source *s, struct vt_err *err);
    double (*draw)(const struct trace_dist *d, struct vt_rng *rng);
};

/* ---- numbers ---------------------------------------------------------- */

int trace_get_positive(const struct vt_node *map, const char *key, enum vt_need need,
                       double hi, double *out, struct vt_err *err)
{
    const struct vt_node *n = vt_get(map, key);
    double v = 0;
    int rc = vt_get_f64(map, key, need, -MAX_PARAMETER, hi, &v, err);

    if (rc != VT_OK || !n)
        return rc;
    if (!(v > 0))
        return vt_fail(err, VT_EINPUT, "line %u: field '%s' must be above 0", n->line,
                       key);
    *out = v;
    return VT_OK;
}

/* A value that a draw may take: within the range and whole if draws are. */
static int get_value(const struct source *s, const char *key, enum vt_need need,
                     double *out, struct vt_err *err)
{
    int64_t whole = (int64_t)*out;
    int rc;

    if (!s->range.whole)
        return vt_get_f64(s->map, key, need, s->range.lo, s->range.hi, out, err);
    rc = vt_get_i64(s->map, key, need, (int64_t)s->range.lo, (int64_t)s->range.hi,
                    &whole, err);
    *out = (double)whole;
    return rc;
}

static int get_limits(struct trace_dist *d, const struct source *s, enum vt_need need,
                      struct vt_err *err)
{
    const struct vt_node *min = vt_get(s->map, "min");
    int rc;

    if ((rc = get_value(s, "min", need, &d->lo, err)) ||
        (rc = get_value(s, "max", need, &d->hi, err)))
        return rc;
    if (d->lo > d->hi)
        return vt_fail(err, VT_EINPUT, "line %u: field 'min' is above 'max'",
                       min ? min->line : s->map->line);
    return VT_OK;
}

/* ---- constant --------------------------------------------------------- */

static int constant_read(struct trace_dist *d, const struct source *s,
                         struct vt_err *err)
{
    return get_value(s, "value", VT_REQUIRED, &d->a, err);
}

static double constant_draw(const struct trace_dist *d, struct vt_rng *rng)
{
    (void)rng;
    return d->a;
}

/* ---- uniform ---------------------------------------------------------- */

static int uniform_read(struct trace_dist *d, const struct source *s,
                        struct vt_err *err)
{
    return get_limits(d, s, VT_REQUIRED, err);
}

static double uniform_draw(const struct trace_dist *d, struct vt_rng *rng)
{
    if (d->whole) /* both ends included */
        return d->lo + (double)vt_rng_below(rng, (uint64_t)(d->hi - d->lo) + 1);
    return d->lo + vt_rng_f64(rng) * (d->hi - d->lo);
}

/* ---- normal ----------------------------------------------------------- */

static int normal_read(struct trace_dist *d, const struct source *s, struct vt_err *err)
{
    double least = s->range.lo < 0 ? -MAX_PARAMETER : 0;
    int rc;

    if ((rc = vt_get_f64(s->map, "mean", VT_REQUIRED, least, MAX_PARAMETER, &d->a,
                         err)) ||
        (rc = vt_get_f64(s->map, "std", VT_REQUIRED, 0, MAX_PARAMETER, &d->b, err)))
        return rc;
    return get_limits(d, s, VT_OPTIONAL, err);
}

static double normal_draw(const struct trace_dist *d, struct vt_rng *rng)
{
    return d->a + d->b * vt_rng_normal(rng);
}

/* ---- lognormal -------------------------------------------------------- */

/* a and b are mean and deviation of the logarithm. */
static int lognormal_read(struct trace_dist *d, const struct source *s,
                          struct vt_err *err)
{
    double median = 0, mean = 0, std = 0;
    bool by_mean = vt_get(s->map, "mean") || vt_get(s->map, "std");
    int rc;

    if (by_mean && (vt_get(s->map, "median") || vt_get(s->map, "sigma")))
        return vt_fail(err, VT_EINPUT,
                       "line %u: a lognormal takes 'median' and 'sigma' or 'mean' and "
                       "'std', not both",
                       s->map->line);
    if (by_mean) {
        if ((rc = trace_get_positive(s->map, "mean", VT_REQUIRED, MAX_PARAMETER, &mean,
                                     err)) ||
            (rc = vt_get_f64(s->map, "std", VT_REQUIRED, 0, MAX_PARAMETER, &std, err)))
            return rc;
        d->b = sqrt(log1p(std / mean * (std / mean)));
        d->a = log(mean) - d->b * d->b / 2;
    } else {
        if ((rc = trace_get_positive(s->map, "median", VT_REQUIRED, MAX_PARAMETER,
                                     &median, err)) ||
            (rc = vt_get_f64(s->map, "sigma", VT_REQUIRED, 0, 100, &d->b, err)))
            return rc;
        d->a = log(median);
    }
    return get_limits(d, s, VT_OPTIONAL, err);
}

static double lognormal_draw(const struct trace_dist *d, struct vt_rng *rng)
{
    return exp(d->a + d->b * vt_rng_normal(rng));
}

/* ---- exponential ------------------------------------------------------ */

static int exponential_read(struct trace_dist *d, const struct source *s,
                            struct vt_err *err)
{
    int rc = trace_get_positive(s->map, "mean", VT_REQUIRED, MAX_PARAMETER, &d->a, err);

    return rc ? rc : get_limits(d, s, VT_OPTIONAL, err);
}

static double exponential_draw(const struct trace_dist *d, struct vt_rng *rng)
{
    return d->a * vt_rng_exp(rng);
}

/* ---- empirical -------------------------------------------------------- */

struct table { /* while it is read */
    struct trace_range range;
    double *value;
    uint64_t *upto;
    size_t n, cap_value, cap_upto;
};

/* "VALUE" or "VALUE COUNT". */
static int table_line(void *user, struct trace_reader *r, struct vt_err *err)
{
    struct table *t = user;
    const struct trace_range *range = &t->range;
    const char *value = r->line + strspn(r->line, " \t"), *count;
    size_t n_value, n_count;
    uint64_t weight = 1, before = t->n ? t->upto[t->n - 1] : 0;
    double v;
    int rc;

    if (value[0] == '#')
        return VT_OK;
    n_value = strcspn(value, " \t");
    count = value + n_value + strspn(value + n_value, " \t");
    n_count = strcspn(count, " \t");
    if (!vt_parse_f64(value, n_value, &v) || v < range->lo || v > range->hi ||
        (range->whole && v != floor(v)))
        return vt_fail(err, VT_EINPUT, "'%.*s' is not %s in [%.10g, %.10g]",
                       n_value < 40 ? (int)n_value : 40, value,
                       range->whole ? "an integer" : "a number", range->lo, range->hi);
    if (n_count > 0 && (!vt_parse_u64(count, n_count, &weight) || weight < 1 ||
                        count[n_count + strspn(count + n_count, " \t")] != '\0'))
        return vt_fail(err, VT_EINPUT, "'%.40s' is not a count from 1", count);
    if ((rc = vt_grow(&t->value, &t->cap_value, t->n + 1, sizeof(*t->value), err)) ||
        (rc = vt_grow(&t->upto, &t->cap_upto, t->n + 1, sizeof(*t->upto), err)))
        return rc;
    if (weight > UINT64_MAX / 2 - before)
        return vt_fail(err, VT_EINPUT, "the counts are too large");
    t->value[t->n] = v;
    t->upto[t->n++] = before + weight;
    return VT_OK;
}

static int table_load(struct table *t, const struct source *s, const char *file,
                      struct vt_err *err)
{
    struct vt_buf path = {0};
    struct trace_reader r = {0};
    int rc;

    if (s->files->none || (file[0] != '/' && !s->files->dir))
        return vt_fail(err, VT_EINPUT,
                       "line %u: field 'file': '%.80s' cannot be read here",
                       vt_get(s->map, "file")->line, file);
    if (file[0] != '/') {
        vt_buf_str(&path, s->files->dir);
        vt_buf_char(&path, '/');
    }
    vt_buf_str(&path, file);
    rc = path.failed ? vt_nomem(err) : vt_lines_open(&r.lines, path.data, err);
    if (rc == VT_OK) {
        r.name = vt_lines_name(r.lines);
        rc = trace_reader_lines(&r, table_line, t, err);
        if (rc == VT_OK && t->n == 0)
            rc = vt_fail(err, VT_EINPUT, "%s: there are no values", r.name);
        vt_lines_close(r.lines);
    }
    vt_buf_free(&path);
    return vt_within(err, rc, "line %u: field 'file'", vt_get(s->map, "file")->line);
}

static int empirical_read(struct trace_dist *d, const struct source *s,
                          struct vt_err *err)
{
    struct table t = {.range = s->range};
    const char *file = NULL;
    int rc;

    if (!(rc = vt_get_str(s->map, "file", VT_REQUIRED, &file, err)) &&
        !(rc = get_limits(d, s, VT_OPTIONAL, err)) &&
        !(rc = table_load(&t, s, file, err))) {
        assert(t.value && t.upto);
        d->n = t.n;
        d->value = vt_arena_alloc(s->arena, t.n * sizeof(*d->value));
        d->upto = vt_arena_alloc(s->arena, t.n * sizeof(*d->upto));
        if (d->value && d->upto) {
            memcpy(d->value, t.value, t.n * sizeof(*d->value));
            memcpy(d->upto, t.upto, t.n * sizeof(*d->upto));
        } else {
            rc = vt_nomem(err);
        }
    }
    free(t.value);
    free(t.upto);
    return rc;
}

static double empirical_draw(const struct trace_dist *d, struct vt_rng *rng)
{
    uint64_t x = vt_rng_below(rng, d->upto[d->n - 1]);
    size_t lo = 0, hi = d->n - 1;

    while (lo < hi) { /* the first whose sum of weights is above x */
        size_t mid = lo + (hi - lo) / 2;

        if (d->upto[mid] > x)
            hi = mid;
        else
            lo = mid + 1;
    }
    return d->value[lo];
}

/* ---- quantiles -------------------------------------------------------- */

/* Shares ascend from 0 to 1, values do not descend. */
static int read_quantile(struct trace_dist *d, double *share, const struct source *s,
                         const struct vt_node *pair, struct vt_err *err)
{
    const struct trace_range *r = &s->range;
    const struct vt_node *at =
        pair->kind == VT_LIST && pair->n == 2 ? pair->u.item : NULL;
    size_t i = d->n;
    double v;

    if (!at || !vt_node_f64(&at[0], &share[i]) || !vt_node_f64(&at[1], &v))
        return vt_fail(err, VT_EINPUT,
                       "line %u: a pair of 'at' is [share, value], two numbers",
                       pair->line);
    if (v < r->lo || v > r->hi)
        return vt_fail(err, VT_EINPUT, "line %u: %.10g is not in [%.10g, %.10g]",
                       pair->line, v, r->lo, r->hi);
    if (i == 0 ? share[i] != 0 : !(share[i] > share[i - 1] && share[i] <= 1))
        return vt_fail(err, VT_EINPUT,
                       "line %u: shares of 'at' must ascend from 0 to 1", pair->line);
    if (i > 0 && v < d->value[i - 1])
        return vt_fail(err, VT_EINPUT, "line %u: values of 'at' must not descend",
                       pair->line);
    d->value[d->n++] = v;
    return VT_OK;
}

static int quantiles_read(struct trace_dist *d, const struct source *s,
                          struct vt_err *err)
{
    const struct vt_node *list = vt_get(s->map, "at");
    size_t n = list && list->kind == VT_LIST ? list->n : 0;
    int rc = VT_OK;

    if (n < 2)
        return vt_fail(err, VT_EINPUT,
                       "line %u: field 'at' is not a list of pairs [share, value]",
                       s->map->line);
    d->value = vt_arena_alloc(s->arena, n * sizeof(*d->value));
    d->share = vt_arena_alloc(s->arena, n * sizeof(*d->share));
    if (!d->value || !d->share)
        return vt_nomem(err);
    for (size_t i = 0; i < n && rc == VT_OK; i++)
        rc = read_quantile(d, d->share, s, &list->u.item[i], err);
    if (rc == VT_OK && d->share[n - 1] < 1)
        rc = vt_fail(err, VT_EINPUT, "line %u: shares of 'at' must ascend from 0 to 1",
                     list->line);
    return rc;
}

/* Even between two that are stated. */
static double quantiles_draw(const struct trace_dist *d, struct vt_rng *rng)
{
    double x = vt_rng_f64(rng);
    size_t i = 1;

    while (i + 1 < d->n && d->share[i] <= x)
        i++;
    return d->value[i - 1] + (d->value[i] - d->value[i - 1]) * (x - d->share[i - 1]) /
                                 (d->share[i] - d->share[i - 1]);
}

/* ---- the table -------------------------------------------------------- */

static const char *const constant_keys[] = {"dist", "value", NULL};
static const char *const uniform_keys[] = {"dist", "min", "max", NULL};
static const char *const normal_keys[] = {"dist", "mean", "std", "min", "max", NULL};
static const char *const lognormal_keys[] = {"dist", "median", "sigma", "mean",
                                             "std",  "min",    "max",   NULL};
static const char *const exponential_keys[] = {"dist", "mean", "min", "max", NULL};
static const char *const empirical_keys[] = {"dist", "file", "min", "max", NULL};
static const char *const quantiles_keys[] = {"dist", "at", NULL};

/* To add a distribution: write its two functions, add a row here, describe it in
 * docs/workload.md and add a case to tests/trace/test_workload.c. */
static const struct trace_dist_kind kinds[] = {
    {"constant", constant_keys, constant_read, constant_draw},
    {"uniform", uniform_keys, uniform_read, uniform_draw},
    {"normal", normal_keys, normal_read, normal_draw},
    {"lognormal", lognormal_keys, lognormal_read, lognormal_draw},
    {"exponential", exponential_keys, exponential_read, exponential_draw},
    {"empirical", empirical_keys, empirical_read, empirical_draw},
    {"quantiles", quantiles_keys, quantiles_read, quantiles_draw},
};

int trace_dist_read(struct trace_dist *d, struct vt_arena *a, const struct vt_node *map,
                    const char *key, struct trace_range range,
                    const struct trace_files *files, struct vt_err *err)
{
    const struct vt_node *n = vt_get(map, key);
    struct source s = {a, n, range, files};
    const char *known[VT_COUNT(kinds) + 1] = {NULL}, *name = NULL;
    int rc;

    *d = (struct trace_dist){.lo = range.lo, .hi = range.hi, .whole = range.whole};
    if (!n || n->kind != VT_MAP) {
        d->kind = &kinds[0];
        s.map = map;
        return get_value(&s, key, VT_REQUIRED, &d->a, err);
    }
    if ((rc = vt_get_str(n, "dist", VT_REQUIRED, &name, err)))
        return rc;
    for (size_t i = 0; i < VT_COUNT(kinds); i++) {
        known[i] = kinds[i].name;
        if (strcmp(kinds[i].name, name) == 0)
            d->kind = &kinds[i];
    }
    if (!d->kind)
        return vt_within(err, vt_fail_unknown(err, "dist", name, 40, known), "line %u",
                         vt_get(n, "dist")->line);
    rc = vt_only_keys(n, d->kind->keys, err);
    return rc ? rc : d->kind->read(d, &s, err);
}

double trace_dist_draw(const struct trace_dist *d, struct vt_rng *rng)
{
    double v = d->kind->draw(d, rng);

    if (!(v > d->lo))
        return d->lo;
    if (v >= d->hi)
        return d->hi;
    return d->whole ? round(v) : v;
}

struct trace_dist trace_dist_constant(double value)
{
    return (struct trace_dist){.kind = &kinds[0], .a = value, .lo = value, .hi = value};
}

double trace_dist_mean(const struct trace_dist *d)
{
    enum { DRAWS = 20000 };
    struct vt_rng rng;
    double sum = 0;

    vt_rng_init(&rng, 0, "mean");
    for (int i = 0; i < DRAWS; i++)
        sum += trace_dist_draw(d, &rng);
    return sum / DRAWS;
}
