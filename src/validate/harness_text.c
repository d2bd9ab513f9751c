/* harness_text.c - tables and JSON of a validation. */
#include <math.h>
#include <stdlib.h>

#include "validate/validate.h"
#include "validate/values.h"

enum table_value { OF_MAPE, OF_MPE };
enum { METRIC_WIDTH = 8 };

typedef const char *key_of(const struct vt_error_record *r);

static const char *by_simulator(const struct vt_error_record *r)
{
    return r->simulator;
}

static const char *by_model(const struct vt_error_record *r)
{
    return r->experiment->model;
}

static const char *by_workload(const struct vt_error_record *r)
{
    return r->experiment->workload;
}

/* ---- keys ----------------------------------------------------------- */

static int error_keys(struct keys *k, const struct vt_harness *h, key_of *of,
                      struct vt_err *err)
{
    int rc = VT_OK;

    for (size_t i = 0; i < h->n_errors && rc == VT_OK; i++)
        rc = keys_add(k, of(&h->error[i]), err);
    return rc;
}

static int width_of(const struct keys *k, const char *label)
{
    size_t n = strlen(label);

    for (size_t i = 0; i < k->n; i++)
        n = strlen(k->key[i]) > n ? strlen(k->key[i]) : n;
    return (int)n;
}

/* ---- tables of errors ----------------------------------------------- */

enum rows { ROWS_ALL, ROWS_SUMMARY, ROWS_STAGES };

/* The samples of one cell. */
static int add_samples(struct values *x, const struct vt_harness *h, key_of *of,
                       const char *key, uint32_t metric, enum table_value what,
                       enum rows rows, struct vt_err *err)
{
    int rc = VT_OK;

    for (size_t i = 0; i < h->n_errors && rc == VT_OK; i++) {
        const struct vt_error_record *r = &h->error[i];

        if (rows != ROWS_ALL && (rows == ROWS_SUMMARY) != (r->stage_index < 0))
            continue;
        if (r->metric == metric && strcmp(of(r), key) == 0)
            rc = values_add(x, what == OF_MAPE ? r->mape : r->mpe, err);
    }
    return rc;
}

static int metric_width(uint32_t metric)
{
    int n = (int)strlen(vt_error_metric_names[metric]);

    return n > METRIC_WIDTH ? n : METRIC_WIDTH;
}

/* A line of dashes under the line that begins at `from`. */
static void underline(struct vt_buf *b, size_t from)
{
    size_t n = b->len - from;

    vt_buf_char(b, '\n');
    for (size_t i = 0; i < n; i++)
        vt_buf_char(b, '-');
    vt_buf_char(b, '\n');
}

struct section {
    const char *title, *label;
    key_of *of;
    enum table_value what;
};

static int put_section(struct vt_buf *b, const struct vt_harness *h,
                       const struct section *s, struct vt_err *err)
{
    struct keys k = {0};
    int rc = error_keys(&k, h, s->of, err), width = width_of(&k, s->label);
    size_t from;

    vt_buf_printf(b, "\n=== %s ===\n\n", s->title);
    from = b->len;
    if (k.n == 0) {
        vt_buf_printf(b, "(no data for %s)\n", s->label);
    } else {
        vt_buf_printf(b, "%-*s", width, s->label);
        for (uint32_t m = 0; m < VT_ERROR_METRICS; m++)
            vt_buf_printf(b, "  %*s", metric_width(m), vt_error_metric_names[m]);
        underline(b, from);
    }
    for (size_t i = 0; i < k.n && rc == VT_OK; i++) {
        vt_buf_printf(b, "%-*s", width, k.key[i]);
        for (uint32_t m = 0; m < VT_ERROR_METRICS && rc == VT_OK; m++) {
            struct values x = {0};

            rc = add_samples(&x, h, s->of, k.key[i], m, s->what, ROWS_ALL, err);
            if (isnan(values_mean(&x)))
                vt_buf_printf(b, "  %*s", metric_width(m), "N/A");
            else
                vt_buf_printf(b, "  %*.2f", metric_width(m), values_mean(&x));
            free(x.v);
        }
        vt_buf_char(b, '\n');
    }
    free(k.key);
    return rc;
}

/* ---- how long it took ------------------------------------------------ */

static int put_runtime(struct vt_buf *b, const struct vt_harness *h, struct vt_err *err)
{
    struct keys k = {0};
    int rc = VT_OK, width;
    size_t from;

    for (size_t i = 0; i < h->n_runs && rc == VT_OK; i++)
        if (h->run[i].outcome == VT_ADAPTER_OK)
            rc = keys_add(&k, h->run[i].simulator, err);
    width = width_of(&k, "Simulator");
    vt_buf_str(b, "\n=== Simulator Runtime ===\n\n");
    from = b->len;
    if (k.n == 0) {
        vt_buf_str(b, "(no runtime data)\n");
    } else {
        vt_buf_printf(b, "%-*s  %8s  %8s  %8s  %8s  %8s", width, "Simulator", "Mean(s)",
                      "Min(s)", "Max(s)", "Total(s)", "Runs");
        underline(b, from);
    }
    for (size_t i = 0; i < k.n; i++) {
        double least = INFINITY, most = 0, total = 0;
        size_t n = 0;

        for (size_t m = 0; m < h->n_runs; m++) {
            const struct vt_adapter_run *r = &h->run[m];

            if (r->outcome != VT_ADAPTER_OK || strcmp(r->simulator, k.key[i]) != 0)
                continue;
            least = fmin(least, r->seconds);
            most = fmax(most, r->seconds);
            total += r->seconds;
            n++;
        }
        vt_buf_printf(b, "%-*s  %8.2f  %8.2f  %8.2f  %8.2f  %8zu\n", width, k.key[i],
                      total / (double)n, least, most, total, n);
    }
    free(k.key);
    return rc;
}

