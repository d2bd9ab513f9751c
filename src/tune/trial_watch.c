/* trial_watch.c - what a run's requests say while it goes on: whether they pile up, and
 * whether a limit can still be kept. */
#include <math.h>

#include "tune/trial.h"

/* ---- what is borne ------------------------------------------------------------ */

struct backlog backlog_of(vt_ns span)
{
    return (struct backlog){.from = span / 4 * 2, .part = span / 4};
}

void backlog_add(struct backlog *b, vt_ns arrival_ns, vt_ns end_ns)
{
    for (int i = 0; i < 2; i++) {
        vt_ns from = b->from + b->part * i, until = from + b->part;

        from = arrival_ns > from ? arrival_ns : from;
        until = end_ns < until ? end_ns : until;
        if (until > from)
            b->area[i] += (double)(until - from) / 1e9;
    }
}

/* Of the requests that arrive in a part, those that are more under way than in the one
 * before have not been borne. */
double backlog_rate(const struct backlog *b, double rate)
{
    double part = (double)b->part / 1e9;

    if (!(part > 0))
        return rate;
    return fmin(rate, fmax(0, rate - (b->area[1] - b->area[0]) / part / part));
}

/* ---- limits that are broken for certain ---------------------------------------- */

static vt_ns limit_ns(double ms)
{
    return ms > 0 && ms < 1e12 ? vt_ns_from_ms(ms) : VT_NEVER;
}

void watch_start(struct limit_watch *w, const struct vt_slo *slo, size_t n)
{
    *w = (struct limit_watch){.enough = n - (uint64_t)floor(0.99 * (double)(n - 1))};
    for (size_t i = 0; i < VT_SLO_LIMITS; i++)
        w->limit[i] = limit_ns(vt_slo_at(slo, i));
    w->limit[VT_SLO_ITL] = VT_NEVER; /* its samples are gaps: how many is not known */
}

vt_ns served_e2e(const struct vt_served *s)
{
    vt_ns e2e = s->ttft_ns;

    for (uint32_t i = 0; i < s->n_gaps; i++)
        e2e += s->gap[i];
    return e2e;
}

const char *watch_add(struct limit_watch *w, const struct vt_served *s, vt_ns e2e_ns)
{
    vt_ns value[VT_SLO_LIMITS] = {[VT_SLO_TTFT] = s->ttft_ns, [VT_SLO_E2E] = e2e_ns};
    const char *broken = NULL;
    bool good = true;

    if (s->output_tokens > 1)
        value[VT_SLO_TPOT] = (e2e_ns - s->ttft_ns) / (s->output_tokens - 1);
    for (int i = 0; i < VT_SLO_LIMITS; i++) {
        if (value[i] <= w->limit[i])
            continue;
        good = false;
        if (++w->above[i] >= w->enough && !broken)
            broken = vt_slo_rows[i].name;
    }
    w->good += good;
    return broken;
}
