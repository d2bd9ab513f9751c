/* capacity.c - the highest rate within the limits: a bracket, then bisection.
 *
 * Every rate is tried with the same seeds, in one batch, and the next rate follows from
 * the results alone. So neither the answer nor the list of rates depends on workers. */
#include "tune/capacity.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tune/trial.h"

enum { MAX_HALVINGS = 20, MAX_DOUBLINGS = 6 };

/* ---- probes ------------------------------------------------------------------- */

struct batch {
    struct probes *p;
    const double *rate;
};

static int run_probe(void *user, size_t i, struct vt_buf *result, struct vt_err *err)
{
    const struct batch *b = user;
    struct vt_trial t = b->p->spec->trial;
    struct probe made;
    int rc;

    memset(&made, 0, sizeof(made)); /* padding too: it travels as bytes */
    t.rate = b->rate[i / b->p->spec->seeds];
    t.seed += i % b->p->spec->seeds;
    rc = vt_trial_measure(&t, &made.s, &made.achieved, err);
    if (rc != VT_OK)
        return rc;
    made.made = true;
    made.s.profile = made.s.workload = made.s.version =
        NULL; /* pointers mean nothing elsewhere */
    vt_buf_add(result, &made, sizeof(made));
    return VT_OK;
}

static int store_probe(void *user, size_t i, const char *result, size_t len,
                       struct vt_err *err)
{
    const struct batch *b = user;
    struct probes *p = b->p;

    if (len != sizeof(*p->probe))
        return vt_fail(err, VT_EIO, "a result of %zu bytes", len);
    memcpy(&p->probe[p->n * p->spec->seeds + i], result, len);
    return VT_OK;
}

/* Adds a rate whose trials are at place `from`, if all of them were made. */
static void add_if_made(struct probes *p, double rate, size_t from)
{
    uint32_t seeds = p->spec->seeds;
    struct probe *probe = &p->probe[(p->n + from) * seeds];

    for (uint32_t i = 0; i < seeds; i++)
        if (!probe[i].made)
            return;
    memmove(&p->probe[p->n * seeds], probe, seeds * sizeof(*probe));
    p->rate[p->n++] = rate;
}

/* Tries all seeds at n more rates, in one batch. What was done when it failed counts.
 */
static int probes_add(struct probes *p, const double *rate, size_t n,
                      struct vt_err *err)
{
    struct batch b = {p, rate};
    uint32_t seeds = p->spec->seeds;
    struct vt_jobs jobs = {
        .n = n * seeds,
        .run = run_probe,
        .done = store_probe,
        .user = &b,
        .workers = p->spec->workers,
    };
    int rc = vt_grow(&p->rate, &p->cap_rates, p->n + n, sizeof(*p->rate), err);

    if (rc == VT_OK)
        rc = vt_grow(&p->probe, &p->cap_probes, (p->n + n) * seeds, sizeof(*p->probe),
                     err);
    if (rc != VT_OK)
        return rc;
    memset(&p->probe[p->n * seeds], 0, n * seeds * sizeof(*p->probe));
    rc = vt_jobs_run(&jobs, err);
    for (size_t i = 0, first = p->n; i < n; i++)
        add_if_made(p, rate[i], first + i - p->n);
    return rc;
}

static int probe_rate(struct probes *p, double rate, bool *pass, struct vt_err *err)
{
    int rc = probes_add(p, &rate, 1, err);

    if (rc == VT_OK)
        *pass = most_pass(p, p->n - 1);
    return rc;
}

/* Four digits are enough for a rate that people will read and type. */
static double tidy_rate(double rate)
{
    double unit = pow(10, floor(log10(rate)) - 3);

    return unit < 1 ? round(rate / unit) / round(1 / unit) : round(rate / unit) * unit;
}

/* ---- the bracket -------------------------------------------------------------- */

/* Half of what is served when everything comes at once: below most capacities, and not
 * far below. */
