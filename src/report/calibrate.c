/* calibrate.c - how far a model's requests are from the captured ones, by load. */
#include <math.h>

#include "report/report.h"

static const double percent[] = {50, 90, 99};
static const uint32_t last_of[] = {1, 4, 6, 8, 16, 32, 64}; /* as vllm-vcr's ranges */
static const char *const load_name[VT_CALIBRATION_ROWS] = {
    "1", "2-4", "5-6", "7-8", "9-16", "17-32", "33-64", "65+", "all"};
static const char *const metric_name[VT_N_METRICS] = {
    [VT_TTFT] = "TTFT", [VT_ITL] = "ITL", [VT_DECODE] = "decode"};
static const char *const metric_key[VT_N_METRICS] = {
    [VT_TTFT] = "ttft_ms", [VT_ITL] = "itl_ms", [VT_DECODE] = "decode_ms"};
static const char *const metric_help[VT_N_METRICS] = {
    [VT_TTFT] = "time to first token",
    [VT_ITL] = "gap between tokens",
    [VT_DECODE] = "first token to last of a request"};

enum { ALL = VT_CALIBRATION_ROWS - 1 };

static int load_of(uint32_t concurrency)
{
    int i = 0;

    while (i < (int)VT_COUNT(last_of) && concurrency > last_of[i])
        i++;
    return i;
}

/* The metric's samples of the requests that were captured in this range of load. */
static size_t collect(const struct vt_view *v, const struct vt_view *captured,
                      enum vt_metric m, int load, double *out)
{
    size_t n = 0;

    for (size_t i = 0; i < v->n; i++) {
        const struct vt_seen *q = &v->req[i];

        if (load != ALL && load_of(captured->req[i].concurrency) != load)
            continue;
        if (m == VT_TTFT)
            out[n++] = (double)q->ttft_ns / 1e6;
        else if (m == VT_DECODE && q->n_gaps > 0)
            out[n++] = (double)q->decode_ns / 1e6;
        for (uint32_t k = 0; m == VT_ITL && k < q->n_gaps; k++)
            out[n++] = (double)v->gap[q->first_gap + k] / 1e6;
    }
    vt_sort_f64(out, n);
    return n;
}

static double error_of(const double a[3], const double b[3])
{
    double worst = 0;

    for (int i = 0; i < 3; i++) {
        double larger = fmax(a[i], b[i]);

        if (larger > 0)
            worst = fmax(worst, fabs(a[i] - b[i]) / larger);
    }
    return worst;
}

static void fill_row(struct vt_calibration_row *row, const struct vt_view *captured,
                     const struct vt_view *modelled, enum vt_metric m, int load,
                     double *scratch)
{
    size_t n;

    row->load = load_name[load];
    row->n = collect(captured, captured, m, load, scratch);
    for (int i = 0; i < 3; i++)
        row->captured[i] = vt_quantile(scratch, row->n, percent[i]);
    n = collect(modelled, captured, m, load, scratch);
    for (int i = 0; i < 3; i++)
        row->modelled[i] = vt_quantile(scratch, n, percent[i]);
    row->error = error_of(row->captured, row->modelled);
}

int vt_calibrate(struct vt_calibration *c, const struct vt_view *captured,
                 const struct vt_view *modelled, double tolerance, struct vt_err *err)
{
    size_t most =
        captured->n_gaps > modelled->n_gaps ? captured->n_gaps : modelled->n_gaps;
    double *scratch = malloc((most + captured->n + 1) * sizeof(*scratch));

    if (!scratch)
        return vt_nomem(err);
    *c = (struct vt_calibration){
        .captured = captured->label,
        .modelled = modelled->label,
        .tolerance = tolerance,
        .pass = true,
    };
    for (int m = 0; m < VT_N_METRICS; m++) {
        for (int load = 0; load < VT_CALIBRATION_ROWS; load++)
            fill_row(&c->row[m][load], captured, modelled, (enum vt_metric)m, load,
                     scratch);
        c->pass = c->pass && c->row[m][ALL].error <= tolerance;
    }
    free(scratch);
    return VT_OK;
}

/* ---- text ------------------------------------------------------------- */

