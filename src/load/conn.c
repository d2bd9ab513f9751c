/* conn.c - one request in flight: its connection, its bytes, its record. */
#include "load/run.h"

enum { MAX_ERROR_BODY = 4096, DETAIL_BYTES = 400 };

struct vt_load_record *load_record(struct load_conn *c)
{
    return c->probe ? &c->run->probe : &c->run->out->record[c->record];
}

/* ---- events of the stream ---------------------------------------------- */

static void add_stamp(struct load_conn *c, vt_ns at)
{
    struct load_run *r = c->run;

    if (r->rc == VT_OK)
        r->rc =
            vt_grow(&c->stamp, &c->cap_stamps, c->n_stamps + 1, sizeof(vt_ns), r->err);
    if (r->rc == VT_OK)
        c->stamp[c->n_stamps++] = at;
    r->tokens++;
}

static bool wants_text(const struct load_conn *c)
{
    const struct load_run *r = c->run;

    return !c->probe && (r->config->keep_texts || r->config->tokenizer ||
                         r->plan->session[c->session].n_turns > 1);
}

static void on_choice(struct load_conn *c, struct vt_load_record *q,
                      const struct load_event *e, vt_ns at)
{
    add_stamp(c, at);
    if (q->first == 0)
        q->first = at;
    if (q->first_text == 0 && e->says)
        q->first_text = at;
    q->last = at;
    if (e->text.len > 0 && wants_text(c))
        load_unescape(&c->text, e->text);
    if (e->finish.len > 0) {
        vt_buf_clear(&c->finish);
        load_unescape(&c->finish, e->finish);
    }
}

static void on_data(void *user, const char *p, size_t len)
{
    struct load_conn *c = user;
    struct vt_load_record *q = load_record(c);
    vt_ns at = c->call.read_at - c->run->zero;
    struct load_event e;

    if (len == 6 && memcmp(p, "[DONE]", 6) == 0)
        return;
    if (!load_event_scan(&e, p, len)) {
        c->bad_event = true;
        return;
    }
    q->last_event = at;
    if (e.choice)
        on_choice(c, q, &e, at);
    if (e.usage) {
        q->prompt_tokens = e.prompt_tokens > 0 ? e.prompt_tokens : q->prompt_tokens;
        q->output_tokens = e.output_tokens;
        q->cached_tokens = e.cached_tokens;
        q->counted_by_server = true;
    }
    if (e.error) {
        c->told = true;
        vt_buf_clear(&c->message);
        load_unescape(&c->message, e.message);
    }
}

/* ---- the end of a request ---------------------------------------------- */

static const char *copy_text(struct load_run *r, const struct vt_buf *b)
{
    char *copy = b->data ? vt_arena_copy(&r->out->arena, b->data, b->len) : NULL;

    if (b->failed || (b->data && !copy))
        r->rc = vt_nomem(r->err);
    return copy;
}

static void keep_stamps(struct load_conn *c, struct vt_load_record *q)
{
    struct load_run *r = c->run;
    vt_ns *copy;

    if (c->n_stamps == 0 || r->rc != VT_OK)
        return;
    copy = vt_arena_alloc(&r->out->arena, c->n_stamps * sizeof(*copy));
    if (!copy) {
        r->rc = vt_nomem(r->err);
        return;
    }
    memcpy(copy, c->stamp, c->n_stamps * sizeof(*copy));
    q->stamp = copy;
    q->n_stamps = (uint32_t)c->n_stamps;
}

/* What the server has not counted. The role chunk of a chat is no token. */
static void count_tokens(struct load_conn *c, struct vt_load_record *q)
{
    const struct vt_tokenizer *t = c->run->config->tokenizer;
    struct vt_ids ids = {0};

    if (q->counted_by_server && q->output_tokens > 0)
        return;
    if (t && c->text.len > 0 &&
        vt_tokenizer_encode(t, c->text.data, c->text.len, VT_ENCODE_PLAIN, &ids,
                            NULL) == VT_OK) {
        q->output_tokens = (uint32_t)ids.n;
    } else {
        q->output_tokens = (uint32_t)c->n_stamps;
        if (q->first_text > q->first && q->output_tokens > 1)
            q->output_tokens--;
    }
    vt_ids_free(&ids);
}

