/* arrival.c - the processes by which a generated workload's requests arrive. */
#include <math.h>

#include "trace/workload/workload.h"

/* Computed from the count, not by adding gaps, so that rounding does not add up. */
static double constant_next(struct trace_pace *p)
{
    return p->now_s = (double)p->n++ / p->rate;
}

static double constant_end(const struct trace_pace *p)
{
    return (double)p->n / p->rate;
}

static double poisson_next(struct trace_pace *p)
{
    p->n++;
    return p->now_s += vt_rng_exp(p->rng) / p->rate;
}

/* As `vllm bench serve --burstiness`: gaps of the same mean, more even above 1, in
 * clusters below. */
static double gamma_next(struct trace_pace *p)
{
    p->n++;
    return p->now_s += vt_rng_gamma(p->rng, p->burstiness) / (p->rate * p->burstiness);
}

static double random_end(const struct trace_pace *p)
{
    return p->now_s;
}

static double burst_next(struct trace_pace *p)
{
    uint64_t burst = p->n++ / p->burst_size;

    return p->now_s = (double)burst * p->interval_s;
}

static double burst_end(const struct trace_pace *p)
{
    return ceil((double)p->n / (double)p->burst_size) * p->interval_s;
}

static double closed_next(struct trace_pace *p)
{
    p->n++;
    return 0;
}

static double closed_end(const struct trace_pace *p)
{
    (void)p;
    return 0;
}

static const char *const rate_keys[] = {"process", "rate", NULL};
static const char *const gamma_keys[] = {"process", "rate", "burstiness", NULL};
static const char *const burst_keys[] = {"process", "rate", "size", "interval_s", NULL};
static const char *const closed_keys[] = {"process", "concurrency", NULL};

/* To add a process: write its two functions, add a row here, describe it in
 * docs/workload.md and add a case to tests/trace/test_workload.c. */
static const struct trace_process processes[] = {
    {"constant", rate_keys, false, constant_next, constant_end},
    {"poisson", rate_keys, false, poisson_next, random_end},
    {"gamma", gamma_keys, false, gamma_next, random_end},
    {"burst", burst_keys, false, burst_next, burst_end},
    {"closed", closed_keys, true, closed_next, closed_end},
};

int trace_process_find(const struct trace_process **out, const char *name,
                       struct vt_err *err)
{
    const char *known[VT_COUNT(processes) + 1] = {NULL};

    for (size_t i = 0; i < VT_COUNT(processes); i++) {
        *out = &processes[i];
        known[i] = processes[i].name;
        if (strcmp(known[i], name) == 0)
            return VT_OK;
    }
    return vt_fail_unknown(err, "process", name, 40, known);
}
