/* match_rebuild.c - where the times of single tokens are known, rebuilt steps tell more
 * of the step model's form than any distribution: a place to search from. */
#include "fit/match.h"

#include <math.h>

/* Tokens of one step leave together. A frontend that hands them out one by one, or a
 * server that adds to each request's tokens a delay of its own, hides the steps: then
 * there seem to be more of them than typical gaps fit into the time. */
static bool shows_steps(const struct match_load *l)
{
    static const double SAME_STEP_MS = 0.25, MOST = 1.5;
    const struct vt_workload *w = l->w;
    double *at = malloc((w->n_gaps + w->n + 1) * sizeof(*at));
    double busy = 0, itl = l->measured.v[MATCH_ITL];
    size_t n = 0, steps = 0;

    for (size_t i = 0; at && i < w->n; i++) {
        const struct vt_measured *m = &w->measured[i];
        vt_ns t = w->req[i].arrival_ns + m->ttft_ns;

        at[n++] = (double)t / 1e6;
        for (uint32_t k = 0; k < m->n_gaps; k++)
            at[n++] = (double)(t += w->gap[m->first_gap + k]) / 1e6;
    }
    if (at)
        vt_sort_f64(at, n);
    for (size_t i = 1; at && i < n; i++) {
        double gap = at[i] - at[i - 1];

        steps += gap >= SAME_STEP_MS;
        busy += fmin(gap, 4 * itl); /* longer ones are pauses */
    }
    free(at);
    return n > 0 && itl > 0 && (double)steps <= MOST * busy / itl;
}

/* *error: median of how far the steps' times are off, of logarithms. */
static int rebuild(const struct vt_match *m, const struct vt_fit_shape *shape,
                   const double *load_weight, struct vt_step_params *out, bool *found,
                   double *error, struct vt_err *err)
{
    struct vt_fit_quality q = {0};
    struct vt_fit *f;
    int rc = vt_fit_new(&f, shape, err);

    *found = false;
    if (rc != VT_OK)
        return rc;
    for (size_t i = 0; i < m->n && rc == VT_OK; i++) {
        const struct match_load *l = &m->load[i];

        if (load_weight[i] <= 0 || !l->gaps_known || !shows_steps(l))
            continue;
        rc = vt_fit_add(f, l->name, NULL, l->w, err);
        *found = true;
    }
    if (rc == VT_OK && *found) {
        struct vt_err why = {0};

        rc = vt_fit_solve(f, VT_FIT_ALL, out, error ? &q : NULL, &why);
        if (rc == VT_EINPUT) { /* nothing to be learned from those steps */
            *found = false;
            rc = VT_OK;
        } else if (rc != VT_OK) {
            rc = vt_fail(err, (enum vt_code)rc, "%s", why.msg);
        }
    }
    if (error)
        *error = q.median_error;
    vt_fit_free(f);
    return rc;
}

int match_rebuild(const struct vt_match *m, const double *load_weight,
                  struct vt_step_params *out, bool *found, struct vt_err *err)
{
    return rebuild(m, &m->shape, load_weight, out, found, NULL, err);
}

/* ---- forms that nobody states ------------------------------------------- */

/* Typical time of a step with few requests, us. */
static double short_step_us(const struct vt_match *m)
{
    double least = INFINITY;

    for (size_t i = 0; i < m->n; i++)
        least = fmin(least, 1e3 * m->load[i].measured.v[MATCH_ITL]);
    return least;
}

int match_find_form(struct vt_match *m, const double *load_weight, struct vt_err *err)
{
    /* Of a token's experts only their share of all shows: Mixtral's, gpt-oss-20b's,
     * Qwen3's and DeepSeek-V3's. Of FP8 kernels the rows that are missing to a full
     * tile, each about such a share of a step. */
    static const struct {
        double experts, per_token, fill;
    } form[] = {{0, 0, 0},   {8, 2, 0},   {32, 4, 0},
                {128, 8, 0}, {256, 8, 0}, {0, 0, 0.007}};
    /* A number or two more explain a little of anything. */
    static const double BETTER = 0.8;
    struct vt_fit_shape best = m->shape;
    double least = INFINITY;
    bool found = true;
    int rc = VT_OK;

    for (size_t i = 0; i < VT_COUNT(form) && found && rc == VT_OK; i++) {
        struct vt_fit_shape shape = m->shape;
        struct vt_step_params unused;
        double error;

        shape.experts = form[i].experts;
        shape.experts_per_token = form[i].per_token;
        shape.fill_us = form[i].fill * short_step_us(m);
        rc = rebuild(m, &shape, load_weight, &unused, &found, &error, err);
        if (rc != VT_OK || !found || error >= least)
            continue;
        least = i > 0 ? error : BETTER * error;
        best = shape;
    }
    m->shape = best;
    return rc;
}
