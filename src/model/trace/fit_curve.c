/* fit_curve.c - what a first token takes by itself: a curve through the fastest
 * requests of the emptiest engine, or samples by prompt length where there are too few.
 */
#include <math.h>

#include "model/trace/fit.h"

struct seen {
    double tokens; /* to compute */
    double ms;
    uint32_t load; /* bucket */
};

struct window { /* what a sliding range of lengths says */
    double tokens, ms, weight;
};

static double uncached(const struct vt_record *r)
{
    uint32_t n = r->prompt_tokens - r->cached_tokens;

    return n > 0 ? n : 1;
}

static uint32_t load_of(const struct vt_record *r)
{
    return r->concurrency > 0 ? r->concurrency : 1;
}

static int by_tokens(const void *pa, const void *pb)
{
    const struct seen *a = pa, *b = pb;

    if (a->tokens != b->tokens)
        return a->tokens < b->tokens ? -1 : 1;
    return a->ms < b->ms ? -1 : a->ms > b->ms;
}

/* ---- windows ---------------------------------------------------------- */

/* The first of n, ascending, with at least so many tokens. */
static size_t first_from(const struct seen *s, size_t n, double tokens)
{
    size_t lo = 0, hi = n;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (s[mid].tokens < tokens)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* s ascending. Appends to *out, which the caller frees. */
static int slide_window(const struct seen *s, size_t n, struct window **out,
                        size_t *n_out, struct vt_err *err)
{
    const double width = 600, stride = 400;
    enum { LEAST = 5 };
    double *scratch = malloc(n * sizeof(*scratch));
    size_t cap = 0;
    int rc = !scratch ? vt_nomem(err) : VT_OK;

    *n_out = 0;
    for (double lo = s[0].tokens; rc == VT_OK && lo <= s[n - 1].tokens; lo += stride) {
        size_t from = first_from(s, n, lo), to = first_from(s, n, lo + width);

        if (to - from < LEAST)
            continue;
        rc = vt_grow(out, &cap, *n_out + 1, sizeof(**out), err);
        if (rc != VT_OK)
            break;
        for (size_t i = from; i < to; i++)
            scratch[i - from] = s[i].ms;
        vt_sort_f64(scratch, to - from);
        (*out)[(*n_out)++] =
            (struct window){s[from + (to - from) / 2].tokens, scratch[(to - from) / 10],
                            sqrt((double)(to - from))};
    }
    free(scratch);
    return rc;
}

/* ---- the curve -------------------------------------------------------- */

/* Weighted least squares by polynomials that are orthogonal over the windows: p0 = 1,
 * p1 = x - m0, p2 = (x - m1) p1 - k p0. False if the windows do not tell that many
 * apart. */
static bool solve_polynomial(const struct window *w, size_t n, int degree,
                             double out[3])
{
    double m[2] = {0}, step = 0, c[3] = {0}, last = 0;

    for (int k = 0; k <= degree; k++) {
        double norm = 0, moment = 0, value = 0; /* of p_k: <p,p>, <x p,p>, <y,p> */

        for (size_t i = 0; i < n; i++) {
            double x = w[i].tokens, p1 = x - m[0];
            double p = k == 0 ? 1.0 : k == 1 ? p1 : (x - m[1]) * p1 - step;

            norm += w[i].weight * p * p;
            moment += w[i].weight * x * p * p;
            value += w[i].weight * w[i].ms * p;
        }
        if (!(norm > 1e-9))
            return false;
        c[k] = value / norm;
        if (k < 2)
            m[k] = moment / norm;
        step = k == 1 ? norm / last : step;
        last = norm;
    }
    out[0] = c[0] - c[1] * m[0] + c[2] * (m[0] * m[1] - step);
    out[1] = c[1] - c[2] * (m[0] + m[1]);
    out[2] = c[2];
    return true;
}

/* A time that grows with the prompt, over all windows; else none. */
static void fit_curve(struct trace_fit *f, const struct window *w, size_t n)
{
    double k[3] = {0}, longest = 0;

    if (n == 0)
        return;
    f->floor = w[0].ms;
    for (size_t i = 0; i < n; i++) {
        f->floor = fmin(f->floor, w[i].ms);
        longest = fmax(longest, w[i].tokens);
    }
    f->has_curve = n >= 4 && solve_polynomial(w, n, 2, k) && k[2] >= 0 &&
                   k[1] + 2 * k[2] * longest >= 0;
    if (!f->has_curve) {
        k[2] = 0;
        f->has_curve = n >= 2 && solve_polynomial(w, n, 1, k) && k[1] >= 0;
    }
    f->a = k[0];
    f->b = k[1];
    f->c = k[2];
}

static int curve_from(struct trace_fit *f, const struct vt_record *const *rec, size_t n,
                      struct seen *s, struct vt_err *err)
{
    struct window *w = NULL;
    uint32_t least = UINT32_MAX;
    size_t n_seen = 0, n_windows = 0;
    int rc;

    for (size_t i = 0; i < n; i++)
        if (load_of(rec[i]) < least)
            least = load_of(rec[i]);
    for (size_t i = 0; i < n; i++)
        if (load_of(rec[i]) == least)
            s[n_seen++] =
                (struct seen){uncached(rec[i]), (double)rec[i]->ttft_ns / 1e6, 0};
    qsort(s, n_seen, sizeof(*s), by_tokens);
    rc = slide_window(s, n_seen, &w, &n_windows, err);
    if (rc == VT_OK)
        fit_curve(f, w, n_windows);
    free(w);
    return rc;
}

/* ---- samples by prompt length ----------------------------------------- */

static int sample_bucket(struct trace_fit *f, uint32_t bucket, struct seen *s, size_t n,
                         struct vt_err *err)
{
    struct trace_service *out = &f->service[bucket];
    uint32_t least = TRACE_LOADS;
    size_t kept = 0;

    for (size_t i = 0; i < n; i++)
        if (s[i].load < least)
            least = s[i].load;
    for (size_t i = 0; i < n; i++)
        if (s[i].load == least)
            s[kept++] = s[i];
    if (kept == 0)
        return VT_OK;
    qsort(s, kept, sizeof(*s), by_tokens);
    out->ms = vt_arena_alloc(&f->arena, kept * sizeof(*out->ms));
    if (!out->ms)
        return vt_nomem(err);
    for (size_t i = 0; i < kept; i++)
        out->ms[i] = s[i].ms;
    vt_sort_f64(out->ms, kept);
    out->n = (uint32_t)kept;
    out->median_tokens = s[kept / 2].tokens;
    return VT_OK;
}

int trace_fit_service(struct trace_fit *f, const struct vt_record *const *rec, size_t n,
                      struct vt_err *err)
{
    struct seen *s = malloc(n * sizeof(*s));
    int rc = !s ? vt_nomem(err) : curve_from(f, rec, n, s, err);

    for (uint32_t bucket = 0; bucket < TRACE_PROMPTS && rc == VT_OK; bucket++) {
        size_t k = 0;

        for (size_t i = 0; i < n; i++)
            if (trace_prompt_bucket(rec[i]->prompt_tokens - rec[i]->cached_tokens) ==
                bucket)
                s[k++] = (struct seen){uncached(rec[i]), (double)rec[i]->ttft_ns / 1e6,
                                       trace_load_bucket(load_of(rec[i]))};
        rc = sample_bucket(f, bucket, s, k, err);
    }
    free(s);
    return rc;
}
