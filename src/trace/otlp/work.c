/* work.c - requests with their timings, from an engine's journeys.
 *
 * A request's first token came with FIRST_TOKEN and its last with FINISHED. Tokens in
 * between came with the results of the steps whose snapshots show the request, where
 * there are such. */
#include "trace/otlp/otlp.h"

/* ---- fronts ----------------------------------------------------------- */

static int key_order(const struct otlp_key *a, const struct otlp_key *b)
{
    if (a->trace[0] != b->trace[0])
        return a->trace[0] < b->trace[0] ? -1 : 1;
    if (a->trace[1] != b->trace[1])
        return a->trace[1] < b->trace[1] ? -1 : 1;
    return a->span < b->span ? -1 : a->span > b->span;
}

static int front_order(const void *pa, const void *pb)
{
    const struct otlp_front *a = pa, *b = pb;
    int order = key_order(&a->key, &b->key);

    if (order != 0)
        return order;
    return a->start_unix_ns < b->start_unix_ns ? -1
                                               : a->start_unix_ns > b->start_unix_ns;
}

void otlp_sort_fronts(struct vt_otlp *o)
{
    if (o->n_fronts > 1)
        qsort(o->front, o->n_fronts, sizeof(*o->front), front_order);
}

static vt_ns earliest(const struct otlp_request *r)
{
    vt_ns at = r->queued_ns;

    at = r->scheduled_ns < at ? r->scheduled_ns : at;
    at = r->first_token_ns < at ? r->first_token_ns : at;
    return r->finished_ns < at ? r->finished_ns : at;
}

/* The parent, which began last of those that had begun. Clocks of two machines may be a
 * little apart. */
static const struct otlp_front *find_front(const struct vt_otlp *o,
                                           const struct otlp_request *r)
{
    struct otlp_front want = {.key = r->parent};
    size_t lo = 0, hi = o->n_fronts;

    if (earliest(r) != VT_NEVER)
        want.start_unix_ns = earliest(r) + r->to_unix_ns + VT_SEC;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;

        if (front_order(&o->front[mid], &want) <= 0)
            lo = mid + 1;
        else
            hi = mid;
    }
    if (lo > 0 && key_order(&o->front[lo - 1].key, &r->parent) == 0)
        return &o->front[lo - 1];
    if (lo < o->n_fronts && key_order(&o->front[lo].key, &r->parent) == 0)
        return &o->front[lo];
    return NULL;
}

/* A time of the API server's on the engine's clock; VT_NEVER stays. On one machine both
 * read the same clock. On two, wall-clock time connects them. */
static vt_ns engine_time(const struct otlp_request *r, const struct otlp_front *f,
                         vt_ns at_ns)
{
    vt_ns shift = f->to_unix_ns - r->to_unix_ns;

    if (at_ns == VT_NEVER || (shift > -VT_SEC && shift < VT_SEC))
        return at_ns;
    at_ns += shift;
    return at_ns < 0 || at_ns > OTLP_MAX_NS ? VT_NEVER : at_ns;
}

vt_ns otlp_arrival(const struct vt_otlp *o, const struct otlp_request *r,
                   const struct otlp_front **front)
{
    vt_ns at = VT_NEVER;

    *front = find_front(o, r);
    if (*front)
        at = engine_time(r, *front, (*front)->arrived_ns);
    return at < r->queued_ns ? at : r->queued_ns;
}

/* ---- tokens ----------------------------------------------------------- */

static int token_order(const void *pa, const void *pb)
{
    const struct otlp_token *a = pa, *b = pb;

    if (a->request != b->request)
        return a->request < b->request ? -1 : 1;
    if (a->index != b->index)
        return a->index < b->index ? -1 : 1;
    return a->at_ns < b->at_ns ? -1 : a->at_ns > b->at_ns;
}

/* Whether the step gives the request one token. Drafts of speculative decoding give
 * several, and how many is not told. */
static bool gives_token(const struct otlp_snap *s)
{
    return s->computed + s->scheduled >= s->prompt + s->output &&
           (!otlp_decodes(s) || s->scheduled == 1);
}

