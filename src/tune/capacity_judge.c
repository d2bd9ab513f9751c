/* capacity_judge.c - from runs to points, an answer, and how sure it is. */
#include "tune/capacity.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* How near a trial comes to its limits: above 1 it breaks one. *which (may be NULL):
 * the nearest, "rate" where the load was not borne. */
static double probe_margin(const struct probes *p, const struct probe *probe,
                           double rate, const char **which)
{
    double behind = p->borne * rate / fmax(probe->achieved, 1e-9), margin = 0;
    const char *nearest = vt_slo_nearest(&p->spec->slo, &probe->s, &margin);

    /* Latency says more than a rate that was missed because of it. */
    if (!nearest || (behind > 1 && margin <= 1)) {
        margin = behind;
        nearest = "rate";
    }
    if (which)
        *which = nearest;
    return margin;
}

static const struct probe *probe_at(const struct probes *p, size_t i, uint32_t seed)
{
    return &p->probe[i * p->spec->seeds + seed];
}

uint32_t count_passes(const struct probes *p, size_t i)
{
    uint32_t n = 0;

    for (uint32_t s = 0; s < p->at[i].runs; s++)
        n += probe_margin(p, probe_at(p, i, s), p->at[i].rate, NULL) <= 1;
    return n;
}

bool most_pass(const struct probes *p, size_t i)
{
    return 2 * count_passes(p, i) > p->at[i].runs;
}

/* ---- points --------------------------------------------------------------------- */

/* The limit that most of the runs broke that broke one; the first seed's of equals. */
static const char *most_broken(const struct probes *p, size_t i)
{
    const char *best = NULL;
    uint32_t most = 0;

    for (uint32_t a = 0; a < p->at[i].runs; a++) {
        const char *one, *other;
        uint32_t n = 0;

        if (probe_margin(p, probe_at(p, i, a), p->at[i].rate, &one) <= 1)
            continue;
        for (uint32_t b = 0; b < p->at[i].runs; b++)
            if (probe_margin(p, probe_at(p, i, b), p->at[i].rate, &other) > 1)
                n += strcmp(one, other) == 0;
        if (n > most) {
            most = n;
            best = one;
        }
    }
    return best;
}

static struct vt_capacity_point make_point(const struct probes *p, size_t i)
{
    struct vt_capacity_point q = {.rate = p->at[i].rate, .runs = p->at[i].runs};
    double share = 1.0 / q.runs;
    uint32_t behind = 0;

    for (uint32_t s = 0; s < q.runs; s++) {
        const struct probe *one = probe_at(p, i, s);

        vt_summary_add(&q.mean, &one->s, share);
        q.achieved += one->achieved * share;
        behind += one->achieved < p->borne * q.rate;
    }
    q.passed = count_passes(p, i);
    q.saturated = 2 * behind > q.runs;
    q.broken = most_broken(p, i);
    return q;
}

/* ---- confidence ------------------------------------------------------------------ */

/* Where this seed's own limit lies: between the rates that it keeps and the first that
 * it does not, where the margin, taken as exponential in between, passes 1. */
static double own_limit(const struct probes *p, const size_t *order, size_t n,
                        uint32_t seed)
{
    double low = 0, low_margin = 0;

    for (size_t k = 0; k < n; k++) {
        double rate = p->at[order[k]].rate;
        double margin = probe_margin(p, probe_at(p, order[k], seed), rate, NULL);

        if (margin > 1 && k == 0)
            return rate / margin;
        if (margin > 1)
            return low + (rate - low) * log(low_margin) / log(low_margin / margin);
        low = rate;
        low_margin = margin;
    }
    return low;
}

/* The mean of the seeds' own limits, and as much around it as 19 of 20 such intervals
 * would need to hold the true one. */
static void set_confidence(struct vt_capacity *c, const struct probes *p,
                           const size_t *order, size_t n_rates)
{
    /* Student's t for a two-sided 95 % interval, by degrees of freedom. */
    static const double student[] = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365,
                                     2.306,  2.262, 2.228, 2.201, 2.179, 2.160, 2.145,
                                     2.131,  2.120, 2.110, 2.101, 2.093, 2.086};
    uint32_t n = p->spec->seeds;
    double sum = 0, square = 0, mean, half, t;

    if (n < 2)
        return;
    for (uint32_t s = 0; s < n; s++)
        sum += own_limit(p, order, n_rates, s);
    mean = sum / n;
    for (uint32_t s = 0; s < n; s++) {
        double off = own_limit(p, order, n_rates, s) - mean;

        square += off * off;
    }
    t = n - 1 <= VT_COUNT(student) ? student[n - 2] : 1.96 + 2.5 / (n - 1);
    half = t * sqrt(square / (n - 1) / n);
    c->low = fmax(0, fmin(mean - half, c->rate));
    c->high = fmax(mean + half, c->rate);
}

/* ---- the answer ----------------------------------------------------- */

/* Ascending by rate, by insertion: there are a few dozen. */
static size_t sort_rates(size_t *order, const struct probes *p, bool all)
{
    size_t n = 0;

    for (size_t i = 0; i < p->n; i++) {
        size_t k = n;

        if (!all && !p->at[i].counts)
            continue;
        for (; k > 0 && p->at[order[k - 1]].rate > p->at[i].rate; k--)
            order[k] = order[k - 1];
        order[k] = i;
        n++;
    }
    return n;
}

static void set_length(struct vt_capacity *c, const struct probed *at)
{
    c->requests = at->requests;
    c->span_s = at->requests > 0 ? (at->requests - 1) / at->rate : 0;
}

/* All below the answer pass as well: a pass above a failure is luck. */
static void set_answer(struct vt_capacity *out, const struct probes *p,
                       const size_t *order, size_t n)
{
    for (size_t k = 0; k < n; k++) {
        const struct vt_capacity_point q = make_point(p, order[k]);
        bool pass = most_pass(p, order[k]);

        if (pass || k == 0) {
            out->extent = q.mean.extent;
            set_length(out, &p->at[order[k]]);
        }
        if (!pass) {
            out->failed = q.rate;
            out->binding = q.broken;
            break;
        }
        out->rate = q.rate;
    }
}

/* Short runs among long ones would contradict them by chance: only those that lie
 * outside show how it goes on. */
static bool is_shown(const struct probes *p, size_t i, const size_t *order, size_t n)
{
    return p->at[i].counts || n == 0 || p->at[i].rate < p->at[order[0]].rate ||
           p->at[i].rate > p->at[order[n - 1]].rate;
}

int capacity_judge(struct vt_capacity *out, const struct probes *p, struct vt_err *err)
{
    size_t *order = malloc(2 * (p->n + 1) * sizeof(*order)), *all, n;
    int rc = order ? vt_grow(&out->point, &out->cap, p->n, sizeof(*out->point), err)
                   : vt_nomem(err);

    if (rc != VT_OK)
        goto out;
    all = order + p->n + 1;
    n = sort_rates(order, p, false);
    (void)sort_rates(all, p, true);
    for (size_t k = 0; k < p->n; k++)
        if (is_shown(p, all[k], order, n))
            out->point[out->n++] = make_point(p, all[k]);
    out->trials = p->trials;
    out->borne = p->borne;
    set_answer(out, p, order, n);
    set_confidence(out, p, order, n);
out:
    free(order);
    return rc;
}

void vt_capacity_free(struct vt_capacity *c)
{
    free(c->point);
    *c = (struct vt_capacity){0};
}
