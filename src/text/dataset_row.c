/* dataset_row.c - prompt and answer of one row, by the fields that datasets use. */
#include "text/dataset_parts.h"

#include <ctype.h>

/* ---- fields ----------------------------------------------------------- */

static const char *const prompt_fields[] = {
    "prompt", "instruction", "question", "query", "input_text", "context", NULL};
static const char *const more_fields[] = {"input", "inputs", NULL};
static const char *const plain_fields[] = {"text", "content", NULL};
static const char *const answer_fields[] = {
    "output", "response", "completion", "answer", "target", "label", NULL};
static const char *const message_fields[] = {"messages", "conversations",
                                             "conversation", "prompt", NULL};

/* The first field that says something. */
static const struct vt_node *first_field(const struct vt_node *row,
                                         const char *const *name, bool list)
{
    for (; *name; name++) {
        const struct vt_node *v = vt_get(row, *name);

        if (v && list && v->kind == VT_LIST && v->n > 0 && v->u.item[0].kind == VT_MAP)
            return v;
        if (v && !list && v->kind == VT_STR && v->n > 0)
            return v;
        if (v && !list && (v->kind == VT_INT || v->kind == VT_REAL))
            return v;
    }
    return NULL;
}

static void add_value(struct vt_buf *b, const struct vt_node *v)
{
    if (!v)
        return;
    if (v->kind == VT_STR)
        vt_buf_add(b, v->u.str, v->n);
    else if (v->kind == VT_INT)
        vt_buf_i64(b, v->u.integer);
    else if (v->kind == VT_REAL)
        vt_buf_f64(b, v->u.real);
}

/* ---- messages --------------------------------------------------------- */

enum role { ROLE_OTHER, ROLE_USER, ROLE_ASSISTANT };

static enum role role_of(const struct vt_node *message)
{
    static const struct {
        const char *name;
        enum role role;
    } known[] = {{"user", ROLE_USER},        {"human", ROLE_USER},
                 {"prompter", ROLE_USER},    {"assistant", ROLE_ASSISTANT},
                 {"gpt", ROLE_ASSISTANT},    {"model", ROLE_ASSISTANT},
                 {"chatgpt", ROLE_ASSISTANT}};
    const struct vt_node *role = vt_get(message, "role");

    if (!role)
        role = vt_get(message, "from");
    for (size_t i = 0; role && role->kind == VT_STR && i < VT_COUNT(known); i++)
        if (strcmp(role->u.str, known[i].name) == 0)
            return known[i].role;
    return ROLE_OTHER;
}

/* A message's text, or the texts of its parts. */
static void add_message(struct vt_buf *b, const struct vt_node *message)
{
    const struct vt_node *content = vt_get(message, "content");

    if (!content)
        content = vt_get(message, "value");
    if (!content)
        return;
    if (content->kind != VT_LIST) {
        add_value(b, content);
        return;
    }
    for (uint32_t i = 0; i < content->n; i++)
        add_value(b, vt_get(&content->u.item[i], "text"));
}

/* ---- tokens ----------------------------------------------------------- */

struct ids {
    const uint32_t *id;
    uint32_t n;
};

/* r->text as tokens. */
static int encode_text(struct dataset_reader *r, uint32_t line, struct ids *out,
                       struct vt_err *err)
{
    uint32_t *id = NULL, *copy = NULL;
    size_t n = 0;
    int rc;

    *out = (struct ids){0};
    if (r->text.failed)
        return vt_nomem(err);
    if (r->text.len == 0)
        return VT_OK;
    if (!r->encode)
        return vt_fail(err, VT_EINPUT,
                       "line %u: the rows hold text, and there is no tokenizer to "
                       "make tokens of it",
                       line);
    rc = r->encode(r->user, r->text.data, r->text.len, &id, &n, err);
    if (rc == VT_OK && n > 0) {
        if (n < UINT32_MAX)
            copy = vt_arena_alloc(&r->d->arena, n * sizeof(*copy));
        if (copy) {
            memcpy(copy, id, n * sizeof(*copy));
            *out = (struct ids){copy, (uint32_t)n};
        } else {
            rc = vt_nomem(err);
        }
    }
    free(id);
    return vt_within(err, rc, "line %u", line);
}

/* "[1, 2]" or "1 2", as a CSV file has it. */
static bool read_id_text(const char *text, size_t len, uint32_t *id, uint32_t *n)
{
    for (size_t i = 0; i < len;) {
        size_t from = i;
        uint64_t v;

        if (strchr("[], \t\r\n", text[i])) {
            i++;
            continue;
        }
        while (i < len && isdigit((unsigned char)text[i]))
            i++;
        if (i == from || !vt_parse_u64(text + from, i - from, &v) || v >= UINT32_MAX)
            return false;
        id[(*n)++] = (uint32_t)v;
    }
    return true;
}

