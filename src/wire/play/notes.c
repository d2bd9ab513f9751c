/* notes.c - what intake has to say: requests, aborts, calls, sessions. */
#include "wire/play/engines.h"

#include <string.h>

/* ---- requests --------------------------------------------------------- */

static int refuse_request(struct play_engines *k, struct rank *r,
                          struct play_request *q, int finish, struct vt_err *err)
{
    int rc = engines_finish(k, r, q->client, play_request_id(q), finish, err);

    play_request_free(q);
    return rc;
}

/* A frontend may say anything; vLLM looks at those above 0. */
static uint32_t lora_number(int64_t id)
{
    return id <= 0 ? 0 : id < UINT32_MAX ? (uint32_t)id : UINT32_MAX;
}

static int admit_request(struct play_engines *k, struct rank *r, struct play_request *q,
                         vt_ns now, struct vt_err *err)
{
    struct vt_request v = {
        .tag = q->tag,
        .prompt_tokens = q->blocks.n_prompt,
        .max_tokens = q->script.max_tokens,
        .min_tokens = q->script.min_tokens,
        .eos_at = q->script.eos_at,
        .stop_at = q->script.stop_at,
        .priority = q->priority,
        /* A frontend may say anything. */
        .arrival = q->arrival_time > 0 && q->arrival_time < 9e9
                       ? (int64_t)(q->arrival_time * 1e9)
                       : 0,
        .id = q->id,
        .lora = lora_number(q->blocks.lora_id),
        .skip_cache = q->skip_cache,
        .apart = (uint8_t)q->kv.apart,
        .unsure = q->kv.apart == VT_DECODE_ONLY && q->kv.host && k->peers,
        .block_key = vt_blocks_key,
        .tokens = &q->blocks,
    };
    vt_ns at = q->script.steps ? now : vt_driver_arrival(k->driver, r->number, now);
    int rc;

    play_request_event(q, WIRE_QUEUED, play_timestamp(k->p, at));
    spans_stage(q, EXPORT_QUEUED, at, 0);
    if (q->script.steps)
        return engines_replay_begin(k, r, q, at, err);
    rc = vt_engine_add(r->core, at, &v, err);
    if (rc == VT_OK && v.unsure && !vt_peers_reach(k->peers, &q->kv, q->tag))
        rc = vt_engine_reached(r->core, at, q->tag, false, err);
    return rc;
}

static int serve_request(struct play_engines *k, struct rank *r, struct play_request *q,
                         vt_ns now, struct vt_err *err)
{
    struct vt_err why = {0};
    int rc = engines_claim_id(k, q, &why);
    bool named = rc == VT_OK;

    if (named)
        rc = vt_driver_add(k->driver, q, &q->tag, &why);
    if (rc == VT_OK)
        rc = admit_request(k, r, q, now, &why);
    if (rc == VT_OK)
        return engines_wave_request(k, r, q->wave, err);
    play_complain(k->p, &k->complaints, "request %s is refused: %s", q->id, why.msg);
    k->sums.failed++;
    if (named) {
        engines_forget(k, q);
        return refuse_request(k, r, q, WIRE_ERROR, err);
    }
    play_request_free(q); /* an end told under its id would be that of the first */
    return VT_OK;
}

/* A frontend that speaks another line has engines of another release. While requests of
 * an earlier one are there, theirs holds. */
static void follow_line(struct play_engines *k, struct rank *r)
{
    uint32_t release = vt_wire_release(r->line);

    if (!k->p->c->follow_line || release == r->release ||
        !vt_sched_follow(vt_engine_sched(r->core), release))
        return;
    r->release = release;
    play_log(k->p, "engine %u: the frontend speaks vLLM %s%s: scheduled as 0.%u",
             r->index, r->line->name, release > r->line->minor ? " or later" : "",
             release);
}

static int take_request(struct play_engines *k, struct rank *r, struct note *n,
                        vt_ns now, struct vt_err *err)
{
    struct play_request *q = n->request;
    uint64_t die_after = k->p->c->die_after;

    n->request = NULL;
    r->line = n->line;
    follow_line(k, r);
    q->engine = r->index;
    k->sums.requests++;
    if (k->p->c->log_requests)
        play_log(k->p, "request %s: %u prompt tokens, at most %u", q->id,
                 q->blocks.n_prompt, q->script.max_tokens);
    if (die_after > 0 && k->sums.requests >= die_after) {
        play_request_free(q);
        return vt_fail(err, VT_EIO, "the engine dies at request %llu, as it was told",
                       (unsigned long long)die_after);
    }
    if (vt_driver_draining(k->driver) || q->abort_at_once) {
        k->sums.aborted++;
        return refuse_request(k, r, q, WIRE_ABORTED, err);
    }
    if (q->fail >= 0) {
        k->sums.failed++;
        return refuse_request(k, r, q, q->fail, err);
    }
    return serve_request(k, r, q, now, err);
}

/* ---- aborts ----------------------------------------------------------- */

static void drop_request(struct play_engines *k, struct rank *r, struct play_request *q,
                         vt_ns now)
{
    if (k->p->c->log_requests)
        play_log(k->p, "aborted %s after %u tokens", q->id, q->told);
    if (q->script.steps)
        engines_replay_drop(k, r, q);
    else
        (void)vt_engine_abort(r->core, now, q->tag);
    k->sums.aborted++;
    engines_forget(k, q);
    play_request_free(q);
}

