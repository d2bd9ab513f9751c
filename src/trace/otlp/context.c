/* context.c - how long the contexts of decoding requests were, for steps of which
 * the tracer took no snapshots.
 *
 * A request decodes from the step after its first token to its last one, and its
 * context grows by one token a step. A preemption takes it out until it is scheduled
 * again. */
#include "trace/otlp/otlp.h"

enum { USUAL_BLOCK_SIZE = 16 };

static void start_decoding(struct otlp_context *c, struct otlp_request *r)
{
    r->decodes = true;
    c->n++;
    c->base += r->base;
}

static void stop_decoding(struct otlp_context *c, struct otlp_request *r)
{
    if (!r->decodes)
        return;
    r->decodes = false;
    c->n--;
    c->base -= r->base;
}

/* What the steps after this mark's are to know. */
static void apply_mark(struct otlp_context *c, const struct otlp_mark *m)
{
    struct otlp_request *r = &c->e->request[m->request];

    if (m->event == OTLP_FIRST_TOKEN && !r->started) {
        r->started = true;
        r->base = r->prompt - m->step - 1;
        start_decoding(c, r);
    } else if (m->event == OTLP_FINISHED) {
        stop_decoding(c, r);
    } else if (m->event == OTLP_PREEMPTED && r->decodes) {
        stop_decoding(c, r);
        r->base += m->step; /* its context, until it is back */
    } else if (m->event == OTLP_SCHEDULED && r->started && !r->decodes) {
        r->base -= m->step;
        start_decoding(c, r);
    }
}

uint64_t otlp_context_at(struct otlp_context *c, const struct otlp_step *s)
{
    uint64_t size = c->e->block_size ? c->e->block_size : USUAL_BLOCK_SIZE;
    uint64_t used = s->blocks > s->free_blocks ? s->blocks - s->free_blocks : 0;
    uint64_t other = s->prefill_tokens + s->running * (size / 2);
    double mean;

    while (c->next < c->e->n_marks && c->e->mark[c->next].step < s->id)
        apply_mark(c, &c->e->mark[c->next++]);
    if (s->decodes == 0)
        return 0;
    if (c->n ==
        0) /* by the blocks in use, half of each request's last one being free */
        return used * size > other + s->decodes ? used * size - other : s->decodes;
    /* Not all requests need be traced: the others are as those that are. */
    mean = (double)(int64_t)(c->base + c->n * s->id) / (double)c->n;
    return mean >= 1 && mean < 0x1p31 ? (uint64_t)(mean * s->decodes + 0.5)
                                      : s->decodes;
}
