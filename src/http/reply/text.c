/* text.c - the text of tokens as it comes out one by one, and where stop strings
 * and stop tokens end it: vLLM's incremental detokenizer.
 *
 * While stop strings are to be kept out of the text, as many characters are held back
 * as the longest of them has, less one. */
#include "http/reply/parts.h"

#include <stdlib.h>
#include <string.h>

struct showing {
    const struct reply_draft *d;
    struct vt_detokenizer detokenizer;
    struct vt_buf text;
    uint32_t *end;
    uint32_t state;         /* of the search for stop strings */
    size_t shown, n_hidden; /* bytes that may be out, characters behind them */
    uint32_t n;
    enum reply_end how;
    const char *stop; /* the stop string found; NULL: none */
};

/* ---- stop tokens --------------------------------------------------------- */

/* vLLM looks at the EOS first; other ids that the model's generation config ends with
 * are stop tokens like the client's own. */
static bool ends_output(const struct showing *s, uint32_t i, enum reply_end *how)
{
    const struct api_request *r = s->d->r;
    const struct vt_token_facts *f = s->d->s->facts;
    uint32_t id = s->d->token[i];

    if (i + UINT64_C(1) < r->min_tokens)
        return false;
    if (!r->ignore_eos && f->n_stop > 0 && id == f->stop[0]) {
        *how = REPLY_EOS;
        return true;
    }
    *how = REPLY_STOP_TOKEN;
    if (reply_stops_token(s->d->stops, id))
        return true;
    for (size_t k = 0; !r->ignore_eos && k < f->n_stop; k++)
        if (f->stop[k] == id)
            return true;
    return false;
}

/* ---- stop strings -------------------------------------------------------- */

size_t reply_find(const char *text, size_t len, size_t from, const char *what)
{
    size_t n = strlen(what);

    for (; n > 0 && from + n <= len; from++) {
        const char *at = memchr(text + from, what[0], len - n + 1 - from);

        if (!at)
            break;
        from = (size_t)(at - text);
        if (memcmp(at, what, n) == 0)
            return from;
    }
    return SIZE_MAX;
}

/* Does a stop string end in the text grown from `before` bytes? Even where none may end
 * it yet, the search goes on: one may have begun there. */
static bool find_stop(struct showing *s, size_t before, bool may_end)
{
    const struct api_request *r = s->d->r;
    size_t end = 0;
    uint32_t stop = reply_stops_find(s->d->stops, &s->state, s->text.data, before,
                                     s->text.len, &end);

    if (stop == UINT32_MAX || !may_end)
        return false;
    s->stop = r->stop[stop];
    s->text.len = r->include_stop ? end : end - strlen(s->stop);
    return true;
}

/* Holds back as many characters as a stop string could still take. */
static void show_more(struct showing *s, size_t before)
{
    size_t held = reply_stops_held(s->d->stops);

    if (s->text.len > before)
        s->n_hidden += api_characters(s->text.data + before, s->text.len - before);
    for (; s->n_hidden > held; s->n_hidden--) {
        s->shown++;
        while (s->shown < s->text.len &&
               ((unsigned char)s->text.data[s->shown] & 0xc0) == 0x80)
            s->shown++;
    }
}

/* ---- token by token ------------------------------------------------------ */

/* False: this token is the last. */
static bool show_token(struct showing *s, uint32_t i)
{
    const struct api_request *r = s->d->r;
    size_t before = s->text.len;
    enum reply_end how = s->how;
    bool last = ends_output(s, i, &how);

    if (last)
        s->how = how;
    if (!last || r->include_stop)
        vt_detokenizer_add(&s->detokenizer, s->d->token[i], &s->text);
    s->n = i + 1;
    if (find_stop(s, before, i >= r->min_tokens)) {
        s->how = REPLY_STOP_STRING;
        last = true;
    } else {
        show_more(s, before);
    }
    s->end[i] = (uint32_t)(last || i + 1 == s->d->n ? s->text.len : s->shown);
    return !last;
}

static const char *reason_of(const struct showing *s)
{
    struct vt_buf b = {0};
    char *copy;

    if (s->how == REPLY_STOP_STRING)
        vt_buf_json_str(&b, s->stop, strlen(s->stop));
    else if (s->how == REPLY_STOP_TOKEN)
        vt_buf_u64(&b, s->d->token[s->n - 1]);
    else
        return "null";
    copy = b.failed ? NULL : vt_arena_copy(&s->d->r->arena, b.data, b.len);
    vt_buf_free(&b);
    return copy;
}

int reply_text_of(struct reply *out, struct reply_draft *d, struct vt_err *err)
{
    const struct api_request *r = d->r;
    struct showing s = {
        .d = d,
        .detokenizer = {.tokenizer = d->s->c.tokenizer,
                        .special = r->skip_special && !d->spells_call
                                       ? VT_SKIP_SPECIAL
                                       : VT_KEEP_SPECIAL},
        .end = vt_arena_alloc(&d->r->arena, d->n * sizeof(*s.end)),
        .how = out->end,
    };
    bool ready = s.end != NULL;

    for (uint32_t i = 0; ready && i < d->n && show_token(&s, i); i++)
        ;
    if (ready) {
        out->token = d->token;
        out->n = s.n;
        out->text = s.text.failed
                        ? NULL
                        : vt_arena_copy(&d->r->arena, s.text.len > 0 ? s.text.data : "",
                                        s.text.len);
        out->text_len = s.text.len;
        out->text_end = s.end;
        out->end = s.how;
        out->stop_reason = reason_of(&s);
        ready = out->text && out->stop_reason;
    }
    vt_buf_free(&s.text);
    vt_detokenizer_free(&s.detokenizer);
    return ready ? VT_OK : vt_nomem(err);
}
