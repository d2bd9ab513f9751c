/* ranks.c - data-parallel engines of a mixture of experts: every pass through the model
 * is one of all of them.
 *
 * Each rank repeats what vLLM's loop does: it takes arrivals and decides a step, makes
 * the pass with the others, takes the result of the step before, and at some passes
 * agrees with the others whether to go on. A pass is launched when the last rank has
 * come to it, since all tell each other their numbers of tokens first, and takes as
 * long as that of the slowest. */
#include <assert.h>
#include <math.h>

#include "core/engine.h"
#include "core/wave.h"

enum phase {
    BEGIN,  /* of a turn of the loop; it rests where nothing is to be done */
    LAUNCH, /* it has come to the pass and waits for the others */
    DUE,    /* the result of the oldest step is due */
    EMPTY,  /* it must come to the pass with nothing of its own */
    AGREE   /* it waits for what the others say */
};

struct rank {
    struct vt_ranks *all;
    struct vt_engine *e; /* NULL: none yet, or it has ended */
    struct wave wave;
    enum phase phase;
    bool executes;            /* the pass has a step of its own */
    vt_ns came_ns;            /* to the pass */
    struct vt_step_cost cost; /* of its part, from there */
};

struct vt_ranks {
    uint32_t n, n_came; /* n_came: to the pass */
    uint32_t n_deaf;    /* that have not been let go on since all paused */
    struct wave_votes votes;
    vt_ns ready[2]; /* when the last pass was done, and the one before it */
    uint64_t moves;
    struct vt_ranks_totals totals;
    struct rank rank[];
};

/* ---- life ------------------------------------------------------------- */

int vt_ranks_new(struct vt_ranks **out, uint32_t n, struct vt_err *err)
{
    struct vt_ranks *r = calloc(1, sizeof(*r) + n * sizeof(*r->rank));

    *out = r;
    if (!r)
        return vt_nomem(err);
    r->n = n;
    for (uint32_t i = 0; i < n; i++)
        r->rank[i].all = r;
    return VT_OK;
}

void vt_ranks_free(struct vt_ranks *r)
{
    for (uint32_t i = 0; r && i < r->n; i++)
        if (r->rank[i].e)
            r->rank[i].e->rank = NULL;
    free(r);
}

int vt_ranks_join(struct vt_ranks *r, uint32_t i, struct vt_engine *e,
                  struct vt_err *err)
{
    struct rank *k = &r->rank[i];

    assert(i < r->n && !k->e && !e->rank && e->n_scheduled == 0);
    if (e->ops != &sched_vllm)
        return vt_fail(err, VT_EINPUT, "only vLLM's engines go in lockstep");
    k->e = e;
    wave_init(&k->wave, &e->c);
    e->rank = k;
    return VT_OK;
}

void rank_leave(struct rank *k)
{
    k->e = NULL;
}

struct vt_ranks_totals vt_ranks_totals(const struct vt_ranks *r)
{
    return r->totals;
}

uint64_t vt_ranks_moves(const struct vt_ranks *r)
{
    return r->moves;
}

/* ---- what is due ------------------------------------------------------ */

static vt_ns later(vt_ns a, vt_ns b)
{
    return a > b ? a : b;
}

static bool has_requests(const struct rank *k)
{
    return vt_sched_has_requests(k->e->sched);
}

static bool is_unfinished(const struct rank *k)
{
    return vt_sched_has_unfinished(k->e->sched);
}

/* It was let go on after a pause, but another one was not yet. */
static bool is_held(const struct rank *k)
{
    return k->all->n_deaf > 0 && !k->wave.deaf;
}

enum action rank_action(const struct rank *k, vt_ns *at)
{
    const struct vt_engine *e = k->e;
    vt_ns first = e->host_free;

    *at = VT_NEVER;
    switch (k->phase) {
    case BEGIN:
        if (is_held(k))
            return NOTHING;
        if (!k->wave.running && e->n_flights == 0 && !has_requests(k)) {
            if (e->arrivals.n == 0)
                return NOTHING;
            first = e->arrivals.due[0].at;
            if (first > e->host_free) /* it sleeps until then */
                first += e->wake_ns;
        }
        *at = later(first, e->host_free);
        return SCHEDULE;
    case DUE:
        *at = later(e->flight[0].ready_ns, e->host_free);
        return RESULT;
    case EMPTY:
        *at = e->host_free;
        return DUMMY;
    default:
        return NOTHING;
    }
}

