/* admit.c - prepared requests are answered, or their choices go to an engine; what
 * comes of a choice is measured and told when it is over. */
#include <assert.h>
#include <string.h>

#include "http/serve/serve.h"

/* ---- to an engine ---------------------------------------------------- */

/* The rank with the least to do, as vLLM's balancer weighs it. */
static uint32_t pick_rank(const struct server *s, const struct api_request *r)
{
    uint64_t best = UINT64_MAX;
    uint32_t at = 0;

    if (r->dp_rank >= 0)
        return (uint32_t)r->dp_rank % s->c->n_engines;
    for (uint32_t i = 0; i < s->c->n_engines; i++) {
        const struct vt_sched *q = vt_engine_sched(s->rank[i].core);
        uint64_t waiting = vt_sched_waiting(q, NULL, 0);
        uint64_t score = 3 * waiting + s->rank[i].held;

        if (score < best) {
            best = score;
            at = i;
        }
    }
    return at;
}

static double unix_s(const struct server *s, vt_ns wall)
{
    return s->zero_unix_s + (double)(wall - s->axis.zero_ns) / 1e9;
}

/* One that is preempted often has more stages than are kept: its end replaces the last
 * of them. */
void choice_event(struct choice *c, enum export_stage stage, vt_ns at, uint64_t step)
{
    struct server *s = c->x->s;
    bool past_prompt = c->out->told > 0 || stage == EXPORT_FIRST_TOKEN;

    if (!s->export)
        return;
    if (c->n_events == CHOICE_EVENTS && stage != EXPORT_FINISHED)
        return;
    if (c->n_events < CHOICE_EVENTS)
        c->n_events++;
    c->event[c->n_events - 1] = (struct export_event){
        .stage = stage,
        .unix_s = unix_s(s, vt_axis_wall(&s->axis, at)),
        .step = step,
        .prompt_done = past_prompt ? c->prompt->n : 0,
        .output_done = c->out->told,
    };
}

int choice_admit(struct choice *c, vt_ns now, struct vt_err *err)
{
    struct server *s = c->x->s;
    struct rank *rank = &s->rank[c->x->rank];
    const struct reply *p = &c->reply;
    const struct api_request *r = &c->x->r;
    struct vt_request v;
    int rc = vt_driver_add(s->driver, c, &c->tag, err);

    if (rc != VT_OK)
        return rc;
    if (s->peers && (rc = vt_kv_ask_read(&c->kv, r->kv_transfer, err))) {
        vt_driver_remove(s->driver, c->tag);
        c->tag = 0;
        return rc;
    }
    c->rank = c->x->rank;
    c->queued = vt_driver_arrival(s->driver, c->rank, now);
    serve_blocks(c);
    v = (struct vt_request){
        .tag = c->tag,
        .prompt_tokens = c->prompt->n,
        /* Stop strings are the frontend's: the engine learns of them by an abort. */
        .max_tokens = p->end == REPLY_STOP_STRING ? r->max_tokens : p->n,
        .eos_at = p->end == REPLY_EOS ? p->n - 1 : VT_NO_STOP,
        .stop_at = p->end == REPLY_STOP_TOKEN ? p->n - 1 : VT_NO_STOP,
        .priority = r->priority,
        .arrival = c->queued,
        .id = r->id,
        .lora = r->lora,
        .skip_cache = r->prompt_logprobs >= 0,
        .apart = (uint8_t)c->kv.apart,
        .unsure = c->kv.apart == VT_DECODE_ONLY && c->kv.host,
        .block_key = vt_blocks_key,
        .tokens = &c->blocks,
    };
    rc = vt_request_check(&s->c->engine, &v, err);
    if (rc == VT_OK)
        rc = vt_engine_add(rank->core, c->queued, &v, err);
    if (rc == VT_OK && v.unsure && !vt_peers_reach(s->peers, &c->kv, c->tag))
        rc = vt_engine_reached(rank->core, c->queued, c->tag, false, err);
    if (rc != VT_OK) {
        vt_driver_remove(s->driver, c->tag);
        vt_kv_ask_free(&c->kv);
        c->tag = 0;
        return rc;
    }
    rank->held++;
    gate_enter(&s->gate, c->prompt->n);
    c->x->n_open++;
    choice_event(c, EXPORT_QUEUED, c->queued, 0);
    return VT_OK;
}

/* ---- the end of one -------------------------------------------------- */

static void measure_choice(const struct choice *c, enum metrics_finish finish,
                           struct metrics_request *m)
{
    const struct exchange *x = c->x;
    const struct server *s = x->s;
    bool is_last =
        x->n_open == 1 && (x->n_admitted == x->n_choices || x->end != END_NONE);
    vt_ns scheduled;

