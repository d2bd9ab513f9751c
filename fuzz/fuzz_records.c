/* Any bytes as a trace: records accept nothing that would break who reads them, and
 * what they hold can be written and read again. */
#include <assert.h>

#include "trace/jsonl/jsonl.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct vt_records *r)
{
    assert(r->n > 0);
    for (size_t i = 0; i < r->n; i++) {
        const struct vt_record *q = &r->rec[i];

        assert(q->id && q->prompt_tokens >= 1 && q->output_tokens >= 1);
        assert(q->cached_tokens <= q->prompt_tokens);
        assert(q->n_gaps == 0 || (q->gap && q->ttft_ns >= 0));
        assert(q->n_gaps < q->output_tokens);
        assert(!q->gap_running == !q->gap_prefill);
        assert(vt_record_decode_ns(q) >= 0);
        assert(i == 0 || r->rec[i - 1].arrival_ns <= q->arrival_ns ||
               q->arrival_ns < 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct vt_lines *lines;
    struct vt_records r;
    struct vt_err err;

    if (vt_lines_from(&lines, "fuzz", data, size, &err) != VT_OK)
        return 0;
    if (records_read(&r, lines, &err) == VT_OK) {
        check(&r);
        vt_records_free(&r);
    }
    vt_lines_close(lines);
    return 0;
}
