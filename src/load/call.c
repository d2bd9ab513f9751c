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

static int read_models(struct vt_arena *arena, const struct vt_buf *reply,
                       struct vt_load_model *out, struct vt_err *err)
{
    const struct vt_node *root, *data, *first, *path;
    int rc =
        vt_json_parse(arena, reply->data ? reply->data : "", reply->len, 1, &root, err);

    if (rc != VT_OK)
        return rc;
    data = vt_get(root, "data");
    if (!data || data->kind != VT_LIST || data->n == 0)
        return vt_fail(err, VT_EINPUT, "it lists no model");
    first = &data->u.item[0];
    if ((rc = vt_get_str(first, "id", VT_REQUIRED, &out->id, err)) != VT_OK)
        return rc;
    path = vt_get(first, "root");
    out->root = path && path->kind == VT_STR ? path->u.str : out->id;
    path = vt_get(first, "max_model_len");
    out->max_model_len = path && path->kind == VT_INT && path->u.integer > 0 &&
                                 path->u.integer <= INT32_MAX
                             ? (uint32_t)path->u.integer
                             : 0;
    return VT_OK;
}

int vt_load_find_model(const struct vt_load_config *c, struct vt_arena *arena,
                       struct vt_load_model *out, struct vt_err *err)
{
    const struct vt_load_call call = {.path = "/v1/models", .timeout_ns = 30 * VT_SEC};
    struct vt_buf reply = {0};
    int status = 0, rc = vt_load_call(c, &call, &status, &reply, err);

    *out = (struct vt_load_model){0};
    if (rc != VT_OK)
        goto out;
    rc = status == 200 ? read_models(arena, &reply, out, err)
                       : vt_fail(err, VT_EIO, "status %d", status);
    (void)vt_within(err, rc, "%s/v1/models", c->base_url);
out:
    vt_buf_free(&reply);
    return rc;
}
