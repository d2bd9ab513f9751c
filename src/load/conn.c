/* conn.c - one request in flight: its connection, its bytes, its record. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "load/run.h"

enum { READ_BYTES = 256 << 10, MAX_ERROR_BODY = 4096, DETAIL_BYTES = 400 };

struct vt_load_record *load_record(struct load_conn *c)
{
    return c->probe ? &c->run->probe : &c->run->out->record[c->record];
}

/* ---- events of the stream ---------------------------------------------- */

static void add_stamp(struct load_conn *c)
{
    struct load_run *r = c->run;

    if (r->rc == VT_OK)
        r->rc =
            vt_grow(&c->stamp, &c->cap_stamps, c->n_stamps + 1, sizeof(vt_ns), r->err);
    if (r->rc == VT_OK)
        c->stamp[c->n_stamps++] = c->read_at;
    r->tokens++;
}

static bool wants_text(const struct load_conn *c)
{
    const struct load_run *r = c->run;

    return !c->probe && (r->config->keep_texts || r->config->tokenizer ||
                         r->plan->session[c->session].n_turns > 1);
}

static void take_choice(struct load_conn *c, struct vt_load_record *q,
                        const struct load_event *e)
{
    add_stamp(c);
    if (q->first == 0)
        q->first = c->read_at;
    if (q->first_text == 0 && e->says)
        q->first_text = c->read_at;
    q->last = c->read_at;
    if (e->text.len > 0 && wants_text(c))
        load_unescape(&c->text, e->text);
    if (e->finish.len > 0) {
        vt_buf_clear(&c->finish);
        load_unescape(&c->finish, e->finish);
    }
}

static void take_data(void *user, const char *p, size_t len)
{
    struct load_conn *c = user;
    struct vt_load_record *q = load_record(c);
    struct load_event e;

    if (len == 6 && memcmp(p, "[DONE]", 6) == 0)
        return;
    if (!load_event_scan(&e, p, len)) {
        c->bad_event = true;
        return;
    }
    q->last_event = c->read_at;
    if (e.choice)
        take_choice(c, q, &e);
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

static const char *keep(struct load_run *r, const struct vt_buf *b)
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
    q->status = c->response.status;
    if (c->probe)
        return;
    keep_stamps(c, q);
    if (q->ok)
        count_tokens(c, q);
    q->finish = c->finish.len > 0 ? keep(r, &c->finish) : NULL;
    if (r->config->keep_texts) {
        q->text = keep(r, &c->text);
        q->text_len = c->text.len;
    }
    if (q->ok)
        return;
    q->error = vt_load_failure_name(why);
    if (why == VT_LOAD_STATUS && c->response.reason[0])
        q->error = vt_arena_copy(&r->out->arena, c->response.reason,
                                 strlen(c->response.reason));
    if (detail)
        q->detail =
            vt_arena_copy(&r->out->arena, detail, strnlen(detail, DETAIL_BYTES));
}

/* The link stays open if the response has left it in a known state. */
static void let_go(struct load_conn *c, bool reusable)
{
    struct load_run *r = c->run;

    if (!reusable)
        load_link_close(&c->link);
    c->state = LOAD_IDLE;
    r->idle[r->n_idle++] = c;
}

static void finish(struct load_conn *c, enum vt_load_failure why, const char *detail,
                   bool reusable)
{
    struct vt_load_record *q = load_record(c);

    q->ended =
        c->read_at > q->begun && why == VT_LOAD_FINE ? c->read_at : load_now(c->run);
    complete_record(c, why, detail);
    load_run_ended(c);
    let_go(c, reusable);
}

void load_conn_fail(struct load_conn *c, enum vt_load_failure why, const char *detail)
{
    finish(c, why, detail, false);
}

static const char *status_detail(struct load_conn *c)
{
    const struct load_response *p = &c->response;

    vt_buf_clear(&c->message);
    vt_buf_printf(&c->message, "%d %s", p->status, p->reason);
    if (p->body.len > 0)
        vt_buf_printf(&c->message, ": %.*s", DETAIL_BYTES, p->body.data);
    return c->message.data;
}

static void finish_whole(struct load_conn *c, bool clean)
{
    struct load_response *p = &c->response;
    bool reusable = clean && p->keep_alive;

    if (p->status != 200)
        finish(c, VT_LOAD_STATUS, status_detail(c), reusable);
    else if (c->told)
        finish(c, VT_LOAD_TOLD, c->message.data, reusable);
    else if (c->bad_event)
        finish(c, VT_LOAD_MALFORMED, "an event is no JSON object", reusable);
    else if (c->n_stamps == 0)
        finish(c, VT_LOAD_EMPTY, p->body.len > 0 ? p->body.data : NULL, reusable);
    else
        finish(c, VT_LOAD_FINE, NULL, reusable);
}

/* ---- sending ---------------------------------------------------------- */

static void watch(struct load_conn *c, uint32_t interest, int how)
{
    struct epoll_event e = {.events = interest, .data = {.ptr = c}};

    if (how == EPOLL_CTL_ADD || c->interest != interest)
        (void)epoll_ctl(c->run->epoll, how, c->link.fd, &e);
    c->interest = interest;
}

