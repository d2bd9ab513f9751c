/* run.c - sends a plan at its times: one thread, one loop.
 *
 * A pass takes what has come, then begins what is due. Passes are kept short, a few
 * requests begun in each, so that a burst of sends does not make what arrives
 * meanwhile look late. How long a pass stood still is measured all the same. */
#include "load/run.h"

enum { BEGIN_AT_ONCE = 8 };
#define TICK  (100 * VT_MS)
#define STALL (5 * VT_MS)
#define BUILD_AHEAD \
    ((size_t)256 << 20) /* bytes of requests written before they are due */
#define BUILD_MARGIN (2 * VT_MS)
#define SIX_HOURS    (6 * 3600 * VT_SEC)

/* ---- queues ------------------------------------------------------------ */

static int fifo_open(struct load_fifo *f, size_t cap, struct vt_err *err)
{
    f->item = calloc(cap > 0 ? cap : 1, sizeof(*f->item));
    f->cap = cap;
    return f->item ? VT_OK : vt_nomem(err);
}

static void fifo_push(struct load_fifo *f, size_t item)
{
    f->item[(f->head + f->n++) % f->cap] = item;
}

static size_t fifo_pop(struct load_fifo *f)
{
    size_t item = f->item[f->head];

    f->head = (f->head + 1) % f->cap;
    f->n--;
    return item;
}

/* ---- requests, written ahead ------------------------------------------- */

/* The turn of a session that is next or in flight. */
static struct load_ask ask_of(const struct load_run *r, size_t s)
{
    uint32_t turn = r->state[s].turn;

    return (struct load_ask){
        .session = &r->plan->session[s],
        .turn = &r->plan->session[s].turn[turn],
        .session_no = s,
        .turn_no = turn,
        .history = &r->state[s].history,
    };
}

static void write_ask(struct load_run *r, size_t s, struct vt_buf *out)
{
    struct load_ask ask = ask_of(r, s);

    load_ask_write(&r->body, &ask, out);
    if (out->failed)
        r->rc = vt_nomem(r->err);
}

static bool build_one(struct load_run *r)
{
    struct vt_buf *b;

    if (r->next_build == r->plan->n || r->built_bytes > BUILD_AHEAD || r->rc != VT_OK)
        return false;
    b = &r->state[r->next_build].built;
    if (!r->state[r->next_build].begun && r->plan->session[r->next_build].n_turns > 0) {
        write_ask(r, r->next_build, b);
        r->built_bytes += b->len;
    }
    r->next_build++;
    return true;
}

/* ---- beginning -------------------------------------------------------- */

static struct vt_load_record *new_record(struct load_run *r, struct load_conn *c,
                                         size_t s)
{
    struct load_ask ask = ask_of(r, s);
    struct vt_load_records *out = r->out;
    struct vt_load_record *q;

    r->rc = vt_grow(&out->record, &out->cap, out->n + 1, sizeof(*out->record), r->err);
    if (r->rc != VT_OK)
        return NULL;
    c->session = s;
    c->record = out->n++;
    q = &out->record[c->record];
    *q = (struct vt_load_record){
        .session = (uint32_t)s,
        .turn = ask.turn_no,
        .planned = r->state[s].planned,
        .prompt_tokens = ask.turn->prompt_tokens,
        .asked_tokens = ask.turn->output_tokens,
    };
    if (r->config->id_prefix) {
        struct vt_buf b = {0};

        load_request_id(r->config, &ask, &b);
        q->request_id = b.failed ? NULL : vt_arena_copy(&out->arena, b.data, b.len);
        vt_buf_free(&b);
    }
    return q;
}

