/* Any bytes as an OpenTelemetry file: read or refused, and what is read keeps its
 * promises, whichever way steps are timed. */
#include <assert.h>

#include "trace/otlp/otlp.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_steps(const struct vt_steps *s)
{
    for (size_t i = 0; i < s->n; i++) {
        const struct vt_step_line *row = &s->step[i];

        assert(i == 0 ||
               (row[-1].step < row->step && row[-1].sched_ns <= row->sched_ns));
        assert(0 <= row->sched_ns && row->sched_ns <= row->sched_end_ns);
        assert(row->sched_end_ns <= row->out_ns && row->out_ns <= row->done_ns);
        for (uint32_t k = 0; k < row->n_prefill; k++)
            assert(row->prefill[k].id[0] != '\0');
        for (uint32_t k = 0; k < row->n_preempted; k++)
            assert(row->preempted[k][0] != '\0');
    }
}

static void check_work(const struct vt_workload *w)
{
    for (size_t i = 0; i < w->n; i++) {
        const struct vt_work *q = &w->req[i];
        const struct vt_measured *m = &w->measured[i];
        vt_ns sum = m->ttft_ns;

        assert(q->prompt_tokens > 0 && q->output_tokens > 0);
        assert(q->max_tokens >= q->output_tokens);
        assert(m->cached_tokens < q->prompt_tokens);
        assert(m->n_gaps == q->output_tokens - 1 && m->ttft_ns >= 0);
        assert(i == 0 || w->req[i - 1].arrival_ns <= q->arrival_ns);
        for (uint32_t k = 0; k < m->n_gaps; k++) {
            assert(w->gap[m->first_gap + k] >= 0);
            sum += w->gap[m->first_gap + k];
        }
        assert(sum == m->e2e_ns);
    }
}

static void check(const struct vt_otlp *o)
{
    assert(vt_otlp_captures(o) > 0);
    for (size_t i = 0; i < vt_otlp_captures(o); i++) {
        const struct vt_otlp_capture *c = vt_otlp_capture(o, i);

        assert(c->name[0] != '\0');
        check_steps(&c->steps);
        check_work(&c->work);
        assert(c->shared_gaps <= c->work.n_gaps && c->work.n <= c->n_journeys);
    }
}

static void read_as(enum vt_step_time step_time, const uint8_t *data, size_t size)
{
    struct vt_otlp_options options = {.step_time = step_time};
    struct vt_lines *lines;
    struct vt_otlp *o;
    struct vt_err err;

    if (vt_lines_from(&lines, "fuzz", data, size, &err) != VT_OK)
        return;
    assert(vt_otlp_new(&o, &options, &err) == VT_OK);
    if (otlp_add_lines(o, lines, &err) == VT_OK && vt_otlp_finish(o, &err) == VT_OK)
        check(o);
    vt_otlp_free(o);
    vt_lines_close(lines);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    read_as(VT_STEP_INTERVAL, data, size);
    read_as(VT_STEP_DURATION, data, size);
    return 0;
}
