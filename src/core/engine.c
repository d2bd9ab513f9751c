/* engine.c - a scheduler's decisions on a time axis: one host thread, one GPU queue.
 *
 * The host does one thing at a time: it schedules and launches a step, or waits for
 * the oldest step's result and handles it. With async scheduling it schedules step
 * k+1 before it waits for step k, so two are in flight; a request that arrives
 * meanwhile can only join the next schedule call. */
#include "core/engine.h"

#include <assert.h>

#include "core/sched/sched.h"

struct outlet {       /* how a request's tokens leave; one for each slot */
    vt_ns delay;      /* behind the step's end */
    vt_ns last_ns;    /* when the last one left */
    uint64_t arrival; /* its number among arrivals; one that was aborted has none */
    bool churn;       /* as vt_item's */
};
#define NO_ARRIVAL UINT64_MAX

/* ---- life ------------------------------------------------------------- */

int vt_engine_new(struct vt_engine **out, const struct vt_engine_config *c,
                  const struct vt_latency *model, struct vt_err *err)
{
    struct vt_engine *e;
    int rc = vt_engine_config_check(c, err);

    *out = NULL;
    if (rc != VT_OK)
        return rc;
    e = calloc(1, sizeof(*e));
    if (!e)
        return vt_nomem(err);
    e->c = *c;
    if (model->serial)
        e->c.async_scheduling = false;
    e->model = model;
    e->ops = c->compat == VT_COMPAT_BLIS ? &sched_blis : &sched_vllm;
    e->last_big = -2 * VT_SEC;
    e->depth = e->c.async_scheduling && e->ops->overlaps ? 2 : 1;
    e->wake_ns = vt_ns_from_us(model->wake_us);
    e->nap_ns = vt_ns_from_us(model->nap_us);
    e->end_ns = vt_ns_from_us(model->end_us);
    e->plain_outlets =
        !e->ops->sums_steps && model->token_us <= 0 && !model->ops->first_token_us;
    rc = e->ops->open(&e->sched, &e->c, err);
    if (rc != VT_OK) {
        free(e);
        return rc;
    }
    e->pool = e->ops->pool(e->sched);
    moves_init(e);
    *out = e;
    return VT_OK;
}

void vt_engine_free(struct vt_engine *e)
{
    if (!e)
        return;
    if (e->rank)
        rank_leave(e->rank);
    e->ops->close(e->sched);
    vt_agenda_free(&e->arrivals);
    free(e->outlet);
    free(e->sampled[0]);
    free(e->sampled[1]);
    moves_free(e);
    free(e);
}

/* ---- views ------------------------------------------------------------ */

struct vt_sched *vt_engine_sched(struct vt_engine *e)
{
    return e->ops == &sched_vllm ? e->sched : NULL;
}

struct pool *engine_pool(const struct vt_engine *e)
{
    return e->pool;
}

uint32_t vt_engine_key_units(const struct vt_engine *e, uint32_t *group)
{
    const struct vt_sched *s = e->ops == &sched_vllm ? e->sched : NULL;

    *group = s ? s->groups.kind[0].first : 0; /* what needs every token comes first */
    return s ? s->groups.group[*group].units : 1;
}

/* Whether the request of that arrival is still wanted. */
static bool is_awaited(const struct vt_engine *e, size_t i)
{
    const struct vt_due *due = &e->arrivals.due[i];

    return e->outlet[due->item].arrival == due->order;
}

struct vt_engine_state vt_engine_state(const struct vt_engine *e, vt_ns now)
{
    struct vt_engine_state x = {.kv_usage = pool_usage(e->pool)};

    e->ops->count(e->sched, &x.waiting, &x.running);
    for (size_t i = 0; i < e->arrivals.n; i++)
        x.waiting += e->arrivals.due[i].at <= now && is_awaited(e, i);
    return x;
}

void vt_extent_join(struct vt_extent *x, const struct vt_extent *other)
{
    if (other->step_tokens > x->step_tokens)
        x->step_tokens = other->step_tokens;
    if (other->running > x->running)
        x->running = other->running;
    if (other->context > x->context)
        x->context = other->context;
}

struct vt_engine_totals vt_engine_totals(const struct vt_engine *e)
{
    return e->totals;
}

