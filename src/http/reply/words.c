/* words.c - random words out of a vocabulary's own tokens.
 *
 * Tokens that are a space and letters are words; low ids first, for those are the
 * common ones. Sentences have 6 to 17 words, a capital and a full stop. */
#include "http/reply/parts.h"

#include <stdlib.h>
#include <string.h>

enum {
    MOST_WORDS = 4096, /* of a kind: a table that stays in the cache */
    LEAST_WORDS = 16,
    MIN_SENTENCE = 6,
    SENTENCES = 12, /* lengths of one: MIN_SENTENCE and up to 11 more */
    COMMA_ONE_IN = 12
};

static bool is_small(char c)
{
    return c >= 'a' && c <= 'z';
}

static bool is_capital(char c)
{
    return c >= 'A' && c <= 'Z';
}

static int add_piece(struct reply_pieces *p, uint32_t id, const char *text, size_t len,
                     struct vt_err *err)
{
    int rc;

    if (p->n == MOST_WORDS)
        return VT_OK;
    rc = vt_grow(&p->piece, &p->cap, p->n + 1, sizeof(*p->piece), err);
    if (rc != VT_OK)
        return rc;
    p->piece[p->n] = (struct reply_piece){.id = id, .len = (uint32_t)len};
    memcpy(p->piece[p->n++].text, text, len);
    return VT_OK;
}

/* What a spelling of nothing but letters and one leading space stands for; 0: it is
 * another. The space is spelt as U+0120. */
static size_t letters(const char *spelt, size_t len, char text[PIECE_BYTES])
{
    size_t n = 0, i = 0;

    if (len > 2 && memcmp(spelt, "\xc4\xa0", 2) == 0) {
        text[n++] = ' ';
        i = 2;
    }
    for (; i < len; i++) {
        bool head = n == 0 || (n == 1 && text[0] == ' ');

        if (n == PIECE_BYTES ||
            (!is_small(spelt[i]) && !(head && is_capital(spelt[i]))))
            return 0;
        text[n++] = spelt[i];
    }
    return n;
}

static bool is_quiet(const struct vt_token_facts *f, uint32_t id)
{
    for (size_t i = 0; i < f->n_stop; i++)
        if (f->stop[i] == id)
            return true;
    return f->n_special > 0 &&
           bsearch(&id, f->special, f->n_special, sizeof(id), reply_by_u32);
}

static bool find_mark(struct reply_piece *p, const struct vt_tokenizer *t,
                      const char *mark)
{
    *p = (struct reply_piece){.len = 1};
    p->text[0] = mark[0];
    return vt_tokenizer_id(t, mark, 1, &p->id);
}

/* For vocabularies without words: every token that is printable by itself. */
static int find_printable(struct reply_words *w, const struct vt_tokenizer *t,
                          struct vt_err *err)
{
    const struct vt_token_facts *f = vt_tokenizer_facts(t);
    struct vt_buf text = {0};
    int rc = VT_OK;

    w->word.n = 0;
    for (uint32_t id = 0; id < f->vocab_size && rc == VT_OK; id++) {
        bool fine;

        vt_buf_clear(&text);
        vt_tokenizer_decode(t, &id, 1, VT_KEEP_SPECIAL, &text);
        fine = text.len > 0 && text.len <= PIECE_BYTES && !is_quiet(f, id);
        for (size_t i = 0; i < text.len && fine; i++)
            fine = text.data[i] >= ' ' && text.data[i] <= '~';
        if (fine)
            rc = add_piece(&w->word, id, text.data, text.len, err);
    }
    if (rc == VT_OK && w->word.n == 0)
        rc = add_piece(&w->word, 0, "", 0, err);
    vt_buf_free(&text);
    return rc;
}

int reply_words_open(struct reply_words *w, const struct vt_tokenizer *t,
                     struct vt_err *err)
{
    const struct vt_token_facts *f = vt_tokenizer_facts(t);
    int rc = VT_OK;

    for (uint32_t id = 0; id < f->vocab_size && rc == VT_OK; id++) {
        char text[PIECE_BYTES];
        size_t len, n;
        const char *spelt = vt_tokenizer_token(t, id, &len);

        n = spelt ? letters(spelt, len, text) : 0;
        if (n < 3 || is_quiet(f, id))
            continue;
        if (text[0] == ' ' && is_small(text[1]))
            rc = add_piece(&w->word, id, text, n, err);
        else if (n >= 4 && text[0] == ' ')
            rc = add_piece(&w->start, id, text, n, err);
        else if (is_capital(text[0]))
            rc = add_piece(&w->first, id, text, n, err);
    }
    w->sentences = rc == VT_OK && w->word.n >= LEAST_WORDS && w->start.n > 0 &&
                   w->first.n > 0 && find_mark(&w->comma, t, ",") &&
                   find_mark(&w->stop, t, ".");
    return rc == VT_OK && !w->sentences ? find_printable(w, t, err) : rc;
}

void reply_words_close(struct reply_words *w)
{
    free(w->word.piece);
    free(w->start.piece);
    free(w->first.piece);
}

/* ---- words in a row -------------------------------------------------- */

struct speech {
    uint64_t seed, i;
    uint32_t left; /* words of the sentence; 0: its full stop is due */
    enum { AT_FIRST, AT_START, WITHIN, BEHIND_COMMA } place;
};

static const struct reply_piece *any_piece(const struct reply_pieces *p, uint64_t draw)
{
    return &p->piece[((draw & 0xffffffff) * p->n) >> 32];
}

static const struct reply_piece *next_piece(const struct reply_words *w,
                                            struct speech *s)
{
    uint64_t draw = vt_mix64(s->seed + s->i++ * UINT64_C(0x9e3779b97f4a7c15));
    uint32_t high = (uint32_t)(draw >> 32);

    if (!w->sentences)
        return any_piece(&w->word, draw);
    if (s->place == AT_FIRST || s->place == AT_START) {
        bool first = s->place == AT_FIRST;

        s->left = MIN_SENTENCE - 1 + high % SENTENCES;
        s->place = WITHIN;
        return any_piece(first ? &w->first : &w->start, draw);
    }
    if (s->left == 0) {
        s->place = AT_START;
        return &w->stop;
    }
    if (s->place == WITHIN && s->left > 2 && high % COMMA_ONE_IN == 0) {
        s->place = BEHIND_COMMA;
        return &w->comma;
    }
    s->place = WITHIN;
    s->left--;
    return any_piece(&w->word, draw);
}

void reply_words_add(struct reply_draft *d, uint32_t n, char *text, uint32_t *end)
{
    struct speech speech = {.seed = d->key, .place = d->n > 0 ? AT_START : AT_FIRST};
    char *p = text;

    for (uint32_t i = d->n; i < n; i++) {
        const struct reply_piece *piece = next_piece(&d->s->words, &speech);

        d->token[i] = piece->id;
        if (!text)
            continue;
        memcpy(p, piece->text, PIECE_BYTES);
        p += piece->len;
        end[i] = (uint32_t)(p - text);
    }
    d->n = n > d->n ? n : d->n;
}
