/* step.c - finished steps become tokens on sockets, all of a step at once and at
 * the time that the engine gave them. */
#include <stdlib.h>

#include "http/serve/serve.h"

/* Since this release answers tell what was cached where the prompt was computed. */
enum { TELLS_CACHED = 31 };

struct metrics_load serve_load(const struct rank *r)
{
    const struct vt_sched *q = vt_engine_sched(r->core);
    struct metrics_load l = {.waiting = vt_sched_waiting(q, NULL, 0),
                             .waiting_deferred = vt_sched_apart(q),
                             .kv_usage = vt_sched_kv_usage(q),
                             .fetches = vt_sched_fetches(q)};

    (void)vt_sched_running(q, &l.running);
    return l;
}

/* ---- parcels: rows that leave at one time ---------------------------- */

static int pack_parcels(struct server *s, const struct vt_step *step,
                        struct vt_err *err)
{
    struct parcel *p = NULL;
    uint32_t first = 0;
    vt_ns at = 0;

    for (uint32_t i = 0; i < step->n_rows; i++) {
        const struct vt_row *r = &step->row[i];
        const struct vt_first *f =
            r->first ? vt_step_first(step, r->tag, &first) : NULL;

        if (!p || r->at != at) {
            p = vt_driver_post(s->driver, r->at, err);
            at = r->at;
            if (p)
                p->n = 0;
        }
        if (!p || vt_grow(&p->row, &p->cap, p->n + 1, sizeof(*p->row), err))
            return VT_ENOMEM;
        p->row[p->n++] = (struct parcel_row){
            .tag = r->tag,
            .upto = r->first_index + r->new_tokens,
            .cached = f ? f->cached_tokens : 0,
            .written = f ? f->cache_creation_tokens : 0,
            .external = f ? f->external_tokens : 0,
            .first = r->first,
            .finish = r->finish,
        };
    }
    return VT_OK;
}

/* ---- writing --------------------------------------------------------- */

static void send_text(struct exchange *x)
{
    struct server *s = x->s;
    struct net_header header[SERVE_HEADERS];

    if (s->text.len == 0)
        return;
    if (!x->streaming)
        net_stream(x->conn,
                   &(struct net_reply){.status = 200,
                                       .type = "text/event-stream; charset=utf-8",
                                       .header = header,
                                       .n_headers = serve_headers(x, header)});
    x->streaming = true;
    net_put(x->conn, s->text.data, s->text.len);
}

void serve_finish(struct exchange *x)
{
    struct server *s = x->s;

    if (x->r.stream) {
        vt_buf_clear(&s->text);
        out_done(&s->text, &x->r, x->out, x->n_choices);
        send_text(x);
        serve_stream_over(x);
        return;
    }
    x->task = TASK_WRITE;
    if (exchange_writes_long(x)) {
        worker_give(&s->worker, x);
        return;
    }
    exchange_write(x);
    serve_prepared(x);
}

void choice_cut(struct choice *c, bool admitted)
{
    struct exchange *x = c->x;
    struct server *s = x->s;
    struct reply *p = &c->reply;

    if (admitted && c->tag == 0) /* it was over before */
        return;
    if (admitted)
        (void)vt_engine_abort(s->rank[c->rank].core, vt_axis_now(&s->axis), c->tag);
    if (x->kind != API_EMBEDDINGS) { /* what is out already is all that it says */
        p->n = c->out->told;
        p->text_len = p->n > 0 ? p->text_end[p->n - 1] : 0;
        p->calls_cut = p->n_calls > 0;
        p->end = REPLY_ABORT;
        p->stop_reason = "null";
    }
    if (x->r.stream) {
        vt_buf_clear(&s->text);
        out_tokens(&s->text, &x->r, c->out, c->reply.n, x->out, x->n_choices);
        send_text(x);
    }
    choice_over(c, METRICS_ABORT);
}

