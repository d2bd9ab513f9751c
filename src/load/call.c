/* call.c - one request that is waited for: what a server says of itself. */
#include "load/client.h"

int vt_load_url_check(const char *url, struct vt_err *err)
{
    struct net_url u;

    return net_url_parse(&u, url, err);
}

int vt_load_call(const struct vt_load_config *c, const struct vt_load_call *call,
                 int *status, struct vt_buf *reply, struct vt_err *err)
{
    const struct net_trust trust = {.insecure = c->insecure, .ca_file = c->ca_file};
    struct net_header *header = calloc(c->n_headers + 2, sizeof(*header));
    struct net_ask ask = {
        .path = call->path,
        .header = header,
        .body = call->body,
        .body_len = call->body_len,
        .timeout_ns = call->timeout_ns,
        .stopped = c->stopped,
        .user = c->user,
    };
    struct vt_buf key = {0};
    int rc;

    if (!header)
        return vt_nomem(err);
    if (c->api_key) {
        vt_buf_printf(&key, "Bearer %s", c->api_key);
        header[ask.n_headers++] = (struct net_header){"Authorization", key.data};
    }
    for (size_t i = 0; i < c->n_headers; i++)
        header[ask.n_headers++] = c->header[i];
    if (call->body)
        header[ask.n_headers++] =
            (struct net_header){"Content-Type", "application/json"};
    rc = key.failed ? vt_nomem(err)
                    : net_ask_once(c->base_url, &trust, &ask, status, reply, err);
    vt_buf_free(&key);
    free(header);
    return vt_within(err, rc, "%s%s", c->base_url, call->path);
}
