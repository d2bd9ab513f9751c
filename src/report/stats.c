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

/* Ranks whose known digits agree share a histogram. Neighbouring quantiles of small
 * samples overlap, so the groups are searched, not merged in order. */
static void refine(const struct vt_cells *c, vt_ns min, unsigned shift,
                   struct rank *rank, histogram *h)
{
    uint64_t group[MAX_RANKS] = {0};
    size_t of[MAX_RANKS], n_groups = 0;

    for (size_t i = 0; i < MAX_RANKS; i++) {
        for (of[i] = 0; of[i] < n_groups && group[of[i]] != rank[i].prefix;)
            of[i]++;
        if (of[i] == n_groups)
            group[n_groups++] = rank[i].prefix;
    }
    memset(h, 0, n_groups * sizeof(*h));
    for (size_t i = 0; i < c->n; i++) {
        uint64_t key = ((uint64_t)c->v[i] - (uint64_t)min) >> shift;
        size_t g = 0;

        while (g < n_groups && group[g] != key >> DIGIT_BITS)
            g++;
        if (g < n_groups)
            h[g][key & (BUCKETS - 1)] += count_at(c, i);
    }
    for (size_t i = 0; i < MAX_RANKS; i++) {
        struct rank *r = &rank[i];
        uint64_t bucket = 0;

        while (bucket < BUCKETS - 1 && r->below >= h[of[i]][bucket])
            r->below -= h[of[i]][bucket++];
        assert(r->below < h[of[i]][bucket]); /* a sample that was counted is there */
        r->prefix = r->prefix << DIGIT_BITS | bucket;
    }
}

int vt_cells_stat(const struct vt_cells *c, struct vt_stat *out, struct vt_err *err)
{
    double *const value[N_QUANTILES] = {&out->p50, &out->p90, &out->p95, &out->p99};
    struct rank rank[MAX_RANKS] = {{0}};
    histogram *h;
    vt_ns min = c->n > 0 ? c->v[0] : 0, max = min;
    unsigned shift = 0;
    wide sum = 0, by;

    *out = (struct vt_stat){0};
    for (size_t i = 0; i < c->n; i++) {
        min = c->v[i] < min ? c->v[i] : min;
        max = c->v[i] > max ? c->v[i] : max;
        sum += (wide)c->v[i] * count_at(c, i);
        out->n += count_at(c, i);
    }
    if (out->n == 0) /* also when every cell was taken back */
        return VT_OK;
    h = malloc(MAX_RANKS * sizeof(*h));
    if (!h)
        return vt_nomem(err);
    by = 2 * (wide)out->n;
    sum = 2 * sum + (wide)out->n;
    out->mean = (double)(vt_ns)(sum / by - (sum % by < 0)) / 1e6;
    /* p/100 * (n-1) in hundredths is a whole number, so interpolation is exact. */
    for (size_t i = 0; i < N_QUANTILES; i++) {
        uint64_t at = percent[i] * (out->n - 1) / 100;

        rank[2 * i].below = at;
        rank[2 * i + 1].below = at + 1 < out->n ? at + 1 : at;
    }
    while (shift + DIGIT_BITS < 64 &&
           ((uint64_t)max - (uint64_t)min) >> (shift + DIGIT_BITS))
        shift += DIGIT_BITS;
    for (;; shift -= DIGIT_BITS) {
        refine(c, min, shift, rank, h);
        if (shift == 0)
            break;
    }
    for (size_t i = 0; i < N_QUANTILES; i++) {
        uint64_t lo = rank[2 * i].prefix, hi = rank[2 * i + 1].prefix;
        uint64_t hundredths = percent[i] * (out->n - 1) % 100;
        wide step = ((wide)(hi - lo) * (wide)hundredths + 50) / 100;

        *value[i] = (double)(vt_ns)((wide)min + (wide)lo + step) / 1e6;
    }
    free(h);
    return VT_OK;
}

void vt_cells_free(struct vt_cells *c)
{
    free(c->v);
    free(c->count);
    *c = (struct vt_cells){0};
}
