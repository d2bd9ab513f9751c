/* simulators.c - the request lists of other simulators: Vidur's CSV and
 * LLMServingSim's JSONL. Neither has measured times. */
#include "trace/convert/convert.h"

/* Seconds since the earliest: records are by arrival already. */
static void put_vidur(struct vt_buf *b, const struct vt_records *r, size_t i,
                      void *user)
{
    const struct vt_record *q = &r->rec[i];

    (void)user;
    vt_buf_py_f64(b, (double)(q->arrival_ns - r->rec[0].arrival_ns) / 1e9);
    vt_buf_printf(b, ",%u,%u\n", q->prompt_tokens, q->output_tokens);
}

/* It wants tokens, not only how many: 1, 2, 3, ... */
static void put_llmservingsim(struct vt_buf *b, const struct vt_records *r, size_t i,
                              void *user)
{
    const struct vt_record *q = &r->rec[i];
    struct vt_jw j;

    (void)user;
    vt_jw_init(&j, b, &vt_json_spaced);
    vt_jw_map(&j, NULL);
    vt_jw_u64(&j, "input_toks", q->prompt_tokens);
    vt_jw_u64(&j, "output_toks", q->output_tokens);
    vt_jw_i64(&j, "arrival_time_ns", q->arrival_ns - r->rec[0].arrival_ns);
    vt_jw_list(&j, "input_tok_ids");
    for (uint32_t k = 1; k <= q->prompt_tokens; k++)
        vt_jw_u64(&j, NULL, k);
    vt_jw_end(&j);
    vt_jw_end(&j);
    vt_buf_char(b, '\n');
}

static int write_list(const struct vt_records *r, const char *path, const char *head,
                      convert_put *put, struct vt_converted *done, struct vt_err *err)
{
    int rc = convert_need_arrivals(r, "", err);

    snprintf(done->note, sizeof(done->note),
             "a request list has no measured times, nor shared content");
    return rc ? rc : convert_write_file(r, path, head, put, NULL, err);
}

int convert_write_vidur(const struct vt_records *r, const char *path,
                        struct vt_converted *done, struct vt_err *err)
{
    return write_list(r, path, "arrived_at,num_prefill_tokens,num_decode_tokens\n",
                      put_vidur, done, err);
}

int convert_write_llmservingsim(const struct vt_records *r, const char *path,
                                struct vt_converted *done, struct vt_err *err)
{
    return write_list(r, path, "", put_llmservingsim, done, err);
}
