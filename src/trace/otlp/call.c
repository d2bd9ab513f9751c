/* call.c - upstream vLLM's llm_request spans as a workload. They give a request's
 * first token and its end, so the gaps between are equal. */
#include "trace/otlp/otlp.h"

struct name {
    const char *text;
    size_t n; /* how often it was asked for */
};

struct calls {
    struct vt_otlp *o;
    struct vt_otlp_capture *c;
    struct trace_build b;
    vt_ns origin_ns;
    struct vt_names names;
    struct name *name; /* in use */
    size_t n_names;
};

static int call_order(const void *pa, const void *pb)
{
    const struct otlp_call *a = pa, *b = pb;
    int order;

    if (a->start_ns != b->start_ns)
        return a->start_ns < b->start_ns ? -1 : 1;
    order = strcmp(a->id, b->id);
    if (order != 0)
        return order;
    return a->ttft_s < b->ttft_s ? -1 : a->ttft_s > b->ttft_s;
}

/* The answers of one request with n > 1 share its id: they become ID, ID#2, ID#3. NULL:
 * out of memory. */
static const char *unique_name(struct calls *s, const char *id, struct vt_err *err)
{
    size_t cap = strlen(id) + 24;
    char *name = vt_arena_alloc(&s->o->arena, cap);
    bool is_new = false;

    for (size_t k = 1; name && !is_new; k++) {
        uint32_t index = (uint32_t)s->n_names;

        if (k == 1)
            snprintf(name, cap, "%s", id);
        else
            snprintf(name, cap, "%s#%zu", id, k);
        if (vt_names_claim(&s->names, s->name, sizeof(*s->name), name, strlen(name),
                           &index, &is_new, err) != VT_OK)
            return NULL;
        if (!is_new && k == 1)
            k = s->name[index].n++;
    }
    if (name)
        s->name[s->n_names++] = (struct name){name, 1};
    return name;
}

static void add_journey(struct calls *s, const struct otlp_call *call, const char *id)
{
    vt_ns arrived = call->start_ns - s->origin_ns;
    struct vt_journey j = {.id = id,
                           .arrived_ns = arrived,
                           .handoff_ns = VT_NEVER,
                           .queued_ns = VT_NEVER,
                           .scheduled_ns = VT_NEVER,
                           .first_token_ns = arrived + otlp_ns_from_s(call->ttft_s),
                           .finished_ns = arrived + otlp_ns_from_s(call->e2e_s),
                           .departed_ns = VT_NEVER,
                           .prompt_tokens = call->prompt,
                           .output_tokens = call->output};

    if (call->prefill_s >= 0)
        j.scheduled_ns = j.first_token_ns - otlp_ns_from_s(call->prefill_s);
    if (call->prefill_s >= 0 && call->queue_s >= 0)
        j.queued_ns = j.scheduled_ns - otlp_ns_from_s(call->queue_s);
    s->c->journey[s->c->n_journeys++] = j;
}

static int add_request(struct calls *s, const struct otlp_call *call, const char *id,
                       struct vt_err *err)
{
    struct otlp_token token[2] = {{0, 0, otlp_ns_from_s(call->ttft_s)},
                                  {0, call->output - 1, otlp_ns_from_s(call->e2e_s)}};
    struct vt_work *q;
    int rc;

    s->b.line = call->line;
    rc = trace_build_add(&s->b, id, strlen(id), &q, err);
    if (rc != VT_OK)
        return rc;
    q->arrival_ns = call->start_ns - s->origin_ns;
    q->prompt_tokens = call->prompt;
    q->output_tokens = call->output;
    q->max_tokens = call->max_tokens > call->output ? call->max_tokens : call->output;
    if ((rc = trace_build_own(&s->b, call->prompt, err)) ||
        (rc = trace_build_measured(&s->b, token[0].at_ns, 0, err)))
        return rc;
    /* All that passed before the prefill, as queue times of journeys count. */
    if (call->prefill_s >= 0 && call->prefill_s <= call->ttft_s)
        s->b.w->measured[s->b.w->n - 1].queue_ns =
            otlp_ns_from_s(call->ttft_s - call->prefill_s);
    return otlp_add_gaps(&s->b, token, call->output > 1 ? 2 : 1, &s->c->shared_gaps,
                         err);
}

static int add_all(struct calls *s, struct vt_err *err)
{
    int rc = VT_OK;

    for (size_t i = 0; i < s->o->n_calls && rc == VT_OK; i++) {
        const struct otlp_call *call = &s->o->call[i];
        const char *id;

        if (call->prompt == 0 || call->output == 0) {
            s->o->stats.untimed++;
            continue;
        }
        id = unique_name(s, call->id, err);
        if (!id)
            return vt_nomem(err);
        add_journey(s, call, id);
        rc = add_request(s, call, id, err);
    }
    return rc;
}

int otlp_make_calls(struct vt_otlp *o, struct vt_otlp_capture *c, struct vt_err *err)
{
    struct calls s = {.o = o, .c = c};
    int rc = trace_build_init(&s.b, &c->work, o->source, err);

    qsort(o->call, o->n_calls, sizeof(*o->call), call_order);
    s.origin_ns = o->call[0].start_ns;
    s.name = malloc(o->n_calls * sizeof(*s.name));
    c->journey = vt_arena_alloc(&o->arena, o->n_calls * sizeof(*c->journey));
    if (rc == VT_OK)
        rc = s.name && c->journey ? add_all(&s, err) : vt_nomem(err);
    free(s.name);
    vt_names_free(&s.names);
    if (rc != VT_OK || c->work.n == 0)
        return trace_build_fail(&s.b, rc);
    return trace_build_finish(&s.b, err);
}
