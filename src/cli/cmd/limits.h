/* limits.h - latency limits on the command line, and how a run kept them; private to
 * cmd. */
#ifndef VT_CLI_LIMITS_H
#define VT_CLI_LIMITS_H

#include "cli/cli.h"
#include "tune/tune.h"

struct limits_named { /* by --slo */
    struct vt_slo at;
    bool given;
};
/* Reader of limits_named: ttft-p99=500ms,tpot-p99=50ms. */
opt_reader limits_read;
#define LIMITS_ROW(f, ...)                          \
    OPT_READ(f, "slo", "LIMITS", limits_read, NULL, \
             "ttft-p99=500ms,tpot-p99=50ms,itl-p99,e2e-p99", __VA_ARGS__)

struct limits_kept { /* by a run */
    const struct vt_summary *run;
    uint64_t requests, kept; /* kept: within all limits by itself */
    double duration_s;
};
/* For people: each limit beside what came of it, and how many requests kept them. */
void limits_table(struct vt_buf *b, const struct vt_slo *slo,
                  const struct limits_kept *k);
/* For programs: the member "slo". */
void limits_json(struct vt_jw *w, const struct vt_slo *slo,
                 const struct limits_kept *k);
/* VT_ECHECK with the limit that is broken by most. */
int limits_check(const struct vt_slo *slo, const struct vt_summary *run,
                 struct vt_err *err) VT_MUST_CHECK;

#endif
