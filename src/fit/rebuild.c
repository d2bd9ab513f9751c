/* rebuild.c - steps from a trace's token times, for captures without a step log.
 *
 * Tokens that left together came from one step. How many requests decoded, how deep,
 * and which prompts ended there then follows; prompt chunks that ended no prompt leave
 * no trace, so their time goes to the step that did. When a step was scheduled is not
 * known: with two steps in flight, when the one before the last was handed out. */
#include "fit/internal.h"

#include <math.h>

#define SAME_STEP_MS 0.25 /* rounding of recorded gaps adds up; steps are longer */

/* Who gets nothing in so many steps of others lost its place, and what it had computed
 * with it. */
enum { AWAY_STEPS = 8 };

static int add_group(struct capture *c, const struct vt_step_params *shape,
                     const struct vt_workload *w, const struct vt_token *t, size_t n,
                     struct vt_step_prefill *prefill, struct vt_err *err)
{
    struct vt_step_line s = {.prefill = prefill, .running = (uint32_t)n};
    double sched = c->n >= 2 ? c->step[c->n - 2].out : 0, arrival = -1;

    for (size_t i = 0; i < n; i++) {
        const struct vt_work *r = &w->req[t[i].request];
        uint32_t cached = w->measured[t[i].request].cached_tokens;

        if (t[i].index > 0) {
            s.decodes++;
            s.decode_ctx += r->prompt_tokens + t[i].index - 1;
            continue;
        }
        prefill[s.n_prefill++] = (struct vt_step_prefill){
            r->id, cached, r->prompt_tokens - cached, r->prompt_tokens};
        if (arrival < 0 || in_ms(r->arrival_ns) < arrival)
            arrival = in_ms(r->arrival_ns);
    }
    if (s.decodes == 0 && (c->n == 0 || arrival >= c->step[c->n - 1].out))
        sched = arrival;
    s.out_ns = s.done_ns = t[n - 1].at;
    s.sched_ns = s.sched_end_ns = llround(sched * 1e6);
    return capture_add_step(c, shape, &s, err);
}

/* seen: of each request, the step after its last token. True: somebody came back. */
static bool note_returns(size_t *seen, size_t step, const struct vt_token *t, size_t n)
{
    bool found = false;

    for (size_t i = 0; i < n; i++) {
        size_t *last = &seen[t[i].request];

        found |= t[i].index > 0 && step >= *last + t[i].chunk + AWAY_STEPS;
        *last = step + 1;
    }
    return found;
}

int capture_from_trace(struct capture *c, const struct vt_step_params *shape,
                       const struct vt_workload *w, struct vt_err *err)
{
    struct vt_token *t = NULL;
    struct vt_step_prefill *prefill = calloc(w->n + 1, sizeof(*prefill));
    size_t *seen = calloc(w->n + 1, sizeof(*seen)), n = 0;
    int rc = !prefill || !seen ? vt_nomem(err) : vt_workload_tokens(w, &t, &n, err);

    for (size_t i = 0, k; i < n && rc == VT_OK; i = k) {
        for (k = i + 1; k < n && in_ms(t[k].at) - in_ms(t[k - 1].at) < SAME_STEP_MS;
             k++)
            ;
        rc = add_group(c, shape, w, &t[i], k - i, prefill, err);
        if (rc == VT_OK)
            c->step[c->n - 1].untold = note_returns(seen, c->n, &t[i], k - i);
    }
    c->rebuilt = true;
    free(prefill);
    free(seen);
    free(t);
    return rc;
}
