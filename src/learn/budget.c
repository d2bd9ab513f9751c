/* budget.c - how many tokens a step may have, by what prompts do to a stream. */
#include "learn/budget.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

static void make_budget_request(struct vt_workload *w, int which, uint32_t prompt,
                                uint32_t output)
{
    struct vt_work *q = &w->req[which];

    assert(q->n_segments == 1 && q->prompt_tokens >= prompt);
    w->segment[q->first_segment].tokens = q->prompt_tokens = prompt;
    q->output_tokens = q->max_tokens = output;
}

/* A stream has one token of each step: its gaps while a prompt is computed beside it,
 * in ns. How many; 0: the stream ended too soon to tell. */
static size_t gaps_beside(const struct vt_workload *w, int which, double usual,
                          double *out)
{
    const struct vt_measured *stream = &w->measured[BUDGET_STREAM];
    vt_ns from = w->req[which].arrival_ns, to = from + w->measured[which].ttft_ns;
    vt_ns at = w->req[BUDGET_STREAM].arrival_ns + stream->ttft_ns;
    size_t n = 0;

    for (uint32_t i = 0; i < stream->n_gaps; i++) {
        vt_ns g = w->gap[stream->first_gap + i];

        /* The prompt's own first token leaves with the last of them. */
        if (at + g > from && at < to - (vt_ns)usual / 4 &&
            at + g <= to + (vt_ns)usual / 2)
            out[n++] = (double)g;
        at += g;
    }
    return at >= to ? n : 0;
}

/* Tokens of the stream from the first one that waited for the prompt's computation to
 * the one that leaves with its first token. That last one may come soon after a launch;
 * before it nearly every one is late. One that was late because the frontend read the
 * prompt has others between. */
static uint32_t held_up(const double *gap, size_t n, double late)
{
    size_t most = n > 0 ? 1 : 0, late_ones = 0;

    for (size_t back = 2; back <= n; back++) {
        late_ones += gap[n - back] > late;
        if (gap[n - back] > late && 16 * late_ones >= 15 * (back - 1))
            most = back;
    }
    return (uint32_t)most;
}

/* Steps that a prompt takes. The stream has its token first. */
static uint32_t prompt_steps(double prompt, uint32_t budget)
{
    return (uint32_t)ceil(prompt / (budget - 1));
}

/* Where they are many, one may have been missed. */
static bool is_about(uint32_t expected, uint32_t seen)
{
    return (expected > seen ? expected - seen : seen - expected) <= seen / 8;
}

/* Without those at the front that are shorter: a frontend that reads a long prompt
 * makes tokens late, too, but not as late as a launch or a step. */
static uint32_t from_first(const double *gap, size_t n, uint32_t held, double least)
{
    while (held > 1 && gap[n - held] < least)
        held--;
    return held;
}

/* Those of them that are steps: the first ones are as full as any, and none is over in
 * less than half the next one's time. What is, is a launch that took long. */
static uint32_t full_steps(const double *gap, size_t n, uint32_t held)
{
    while (held > 1 && gap[n - held] < gap[n - held + 1] / 2)
        held--;
    return held;
}

/* A prompt holds up a token for each of its steps, and where a launch takes long one
 * more, during the first launch: of both prompts, or of none, unless the long one's
 * launch is so much longer that its steps tell. Budgets are powers of two, mostly;
 * another one is met in the middle. 0: the long one takes a single step. */
static uint32_t budget_of(double prompt, uint32_t by_long, uint32_t long_steps,
                          double least, uint32_t by_short)
{
    enum { MOST_BUDGET = 1 << 16, LEAST_BUDGET = 16 };
    uint32_t steps;

    for (uint32_t budget = MOST_BUDGET; budget >= LEAST_BUDGET; budget /= 2)
        for (uint32_t launch = 0; launch <= 1; launch++) {
            steps = prompt_steps(prompt, budget);
            if (is_about(steps + launch, by_long) &&
                is_about(prompt_steps(least, budget) + launch, by_short))
                return steps > 1 ? budget : 0;
        }
    for (uint32_t budget = MOST_BUDGET; budget >= LEAST_BUDGET; budget /= 2)
        if (long_steps < by_long && prompt_steps(prompt, budget) == long_steps &&
            prompt_steps(least, budget) <= by_short)
            return long_steps > 1 ? budget : 0;
    steps = by_long > by_short ? by_long - by_short + 1 : 1;
    return steps > 1 ? (uint32_t)((prompt / steps + prompt / (steps - 1)) / 2) : 0;
}

int budget_find(const struct vt_workload *w, double prompt, double least,
                uint32_t *budget, struct vt_err *err)
{
    static const double LATE = 1.3;
    const struct vt_measured *stream = &w->measured[BUDGET_STREAM];
    double *by_short = malloc((2 * (size_t)stream->n_gaps + 1) * sizeof(*by_short));
    double *by_long, usual, late, longest = 0;
    size_t n_short, n_long;
    uint32_t held, held_short;

    if (!by_short)
        return vt_nomem(err);
    by_long = by_short + stream->n_gaps;
    for (uint32_t i = 0; i < stream->n_gaps; i++)
        by_long[i] = (double)w->gap[stream->first_gap + i];
    vt_sort_f64(by_long, stream->n_gaps);
    usual = stream->n_gaps > 0 ? vt_quantile(by_long, stream->n_gaps, 50) : 0;
    n_short = gaps_beside(w, BUDGET_SHORT, usual, by_short);
    n_long = gaps_beside(w, BUDGET_LONG, usual, by_long);
    late = LATE * usual;
    held_short = held_up(by_short, n_short, late);
    for (uint32_t i = 0; i < held_short; i++)
        longest = fmax(longest, by_short[n_short - 1 - i]);
    held_short = from_first(by_short, n_short, held_short, longest / 3);
    held = held_up(by_long, n_long, late);
    if (held_short > 0) /* which begins with a launch, and so does the long one */
        held = from_first(by_long, n_long, held, by_short[n_short - held_short] / 2);
    *budget = n_short > 0 && n_long > 0
                  ? budget_of(prompt, held, full_steps(by_long, n_long, held), least,
                              held_short)
                  : 0;
    free(by_short);
    return VT_OK;
}

int budget_plan(struct vt_workload *w, double apart_s, uint32_t prompt, uint32_t least,
                uint32_t stream, struct vt_err *err)
{
    enum { STREAM_PROMPT = 16, OUTPUT = 2 };
    struct vt_buf b = {0};
    int rc;

    vt_buf_printf(
        &b,
        "name: budget\nrequests: %d\narrival: {process: constant, rate: %.6g}\n"
        "prompt: %u\noutput: %d\n",
        (int)BUDGET_REQUESTS, 1 / apart_s, (unsigned)prompt, (int)OUTPUT);
    rc = b.failed ? vt_nomem(err)
                  : vt_workload_generate_text(w, "budget", b.data, b.len, 1, err);
    vt_buf_free(&b);
    if (rc != VT_OK)
        return rc;
    make_budget_request(w, BUDGET_STREAM, STREAM_PROMPT, stream);
    make_budget_request(w, BUDGET_SHORT, least, OUTPUT);
    w->concurrency = BUDGET_REQUESTS;
    return VT_OK;
}
