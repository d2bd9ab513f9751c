/* mooncake.c - Mooncake's open traces, one JSON object for each line.
 *
 *     {"timestamp": 27, "input_length": 700, "output_length": 9, "hash_ids": [4, 9]}
 *
 * The timestamp is in milliseconds. Each id stands for the content of 512 prompt
 * tokens, the last one for what is left; equal ids hold equal tokens. */
#include "trace/formats/formats.h"

enum { BLOCK_TOKENS = 512 };

static bool recognise(const char *line, size_t len, const struct vt_node *first)
{
    (void)line;
    (void)len;
    return first && vt_get(first, "input_length") && vt_get(first, "timestamp");
}

static int read_segments(struct trace_build *b, const struct vt_node *row,
                         uint32_t prompt_tokens, struct vt_err *err)
{
    const struct vt_node *ids = vt_get(row, "hash_ids");
    uint32_t need = (prompt_tokens - 1) / BLOCK_TOKENS + 1;
    int rc = VT_OK;

    if (!ids || ids->kind != VT_LIST)
        return vt_fail(err, VT_EINPUT, "field 'hash_ids' must be a list");
    if (ids->n != need)
        return vt_fail(err, VT_EINPUT,
                       "field 'hash_ids' has %u ids, not the %u of %u tokens", ids->n,
                       need, prompt_tokens);
    for (uint32_t i = 0; i < need && rc == VT_OK; i++) {
        uint32_t left = prompt_tokens - i * BLOCK_TOKENS;
        uint64_t id;

        if (!vt_node_u64(&ids->u.item[i], UINT64_MAX, &id))
            return vt_fail(err, VT_EINPUT,
                           "field 'hash_ids' must hold integers from 0");
        rc = trace_build_segment(b, trace_content_block(id), 0,
                                 left < BLOCK_TOKENS ? left : BLOCK_TOKENS, err);
    }
    return rc;
}

static int read_row(void *user, struct trace_reader *r, const struct vt_node *row,
                    struct vt_err *err)
{
    struct trace_build *b = user;
    struct vt_work *q;
    double ms = 0;
    int rc;

    b->line = r->number;
    if ((rc = trace_build_add_numbered(b, b->n, &q, err)) ||
        (rc = vt_get_f64(row, "timestamp", VT_REQUIRED, 0, TRACE_MAX_MS, &ms, err)) ||
        (rc = vt_get_u32(row, "input_length", VT_REQUIRED, 1, TRACE_MAX_TOKENS,
                         &q->prompt_tokens, err)) ||
        (rc = vt_get_u32(row, "output_length", VT_REQUIRED, 1, TRACE_MAX_TOKENS,
                         &q->output_tokens, err)))
        return rc;
    q->arrival_ns = vt_ns_from_ms(ms);
    q->max_tokens = q->output_tokens;
    return vt_within(err, read_segments(b, row, q->prompt_tokens, err), "line %u",
                     row->line);
}

static int read_rows(struct trace_build *b, struct trace_reader *r, void *state,
                     struct vt_err *err)
{
    (void)state;
    b->check_ids = false;
    return trace_reader_rows(r, read_row, b, err);
}

const struct trace_format trace_format_mooncake = {
    .name = "mooncake",
    .recognise = recognise,
    .read = read_rows,
};
