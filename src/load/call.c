/* call.c - one request that is waited for: what a server says of itself. */
#include <poll.h>
#include <string.h>

#include "live/live.h"
#include "load/client.h"

enum { MAX_REPLY = 64 << 20, SLICE_MS = 100 };

struct call {
    const struct vt_load_config *config;
    struct load_link link;
    struct load_response response;
    vt_ns until;
};

/* false: it was too long, or the caller's caller wants to stop. */
static bool wait_link(struct call *k, bool writing)
{
    struct pollfd p = {.fd = k->link.fd, .events = writing ? POLLOUT : POLLIN};

    while (vt_wall_ns() < k->until) {
        if (poll(&p, 1, SLICE_MS) > 0)
            return true;
        if (k->config->stopped && k->config->stopped(k->config->user))
            return false;
    }
    return false;
}

static int connect_link(struct call *k, struct vt_err *err)
{
    bool tls_failed;
    int rc;

    while ((rc = load_link_ready(&k->link, &tls_failed)) == LOAD_AGAIN)
        if (!wait_link(k, k->link.wants_write))
            return vt_fail(err, VT_EIO, "no connection in time");
    if (rc != 1)
        return vt_fail(err, VT_EIO, "%s", load_link_error(&k->link));
    return VT_OK;
}

static int send_all(struct call *k, const struct vt_buf *b, struct vt_err *err)
{
    for (size_t at = 0; at < b->len;) {
        ssize_t n = load_link_write(&k->link, b->data + at, b->len - at);

        if (n == LOAD_GONE)
            return vt_fail(err, VT_EIO, "%s", load_link_error(&k->link));
        if (n == LOAD_AGAIN && !wait_link(k, k->link.wants_write))
            return vt_fail(err, VT_EIO, "it was not taken in time");
        at += n > 0 ? (size_t)n : 0;
    }
    return VT_OK;
}

static int read_all(struct call *k, struct vt_err *err)
{
    char bytes[16384];

    while (k->response.part != LOAD_WHOLE) {
        ssize_t n = load_link_read(&k->link, bytes, sizeof(bytes));

        if (n > 0)
            (void)load_response_feed(&k->response, bytes, (size_t)n);
        else if (n == LOAD_AGAIN && !wait_link(k, false))
            return vt_fail(err, VT_EIO, "no response in time");
        else if (n != LOAD_AGAIN)
            load_response_close(&k->response);
        if (k->response.part == LOAD_BROKEN ||
            (n <= 0 && n != LOAD_AGAIN && k->response.part != LOAD_WHOLE))
            return vt_fail(err, VT_EIO, "no whole HTTP/1.1 response");
    }
    return VT_OK;
}

static void write_request(const struct vt_load_config *c,
                          const struct vt_load_call *call, const struct load_target *t,
                          struct vt_buf *b)
{
    vt_buf_printf(b, "%s %s%s HTTP/1.1\r\nHost: %s\r\n", call->body ? "POST" : "GET",
                  t->path, call->path, t->authority);
    vt_buf_str(b, "Accept: */*\r\nConnection: close\r\n");
    if (c->api_key)
        vt_buf_printf(b, "Authorization: Bearer %s\r\n", c->api_key);
    for (size_t i = 0; i < c->n_headers; i++)
        vt_buf_printf(b, "%s: %s\r\n", c->header[i].name, c->header[i].value);
    if (call->body)
        vt_buf_printf(b, "Content-Type: application/json\r\nContent-Length: %zu\r\n",
                      call->body_len);
    vt_buf_str(b, "\r\n");
    if (call->body)
        vt_buf_add(b, call->body, call->body_len);
}

int vt_load_call(const struct vt_load_config *c, const struct vt_load_call *call,
                 int *status, struct vt_buf *reply, struct vt_err *err)
{
    struct call k = {
        .config = c, .link = {.fd = -1}, .until = vt_wall_ns() + call->timeout_ns};
    struct load_target t = {0};
    struct vt_buf b = {0};
    int rc = load_target_open(&t, c, err);

    k.response.max_body = MAX_REPLY;
    if (rc == VT_OK && !load_link_open(&k.link, &t))
        rc = vt_fail(err, VT_EIO, "no socket");
    if (rc == VT_OK)
        rc = connect_link(&k, err);
    write_request(c, call, &t, &b);
    if (rc == VT_OK)
        rc = b.failed ? vt_nomem(err) : send_all(&k, &b, err);
    if (rc == VT_OK)
        rc = read_all(&k, err);
    if (rc == VT_OK) {
        *status = k.response.status;
        vt_buf_add(reply, k.response.body.data, k.response.body.len);
        rc = reply->failed || k.response.body.failed ? vt_nomem(err) : VT_OK;
    }
    vt_buf_free(&b);
    load_link_close(&k.link);
    load_response_free(&k.response);
    load_target_close(&t);
    return vt_within(err, rc, "%s%s", c->base_url, call->path);
}
