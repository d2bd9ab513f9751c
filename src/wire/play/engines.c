/* engines.c - the engine thread: takes notes, lets the driver do what is due, waits.
 *
 * Every deadline is an absolute time on the engines' axis, so that being late once
 * makes nothing later after it. */
#include "wire/play/engines.h"

#include <string.h>

/* ---- requests by engine and id, as frontends name them ----------------- */

struct sought {
    uint32_t engine;
    struct mp_span id;
};

static bool is_sought(const void *sought, uint64_t value)
{
    const struct sought *s = sought;
    const struct play_request *r = (const struct play_request *)(uintptr_t)value;

    return r->engine == s->engine && r->id_len == s->id.len &&
           memcmp(r->id, s->id.at, s->id.len) == 0;
}

static uint64_t *place_of(const struct play_engines *k, uint32_t engine,
                          struct mp_span id)
{
    struct sought s = {engine, id};

    return vt_map_find(&k->ids, vt_hash_bytes(id.at, id.len, engine), is_sought, &s);
}

int engines_claim_id(struct play_engines *k, struct play_request *q, struct vt_err *err)
{
    uint64_t *place = place_of(k, q->engine, play_request_id(q));

    if (place)
        return vt_fail(err, VT_EINPUT, "its id is in use");
    place = vt_map_add(&k->ids, vt_hash_bytes(q->id, q->id_len, q->engine));
    if (!place)
        return vt_nomem(err);
    *place = (uintptr_t)q;
    return VT_OK;
}

struct play_request *engines_find(const struct play_engines *k, uint32_t engine,
                                  struct mp_span id)
{
    const uint64_t *place = place_of(k, engine, id);

    return place ? (struct play_request *)(uintptr_t)*place : NULL;
}

void engines_forget(struct play_engines *k, struct play_request *q)
{
    spans_gone(q);
    if (k->peers)
        vt_peers_over(k->peers, &q->kv);
    vt_map_drop(&k->ids, place_of(k, q->engine, play_request_id(q)));
    vt_driver_remove(k->driver, q->tag);
}

/* ---- block events ----------------------------------------------------- */

static const struct vt_blocks *blocks_of(void *engines, uint64_t tag)
{
    const struct play_engines *k = engines;
    const struct play_request *q = vt_driver_find(k->driver, tag);

    return q ? &q->blocks : NULL; /* one aborted in this very pass is gone */
}

/* Encoded while the requests that know their tokens are there; intake publishes them.
 */
static int pass_kv_events(struct play_engines *k, struct rank *r, struct vt_err *err)
{
    struct vt_kv_batch *b = &k->kv;
    struct note *n;

    b->vllm = r->release;
    vt_kv_batch_collect(b, &k->p->engine, vt_engine_sched(r->core), blocks_of, k);
    if (b->events.failed)
        return vt_nomem(err);
    if (b->n_events == 0)
        return VT_OK;
    n = note_with(NOTE_KV, r->number, b->events.data, b->events.len);
    if (!n)
        return vt_nomem(err);
    n->n_events = b->n_events;
    n->unix_s = vt_unix_s();
    vt_buf_clear(&b->events);
    b->n_events = 0;
    play_send_note(k->p, &k->p->to_intake, n);
    return VT_OK;
}

/* ---- life ------------------------------------------------------------- */

static struct vt_kv_ask *ask_of(void *request)
{
    return &((struct play_request *)request)->kv;
}

/* On the side channel's thread. */
static void hear_peer(void *engines, const struct vt_heard *h)
{
    struct play_engines *k = engines;
    struct note *n = note_with(NOTE_PEER, 0, h->id, h->len);

    if (!n)
        return; /* the lease will end it */
    n->heard = *h;
    play_send_note(k->p, &k->p->to_engines, n);
}

static int after_step(void *engines, uint32_t engine, const struct vt_step *done,
                      struct vt_err *err)
{
    struct play_engines *k = engines;
    struct rank *r = &k->rank[engine];
    int rc = k->p->engine.kv_events ? pass_kv_events(k, r, err) : VT_OK;

    if (rc != VT_OK || !done)
        return rc;
    if (k->peers && (rc = vt_peers_step(k->peers, k->driver, done, ask_of, err)))
        return rc;
    spans_step(k, r, done); /* those that it ended are forgotten then */
    return engines_emit(k, r, done, err);
}

static bool note_waits(void *engines)
{
    const struct play_engines *k = engines;

    return vt_inbox_waits(&k->p->to_engines);
}

static void say_slow(void *engines, const struct vt_slow *s)
{
    const struct play_engines *k = engines;
    char text[160];

    vt_slow_text(s, text);
    play_log(k->p, "%s", text);
}

static const struct vt_driver_ops driver_ops = {
    .stepped = after_step,
    .leave = engines_leave,
    .drop = engines_drop_parcel,
    .interrupt = note_waits,
    .slow = say_slow,
};

