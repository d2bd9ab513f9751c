/* by_load.c - what requests took, by how many were in flight when they arrived. */
#include "report/report.h"

struct range {
    uint32_t lo, hi;
};

struct row {
    uint32_t load; /* 0: all */
    size_t n;
    struct range prompt, output;
    double ttft[3], itl[3]; /* p50, p90, p99 */
    size_t n_gaps;
};

static const double percent[] = {50, 90, 99};

static void widen(struct range *r, uint32_t v)
{
    if (r->lo == 0 || v < r->lo)
        r->lo = v;
    if (v > r->hi)
        r->hi = v;
}

static void quantiles(double *ms, size_t n, double out[3])
{
    vt_sort_f64(ms, n);
    for (size_t i = 0; i < VT_COUNT(percent); i++)
        out[i] = vt_quantile(ms, n, percent[i]);
}

/* Fills a row from n requests. */
static void fill(struct row *r, const struct vt_view *v, const struct vt_seen **req,
                 size_t n, double *scratch)
{
    r->n = n;
    for (size_t i = 0; i < n; i++) {
        widen(&r->prompt, req[i]->prompt_tokens);
        widen(&r->output, req[i]->output_tokens);
        scratch[i] = (double)req[i]->ttft_ns / 1e6;
    }
    quantiles(scratch, n, r->ttft);
    for (size_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < req[i]->n_gaps; k++)
            scratch[r->n_gaps++] = (double)v->gap[req[i]->first_gap + k] / 1e6;
    quantiles(scratch, r->n_gaps, r->itl);
}

static int by_load(const void *pa, const void *pb)
{
    const struct vt_seen *const *a = pa, *const *b = pb;

    if ((*a)->concurrency != (*b)->concurrency)
        return (*a)->concurrency < (*b)->concurrency ? -1 : 1;
    return *a < *b ? -1 : *a > *b;
}

/* One row for each load that occurs, ascending, and one for all at the end. */
static size_t fill_rows(const struct vt_view *v, const struct vt_seen **req,
                        double *scratch, struct row *out)
{
    size_t n = 0, from = 0, to;

    for (size_t i = 0; i < v->n; i++)
        req[i] = &v->req[i];
    qsort(req, v->n, sizeof(*req), by_load);
    for (; from < v->n; from = to) {
        for (to = from; to < v->n && req[to]->concurrency == req[from]->concurrency;)
            to++;
        out[n] = (struct row){.load = req[from]->concurrency};
        fill(&out[n++], v, &req[from], to - from, scratch);
    }
    fill(&out[n++], v, req, v->n, scratch);
    return n;
}

static int make_rows(const struct vt_view *v, struct row **out, size_t *n,
                     struct vt_err *err)
{
    const struct vt_seen **req = malloc((v->n + 1) * sizeof(*req));
    double *scratch = malloc((v->n + v->n_gaps + 1) * sizeof(*scratch));

    *n = 0;
    *out = calloc(v->n + 1, sizeof(**out));
    if (req && scratch && *out)
        *n = fill_rows(v, req, scratch, *out);
    free(req);
    free(scratch);
    return *n > 0 ? VT_OK : vt_nomem(err);
}

/* ---- text ------------------------------------------------------------- */

static void put_range(struct vt_buf *b, struct range r)
{
    char text[32];

    snprintf(text, sizeof(text), r.lo == r.hi ? "%u" : "%u-%u", r.lo, r.hi);
    vt_buf_printf(b, " %11s", text);
}

static void put_row(struct vt_buf *b, const struct row *r)
{
    if (r->load > 0)
        vt_buf_printf(b, "%9u", r->load);
    else
        vt_buf_printf(b, "%9s", "all");
    vt_buf_printf(b, " %8zu", r->n);
    put_range(b, r->prompt);
    put_range(b, r->output);
    for (int i = 0; i < 3; i++)
        vt_buf_printf(b, " %9.3f", r->ttft[i]);
    for (int i = 0; i < 3 && r->n_gaps > 0; i++)
        vt_buf_printf(b, " %8.3f", r->itl[i]);
    vt_buf_char(b, '\n');
}

int vt_load_table(struct vt_buf *b, const struct vt_view *v, struct vt_err *err)
{
    struct row *row;
    size_t n;
    int rc = make_rows(v, &row, &n, err);

    if (rc == VT_OK) {
        vt_buf_printf(b, "%9s %8s %11s %11s %29s %26s\n", "in flight", "requests",
                      "prompt", "output", "TTFT p50, p90, p99 (ms)",
                      "ITL p50, p90, p99 (ms)");
        for (size_t i = 0; i < n; i++)
            put_row(b, &row[i]);
    }
    free(row);
    return rc;
}

static void json_range(struct vt_buf *b, const char *key, struct range r)
{
    vt_buf_printf(b, ", \"%s\": [%u, %u]", key, r.lo, r.hi);
}

static void json_quantiles(struct vt_buf *b, const char *key, const double v[3])
{
    vt_buf_printf(b, ", \"%s\": {", key);
    for (size_t i = 0; i < VT_COUNT(percent); i++) {
        vt_buf_printf(b, "%s\"p%g\": ", i > 0 ? ", " : "", percent[i]);
        vt_buf_f64(b, v[i]);
    }
    vt_buf_char(b, '}');
}

int vt_load_json(struct vt_buf *b, const struct vt_view *v, const char *source,
                 struct vt_err *err)
{
    struct row *row;
    size_t n;
    int rc = make_rows(v, &row, &n, err);

    if (rc == VT_OK) {
        vt_buf_str(b, "{\n  \"source\": ");
        vt_buf_json_str(b, source, strlen(source));
        vt_buf_str(b, ",\n  \"by_concurrency\": [");
        for (size_t i = 0; i < n; i++) {
            bool all = row[i].load == 0;

            vt_buf_str(b, all ? "\n  ],\n  \"all\": " : i > 0 ? ",\n    " : "\n    ");
            vt_buf_printf(b, "{\"concurrency\": %u, \"requests\": %zu", row[i].load,
                          row[i].n);
            json_range(b, "prompt_tokens", row[i].prompt);
            json_range(b, "output_tokens", row[i].output);
            json_quantiles(b, "ttft_ms", row[i].ttft);
            json_quantiles(b, "itl_ms", row[i].itl);
            vt_buf_char(b, '}');
        }
        vt_buf_str(b, "\n}\n");
    }
    free(row);
    return rc;
}