/* out->n stays 0 where the row has no such field. */
static int read_ids(struct dataset_reader *r, const struct vt_node *row,
                    const char *key, struct ids *out, struct vt_err *err)
{
    const struct vt_node *v = vt_get(row, key);
    bool good = v && (v->kind == VT_LIST || v->kind == VT_STR);
    uint32_t *id;

    *out = (struct ids){0};
    if (!v || v->kind == VT_NULL || (v->kind == VT_STR && v->n == 0))
        return VT_OK;
    id = vt_arena_alloc(&r->d->arena, ((size_t)v->n + 1) * sizeof(*id));
    if (!id)
        return vt_nomem(err);
    out->id = id;
    if (v->kind == VT_STR)
        good = read_id_text(v->u.str, v->n, id, &out->n);
    for (uint32_t i = 0; v->kind == VT_LIST && good && i < v->n; i++) {
        uint64_t one = 0;

        good = vt_node_u64(&v->u.item[i], UINT32_MAX - 1, &one);
        id[out->n++] = (uint32_t)one;
    }
    if (good)
        return VT_OK;
    return vt_fail(err, VT_EINPUT, "line %u: field '%s' must be a list of token ids",
                   v->line, key);
}

/* ---- rows ------------------------------------------------------------- */

static int add_turn(struct dataset_reader *r, struct ids prompt, struct ids answer,
                    struct vt_err *err)
{
    struct vt_dataset *d = r->d;
    int rc;

    if (prompt.n == 0 || answer.n == 0)
        return VT_OK;
    rc = vt_grow(&d->turn, &d->cap_turns, d->n_turns + 1, sizeof(*d->turn), err);
    if (rc == VT_OK)
        d->turn[d->n_turns++] = (struct vt_dataset_turn){
            .prompt = prompt.id,
            .n_prompt = prompt.n,
            .answer = answer.id,
            .n_answer = answer.n,
            .row = (uint32_t)(d->n_rows - 1),
        };
    return rc;
}

/* A turn for each answer, with what the user said last before it. `answer` is that of
 * the whole row where a field has it: then it answers the last message. */
static int add_messages(struct dataset_reader *r, const struct vt_node *list,
                        struct ids answer, struct vt_err *err)
{
    struct ids said = {0}, reply;
    int rc = VT_OK;

    for (uint32_t i = 0; rc == VT_OK && i < list->n; i++) {
        const struct vt_node *message = &list->u.item[i];
        enum role role = role_of(message);

        if (role == ROLE_OTHER)
            continue;
        vt_buf_clear(&r->text);
        add_message(&r->text, message);
        rc = encode_text(r, message->line, role == ROLE_USER ? &said : &reply, err);
        if (rc == VT_OK && role == ROLE_ASSISTANT && answer.n == 0)
            rc = add_turn(r, said, reply, err);
    }
    return rc == VT_OK ? add_turn(r, said, answer, err) : rc;
}

/* All that the assistant says, for a request that names the row. */
static void join_answers(struct vt_buf *b, const struct vt_node *list)
{
    for (uint32_t i = 0; list && i < list->n; i++)
        if (role_of(&list->u.item[i]) == ROLE_ASSISTANT) {
            if (b->len > 0)
                vt_buf_char(b, '\n');
            add_message(b, &list->u.item[i]);
        }
}

static int read_answer(struct dataset_reader *r, const struct vt_node *row,
                       const struct vt_node *list, struct ids *out, bool *own,
                       struct vt_err *err)
{
    const struct vt_node *field = first_field(row, answer_fields, false);
    int rc = read_ids(r, row, "output_token_ids", out, err);

    *own = true;
    if (rc != VT_OK || out->n > 0)
        return rc;
    vt_buf_clear(&r->text);
    add_value(&r->text, field);
    if (!field)
        join_answers(&r->text, first_field(row, answer_fields, true));
    *own = r->text.len > 0;
    if (!*own)
        join_answers(&r->text, list);
    return encode_text(r, row->line, out, err);
}

int dataset_add_row(struct dataset_reader *r, const struct vt_node *row,
                    struct vt_err *err)
{
    const struct vt_node *list = first_field(row, message_fields, true);
    const struct vt_node *ids = vt_get(row, "prompt_token_ids");
    const struct vt_node *field = first_field(row, prompt_fields, false), *more;
    struct vt_dataset *d = r->d;
    struct ids prompt, answer;
    bool own;
    int rc;

    if (row->kind != VT_MAP)
        return vt_fail(err, VT_EINPUT, "line %u: a row must be an object", row->line);
    if (d->n_rows >= UINT32_MAX - 1)
        return vt_fail(err, VT_EINPUT, "line %u: too many rows", row->line);
    if ((rc = vt_grow(&d->row, &d->cap_rows, d->n_rows + 1, sizeof(*d->row), err)) ||
        (rc = read_answer(r, row, list, &answer, &own, err)))
        return rc;
    d->row[d->n_rows++] =
        (struct vt_dataset_row){answer.n > 0 ? answer.id : NULL, answer.n, row->line};
    if (list && !(ids && ids->n > 0) && !field && r->encode)
        return add_messages(r, list, own ? answer : (struct ids){0}, err);
    if ((rc = read_ids(r, row, "prompt_token_ids", &prompt, err)))
        return rc;
    /* Answers as ids can be served by number without a tokenizer. */
    if (prompt.n == 0 && r->encode) {
        more = first_field(row, field ? more_fields : plain_fields, false);
        vt_buf_clear(&r->text);
        add_value(&r->text, field);
        if (more && r->text.len > 0)
            vt_buf_char(&r->text, '\n');
        add_value(&r->text, more);
        if ((rc = encode_text(r, row->line, &prompt, err)))
            return rc;
    }
    return add_turn(r, prompt, answer, err);
}
