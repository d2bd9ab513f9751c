/* ask.c - commands as questions: the program's own code, told to answer in JSON. */
#include <stdlib.h>
#include <string.h>

#include <vtwin/ask.h>

#include "cli/cli.h"
#include "lib/lib.h"

struct vtwin_answer {
    struct cli_answer is;
};

/* Named one by one: the others serve, measure or wait, and would come with all that
 * they need. */
static const struct opt_command *const known[] = {&cmd_simulate, &cmd_capacity,
                                                  &cmd_tune};

static int find_command(const struct opt_command **out, const struct vtwin_question *q,
                        struct vt_err *err)
{
    if (q->n_words == 0 || q->n_words > INT32_MAX / 2)
        return vt_fail(err, VT_EINPUT, "no command to ask");
    for (size_t i = 0; i < q->n_words; i++)
        if (!q->words[i])
            return vt_fail(err, VT_EINPUT, "word %zu is NULL", i);
    for (size_t i = 0; i < VT_COUNT(known); i++)
        if (strcmp(known[i]->name, q->words[0]) == 0) {
            *out = known[i];
            return VT_OK;
        }
    return vt_fail(err, VT_EINPUT,
                   "'%s' can't be asked: simulate, capacity and tune can", q->words[0]);
}

static int ask(struct vtwin_answer *a, const struct vtwin_question *theirs,
               struct vt_err *err)
{
    struct vtwin_question q = {0};
    const struct opt_command *c = NULL;
    const char **words;
    int rc = lib_struct_in(&q, sizeof(q), theirs, "vtwin_question", err);

    if (rc != VT_OK || (rc = find_command(&c, &q, err)) != VT_OK)
        return rc;
    words = malloc(q.n_words * sizeof(*words));
    if (!words)
        return vt_nomem(err);
    /* In the place of the command's name: first, where no later flag takes it. */
    words[0] = "--json";
    memcpy(words + 1, q.words + 1, (q.n_words - 1) * sizeof(*words));
    rc = cli_ask(&a->is, c, (int)q.n_words, words, q.stop, err);
    free(words);
    return rc;
}

int vtwin_ask(struct vtwin_answer **out, const struct vtwin_question *q,
              struct vtwin_error *err)
{
    struct vt_err why = {0};
    struct vtwin_answer *a = calloc(1, sizeof(*a));

    *out = a;
    return lib_end(err, a ? ask(a, q, &why) : vt_nomem(&why), &why);
}

void vtwin_answer_free(struct vtwin_answer *a)
{
    if (!a)
        return;
    cli_answer_free(&a->is);
    free(a);
}

static const char *text_of(const struct vt_buf *b, size_t *len)
{
    if (len)
        *len = b->len;
    return b->len > 0 ? b->data : "";
}

const char *vtwin_answer_json(const struct vtwin_answer *a, size_t *len)
{
    return text_of(&a->is.out, len);
}

const char *vtwin_answer_notes(const struct vtwin_answer *a, size_t *len)
{
    return text_of(&a->is.said, len);
}
