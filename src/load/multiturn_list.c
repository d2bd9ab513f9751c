/* multiturn_list.c - conversations that are written out: the list form of vLLM's
 * multi-turn benchmark. What the assistant said there only tells how long an answer to
 * ask for; the server's own answers take its place. */
#include <stdlib.h>

#include "load/multiturn.h"

struct list {
    const struct vt_load_multiturn *m;
    const struct vt_tokenizer *t; /* may be NULL */
    struct vt_ids ids;
    struct talk talk;
    struct vt_buf text; /* of one message */
    const char *system; /* of this conversation; in the plan's arena */
};

int count_tokens(const struct vt_tokenizer *t, struct vt_ids *ids, const char *text,
                 size_t len, uint32_t *out, struct vt_err *err)
{
    int rc;

    *out = 0;
    if (!t)
        return VT_OK;
    ids->n = 0;
    rc = vt_tokenizer_encode(t, text, len, VT_ENCODE_PLAIN, ids, err);
    if (rc == VT_OK && ids->n > MULTITURN_MAX_TOKENS)
        return vt_fail(err, VT_EINPUT, "a message has more than %d tokens",
                       MULTITURN_MAX_TOKENS);
    *out = rc == VT_OK ? (uint32_t)ids->n : 0;
    return rc;
}

/* ---- messages -------------------------------------------------------- */

/* A string, or the text parts of a list. */
static int read_content(struct vt_buf *b, const struct vt_node *message,
                        struct vt_err *err)
{
    const struct vt_node *content = vt_get(message, "content");

    vt_buf_clear(b);
    if (content && content->kind == VT_STR) {
        vt_buf_add(b, content->u.str, content->n);
    } else if (content && content->kind == VT_LIST) {
        for (uint32_t i = 0; i < content->n; i++) {
            const struct vt_node *text = vt_get(&content->u.item[i], "text");

            if (!text || text->kind != VT_STR)
                return vt_fail(err, VT_EINPUT,
                               "line %u: only parts of text can be sent",
                               content->line);
            vt_buf_add(b, text->u.str, text->n);
        }
    } else {
        return vt_fail(err, VT_EINPUT, "line %u: a message without 'content'",
                       message->line);
    }
    return b->failed ? vt_nomem(err) : VT_OK;
}

/* A message's text, to be kept, and its length in both. */
static int keep_text(struct list *l, const struct vt_node *message, const char **text,
                     size_t *len, uint32_t *tokens, struct vt_err *err)
{
    int rc = read_content(&l->text, message, err);

    if (rc == VT_OK)
        rc = count_tokens(l->t, &l->ids, l->text.data, l->text.len, tokens, err);
    if (rc != VT_OK)
        return rc;
    *len = l->text.len;
    *text = vt_arena_copy(&l->talk.plan->arena, l->text.data ? l->text.data : "", *len);
    return *text ? VT_OK : vt_nomem(err);
}

static int add_user(struct list *l, const struct vt_node *message,
                    const struct vt_node *next, struct vt_err *err)
{
    const struct vt_node *role = vt_get(next, "role");
    uint32_t tokens, answer = 0;
    const char *text;
    size_t len;
    int rc = keep_text(l, message, &text, &len, &tokens, err);

    if (rc == VT_OK && role && role->kind == VT_STR &&
        strcmp(role->u.str, "assistant") == 0) {
        rc = read_content(&l->text, next, err);
        if (rc == VT_OK)
            rc = count_tokens(l->t, &l->ids, l->text.data, l->text.len, &answer, err);
        if (answer == 0 && l->t)
            answer = 1; /* an empty answer still takes a token */
    }
    return rc == VT_OK ? talk_add(&l->talk, text, len, tokens, answer, err) : rc;
}

static int add_message(struct list *l, const struct vt_node *messages, uint32_t i,
                       struct vt_err *err)
{
    const struct vt_node *message = &messages->u.item[i];
    const char *role = NULL;
    size_t len;
    int rc = vt_get_str(message, "role", VT_REQUIRED, &role, err);

    if (rc != VT_OK)
        return rc;
    if (strcmp(role, "user") == 0)
        return add_user(l, message, i + 1 < messages->n ? message + 1 : NULL, err);
    if (strcmp(role, "system") == 0 && i == 0)
        return keep_text(l, message, &l->system, &len, &l->talk.said, err);
    if (strcmp(role, "assistant") == 0 && l->talk.n > 0)
        return VT_OK; /* its length has been taken */
    return vt_fail(err, VT_EINPUT,
                   "line %u: a message of '%s' is not expected here: conversations "
                   "may begin with a system message and then alternate between user "
                   "and assistant",
                   message->line, role);
}

/* ---- conversations --------------------------------------------------- */

static int add_conversation(struct list *l, const struct vt_node *item,
                            struct vt_err *err)
{
    const struct vt_node *messages = vt_get(item, "messages");
    const char *id = NULL;
    int rc = vt_get_str(item, "id", VT_REQUIRED, &id, err);

    if (rc != VT_OK)
        return rc;
    if (!messages || messages->kind != VT_LIST || messages->n == 0)
        return vt_fail(err, VT_EINPUT, "line %u: '%s' has no list of messages",
                       item->line, id);
    l->system = NULL;
    for (uint32_t i = 0; i < messages->n && rc == VT_OK; i++)
        if (l->m->turns == 0 || l->talk.n < l->m->turns)
            rc = add_message(l, messages, i, err);
    if (rc == VT_OK && l->talk.n == 0)
        rc = vt_fail(err, VT_EINPUT, "line %u: '%s' has no message of a user",
                     item->line, id);
    return rc == VT_OK ? talk_end(&l->talk, id, l->system, err) : rc;
}

static int check_ids(const struct vt_load_plan *p, struct vt_err *err)
{
    struct vt_names names = {0};
    int rc = VT_OK;

    for (size_t i = 0; i < p->n && rc == VT_OK; i++) {
        const char *id = p->session[i].id;
        bool is_new = false;
        uint32_t index = (uint32_t)i;

        rc = vt_names_claim(&names, &p->session[0].id, sizeof(*p->session), id,
                            strlen(id), &index, &is_new, err);
        if (rc == VT_OK && !is_new)
            rc = vt_fail(err, VT_EINPUT, "two conversations have the id '%s'", id);
    }
    vt_names_free(&names);
    return rc;
}

int multiturn_list(struct vt_load_plan *p, const struct vt_node *root,
                   const struct vt_load_multiturn *m, const struct vt_tokenizer *t,
                   struct vt_err *err)
{
    struct list l = {.m = m, .t = t};
    uint32_t most = m->conversations ? m->conversations : UINT32_MAX;
    int rc = VT_OK;

    talk_open(&l.talk, p, m);
    for (uint32_t i = 0; i < root->n && i < most && rc == VT_OK; i++)
        rc = add_conversation(&l, &root->u.item[i], err);
    if (rc == VT_OK && p->n == 0)
        rc = vt_fail(err, VT_EINPUT, "there are no conversations");
    if (rc == VT_OK)
        rc = check_ids(p, err);
    talk_close(&l.talk);
    vt_ids_free(&l.ids);
    vt_buf_free(&l.text);
    return rc;
}
