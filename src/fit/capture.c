/* capture.c - a step log as the fit sees it, and what clients did around it. */
#include "fit/internal.h"

#include <math.h>

int pairs_add(struct pairs *p, double x, double y, struct vt_err *err)
{
    int rc = vt_grow(&p->p, &p->cap, p->n + 1, sizeof(*p->p), err);

    if (rc == VT_OK)
        p->p[p->n++] = (struct pair){x, y};
    return rc;
}

/* ---- steps ------------------------------------------------------------ */

/* Backwards from the last arrival before that: what is scheduled came not long ago.
 */
size_t find_request(const struct vt_workload *w, const char *id, vt_ns scheduled)
{
    size_t lo = 0, hi = w->n;

    while (lo < hi) {
        size_t mid = (lo + hi) / 2;

        if (w->req[mid].arrival_ns < scheduled)
            lo = mid + 1;
        else
            hi = mid;
    }
    while (lo-- > 0)
        if (strcmp(w->req[lo].id, id) == 0)
            return lo;
    return w->n;
}

/* Which requests decode in a step follows from which prompts ended before it, and from
 * the trace, which knows how much each of them said. */
struct decoding {
    const struct vt_workload *trace; /* NULL: unknown */
    struct decoder {
        uint32_t context, left;
    } *d;
    size_t n, cap;
};

/* Contexts as they are known to be, or all the same where the log has others. */
static void put_contexts(const struct decoding *k, const struct vt_step_line *s,
                         struct vt_item *item)
{
    uint64_t sum = 0;
    bool known = k->n == s->decodes;

    for (size_t i = 0; i < k->n; i++)
        sum += k->d[i].context;
    known = known && sum == s->decode_ctx;
    for (uint32_t i = 0; i < s->decodes; i++)
        item[i].computed =
            known ? k->d[i].context : (uint32_t)(s->decode_ctx / s->decodes);
}

static int pass_step(struct decoding *k, const struct vt_step_line *s,
                     struct vt_err *err)
{
    size_t n = 0;

    for (size_t i = 0; i < k->n; i++) {
        struct decoder d = {k->d[i].context + 1, k->d[i].left - 1};

        if (d.left > 0)
            k->d[n++] = d;
    }
    k->n = n;
    for (uint32_t i = 0; i < s->n_prefill && k->trace; i++) {
        const struct vt_step_prefill *p = &s->prefill[i];
        size_t r;

        if (p->computed + p->tokens < p->prompt_tokens)
            continue;
        r = find_request(k->trace, p->id, s->sched_ns);
        if (r >= k->trace->n || k->trace->req[r].output_tokens < 2)
            continue;
        if (vt_grow(&k->d, &k->cap, k->n + 1, sizeof(*k->d), err) != VT_OK)
            return VT_ENOMEM;
        k->d[k->n++] =
            (struct decoder){p->prompt_tokens, k->trace->req[r].output_tokens - 1};
    }
    return VT_OK;
}

static int features_of(const struct capture *c, const struct vt_step_params *shape,
                       const struct vt_step_line *s, const struct decoding *k,
                       struct vt_step_features *f, struct vt_err *err)
{
    uint32_t drafts = c->meta.num_speculative_tokens;
    struct vt_step_plan plan = {
        .n = s->n_prefill + s->decodes,
        .n_prefills = s->n_prefill,
        .n_decodes = s->decodes,
        .decode_tokens = s->decodes * (1 + drafts),
        .decode_ctx = s->decode_ctx,
        .running = s->running,
    };

    plan.item = calloc((size_t)plan.n + 1, sizeof(*plan.item));
    if (!plan.item)
        return vt_nomem(err);
    for (uint32_t i = 0; i < s->n_prefill; i++) {
        plan.item[i].prefill = true;
        plan.item[i].tokens = s->prefill[i].tokens;
        plan.item[i].computed = s->prefill[i].computed;
        plan.prefill_tokens += s->prefill[i].tokens;
    }
    put_contexts(k, s, &plan.item[s->n_prefill]);
    vt_step_features(shape, &plan, c->meta.max_num_seqs * (1 + drafts), f);
    free(plan.item);
    return VT_OK;
}

static int add_step(struct capture *c, const struct vt_step_params *shape,
                    const struct vt_step_line *s, const struct decoding *k,
                    struct vt_err *err)
{
    struct observed *o;
    int rc = vt_grow(&c->step, &c->cap, c->n + 1, sizeof(*c->step), err);

    if (rc != VT_OK)
        return rc;
    o = &c->step[c->n];
    *o = (struct observed){
        .sched = in_ms(s->sched_ns),
        .sched_end = in_ms(s->sched_end_ns),
        .out = in_ms(s->out_ns),
        .done = in_ms(s->done_ns),
    };
    o->idle = c->n == 0 || o->sched > c->step[c->n - 1].out;
    rc = features_of(c, shape, s, k, &o->f, err);
    if (rc == VT_OK)
        c->n++;
    return rc;
}