static void write_row(struct server *s, const struct parcel_row *row, vt_ns wall)
{
    struct choice *c = vt_driver_find(s->driver, row->tag);
    struct exchange *x;
    uint32_t upto;

    if (!c || c->x->end != END_NONE) /* it was given up meanwhile, or will soon be */
        return;
    x = c->x;
    if (row->finish == VT_FAILED) {
        serve_break(x, &(struct api_error){.status = 500,
                                           .type = "InternalServerError",
                                           .message = "Internal server error"});
        return;
    }
    upto = row->upto < c->reply.n ? row->upto : c->reply.n;
    s->sums.tokens += upto - c->out->told;
    if (row->first) {
        c->out->cached_tokens = c->kv.cached >= 0 && c->kv.apart == VT_DECODE_ONLY &&
                                        s->c->engine.vllm >= TELLS_CACHED
                                    ? (uint32_t)c->kv.cached
                                    : row->cached;
        c->out->written_tokens = row->written;
        c->first_wall = wall;
        gate_first_token(&s->gate, c->prompt->n);
        metrics_first_token(s->metrics, c->rank, (double)(wall - x->arrived_wall) / 1e9,
                            c->prompt->n, row->cached, row->external);
    } else {
        metrics_gap(s->metrics, c->rank, (double)(wall - c->last_wall) / 1e9);
    }
    c->last_wall = wall;
    if (x->r.stream) {
        vt_buf_clear(&s->text);
        out_tokens(&s->text, &x->r, c->out, upto, x->out, x->n_choices);
        send_text(x);
    } else {
        c->out->told = upto;
    }
    if (c->out->told > x->most_told)
        x->most_told = c->out->told;
    if (c->broken_at > 0 && upto >= c->broken_at) {
        serve_break(x, x->error);
        return;
    }
    if (upto < c->reply.n)
        return;
    if (row->finish == VT_RUNNING_ON) /* a stop string, which the engine can't see */
        (void)vt_engine_abort(s->rank[c->rank].core, vt_axis_now(&s->axis), c->tag);
    choice_over(c, c->reply.end == REPLY_LENGTH ? METRICS_LENGTH : METRICS_STOP);
    if (x->n_open == 0 && x->n_admitted == x->n_choices)
        serve_finish(x);
}

static bool send_parcel(void *server, void *parcel, vt_ns at)
{
    struct server *s = server;
    const struct parcel *p = parcel;
    vt_ns wall = vt_wall_ns();

    for (size_t i = 0; i < p->n; i++)
        write_row(s, &p->row[i], wall);
    metrics_late(s->metrics, (double)(vt_wall_ns() - vt_axis_wall(&s->axis, at)) / 1e9);
    return true;
}

static void say_slow(void *server, const struct vt_slow *slow)
{
    char text[160];

    vt_slow_text(slow, text);
    serve_log(server, "%s", text);
}

static void drop_parcel(void *parcel)
{
    free(((struct parcel *)parcel)->row);
}

/* ---- engines ---------------------------------------------------------- */

static void note_planned(void *choice, bool preempted, const struct vt_step *step)
{
    struct choice *c = choice;

    c->preemptions += preempted;
    if (!preempted && c->scheduled < 0)
        c->scheduled = step->sched_ns;
    choice_event(c, preempted ? EXPORT_PREEMPTED : EXPORT_SCHEDULED, step->sched_ns,
                 step->number);
}

static int stepped(void *server, uint32_t engine, const struct vt_step *done,
                   struct vt_err *err)
{
    struct server *s = server;
    struct rank *r = &s->rank[engine];
    struct metrics_load load;
    int rc = s->c->kv.on ? serve_kv_publish(s, r, err) : VT_OK;

    if (rc != VT_OK || !done)
        return rc;
    s->sums.steps++;
    vt_driver_tell_plan(s->driver, done, note_planned);
    /* Journeys name steps, so they are noted when those end, not when tokens leave. */
    for (uint32_t i = 0; s->export && i < done->n_rows; i++) {
        const struct vt_row *row = &done->row[i];
        struct choice *c = NULL;

        if (row->first || row->finish != VT_RUNNING_ON)
            c = vt_driver_find(s->driver, row->tag);
        if (c && row->first)
            choice_event(c, EXPORT_FIRST_TOKEN, row->at, done->number);
        if (c && row->finish != VT_RUNNING_ON)
            choice_event(c, EXPORT_FINISHED, row->at, done->number);
    }
    if (s->peers && (rc = serve_peers_step(s, r, done, err)))
        return rc;
    load = serve_load(r);
    metrics_step(s->metrics, engine, done, &load);
    if (s->export)
        export_step(s->export, engine, done, s->zero_unix_s, vt_engine_sched(r->core));
    return pack_parcels(s, done, err);
}

const struct vt_driver_ops serve_driver_ops = {
    .stepped = stepped, .leave = send_parcel, .drop = drop_parcel, .slow = say_slow};