static int list_tokens(const struct otlp_engine *e, struct otlp_token **out, size_t *n,
                       struct vt_err *err)
{
    struct otlp_token *token = malloc((e->n_snaps + 1) * sizeof(*token));

    if (!token)
        return vt_nomem(err);
    *n = 0;
    for (size_t i = 0; i < e->n_steps; i++) {
        for (uint32_t k = 0; k < e->step[i].n_snaps; k++) {
            const struct otlp_snap *s = &e->snap[e->step[i].first_snap + k];

            if (e->step[i].out_ns != VT_NEVER && gives_token(s))
                token[(*n)++] = (struct otlp_token){
                    s->request, s->computed + s->scheduled - s->prompt,
                    e->step[i].out_ns};
        }
    }
    qsort(token, *n, sizeof(*token), token_order);
    *out = token;
    return VT_OK;
}

int otlp_add_gaps(struct trace_build *b, const struct otlp_token *token, size_t n,
                  size_t *shared, struct vt_err *err)
{
    int rc = VT_OK;

    b->w->n_by_mean += n == 2 && token[1].index > 1; /* nothing is known in between */
    for (size_t i = 1; i < n; i++) {
        uint32_t gaps = token[i].index - token[i - 1].index;
        vt_ns time = token[i].at_ns - token[i - 1].at_ns;

        *shared += gaps > 1 ? gaps : 0;
        for (uint32_t k = 0; k < gaps && rc == VT_OK; k++)
            rc = trace_build_gap(b, time / gaps + (k < time % gaps), 1, err);
    }
    return rc;
}

/* ---- requests --------------------------------------------------------- */

struct work {
    struct vt_otlp *o;
    struct otlp_engine *e;
    struct vt_otlp_capture *c;
    struct trace_build b;
    vt_ns origin_ns;
    struct otlp_token *token, *chosen; /* all, by request; those of one request */
    size_t n_tokens, next;
};

static uint32_t cached_tokens(const struct otlp_request *r)
{
    return r->effective > 0 && r->effective <= r->prompt ? r->prompt - r->effective : 0;
}

/* Its gaps are between tokens whose time is known: the first and the last, and of the n
 * in between what fits. */
static int add_request(struct work *w, const struct otlp_request *r, vt_ns arrival,
                       const struct otlp_token *token, size_t n, struct vt_err *err)
{
    bool by_limit = r->finish && strcmp(r->finish, "length") == 0;
    struct otlp_token *chosen = w->chosen;
    struct vt_work *q;
    size_t used = 0;
    int rc;

    w->b.line = r->line;
    rc = trace_build_add(&w->b, r->id, strlen(r->id), &q, err);
    if (rc != VT_OK)
        return rc;
    q->arrival_ns = arrival - w->origin_ns;
    q->prompt_tokens = r->prompt;
    q->output_tokens = r->output;
    q->max_tokens = r->max_tokens > r->output ? r->max_tokens : r->output + 1;
    if (by_limit)
        q->max_tokens = r->output;
    if ((rc = trace_build_own(&w->b, r->prompt, err)) ||
        (rc = trace_build_measured(&w->b, r->first_token_ns - arrival, cached_tokens(r),
                                   err)))
        return rc;
    if (r->scheduled_ns != VT_NEVER && r->scheduled_ns >= arrival)
        w->b.w->measured[w->b.w->n - 1].queue_ns = r->scheduled_ns - arrival;
    chosen[used++] = (struct otlp_token){0, 0, r->first_token_ns};
    for (size_t i = 0; i < n; i++)
        if (token[i].index > chosen[used - 1].index && token[i].index + 1 < r->output &&
            token[i].at_ns >= chosen[used - 1].at_ns &&
            token[i].at_ns <= r->finished_ns)
            chosen[used++] = token[i];
    if (r->output > 1)
        chosen[used++] = (struct otlp_token){0, r->output - 1, r->finished_ns};
    return otlp_add_gaps(&w->b, chosen, used, &w->c->shared_gaps, err);
}

static vt_ns since(vt_ns at, vt_ns origin)
{
    return at == VT_NEVER ? VT_NEVER : at - origin;
}

