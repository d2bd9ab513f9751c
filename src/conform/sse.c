/* sse.c - see sse.h. */
#include "conform/sse.h"

static int bad_stream(struct vt_err *err, const char *what)
{
    return vt_fail(err, VT_EIO, "the frontend's stream: %s", what);
}

static int read_tokens(struct sse *s, const struct vt_node *list, struct sse_chunk *out,
                       struct vt_err *err)
{
    uint32_t *token;

    if (!list || list->kind == VT_NULL)
        return VT_OK;
    if (list->kind != VT_LIST)
        return bad_stream(err, "token_ids is not a list");
    token = vt_arena_alloc(&s->arena, (list->n + (size_t)1) * sizeof(*token));
    if (!token)
        return vt_nomem(err);
    for (uint32_t i = 0; i < list->n; i++) {
        const struct vt_node *v = &list->u.item[i];

        if (v->kind != VT_INT || v->u.integer < 0 || v->u.integer > UINT32_MAX)
            return bad_stream(err, "a token id is not one");
        token[i] = (uint32_t)v->u.integer;
    }
    out->token = token;
    out->n_tokens = list->n;
    return VT_OK;
}

static int server_error(const struct vt_node *error, struct vt_err *err)
{
    const struct vt_node *message = vt_get(error, "message");

    return vt_fail(err, VT_EIO, "the frontend reports: %s",
                   message && message->kind == VT_STR ? message->u.str : "an error");
}

static int read_event(struct sse *s, const char *json, size_t len, struct vt_err *err)
{
    const struct vt_node *root, *choices, *choice, *finish;
    struct sse_chunk chunk = {0};
    struct vt_err why;
    int rc;

    vt_arena_reset(&s->arena);
    if (vt_json_parse(&s->arena, json, len, 1, &root, &why) != VT_OK)
        return bad_stream(err, why.msg);
    if (vt_get(root, "error"))
        return server_error(vt_get(root, "error"), err);
    choices = vt_get(root, "choices");
    if (!choices || choices->kind != VT_LIST)
        return bad_stream(err, "an event without choices");
    if (choices->n == 0)
        return VT_OK; /* usage */
    choice = &choices->u.item[0];
    rc = read_tokens(s, vt_get(choice, "token_ids"), &chunk, err);
    finish = vt_get(choice, "finish_reason");
    if (finish && finish->kind == VT_STR)
        chunk.finish = finish->u.str;
    return rc == VT_OK ? s->on_chunk(s->user, &chunk, err) : rc;
}

static void read_data(void *user, const char *text, size_t len)
{
    struct sse *s = user;

    if (s->rc != VT_OK)
        return;
    if (len == 6 && memcmp(text, "[DONE]", 6) == 0)
        s->done = true;
    else
        s->rc = read_event(s, text, len, s->err);
}

int sse_feed(struct sse *s, const char *bytes, size_t len, struct vt_err *err)
{
    s->lines.data = read_data;
    s->lines.user = s;
    s->err = err;
    if (!net_sse_feed(&s->lines, bytes, len))
        return bad_stream(err, "a line is too long");
    return s->rc;
}

void sse_end(struct sse *s)
{
    net_sse_free(&s->lines);
    vt_arena_free(&s->arena);
}
