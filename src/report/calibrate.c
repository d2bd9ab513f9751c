/* calibrate.c - how far a model's requests are from the captured ones, by load. */
#include <assert.h>
#include <math.h>

#include "report/stats.h"

static const uint32_t last_of[] = {1, 4, 6, 8, 16, 32, 64}; /* as vllm-vcr's ranges */
static const char *const load_name[VT_CALIBRATION_ROWS] = {
    "1", "2-4", "5-6", "7-8", "9-16", "17-32", "33-64", "65+", "all"};
static const struct {
    const char *name, *key, *error_key, *help;
} metrics[VT_N_METRICS] = {
    [VT_TTFT] = {"TTFT", "ttft_ms", "ttft_ms_error", "time to first token"},
    [VT_ITL] = {"ITL", "itl_ms", "itl_ms_error", "gap between tokens"},
    [VT_DECODE] = {"decode", "decode_ms", "decode_ms_error",
                   "first token to last of a request"},
};

enum { ALL = VT_CALIBRATION_ROWS - 1 };

/* Of the requests that were captured in this range of load; returns how many samples
 * there are. */
static size_t spread_at(const struct vt_view *v, const struct vt_view *captured,
                        enum vt_metric m, int load, double *scratch, double out[SPREAD])
{
    uint32_t lo = load > 0 && load != ALL ? last_of[load - 1] + 1 : 0;
    uint32_t hi = load < (int)VT_COUNT(last_of) ? last_of[load] : UINT32_MAX;
    size_t n = 0;

    for (size_t i = 0; i < v->n; i++)
        if (captured->req[i].concurrency >= lo && captured->req[i].concurrency <= hi)
            n += view_samples_of(v, &v->req[i], m, scratch + n);
    spread_of(scratch, n, out);
    return n;
}

int vt_calibrate(struct vt_calibration *c, const struct vt_view *captured,
                 const struct vt_view *modelled, double tolerance, struct vt_err *err)
{
    size_t most =
        captured->n_gaps > modelled->n_gaps ? captured->n_gaps : modelled->n_gaps;
    double *scratch = malloc((most + captured->n + 1) * sizeof(*scratch));

    assert(captured->n == modelled->n);
    if (!scratch)
        return vt_nomem(err);
    *c = (struct vt_calibration){
        .kind = captured->label,
        .captured = captured->label,
        .modelled = modelled->label,
        .tolerance = tolerance,
        .pass = true,
    };
    for (int m = 0; m < VT_N_METRICS; m++) {
        for (int load = 0; load < VT_CALIBRATION_ROWS; load++) {
            struct vt_calibration_row *r = &c->row[m][load];

            r->load = load_name[load];
            r->n = spread_at(captured, captured, (enum vt_metric)m, load, scratch,
                             r->captured);
            (void)spread_at(modelled, captured, (enum vt_metric)m, load, scratch,
                            r->modelled);
            for (int i = 0; i < SPREAD; i++) {
                double larger = fmax(r->captured[i], r->modelled[i]);

                if (larger > 0)
                    r->error =
                        fmax(r->error, fabs(r->captured[i] - r->modelled[i]) / larger);
            }
        }
        c->pass = c->pass && c->row[m][ALL].error <= tolerance;
    }
    free(scratch);
    return VT_OK;
}

/* ---- text ------------------------------------------------------------- */

void vt_calibration_table(struct vt_buf *b, const struct vt_calibration *c)
{
    char heading[64];

    snprintf(heading, sizeof(heading), "%s p50, p90, p99", c->kind);
    vt_buf_printf(b, "%s: %s\nmodelled: %s\n\n", c->kind, c->captured, c->modelled);
    for (int m = 0; m < VT_N_METRICS; m++) {
        vt_buf_printf(b, "%s: %s (ms)\n", metrics[m].name, metrics[m].help);
        vt_buf_printf(b, "%9s %8s %29s   %29s %10s\n", "in flight", "n", heading,
                      "modelled p50, p90, p99", "error");
        for (int load = 0; load < VT_CALIBRATION_ROWS; load++) {
            const struct vt_calibration_row *r = &c->row[m][load];

            if (r->n == 0)
                continue;
            vt_buf_printf(b, "%9s %8zu", r->load, r->n);
            for (int i = 0; i < SPREAD; i++)
                vt_buf_printf(b, " %9.3f", r->captured[i]);
            vt_buf_str(b, "  ");
            for (int i = 0; i < SPREAD; i++)
                vt_buf_printf(b, " %9.3f", r->modelled[i]);
            vt_buf_printf(b, " %8.2f %%\n", 100 * r->error);
        }
        vt_buf_char(b, '\n');
    }
    vt_buf_str(b, "verdict: ");
    for (int m = 0; m < VT_N_METRICS; m++)
        vt_buf_printf(b, "%s%s %.2f %%", m > 0 ? ", " : "", metrics[m].name,
                      100 * c->row[m][ALL].error);
    vt_buf_printf(b, " against a tolerance of %g %%: %s\n", 100 * c->tolerance,
                  c->pass ? "PASS" : "FAIL");
}

void vt_calibration_json(struct vt_buf *b, const struct vt_calibration *c)
{
    struct vt_jw j;

    vt_jw_init(&j, b, &vt_json_pretty);
    vt_jw_map(&j, NULL);
    vt_jw_str(&j, c->kind, c->captured);
    vt_jw_str(&j, "modelled", c->modelled);
    for (int m = 0; m < VT_N_METRICS; m++) {
        vt_jw_list(&j, metrics[m].key);
        for (int load = 0; load < VT_CALIBRATION_ROWS; load++) {
            const struct vt_calibration_row *r = &c->row[m][load];

            if (r->n == 0)
                continue;
            vt_jw_row(&j, NULL);
            vt_jw_str(&j, "in_flight", r->load);
            vt_jw_u64(&j, "n", r->n);
            spread_json(&j, c->kind, r->captured);
            spread_json(&j, "modelled", r->modelled);
            vt_jw_f64(&j, "error", r->error);
            vt_jw_end(&j);
        }
        vt_jw_end(&j);
    }
    vt_jw_row(&j, "verdict");
    for (int m = 0; m < VT_N_METRICS; m++)
        vt_jw_f64(&j, metrics[m].error_key, c->row[m][ALL].error);
    vt_jw_f64(&j, "tolerance", c->tolerance);
    vt_jw_bool(&j, "pass", c->pass);
    vt_jw_end(&j);
    vt_jw_end(&j);
    vt_buf_char(b, '\n');
}