static int estimate_rate(const struct vt_capacity_spec *spec, double *rate,
                         struct vt_err *err)
{
    struct vt_trial t = spec->trial;
    struct vt_summary s;
    int rc;

    t.rate = 1e6;
    rc = vt_trial_run(&t, &s, err);
    if (rc == VT_OK && !(s.req_per_s > 0))
        rc = vt_fail(err, VT_EINPUT, "%s: takes no time at all", t.workload);
    *rate = rc == VT_OK ? tidy_rate(s.req_per_s / 2) : 0;
    return rc;
}

/* From `rate` up until it fails, or down until it passes. *low 0: nothing passes; *high
 * 0: nothing fails. */
static int bracket_rates(struct probes *p, double rate, double *low, double *high,
                         struct vt_err *err)
{
    int rc = VT_OK;
    bool pass;

    for (int i = 0; i < MAX_HALVINGS && rc == VT_OK; i++) {
        rc = probe_rate(p, rate, &pass, err);
        if (rc != VT_OK)
            break;
        *(pass ? low : high) = rate;
        if ((*low > 0 && *high > 0) || (pass && i == MAX_DOUBLINGS))
            break;
        rate = tidy_rate(pass ? rate * 2 : rate / 2);
    }
    return rc;
}

static int bisect_rates(struct probes *p, double low, double high, struct vt_err *err)
{
    int rc = VT_OK;
    bool pass;

    while (rc == VT_OK && high > low * (1 + p->spec->tolerance)) {
        double middle = tidy_rate((low + high) / 2);

        if (!(middle > low && middle < high))
            break;
        rc = probe_rate(p, middle, &pass, err);
        if (rc == VT_OK)
            *(pass ? &low : &high) = middle;
    }
    return rc;
}

static int search_rates(struct probes *p, struct vt_err *err)
{
    const struct vt_capacity_spec *s = p->spec;
    double low = 0, high = 0, start = s->low > 0 ? s->low : s->high;
    const double bound[2] = {s->low, s->high};
    int rc = VT_OK;

    if (s->low > 0 && s->high > s->low) {
        /* The caller's bounds are tried first: they may not be what they are said to
         * be. */
        rc = probes_add(p, bound, 2, err);
        for (size_t i = 0; rc == VT_OK && i < 2; i++)
            if (most_pass(p, i))
                low = bound[i];
            else if (!(high > 0))
                high = bound[i];
    } else if (!(start > 0)) {
        rc = estimate_rate(s, &start, err);
    }
    if (rc == VT_OK && p->n == 0)
        rc = bracket_rates(p, start, &low, &high, err);
    if (rc != VT_OK || !(low > 0 && high > 0))
        return rc;
    return bisect_rates(p, low, high, err);
}

/* ---- the whole ------------------------------------------------------------------ */

int vt_capacity_find(struct vt_capacity *out, const struct vt_capacity_spec *spec,
                     struct vt_err *err)
{
    struct vt_capacity_spec s = *spec;
    struct probes p = {.spec = &s};
    int rc = VT_OK;

    *out = (struct vt_capacity){0};
    s.seeds = s.seeds > 0 ? s.seeds : 3;
    s.tolerance = s.tolerance > 0 ? s.tolerance : 0.02;
    if (!spec->trial.kept)
        rc = vt_trials_new(&s.trial.kept, err);
    if (rc || (rc = trial_preload(&s.trial, s.seeds, err)))
        goto out;
    rc = s.n_rates > 0 ? probes_add(&p, s.rate, s.n_rates, err) : search_rates(&p, err);
    if (rc == VT_OK)
        rc = capacity_judge(out, &p, err);
    else if (p.n > 0 && vt_stopped(NULL) != VT_OK && capacity_judge(out, &p, NULL))
        vt_capacity_free(out);
    free(p.rate);
    free(p.probe);
out:
    if (!spec->trial.kept)
        vt_trials_free(s.trial.kept);
    return rc;
}
