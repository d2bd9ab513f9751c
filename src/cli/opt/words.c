/* words.c - a command line that is put together. */
#include <stdarg.h>

#include "cli/opt/opt.h"

int opt_word_add(struct opt_words *w, const char *word, struct vt_err *err)
{
    if (!word)
        return vt_nomem(err);
    if (w->n == w->room) {
        size_t room = 2 * w->room + 64;
        const char **more = vt_arena_alloc(w->arena, room * sizeof(*more));

        if (!more)
            return vt_nomem(err);
        if (w->n > 0)
            memcpy(more, w->word, w->n * sizeof(*more));
        w->word = more;
        w->room = room;
    }
    w->word[w->n++] = word;
    return VT_OK;
}

int opt_word_put(struct opt_words *w, struct vt_err *err, const char *fmt, ...)
{
    struct vt_buf b = {0};
    va_list args;
    int rc;

    va_start(args, fmt);
    vt_buf_vprintf(&b, fmt, args);
    va_end(args);
    rc = b.failed ? vt_nomem(err)
                  : opt_word_add(w, vt_arena_copy(w->arena, b.data, b.len), err);
    vt_buf_free(&b);
    return rc;
}

int opt_repeat(const struct opt_args *a, const struct opt_row *rows,
               struct opt_words *to, struct vt_err *err)
{
    int rc = VT_OK;

    for (size_t i = 0; i < a->n_mentions && rc == VT_OK; i++) {
        const struct opt_mention *m = &a->mention[i];
        const struct opt_row *r = rows;

        while (r->name && r != m->row)
            r++;
        if (r->name && m->value)
            rc = opt_word_put(to, err, "--%s=%s", r->name, m->value);
        else if (r->name)
            rc = opt_word_put(to, err, "--%s%s", m->off ? "no-" : "", r->name);
    }
    return rc;
}

/* Of a word from *line on, without its quotes; *line: behind it. */
static int put_word(struct vt_buf *b, const char **line, struct vt_err *err)
{
    char quote = '\0';
    const char *c = *line;

    for (; *c && (quote || (*c != ' ' && *c != '\t' && *c != '\n')); c++) {
        if (quote ? *c == quote : *c == '\'' || *c == '"')
            quote = quote ? '\0' : *c;
        else
            vt_buf_char(b, *c);
    }
    *line = c;
    return quote ? vt_fail(err, VT_EINPUT, "a quote is not closed") : VT_OK;
}

int opt_word_split(struct opt_words *w, const char *line, struct vt_err *err)
{
    int rc = VT_OK;

    while (rc == VT_OK && *(line += strspn(line, " \t\n"))) {
        struct vt_buf b = {0};

        rc = put_word(&b, &line, err);
        if (rc == VT_OK)
            rc = b.failed ? vt_nomem(err)
                          : opt_word_add(
                                w, vt_arena_copy(w->arena, b.data ? b.data : "", b.len),
                                err);
        vt_buf_free(&b);
    }
    return rc;
}
