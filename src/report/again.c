/* again.c - where a second run of the same load could come out. */
#include <math.h>

#include "report/again.h"

/* ---- draws ------------------------------------------------------------ */

static int by_ms(const void *pa, const void *pb)
{
    const struct again_sample *a = pa, *b = pb;

    return a->ms < b->ms ? -1 : a->ms > b->ms;
}

static void each_once(struct again *a)
{
    for (size_t i = 0; i < a->view->n; i++)
        a->times[i] = 1;
}

int again_open(struct again *a, const struct vt_view *v, enum vt_metric m,
               struct vt_err *err)
{
    double *ms = malloc((v->n_gaps + 1) * sizeof(*ms));

    *a = (struct again){.view = v, .metric = m};
    a->sample = malloc((v->n + v->n_gaps + 1) * sizeof(*a->sample));
    a->times = malloc((v->n + 1) * sizeof(*a->times));
    if (!ms || !a->sample || !a->times) {
        free(ms);
        return vt_nomem(err);
    }
    for (size_t i = 0; i < v->n; i++) {
        size_t more = view_samples_of(v, &v->req[i], m, ms);

        for (size_t k = 0; k < more; k++)
            a->sample[a->n++] = (struct again_sample){ms[k], (uint32_t)i};
    }
    free(ms);
    qsort(a->sample, a->n, sizeof(*a->sample), by_ms);
    vt_rng_init(&a->rng, 0, "again");
    each_once(a);
    return VT_OK;
}

void again_close(struct again *a)
{
    free(a->sample);
    free(a->times);
}

void again_draw(struct again *a)
{
    size_t n = a->view->n;

    memset(a->times, 0, n * sizeof(*a->times));
    for (size_t i = 0; i < n; i++)
        a->times[vt_rng_below(&a->rng, n)]++;
}

uint64_t again_quantiles(const struct again *a, size_t from, size_t to,
                         const double share[SPREAD], double out[SPREAD])
{
    uint64_t all = 0, seen = 0;
    double at[SPREAD];
    int below = 0, above = 0; /* quantiles whose lower and upper neighbour was met */

    for (size_t i = from; i < to; i++)
        all += a->times[a->sample[i].request];
    for (int i = 0; i < SPREAD && all > 0; i++)
        at[i] = share[i] * (double)(all - 1);
    for (size_t i = from; i < to && all > 0 && above < SPREAD; i++) {
        double ms = a->sample[i].ms;

        seen += a->times[a->sample[i].request];
        for (; below < SPREAD && seen > (uint64_t)at[below]; below++)
            out[below] = ms;
        for (; above < below && (seen > (uint64_t)at[above] + 1 || seen == all);
             above++)
            out[above] += (at[above] - floor(at[above])) * (ms - out[above]);
    }
    return all;
}

/* Both runs are draws, so they differ by more than one is uncertain. */
static double twice(double seen, double drawn)
{
    return fmax(seen + sqrt(2) * (drawn - seen), 0);
}

struct again_range again_range(double seen, double drawn[AGAIN_DRAWS])
{
    vt_sort_f64(drawn, AGAIN_DRAWS);
    return (struct again_range){twice(seen, vt_quantile(drawn, AGAIN_DRAWS, 2.5)),
                                twice(seen, vt_quantile(drawn, AGAIN_DRAWS, 97.5))};
}

/* ---- a second run ----------------------------------------------------- */

static const double spread[SPREAD] = {0.50, 0.90, 0.99};

/* What is left between two runs when both are long: at worst of the loads that ran
 * twice, in docs/accuracy.md. The longest gaps are launches, and the host's. */
static const double apart[VT_N_METRICS][SPREAD] = {
    [VT_TTFT] = {0.20, 0.20, 0.13},
    [VT_ITL] = {0.09, 0.09, 0.33},
    [VT_DECODE] = {0.09, 0.09, 0.09},
};
/* A busy host hands results out late, and of twelve loads on one machine between 0.2 %
 * and 12 % of them: half of these are 6.5 % apart. Where plain steps end and long ones
 * begin, that moves a quantile far. */
static const double late[VT_N_METRICS][SPREAD] = {[VT_ITL] = {0.065, 0.065, 0}};

/* The quantiles, each so much to the left or right. */
static void shifted(const struct again *a, double by, double out[SPREAD])
{
    double share[SPREAD];

    for (int i = 0; i < SPREAD; i++)
        share[i] = spread[i] + by * late[a->metric][i];
    again_quantiles(a, 0, a->n, share, out);
}

static void second_run(struct again *a, double (*drawn)[AGAIN_DRAWS],
                       struct vt_again *out)
{
    double seen[SPREAD] = {0}, less[SPREAD] = {0}, more[SPREAD] = {0}, q[SPREAD] = {0};

    again_quantiles(a, 0, a->n, spread, seen);
    shifted(a, -1, less);
    shifted(a, 1, more);
    for (size_t d = 0; d < AGAIN_DRAWS; d++) {
        do /* requests without a gap may be all that were drawn */
            again_draw(a);
        while (again_quantiles(a, 0, a->n, spread, q) == 0);
        for (int i = 0; i < SPREAD; i++)
            drawn[i][d] = q[i];
    }
    for (int i = 0; i < SPREAD; i++) {
        struct again_range r = again_range(seen[i], drawn[i]);
        double off = apart[a->metric][i];

        out->lo[i] = fmin(r.lo, less[i]) * (1 - off);
        out->hi[i] = fmax(r.hi, more[i]) / (1 - off);
    }
}

int vt_again(const struct vt_view *v, enum vt_metric m, struct vt_again *out,
             struct vt_err *err)
{
    double (*drawn)[AGAIN_DRAWS] = malloc(SPREAD * sizeof(*drawn));
    struct again a;
    int rc = again_open(&a, v, m, err);

    *out = (struct vt_again){0};
    if (rc == VT_OK && !drawn)
        rc = vt_nomem(err);
    if (rc == VT_OK && a.n > 0)
        second_run(&a, drawn, out);
    again_close(&a);
    free(drawn);
    return rc;
}