void vt_offload_totals_add(struct vt_offload_totals *to,
                           const struct vt_offload_totals *t)
{
    to->found += t->found;
    to->loads += t->loads;
    to->stores += t->stores;
    to->load_bytes += t->load_bytes;
    to->store_bytes += t->store_bytes;
    to->loaded_chunks += t->loaded_chunks;
    to->stored_chunks += t->stored_chunks;
    to->evicted_chunks += t->evicted_chunks;
    to->no_room += t->no_room;
    to->load_ns += t->load_ns;
    to->store_ns += t->store_ns;
}

/* ---- a model's microseconds as whole nanoseconds ------------------------ */

#define LONGEST_US 1e15 /* far above what makes sense, far below what overflows */

/* As round() and trunc() would, which are calls; each step comes here six times. */
static inline double rounded_ns(double us)
{
    double ns = (us < LONGEST_US ? us : LONGEST_US) * 1e3, whole;

    if (!(us > 0.0))
        return 0.0;
    whole = (double)(int64_t)ns;
    return ns - whole >= 0.5 ? whole + 1 : whole;
}

static inline double cut_ns(double us)
{
    return us > 0.0 ? (double)(int64_t)(us < LONGEST_US ? us : LONGEST_US) * 1e3 : 0.0;
}

double engine_ns(double us)
{
    return rounded_ns(us);
}

static vt_ns duration(const struct vt_engine *e, double us)
{
    return (vt_ns)(e->ops->whole_us ? cut_ns(us) : rounded_ns(us));
}

/* ---- arrivals --------------------------------------------------------- */

/* When a request that comes now is in the scheduler's queue at the earliest. */
static vt_ns intake(struct vt_engine *e, vt_ns now, uint32_t prompt_tokens)
{
    const struct vt_latency *m = e->model;

    if (m->ops->arrival_us)
        now += duration(e, m->ops->arrival_us(m, prompt_tokens));
    if (m->intake_us <= 0 && m->intake_ktoken_us <= 0)
        return now;
    if (now < e->intake_free)
        now = e->intake_free;
    e->intake_free =
        now + duration(e, m->intake_us + 1e-3 * m->intake_ktoken_us * prompt_tokens);
    return e->intake_free;
}

int vt_engine_add(struct vt_engine *e, vt_ns now, const struct vt_request *r,
                  struct vt_err *err)
{
    uint32_t slot;
    int rc;

    /* Once prepared the request is the scheduler's: failures end the engine's use. */
    if ((rc = vt_request_check(&e->c, r, err)) ||
        (rc = e->ops->prepare(e->sched, r, &slot, err)) ||
        (rc = vt_grow(&e->outlet, &e->cap_outlets, (size_t)slot + 1, sizeof(*e->outlet),
                      err)))
        return rc;
    e->outlet[slot] = (struct outlet){.arrival = e->arrivals.order};
    now = intake(e, now, r->prompt_tokens);
    return vt_agenda_push(&e->arrivals, now, slot, err);
}

/* The first arrival has come or is not awaited any more: on to the next. */
static void pass_arrival(struct vt_engine *e)
{
    do
        vt_agenda_remove(&e->arrivals, 0);
    while (e->arrivals.n > 0 && !is_awaited(e, 0));
}

/* ---- what is due ------------------------------------------------------ */

static enum action next_alone(const struct vt_engine *e, vt_ns *at)
{
    bool arrived = e->arrivals.n > 0 && e->arrivals.due[0].at <= e->host_free;
    const struct flight *oldest = &e->flight[0];

    *at = e->host_free;
    if (e->n_flights < e->depth && !e->result_first &&
        ((!e->stuck && e->ops->has_requests(e->sched)) || arrived))
        return SCHEDULE;
    if (e->n_flights > 0) { /* the host blocks on it and takes no arrivals */
        if (oldest->ready_ns > e->host_free && !e->ops->foresees)
            *at = oldest->ready_ns;
        return RESULT;
    }
    *at = moves_due(e);
    if (e->arrivals.n > 0 && e->arrivals.due[0].at + e->wake_ns < *at)
        *at = e->arrivals.due[0].at + e->wake_ns;
    return *at != VT_NEVER ? SCHEDULE : NOTHING;
}

static enum action next_action(const struct vt_engine *e, vt_ns *at)
{
    return e->rank ? rank_action(e->rank, at) : next_alone(e, at);
}

vt_ns vt_engine_due(const struct vt_engine *e)
{
    vt_ns at;

    (void)next_action(e, &at);
    return at;
}

/* ---- changes from outside --------------------------------------------- */

/* Called before one: an engine that had nothing to do goes on from now, not from when
 * it came to rest. */