static void begin_turn(struct load_run *r, size_t s, vt_ns begun)
{
    struct load_conn *c = load_conn_take(r);
    struct load_state *st = &r->state[s];
    struct vt_load_record *q = c ? new_record(r, c, s) : NULL;

    if (!q)
        return;
    st->begun = true;
    c->probe = false;
    vt_buf_clear(&c->ask);
    if (st->built.data) {
        struct vt_buf old = c->ask;

        r->built_bytes -= st->turn == 0 ? st->built.len : 0;
        c->ask = st->built;
        st->built = (struct vt_buf){0};
        vt_buf_free(&old);
    } else {
        write_ask(r, s, &c->ask);
    }
    r->in_flight++;
    if (r->in_flight > r->out->peak_concurrency)
        r->out->peak_concurrency = r->in_flight;
    load_conn_begin(c, begun);
}

static bool has_place(const struct load_run *r)
{
    return r->config->max_concurrency == 0 || r->in_flight < r->config->max_concurrency;
}

/* A turn is due: it begins, or waits for its session's or its own place. */
static void place_turn(struct load_run *r, size_t s)
{
    bool first = r->state[s].turn == 0 && r->plan->session[s].n_before == 0;

    if (first && r->config->max_sessions > 0 &&
        r->sessions >= r->config->max_sessions) {
        fifo_push(&r->lobby, s);
        return;
    }
    r->sessions += first;
    if (r->ready.n == 0 && has_place(r))
        begin_turn(r, s, r->state[s].planned);
    else
        fifo_push(&r->ready, s);
}

static void begin_probe(struct load_run *r)
{
    struct load_conn *c = load_conn_take(r);
    struct load_ask ask = {0};

    if (!c)
        return;
    r->probe = (struct vt_load_record){.planned = r->probe_due};
    c->probe = true;
    vt_buf_clear(&c->ask);
    load_ask_write(&r->body, &ask, &c->ask);
    r->probe_due = VT_NEVER;
    r->probing = true;
    load_conn_begin(c, load_now(r));
}

/* Begins a few of those that may; true: there may be more. */
static bool begin_some(struct load_run *r)
{
    vt_ns now = load_now(r);

    if (r->probe_due <= now)
        begin_probe(r);
    for (int i = 0; i < BEGIN_AT_ONCE && r->rc == VT_OK; i++) {
        if (r->ready.n > 0 && has_place(r)) {
            size_t s = fifo_pop(&r->ready);
            vt_ns planned = r->state[s].planned;

            begin_turn(r, s, planned > r->freed ? planned : r->freed);
        } else if (r->due.n > 0 && r->due.due[0].at <= now) {
            size_t s = r->due.due[0].item;

            vt_agenda_remove(&r->due, 0);
            place_turn(r, s);
        } else {
            return false;
        }
    }
    return true;
}

/* ---- ending ----------------------------------------------------------- */

static void next_turn(struct load_run *r, struct load_conn *c, vt_ns ended)
{
    struct load_state *st = &r->state[c->session];
    struct load_ask ask = ask_of(r, c->session);

    load_history_add(&r->body, &ask, (struct span){c->text.data, c->text.len},
                     &st->history);
    st->turn++;
    st->planned = ended + ask.session->turn[st->turn].think_ns;
    write_ask(r, c->session, &st->built);
    if (r->rc == VT_OK)
        r->rc = vt_agenda_push(&r->due, st->planned, c->session, r->err);
}

/* Those that waited for it as the last one are due after their think times. */
static void follow_up(struct load_run *r, size_t s, vt_ns ended)
{
    const struct vt_load_session *all = r->plan->session;

    for (size_t k = all[s].next; k > 0 && k <= r->plan->n && r->rc == VT_OK;
         k = all[k - 1].beside) {
        struct load_state *st = &r->state[k - 1];

        if (--st->before > 0)
            continue;
        st->planned = ended + all[k - 1].turn[0].think_ns;
        r->rc = vt_agenda_push(&r->due, st->planned, k - 1, r->err);
    }
}

static size_t root_of(const struct load_run *r, size_t s)
{
    uint32_t root = r->plan->session[s].root;

    return root > 0 ? root - 1 : s;
}