int capture_add_step(struct capture *c, const struct vt_step_params *shape,
                     const struct vt_step_line *s, struct vt_err *err)
{
    return add_step(c, shape, s, &(struct decoding){0}, err);
}

int capture_from_steps(struct capture *c, const struct vt_step_params *shape,
                       const struct vt_steps *s, const struct vt_workload *trace,
                       struct vt_err *err)
{
    struct decoding k = {.trace = trace};
    int rc = VT_OK;

    for (size_t i = 0; i < s->n && rc == VT_OK; i++)
        if ((s->step[i].decodes > 0 || s->step[i].n_prefill > 0) &&
            !(rc = add_step(c, shape, &s->step[i], &k, err)))
            rc = pass_step(&k, &s->step[i], err);
    free(k.d);
    return rc;
}

/* ---- clients ---------------------------------------------------------- */

#define SAME_STEP_MS 0.01 /* results of different steps are further apart */

struct ending {
    double at, requests;
};

static int by_time(const void *a, const void *b)
{
    const struct ending *x = a, *y = b;

    return x->at < y->at ? -1 : x->at > y->at;
}

/* The first step that handed out its result at that time or later; c->n: none. */
static size_t step_at(const struct capture *c, double at)
{
    size_t lo = 0, hi = c->n;

    while (lo < hi) {
        size_t mid = (lo + hi) / 2;

        if (c->step[mid].done < at)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* Requests in the step that handed out a result at that time. */
static double batch_at(const struct capture *c, double at)
{
    size_t i = step_at(c, at - 0.5);

    return i < c->n ? c->step[i].f.requests : 0;
}

/* By the engine's clock requests end with their steps. */
static void note_ends(struct capture *c, const struct vt_workload *w)
{
    for (size_t i = 0; i < w->n; i++) {
        double end = in_ms(w->req[i].arrival_ns + w->measured[i].e2e_ns);
        size_t k = step_at(c, end - SAME_STEP_MS);

        if (k < c->n && c->step[k].done < end + SAME_STEP_MS)
            c->step[k].ended++;
    }
}

/* In a closed loop arrivals answer endings, in their order. Of those that one step
 * ended the first tells the pause, the others how they follow it. */
static int note_closed(struct capture *c, const struct vt_workload *w,
                       struct vt_err *err)
{
    struct ending *end = calloc(w->n, sizeof(*end));
    double last = 0;
    int rc = !end ? vt_nomem(err) : VT_OK;

    for (size_t i = 0; i < w->n && rc == VT_OK; i++) {
        end[i].at = in_ms(w->req[i].arrival_ns + w->measured[i].e2e_ns);
        end[i].requests = batch_at(c, end[i].at);
    }
    if (rc == VT_OK)
        qsort(end, w->n, sizeof(*end), by_time);
    for (size_t i = w->concurrency, k = 0; i < w->n && rc == VT_OK; i++, k++) {
        double at = in_ms(w->req[i].arrival_ns);

        if (k > 0 && end[k].at - end[k - 1].at < SAME_STEP_MS)
            rc = pairs_add(&c->next_turn, 0, at - last, err);
        else if (end[k].at <= at)
            rc = pairs_add(&c->turnaround, end[k].requests, at - end[k].at, err);
        last = at;
    }
    free(end);
    return rc;
}

static int note_turns(struct capture *c, const struct vt_workload *w,
                      struct vt_err *err)
{
    int rc = VT_OK;

    for (size_t i = 0; i < w->n && rc == VT_OK; i++) {
        const struct vt_work *r = &w->req[i];
        double end = in_ms(r->arrival_ns + w->measured[i].e2e_ns);

        if (r->next_turn != VT_NO_TURN && w->req[r->next_turn].think_ns == 0)
            rc = pairs_add(&c->turnaround, batch_at(c, end),
                           in_ms(w->req[r->next_turn].arrival_ns) - end, err);
    }
    return rc;
}

int capture_clients(struct capture *c, const struct vt_steps *s,
                    const struct vt_workload *w, struct vt_err *err)
{
    int rc = s ? arrive_note(c, s, w, err) : VT_OK;

    if (rc != VT_OK || !w->measured)
        return rc;
    note_ends(c, w);
    c->n_requests = w->n;
    for (size_t i = 0; i < w->n; i++)
        c->clients_ms =
            fmax(c->clients_ms, in_ms(w->req[i].arrival_ns + w->measured[i].e2e_ns -
                                      w->req[0].arrival_ns));
    for (size_t i = 0; i < w->n; i++)
        c->mean_ttft += in_ms(w->measured[i].ttft_ns) / (double)w->n;
    for (size_t i = 0; i < w->n_gaps; i++)
        c->mean_itl += in_ms(w->gap[i]) / (double)w->n_gaps;
    if (w->arrivals == VT_ARRIVALS_CLOSED)
        return note_closed(c, w, err);
    return w->arrivals == VT_ARRIVALS_SESSION ? note_turns(c, w, err) : VT_OK;
}
