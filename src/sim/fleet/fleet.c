/* fleet.c - many engines behind a router in one virtual time.
 *
 * What comes from outside (arrivals, KV caches on their way, the autoscaler) goes
 * before what engines do at the same time; among engines the lowest number goes first.
 */
#include <stdlib.h>
#include <string.h>

#include "sim/fleet/parts.h"

/* ---- whose turn it is ------------------------------------------------- */

static int turns_open(struct turns *t, uint32_t n, struct vt_err *err)
{
    t->n_leaves = 1;
    while (t->n_leaves < n)
        t->n_leaves *= 2;
    t->due = malloc(t->n_leaves * sizeof(*t->due));
    t->winner = calloc(2 * (size_t)t->n_leaves, sizeof(*t->winner));
    if (!t->due || !t->winner)
        return vt_nomem(err);
    for (uint32_t i = 0; i < t->n_leaves; i++) {
        t->due[i] = VT_NEVER;
        t->winner[t->n_leaves + i] = i;
    }
    for (uint32_t i = t->n_leaves; i-- > 1;)
        t->winner[i] = t->winner[2 * i];
    return VT_OK;
}

static void turns_set(struct turns *t, uint32_t i, vt_ns due)
{
    t->due[i] = due;
    for (uint32_t at = (t->n_leaves + i) / 2; at > 0; at /= 2) {
        uint32_t left = t->winner[2 * at], right = t->winner[2 * at + 1];

        t->winner[at] = t->due[right] < t->due[left] ? right : left;
    }
}

/* ---- engines come and go ---------------------------------------------- */

static void add_totals(struct vt_engine_totals *to, const struct vt_engine_totals *t)
{
    to->steps += t->steps;
    to->preemptions += t->preemptions;
    to->cache_queries += t->cache_queries;
    to->cache_hits += t->cache_hits;
    to->kv_usage_peak =
        t->kv_usage_peak > to->kv_usage_peak ? t->kv_usage_peak : to->kv_usage_peak;
    to->last_ns = t->last_ns > to->last_ns ? t->last_ns : to->last_ns;
    vt_extent_join(&to->extent, &t->extent);
    vt_offload_totals_add(&to->offload, &t->offload);
}

/* One that ran here before is gone, and its cache with it. */
int fleet_start(struct fleet *f, uint32_t i, vt_ns now, struct vt_err *err)
{
    struct instance *x = &f->inst[i];
    int rc;

    if (x->engine) {
        struct vt_engine_totals t = vt_engine_totals(x->engine);

        add_totals(&x->past, &t);
        vt_engine_free(x->engine);
        x->engine = NULL;
        router_forget(f->router, i);
    } else {
        x->from_ns = now;
    }
    x->state = SERVING;
    x->to_ns = -1;
    turns_set(&f->turns, i, VT_NEVER);
    rc = vt_engine_new(&x->engine, x->config, x->model, err);
    if (rc != VT_OK)
        return rc;
    look_start(f, i);
    if (f->lockstep)
        rc = vt_ranks_join(f->lockstep[i / f->f->ranks].ranks, i % f->f->ranks,
                           x->engine, err);
    return rc;
}

void fleet_stop(struct fleet *f, uint32_t i, vt_ns now)
{
    f->inst[i].state = OFF;
    f->inst[i].to_ns = now;
    look_change(f);
}

void fleet_follow(struct fleet *f, uint32_t i)
{
    turns_set(&f->turns, i, vt_engine_due(f->inst[i].engine));
}

/* To the engine that it was routed to. */
int fleet_add(struct fleet *f, const struct vt_request *q, vt_ns now,
              struct vt_err *err)
{
    uint32_t i = window_live(&f->r->window, q->tag)->instance;
    int rc = vt_engine_add(f->inst[i].engine, now, q, err);

    fleet_follow(f, i);
    return rc;
}

/* ---- events ----------------------------------------------------------- */

int fleet_arrive(struct fleet *f, vt_ns now, size_t *req, vt_ns *on, struct vt_err *err)
{
    int rc = run_arrive(f->r, now, req, on, err);

    return rc || *on == VT_NEVER ? rc : fleet_route(f, *req, now, POOL_MAIN, err);
}