static void unstick(struct vt_engine *e, vt_ns now)
{
    bool rests = e->rank ? rank_rests(e->rank) : vt_engine_due(e) == VT_NEVER;

    if (rests && e->host_free < now)
        e->host_free = now;
    e->stuck = false;
}

int vt_engine_abort(struct vt_engine *e, vt_ns now, uint64_t tag)
{
    uint32_t slot;

    if (!e->ops->find(e->sched, tag, &slot))
        return VT_ECHECK;
    unstick(e, now);
    e->outlet[slot].arrival = NO_ARRIVAL;
    if (e->arrivals.n > 0 && !is_awaited(e, 0))
        pass_arrival(e);
    e->ops->abort(e->sched, slot);
    pulls_forget(&e->pulls, tag);
    return VT_OK;
}

int vt_engine_pause(struct vt_engine *e, vt_ns now, enum vt_pause p)
{
    struct vt_sched *s = vt_engine_sched(e);

    if (!s)
        return VT_EINPUT;
    unstick(e, now);
    if (e->rank)
        return rank_pause(e->rank, now, p);
    vt_sched_pause(s, p);
    return VT_OK;
}

int vt_engine_clear_cache(struct vt_engine *e, vt_ns now, bool preempt,
                          const uint64_t **tags, uint32_t *n)
{
    struct vt_sched *s = vt_engine_sched(e);

    *n = 0;
    if (!s)
        return VT_EINPUT;
    unstick(e, now);
    return vt_sched_reset_cache(s, preempt, tags, n) ? VT_OK : VT_ECHECK;
}

/* ---- scheduling a step ------------------------------------------------ */

/* The chance of draft n, from 1, when all before it were accepted. */
static double acceptance(const struct vt_engine_config *c, uint32_t n)
{
    uint32_t last = c->n_spec_positions;

    return last == 0 ? c->spec_acceptance : c->spec_position[(n < last ? n : last) - 1];
}

/* Each draft is accepted if all before it were, with a chance of its own. */
static int sample_drafts(struct vt_engine *e, struct flight *f, struct vt_err *err)
{
    uint32_t **cells = &e->sampled[f->number & 1];
    int rc = vt_grow(cells, &e->cap_sampled[f->number & 1], (size_t)f->plan->n + 1,
                     sizeof(**cells), err);

    if (rc != VT_OK)
        return rc;
    f->sampled = *cells;
    for (uint32_t i = 0; i < f->plan->n; i++) {
        const struct vt_item *it = &f->plan->item[i];
        uint32_t n = it->samples ? 1 : 0;

        while (n > 0 && n <= it->spec &&
               vt_draw_f64(e->c.seed, it->tag, f->number * 64 + n) <
                   acceptance(&e->c, n))
            n++;
        f->sampled[i] = n;
    }
    return VT_OK;
}

static struct vt_step_shape shape_of(const struct vt_engine *e, const struct flight *f)
{
    return (struct vt_step_shape){
        .plan = f->plan,
        .step = f->number,
        .max_num_seqs = e->c.max_num_seqs,
        .kv_blocks = e->c.num_gpu_blocks > 0 ? e->c.num_gpu_blocks - 1 : 0,
        .most_decode_tokens = e->c.max_num_seqs * (1 + e->c.num_spec_tokens),
        .seed = e->c.seed,
    };
}

/* Tells requests that were admitted soon after a long prompt, for models that time
 * them apart. It stays with a request. */
static void mark_churn(struct vt_engine *e, const struct flight *f)
{
    enum { LONG_TOKENS = 4096 };

    for (uint32_t i = 0; i < f->plan->n; i++) {
        struct vt_item *it = &f->plan->item[i];
        bool *churn = &e->outlet[it->slot].churn;

        if (it->origin == VT_NEW) {
            *churn = f->sched_ns - e->last_big <= VT_SEC;
            if (it->known - it->computed > LONG_TOKENS)
                e->last_big = f->sched_ns;
        }
        it->churn = *churn;
    }
}

static double draft_us(const struct vt_engine *e, const struct vt_step_plan *p)
{
    if (e->c.spec_draft_us <= 0.0)
        return 0.0;
    for (uint32_t i = 0; i < p->n; i++)
        if (p->item[i].samples)
            return e->c.spec_draft_us * e->c.num_spec_tokens;
    return 0.0;
}

