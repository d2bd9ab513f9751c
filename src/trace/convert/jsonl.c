/* jsonl.c - records as trace.jsonl: ours, with everything, in arrival order; and
 * vllm-vcr's, with its fields only, in the order in which requests ended. */
#include "trace/convert/convert.h"

enum { DEFAULT_BLOCK_SIZE = 16 };

static int write_rows(const struct vt_records *r, const char *path, const char *source,
                      convert_put *put, void *user, struct vt_err *err)
{
    struct vt_workload like = {0};
    struct vt_buf meta = {0};
    int rc;

    if (r->n_parts == 1) {
        like.arrivals = r->part[0].arrivals;
        like.concurrency = r->part[0].concurrency;
    }
    if (r->meta_json) /* with keys that only its recorder knows */
        vt_buf_printf(&meta, "{\"meta\":%s}\n", r->meta_json);
    else
        vt_trace_write_meta(&meta, r->n_parts == 1 ? &like : NULL, &r->meta, source);
    rc = meta.failed ? vt_nomem(err)
                     : convert_write_file(r, path, meta.data, put, user, err);
    vt_buf_free(&meta);
    return rc;
}

static void put_ours(struct vt_buf *b, const struct vt_records *r, size_t i, void *user)
{
    (void)user;
    vt_record_write(b, &r->rec[i], NULL);
}

int convert_write_trace(const struct vt_records *r, const char *path,
                        struct vt_converted *done, struct vt_err *err)
{
    if (r->n_parts > 1)
        snprintf(
            done->note, sizeof(done->note),
            "%u loads in one trace: requests arrive as recorded, closed loops too; "
            "`vtwin fit` reads the report itself and keeps them apart",
            r->n_parts);
    return write_rows(r, path, done->from, put_ours, NULL, err);
}

/* ---- vllm-vcr's ------------------------------------------------------- */

static int check_measured(const struct vt_records *r, struct vt_err *err)
{
    for (size_t i = 0; i < r->n; i++) {
        const struct vt_record *q = &r->rec[i];

        if (q->ttft_ns < 0)
            return vt_fail(err, VT_EINPUT,
                           "request '%s' has no measured times, which a vllm-vcr trace "
                           "needs",
                           q->id);
        if (q->output_tokens > 1 && q->n_gaps == 0)
            return vt_fail(err, VT_EINPUT,
                           "request '%s' has %u output tokens but no gaps, which a "
                           "vllm-vcr trace needs",
                           q->id, q->output_tokens);
    }
    return VT_OK;
}

static void put_theirs(struct vt_buf *b, const struct vt_records *r, size_t i,
                       void *user)
{
    const struct trace_place *order = user;

    jsonl_write_vcr(b, &r->rec[order[i].index],
                    r->meta.block_size ? r->meta.block_size : DEFAULT_BLOCK_SIZE);
}

int convert_write_vcr(const struct vt_records *r, const char *path,
                      struct vt_converted *done, struct vt_err *err)
{
    struct trace_place *order;
    int rc = check_measured(r, err);

    if (rc != VT_OK)
        return rc;
    order = malloc(r->n * sizeof(*order));
    if (!order)
        return vt_nomem(err);
    for (size_t i = 0; i < r->n; i++) {
        const struct vt_record *q = &r->rec[i];
        vt_ns end_ns = q->arrival_ns + q->ttft_ns + vt_record_decode_ns(q);

        /* without arrivals, as they stand */
        order[i] = (struct trace_place){q->arrival_ns < 0 ? 0 : end_ns, i};
    }
    trace_sort_places(order, r->n);
    rc = write_rows(r, path, done->from, put_theirs, order, err);
    free(order);
    return rc;
}