static int route_arrival(struct fleet *f, vt_ns now, struct vt_err *err)
{
    struct vt_request q;
    size_t req;
    vt_ns on;
    int rc;

    if ((rc = fleet_arrive(f, now, &req, &on, err)) || on == VT_NEVER)
        return rc;
    if (run_is_over(f->r, req)) {
        f->seen[window_live(&f->r->window, req)->instance].in_flight--;
        return VT_OK;
    }
    q = run_hand_over(f->r, req);
    q.arrival = window_live(&f->r->window, req)->arrival;
    if (f->f->prefill_instances > 0) {
        q.max_tokens = 1;
        q.eos_at = VT_NO_STOP;
        q.apart = VT_PREFILL_ONLY;
    }
    return fleet_add(f, &q, on, err);
}

static int hang_up(struct fleet *f, struct vt_err *err)
{
    vt_ns now = run_leaves(f->r);
    size_t req;
    int rc = run_hang_up(f->r, &req, err);
    uint32_t i;

    if (rc != VT_OK || req == SIZE_MAX)
        return rc;
    i = window_live(&f->r->window, req)->instance;
    f->seen[i].in_flight--;
    (void)vt_engine_abort(f->inst[i].engine, now, req);
    if (f->inst[i].state == DRAINING && f->seen[i].in_flight == 0)
        fleet_stop(f, i, now);
    fleet_follow(f, i);
    return VT_OK;
}

static int note_step(struct fleet *f, struct sim_run *r, uint32_t i,
                     const struct vt_step *s, struct vt_err *err)
{
    struct instance *x = &f->inst[i];
    size_t before = r->finished;
    vt_ns busy_from = s->sched_ns > x->last_out ? s->sched_ns : x->last_out;
    uint32_t ended;
    int rc;

    if (s->out_ns > busy_from) {
        x->busy_ns += s->out_ns - busy_from;
        x->last_out = s->out_ns;
    }
    r->instance = i;
    r->from = &x->parting;
    if (i < f->f->prefill_instances)
        return pd_take_step(f, x, s, err);
    r->model = x->model;
    r->post_ns = x->post_ns;
    r->kv_given = f->f->prefill_instances > 0;
    pd_note_pulled(f, s);
    rc = run_take_step(r, s, err);
    ended = (uint32_t)(r->finished - before);
    x->requests += ended;
    f->seen[i].in_flight -= ended;
    if (x->state == DRAINING && f->seen[i].in_flight == 0)
        fleet_stop(f, i, s->done_ns);
    return rc;
}

/* What one rank did may have changed when the others are due. */
static void follow_ranks(struct fleet *f, uint32_t deployment)
{
    struct lockstep *l = &f->lockstep[deployment];
    uint32_t first = deployment * f->f->ranks;
    uint64_t moves = vt_ranks_moves(l->ranks);

    if (moves == l->moves)
        return;
    l->moves = moves;
    for (uint32_t i = first; i < first + f->f->ranks; i++)
        fleet_follow(f, i);
}

int fleet_act(struct fleet *f, struct sim_run *r, uint32_t i, vt_ns due,
              struct vt_err *err)
{
    struct instance *x = &f->inst[i];
    const struct vt_step *done;
    int rc = vt_engine_step(x->engine, due, &done, err);

    if (rc == VT_OK && done)
        rc = note_step(f, r, i, done, err);
    return rc == VT_OK && x->config->kv_events ? look_tell(x, due, err) : rc;
}

static int step_engine(struct fleet *f, uint32_t i, struct vt_err *err)
{
    int rc = fleet_act(f, f->r, i, f->turns.due[i], err);

    if (rc == VT_OK)
        rc = look_hear(f, i, err);
    fleet_follow(f, i);
    if (f->lockstep)
        follow_ranks(f, i / f->f->ranks);
    return rc;
}

static int run_to_end(struct fleet *f, struct vt_err *err)
{
    enum { LOOK_EVERY = 8192 };
    struct sim_run *r = f->r;
    int rc = VT_OK;

    for (uint32_t i = 0; i < f->n; i++)
        if (f->inst[i].engine)
            turns_set(&f->turns, i, vt_engine_due(f->inst[i].engine));
    for (uint64_t n = 1; r->finished < r->w->n && rc == VT_OK; n++) {
        uint32_t first = f->turns.winner[1];
        vt_ns due = f->turns.due[first], arrival = run_due(r);
        vt_ns transfer = f->transfers.n > 0 ? f->transfers.due[0].at : VT_NEVER;
        vt_ns scale = autoscale_due(f), at = transfer < arrival ? transfer : arrival;

        if (run_leaves(r) < at && run_leaves(r) < due) {
            rc = hang_up(f, err);
            continue;
        }
        if (due == VT_NEVER && f->transfers.n == 0 && arrival == VT_NEVER)
            return vt_fail(err, VT_EINPUT, "%zu of %zu requests can't be scheduled",
                           r->w->n - r->finished, r->w->n);
        if (scale < at)
            at = scale;
        if (at > due)
            rc = step_engine(f, first, err);
        else if (at == arrival)
            rc = route_arrival(f, at, err);
        else if (at == transfer)
            rc = pd_deliver(f, at, err);
        else
            rc = autoscale_act(f, at, err);
        if (n % LOOK_EVERY == 0 && rc == VT_OK)
            rc = run_look_up(r, at < due ? at : due, err);
    }
    return rc;
}

