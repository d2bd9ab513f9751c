/* step.c - finished steps become tokens on sockets, all of a step at once and at
 * the time that the engine gave them. */
#include "http/serve/serve.h"

enum { ACTIONS = 64 }; /* of one engine, before sockets are looked at */

struct metrics_load serve_load(const struct rank *r)
{
    const struct vt_sched *q = vt_engine_sched(r->core);
    struct metrics_load l = {.waiting = vt_sched_waiting(q, NULL, 0),
                             .kv_usage = vt_sched_kv_usage(q)};

    (void)vt_sched_running(q, &l.running);
    return l;
}

/* ---- parcels: rows that leave at one time ---------------------------- */

static struct parcel *new_parcel(struct server *s, vt_ns at, struct vt_err *err)
{
    uint32_t i;

    if (s->spare_parcel > 0) {
        i = s->spare_parcel - 1;
        s->spare_parcel = s->parcel[i].next_spare;
    } else {
        if (vt_grow(&s->parcel, &s->cap_parcels, s->n_parcels + 1, sizeof(*s->parcel),
                    err) != VT_OK)
            return NULL;
        i = (uint32_t)s->n_parcels++;
        s->parcel[i] = (struct parcel){0};
    }
    s->parcel[i].n = 0;
    if (vt_agenda_push(&s->due, at, i, err) != VT_OK) {
        s->parcel[i].next_spare = s->spare_parcel;
        s->spare_parcel = i + 1;
        return NULL;
    }
    return &s->parcel[i];
}

/* Rows and firsts are in one order. NULL: there is none. */
static const struct vt_first *first_of(const struct vt_step *s, uint64_t tag,
                                       uint32_t *at)
{
    for (uint32_t i = 0; i < s->n_first; i++) {
        uint32_t k = (*at + i) % s->n_first;

        if (s->first[k].tag == tag) {
            *at = k + 1;
            return &s->first[k];
        }
    }
    return NULL;
}

static int pack(struct server *s, const struct vt_step *step, struct vt_err *err)
{
    struct parcel *p = NULL;
    uint32_t first = 0;
    vt_ns at = 0;

    for (uint32_t i = 0; i < step->n_rows; i++) {
        const struct vt_row *r = &step->row[i];
        const struct vt_first *f = r->first ? first_of(step, r->tag, &first) : NULL;

        if (p == NULL || r->at != at) {
            p = new_parcel(s, r->at, err);
            at = r->at;
        }
        if (p == NULL || vt_grow(&p->row, &p->cap, p->n + 1, sizeof(*p->row), err))
            return VT_ENOMEM;
        p->row[p->n++] = (struct parcel_row){
            .tag = r->tag,
            .upto = r->first_index + r->new_tokens,
            .cached = f != NULL ? f->cached_tokens : 0,
            .written = f != NULL ? f->cache_creation_tokens : 0,
            .first = r->first,
            .finish = r->finish,
        };
    }
    return VT_OK;
}

/* ---- writing --------------------------------------------------------- */

static enum metrics_finish finish_of(const struct choice *c)
{
    return c->reply.end == REPLY_LENGTH ? METRICS_LENGTH : METRICS_STOP;
}

static void begin_stream(struct exchange *x)
{
    struct net_header header[SERVE_HEADERS];

    net_stream(x->conn, &(struct net_reply){.status = 200,
                                            .type = "text/event-stream; charset=utf-8",
                                            .header = header,
                                            .n_headers = serve_headers(x, header)});
}

static void put(struct exchange *x)
{
    struct server *s = x->s;

    if (s->text.len == 0)
        return;
    if (!x->streaming)
        begin_stream(x);
    x->streaming = true;
    net_put(x->conn, s->text.data, s->text.len);
}

static void finish_exchange(struct exchange *x)
{
    struct server *s = x->s;

    vt_buf_clear(&s->text);
    if (x->r.stream) {
        out_done(&s->text, &x->r, x->out, x->n_choices);
        put(x);
        serve_stream_over(x);
        return;
    }
    if (x->kind == API_EMBEDDINGS)
        api_embeddings_json(&s->text, &x->r);
    else
        out_whole(&s->text, &x->r, x->out, x->n_choices);
    serve_answer(x, 200, "application/json", s->text.data, s->text.len);
}

/* What is out already is all that it says. */
static void shorten(struct choice *c)
{
    struct reply *p = &c->reply;

    p->n = c->out->told;
    p->text_len = p->n > 0 ? p->text_end[p->n - 1] : 0;
    p->calls_cut = p->n_calls > 0;
    p->end = REPLY_ABORT;
    p->stop_reason = "null";
}

void serve_cut(struct exchange *x)
{
    struct server *s = x->s;

    for (uint32_t i = 0; i < x->n_choices; i++) {
        struct choice *c = &x->choice[i];

        if (c->tag == 0)
            continue;
        (void)vt_engine_abort(s->rank[c->rank].core, vt_axis_now(&s->axis), c->tag);
        if (x->kind != API_EMBEDDINGS)
            shorten(c);
        if (x->r.stream) {
            vt_buf_clear(&s->text);
            out_tokens(&s->text, &x->r, c->out, c->reply.n, x->out, x->n_choices);
            put(x);
        }
        choice_over(c, METRICS_ABORT);
    }
    finish_exchange(x);
}