static void table_row(struct vt_buf *b, const struct vt_calibration_row *r)
{
    vt_buf_printf(b, "%9s %8zu", r->load, r->n);
    for (int i = 0; i < 3; i++)
        vt_buf_printf(b, " %9.3f", r->captured[i]);
    vt_buf_str(b, "  ");
    for (int i = 0; i < 3; i++)
        vt_buf_printf(b, " %9.3f", r->modelled[i]);
    vt_buf_printf(b, " %8.2f %%\n", 100 * r->error);
}

static void metric_table(struct vt_buf *b, const struct vt_calibration *c, int m)
{
    vt_buf_printf(b, "%s: %s (ms)\n", metric_name[m], metric_help[m]);
    vt_buf_printf(b, "%9s %8s %29s   %29s %10s\n", "in flight", "n",
                  "captured p50, p90, p99", "modelled p50, p90, p99", "error");
    for (int load = 0; load < VT_CALIBRATION_ROWS; load++)
        if (c->row[m][load].n > 0)
            table_row(b, &c->row[m][load]);
    vt_buf_char(b, '\n');
}

void vt_calibration_table(struct vt_buf *b, const struct vt_calibration *c)
{
    vt_buf_printf(b, "captured: %s\nmodelled: %s\n\n", c->captured, c->modelled);
    for (int m = 0; m < VT_N_METRICS; m++)
        metric_table(b, c, m);
    vt_buf_str(b, "verdict: ");
    for (int m = 0; m < VT_N_METRICS; m++)
        vt_buf_printf(b, "%s%s %.2f %%", m > 0 ? ", " : "", metric_name[m],
                      100 * c->row[m][ALL].error);
    vt_buf_printf(b, " against a tolerance of %g %%: %s\n", 100 * c->tolerance,
                  c->pass ? "PASS" : "FAIL");
}

static void json_values(struct vt_buf *b, const char *key, const double v[3])
{
    vt_buf_printf(b, "\"%s\": {", key);
    for (int i = 0; i < 3; i++) {
        vt_buf_printf(b, "%s\"p%g\": ", i > 0 ? ", " : "", percent[i]);
        vt_buf_f64(b, v[i]);
    }
    vt_buf_str(b, "}, ");
}

static void json_row(struct vt_buf *b, const struct vt_calibration_row *r)
{
    vt_buf_printf(b, "{\"in_flight\": \"%s\", \"n\": %zu, ", r->load, r->n);
    json_values(b, "captured", r->captured);
    json_values(b, "modelled", r->modelled);
    vt_buf_str(b, "\"error\": ");
    vt_buf_f64(b, r->error);
    vt_buf_char(b, '}');
}

static void json_metric(struct vt_buf *b, const struct vt_calibration *c, int m)
{
    bool first = true;

    vt_buf_printf(b, ",\n  \"%s\": [", metric_key[m]);
    for (int load = 0; load < VT_CALIBRATION_ROWS; load++) {
        if (c->row[m][load].n == 0)
            continue;
        vt_buf_str(b, first ? "\n    " : ",\n    ");
        json_row(b, &c->row[m][load]);
        first = false;
    }
    vt_buf_str(b, first ? "]" : "\n  ]");
}

void vt_calibration_json(struct vt_buf *b, const struct vt_calibration *c)
{
    vt_buf_str(b, "{\n  \"captured\": ");
    vt_buf_json_str(b, c->captured, strlen(c->captured));
    vt_buf_str(b, ",\n  \"modelled\": ");
    vt_buf_json_str(b, c->modelled, strlen(c->modelled));
    for (int m = 0; m < VT_N_METRICS; m++)
        json_metric(b, c, m);
    vt_buf_str(b, ",\n  \"verdict\": {");
    for (int m = 0; m < VT_N_METRICS; m++) {
        vt_buf_printf(b, "\"%s_error\": ", metric_key[m]);
        vt_buf_f64(b, c->row[m][ALL].error);
        vt_buf_str(b, ", ");
    }
    vt_buf_str(b, "\"tolerance\": ");
    vt_buf_f64(b, c->tolerance);
    vt_buf_printf(b, ", \"pass\": %s}\n}\n", c->pass ? "true" : "false");
}