/* ---- life ------------------------------------------------------------- */

static int open_router(struct fleet *f, struct vt_err *err)
{
    const struct vt_workload *w = f->r->w;
    uint32_t size = vt_hash_block_size(f->inst[0].config);
    size_t n_sessions = w->n_sessions; /* of a streamed one */
    int rc;

    for (size_t i = 0; w->req && i < w->n; i++)
        if (w->req[i].session != VT_NO_TURN && w->req[i].session >= n_sessions)
            n_sessions = (size_t)w->req[i].session + 1;
    rc = router_new(&f->router,
                    &(struct router_config){.routing = f->f->routing ? f->f->routing
                                                                     : "round-robin",
                                            .n_instances = f->n,
                                            .n_sessions = n_sessions,
                                            .seed = f->f->seed,
                                            .vllm = f->inst[0].config->vllm,
                                            .lockstep = f->f->ranks > 1},
                    err);
    if (rc != VT_OK || !(router_wants(f->router) & WANT_KEYS))
        return rc;
    /* Keys of blocks of different sizes can't be compared. */
    for (uint32_t i = 1; i < f->n; i++)
        if (vt_hash_block_size(f->inst[i].config) != size)
            return vt_fail(err, VT_EINPUT,
                           "routing by prefix needs equal block sizes, but they are %u "
                           "and %u",
                           size, vt_hash_block_size(f->inst[i].config));
    return vt_keys_new(&f->keys, size, err);
}

static void set_instance(struct fleet *f, uint32_t i, bool events)
{
    const struct vt_sim_spec *spec = f->r->spec;
    const struct vt_replica *own = f->f->replica;
    struct instance *x = &f->inst[i];

    f->config[i] = own ? own[i].engine : spec->engine;
    f->config[i].kv_events |= events;
    x->config = &f->config[i];
    x->model = own ? own[i].model : spec->model;
    x->post_ns = vt_ns_from_us(x->model->post_us);
    x->view.delay = f->f->staleness_ns;
}

static int open_lockstep(struct fleet *f, struct vt_err *err)
{
    const struct vt_fleet *spec = f->f;
    int rc = VT_OK;

    if (spec->ranks < 2)
        return VT_OK;
    if (spec->autoscale.interval_ns > 0)
        return vt_fail(err, VT_EINPUT,
                       "engines in lockstep can't come and go one by one");
    if (spec->instances % spec->ranks > 0 || spec->prefill_instances % spec->ranks > 0)
        return vt_fail(err, VT_EINPUT,
                       "%u engines, %u of them for prefill, are not whole deployments "
                       "of %u ranks",
                       spec->instances, spec->prefill_instances, spec->ranks);
    f->lockstep = calloc(f->n / spec->ranks, sizeof(*f->lockstep));
    if (!f->lockstep)
        return vt_nomem(err);
    for (uint32_t i = 0; i < f->n / spec->ranks && rc == VT_OK; i++)
        rc = vt_ranks_new(&f->lockstep[i].ranks, spec->ranks, err);
    return rc;
}

