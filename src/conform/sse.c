/* sse.c - see sse.h. */
#include "conform/sse.h"

enum { MAX_LINE = 16 << 20 };

static int bad(struct vt_err *err, const char *what)
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
        return bad(err, "token_ids is not a list");
    token = vt_arena_alloc(&s->arena, (list->n + (size_t)1) * sizeof(*token));
    if (!token)
        return vt_nomem(err);
    for (uint32_t i = 0; i < list->n; i++) {
        const struct vt_node *v = &list->u.item[i];

        if (v->kind != VT_INT || v->u.integer < 0 || v->u.integer > UINT32_MAX)
            return bad(err, "a token id is not one");
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
        return bad(err, why.msg);
    if (vt_get(root, "error"))
        return server_error(vt_get(root, "error"), err);
    choices = vt_get(root, "choices");
    if (!choices || choices->kind != VT_LIST)
        return bad(err, "an event without choices");
    if (choices->n == 0)
        return VT_OK; /* usage */
    choice = &choices->u.item[0];
    rc = read_tokens(s, vt_get(choice, "token_ids"), &chunk, err);
    finish = vt_get(choice, "finish_reason");
    if (finish && finish->kind == VT_STR)
        chunk.finish = finish->u.str;
    return rc == VT_OK ? s->on_chunk(s->user, &chunk, err) : rc;
}

static int take_line(struct sse *s, struct vt_err *err)
{
    static const char field[] = "data:";
    const char *text = s->line.data;
    size_t len = s->line.len;

    if (len > 0 && text[len - 1] == '\r')
        len--;
    if (len < strlen(field) || memcmp(text, field, strlen(field)) != 0)
        return VT_OK; /* blank, a comment, or another field */
    text += strlen(field);
    len -= strlen(field);
    while (len > 0 && *text == ' ') {
        text++;
        len--;
    }
    if (len == 6 && memcmp(text, "[DONE]", 6) == 0) {
        s->done = true;
        return VT_OK;
    }
    return read_event(s, text, len, err);
}

int sse_feed(struct sse *s, const char *bytes, size_t len, struct vt_err *err)
{
    const char *end = bytes + len;
    int rc = VT_OK;

    s->line.max = MAX_LINE;
    while (rc == VT_OK && bytes < end) {
        const char *newline = memchr(bytes, '\n', (size_t)(end - bytes));

        vt_buf_add(&s->line, bytes, (size_t)((newline ? newline : end) - bytes));
        if (s->line.failed)
            return bad(err, "a line is too long");
        if (!newline)
            return VT_OK;
        rc = take_line(s, err);
        vt_buf_clear(&s->line);
        bytes = newline + 1;
    }
    return rc;
}

void sse_end(struct sse *s)
{
    vt_buf_free(&s->line);
    vt_arena_free(&s->arena);
}
