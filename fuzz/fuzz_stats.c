/* Any bytes as a trace and, behind a line "stats", as a recorder's statistics of the
 * same run: read or refused. Steps that come out are whole. */
#include <assert.h>

#include "trace/formats/formats.h"
#include "trace/jsonl/jsonl.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct vt_steps *s)
{
    assert(s->n > 0 && s->only_out);
    for (size_t i = 0; i < s->n; i++) {
        const struct vt_step_line *x = &s->step[i];

        assert(i == 0 || x->out_ns >= s->step[i - 1].out_ns);
        assert(x->decodes > 0 || x->n_prefill > 0);
        for (uint32_t k = 0; k < x->n_prefill; k++)
            assert((uint64_t)x->prefill[k].computed + x->prefill[k].tokens <=
                   x->prefill[k].prompt_tokens);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    struct vt_lines *trace, *stats;
    struct vt_workload w;
    struct vt_steps s;
    struct vt_err err;
    size_t end = 0;

    while (end + 7 <= size && memcmp(text + end, "\nstats\n", 7) != 0)
        end++;
    if (end + 7 > size || vt_lines_from(&trace, "trace", text, end, &err) != VT_OK)
        return 0;
    if (trace_read(&w, trace, &err) == VT_OK) {
        if (vt_lines_from(&stats, "stats", text + end + 7, size - end - 7, &err) ==
            VT_OK) {
            if (trace_read_stats(&s, stats, &w, &err) == VT_OK) {
                check(&s);
                vt_steps_free(&s);
            }
            vt_lines_close(stats);
        }
        vt_workload_free(&w);
    }
    vt_lines_close(trace);
    return 0;
}