static int open_fleet(struct fleet *f, struct sim_run *r, struct vt_err *err)
{
    const struct vt_fleet *spec = r->spec->fleet;
    vt_ns interval_ns = spec->autoscale.interval_ns;
    int rc;

    *f = (struct fleet){.r = r,
                        .f = spec,
                        .high_since = -1,
                        .low_since = -1,
                        .tick_ns = interval_ns > 0 ? interval_ns : VT_NEVER};
    if (spec->instances < 1 || spec->instances > 65536)
        return vt_fail(err, VT_EINPUT, "%u instances, must be 1 to 65536",
                       spec->instances);
    if (spec->staleness_ns < 0)
        return vt_fail(err, VT_EINPUT, "staleness is below 0");
    if ((rc = autoscale_check(spec, err)) || (rc = pd_check(r->spec, err)))
        return rc;
    f->n = interval_ns > 0 ? spec->autoscale.most : spec->instances;
    f->inst = calloc(f->n, sizeof(*f->inst));
    f->config = calloc(f->n, sizeof(*f->config));
    if (!f->inst || !f->config)
        return vt_nomem(err);
    if ((rc = look_open(f, err)))
        return rc;
    for (uint32_t i = 0; i < f->n; i++)
        set_instance(f, i, false);
    if ((rc = open_router(f, err)))
        return rc;
    for (uint32_t i = 0; i < f->n; i++)
        set_instance(f, i, (router_wants(f->router) & WANT_CACHED) != 0);
    for (uint32_t i = 0; i < (spec->replica ? f->n : 1); i++)
        if ((rc = run_check_requests(r->w, f->inst[i].config, err)))
            return rc;
    if ((rc = open_lockstep(f, err)))
        return rc;
    rc = turns_open(&f->turns, f->n, err);
    for (uint32_t i = 0; i < spec->instances && rc == VT_OK; i++)
        rc = fleet_start(f, i, 0, err);
    return rc;
}

static void close_fleet(struct fleet *f)
{
    for (uint32_t i = 0; f->inst && i < f->n; i++) {
        vt_engine_free(f->inst[i].engine);
        free(f->inst[i].parting.tag);
        free(f->inst[i].inbox.sent);
    }
    for (uint32_t i = 0; f->lockstep && i < f->n / f->f->ranks; i++)
        vt_ranks_free(f->lockstep[i].ranks);
    look_close(f);
    free(f->lockstep);
    free(f->inst);
    free(f->config);
    free(f->turns.due);
    free(f->turns.winner);
    vt_agenda_free(&f->transfers);
    vt_keys_free(f->keys);
    router_free(f->router);
}

/* ---- what came of it -------------------------------------------------- */

static struct vt_engine_totals totals_of(const struct instance *x)
{
    struct vt_engine_totals t = x->past;

    if (x->engine) {
        struct vt_engine_totals last = vt_engine_totals(x->engine);

        add_totals(&t, &last);
    }
    return t;
}

static struct vt_engine_totals sum_totals(struct fleet *f)
{
    struct vt_replica_summary *out = f->r->spec->replica;
    struct vt_engine_totals all = {0};

    for (uint32_t i = 0; i < f->n; i++) {
        struct vt_engine_totals t = totals_of(&f->inst[i]);

        /* A decode engine looks up what it was given anyway. */
        if (f->f->prefill_instances > 0 && i >= f->f->prefill_instances)
            t.cache_queries = t.cache_hits = 0;
        add_totals(&all, &t);
    }
    for (uint32_t i = 0; i < f->n && out; i++) {
        const struct instance *x = &f->inst[i];
        struct vt_engine_totals t = totals_of(x);

        out[i] = (struct vt_replica_summary){0};
        if (!x->engine)
            continue;
        out[i] = (struct vt_replica_summary){
            .requests = x->requests,
            .steps = t.steps,
            .preemptions = t.preemptions,
            .prefix_hit_rate = t.cache_queries > 0
                                   ? (double)t.cache_hits / (double)t.cache_queries
                                   : 0,
            .kv_usage_peak = t.kv_usage_peak,
            .busy_s = (double)x->busy_ns / 1e9,
            .from_ns = x->from_ns,
            .to_ns = x->to_ns >= 0 ? x->to_ns : all.last_ns,
        };
    }
    return all;
}

static void sum_lockstep(const struct fleet *f, struct vt_ranks_totals *all)
{
    *all = (struct vt_ranks_totals){0};
    for (uint32_t i = 0; f->lockstep && i < f->n / f->f->ranks; i++) {
        struct vt_ranks_totals t = vt_ranks_totals(f->lockstep[i].ranks);

        all->waves += t.waves;
        all->passes += t.passes;
        all->dummies += t.dummies;
        all->rank_ns += t.rank_ns;
        all->waited_ns += t.waited_ns;
    }
}

int fleet_simulate(struct sim_run *r, struct vt_engine_totals *t, struct vt_err *err)
{
    struct fleet f;
    int rc = open_fleet(&f, r, err);

    if (rc == VT_OK && !(rc = windows_run(&f, err)))
        rc = run_to_end(&f, err);
    if (rc == VT_OK || rc == VT_ECHECK)
        *t = sum_totals(&f);
    if (rc == VT_OK && r->spec->lockstep)
        sum_lockstep(&f, r->spec->lockstep);
    close_fleet(&f);
    return rc;
}
