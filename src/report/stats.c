/* stats.c - quantiles by refining histograms.
 *
 * Sorting would need a second copy of the cells. Instead each pass over them counts
 * one more digit of the few values that are wanted: three passes settle samples that
 * span up to 68 seconds. */
#include <assert.h>

#include "report/stats.h"

enum { DIGIT_BITS = 12, BUCKETS = 1 << DIGIT_BITS, N_QUANTILES = 4, MAX_RANKS = 8 };

static const unsigned percent[N_QUANTILES] = {50, 90, 95, 99};

__extension__ typedef __int128 wide; /* a sum of int64 cannot overflow it */

/* One wanted sample, counted from 0 in ascending order. While refining, `prefix` is
 * what is known of its digits and `below` its rank among samples of that prefix. */
struct rank {
    uint64_t below;
    uint64_t prefix;
};

typedef uint64_t histogram[BUCKETS];

static uint32_t count_at(const struct vt_cells *c, size_t i)
{
    return c->count ? c->count[i] : 1;
}

static void count_first_digit(const struct vt_cells *c, vt_ns min, unsigned shift,
                              uint64_t *h)
{
    for (size_t i = 0; i < c->n; i++)
        h[((uint64_t)c->v[i] - (uint64_t)min) >> shift] += count_at(c, i);
}

static void count_digit(const struct vt_cells *c, vt_ns min, unsigned shift,
                        const uint64_t *group, size_t n_groups, histogram *h)
{
    for (size_t i = 0; i < c->n; i++) {
        uint64_t key = ((uint64_t)c->v[i] - (uint64_t)min) >> shift;
        uint64_t prefix = key >> DIGIT_BITS;

        for (size_t g = 0; g < n_groups; g++) {
            if (group[g] == prefix) {
                h[g][key & (BUCKETS - 1)] += count_at(c, i);
                break;
            }
        }
    }
}

static void descend(struct rank *r, const uint64_t *h)
{
    uint64_t bucket = 0;

    while (bucket < BUCKETS - 1 && r->below >= h[bucket])
        r->below -= h[bucket++];
    assert(r->below < h[bucket]); /* a sample that was counted is found again */
    r->prefix = r->prefix << DIGIT_BITS | bucket;
}

/* Ranks whose known digits agree share a histogram. Neighbouring quantiles of small
 * samples overlap, so the groups are searched, not merged in order. */
static size_t group_of(uint64_t *group, size_t *n_groups, uint64_t prefix)
{
    size_t g = 0;

    while (g < *n_groups && group[g] != prefix)
        g++;
    if (g == *n_groups)
        group[(*n_groups)++] = prefix;
    return g;
}

static void refine(const struct vt_cells *c, vt_ns min, unsigned shift, bool first,
                   struct rank *rank, histogram *h)
{
    uint64_t group[MAX_RANKS] = {0};
    size_t of[MAX_RANKS], n_groups = 0;

    for (size_t i = 0; i < MAX_RANKS; i++)
        of[i] = group_of(group, &n_groups, rank[i].prefix);
    memset(h, 0, n_groups * sizeof(*h));
    if (first)
        count_first_digit(c, min, shift, h[0]);
    else
        count_digit(c, min, shift, group, n_groups, h);
    for (size_t i = 0; i < MAX_RANKS; i++)
        descend(&rank[i], h[of[i]]);
}

static void resolve(const struct vt_cells *c, vt_ns min, vt_ns max, struct rank *rank,
                    histogram *h)
{
    uint64_t range = (uint64_t)max - (uint64_t)min;
    unsigned shift = 0;

    while (shift + DIGIT_BITS < 64 && range >> (shift + DIGIT_BITS))
        shift += DIGIT_BITS;
    refine(c, min, shift, true, rank, h);
    while (shift > 0) {
        shift -= DIGIT_BITS;
        refine(c, min, shift, false, rank, h);
    }
}

static double ms_from_ns(vt_ns ns)
{
    return (double)ns / 1e6;
}

/* lo + (hi - lo) * hundredths / 100, rounded. */
static double between(uint64_t lo, uint64_t hi, uint64_t hundredths, vt_ns min)
{
    wide step = ((wide)(hi - lo) * (wide)hundredths + 50) / 100;

    return ms_from_ns((vt_ns)((wide)min + (wide)lo + step));
}

static uint64_t survey(const struct vt_cells *c, vt_ns *min, vt_ns *max, wide *sum)
{
    uint64_t n = 0;

    *min = *max = c->v[0];
    *sum = 0;
    for (size_t i = 0; i < c->n; i++) {
        vt_ns v = c->v[i];

        *min = v < *min ? v : *min;
        *max = v > *max ? v : *max;
        *sum += (wide)v * count_at(c, i);
        n += count_at(c, i);
    }
    return n;
}

static double mean_ms(wide sum, uint64_t n)
{
    wide twice = 2 * sum + (wide)n, by = 2 * (wide)n;
    wide floor = twice / by - (twice % by < 0);

    return ms_from_ns((vt_ns)floor);
}

int vt_cells_stat(const struct vt_cells *c, struct vt_stat *out, struct vt_err *err)
{
    double *const value[N_QUANTILES] = {&out->p50, &out->p90, &out->p95, &out->p99};
    struct rank rank[MAX_RANKS] = {{0}};
    histogram *h;
    vt_ns min = 0, max = 0;
    wide sum = 0;

    *out = (struct vt_stat){0};
    if (c->n > 0)
        out->n = survey(c, &min, &max, &sum);
    if (out->n == 0) /* also when every cell was taken back */
        return VT_OK;
    h = malloc(MAX_RANKS * sizeof(*h));
    if (!h)
        return vt_nomem(err);
    out->mean = mean_ms(sum, out->n);
    /* p/100 * (n-1) in hundredths is a whole number, so interpolation is exact. */
    for (size_t i = 0; i < N_QUANTILES; i++) {
        uint64_t at = percent[i] * (out->n - 1) / 100;

        rank[2 * i].below = at;
        rank[2 * i + 1].below = at + 1 < out->n ? at + 1 : at;
    }
    resolve(c, min, max, rank, h);
    for (size_t i = 0; i < N_QUANTILES; i++)
        *value[i] = between(rank[2 * i].prefix, rank[2 * i + 1].prefix,
                            percent[i] * (out->n - 1) % 100, min);
    free(h);
    return VT_OK;
}

void vt_cells_free(struct vt_cells *c)
{
    free(c->v);
    free(c->count);
    *c = (struct vt_cells){0};
}
