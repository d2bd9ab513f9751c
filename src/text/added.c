/* added.c - tokens that are looked for in the text itself, before anything splits it.
 *
 * Of those that match, the leftmost counts, and of these the longest. The list is
 * sorted by text; a match narrows the range of candidates byte by byte. */
#include <assert.h>

#include "text/tokenizer.h"
#include "text/unicode.h"

int added_push(struct added_set *s, const struct added_token *token, struct vt_err *err)
{
    int rc = vt_grow(&s->token, &s->cap, s->n + 1, sizeof(*s->token), err);

    if (rc == VT_OK)
        s->token[s->n++] = *token;
    return rc;
}

/* A text sorts right before those that it starts. */
static int by_text(const void *a, const void *b)
{
    const struct added_token *x = a, *y = b;
    int order = memcmp(x->text, y->text, x->len < y->len ? x->len : y->len);

    if (order == 0)
        order = (x->len > y->len) - (x->len < y->len);
    return order ? order : (x->id > y->id) - (x->id < y->id);
}

void added_seal(struct added_set *s)
{
    size_t i = 0;

    s->only = -1;
    if (s->n == 0)
        return;
    qsort(s->token, s->n, sizeof(*s->token), by_text);
    for (unsigned b = 0; b < 256; b++) {
        s->from[b] = (uint32_t)i;
        while (i < s->n && (unsigned char)s->token[i].text[0] == b)
            i++;
    }
    s->from[256] = (uint32_t)i;
    if (s->token[0].text[0] == s->token[s->n - 1].text[0])
        s->only = (unsigned char)s->token[0].text[0];
}

/* The first token in [lo, hi) whose byte at `depth` is at least b. All are longer. */
static size_t first_from(const struct added_set *s, size_t lo, size_t hi, size_t depth,
                         unsigned b)
{
    while (lo < hi) {
        size_t mid = (lo + hi) / 2;

        if ((unsigned char)s->token[mid].text[depth] < b)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo;
}

/* The longest token at the start of the text. */
static const struct added_token *longest(const struct added_set *s, const char *text,
                                         size_t len)
{
    unsigned b = (unsigned char)text[0];
    size_t lo = s->from[b], hi = s->from[b + 1], depth = 1;
    const struct added_token *best = NULL;

    while (lo < hi) {
        if (s->token[lo].len == depth) {
            best = &s->token[lo];
            while (lo < hi && s->token[lo].len == depth)
                lo++;
        }
        if (depth == len)
            break;
        b = (unsigned char)text[depth];
        lo = first_from(s, lo, hi, depth, b);
        hi = first_from(s, lo, hi, depth, b + 1);
        depth++;
    }
    return best;
}

static const struct added_token *find_token(struct added_run *r)
{
    const struct added_set *s = r->set;

    if (s->n == 0)
        return NULL;
    assert(r->covered <= r->len);
    for (; r->at < r->len; r->at++) {
        const struct added_token *found;

        if (s->only >= 0) {
            const char *p = memchr(r->text + r->at, s->only, r->len - r->at);

            if (!p)
                return NULL;
            r->at = (size_t)(p - r->text);
        }
        found = longest(s, r->text + r->at, r->len - r->at);
        if (found)
            return found;
    }
    return NULL;
}

/* Asked only next to tokens that must be single words, and few must: so it may take its
 * time. */
static bool is_word_character(struct added_run *r, const char *p)
{
    struct pattern_run run = {0};
    size_t start = SIZE_MAX, end;
    uint32_t c;
    size_t n = vt_utf8_get(p, &c);

    if (c < 0x80)
        return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || c == '_' ||
               (c >= 'a' && c <= 'z');
    r->rc = pattern_run_start(&run, r->word, true, p, n, r->err);
    if (r->rc == VT_OK)
        r->rc = pattern_run_next(&run, &start, &end, r->err);
    pattern_run_free(&run);
    return start != SIZE_MAX;
}

/* A match that does not count is passed over as a whole, as in `tokenizers`; and a
 * token that takes the spaces behind it may reach into the next match, which counts all
 * the same. */
const struct added_token *added_next(struct added_run *r, size_t *from, size_t *to)
{
    const struct added_token *k;

    while (r->rc == VT_OK && (k = find_token(r))) {
        size_t start = r->at, end = r->at + k->len;

        r->at = end;
        if (k->special && r->special_as_text)
            continue;
        if (k->single_word &&
            ((start > 0 && is_word_character(r, uni_before(r->text + start))) ||
             (end < r->len && is_word_character(r, r->text + end))))
            continue;
        if (k->lstrip)
            start -=
                uni_back_spaces(r->text + r->covered, start - r->covered, uni_is_space);
        if (k->rstrip)
            end += uni_front_spaces(r->text + end, r->len - end, uni_is_space);
        *from = r->covered;
        *to = start;
        r->covered = end;
        return k;
    }
    *from = r->covered;
    *to = r->len;
    return NULL;
}
