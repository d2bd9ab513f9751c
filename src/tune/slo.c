/* slo.c - limits, and who breaks them. */
#include <string.h>

#include "tune/tune.h"

struct limit {
    const char *name;
    double share; /* of the limit that is used; 0: there is none */
};

enum { N_LIMITS = 4 };

static void judge_limits(struct limit out[N_LIMITS], const struct vt_slo *slo,
                         const struct vt_summary *s)
{
    const struct {
        const char *name;
        double limit, value;
    } row[N_LIMITS] = {
        {"TTFT p99", slo->ttft_p99, s->ttft.p99},
        {"TPOT p99", slo->tpot_p99, s->tpot.p99},
        {"ITL p99", slo->itl_p99, s->itl.p99},
        {"E2E p99", slo->e2e_p99, s->e2e.p99},
    };

    for (size_t i = 0; i < N_LIMITS; i++)
        out[i] = (struct limit){row[i].name,
                                row[i].limit > 0 ? row[i].value / row[i].limit : 0};
}

double vt_slo_limit(const struct vt_slo *slo, const char *name)
{
    const struct {
        const char *name;
        double limit;
    } row[N_LIMITS] = {
        {"TTFT p99", slo->ttft_p99},
        {"TPOT p99", slo->tpot_p99},
        {"ITL p99", slo->itl_p99},
        {"E2E p99", slo->e2e_p99},
    };

    for (size_t i = 0; name && i < N_LIMITS; i++)
        if (strcmp(row[i].name, name) == 0)
            return row[i].limit;
    return 0;
}

const char *vt_slo_nearest(const struct vt_slo *slo, const struct vt_summary *s,
                           double *by)
{
    struct limit limit[N_LIMITS], worst = {0};

    judge_limits(limit, slo, s);
    for (size_t i = 0; i < N_LIMITS; i++)
        if (limit[i].share > worst.share)
            worst = limit[i];
    if (by)
        *by = worst.share;
    return worst.name;
}

const char *vt_slo_broken(const struct vt_slo *slo, const struct vt_summary *s,
                          double *by)
{
    double share;
    const char *nearest = vt_slo_nearest(slo, s, &share);

    if (by)
        *by = share > 1 ? share : 1;
    return share > 1 ? nearest : NULL;
}

void vt_slo_all_broken(char *out, size_t size, const struct vt_slo *slo,
                       const struct vt_summary *s)
{
    struct limit limit[N_LIMITS];
    size_t len = 0;

    judge_limits(limit, slo, s);
    *out = '\0';
    for (size_t i = 0; i < N_LIMITS && len < size; i++)
        if (limit[i].share > 1)
            len += (size_t)snprintf(out + len, size - len, "%s%s", len > 0 ? ", " : "",
                                    limit[i].name);
}

bool vt_slo_keeps(const struct vt_slo *slo, const struct vt_served *s)
{
    double ttft = (double)s->ttft_ns / 1e6, decode = 0, e2e;
    uint32_t late = 0;

    for (uint32_t i = 0; i < s->n_gaps; i++) {
        double gap = (double)s->gap[i] / 1e6;

        decode += gap;
        late += slo->itl_p99 > 0 && gap > slo->itl_p99;
    }
    e2e = ttft + decode;
    if ((slo->ttft_p99 > 0 && ttft > slo->ttft_p99) ||
        (slo->e2e_p99 > 0 && e2e > slo->e2e_p99) || late > s->n_gaps / 100)
        return false;
    return !(slo->tpot_p99 > 0) || s->output_tokens < 2 ||
           decode / (s->output_tokens - 1) <= slo->tpot_p99;
}
