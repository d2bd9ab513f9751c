/* calibrate.c - how far a model's requests are from the captured ones, by load. */
#include <assert.h>
#include <math.h>

#include "report/stats.h"

static const uint32_t last_of[] = {1, 4, 6, 8, 16, 32, 64}; /* as vllm-vcr's ranges */
static const char *const load_name[VT_CALIBRATION_ROWS] = {
    "1", "2-4", "5-6", "7-8", "9-16", "17-32", "33-64", "65+", "all"};
static const char *const error_key[VT_N_METRICS] = {"ttft_ms_error", "itl_ms_error",
                                                    "decode_ms_error"};

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

/* Whether all requests together pass, in this metric. */
static int judge(struct vt_calibration *c, enum vt_metric m, const struct vt_view *v,
                 struct vt_err *err)
{
    const struct vt_calibration_row *r = &c->row[m][ALL];
    int rc = vt_again(v, m, &c->again[m], err);

    for (int i = 0; i < SPREAD && r->n > 0; i++)
        c->beyond[m][i] = !(r->modelled[i] >= c->again[m].lo[i] &&
                            r->modelled[i] <= c->again[m].hi[i]);
    if (c->tolerance >= 0)
        c->pass = c->pass && r->error <= c->tolerance;
    else
        for (int i = 0; i < SPREAD; i++)
            c->pass = c->pass && !c->beyond[m][i];
    return rc;
}

int vt_calibrate(struct vt_calibration *c, const struct vt_view *captured,
                 const struct vt_view *modelled, double tolerance, struct vt_err *err)
{
    size_t most =
        captured->n_gaps > modelled->n_gaps ? captured->n_gaps : modelled->n_gaps;
    double *scratch = malloc((most + captured->n + 1) * sizeof(*scratch));
    int rc = VT_OK;

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
    for (int m = 0; m < VT_N_METRICS && rc == VT_OK; m++) {
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
        rc = judge(c, (enum vt_metric)m, captured, err);
    }
    free(scratch);
    return rc;
}

/* ---- text ------------------------------------------------------------- */

static void put_again(struct vt_buf *b, const struct vt_calibration *c)
{
    vt_buf_printf(b, "a second run would come out between (ms)\n%9s", "");
    for (int i = 0; i < SPREAD; i++)
        vt_buf_printf(b, " %22s", spread_part[i]);
    for (int m = 0; m < VT_N_METRICS; m++) {
        vt_buf_printf(b, "\n%9s", metric_text[m].name);
        for (int i = 0; i < SPREAD && c->again[m].hi[i] > 0; i++)
            vt_buf_printf(b, " %9.3f to %9.3f", c->again[m].lo[i], c->again[m].hi[i]);
    }
    vt_buf_str(b, "\n\n");
}

static void put_beyond(struct vt_buf *b, const struct vt_calibration *c)
{
    bool any = false;

    for (int m = 0; m < VT_N_METRICS; m++)
        for (int i = 0; i < SPREAD; i++)
            if (c->beyond[m][i]) {
                vt_buf_printf(b, "%s %s %s", any ? "," : ";", metric_text[m].name,
                              spread_part[i]);
                any = true;
            }
    vt_buf_str(b, any ? " farther than a second run would be"
                      : ", as far as a second run would be");
}

void vt_calibration_table(struct vt_buf *b, const struct vt_calibration *c)
{
    char heading[64];

    snprintf(heading, sizeof(heading), "%s p50, p90, p99", c->kind);
    vt_buf_printf(b, "%s: %s\nmodelled: %s\n\n", c->kind, c->captured, c->modelled);
    for (int m = 0; m < VT_N_METRICS; m++) {
        vt_buf_printf(b, "%s: %s (ms)\n", metric_text[m].name, metric_text[m].help);
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
    if (c->tolerance < 0)
        put_again(b, c);
    vt_buf_str(b, "verdict: ");
    for (int m = 0; m < VT_N_METRICS; m++)
        vt_buf_printf(b, "%s%s %.2f %%", m > 0 ? ", " : "", metric_text[m].name,
                      100 * c->row[m][ALL].error);
    if (c->tolerance < 0)
        put_beyond(b, c);
    else
        vt_buf_printf(b, " against a tolerance of %g %%", 100 * c->tolerance);
    vt_buf_printf(b, ": %s\n", c->pass ? "PASS" : "FAIL");
}

void vt_calibration_json(struct vt_buf *b, const struct vt_calibration *c)
{
    struct vt_jw j;

    vt_jw_init(&j, b, &vt_json_pretty);
    vt_jw_map(&j, NULL);
    vt_jw_str(&j, c->kind, c->captured);
    vt_jw_str(&j, "modelled", c->modelled);
    for (int m = 0; m < VT_N_METRICS; m++) {
        vt_jw_list(&j, metric_text[m].key);
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
    vt_jw_map(&j, "second_run");
    for (int m = 0; m < VT_N_METRICS; m++) {
        vt_jw_row(&j, metric_text[m].key);
        for (int i = 0; i < SPREAD; i++) {
            const double range[] = {c->again[m].lo[i], c->again[m].hi[i]};

            vt_jw_f64_list(&j, spread_part[i], range, 2);
        }
        vt_jw_end(&j);
    }
    vt_jw_end(&j);
    vt_jw_row(&j, "verdict");
    for (int m = 0; m < VT_N_METRICS; m++)
        vt_jw_f64(&j, error_key[m], c->row[m][ALL].error);
    if (c->tolerance >= 0)
        vt_jw_f64(&j, "tolerance", c->tolerance);
    vt_jw_bool(&j, "pass", c->pass);
    vt_jw_end(&j);
    vt_jw_end(&j);
    vt_buf_char(b, '\n');
}