static void end_session(struct load_run *r, size_t s, vt_ns ended)
{
    vt_buf_free(&r->state[s].history);
    r->done += r->plan->session[s].n_turns - r->state[s].turn - 1; /* never sent */
    follow_up(r, s, ended);
    if (--r->state[root_of(r, s)].open > 0)
        return;
    r->sessions--;
    if (r->lobby.n > 0) {
        size_t next = fifo_pop(&r->lobby);

        r->sessions++;
        r->freed = ended;
        fifo_push(&r->ready, next);
    }
}

static void end_probe(struct load_run *r)
{
    struct vt_load_records *out = r->out;
    const struct vt_load_record *q = &r->probe;
    vt_ns end = r->config->backend == VT_LOAD_CHAT ? q->last_event : q->last;

    r->probing = false;
    if (q->failure != VT_LOAD_STOPPED)
        r->probe_due = q->ended + (vt_ns)(1e9 / r->config->probe_rate);
    if (!q->ok) {
        out->probes_failed += q->failure != VT_LOAD_STOPPED;
        return;
    }
    if (r->rc != VT_OK)
        return;
    r->rc = vt_grow(&out->probe, &out->cap_probes, out->n_probes + 1, sizeof(vt_ns),
                    r->err);
    if (r->rc == VT_OK)
        out->probe[out->n_probes++] = end - q->begun;
}

void load_run_ended(struct load_conn *c)
{
    struct load_run *r = c->run;
    const struct vt_load_record *q = load_record(c);
    vt_ns ended = q->ended;

    if (c->probe) {
        end_probe(r);
        return;
    }
    r->in_flight--;
    r->done++;
    r->failed += !q->ok;
    r->freed = ended;
    if (ended > r->out->end)
        r->out->end = ended;
    if (q->ok && q->turn + 1 < r->plan->session[c->session].n_turns)
        next_turn(r, c, ended);
    else
        end_session(r, c->session, ended);
}

/* ---- waiting ---------------------------------------------------------- */

static vt_ns next_send(const struct load_run *r)
{
    vt_ns at = r->due.n > 0 ? r->due.due[0].at : VT_NEVER;

    return r->probe_due < at ? r->probe_due : at;
}

static void count_stall(struct load_run *r, vt_ns ns)
{
    if (ns <= STALL)
        return;
    r->out->stalls++;
    r->out->stalled += ns;
}

/* Sleeps up to VT_SPIN_NS before the next send; the rest is spent awake. Returns when
 * it woke up. */
static vt_ns take_events(struct load_run *r, bool hurry)
{
    vt_ns send = next_send(r), until = r->next_tick, left, woke;

    if (send != VT_NEVER && send - VT_SPIN_NS < until)
        until = send - VT_SPIN_NS;
    left = hurry || until <= r->now ? 0 : until - r->now;
    if (left > BUILD_MARGIN && build_one(r))
        left = 0;
    woke = net_client_wait(&r->client, left) - r->zero;
    if (left > 0)
        count_stall(r, woke - until);
    return woke;
}

/* ---- now and then ----------------------------------------------------- */

static bool tick(struct load_run *r) /* false: it is to end */
{
    const struct vt_load_config *c = r->config;
    struct vt_load_progress p = {
        .now = r->now,
        .planned = r->plan->n_turns,
        .begun = r->out->n,
        .done = r->done,
        .failed = r->failed,
        .tokens = r->tokens,
        .in_flight = r->in_flight,
        .waiting = (uint32_t)(r->ready.n + r->lobby.n),
    };
    vt_ns limit = c->timeout_ns > 0 ? c->timeout_ns : SIX_HOURS;

    r->next_tick = r->now + (c->tick_ns > 0 ? c->tick_ns : TICK);
    for (size_t i = 0; i < r->n_conns; i++)
        if (r->conn[i]->call.state != NET_FREE &&
            r->now - load_record(r->conn[i])->begun > limit)
            load_conn_fail(r->conn[i], VT_LOAD_TIMEOUT, NULL);
    if (c->progress)
        c->progress(c->user, &p);
    return !c->stopped || !c->stopped(c->user);
}

