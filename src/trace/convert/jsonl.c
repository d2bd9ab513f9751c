/* jsonl.c - records as trace.jsonl: ours, with everything, in arrival order;
 * and vllm-vcr's, with its fields only, in the order in which requests ended. */
#include "trace/convert/convert.h"

enum { DEFAULT_BLOCK_SIZE = 16 };

/* ---- meta ------------------------------------------------------------- */

static void put_stated(struct vt_buf *b, const char *key, uint32_t v)
{
    if (v > 0)
        convert_u64(b, key, v);
}

static void put_meta(struct vt_buf *b, const struct vt_records *r, const char *source)
{
    const struct vt_meta *m = &r->meta;

    if (r->meta_json) { /* with keys that only its recorder knows */
        vt_buf_printf(b, "{\"meta\":%s}\n", r->meta_json);
        return;
    }
    vt_buf_str(b, "{\"meta\":{");
    if (m->gpu)
        convert_str(b, "gpu", m->gpu);
    put_stated(b, "tp", m->tp);
    if (m->vllm_version)
        convert_str(b, "vllm_version", m->vllm_version);
    if (m->model)
        convert_str(b, "model", m->model);
    convert_str(b, "source", source);
    put_stated(b, "num_gpu_blocks", m->num_gpu_blocks);
    put_stated(b, "block_size", m->block_size);
    put_stated(b, "max_num_seqs", m->max_num_seqs);
    put_stated(b, "max_num_batched_tokens", m->max_num_batched_tokens);
    put_stated(b, "max_model_len", m->max_model_len);
    vt_buf_str(b, "}}\n");
}

/* ---- what both say ---------------------------------------------------- */

static void put_u32_list(struct vt_buf *b, const char *key, const uint32_t *v,
                         uint32_t n)
{
    convert_key(b, key);
    for (uint32_t i = 0; i < n; i++) {
        vt_buf_char(b, i > 0 ? ',' : '[');
        vt_buf_u64(b, v[i]);
    }
    vt_buf_str(b, n > 0 ? "]" : "[]");
}

static void put_summary(struct vt_buf *b, const struct vt_record *q)
{
    convert_key(b, "itl_summary");
    vt_buf_char(b, '{');
    convert_ms(b, "mean_ms", q->gap[0]);
    convert_u64(b, "count", q->n_gaps);
    vt_buf_char(b, '}');
}

static void put_timings(struct vt_buf *b, const struct vt_record *q)
{
    if (q->ttft_ns < 0)
        return;
    convert_ms(b, "ttft_ms", q->ttft_ns);
    if (q->by_mean) {
        put_summary(b, q);
        return;
    }
    convert_key(b, "itl_ms");
    for (uint32_t i = 0; i < q->n_gaps; i++) {
        vt_buf_char(b, i > 0 ? ',' : '[');
        vt_buf_ms(b, q->gap[i]);
    }
    vt_buf_str(b, q->n_gaps > 0 ? "]" : "[]");
    if (q->gap_tokens)
        put_u32_list(b, "itl_tokens", q->gap_tokens, q->n_gaps);
}

static void put_ctx(struct vt_buf *b, const struct vt_record *q)
{
    if (!q->gap_running || !q->gap_prefill)
        return;
    convert_key(b, "itl_ctx");
    vt_buf_char(b, '{');
    put_u32_list(b, "num_running", q->gap_running, q->n_gaps);
    put_u32_list(b, "prefill_tokens", q->gap_prefill, q->n_gaps);
    vt_buf_char(b, '}');
}

static void put_hashes(struct vt_buf *b, const uint64_t *v, uint32_t n)
{
    convert_key(b, "block_hashes");
    for (uint32_t i = 0; i < n; i++) {
        vt_buf_char(b, i > 0 ? ',' : '[');
        vt_buf_u64(b, v[i]);
    }
    vt_buf_str(b, n > 0 ? "]" : "[]");
}

static void put_end(struct vt_buf *b, const struct vt_record *q)
{
    if (q->token_id)
        put_u32_list(b, "output_token_ids", q->token_id, q->output_tokens);
    if (q->finish_reason)
        convert_str(b, "finish_reason", q->finish_reason);
}

/* ---- ours ------------------------------------------------------------- */

static void put_segments(struct vt_buf *b, const struct vt_record *q)
{
    convert_key(b, "segments");
    for (uint32_t i = 0; i < q->n_segments; i++) {
        const struct vt_record_segment *s = &q->segment[i];

        vt_buf_str(b, i > 0 ? ",[" : "[[");
        vt_buf_json_str(b, s->name, strlen(s->name));
        vt_buf_printf(b, s->offset ? ",%u,%u]" : ",%u]", s->tokens, s->offset);
    }
    vt_buf_char(b, ']');
}

static void put_request(struct vt_buf *b, const struct vt_record *q)
{
    if (q->session) {
        convert_str(b, "session", q->session);
        convert_u64(b, "turn", q->turn);
        if (q->think_ns)
            convert_ms(b, "think_ms", q->think_ns);
    }
    if (q->priority) {
        convert_key(b, "priority");
        vt_buf_i64(b, q->priority);
    }
    if (q->max_tokens)
        convert_u64(b, "max_tokens", q->max_tokens);
}

