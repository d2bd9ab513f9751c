/* text.c - text and numbers that several converters write and read. */
#include <unistd.h>

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

/* Frontends send a chunk without a token before the first or after the last one, at
 * nearly the same time: of a chat the role, of others why it ended. Then it is known
 * which chunk is none, and what the others say is exact. */
static bool leave_one_out(struct vt_record *q, const vt_ns **gap, uint32_t *n)
{
    vt_ns first = (*gap)[0], last = (*gap)[*n - 1], sum = 0;

    for (uint32_t i = 0; i < *n && sum < INT64_MAX / 2; i++)
        sum += (*gap)[i];
    if ((first < last ? first : last) > sum / *n / 10)
        return false;
    if (first < last) {
        q->ttft_ns += first;
        (*gap)++;
    }
    --*n;
    return true;
}

int convert_gaps(struct vt_records *r, struct vt_record *q, const vt_ns *gap,
                 uint32_t n, struct vt_err *err)
{
    vt_ns sum = 0;

    if (n < q->output_tokens ||
        (n == q->output_tokens && n > 1 && leave_one_out(q, &gap, &n))) {
        q->gap = gap;
        q->n_gaps = n;
        return VT_OK;
    }
    for (uint32_t i = 0; i < n && sum < INT64_MAX / 2; i++)
        sum += gap[i]; /* a longer request is refused later */
    if (q->output_tokens < 2)
        return VT_OK;
    return convert_mean(r, q, sum / (q->output_tokens - 1), q->output_tokens - 1, err);
}

int convert_part(struct vt_records *r, const char *name, uint32_t concurrency,
                 struct vt_err *err)
{
    struct vt_record_part *more =
        vt_arena_alloc(&r->arena, ((size_t)r->n_parts + 1) * sizeof(*more));

    if (!more)
        return vt_nomem(err);
    if (r->n_parts > 0) /* loads are few */
        memcpy(more, r->part, r->n_parts * sizeof(*more));
    r->part = more;
    more[r->n_parts] = (struct vt_record_part){
        .arrivals = concurrency > 0 ? VT_ARRIVALS_CLOSED : VT_ARRIVALS_RECORDED,
        .concurrency = concurrency,
    };
    return vt_arena_text(&r->arena, name, &more[r->n_parts++].name, err);
}

int convert_beside(struct vt_arena *a, const char *path, const char *name,
                   const struct vt_node **out, struct vt_err *err)
{
    const char *slash = strrchr(path, '/');
    struct vt_buf file = {0};
    int rc = VT_OK;

    *out = NULL;
    if (slash)
        vt_buf_add(&file, path, (size_t)(slash + 1 - path));
    vt_buf_str(&file, name);
    if (file.failed)
        rc = vt_nomem(err);
    else if (access(file.data, R_OK) == 0)
        rc = vt_tree_load(a, file.data, out, err);
    vt_buf_free(&file);
    return rc;
}

int convert_need_times(const struct vt_records *r, size_t without, const char *what,
                       struct vt_err *err)
{
    if (r->n > 0 || without == 0)
        return VT_OK;
    return vt_fail(err, VT_EINPUT, "no request has a %s: the run did not stream", what);
}

bool convert_has_hole(const struct vt_node *gaps)
{
    for (uint32_t i = 0; gaps && gaps->kind == VT_LIST && i < gaps->n; i++)
        if (gaps->u.item[i].kind == VT_NULL)
            return true;
    return false;
}

int convert_from_first(struct vt_records *r, struct vt_err *err)
{
    vt_ns first = VT_NEVER;

    if (r->n == 0 && r->n_skipped > 0)
        return vt_fail(err, VT_EINPUT,
                       "all %zu requests failed, were aborted or gave no token",
                       r->n_skipped);
    for (size_t i = 0; i < r->n; i++)
        if (r->rec[i].arrival_ns != -1 && r->rec[i].arrival_ns < first)
            first = r->rec[i].arrival_ns;
    for (size_t i = 0; i < r->n; i++)
        if (r->rec[i].arrival_ns != -1)
            r->rec[i].arrival_ns -= first;
    return records_finish(r, err);
}
