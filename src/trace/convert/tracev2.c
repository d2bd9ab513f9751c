/* tracev2.c - BLIS TraceV2 written: a YAML header, a CSV of requests and, where
 * gaps are known, a CSV of chunk times. All times are whole microseconds. */
#include <inttypes.h>

#include "trace/convert/tracev2.h"

int tracev2_path(const char *given, const char *tail, struct vt_buf *out,
                 struct vt_err *err)
{
    static const char *const tails[] = {".itl.csv", ".yaml", ".yml", ".csv"};
    size_t len = strlen(given);

    for (size_t i = 0; i < VT_COUNT(tails); i++) {
        size_t k = strlen(tails[i]);

        if (len > k && strcmp(given + len - k, tails[i]) == 0) {
            len -= k;
            break;
        }
    }
    vt_buf_clear(out);
    vt_buf_add(out, given, len);
    vt_buf_str(out, tail);
    return out->failed ? vt_nomem(err) : VT_OK;
}

/* ---- header ----------------------------------------------------------- */

static void put_header(struct vt_buf *b, const struct vt_records *r)
{
    const struct vt_meta *m = &r->meta;
    const struct {
        const char *key;
        uint32_t v;
    } row[] = {
        {"tensor_parallel", m->tp},
        {"max_num_seqs", m->max_num_seqs},
        {"block_size", m->block_size},
        {"max_model_len", m->max_model_len},
    };

    vt_buf_str(b, "trace_version: 3\ntime_unit: microseconds\n");
    vt_buf_printf(b, "mode: %s\nwarm_up_requests: 0\n",
                  r->rec[0].ttft_ns >= 0 ? "real" : "generated");
    vt_buf_str(b, "server:\n  type: vllm\n");
    if (m->model) {
        vt_buf_str(b, "  model: ");
        vt_buf_json_str(b, m->model, strlen(m->model));
        vt_buf_char(b, '\n');
    }
    for (size_t i = 0; i < VT_COUNT(row); i++)
        if (row[i].v > 0)
            vt_buf_printf(b, "  %s: %u\n", row[i].key, row[i].v);
}

/* ---- rows ------------------------------------------------------------- */

static int64_t us_of(vt_ns t)
{
    return (t + VT_US / 2) / VT_US;
}

static void put_row(struct vt_buf *b, const struct vt_records *r, size_t i, void *user)
{
    const struct convert_prefix *prefix = (const struct convert_prefix *)user + i;
    const struct vt_record *q = &r->rec[i];
    vt_ns first = q->arrival_ns + q->ttft_ns;
    bool measured = q->ttft_ns >= 0;

    vt_buf_csv(b, q->id, false);
    vt_buf_str(b, ",,,,"); /* client, tenant, SLO class */
    if (q->session)
        vt_buf_csv(b, q->session, false);
    vt_buf_printf(b, ",%u,", q->turn);
    if (prefix->group)
        vt_buf_csv(b, prefix->group, false);
    vt_buf_printf(b, ",%u,true,%u,%u,0,0,0,0,0,", prefix->tokens,
                  q->prompt_tokens - prefix->tokens, q->output_tokens);
    if (r->meta.model)
        vt_buf_csv(b, r->meta.model, false);
    vt_buf_printf(b, ",0,%u", prefix->group ? 0 : q->prompt_tokens);
    vt_buf_printf(b, ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%u",
                  us_of(q->arrival_ns), us_of(q->arrival_ns),
                  measured ? us_of(first) : 0,
                  measured ? us_of(first + vt_record_decode_ns(q)) : 0,
                  measured ? q->n_gaps + 1 : 0);
    vt_buf_printf(b, ",ok,,%s\n", q->finish_reason ? q->finish_reason : "");
}

static void put_chunks(struct vt_buf *b, const struct vt_records *r, size_t i,
                       void *user)
{
    const struct vt_record *q = &r->rec[i];
    vt_ns at = q->arrival_ns + q->ttft_ns;

    (void)user;
    if (q->ttft_ns < 0 || q->by_mean)
        return;
    for (uint32_t k = 0; k <= q->n_gaps; k++) {
        vt_buf_csv(b, q->id, false);
        vt_buf_printf(b, ",%u,%" PRId64 "\n", k, us_of(at));
        if (k < q->n_gaps)
            at += q->gap[k];
    }
}

/* ---- files ------------------------------------------------------------ */

int convert_write_tracev2(const struct vt_records *r, const char *path,
                          struct vt_converted *done, struct vt_err *err)
{
    struct vt_buf name = {0}, header = {0};
    struct convert_prefix *prefix;
    bool lost, knows_gaps = false;
    int rc;

    if ((rc = convert_need_arrivals(r, ", which TraceV2 needs", err)) ||
        (rc = convert_prefixes(r, &prefix, &lost, err)))
        return rc;
    if (lost)
        snprintf(done->note, sizeof(done->note),
                 "TraceV2 has no content shared beyond each prompt's first segment");
    for (size_t i = 0; i < r->n; i++)
        knows_gaps |= r->rec[i].ttft_ns >= 0 && !r->rec[i].by_mean;
    put_header(&header, r);
    if (!(rc = tracev2_path(path, ".yaml", &name, err)) &&
        !(rc = vt_write_file(name.data, &header, err)) &&
        !(rc = tracev2_path(path, ".csv", &name, err)) &&
        !(rc = convert_write_file(r, name.data, TRACEV2_HEADER "\n", put_row, prefix,
                                  err)) &&
        knows_gaps && !(rc = tracev2_path(path, ".itl.csv", &name, err)))
        rc = convert_write_file(r, name.data, "request_id,chunk_index,timestamp_us\n",
                                put_chunks, NULL, err);
    vt_buf_free(&header);
    vt_buf_free(&name);
    free(prefix);
    return rc;
}