int play_engines_open(struct play *p, struct vt_err *err)
{
    const struct vt_play_config *c = p->c;
    struct play_engines *k = calloc(1, sizeof(*k));
    uint32_t drafts = p->engine.num_spec_tokens + 1;
    struct vt_driver_config d = {
        .engine = p->engine,
        .model = c->model,
        .n_engines = c->n_engines,
        .first_rank = c->first_rank,
        .seed = c->seed,
        .axis = p->axis,
        .parcel_bytes = sizeof(struct parcel),
        .ops = &driver_ops,
        .user = k,
    };
    int rc;

    if (!k)
        return vt_nomem(err);
    p->engines = k;
    k->p = p;
    k->rank = calloc(c->n_engines, sizeof(*k->rank));
    k->accepted = calloc(drafts, sizeof(*k->accepted));
    k->drafted = calloc(drafts, sizeof(*k->drafted));
    if (!k->rank || !k->accepted || !k->drafted)
        return vt_nomem(err);
    rc = vt_driver_open(&k->driver, &d, err);
    for (uint32_t i = 0; i < c->n_engines && rc == VT_OK; i++) {
        k->rank[i].number = i;
        k->rank[i].index = c->first_rank + i;
        k->rank[i].core = vt_driver_engine(k->driver, i);
        k->rank[i].release = p->engine.vllm;
        k->rank[i].line = c->line ? c->line : vt_wire_line_of_request(0);
    }
    if (rc == VT_OK && p->engine.remote.on)
        rc = vt_peers_open(&k->peers, &c->side, hear_peer, k, err);
    return rc;
}

void play_engines_close(struct play *p)
{
    struct play_engines *k = p->engines;
    struct play_request *q;

    if (!k)
        return;
    vt_peers_close(k->peers);
    for (size_t at = 0; k->driver && (q = vt_driver_each(k->driver, &at));)
        play_request_free(q);
    vt_driver_close(k->driver);
    for (uint32_t i = 0; k->rank && i < p->c->n_engines; i++) {
        struct rank *r = &k->rank[i];

        for (uint32_t c = 0; c < r->n_push; c++)
            sock_close(r->push[c]);
        sock_close(r->coordinator);
        engines_drop_held(r);
        free(r->push);
        free(r->held);
        free(r->lora);
        vt_buf_free(&r->weight_version);
        vt_agenda_free(&r->replays);
    }
    vt_map_free(&k->ids);
    logprobs_aux_free(&k->aux);
    vt_buf_free(&k->kv.events);
    vt_buf_free(&k->message);
    vt_buf_free(&k->values);
    vt_buf_free(&k->kept);
    vt_buf_free(&k->connector);
    free(k->rank);
    free(k->token);
    free(k->order);
    free(k->ended);
    free(k->accepted);
    free(k->drafted);
    free(k);
    p->engines = NULL;
}

void play_engines_sums(const struct play *p, struct vt_play_summary *out)
{
    const struct play_engines *k = p->engines;
    const struct vt_late *late = k->driver ? vt_driver_late(k->driver) : NULL;

    *out = k->sums;
    if (late) {
        out->late_p50_us = (double)vt_late_at(late, 0.5) / 1e3;
        out->late_p99_us = (double)vt_late_at(late, 0.99) / 1e3;
        out->late_max_us = (double)late->max / 1e3;
        out->extent = vt_driver_extent(k->driver);
    }
}

/* ---- waiting ---------------------------------------------------------- */

static vt_ns sooner(vt_ns a, vt_ns b)
{
    return a < b ? a : b;
}

/* Until a note comes or something is due. The end of a wait for a message's deadline is
 * spent awake. */
static void wait_for_work(struct play_engines *k)
{
    struct play *p = k->p;
    vt_ns at = sooner(vt_driver_engines_due(k->driver), engines_wave_due(k));
    vt_ns message = vt_driver_parcels_due(k->driver), wall;

    for (uint32_t i = 0; i < p->c->n_engines; i++)
        if (k->rank[i].replays.n > 0)
            message = sooner(message, k->rank[i].replays.due[0].at);
    wall = sooner(vt_axis_wall(&p->axis, sooner(at, message)),
                  vt_driver_over_wall(k->driver));
    vt_inbox_wait(&p->to_engines, wall, message <= at && message != VT_NEVER);
}

/* ---- working ---------------------------------------------------------- */

static int do_what_is_due(struct play_engines *k, struct vt_err *err)
{
    vt_ns now = vt_axis_now(&k->p->axis);
    int rc = engines_take_notes(k, now, err);

    for (uint32_t i = 0; i < k->p->c->n_engines && rc == VT_OK; i++) {
        struct rank *r = &k->rank[i];

        if (!(rc = engines_replay_step(k, r, now, err)) &&
            !(rc = vt_driver_run(k->driver, i, now, err)))
            rc = engines_answer_held(k, r, now, err);
    }
    if (rc == VT_OK)
        rc = engines_coordinate(k, now, err);
    vt_driver_flush(k->driver, now);
    return rc;
}

int play_engines_run(struct play *p, struct vt_err *err)
{
    struct play_engines *k = p->engines;
    int rc;

    vt_wait_sharply();
    for (;;) {
        rc = do_what_is_due(k, err);
        if (rc == VT_OK && atomic_load(&p->failed))
            rc = vt_nomem(err);
        if (rc != VT_OK || vt_driver_over(k->driver, vt_driver_requests(k->driver)))
            break;
        wait_for_work(k);
    }
    if (rc == VT_OK)
        rc = engines_end_all(k, vt_axis_now(&p->axis), err);
    if (rc != VT_OK)
        engines_say_dead(k);
    return rc;
}
