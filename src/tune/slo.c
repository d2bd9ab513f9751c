/* slo.c - limits, and who breaks them. */
#include <string.h>

#include "tune/trial.h"

const struct vt_slo_row vt_slo_rows[VT_SLO_LIMITS] = {
    [VT_SLO_TTFT] = {"TTFT p99", "ttft_p99", offsetof(struct vt_slo, ttft_p99),
                     offsetof(struct vt_summary, ttft)},
    [VT_SLO_TPOT] = {"TPOT p99", "tpot_p99", offsetof(struct vt_slo, tpot_p99),
                     offsetof(struct vt_summary, tpot)},
    [VT_SLO_ITL] = {"ITL p99", "itl_p99", offsetof(struct vt_slo, itl_p99),
                    offsetof(struct vt_summary, itl)},
    [VT_SLO_E2E] = {"E2E p99", "e2e_p99", offsetof(struct vt_slo, e2e_p99),
                    offsetof(struct vt_summary, e2e)},
};

double *vt_slo_limit(struct vt_slo *slo, size_t row)
{
    return (double *)(void *)((char *)slo + vt_slo_rows[row].limit);
}

double vt_slo_at(const struct vt_slo *slo, size_t row)
{
    const char *at = (const char *)slo;

    return row < VT_SLO_LIMITS
               ? *(const double *)(const void *)(at + vt_slo_rows[row].limit)
               : 0;
}

double vt_slo_value(const struct vt_summary *s, size_t row)
{
    return ((const struct vt_stat *)(const void *)((const char *)s +
                                                   vt_slo_rows[row].stat))
        ->p99;
}

size_t vt_slo_find(const char *name)
{
    size_t i = 0;

    while (i < VT_SLO_LIMITS && (!name || strcmp(vt_slo_rows[i].name, name) != 0))
        i++;
    return i;
}

/* Of the limit, how much is used; 0: there is none. */
static double share_of(const struct vt_slo *slo, const struct vt_summary *s, size_t row)
{
    double limit = vt_slo_at(slo, row);

    return limit > 0 ? vt_slo_value(s, row) / limit : 0;
}

const char *vt_slo_nearest(const struct vt_slo *slo, const struct vt_summary *s,
                           double *by)
{
    const char *name = NULL;
    double most = 0;

    for (size_t i = 0; i < VT_SLO_LIMITS; i++) {
        double share = share_of(slo, s, i);

        if (share > most) {
            most = share;
            name = vt_slo_rows[i].name;
        }
    }
    if (by)
        *by = most;
    return name;
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
    size_t len = 0;

    *out = '\0';
    for (size_t i = 0; i < VT_SLO_LIMITS && len < size; i++)
        if (share_of(slo, s, i) > 1)
            len += (size_t)snprintf(out + len, size - len, "%s%s", len > 0 ? ", " : "",
                                    vt_slo_rows[i].name);
}

bool slo_means_kept(const struct vt_slo *slo, vt_ns ttft_ns, vt_ns e2e_ns,
                    uint32_t output_tokens)
{
    double ttft = (double)ttft_ns / 1e6, e2e = (double)e2e_ns / 1e6;
    double tpot = output_tokens > 1 ? (e2e - ttft) / (output_tokens - 1) : 0;

    return (!(slo->ttft_p99 > 0) || ttft <= slo->ttft_p99) &&
           (!(slo->tpot_p99 > 0) || tpot <= slo->tpot_p99) &&
           (!(slo->e2e_p99 > 0) || e2e <= slo->e2e_p99);
}

bool vt_slo_keeps(const struct vt_slo *slo, const struct vt_served *s)
{
    vt_ns e2e = s->ttft_ns;
    uint32_t late = 0;

    for (uint32_t i = 0; i < s->n_gaps; i++) {
        e2e += s->gap[i];
        late += slo->itl_p99 > 0 && (double)s->gap[i] / 1e6 > slo->itl_p99;
    }
    return late <= s->n_gaps / 100 &&
           slo_means_kept(slo, s->ttft_ns, e2e, s->output_tokens);
}