int vt_harness_table(struct vt_buf *b, const struct vt_harness *h,
                     const char *directory, struct vt_err *err)
{
    static const struct section section[] = {
        {"MAPE by Simulator", "Simulator", by_simulator, OF_MAPE},
        {"MAPE by Model", "Model", by_model, OF_MAPE},
        {"MAPE by Workload", "Workload", by_workload, OF_MAPE},
        {"MPE by Simulator (signed)", "Simulator", by_simulator, OF_MPE},
    };
    int rc = VT_OK;

    if (h->n_errors == 0) {
        vt_buf_str(b, "No error records to report.\n");
        return VT_OK;
    }
    for (size_t i = 0; i < VT_COUNT(section) && rc == VT_OK; i++)
        rc = put_section(b, h, &section[i], err);
    vt_buf_printf(b, "\nCSV saved to %s/error_records.csv\n", directory);
    if (rc == VT_OK && h->n_ok > 0) {
        rc = put_runtime(b, h, err);
        vt_buf_printf(b, "\nRuntime CSV saved to %s/runtime.csv\n", directory);
    }
    return rc;
}

/* ---- JSON ------------------------------------------------------------ */

/* Stages and summaries apart: they are not the same population. */
static int put_errors(struct vt_jw *w, const struct vt_harness *h,
                      const char *simulator, struct vt_err *err)
{
    static const struct {
        const char *key;
        enum table_value what;
        enum rows rows;
    } part[] = {{"mape_summary", OF_MAPE, ROWS_SUMMARY},
                {"mape_stages", OF_MAPE, ROWS_STAGES},
                {"mpe_summary", OF_MPE, ROWS_SUMMARY},
                {"mpe_stages", OF_MPE, ROWS_STAGES}};
    int rc = VT_OK;

    for (size_t i = 0; i < VT_COUNT(part); i++) {
        vt_jw_row(w, part[i].key);
        for (uint32_t m = 0; m < VT_ERROR_METRICS && rc == VT_OK; m++) {
            struct values x = {0};

            rc = add_samples(&x, h, by_simulator, simulator, m, part[i].what,
                             part[i].rows, err);
            if (x.n > 0) {
                vt_jw_row(w, vt_error_metric_names[m]);
                vt_jw_u64(w, "n", x.n);
                vt_jw_f64(w, "mean", values_mean(&x));
                vt_sort_f64(x.v, x.n);
                vt_jw_f64(w, "median", vt_quantile(x.v, x.n, 50));
                vt_jw_end(w);
            }
            free(x.v);
        }
        vt_jw_end(w);
    }
    return rc;
}

static void put_run(struct vt_jw *w, const struct vt_adapter_run *r)
{
    static const char *const outcome[] = {"ok", "skipped", "failed"};

    vt_jw_row(w, NULL);
    vt_jw_str(w, "outcome", outcome[r->outcome]);
    vt_jw_str(w, "simulator", r->simulator);
    vt_jw_str(w, "experiment", r->experiment->folder);
    if (r->outcome != VT_ADAPTER_OK) {
        vt_jw_str(w, "why", r->why);
    } else {
        vt_jw_u64(w, "requests", r->requests);
        vt_jw_u64(w, "measured_requests", r->experiment->summary.requests);
        vt_jw_u64(w, "failed", r->failed);
        vt_jw_u64(w, "measured_failed",
                  r->experiment->summary.sent - r->experiment->summary.requests);
        vt_basis_members(w, &r->basis);
    }
    vt_jw_end(w);
}

int vt_harness_json(struct vt_buf *b, const struct vt_harness *h, struct vt_err *err)
{
    struct keys k = {0};
    struct vt_jw w;
    int rc = error_keys(&k, h, by_simulator, err);

    vt_jw_init(&w, b, &vt_json_pretty);
    vt_jw_map(&w, NULL);
    vt_jw_u64(&w, "ok", h->n_ok);
    vt_jw_u64(&w, "skipped", h->n_skipped);
    vt_jw_u64(&w, "failed", h->n_failed);
    vt_jw_map(&w, "simulators");
    for (size_t i = 0; i < k.n && rc == VT_OK; i++) {
        vt_jw_map(&w, k.key[i]);
        rc = put_errors(&w, h, k.key[i], err);
        vt_jw_end(&w);
    }
    vt_jw_end(&w);
    vt_jw_list(&w, "runs");
    for (size_t i = 0; i < h->n_runs; i++)
        put_run(&w, &h->run[i]);
    vt_jw_end(&w);
    vt_jw_end(&w);
    vt_buf_char(b, '\n');
    free(k.key);
    return rc == VT_OK && b->failed ? vt_nomem(err) : rc;
}