    *m = (struct metrics_request){.finish = finish,
                                  .prompt_tokens = c->prompt->n,
                                  .cached_tokens = c->out->cached_tokens,
                                  .output_tokens = c->out->told,
                                  .max_tokens = x->r.max_tokens,
                                  .preemptions = c->preemptions,
                                  .n = is_last ? x->r.n : 0,
                                  .most_tokens = x->most_told,
                                  .e2e = (double)(vt_wall_ns() - x->arrived_wall) / 1e9,
                                  .queue = -1,
                                  .prefill = -1,
                                  .decode = -1,
                                  .inference = -1};
    if (c->scheduled < 0)
        return;
    scheduled = vt_axis_wall(&s->axis, c->scheduled);
    m->queue = (double)(scheduled - vt_axis_wall(&s->axis, c->queued)) / 1e9;
    if (c->first_wall == 0)
        return;
    m->prefill = (double)(c->first_wall - scheduled) / 1e9;
    m->decode = (double)(c->last_wall - c->first_wall) / 1e9;
    m->inference = (double)(c->last_wall - scheduled) / 1e9;
}

static void export_choice(struct choice *c, const char *finish)
{
    struct exchange *x = c->x;
    struct server *s = x->s;
    struct export_request e = {
        .id = x->r.id,
        .tag = c->tag,
        .engine = c->rank,
        .traceparent = x->r.traceparent,
        .finish = finish,
        .arrival_s = unix_s(s, x->arrived_wall),
        .queued_s = unix_s(s, vt_axis_wall(&s->axis, c->queued)),
        .scheduled_s = unix_s(s, vt_axis_wall(&s->axis, c->scheduled)),
        .first_s = unix_s(s, c->first_wall),
        .last_s = unix_s(s, c->last_wall),
        .prompt_tokens = c->prompt->n,
        .cached_tokens = c->out->cached_tokens,
        .output_tokens = c->out->told,
        .max_tokens = x->r.max_tokens,
        .n = x->r.n,
        .temperature = x->r.temperature,
        .top_p = x->r.top_p,
        .event = c->event,
        .n_events = c->n_events,
    };

    if (s->export && c->scheduled >= 0 && c->first_wall > 0)
        export_request(s->export, &e);
}

void choice_over(struct choice *c, enum metrics_finish finish)
{
    static const char *const names[] = {"stop", "length", "abort", "error",
                                        "repetition"};
    struct server *s = c->x->s;
    struct metrics_request m;

    if (c->tag == 0)
        return;
    measure_choice(c, finish, &m);
    metrics_request(s->metrics, c->rank, &m);
    if (c->n_events == 0 || c->event[c->n_events - 1].stage != EXPORT_FINISHED)
        choice_event(c, EXPORT_FINISHED, vt_axis_now(&s->axis), 0);
    export_choice(c, names[finish]);
    assert(s->rank[c->rank].held > 0 && c->x->n_open > 0);
    if (s->peers)
        vt_peers_over(s->peers, &c->kv);
    vt_driver_remove(s->driver, c->tag);
    c->tag = 0;
    s->rank[c->rank].held--;
    if (c->first_wall == 0)
        gate_first_token(&s->gate, c->prompt->n);
    gate_leave(&s->gate);
    c->x->n_open--;
    if (finish == METRICS_ABORT)
        s->sums.aborted++;
    else if (finish == METRICS_ERROR)
        s->sums.failed++;
    else
        s->sums.finished++;
}

void choice_take_back(struct choice *c, enum metrics_finish finish)
{
    struct server *s = c->x->s;

    if (c->tag == 0)
        return;
    (void)vt_engine_abort(s->rank[c->rank].core, vt_axis_now(&s->axis), c->tag);
    choice_over(c, finish);
}

/* ---- all of a request ------------------------------------------------ */

void serve_prepared(struct exchange *x)
{
    struct server *s = x->s;
    struct api_error e;

    x->at_worker = false;
    if (!x->conn) {
        serve_abort(x);
        return;
    }
    switch (x->task) {
    case TASK_PLAIN:
        serve_answer(x, x->plain.status, x->plain.type, x->answer.data, x->answer.len);
        return;
    case TASK_ADMIN:
        x->row->admin(x);
        return;
    case TASK_WRITE:
        if (!x->answer.failed) {
            serve_answer(x, 200, "application/json", x->answer.data, x->answer.len);
            return;
        }
        (void)api_nomem(&e);
        serve_error(x, &e);
        return;
    default:
        break;
    }
    if (x->bad) {
        serve_error(x, x->error);
        return;
    }
    if (!gate_admits_all(&s->gate, &x->r, &e)) {
        e.anthropic = x->kind == API_MESSAGES;
        serve_error(x, &e);
        return;
    }
    x->rank = pick_rank(s, &x->r);
    if (s->c->dev_mode)
        exchange_name(x);
    serve_turn(x);
}

void serve_worker_done(void *server)
{
    struct server *s = server;
    struct vt_inbox_item *at, *next;

    vt_inbox_calm(&s->worker.from);
    for (at = vt_inbox_take(&s->worker.from); at; at = next) {
        struct exchange *x = (struct exchange *)at;

        next = at->next;
        assert(s->worker.held_bytes >= x->held_bytes);
        s->worker.held_bytes -= x->held_bytes;
        x->held_bytes = 0;
        serve_prepared(x);
    }
}
