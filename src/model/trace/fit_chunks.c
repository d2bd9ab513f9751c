/* fit_chunks.c - what a chunk of prompt adds to a step.
 *
 * A recorder marks the gap in which another request's first token came with the length
 * of its prompt: the step computed its last chunk. What such a gap takes beyond the
 * request's usual one is the chunk's cost, grown with its tokens and their depth. Steps
 * filled by earlier chunks bear no mark; they show as gaps about as long as the cost of
 * a full budget. */
#include <math.h>

#include "model/trace/fit.h"

struct chunk {
    double tokens, depth; /* depth: the sum of the tokens' positions, as an integral */
    double ms;            /* beyond the usual gap */
    double off;           /* from the fit */
    size_t index;
};

enum { LEAST_CHUNKS = 30, LEAST_GAPS = 5, LEAST_TOKENS = 256 };

/* ---- the usual gap ---------------------------------------------------- */

/* The middle one of the gaps without a prompt; NAN where there are too few. */
static double usual_gap(const struct vt_record *r, double *scratch)
{
    size_t n = 0;

    if (!r->gap_prefill)
        return NAN;
    for (uint32_t i = 0; i < r->n_gaps; i++)
        if (r->gap_prefill[i] == 0)
            scratch[n++] = (double)r->gap[i] / 1e6;
    if (n < LEAST_GAPS)
        return NAN;
    vt_sort_f64(scratch, n);
    return scratch[n / 2];
}

/* ---- chunks ----------------------------------------------------------- */

static bool stands_alone(const struct vt_record *r, uint32_t at)
{
    uint32_t from = at > 2 ? at - 2 : 0;

    for (uint32_t i = from; i < r->n_gaps && i <= at + 2; i++)
        if (i != at && r->gap_prefill[i] > 0)
            return false;
    return true;
}

struct chunks {
    struct chunk *c;
    size_t n, cap;
};

static int add_chunks(struct chunks *out, const struct vt_record *r, double usual,
                      uint32_t budget, struct vt_err *err)
{
    int rc = VT_OK;

    for (uint32_t i = 0; i < r->n_gaps && rc == VT_OK; i++) {
        uint32_t prompt = r->gap_prefill[i];
        uint32_t last = prompt > 0 ? (prompt - 1) % budget + 1 : 0;
        double end = prompt, start = prompt - last, gap = (double)r->gap[i] / 1e6;

        if (last < LEAST_TOKENS || !stands_alone(r, i))
            continue;
        rc = vt_grow(&out->c, &out->cap, out->n + 1, sizeof(*out->c), err);
        if (rc != VT_OK)
            break;
        out->c[out->n++] = (struct chunk){
            .tokens = last,
            .depth = (end * end - start * start) / 2,
            .ms = fmax(0.0, gap - usual),
        };
    }
    return rc;
}

/* Two coefficients without a constant, in closed form. */
static bool fit_once(const struct chunk *c, size_t n, double *token, double *depth)
{
    double tt = 0, td = 0, dd = 0, ty = 0, dy = 0, det;

    for (size_t i = 0; i < n; i++) {
        tt += c[i].tokens * c[i].tokens;
        td += c[i].tokens * c[i].depth;
        dd += c[i].depth * c[i].depth;
        ty += c[i].tokens * c[i].ms;
        dy += c[i].depth * c[i].ms;
    }
    det = tt * dd - td * td;
    if (fabs(det) < 1e-9)
        return false;
    *token = (dd * ty - td * dy) / det;
    *depth = (tt * dy - td * ty) / det;
    return true;
}

static int by_off(const void *pa, const void *pb)
{
    const struct chunk *a = pa, *b = pb;

    if (a->off != b->off)
        return a->off < b->off ? -1 : 1;
    return a->index < b->index ? -1 : a->index > b->index;
}

/* Four rounds, each without the fifth that the one before fitted worst. Costs that
 * would shrink with the chunk are refused, and chunks then cost nothing. */
static void fit_trimmed(struct trace_fit *f, struct chunk *c, size_t n)
{
    double token = 0, depth = 0;

    for (int round = 0; round < 4; round++) {
        if (n < LEAST_CHUNKS || !fit_once(c, n, &token, &depth))
            return;
        for (size_t i = 0; i < n; i++) {
            c[i].off = fabs(token * c[i].tokens + depth * c[i].depth - c[i].ms);
            c[i].index = i;
        }
        qsort(c, n, sizeof(*c), by_off);
        n = n * 4 / 5;
    }
    if (token < 0 || depth < 0)
        return;
    f->chunk_token = token;
    f->chunk_depth = depth;
}

/* ---- full steps ------------------------------------------------------- */

static int fit_full_step(struct trace_fit *f, const struct vt_record *const *rec,
                         size_t n, const double *usual, struct vt_err *err)
{
    double full = trace_chunk_cost(f, f->budget, 0), *seen = NULL;
    size_t n_seen = 0, cap = 0;
    int rc = VT_OK;

    if (full <= 0)
        return VT_OK;
    for (size_t k = 0; k < n && rc == VT_OK; k++)
        for (uint32_t i = 0; !isnan(usual[k]) && i < rec[k]->n_gaps; i++) {
            double extra = (double)rec[k]->gap[i] / 1e6 - usual[k];

            if (rec[k]->gap_prefill[i] > 0 || extra < 0.8 * full || extra > 2.5 * full)
                continue;
            rc = vt_grow(&seen, &cap, n_seen + 1, sizeof(*seen), err);
            if (rc != VT_OK)
                break;
            seen[n_seen++] = extra;
        }
    if (rc == VT_OK && n_seen >= LEAST_CHUNKS) {
        vt_sort_f64(seen, n_seen);
        f->full_step = seen[n_seen / 2];
    }
    free(seen);
    return rc;
}

int trace_fit_chunks(struct trace_fit *f, const struct vt_record *const *rec, size_t n,
                     struct vt_err *err)
{
    double *usual = malloc(n * sizeof(*usual)), *scratch = NULL;
    struct chunks c = {0};
    size_t cap = 0;
    int rc = usual ? VT_OK : vt_nomem(err);

    for (size_t i = 0; i < n && rc == VT_OK; i++) {
        rc = vt_grow(&scratch, &cap, (size_t)rec[i]->n_gaps + 1, sizeof(*scratch), err);
        if (rc != VT_OK)
            break;
        usual[i] = usual_gap(rec[i], scratch);
        if (!isnan(usual[i]))
            rc = add_chunks(&c, rec[i], usual[i], f->budget, err);
    }
    if (rc == VT_OK) {
        fit_trimmed(f, c.c, c.n);
        rc = fit_full_step(f, rec, n, usual, err);
    }
    free(scratch);
    free(c.c);
    free(usual);
    return rc;
}