/* Whether the step is the first of its size, which then is known. */
static bool meets_new(struct vt_engine *e, const struct vt_step_plan *p)
{
    uint32_t budget = e->c.max_num_scheduled_tokens > 0 ? e->c.max_num_scheduled_tokens
                                                        : e->c.max_num_batched_tokens;
    uint32_t requests = p->n_prefills + p->n_decodes;

    if (e->c.warmed_for == 0 || requests <= e->c.warmed_for ||
        p->prefill_tokens + p->decode_tokens < budget)
        return false;
    e->c.warmed_for = requests;
    return e->model->holds_new;
}

static inline void price(const struct vt_engine *e, const struct flight *f,
                         struct vt_step_cost *cost)
{
    struct vt_step_shape shape = shape_of(e, f);

    if (f->plan->n > 0)
        e->model->ops->step(e->model, &shape, cost);
    cost->held = f->held;
    cost->lead_us += f->handover_us;
    cost->launch_us += f->handover_us;
    cost->gpu_us += draft_us(e, f->plan);
    if (!(cost->gpu_us > e->ops->least_us)) /* fmax() is a call */
        cost->gpu_us = e->ops->least_us;
}

void engine_price(const struct vt_engine *e, const struct flight *f,
                  struct vt_step_cost *cost)
{
    price(e, f, cost);
}

/* Puts the step on the axis: when the host is free again and the GPU done. */
static void place(struct vt_engine *e, struct flight *f)
{
    struct vt_step_cost cost = {0};
    double gpu_free = (double)(e->gpu_free - f->sched_ns);
    struct vt_placement at;

    f->sched_end_ns = f->ready_ns = e->host_free = f->sched_ns;
    if (f->plan->n == 0 && e->ops->rests) {
        e->host_free += duration(e, f->handover_us);
        return;
    }
    price(e, f, &cost);
    /* Counted from the schedule call, so that whole nanoseconds stay exact. */
    at = e->ops->whole_us ? vt_step_place(&cost, 0, gpu_free, cut_ns)
                          : vt_step_place(&cost, 0, gpu_free, rounded_ns);
    f->handling_ns = duration(e, cost.done_us);
    f->sched_end_ns += (vt_ns)at.sched_end;
    f->ready_ns += (vt_ns)at.ready;
    e->host_free += (vt_ns)at.host_free;
    assert(f->ready_ns > f->sched_ns && f->ready_ns >= e->gpu_free); /* time moves */
    e->gpu_free = f->ready_ns;
}

/* Tables are as large as the scheduler's once no arrival names a slot. */
static void fit_tables(struct vt_engine *e)
{
    const struct vt_sched *s = vt_engine_sched(e);

    vt_shrink(&e->arrivals.due, &e->arrivals.cap, e->arrivals.n,
              sizeof(*e->arrivals.due));
    if (s && e->arrivals.n == 0)
        vt_shrink(&e->outlet, &e->cap_outlets, s->seats.n, sizeof(*e->outlet));
}

static int schedule_step(struct vt_engine *e, vt_ns at, struct vt_err *err)
{
    struct flight *f = &e->flight[e->n_flights];

    while (e->arrivals.n > 0 && e->arrivals.due[0].at <= at) {
        e->ops->enqueue(e->sched, (uint32_t)e->arrivals.due[0].item);
        pass_arrival(e);
    }
    if (e->rank && !e->ops->has_requests(e->sched)) {
        rank_scheduled(e->rank, at, NULL);
        return VT_OK;
    }
    /* vLLM's prefill_schedule_interval has no effect on an engine alone. */
    *f = (struct flight){.number = e->n_scheduled, .sched_ns = at};
    f->plan = e->ops->schedule(e->sched, e->rank && rank_throttles(e->rank));
    if (!f->plan)
        return vt_nomem(err);
    fit_tables(e);
    if (e->c.num_spec_tokens > 0 && sample_drafts(e, f, err) != VT_OK)
        return VT_ENOMEM;
    e->n_scheduled++;
    e->totals.preemptions += f->plan->n_preempted;
    if (e->totals.kv_usage_peak < f->plan->kv_usage)
        e->totals.kv_usage_peak = f->plan->kv_usage;
    vt_extent_join(&e->totals.extent,
                   &(struct vt_extent){f->plan->prefill_tokens + f->plan->decode_tokens,
                                       f->plan->running, f->plan->decode_ctx});
    e->result_first = f->plan->n == 0;
    /* Without naps, empty steps one behind the other would never let time pass. */
    e->stuck = f->plan->n == 0 && e->ops->rests &&
               (e->n_flights == 0 || (e->nap_ns == 0 && e->flight[0].plan->n == 0));
    if (e->model->needs_churn)
        mark_churn(e, f);
    f->held = meets_new(e, f->plan);
    e->n_flights++;
    if (e->connected && moves_begin(e, f, err) != VT_OK)
        return VT_ENOMEM;
    if (e->rank)
        rank_scheduled(e->rank, at, f);
    else
        place(e, f);
    if (!e->connected || (e->rank && f->plan->n > 0)) /* that is launched with others */
        return VT_OK;
    return moves_launch(e, f, err);
}

