/* Any bytes as a workload.yaml: generated or refused. Files it names are not read. */
#include <assert.h>

#include "trace/workload/workload.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct trace_generate_options o = {
        .seed = -1, .max_requests = 2000, .files = {.none = true}};
    struct vt_workload w;
    struct vt_err err;

    if (trace_generate_text(&w, "fuzz", (const char *)data, size, &o, &err) != VT_OK)
        return 0;
    assert(w.n > 0 && w.n <= 2000);
    for (size_t i = 0; i < w.n; i++) {
        const struct vt_work *q = &w.req[i];
        uint64_t sum = 0;

        for (uint32_t k = 0; k < q->n_segments; k++)
            sum += w.segment[q->first_segment + k].tokens;
        assert(sum == q->prompt_tokens && q->output_tokens >= 1);
        assert(i == 0 || w.req[i - 1].arrival_ns <= q->arrival_ns);
    }
    vt_workload_free(&w);
    return 0;
}
