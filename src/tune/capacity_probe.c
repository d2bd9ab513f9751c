/* capacity_probe.c - a batch of rates, each with every seed. */
#include "tune/capacity.h"

#include <stdlib.h>
#include <string.h>

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

int probes_add(struct probes *p, const double *rate, size_t n, struct vt_err *err)
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
    if (rc == VT_OK)
        rc = vt_jobs_run(&jobs, err);
    if (rc != VT_OK)
        return rc;
    memcpy(&p->rate[p->n], rate, n * sizeof(*rate));
    p->n += n;
    return VT_OK;
}

void probes_free(struct probes *p)
{
    free(p->rate);
    free(p->probe);
}