/* ---- taking a result -------------------------------------------------- */

static void time_rows(struct vt_engine *e, const struct vt_update *u,
                      const struct flight *f)
{
    vt_ns at = e->done.done_ns, took = at - e->done.sched_ns, token_ns;
    const struct vt_latency_ops *model = e->model->ops;
    struct vt_step_shape shape;
    uint32_t k = 0;

    for (uint32_t i = 0; e->plain_outlets && i < u->n_rows; i++)
        u->row[i].at = at;
    if (e->plain_outlets)
        return;
    token_ns = duration(e, e->model->token_us);
    shape = shape_of(e, f);
    for (uint32_t i = 0; i < u->n_rows; i++) {
        struct vt_row *row = &u->row[i];
        struct outlet *o = &e->outlet[row->slot];

        if (e->ops->sums_steps) {
            row->at = o->last_ns = (row->first ? at : o->last_ns + took) + token_ns;
            continue;
        }
        if (row->first && model->first_token_us) {
            const struct vt_first *x = &u->first[k];

            o->delay = duration(
                e, model->first_token_us(e->model, &shape, x->tag, x->prompt_tokens,
                                         x->prompt_tokens - x->cached_tokens));
        }
        k += row->first;
        o->delay += token_ns;
        row->at = at + o->delay;
    }
}

static int take_result(struct vt_engine *e, vt_ns at, struct vt_err *err)
{
    struct flight f = e->flight[0];
    bool idled = e->result_first; /* nothing was scheduled before this */
    const struct vt_update *u;

    e->flight[0] = e->flight[1];
    e->n_flights--;
    e->result_first = false;
    if (e->connected && moves_take(e, &f, err) != VT_OK)
        return VT_ENOMEM;
    u = e->ops->update(e->sched, f.plan, f.sampled);
    if (!u)
        return vt_nomem(err);
    if (f.plan->n > 0)
        e->stuck = false;
    if (at < f.ready_ns)
        at = f.ready_ns;
    e->host_free = at + f.handling_ns;
    for (uint32_t i = 0; e->end_ns > 0 && i < u->n_rows; i++)
        e->host_free += u->row[i].finish != VT_RUNNING_ON ? e->end_ns : 0;
    e->done = (struct vt_step){
        .number = f.number,
        .sched_ns = f.sched_ns,
        .sched_end_ns = f.sched_end_ns,
        .out_ns = at,
        .done_ns = e->host_free,
        .plan = f.plan,
        .row = u->row,
        .n_rows = u->n_rows,
        .first = u->first,
        .n_first = u->n_first,
        .cache = u->cache,
        .sampled = f.sampled,
    };
    time_rows(e, u, &f);
    e->totals.steps += f.plan->n > 0;
    if (e->totals.last_ns < e->host_free)
        e->totals.last_ns = e->host_free;
    if (e->ops->foresees && !e->ops->has_requests(e->sched))
        e->host_free = e->gpu_free = f.sched_ns;
    if (idled && e->ops->has_requests(e->sched))
        e->host_free += e->nap_ns;
    e->totals.cache_queries += u->looked_up;
    e->totals.cache_hits += u->found;
    return e->connected ? moves_taken(e, u, at, err) : VT_OK;
}

int vt_engine_step(struct vt_engine *e, vt_ns now, const struct vt_step **done,
                   struct vt_err *err)
{
    vt_ns at;
    enum action a = next_action(e, &at);
    int rc;

    *done = NULL;
    if (a == NOTHING || at > now)
        return VT_OK;
    if (a == SCHEDULE)
        return schedule_step(e, at, err);
    if (a == DUMMY) {
        rank_make_dummy(e->rank, at);
        return VT_OK;
    }
    rc = take_result(e, at, err);
    if (rc != VT_OK)
        return rc;
    *done = &e->done;
    if (e->rank)
        rank_took_result(e->rank);
    return VT_OK;
}
