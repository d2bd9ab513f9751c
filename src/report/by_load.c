/* by_load.c - what requests took, by how many were in flight when they arrived. */
#include "report/stats.h"

struct range {
    uint32_t lo, hi;
};

struct row {
    uint32_t load; /* 0: all */
    size_t n;
    struct range prompt, output;
    double ttft[SPREAD], itl[SPREAD];
    size_t n_gaps;
};

static void widen(struct range *r, uint32_t v)
{
    if (r->lo == 0 || v < r->lo)
        r->lo = v;
    if (v > r->hi)
        r->hi = v;
}

/* Fills a row from n requests. */
static void fill_row(struct row *r, const struct vt_view *v, const struct vt_seen **req,
                     size_t n, double *scratch)
{
    r->n = n;
    for (size_t i = 0; i < n; i++) {
        widen(&r->prompt, req[i]->prompt_tokens);
        widen(&r->output, req[i]->output_tokens);
        (void)view_samples_of(v, req[i], VT_TTFT, &scratch[i]);
    }
    spread_of(scratch, n, r->ttft);
    for (size_t i = 0; i < n; i++)
        r->n_gaps += view_samples_of(v, req[i], VT_ITL, &scratch[r->n_gaps]);
    spread_of(scratch, r->n_gaps, r->itl);
}

static int by_load(const void *pa, const void *pb)
{
    const struct vt_seen *const *a = pa, *const *b = pb;

    if ((*a)->concurrency != (*b)->concurrency)
        return (*a)->concurrency < (*b)->concurrency ? -1 : 1;
    return *a < *b ? -1 : *a > *b;
}

/* One row for each load that occurs, ascending, and one for all at the end. The caller
 * frees *out. */
static int make_rows(const struct vt_view *v, struct row **out, size_t *n,
                     struct vt_err *err)
{
    const struct vt_seen **req = malloc((v->n + 1) * sizeof(*req));
    double *scratch = malloc((v->n + v->n_gaps + 1) * sizeof(*scratch));
    struct row *row = calloc(v->n + 1, sizeof(*row));

    *n = 0;
    *out = row;
    if (!req || !scratch || !row)
        goto out;
    for (size_t i = 0; i < v->n; i++)
        req[i] = &v->req[i];
    qsort(req, v->n, sizeof(*req), by_load);
    for (size_t from = 0, to = 0; from < v->n; from = to) {
        while (to < v->n && req[to]->concurrency == req[from]->concurrency)
            to++;
        row[*n].load = req[from]->concurrency;
        fill_row(&row[(*n)++], v, &req[from], to - from, scratch);
    }
    fill_row(&row[(*n)++], v, req, v->n, scratch);
out:
    free(req);
    free(scratch);
    return *n > 0 ? VT_OK : vt_nomem(err);
}

/* ---- text ------------------------------------------------------------- */

int vt_load_table(struct vt_buf *b, const struct vt_view *v, struct vt_err *err)
{
    struct row *row;
    size_t n;
    int rc = make_rows(v, &row, &n, err);

    if (rc == VT_OK)
        vt_buf_printf(b, "%9s %8s %11s %11s %29s %26s\n", "in flight", "requests",
                      "prompt", "output", "TTFT p50, p90, p99 (ms)",
                      "ITL p50, p90, p99 (ms)");
    for (struct row *r = row; rc == VT_OK && r < row + n; r++) {
        const struct range range[] = {r->prompt, r->output};
        char text[32] = "all";

        if (r->load > 0)
            snprintf(text, sizeof(text), "%u", r->load);
        vt_buf_printf(b, "%9s %8zu", text, r->n);
        for (size_t i = 0; i < VT_COUNT(range); i++) {
            snprintf(text, sizeof(text), range[i].lo == range[i].hi ? "%u" : "%u-%u",
                     range[i].lo, range[i].hi);
            vt_buf_printf(b, " %11s", text);
        }
        for (int i = 0; i < SPREAD; i++)
            vt_buf_printf(b, " %9.3f", r->ttft[i]);
        for (int i = 0; i < SPREAD && r->n_gaps > 0; i++)
            vt_buf_printf(b, " %8.3f", r->itl[i]);
        vt_buf_char(b, '\n');
    }
    free(row);
    return rc;
}

static void json_row(struct vt_jw *j, const char *key, const struct row *r)
{
    const uint32_t prompt[] = {r->prompt.lo, r->prompt.hi};
    const uint32_t output[] = {r->output.lo, r->output.hi};

    vt_jw_row(j, key);
    vt_jw_u64(j, "concurrency", r->load);
    vt_jw_u64(j, "requests", r->n);
    vt_jw_u32_list(j, "prompt_tokens", prompt, 2);
    vt_jw_u32_list(j, "output_tokens", output, 2);
    spread_json(j, "ttft_ms", r->ttft);
    spread_json(j, "itl_ms", r->itl);
    vt_jw_end(j);
}

int vt_load_json(struct vt_buf *b, const struct vt_view *v, const char *source,
                 struct vt_err *err)
{
    struct vt_jw j;
    struct row *row;
    size_t n;
    int rc = make_rows(v, &row, &n, err);

    if (rc == VT_OK) {
        vt_jw_init(&j, b, &vt_json_pretty);
        vt_jw_map(&j, NULL);
        vt_jw_str(&j, "source", source);
        vt_jw_list(&j, "by_concurrency");
        for (size_t i = 0; i + 1 < n; i++)
            json_row(&j, NULL, &row[i]);
        vt_jw_end(&j);
        json_row(&j, "all", &row[n - 1]);
        vt_jw_end(&j);
        vt_buf_char(b, '\n');
    }
    free(row);
    return rc;
}