static void open_link(struct load_conn *c)
{
    struct load_run *r = c->run;

    c->reused = false;
    c->opened = load_now(r);
    if (!load_link_open(&c->link, &r->target)) {
        load_conn_fail(c, VT_LOAD_CONNECT, strerror(errno));
        return;
    }
    r->out->connections++;
    c->state = LOAD_CONNECTING;
    watch(c, EPOLLIN | EPOLLOUT, EPOLL_CTL_ADD);
}

/* A server may close a connection that is idle just when it is used again. */
static void lost(struct load_conn *c, const char *detail)
{
    if (c->reused && !c->heard) {
        load_link_close(&c->link);
        c->asked = 0;
        load_response_reset(&c->response);
        open_link(c);
        return;
    }
    load_conn_fail(c, VT_LOAD_CLOSED, detail);
}

static void sent(struct load_conn *c)
{
    struct load_run *r = c->run;
    struct vt_load_record *q = load_record(c);

    q->sent = load_now(r);
    c->state = LOAD_WAITING;
    watch(c, EPOLLIN, EPOLL_CTL_MOD);
    if (c->probe)
        return;
    if (c->reused)
        vt_late_add(&r->lag, q->sent - q->begun);
    else /* connecting is the network's time, not ours */
        vt_late_add(&r->lag, c->opened - q->begun + q->sent - c->ready);
}

static void send_more(struct load_conn *c)
{
    c->state = LOAD_SENDING;
    while (c->asked < c->ask.len) {
        ssize_t n =
            load_link_write(&c->link, c->ask.data + c->asked, c->ask.len - c->asked);

        if (n == LOAD_AGAIN) {
            watch(c, EPOLLIN | (c->link.wants_write ? EPOLLOUT : 0U), EPOLL_CTL_MOD);
            return;
        }
        if (n == LOAD_GONE) {
            lost(c, load_link_error(&c->link));
            return;
        }
        c->asked += (size_t)n;
    }
    sent(c);
}

void load_conn_begin(struct load_conn *c, vt_ns begun)
{
    load_record(c)->begun = begun;
    load_response_reset(&c->response);
    c->asked = c->n_stamps = 0;
    c->heard = c->bad_event = c->told = false;
    c->read_at = 0;
    vt_buf_clear(&c->text);
    vt_buf_clear(&c->finish);
    vt_buf_clear(&c->message);
    if (c->link.fd < 0) {
        open_link(c);
        return;
    }
    c->reused = true;
    send_more(c);
}

/* ---- what happens on the socket --------------------------------------- */

static void connecting(struct load_conn *c)
{
    bool tls_failed;
    int rc = load_link_ready(&c->link, &tls_failed);

    if (rc == LOAD_AGAIN) {
        watch(c, EPOLLIN | (c->link.wants_write ? EPOLLOUT : 0U), EPOLL_CTL_MOD);
    } else if (rc == 1) {
        c->ready = load_now(c->run);
        send_more(c);
    } else {
        load_conn_fail(c, tls_failed ? VT_LOAD_TLS : VT_LOAD_CONNECT,
                       load_link_error(&c->link));
    }
}

static void closed(struct load_conn *c, const char *why)
{
    load_response_close(&c->response);
    if (c->response.part == LOAD_WHOLE)
        finish_whole(c, false);
    else
        lost(c, why);
}

/* What came gets the time at which it was read: parsing comes after. */
static void read_more(struct load_conn *c)
{
    struct load_run *r = c->run;

    do {
        ssize_t n = load_link_read(&c->link, r->buffer, READ_BYTES);
        size_t used;

        if (n == LOAD_AGAIN)
            return;
        c->read_at = load_now(r);
        if (n <= 0) {
            closed(c, n == 0 ? "the peer closed it" : load_link_error(&c->link));
            return;
        }
        c->heard = true;
        used = load_response_feed(&c->response, r->buffer, (size_t)n);
        if (c->response.part == LOAD_WHOLE) {
            /* An answer before the end of the question leaves the rest of it unsent. */
            finish_whole(c, used == (size_t)n && c->state == LOAD_WAITING &&
                                !load_link_holds(&c->link));
            return;
        }
        if (c->response.part == LOAD_BROKEN) {
            load_conn_fail(c, VT_LOAD_MALFORMED, "what came is no HTTP/1.1");
            return;
        }
    } while (load_link_holds(&c->link));
}

void load_conn_event(struct load_conn *c, uint32_t events)
{
    if (c->link.fd < 0)
        return; /* closed by an event before it in the same batch */
    if (c->state == LOAD_IDLE)
        load_link_close(&c->link); /* only an end, or noise, can come now */
    else if (c->state == LOAD_CONNECTING)
        connecting(c);
    else if (events & (EPOLLIN | EPOLLHUP | EPOLLERR))
        read_more(c);
    if (c->state == LOAD_SENDING && (events & EPOLLOUT))
        send_more(c);
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
    c->link.fd = -1;
    c->run = r;
    c->response.max_body = MAX_ERROR_BODY;
    c->response.data = take_data;
    c->response.user = c;
    r->conn[r->n_conns++] = c;
    return c;
}

void load_conn_free(struct load_conn *c)
{
    load_link_close(&c->link);
    load_response_free(&c->response);
    vt_buf_free(&c->ask);
    vt_buf_free(&c->text);
    vt_buf_free(&c->finish);
    vt_buf_free(&c->message);
    free(c->stamp);
    free(c);
}
