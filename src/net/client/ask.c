/* ask.c - one request that is waited for. */
#include "live/live.h"
#include "net/client/client.h"

enum { MAX_REPLY = 64 << 20 };
#define SLICE_NS (100 * VT_MS) /* between looks at the caller's wish to stop */

void net_note_end(struct net_call *c, enum net_ending e, const char *why)
{
    struct net_outcome *a = c->user;

    *a = (struct net_outcome){.over = true, .ending = e};
    snprintf(a->why, sizeof(a->why), "%s", why ? why : "");
}

void net_ask_write(const struct net_client *n, const struct net_ask *a,
                   struct vt_buf *out)
{
    const char *path = a->path || n->url.path[0] ? n->url.path : "/";

    vt_buf_printf(out, "%s ", a->method ? a->method : a->body ? "POST" : "GET");
    if (a->path)
        vt_buf_add(out, path, n->url.base_len);
    else
        vt_buf_printf(out, "%s%s", *path == '?' ? "/" : "", path);
    vt_buf_printf(out, "%s HTTP/1.1\r\nHost: %s\r\nAccept: */*\r\n",
                  a->path ? a->path : "", n->url.authority);
    if (a->last)
        vt_buf_str(out, "Connection: close\r\n");
    for (size_t i = 0; i < a->n_headers; i++)
        vt_buf_printf(out, "%s: %s\r\n", a->header[i].name, a->header[i].value);
    if (a->body)
        vt_buf_printf(out, "Content-Length: %zu\r\n", a->body_len);
    vt_buf_str(out, "\r\n");
    vt_buf_add(out, a->body, a->body_len);
}

/* Connects to the next address if this one does not answer. Returns when the call has
 * ended, or says why it is given up. */
static const char *wait_for_end(struct net_call *c, const struct net_ask *ask,
                                const struct net_outcome *a, vt_ns until)
{
    struct net_client *n = c->client;
    vt_ns begun = vt_wall_ns();

    static_assert(NET_TRY_S == 5, "a text says so");
    while (!a->over) {
        vt_ns now = vt_wall_ns(), heard = c->read_at > begun ? c->read_at : begun;

        if (ask->stopped && ask->stopped(ask->user))
            return "stopped";
        if (now >= until)
            return c->state == NET_CONNECTING ? "no connection in time"
                                              : "no response in time";
        if (c->state == NET_CONNECTING && now - c->opened_at > NET_TRY_S * VT_SEC)
            return "no answer for 5 s";
        if (ask->silence_ns > 0 && now - heard > ask->silence_ns)
            return "nothing has come for too long";
        (void)net_client_wait(n, SLICE_NS < until - now ? SLICE_NS : until - now);
    }
    return NULL;
}

static int ask_call(struct net_call *c, const struct net_ask *ask,
                    const struct vt_buf *request, struct vt_err *err)
{
    struct net_client *n = c->client;
    vt_ns until = vt_wall_ns() + ask->timeout_ns;
    struct net_outcome a = {0};
    const char *given_up;
    bool no_link;

    c->user = &a; // cppcheck-suppress autoVariables ; the call ends in here
    for (;;) {
        net_call_begin(c, request->data, request->len);
        given_up = wait_for_end(c, ask, &a, until);
        no_link = given_up ? c->state == NET_CONNECTING : a.ending == NET_NO_LINK;
        if (given_up)
            net_call_cancel(c);
        if (!no_link || vt_wall_ns() >= until || n->chosen + 1 >= n->n_addresses)
            break;
        n->chosen++;
        a.over = false;
    }
    if (no_link)
        n->chosen = 0;
    if (no_link || (!given_up && a.ending == NET_NO_TRUST))
        return vt_fail(err, VT_EIO, "cannot connect to %s: %s", n->url.authority,
                       given_up ? given_up : a.why);
    if (given_up)
        return vt_fail(err, VT_EIO, "%s", given_up);
    if (a.ending != NET_WHOLE)
        return vt_fail(err, VT_EIO, "no whole HTTP/1.1 response: %s", a.why);
    return c->response.body.failed ? vt_nomem(err) : VT_OK;
}

int net_ask(struct net_client *n, const struct net_ask *ask, int *status,
            struct vt_buf *reply, struct vt_err *err)
{
    struct vt_buf request = {0};
    struct net_call *c = n->call;
    int rc = net_client_lookup(n, err);

    if (rc != VT_OK)
        return rc;
    if (!c) {
        c = n->call = calloc(1, sizeof(*c));
        if (!c)
            return vt_nomem(err);
        net_call_init(c, n);
        c->ended = net_note_end;
    }
    c->response.max_body = ask->max_reply > 0 ? ask->max_reply : MAX_REPLY;
    c->response.sink = ask->sink;
    c->response.sse.user = ask->user;
    net_ask_write(n, ask, &request);
    rc = request.failed ? vt_nomem(err) : ask_call(c, ask, &request, err);
    if (rc == VT_OK) {
        *status = c->response.status;
        vt_buf_add(reply, c->response.body.data, c->response.body.len);
        rc = reply->failed ? vt_nomem(err) : VT_OK;
    }
    vt_buf_free(&request);
    return rc;
}

int net_ask_once(const char *url, const struct net_trust *trust,
                 const struct net_ask *a, int *status, struct vt_buf *reply,
                 struct vt_err *err)
{
    struct net_ask last = *a;
    struct net_client n;
    int rc = net_client_open(&n, url, trust, err);

    last.last = true;
    if (rc == VT_OK)
        rc = net_ask(&n, &last, status, reply, err);
    net_client_close(&n);
    return rc;
}
