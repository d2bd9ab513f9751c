/* rows.c - the metrics of a summary. */
#include <math.h>

#include "report/report.h"

const struct vt_stat_row vt_stat_rows[VT_N_STATS] = {
    {"TTFT", "ttft_ms", offsetof(struct vt_summary, ttft)},
    {"TPOT", "tpot_ms", offsetof(struct vt_summary, tpot)},
    {"ITL", "itl_ms", offsetof(struct vt_summary, itl)},
    {"E2E", "e2e_ms", offsetof(struct vt_summary, e2e)},
    {"queue", "queue_ms", offsetof(struct vt_summary, queue)},
};

const struct vt_part vt_parts[VT_N_PARTS] = {
    {"mean", offsetof(struct vt_stat, mean)}, {"p50", offsetof(struct vt_stat, p50)},
    {"p90", offsetof(struct vt_stat, p90)},   {"p95", offsetof(struct vt_stat, p95)},
    {"p99", offsetof(struct vt_stat, p99)},
};

const struct vt_scalar vt_scalars[VT_N_SCALARS] = {
    {"throughput", "req/s", "req_per_s", offsetof(struct vt_summary, req_per_s), 1},
    {"output", "tok/s", "output_tok_per_s",
     offsetof(struct vt_summary, output_tok_per_s), 1},
    {"in all", "tok/s", "total_tok_per_s", offsetof(struct vt_summary, total_tok_per_s),
     1},
    {"duration", "s", "duration_s", offsetof(struct vt_summary, duration_s), 1},
    {"prefix hits", "%", "prefix_hit_rate",
     offsetof(struct vt_summary, prefix_hit_rate), 100},
};

double vt_error_percent(double predicted, double measured)
{
    if (predicted == measured)
        return 0;
    return measured == 0 ? NAN : 100 * (predicted - measured) / measured;
}
