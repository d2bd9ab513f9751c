/* view.c - what captures and models say of the same requests, in one shape. */
#include <assert.h>

#include "report/stats.h"

void vt_view_free(struct vt_view *v)
{
    free(v->req);
    free(v->gap);
    free(v->step);
    *v = (struct vt_view){0};
}

int vt_view_reserve(struct vt_view *v, size_t n, struct vt_err *err)
{
    int rc = vt_grow(&v->req, &v->cap, n, sizeof(*v->req), err);

    if (rc != VT_OK)
        return rc;
    if (n > v->n)
        memset(&v->req[v->n], 0, (n - v->n) * sizeof(*v->req));
    v->n = n;
    return VT_OK;
}

/* ---- requests --------------------------------------------------------- */

static int add_record(struct vt_view *v, size_t i, const struct vt_record *q,
                      struct vt_err *err)
{
    int rc =
        vt_grow(&v->gap, &v->cap_gaps, v->n_gaps + q->n_gaps, sizeof(*v->gap), err);

    if (rc != VT_OK)
        return rc;
    v->req[i] = (struct vt_seen){
        .arrival_ns = q->arrival_ns < 0 ? 0 : q->arrival_ns,
        .ttft_ns = q->ttft_ns,
        .decode_ns = vt_record_decode_ns(q),
        .first_gap = v->n_gaps,
        .n_gaps = q->n_gaps,
        .prompt_tokens = q->prompt_tokens,
        .cached_tokens = q->cached_tokens,
        .output_tokens = q->output_tokens,
        .concurrency = q->concurrency > 0 ? q->concurrency : 1,
    };
    for (uint32_t k = 0; k < q->n_gaps; k++)
        v->gap[v->n_gaps++] = vt_record_gap(q, k);
    return VT_OK;
}

int vt_view_records(struct vt_view *v, const struct vt_records *r, struct vt_err *err)
{
    int rc = vt_view_reserve(v, r->n, err);

    for (size_t i = 0; i < r->n && rc == VT_OK; i++) {
        if (r->rec[i].ttft_ns < 0)
            return vt_fail(err, VT_EINPUT, "%s: request '%s' has no measured times",
                           r->source, r->rec[i].id);
        rc = add_record(v, i, &r->rec[i], err);
    }
    return rc;
}

int vt_view_served(struct vt_view *v, size_t index, const struct vt_served *s,
                   struct vt_err *err)
{
    struct vt_record q = vt_record_of(s);

    assert(index < v->n);
    return add_record(v, index, &q, err);
}

int vt_view_step(struct vt_view *v, const struct vt_step_line *s, struct vt_err *err)
{
    vt_ns from =
        v->n_steps > 0 && v->last_out_ns > s->sched_ns ? v->last_out_ns : s->sched_ns;
    struct vt_seen_step *to;
    int rc = vt_grow(&v->step, &v->cap_steps, v->n_steps + 1, sizeof(*v->step), err);

    if (rc != VT_OK)
        return rc;
    to = &v->step[v->n_steps++];
    *to = (struct vt_seen_step){
        .out_ns = s->out_ns,
        .took_ns = s->out_ns > from ? s->out_ns - from : 0,
        .decodes = s->decodes,
        .prefills = s->n_prefill,
        .running = s->running,
        .waiting = s->waiting,
        .kv_usage = s->kv_usage,
    };
    for (uint32_t i = 0; i < s->n_prefill; i++)
        to->prefill_tokens += s->prefill[i].tokens;
    v->last_out_ns = s->out_ns;
    return VT_OK;
}

int vt_view_steps(struct vt_view *v, const struct vt_steps *s, struct vt_err *err)
{
    int rc = vt_view_reserve(v, 1, err);

    v->only_samples = true;
    for (size_t i = 1; i < s->n && rc == VT_OK; i++) {
        vt_ns gap = s->step[i].out_ns - s->step[i - 1].out_ns;
        uint32_t n = gap > 0 ? s->step[i].decodes : 0;

        rc = vt_grow(&v->gap, &v->cap_gaps, v->n_gaps + n, sizeof(*v->gap), err);
        for (uint32_t k = 0; k < n && rc == VT_OK; k++)
            v->gap[v->n_gaps++] = gap;
    }
    if (rc == VT_OK) {
        v->req[0].ttft_ns = -1;
        v->req[0].n_gaps = (uint32_t)v->n_gaps;
    }
    return rc;
}

/* ---- samples ---------------------------------------------------------- */

const char *const spread_part[SPREAD] = {"p50", "p90", "p99"};
const struct metric_text metric_text[VT_N_METRICS] = {
    [VT_TTFT] = {"TTFT", "ttft_ms", "time to first token"},
    [VT_ITL] = {"ITL", "itl_ms", "gap between tokens"},
    [VT_DECODE] = {"decode", "decode_ms", "first token to last of a request"},
};

size_t view_samples_of(const struct vt_view *v, const struct vt_seen *q,
                       enum vt_metric m, double *out)
{
    if (m == VT_ITL) {
        for (uint32_t k = 0; k < q->n_gaps; k++)
            out[k] = (double)v->gap[q->first_gap + k] / 1e6;
        return q->n_gaps;
    }
    if ((m == VT_DECODE && (q->n_gaps == 0 || v->only_samples)) || q->ttft_ns < 0)
        return 0;
    out[0] = (double)(m == VT_TTFT ? q->ttft_ns : q->decode_ns) / 1e6;
    return 1;
}

int vt_view_samples(const struct vt_view *v, enum vt_metric m, double **out, size_t *n,
                    struct vt_err *err)
{
    *n = 0;
    *out = malloc(((m == VT_ITL ? v->n_gaps : v->n) + 1) * sizeof(**out));
    if (!*out)
        return vt_nomem(err);
    for (size_t i = 0; i < v->n; i++)
        *n += view_samples_of(v, &v->req[i], m, *out + *n);
    vt_sort_f64(*out, *n);
    return VT_OK;
}

void spread_of(double *ms, size_t n, double out[SPREAD])
{
    vt_sort_f64(ms, n);
    out[0] = vt_quantile(ms, n, 50);
    out[1] = vt_quantile(ms, n, 90);
    out[2] = vt_quantile(ms, n, 99);
}

void spread_json(struct vt_jw *j, const char *key, const double spread[SPREAD])
{
    vt_jw_row(j, key);
    vt_jw_f64(j, "p50", spread[0]);
    vt_jw_f64(j, "p90", spread[1]);
    vt_jw_f64(j, "p99", spread[2]);
    vt_jw_end(j);
}