/* Nothing is said of a request that its own frontend has given up, but for the count
 * that ranks keep together. */
static int take_abort(struct play_engines *k, struct rank *r, const struct note *n,
                      vt_ns now, struct vt_err *err)
{
    int rc = VT_OK;

    for (uint32_t i = 0; i < n->n_ids && rc == VT_OK; i++) {
        struct play_request *q = engines_find(k, r->index, n->id[i]);
        struct mp_span id = n->id[i];
        struct wire_outputs o = {
            .finished = &id, .n_finished = 1, .wave_complete = -1, .start_wave = -1};

        if (!q)
            continue;
        if (r->coordinator)
            rc = engines_tell(k, r, q->client, &o, err);
        drop_request(k, r, q, now);
    }
    return rc;
}

int engines_abort_all(struct play_engines *k, struct rank *r, uint32_t client,
                      bool tell, vt_ns now, struct vt_err *err)
{
    struct play_request *q;
    size_t at = 0;
    int rc = VT_OK;

    while (rc == VT_OK && (q = vt_driver_each(k->driver, &at))) {
        if (q->engine != r->index || (client != UINT32_MAX && q->client != client))
            continue;
        if (tell)
            rc = engines_finish(k, r, q->client, play_request_id(q), WIRE_ABORTED, err);
        drop_request(k, r, q, now);
    }
    return rc;
}

/* ---- sessions --------------------------------------------------------- */

/* Nobody is left to read what is still in its queue. */
static void wait_for_nobody(void *sock)
{
    int none = 0;

    if (sock)
        (void)zmq_setsockopt(sock, ZMQ_LINGER, &none, sizeof(none));
}

static void drop_socket(void *sock)
{
    wait_for_nobody(sock);
    sock_close(sock);
}

static void close_session(struct rank *r)
{
    for (uint32_t i = 0; i < r->n_push; i++)
        drop_socket(r->push[i]);
    drop_socket(r->coordinator);
    free(r->push);
    r->push = NULL;
    r->n_push = 0;
    r->coordinator = NULL;
    r->session++;
    engines_drop_held(r);
}

static int take_session(struct play_engines *k, struct rank *r, struct note *n,
                        vt_ns now, struct vt_err *err)
{
    int rc = engines_abort_all(k, r, UINT32_MAX, false, now, err);

    close_session(r);
    r->push = n->push;
    r->n_push = n->n_push;
    r->coordinator = n->coordinator;
    r->line = n->line;
    r->wave = 0;
    r->step_counter = 0;
    r->awake = false;
    r->told_waiting = r->told_running = 0;
    n->push = NULL;
    n->n_push = 0;
    n->coordinator = NULL;
    vt_engine_pause(r->core, now, VT_RUN);
    r->pause = VT_RUN;
    r->weights_away = r->cache_away = false;
    return rc;
}

/* ---- the end ---------------------------------------------------------- */

int engines_end_all(struct play_engines *k, vt_ns now, struct vt_err *err)
{
    int rc = VT_OK;

    for (uint32_t i = 0; i < k->p->c->n_engines && rc == VT_OK; i++)
        rc = engines_abort_all(k, &k->rank[i], UINT32_MAX, true, now, err);
    vt_driver_flush(k->driver, VT_NEVER);
    return rc;
}

/* ---- all of them ------------------------------------------------------ */

static int take_note(struct play_engines *k, struct note *n, vt_ns now,
                     struct vt_err *err)
{
    struct rank *r = &k->rank[n->engine];
    double timeout = k->p->c->shutdown_timeout_s;
    uint32_t n_left;
    int rc;

    switch (n->kind) {
    case NOTE_ADD:
        return take_request(k, r, n, now, err);
    case NOTE_REJECT:
        k->sums.requests++;
        k->sums.failed++;
        return engines_finish(k, r, n->client,
                              (struct mp_span){(const uint8_t *)n->bytes, n->n_bytes},
                              n->finish, err);
    case NOTE_ABORT:
        return take_abort(k, r, n, now, err);
    case NOTE_CALL:
        return engines_call(k, r, &n->call, now, err);
    case NOTE_PEER:
        n->heard.id = n->bytes;
        vt_peers_take(k->peers, k->driver, k->p->c->n_engines, &n->heard, now);
        return VT_OK;
    case NOTE_WAVE:
        return engines_wave_start(k, r, n->wave, n->exclude);
    case NOTE_SESSION:
        return take_session(k, r, n, now, err);
    case NOTE_LOST:
        rc = engines_abort_all(k, r, n->client, false, now, err);
        if (n->client == UINT32_MAX)
            close_session(r);
        else if (n->client < r->n_push)
            wait_for_nobody(r->push[n->client]);
        return rc;
    default:
        n_left = vt_driver_requests(k->driver);
        if (!vt_driver_draining(k->driver) && n_left > 0 && timeout > 0)
            play_log(k->p, "stopping: %u requests may go on for %g s", n_left, timeout);
        vt_driver_drain(k->driver, timeout);
        return VT_OK;
    }
}

int engines_take_notes(struct play_engines *k, vt_ns now, struct vt_err *err)
{
    struct vt_inbox_item *at = vt_inbox_take(&k->p->to_engines), *next;
    int rc = VT_OK;

    for (; at; at = next) {
        struct note *n = (struct note *)at;

        next = at->next;
        if (rc == VT_OK)
            rc = take_note(k, n, now, err);
        note_free(n);
    }
    return rc;
}