bool rank_rests(const struct rank *k)
{
    vt_ns at;

    return k->phase == BEGIN && rank_action(k, &at) == NOTHING;
}

bool rank_throttles(const struct rank *k)
{
    return wave_throttles(&k->wave, k->e->c.prefill_schedule_interval);
}

/* ---- agreements ------------------------------------------------------- */

static void agree(struct vt_ranks *r)
{
    vt_ns at = 0;

    assert(r->votes.ranks == r->n);
    for (uint32_t i = 0; i < r->n; i++)
        at = later(at, r->rank[i].e->host_free);
    for (uint32_t i = 0; i < r->n; i++) {
        struct rank *k = &r->rank[i];

        k->e->host_free = at;
        k->phase = BEGIN;
        wave_agree(&k->wave, &r->votes);
        r->n_deaf += r->votes.pausing == r->n;
    }
    r->votes = (struct wave_votes){0};
    r->moves++;
}

/* The pass was made, and what was to be done in this turn. */
static void end_turn(struct rank *k)
{
    struct wave_votes *v = &k->all->votes;

    k->phase = BEGIN;
    if (!wave_pass(&k->wave))
        return;
    k->phase = AGREE;
    v->ranks++;
    v->unfinished += is_unfinished(k);
    v->pausing += k->wave.pausing;
    if (v->ranks == k->all->n)
        agree(k->all);
}

/* ---- passes ----------------------------------------------------------- */

static struct vt_placement place_at(const struct vt_step_cost *c, vt_ns at,
                                    vt_ns gpu_free)
{
    return vt_step_place(c, 0, (double)(gpu_free - at), engine_ns);
}

/* When it would have been done but for the others. */
static vt_ns ready_alone(const struct rank *k, vt_ns earliest)
{
    vt_ns at = later(k->came_ns, earliest);

    return at + (vt_ns)place_at(&k->cost, at, k->all->ready[0]).ready;
}

static void count_pass(struct vt_ranks *r, vt_ns ready, vt_ns earliest)
{
    struct vt_ranks_totals *t = &r->totals;
    vt_ns from = VT_NEVER;

    t->waves += r->rank[0].wave.pass == 0;
    t->passes++;
    for (uint32_t i = 0; i < r->n; i++) {
        const struct rank *k = &r->rank[i];

        assert(k->wave.pass == r->rank[0].wave.pass);
        from = k->came_ns < from ? k->came_ns : from;
        t->dummies += !k->executes;
        t->waited_ns += ready - ready_alone(k, earliest);
    }
    t->rank_ns += (ready - later(from, r->ready[0])) * r->n;
}

/* All have come. With a step in flight the host may be one pass ahead of the GPU: the
 * buffers that a launch fills are those of the pass before. Otherwise it is not. */
static void launch(struct vt_ranks *r)
{
    vt_ns earliest = r->ready[r->rank[0].e->depth - 1], at = earliest, ready = 0;
    struct vt_step_cost slowest = {0};

    r->n_came = 0;
    for (uint32_t i = 0; i < r->n; i++) {
        const struct vt_step_cost *c = &r->rank[i].cost;

        at = later(at, r->rank[i].came_ns);
        slowest.lead_us = fmax(slowest.lead_us, c->lead_us);
        slowest.gpu_us = fmax(slowest.gpu_us, c->gpu_us);
    }
    for (uint32_t i = 0; i < r->n; i++) {
        struct vt_step_cost c = r->rank[i].cost;
        struct vt_placement p;

        c.lead_us = slowest.lead_us;
        c.gpu_us = slowest.gpu_us;
        p = place_at(&c, at, r->ready[0]);
        r->rank[i].e->host_free = at + (vt_ns)p.host_free;
        ready = later(ready, at + (vt_ns)p.ready);
    }
    assert(ready > at && ready > r->ready[0]); /* time moves */
    count_pass(r, ready, earliest);
    r->ready[1] = r->ready[0];
    r->ready[0] = ready;
    r->moves++;
    for (uint32_t i = 0; i < r->n; i++) {
        struct rank *k = &r->rank[i];
        struct vt_engine *e = k->e;

        e->gpu_free = ready;
        if (k->executes) {
            struct flight *f = &e->flight[e->n_flights - 1];

            f->ready_ns = ready;
            e->failed |= e->connected && moves_launch(e, f, NULL) != VT_OK;
        }
        if (k->executes && e->n_flights == e->depth)
            k->phase = DUE;
        else
            end_turn(k);
    }
}

