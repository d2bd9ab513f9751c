/* Any bytes as a step log: read or refused, and what is read writes and reads back. */
#include <assert.h>

#include "trace/jsonl/jsonl.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_prefill(const struct vt_step_line *a, const struct vt_step_line *b)
{
    assert(a->n_prefill == b->n_prefill && a->n_preempted == b->n_preempted);
    for (uint32_t i = 0; i < a->n_prefill; i++) {
        assert(strcmp(a->prefill[i].id, b->prefill[i].id) == 0);
        assert(a->prefill[i].tokens == b->prefill[i].tokens);
    }
    for (uint32_t i = 0; i < a->n_preempted; i++)
        assert(strcmp(a->preempted[i], b->preempted[i]) == 0);
}

static void check_round_trip(const struct vt_steps *s)
{
    struct vt_buf b = {0};
    struct vt_lines *lines;
    struct vt_steps again;
    struct vt_err err;

    for (size_t i = 0; i < s->n; i++)
        vt_steps_write(&b, &s->step[i]);
    assert(!b.failed && vt_lines_from(&lines, "again", b.data, b.len, &err) == VT_OK);
    assert(trace_read_steps(&again, lines, &err) == VT_OK && again.n == s->n);
    for (size_t i = 0; i < s->n; i++) {
        assert(again.step[i].step == s->step[i].step);
        assert(again.step[i].decode_ctx == s->step[i].decode_ctx);
        check_prefill(&again.step[i], &s->step[i]);
    }
    vt_steps_free(&again);
    vt_lines_close(lines);
    vt_buf_free(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct vt_lines *lines;
    struct vt_steps s;
    struct vt_err err;

    if (vt_lines_from(&lines, "fuzz", data, size, &err) != VT_OK)
        return 0;
    if (trace_read_steps(&s, lines, &err) == VT_OK) {
        check_round_trip(&s);
        vt_steps_free(&s);
    }
    vt_lines_close(lines);
    return 0;
}
