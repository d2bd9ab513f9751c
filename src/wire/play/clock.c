/* clock.c - the clock thread: sleeps until something is due, and does it.
 *
 * Every deadline is an absolute time on the engines' axis, so that being late once
 * makes nothing later after it. */
#include "wire/play/clock.h"

enum {
    ACTIONS = 64, /* of one engine, before others and the inbox are looked at */
};

/* ---- life ------------------------------------------------------------- */

static int open_ranks(struct play_clock *k, struct vt_err *err)
{
    const struct vt_play_config *c = k->p->c;
    const struct vt_wire_line *line =
        c->line != NULL ? c->line : vt_wire_line_of_request(0);
    int rc = VT_OK;

    for (uint32_t i = 0; i < c->n_engines && rc == VT_OK; i++) {
        struct vt_engine_config e = k->p->engine;

        e.seed = vt_hash2(c->seed, c->first_rank + i);
        k->rank[i].index = c->first_rank + i;
        k->rank[i].line = line;
        rc = vt_engine_new(&k->rank[i].core, &e, c->model, err);
    }
    return rc;
}

int play_clock_open(struct play *p, struct vt_err *err)
{
    struct play_clock *k = calloc(1, sizeof(*k));
    uint32_t drafts = p->engine.num_spec_tokens + 1;

    if (k == NULL)
        return vt_nomem(err);
    p->clock = k;
    k->p = p;
    k->rank = calloc(p->c->n_engines, sizeof(*k->rank));
    k->accepted = calloc(drafts, sizeof(*k->accepted));
    k->drafted = calloc(drafts, sizeof(*k->drafted));
    if (k->rank == NULL || k->accepted == NULL || k->drafted == NULL)
        return vt_nomem(err);
    return open_ranks(k, err);
}

static void close_rank(struct rank *r)
{
    vt_engine_free(r->core);
    for (uint32_t i = 0; i < r->n_push; i++)
        sock_close(r->push[i]);
    sock_close(r->coordinator);
    clock_drop_held(r);
    free(r->push);
    free(r->held);
    free(r->lora);
    vt_buf_free(&r->weight_version);
    vt_agenda_free(&r->replays);
}

void play_clock_close(struct play *p)
{
    struct play_clock *k = p->clock;

    if (k == NULL)
        return;
    clock_drop_parcels(k);
    for (uint32_t i = 0; k->rank != NULL && i < p->c->n_engines; i++)
        close_rank(&k->rank[i]);
    table_free(&k->table);
    vt_agenda_free(&k->due);
    logprobs_aux_free(&k->aux);
    vt_buf_free(&k->message);
    vt_buf_free(&k->values);
    free(k->rank);
    free(k->parcel);
    free(k->token);
    free(k->order);
    free(k->ids);
    free(k->accepted);
    free(k->drafted);
    free(k);
    p->clock = NULL;
}

void play_clock_sums(const struct play *p, struct vt_play_summary *out)
{
    const struct play_clock *k = p->clock;

    out->requests = k->sums.requests;
    out->finished = k->sums.finished;
    out->aborted = k->sums.aborted;
    out->failed = k->sums.failed;
    out->tokens = k->sums.tokens;
    out->steps = k->sums.steps;
    out->messages = k->sums.messages;
    out->late_p50_us = (double)vt_late_at(&k->late, 0.5) / 1e3;
    out->late_p99_us = (double)vt_late_at(&k->late, 0.99) / 1e3;
    out->late_max_us = (double)k->late.max / 1e3;
}

/* ---- waiting ---------------------------------------------------------- */

static bool note_waits(const struct play *p)
{
    return vt_inbox_waits(&p->to_clock);
}

static void sleep_until(struct play *p, vt_ns wall)
{
    if (vt_wait_fd(p->to_clock.fd, wall))
        vt_inbox_calm(&p->to_clock);
}

/* The end of a wait for a message's deadline is spent awake. */
static void wait_until(struct play *p, vt_ns at, bool precisely)
{
    vt_ns wall = at == VT_NEVER ? VT_NEVER : play_wall_ns(p, at);

    sleep_until(p, precisely && wall != VT_NEVER ? wall - VT_SPIN_NS : wall);
    while (precisely && wall != VT_NEVER && !note_waits(p) && vt_wall_ns() < wall)
        ;
}

static vt_ns sooner(vt_ns a, vt_ns b)
{
    return a < b ? a : b;
}

static vt_ns next_due(const struct play_clock *k, bool *precisely)
{
    vt_ns message = k->due.n > 0 ? k->due.due[0].at : VT_NEVER;
    vt_ns at = sooner(VT_NEVER, clock_wave_due(k));

    for (uint32_t i = 0; i < k->p->c->n_engines; i++) {
        const struct rank *r = &k->rank[i];

        at = sooner(at, vt_engine_due(r->core));
        if (r->replays.n > 0)
            message = sooner(message, r->replays.due[0].at);
    }
    if (k->stopping)
        at = sooner(at, k->stop_ns);
    *precisely = message <= at;
    return sooner(at, message);
}

/* ---- working ---------------------------------------------------------- */

int clock_act(struct play_clock *k, struct rank *r, vt_ns now, struct vt_err *err)
{
    const struct vt_step *done;
    int rc = vt_engine_step(r->core, now, &done, err);

    if (rc == VT_OK && k->p->engine.kv_events)
        rc = clock_kv(k, r, err);
    if (rc == VT_OK && done != NULL)
        rc = clock_emit(k, r, done, err);
    return rc;
}

static int run_rank(struct play_clock *k, struct rank *r, vt_ns now, struct vt_err *err)
{
    int rc = clock_replay_step(k, r, now, err);

    for (int i = 0; i < ACTIONS && rc == VT_OK && vt_engine_due(r->core) <= now; i++) {
        rc = clock_act(k, r, now, err);
        clock_flush(k, now);
        if (note_waits(k->p))
            break;
    }
    if (rc == VT_OK)
        rc = clock_answer_held(k, r, now, err);
    return rc;
}

static int pass(struct play_clock *k, struct vt_err *err)
{
    vt_ns now = play_now(k->p);
    int rc = clock_take_notes(k, now, err);

    for (uint32_t i = 0; i < k->p->c->n_engines && rc == VT_OK; i++)
        rc = run_rank(k, &k->rank[i], now, err);
    if (rc == VT_OK)
        rc = clock_coordinate(k, now, err);
    clock_flush(k, now);
    return rc;
}

/* After a stop: until all requests are done, or time is up. */
static bool over(struct play_clock *k, struct vt_err *err, int *rc)
{
    vt_ns now = play_now(k->p);

    if (!k->stopping || (k->table.n > 0 && now < k->stop_ns))
        return false;
    for (uint32_t i = 0; i < k->p->c->n_engines && *rc == VT_OK; i++)
        *rc = clock_abort_all(k, &k->rank[i], UINT32_MAX, true, now, err);
    clock_flush(k, VT_NEVER);
    return true;
}

int play_clock_run(struct play *p, struct vt_err *err)
{
    struct play_clock *k = p->clock;
    int rc = VT_OK;

    vt_wait_sharply();
    while (rc == VT_OK) {
        bool precisely;
        vt_ns at;

        rc = pass(k, err);
        if (rc == VT_OK && atomic_load(&p->failed))
            rc = vt_nomem(err);
        if (rc != VT_OK || over(k, err, &rc))
            break;
        at = next_due(k, &precisely);
        if (!note_waits(p) && (at == VT_NEVER || at > play_now(p)))
            wait_until(p, at, precisely);
    }
    if (rc != VT_OK)
        clock_say_dead(k);
    return rc;
}