static void add_journey(struct work *w, const struct otlp_request *r, vt_ns arrival,
                        const struct otlp_front *f)
{
    vt_ns handoff = f ? engine_time(r, f, f->handoff_ns) : VT_NEVER;
    vt_ns departed = f ? engine_time(r, f, f->departed_ns) : VT_NEVER;

    w->c->journey[w->c->n_journeys++] = (struct vt_journey){
        .id = r->id,
        .arrived_ns = since(arrival, w->origin_ns),
        .handoff_ns = since(handoff, w->origin_ns),
        .queued_ns = since(r->queued_ns, w->origin_ns),
        .scheduled_ns = since(r->scheduled_ns, w->origin_ns),
        .first_token_ns = since(r->first_token_ns, w->origin_ns),
        .finished_ns = since(r->finished_ns, w->origin_ns),
        .departed_ns = since(departed, w->origin_ns),
        .prompt_tokens = r->prompt,
        .cached_tokens = cached_tokens(r),
        .output_tokens = r->output,
        .preemptions = r->preemptions,
        .finish = r->finish,
    };
}

static int add_all(struct work *w, struct vt_err *err)
{
    int rc = VT_OK;

    for (uint32_t i = 0; i < w->e->n_requests && rc == VT_OK; i++) {
        const struct otlp_request *r = &w->e->request[i];
        const struct otlp_front *front;
        size_t from;
        vt_ns arrival;

        while (w->next < w->n_tokens && w->token[w->next].request < i)
            w->next++;
        from = w->next;
        while (w->next < w->n_tokens && w->token[w->next].request == i)
            w->next++;
        if (!r->known)
            continue;
        arrival = otlp_arrival(w->o, r, &front);
        w->o->stats.journeys++;
        w->o->stats.joined += front != NULL;
        add_journey(w, r, arrival, front);
        if (arrival == VT_NEVER || r->first_token_ns == VT_NEVER ||
            r->finished_ns == VT_NEVER || arrival > r->first_token_ns ||
            r->first_token_ns > r->finished_ns || r->output == 0 || r->prompt == 0)
            w->o->stats.untimed++;
        else
            rc = add_request(w, r, arrival, w->token + from, w->next - from, err);
    }
    return rc;
}

static int journey_order(const void *pa, const void *pb)
{
    const struct vt_journey *a = pa, *b = pb;

    if (a->arrived_ns != b->arrived_ns)
        return a->arrived_ns < b->arrived_ns ? -1 : 1;
    return strcmp(a->id, b->id);
}

static int build_work(struct work *w, struct vt_err *err)
{
    size_t n = w->e->n_requests;
    struct vt_journey *journey = vt_arena_alloc(&w->o->arena, n * sizeof(*journey));
    int rc;

    if (!journey)
        return vt_nomem(err);
    w->c->journey = journey;
    rc = list_tokens(w->e, &w->token, &w->n_tokens, err);
    if (rc == VT_OK) {
        w->chosen = malloc((w->n_tokens + 2) * sizeof(*w->chosen));
        rc = w->chosen ? add_all(w, err) : vt_nomem(err);
    }
    qsort(journey, w->c->n_journeys, sizeof(*journey), journey_order);
    free(w->token);
    free(w->chosen);
    return rc;
}

int otlp_make_work(struct vt_otlp *o, struct otlp_engine *e, vt_ns origin_ns,
                   struct vt_otlp_capture *c, struct vt_err *err)
{
    struct work w = {.o = o, .e = e, .c = c, .origin_ns = origin_ns};
    struct vt_meta meta = {.model = o->model,
                           .block_size = e->block_size,
                           .async_scheduling = e->saw_depth ? e->depth == 2 : -1,
                           .enable_prefix_caching = -1};
    int rc = trace_build_init(&w.b, &c->work, o->source, err);

    if (rc == VT_OK)
        rc = build_work(&w, err);
    rc = rc != VT_OK || c->work.n == 0 ? trace_build_fail(&w.b, rc)
                                       : trace_build_finish(&w.b, err);
    for (size_t i = 0; i < e->n_steps; i++)
        if (e->step[i].blocks > 0 && e->step[i].blocks >= meta.num_gpu_blocks)
            meta.num_gpu_blocks = e->step[i].blocks + 1; /* and the null block */
    c->work.meta = meta;
    return rc;
}