/* The ranks that rest begin with this one. A rank that wants to rest itself wakes
 * nobody: the others are asked for the same. */
static void wake_others(const struct rank *k, vt_ns at)
{
    struct vt_ranks *r = k->all;

    if (k->wave.running || k->wave.pausing)
        return;
    for (uint32_t i = 0; i < r->n; i++) {
        struct rank *other = &r->rank[i];

        if (other == k || other->wave.running)
            continue;
        wave_start(&other->wave, k->wave.number);
        if (other->wave.running && other->phase == BEGIN)
            other->e->host_free = later(other->e->host_free, at);
    }
    r->moves++;
}

static void come_to_pass(struct rank *k, vt_ns at)
{
    k->phase = LAUNCH;
    k->came_ns = at + (vt_ns)engine_ns(k->cost.sched_us);
    k->cost.sched_us = 0;
    wake_others(k, at);
    if (++k->all->n_came == k->all->n)
        launch(k->all);
}

/* One request's decoding, with drafts, of which nobody sees anything. */
void rank_make_dummy(struct rank *k, vt_ns at)
{
    uint32_t drafts = k->e->c.num_spec_tokens;
    struct vt_item item = {.tokens = 1 + drafts,
                           .known = 1 + drafts,
                           .prompt_tokens = 1,
                           .spec = (uint16_t)drafts,
                           .samples = true};
    struct vt_step_plan plan = {
        .item = &item, .n = 1, .n_decodes = 1, .decode_tokens = 1 + drafts};
    struct flight f = {.plan = &plan, .number = k->e->n_scheduled};

    k->executes = false;
    k->cost = (struct vt_step_cost){0};
    engine_price(k->e, &f, &k->cost);
    k->cost.sched_us = 0; /* the scheduler has no part in it */
    come_to_pass(k, at);
}

/* ---- one turn --------------------------------------------------------- */

static void go_on_without_step(struct rank *k)
{
    k->phase = wave_needs_dummy(&k->wave, is_unfinished(k)) ? EMPTY : BEGIN;
}

void rank_scheduled(struct rank *k, vt_ns at, struct flight *f)
{
    struct vt_engine *e = k->e;

    e->host_free = at;
    k->executes = f && f->plan->n > 0;
    if (k->executes) {
        k->cost = (struct vt_step_cost){0};
        engine_price(e, f, &k->cost);
        f->handling_ns = (vt_ns)engine_ns(k->cost.done_us);
        f->sched_end_ns = at + (vt_ns)engine_ns(k->cost.sched_us);
        come_to_pass(k, later(at, f->flushed_ns));
        return;
    }
    if (f) /* an empty step is over at once, but takes its place among the results */
        f->sched_end_ns = f->ready_ns = at;
    if (e->n_flights == e->depth || (e->n_flights > 0 && !has_requests(k)))
        k->phase = DUE;
    else
        go_on_without_step(k);
}

void rank_took_result(struct rank *k)
{
    if (k->executes)
        end_turn(k);
    else
        go_on_without_step(k);
}

/* ---- pauses ----------------------------------------------------------- */

/* The last one has been let go on: what was left over starts a wave. */
static void go_on_together(struct vt_ranks *r, vt_ns now)
{
    bool unfinished = false;

    for (uint32_t i = 0; i < r->n; i++)
        unfinished |= is_unfinished(&r->rank[i]);
    for (uint32_t i = 0; i < r->n; i++) {
        struct rank *k = &r->rank[i];

        k->wave.running |= unfinished;
        if (k->phase == BEGIN)
            k->e->host_free = later(k->e->host_free, now);
    }
    r->moves++;
}

int rank_pause(struct rank *k, vt_ns now, enum vt_pause p)
{
    bool was_deaf = k->wave.deaf;

    if (p != VT_RUN) {
        vt_sched_pause(k->e->sched, p);
        wave_pause(&k->wave);
        return VT_OK;
    }
    if (!wave_resume(&k->wave))
        return VT_ECHECK;
    if (!was_deaf) /* it is not paused */
        return VT_OK;
    vt_sched_pause(k->e->sched, p);
    if (--k->all->n_deaf == 0)
        go_on_together(k->all, now);
    return VT_OK;
}
