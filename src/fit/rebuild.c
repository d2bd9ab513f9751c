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

struct token {
    double at;
    uint32_t request, index;
    uint32_t chunk; /* tokens that came with it */
};

static int by_time(const void *a, const void *b)
{
    const struct token *x = a, *y = b;

    if (x->at != y->at)
        return x->at < y->at ? -1 : 1;
    return x->request < y->request ? -1 : x->request > y->request;
}

static int list_tokens(const struct vt_workload *w, struct token **out, size_t *n,
                       struct vt_err *err)
{
    size_t total = w->n + w->n_gaps, k = 0;
    struct token *t = calloc(total, sizeof(*t));

    if (!t)
        return vt_nomem(err);
    for (size_t i = 0; i < w->n; i++) {
        const struct vt_measured *m = &w->measured[i];
        vt_ns at = w->req[i].arrival_ns + m->ttft_ns;
        uint32_t index = 0;

        t[k++] = (struct token){(double)at / 1e6, (uint32_t)i, 0, 1};
        for (uint32_t g = 0; g < m->n_gaps; g++) {
            uint32_t chunk = w->gap_tokens ? w->gap_tokens[m->first_gap + g] : 1;

            at += w->gap[m->first_gap + g];
            index += chunk;
            t[k++] = (struct token){(double)at / 1e6, (uint32_t)i, index, chunk};
        }
    }
    qsort(t, k, sizeof(*t), by_time);
    *out = t;
    *n = k;
    return VT_OK;
}

static int add_group(struct capture *c, const struct vt_step_params *shape,
                     const struct vt_workload *w, const struct token *t, size_t n,
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
        if (arrival < 0 || (double)r->arrival_ns / 1e6 < arrival)
            arrival = (double)r->arrival_ns / 1e6;
    }
    if (s.decodes == 0 && (c->n == 0 || arrival >= c->step[c->n - 1].out))
        sched = arrival;
    s.out_ns = s.done_ns = llround(t[n - 1].at * 1e6);
    s.sched_ns = s.sched_end_ns = llround(sched * 1e6);
    return capture_add_step(c, shape, &s, err);
}

/* seen: of each request, the step after its last token. True: somebody came back. */
static bool note_returns(size_t *seen, size_t step, const struct token *t, size_t n)
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
    struct token *t = NULL;
    struct vt_step_prefill *prefill = calloc(w->n + 1, sizeof(*prefill));
    size_t *seen = calloc(w->n + 1, sizeof(*seen)), n = 0;
    int rc = !prefill || !seen ? vt_nomem(err) : list_tokens(w, &t, &n, err);

    for (size_t i = 0, k; i < n && rc == VT_OK; i = k) {
        for (k = i + 1; k < n && t[k].at - t[k - 1].at < SAME_STEP_MS; k++)
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
