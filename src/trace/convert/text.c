/* text.c - text and numbers that several converters write and read. */
#include "trace/convert/convert.h"

/* ---- writing ---------------------------------------------------------- */

int convert_write_file(const struct vt_records *r, const char *path, const char *head,
                       convert_put *put, void *user, struct vt_err *err)
{
    struct vt_buf b = {0};
    struct vt_out *o;
    int rc = vt_out_open(&o, path, err);

    if (rc != VT_OK)
        return rc;
    vt_buf_str(&b, head);
    for (size_t i = 0; i <= r->n && rc == VT_OK; i++) {
        if (i < r->n)
            put(&b, r, i, user);
        rc = vt_out_flush(o, &b, i == r->n, err);
    }
    vt_buf_free(&b);
    return vt_out_end(o, rc, err);
}

int convert_need_arrivals(const struct vt_records *r, const char *which,
                          struct vt_err *err)
{
    for (size_t i = 0; i < r->n; i++)
        if (r->rec[i].arrival_ns < 0)
            return vt_fail(err, VT_EINPUT, "request '%s' has no arrival time%s",
                           r->rec[i].id, which);
    return VT_OK;
}

/* ---- reading ---------------------------------------------------------- */

bool convert_number(const struct vt_node *n, double *out)
{
    return vt_node_f64(n, out) && *out >= -TRACE_MAX_MS && *out <= TRACE_MAX_MS;
}

bool convert_seconds(const struct vt_node *n, vt_ns *out)
{
    double s;

    if (!convert_number(n, &s) || s < 0 || s > 4e9)
        return false;
    *out = vt_ns_from_ms(s * 1e3);
    return true;
}

int convert_mean(struct vt_records *r, struct vt_record *q, vt_ns mean, uint32_t n,
                 struct vt_err *err)
{
    vt_ns *gap;

    if (n == 0)
        return VT_OK;
    if (n > RECORDS_MAX_SUMMARY)
        return vt_fail(err, VT_EINPUT, "more than %d tokens", RECORDS_MAX_SUMMARY);
    gap = vt_arena_alloc(&r->arena, sizeof(*gap));
    if (!gap)
        return vt_nomem(err);
    *gap = mean;
    q->gap = gap;
    q->n_gaps = n;
    q->by_mean = true;
    return VT_OK;
}

int convert_from_first(struct vt_records *r, struct vt_err *err)
{
    vt_ns first = VT_NEVER;

    for (size_t i = 0; i < r->n; i++)
        if (r->rec[i].arrival_ns != -1 && r->rec[i].arrival_ns < first)
            first = r->rec[i].arrival_ns;
    for (size_t i = 0; i < r->n; i++)
        if (r->rec[i].arrival_ns != -1)
            r->rec[i].arrival_ns -= first;
    return records_finish(r, err);
}
