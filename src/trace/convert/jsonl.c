/* jsonl.c - records as trace.jsonl: ours, with everything, in arrival order; and
 * vllm-vcr's, with its fields only, in the order in which requests ended. */
#include "trace/convert/convert.h"

enum { DEFAULT_BLOCK_SIZE = 16 };

static void put_meta(struct vt_buf *b, const struct vt_records *r, const char *source)
{
    if (r->meta_json) /* with keys that only its recorder knows */
        vt_buf_printf(b, "{\"meta\":%s}\n", r->meta_json);
    else
        vt_trace_write_meta(b, NULL, &r->meta, source);
}

int convert_write_trace(const struct vt_records *r, const char *path,
                        struct vt_converted *done, struct vt_err *err)
{
    struct vt_buf b = {0};
    struct vt_out *o;
    int rc = vt_out_open(&o, path, err);

    if (rc != VT_OK)
        return rc;
    put_meta(&b, r, done->from);
    for (size_t i = 0; i < r->n && rc == VT_OK; i++) {
        vt_record_write(&b, &r->rec[i], NULL);
        rc = convert_flush(o, &b, false, err);
    }
    return convert_close(o, &b, rc, err);
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

static int end_order(const struct vt_records *r, struct trace_place **out,
                     struct vt_err *err)
{
    struct trace_place *e = malloc(r->n * sizeof(*e));

    *out = e;
    if (!e)
        return vt_nomem(err);
    for (size_t i = 0; i < r->n; i++) {
        const struct vt_record *q = &r->rec[i];

        e[i] = (struct trace_place){q->arrival_ns + q->ttft_ns + vt_record_decode_ns(q),
                                    i};
        if (q->arrival_ns < 0)
            e[i].at = 0; /* as they stand */
    }
    trace_sort_places(e, r->n);
    return VT_OK;
}

int convert_write_vcr(const struct vt_records *r, const char *path,
                      struct vt_converted *done, struct vt_err *err)
{
    uint32_t block_size = r->meta.block_size ? r->meta.block_size : DEFAULT_BLOCK_SIZE;
    struct trace_place *order = NULL;
    struct vt_buf b = {0};
    struct vt_out *o;
    int rc = check_measured(r, err);

    if (rc == VT_OK)
        rc = end_order(r, &order, err);
    if (rc == VT_OK)
        rc = vt_out_open(&o, path, err);
    if (rc != VT_OK) {
        free(order);
        return rc;
    }
    put_meta(&b, r, done->from);
    for (size_t i = 0; i < r->n && rc == VT_OK; i++) {
        jsonl_write_vcr(&b, &r->rec[order[i].index], block_size);
        rc = convert_flush(o, &b, false, err);
    }
    free(order);
    return convert_close(o, &b, rc, err);
}