static void stamp(struct choice *c, const struct parcel_row *row, vt_ns wall)
{
    struct exchange *x = c->x;
    struct server *s = x->s;

    if (row->first) {
        c->out->cached_tokens = row->cached;
        c->out->written_tokens = row->written;
        c->first_wall = wall;
        metrics_first_token(s->metrics, c->rank, (double)(wall - x->arrived_wall) / 1e9,
                            c->prompt->n, row->cached);
    } else {
        metrics_gap(s->metrics, c->rank, (double)(wall - c->last_wall) / 1e9);
    }
    c->last_wall = wall;
}

static void write_row(struct server *s, const struct parcel_row *row, vt_ns wall)
{
    struct choice *c = choice_table_find(&s->table, row->tag);
    struct exchange *x;
    uint32_t upto;

    if (c == NULL) /* it was given up meanwhile */
        return;
    x = c->x;
    upto = row->upto < c->reply.n ? row->upto : c->reply.n;
    s->sums.tokens += upto - c->out->told;
    stamp(c, row, wall);
    if (x->r.stream) {
        vt_buf_clear(&s->text);
        out_tokens(&s->text, &x->r, c->out, upto, x->out, x->n_choices);
        put(x);
    } else {
        c->out->told = upto;
    }
    if (c->broken_at > 0 && upto >= c->broken_at) {
        serve_break(x, x->error);
        return;
    }
    if (upto < c->reply.n)
        return;
    if (row->finish == VT_RUNNING_ON) /* a stop string, which the engine can't see */
        (void)vt_engine_abort(s->rank[c->rank].core, vt_axis_now(&s->axis), c->tag);
    choice_over(c, finish_of(c));
    if (x->n_open == 0)
        finish_exchange(x);
}

void serve_due(struct server *s, vt_ns now)
{
    while (s->due.n > 0 && s->due.due[0].at <= now) {
        uint32_t i = (uint32_t)s->due.due[0].item;
        vt_ns due = vt_axis_wall(&s->axis, s->due.due[0].at), wall = vt_wall_ns();

        vt_agenda_remove(&s->due, 0);
        for (size_t k = 0; k < s->parcel[i].n; k++)
            write_row(s, &s->parcel[i].row[k], wall);
        s->parcel[i].next_spare = s->spare_parcel;
        s->spare_parcel = i + 1;
        vt_late_add(&s->late, vt_wall_ns() - due);
    }
}

/* ---- engines ---------------------------------------------------------- */

static void note_plan(struct server *s, const struct vt_step *step)
{
    const struct vt_plan *plan = step->plan;
    struct choice *c;

    for (uint32_t i = 0; i < plan->n_preempted; i++) {
        c = choice_table_find(&s->table, plan->preempted[i]);
        if (c == NULL)
            continue;
        c->preemptions++;
        choice_event(c, EXPORT_PREEMPTED, step->sched_ns, step->number);
    }
    for (uint32_t i = 0; i < plan->n; i++) {
        const struct vt_item *it = &plan->item[i];

        if (it->origin == VT_WAS_RUNNING)
            continue;
        c = choice_table_find(&s->table, it->tag);
        if (c == NULL)
            continue;
        if (c->scheduled < 0)
            c->scheduled = step->sched_ns;
        choice_event(c, EXPORT_SCHEDULED, step->sched_ns, step->number);
    }
}

/* Journeys name steps, so they are noted when those end, not when tokens leave. */
static void note_rows(struct server *s, const struct vt_step *step)
{
    for (uint32_t i = 0; i < step->n_rows; i++) {
        const struct vt_row *row = &step->row[i];
        struct choice *c = NULL;

        if (row->first || row->finish != VT_RUNNING_ON)
            c = choice_table_find(&s->table, row->tag);
        if (c != NULL && row->first)
            choice_event(c, EXPORT_FIRST_TOKEN, row->at, step->number);
        if (c != NULL && row->finish != VT_RUNNING_ON)
            choice_event(c, EXPORT_FINISHED, row->at, step->number);
    }
}

static int act(struct server *s, struct rank *r, vt_ns now, struct vt_err *err)
{
    uint32_t index = (uint32_t)(r - s->rank);
    const struct vt_step *done;
    struct metrics_load load;
    int rc = vt_engine_step(r->core, now, &done, err);

    if (rc == VT_OK && s->c->kv_events)
        rc = serve_kv(s, r, err);
    if (rc != VT_OK || done == NULL)
        return rc;
    s->sums.steps++;
    note_plan(s, done);
    if (s->export != NULL)
        note_rows(s, done);
    load = serve_load(r);
    metrics_step(s->metrics, index, done, &load);
    if (s->export != NULL && s->c->otlp_steps)
        export_step(s->export, index, done, s->zero_unix_s, vt_engine_sched(r->core));
    return pack(s, done, err);
}

int serve_engines(struct server *s, vt_ns now, struct vt_err *err)
{
    int rc = VT_OK;

    for (uint32_t i = 0; i < s->c->n_engines; i++) {
        struct rank *r = &s->rank[i];

        for (int k = 0; k < ACTIONS && rc == VT_OK && vt_engine_due(r->core) <= now;
             k++) {
            rc = act(s, r, now, err);
            serve_due(s, now);
        }
    }
    return rc;
}
