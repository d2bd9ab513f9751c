/* slo.c - limits, and who breaks them. */
#include "tune/tune.h"

const char *vt_slo_nearest(const struct vt_slo *slo, const struct vt_summary *s,
                           double *by)
{
    const struct {
        const char *name;
        double limit, value;
    } row[] = {
        {"TTFT p99", slo->ttft_p99, s->ttft.p99},
        {"TPOT p99", slo->tpot_p99, s->tpot.p99},
        {"ITL p99", slo->itl_p99, s->itl.p99},
        {"E2E p99", slo->e2e_p99, s->e2e.p99},
    };
    const char *worst = NULL;
    double most = 0;

    for (size_t i = 0; i < VT_COUNT(row); i++) {
        double share = row[i].limit > 0 ? row[i].value / row[i].limit : 0;

        if (share > most) {
            most = share;
            worst = row[i].name;
        }
    }
    if (by != NULL)
        *by = most;
    return worst;
}

const char *vt_slo_broken(const struct vt_slo *slo, const struct vt_summary *s,
                          double *by)
{
    double share;
    const char *nearest = vt_slo_nearest(slo, s, &share);

    if (by != NULL)
        *by = share > 1 ? share : 1;
    return share > 1 ? nearest : NULL;
}