static void complete_record(struct load_conn *c, enum vt_load_failure why,
                            const char *detail)
{
    struct load_run *r = c->run;
    struct vt_load_record *q = load_record(c);

    q->ok = why == VT_LOAD_FINE;
    q->failure = why;
    q->status = c->call.response.status;
    if (c->probe)
        return;
    keep_stamps(c, q);
    if (q->ok)
        count_tokens(c, q);
    q->finish = c->finish.len > 0 ? copy_text(r, &c->finish) : NULL;
    if (r->config->keep_texts) {
        q->text = copy_text(r, &c->text);
        q->text_len = c->text.len;
    }
    if (q->ok)
        return;
    q->error = vt_load_failure_name(why);
    if (why == VT_LOAD_STATUS && c->call.response.reason[0])
        q->error = vt_arena_copy(&r->out->arena, c->call.response.reason,
                                 strlen(c->call.response.reason));
    if (detail)
        q->detail =
            vt_arena_copy(&r->out->arena, detail, strnlen(detail, DETAIL_BYTES));
}

static void end_request(struct load_conn *c, enum vt_load_failure why,
                        const char *detail)
{
    struct load_run *r = c->run;
    struct vt_load_record *q = load_record(c);
    const struct net_call *k = &c->call;
    vt_ns read_at = k->read_at - r->zero;

    if (k->sent_at > 0)
        q->sent = k->sent_at - r->zero;
    if (k->sent_at > 0 && !c->probe) /* connecting is the network's time, not ours */
        vt_late_add(&r->lag, k->reused ? q->sent - q->begun
                                       : k->opened_at - r->zero - q->begun +
                                             k->sent_at - k->ready_at);
    q->ended = why == VT_LOAD_FINE && read_at > q->begun ? read_at : load_now(r);
    complete_record(c, why, detail);
    load_run_ended(c);
    r->idle[r->n_idle++] = c;
}

void load_conn_fail(struct load_conn *c, enum vt_load_failure why, const char *detail)
{
    net_call_cancel(&c->call);
    end_request(c, why, detail);
}

static const char *status_detail(struct load_conn *c)
{
    const struct net_response *p = &c->call.response;

    vt_buf_clear(&c->message);
    vt_buf_printf(&c->message, "%d %s", p->status, p->reason);
    if (p->body.len > 0)
        vt_buf_printf(&c->message, ": %.*s", DETAIL_BYTES, p->body.data);
    return c->message.data;
}

static void call_ended(struct net_call *k, enum net_ending e, const char *why)
{
    static const enum vt_load_failure failure[] = {
        [NET_NO_LINK] = VT_LOAD_CONNECT,
        [NET_NO_TRUST] = VT_LOAD_TLS,
        [NET_CUT_OFF] = VT_LOAD_CLOSED,
        [NET_MALFORMED] = VT_LOAD_MALFORMED,
    };
    const struct net_response *p = &k->response;
    struct load_conn *c = k->user;

    if (e != NET_WHOLE)
        end_request(c, failure[e], why);
    else if (p->status != 200)
        end_request(c, VT_LOAD_STATUS, status_detail(c));
    else if (c->told)
        end_request(c, VT_LOAD_TOLD, c->message.data);
    else if (c->bad_event)
        end_request(c, VT_LOAD_MALFORMED, "an event is no JSON object");
    else if (c->n_stamps == 0)
        end_request(c, VT_LOAD_EMPTY, p->body.len > 0 ? p->body.data : NULL);
    else
        end_request(c, VT_LOAD_FINE, NULL);
}

void load_conn_begin(struct load_conn *c, vt_ns begun)
{
    load_record(c)->begun = begun;
    c->n_stamps = 0;
    c->bad_event = c->told = false;
    vt_buf_clear(&c->text);
    vt_buf_clear(&c->finish);
    vt_buf_clear(&c->message);
    net_call_begin(&c->call, c->ask.data, c->ask.len);
}

/* ---- the pool --------------------------------------------------------- */

struct load_conn *load_conn_take(struct load_run *r)
{
    struct load_conn *c;

    if (r->n_idle > 0)
        return r->idle[--r->n_idle];
    if ((r->rc = vt_grow(&r->conn, &r->cap_conns, r->n_conns + 1, sizeof(*r->conn),
                         r->err)) ||
        (r->rc =
             vt_grow(&r->idle, &r->cap_idle, r->n_conns + 1, sizeof(*r->idle), r->err)))
        return NULL;
    c = calloc(1, sizeof(*c));
    if (!c) {
        r->rc = vt_nomem(r->err);
        return NULL;
    }
    net_call_init(&c->call, &r->client);
    c->run = r;
    c->call.user = c->call.response.sse.user = c;
    c->call.ended = call_ended;
    c->call.response.max_body = MAX_ERROR_BODY;
    c->call.response.sse.data = on_data;
    r->conn[r->n_conns++] = c;
    return c;
}

void load_conn_free(struct load_conn *c)
{
    net_call_free(&c->call);
    vt_buf_free(&c->ask);
    vt_buf_free(&c->text);
    vt_buf_free(&c->finish);
    vt_buf_free(&c->message);
    free(c->stamp);
    free(c);
}