static void stop_all(struct load_run *r)
{
    r->out->interrupted = true;
    for (size_t i = 0; i < r->n_conns; i++)
        if (r->conn[i]->call.state != NET_FREE)
            load_conn_fail(r->conn[i], VT_LOAD_STOPPED, NULL);
}

static void run_loop(struct load_run *r)
{
    bool more = true;

    load_now(r);
    while (r->rc == VT_OK &&
           (r->in_flight > 0 || r->due.n > 0 || r->ready.n > 0 || r->probing)) {
        vt_ns woke;

        if (r->now >= r->next_tick && !tick(r)) {
            stop_all(r);
            return;
        }
        woke = take_events(r, more);
        more = begin_some(r);
        if (r->in_flight == 0 && r->due.n == 0 && r->ready.n == 0)
            r->probe_due = VT_NEVER; /* nothing is left to be beside of */
        count_stall(r, load_now(r) - woke);
    }
}

/* ---- the whole -------------------------------------------------------- */

static int open_run(struct load_run *r, const vt_ns *at, struct vt_err *err)
{
    size_t n = r->plan->n;
    const struct net_trust trust = {.insecure = r->config->insecure,
                                    .ca_file = r->config->ca_file};
    int rc = net_client_open(&r->client, r->config->base_url, &trust, err);

    if (rc != VT_OK || (rc = net_client_find(&r->client, err)) ||
        (rc = load_body_open(&r->body, r->config, &r->client.url, r->plan, err)))
        return rc;
    r->state = calloc(n > 0 ? n : 1, sizeof(*r->state));
    if (!r->state)
        return vt_nomem(err);
    if ((rc = fifo_open(&r->lobby, n, err)) || (rc = fifo_open(&r->ready, n, err)))
        return rc;
    for (size_t i = 0; i < n; i++) {
        const struct vt_load_session *s = &r->plan->session[i];

        r->state[i].planned = at ? at[i] : r->plan->timed ? s->at : 0;
        r->state[i].before = s->n_before;
        r->state[root_of(r, i)].open++;
        if (s->n_turns > 0 && s->n_before == 0 &&
            (rc = vt_agenda_push(&r->due, r->state[i].planned, i, err)) != VT_OK)
            return rc;
    }
    while (build_one(r))
        ;
    return r->rc;
}

static void close_run(struct load_run *r)
{
    for (size_t i = 0; i < r->n_conns; i++)
        load_conn_free(r->conn[i]);
    for (size_t i = 0; r->state && i < r->plan->n; i++) {
        vt_buf_free(&r->state[i].built);
        vt_buf_free(&r->state[i].history);
    }
    free(r->state);
    free(r->conn);
    free(r->idle);
    free(r->lobby.item);
    free(r->ready.item);
    vt_agenda_free(&r->due);
    load_body_close(&r->body);
    net_client_close(&r->client);
}

int vt_load_run(struct vt_load_records *out, const struct vt_load_plan *plan,
                const vt_ns *at, const struct vt_load_config *c, struct vt_err *err)
{
    struct load_run *r = calloc(1, sizeof(*r));
    int rc;

    if (!r)
        return vt_nomem(err);
    *r = (struct load_run){.config = c, .plan = plan, .out = out, .err = err};
    r->probe_due = c->probe_rate > 0 ? 0 : VT_NEVER;
    rc = open_run(r, at, err);
    if (rc == VT_OK) {
        vt_wait_sharply();
        out->start_unix_s = vt_unix_s();
        r->zero = vt_wall_ns();
        run_loop(r);
        rc = r->rc;
        out->lag_p50 = vt_late_at(&r->lag, 0.5);
        out->lag_p99 = vt_late_at(&r->lag, 0.99);
        out->lag_max = r->lag.max;
        out->connections = r->client.connections;
    }
    close_run(r);
    free(r);
    return rc;
}
