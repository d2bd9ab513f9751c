/* simulators.c - the request lists of other simulators: Vidur's CSV and
 * LLMServingSim's JSONL. Neither has measured times. */
#include "trace/convert/convert.h"

static int check_arrivals(const struct vt_records *r, struct vt_err *err)
{
    for (size_t i = 0; i < r->n; i++)
        if (r->rec[i].arrival_ns < 0)
            return vt_fail(err, VT_EINPUT, "request '%s' has no arrival time",
                           r->rec[i].id);
    return VT_OK;
}

/* Seconds since the earliest. */
static void put_vidur(struct vt_buf *b, const struct vt_record *q, vt_ns first)
{
    vt_buf_py_f64(b, (double)(q->arrival_ns - first) / 1e9);
    vt_buf_printf(b, ",%u,%u\n", q->prompt_tokens, q->output_tokens);
}

/* It wants tokens, not only how many: 1, 2, 3, ... */
static void put_llmservingsim(struct vt_buf *b, const struct vt_record *q, vt_ns first)
{
    vt_buf_printf(
        b,
        "{\"input_toks\": %u, \"output_toks\": %u, \"arrival_time_ns\": %lld, "
        "\"input_tok_ids\": [",
        q->prompt_tokens, q->output_tokens, (long long)(q->arrival_ns - first));
    for (uint32_t i = 1; i <= q->prompt_tokens; i++) {
        vt_buf_str(b, i > 1 ? ", " : "");
        vt_buf_u64(b, i);
    }
    vt_buf_str(b, "]}\n");
}

/* Records are by arrival already. */
static int write_rows(const struct vt_records *r, const char *path, const char *head,
                      void (*put)(struct vt_buf *b, const struct vt_record *q,
                                  vt_ns first),
                      struct vt_converted *done, struct vt_err *err)
{
    struct vt_buf b = {0};
    struct vt_out *o;
    int rc = check_arrivals(r, err);

    if (rc == VT_OK)
        rc = vt_out_open(&o, path, err);
    if (rc != VT_OK)
        return rc;
    snprintf(done->note, sizeof(done->note),
             "a request list has no measured times, nor shared content");
    vt_buf_str(&b, head);
    for (size_t i = 0; i < r->n && rc == VT_OK; i++) {
        put(&b, &r->rec[i], r->rec[0].arrival_ns);
        rc = convert_flush(o, &b, false, err);
    }
    return convert_close(o, &b, rc, err);
}

int convert_write_vidur(const struct vt_records *r, const char *path,
                        struct vt_converted *done, struct vt_err *err)
{
    return write_rows(r, path, "arrived_at,num_prefill_tokens,num_decode_tokens\n",
                      put_vidur, done, err);
}

int convert_write_llmservingsim(const struct vt_records *r, const char *path,
                                struct vt_converted *done, struct vt_err *err)
{
    return write_rows(r, path, "", put_llmservingsim, done, err);
}
