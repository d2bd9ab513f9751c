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
    const uint32_t *stop_id; /* the client's, ascending */
    const char *last;        /* byte of each stop string */
    struct vt_detokenizer detokenizer;
    struct vt_buf text;
    uint32_t *end;
    size_t hold; /* characters */
    uint32_t n;
    enum reply_end how;
    const char *stop; /* the stop string found; NULL: none */
};

static size_t n_chars(const char *text)
{
    return api_characters(text, strlen(text));
}

/* Where the last n characters of text[0, len) begin. */
static size_t chars_back(const char *text, size_t len, size_t n)
{
    while (n > 0 && len > 0) {
        len--;
        n -= ((unsigned char)text[len] & 0xc0) != 0x80; /* where a character begins */
    }
    return len;
}

/* ---- stop tokens --------------------------------------------------------- */

/* A client may send any number of them; NULL: no memory. */
static const uint32_t *sorted_stops(struct api_request *r)
{
    uint32_t *id =
        vt_arena_alloc(&r->arena, (r->n_stop_ids + UINT64_C(1)) * sizeof(*id));

    if (id && r->n_stop_ids > 0) {
        memcpy(id, r->stop_id, r->n_stop_ids * sizeof(*id));
        qsort(id, r->n_stop_ids, sizeof(*id), reply_by_u32);
    }
    return id;
}

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
    if (r->n_stop_ids > 0 &&
        bsearch(&id, s->stop_id, r->n_stop_ids, sizeof(id), reply_by_u32))
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

/* There may be thousands of stop strings, and nearly all can be ruled out by their last
 * byte, for which a byte each is kept together. NULL: no memory. */
static const char *last_bytes(struct api_request *r)
{
    char *last = vt_arena_alloc(&r->arena, r->n_stop + UINT64_C(1));

    for (uint32_t i = 0; last && i < r->n_stop; i++)
        last[i] = r->stop[i][strlen(r->stop[i]) - (r->stop[i][0] != '\0')];
    return last;
}

/* The stop string that text grown from `before` bytes ends with first; later lines take
 * the one that is complete first, earlier ones the first of the list. */
static bool find_stop(struct showing *s, size_t before)
{
    const struct api_request *r = s->d->r;
    size_t best_end = SIZE_MAX, best_at = 0;
    bool is_new[256] = {false};

    for (size_t i = before; i < s->text.len; i++)
        is_new[(unsigned char)s->text.data[i]] = true;
    for (uint32_t i = 0; i < r->n_stop; i++) {
        size_t from, at;

        if (!is_new[(unsigned char)s->last[i]])
            continue;
        from = chars_back(s->text.data, before, n_chars(r->stop[i]) - 1);
        at = reply_find(s->text.data, s->text.len, from, r->stop[i]);
        if (at == SIZE_MAX || at + strlen(r->stop[i]) >= best_end)
            continue;
        best_at = at;
        best_end = at + strlen(r->stop[i]);
        s->stop = r->stop[i];
        if (r->context->line == API_LINE_026)
            break;
    }
    if (!s->stop)
        return false;
    s->text.len = r->include_stop ? best_end : best_at;
    return true;
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
    if (r->n_stop > 0 && s->text.len > before && i >= r->min_tokens &&
        find_stop(s, before)) {
        s->how = REPLY_STOP_STRING;
        last = true;
    }
    s->end[i] = i > 0 ? s->end[i - 1] : 0;
    if (last || i + 1 == s->d->n)
        s->end[i] = (uint32_t)s->text.len;
    else if (chars_back(s->text.data, s->text.len, s->hold) > s->end[i])
        s->end[i] = (uint32_t)chars_back(s->text.data, s->text.len, s->hold);
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
        .stop_id = sorted_stops(d->r),
        .last = last_bytes(d->r),
        .detokenizer = {.tokenizer = d->s->c.tokenizer,
                        .special = r->skip_special && !d->spells_call
                                       ? VT_SKIP_SPECIAL
                                       : VT_KEEP_SPECIAL},
        .end = vt_arena_alloc(&d->r->arena, d->n * sizeof(*s.end)),
        .how = out->end,
    };
    bool ready = s.end && s.stop_id && s.last;

    for (uint32_t i = 0; !r->include_stop && i < r->n_stop; i++)
        if (n_chars(r->stop[i]) > s.hold + 1)
            s.hold = n_chars(r->stop[i]) - 1;
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
