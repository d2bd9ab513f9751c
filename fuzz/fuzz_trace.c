/* Any bytes as a trace: read or refused, and what is read keeps its promises. */
#include <assert.h>
#include <stdlib.h>

#include "trace/formats/formats.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct vt_workload *w)
{
    assert(w->n > 0);
    for (size_t i = 0; i < w->n; i++) {
        const struct vt_work *q = &w->req[i];
        uint64_t sum = 0;

        for (uint32_t k = 0; k < q->n_segments; k++)
            sum += w->segment[q->first_segment + k].tokens;
        assert(sum == q->prompt_tokens && q->output_tokens >= 1);
        assert(q->max_tokens >= q->output_tokens);
        assert(i == 0 || w->req[i - 1].arrival_ns <= q->arrival_ns);
        assert(q->next_turn == VT_NO_TURN || !w->req[q->next_turn].first_turn);
        assert(q->first_turn == (q->n_before == 0));
        assert(!w->measured ||
               w->measured[i].first_gap + w->measured[i].n_gaps <= w->n_gaps);
    }
}

/* Nothing waits for ever: as ends are counted off, every request of a session comes. */
static void check_order(const struct vt_workload *w)
{
    uint32_t *before = calloc(w->n, sizeof(*before)), *came = NULL;
    size_t n = 0, linked = 0;

    came = calloc(w->n, sizeof(*came));
    assert(before && came);
    for (size_t i = 0; i < w->n; i++) {
        before[i] = w->req[i].n_before;
        if (before[i] == 0)
            came[n++] = (uint32_t)i;
    }
    for (size_t k = 0; k < n; k++, linked++)
        for (uint32_t i = w->req[came[k]].next_turn; i != VT_NO_TURN;
             i = w->req[i].beside) {
            assert(before[i] > 0 && w->req[i].session == w->req[came[k]].session);
            if (--before[i] == 0)
                came[n++] = i;
        }
    assert(linked == w->n);
    free(before);
    free(came);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct vt_lines *lines;
    struct vt_workload w;
    struct vt_err err;

    if (vt_lines_from(&lines, "fuzz", data, size, &err) != VT_OK)
        return 0;
    if (trace_read(&w, lines, &err) == VT_OK) {
        check(&w);
        check_order(&w);
        vt_workload_free(&w);
    }
    vt_lines_close(lines);
    return 0;
}
