/* tokens.c - whole prompts as the model's own tokenizer cuts them: places where texts
 * part are then places in tokens, exactly. */
#include <stdlib.h>

#include "text/text.h"
#include "trace/convert/convert.h"

/* "\1ROLE\nCONTENT" for each message, as put_messages() of prompts.c has them. */
static int list_messages(struct vt_arena *a, const struct convert_prompt *q,
                         struct vt_chat_message *out, size_t *n, struct vt_err *err)
{
    char *at = vt_arena_alloc(a, q->len + 1), *role;

    *n = 0;
    if (!at)
        return vt_nomem(err);
    memcpy(at, q->text, q->len);
    at[q->len] = '\0';
    if (at[0] != '\1') /* what a body calls its system prompt */
        out[(*n)++] = (struct vt_chat_message){"system", at};
    for (at = strchr(at, '\1'); at; at = strchr(at, '\1')) {
        *at++ = '\0';
        role = at;
        at = strchr(at, '\n');
        if (!at)
            break;
        *at++ = '\0';
        out[(*n)++] = (struct vt_chat_message){role, at};
    }
    return VT_OK;
}

static size_t count_messages(const struct convert_prompt *q)
{
    size_t n = 1;

    for (size_t i = 0; i < q->len; i++)
        n += q->text[i] == '\1';
    return n;
}

/* A chat as the model's template renders it; without one it stays as it is. */
static int render(const struct vt_tokenizer *t, const struct convert_prompt *q,
                  struct vt_buf *out, unsigned *flags, struct vt_err *err)
{
    const struct vt_chat_options o = {.add_generation_prompt = true};
    struct vt_chat_message *message = calloc(count_messages(q), sizeof(*message));
    struct vt_arena a = {0};
    struct vt_err unknown = {0};
    size_t n;
    int rc = message ? list_messages(&a, q, message, &n, err) : vt_nomem(err);

    *flags = VT_ENCODE_PLAIN;
    if (rc == VT_OK && vt_chat_render(t, message, n, &o, out, &unknown) == VT_EINPUT) {
        vt_buf_clear(out);
        vt_buf_add(out, q->text, q->len);
        *flags = VT_ENCODE_ADD_SPECIAL;
    }
    free(message);
    vt_arena_free(&a);
    return rc != VT_OK ? rc : out->failed ? vt_nomem(err) : VT_OK;
}

static int encode(struct convert_prompts *p, struct convert_prompt *q,
                  struct vt_err *err)
{
    unsigned flags = VT_ENCODE_ADD_SPECIAL;
    const char *said = q->text;
    size_t len = q->len;
    struct vt_buf text = {0};
    struct vt_ids ids = {0};
    int rc = VT_OK;

    if (q->kind == CONVERT_CHAT) {
        rc = render(p->tokenizer, q, &text, &flags, err);
        said = text.data ? text.data : "";
        len = text.len;
    }
    if (rc == VT_OK)
        rc = vt_tokenizer_encode(p->tokenizer, said, len, flags, &ids, err);
    if (rc == VT_OK) {
        q->len = ids.n * CONVERT_ID_BYTES;
        q->text =
            vt_arena_copy(&p->arena, ids.n > 0 ? (const char *)ids.id : "", q->len);
        q->kind = CONVERT_IDS;
        rc = q->text ? VT_OK : vt_nomem(err);
    }
    vt_ids_free(&ids);
    vt_buf_free(&text);
    return rc;
}

int convert_prompts_encode(struct convert_prompts *p, struct vt_err *err)
{
    size_t n = 0;
    int rc = VT_OK;

    for (size_t i = 0; i < p->n && rc == VT_OK; i++) {
        struct convert_prompt q = p->prompt[i];

        if (q.kind != CONVERT_IDS)
            rc = encode(p, &q, err);
        if (q.len > 0) /* a text of no token tells nothing */
            p->prompt[n++] = q;
    }
    p->n = n;
    return rc;
}