void vt_record_write(struct vt_buf *b, const struct vt_record *q, const char *more)
{
    vt_buf_char(b, '{');
    convert_str(b, "id", q->id);
    if (q->arrival_ns >= 0)
        convert_ms(b, "arrival_ms", q->arrival_ns);
    convert_u64(b, "prompt_tokens", q->prompt_tokens);
    convert_u64(b, "cached_tokens", q->cached_tokens);
    convert_u64(b, "output_tokens", q->output_tokens);
    put_timings(b, q);
    if (q->concurrency)
        convert_u64(b, "concurrency", q->concurrency);
    put_ctx(b, q);
    if (q->n_segments > 0)
        put_segments(b, q);
    else if (q->n_block_hashes > 0)
        put_hashes(b, q->block_hash, q->n_block_hashes);
    put_request(b, q);
    put_end(b, q);
    if (more)
        vt_buf_str(b, more);
    vt_buf_str(b, "}\n");
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

/* FNV-1a over the hash before and the block's tokens, as vllm-vcr chains them. Tokens
 * that are known by content only get numbers that stand for it. */
#define FNV_BASIS UINT64_C(0xcbf29ce484222325)
#define FNV_PRIME UINT64_C(0x100000001b3)

static uint64_t fnv_bytes(uint64_t h, uint64_t v, int n)
{
    for (int i = 0; i < n; i++)
        h = (h ^ (v >> (8 * i) & 255)) * FNV_PRIME;
    return h;
}

static void put_content(struct vt_buf *b, const struct vt_record *q,
                        uint32_t block_size)
{
    uint64_t prev = FNV_BASIS, h = fnv_bytes(FNV_BASIS, prev, 8);
    uint32_t filled = 0, blocks = 0;

    if (q->prompt_tokens < block_size)
        return;
    convert_key(b, "block_hashes");
    for (uint32_t i = 0; i < q->n_segments; i++) {
        const struct vt_record_segment *s = &q->segment[i];
        uint64_t content = vt_content_named(s->name, strlen(s->name));

        for (uint32_t k = 0; k < s->tokens; k++) {
            h = fnv_bytes(h, vt_hash2(content, (uint64_t)s->offset + k), 4);
            if (++filled < block_size)
                continue;
            vt_buf_char(b, blocks++ > 0 ? ',' : '[');
            vt_buf_u64(b, h);
            prev = h;
            h = fnv_bytes(FNV_BASIS, prev, 8);
            filled = 0;
        }
    }
    vt_buf_char(b, ']');
}

static void put_theirs(struct vt_buf *b, const struct vt_record *q, uint32_t block_size)
{
    vt_buf_char(b, '{');
    convert_u64(b, "prompt_tokens", q->prompt_tokens);
    convert_u64(b, "cached_tokens", q->cached_tokens);
    convert_u64(b, "output_tokens", q->output_tokens);
    put_timings(b, q);
    convert_u64(b, "concurrency", q->concurrency ? q->concurrency : 1);
    if (q->arrival_ns >= 0)
        convert_ms(b, "arrival_ms", q->arrival_ns);
    put_ctx(b, q);
    if (q->n_block_hashes > 0)
        put_hashes(b, q->block_hash, q->n_block_hashes);
    else if (q->n_segments > 0)
        put_content(b, q, block_size);
    put_end(b, q);
    vt_buf_str(b, "}\n");
}

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

struct ended {
    vt_ns at;
    size_t index;
};

static int by_end(const void *pa, const void *pb)
{
    const struct ended *a = pa, *b = pb;

    if (a->at != b->at)
        return a->at < b->at ? -1 : 1;
    return a->index < b->index ? -1 : a->index > b->index;
}

static int end_order(const struct vt_records *r, struct ended **out, struct vt_err *err)
{
    struct ended *e = malloc(r->n * sizeof(*e));

    *out = e;
    if (!e)
        return vt_nomem(err);
    for (size_t i = 0; i < r->n; i++) {
        const struct vt_record *q = &r->rec[i];

        e[i] = (struct ended){q->arrival_ns + q->ttft_ns + vt_record_decode_ns(q), i};
        if (q->arrival_ns < 0)
            e[i].at = 0; /* as they stand */
    }
    qsort(e, r->n, sizeof(*e), by_end);
    return VT_OK;
}

int convert_write_vcr(const struct vt_records *r, const char *path,
                      struct vt_converted *done, struct vt_err *err)
{
    uint32_t block_size = r->meta.block_size ? r->meta.block_size : DEFAULT_BLOCK_SIZE;
    struct ended *order = NULL;
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
        put_theirs(&b, &r->rec[order[i].index], block_size);
        rc = convert_flush(o, &b, false, err);
    }
    free(order);
    return convert_close(o, &b, rc, err);
}
