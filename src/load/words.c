/* words.c - words of a vocabulary that stay one token wherever they are put. */
#include <stdlib.h>

#include "load/multiturn.h"

enum { MOST_WORDS = 4096, LEAST_WORDS = 8, LONGEST_WORD = 24 };

/* Adds the id's text if it is a word. Split patterns part words at spaces and nowhere
 * else, if they are plain letters; a merge of the vocabulary may be out of reach, so
 * each is tried. */
static int try_id(struct words *w, const struct vt_tokenizer *t, uint32_t id,
                  struct vt_buf *b, struct vt_ids *ids, struct vt_err *err)
{
    const char ***list, *text;
    size_t *n, *cap;
    bool spaced;
    int rc;

    vt_buf_clear(b);
    vt_tokenizer_decode(t, &id, 1, VT_KEEP_SPECIAL, b);
    if (b->failed || b->len < 3 || b->len > LONGEST_WORD)
        return VT_OK;
    spaced = b->data[0] == ' ';
    for (size_t i = spaced ? 1 : 0; i < b->len; i++)
        if (!((b->data[i] >= 'a' && b->data[i] <= 'z') ||
              (b->data[i] >= 'A' && b->data[i] <= 'Z')))
            return VT_OK;
    list = spaced ? &w->word : &w->first;
    n = spaced ? &w->n_words : &w->n_first;
    cap = spaced ? &w->cap_words : &w->cap_first;
    if (*n >= MOST_WORDS)
        return VT_OK;
    ids->n = 0;
    rc = vt_tokenizer_encode(t, b->data, b->len, VT_ENCODE_PLAIN, ids, err);
    if (rc != VT_OK || ids->n != 1 || ids->id[0] != id)
        return rc;
    text = vt_arena_copy(&w->arena, b->data, b->len);
    rc = text ? vt_grow(list, cap, *n + 1, sizeof(**list), err) : vt_nomem(err);
    if (rc == VT_OK)
        (*list)[(*n)++] = text;
    return rc;
}

int words_open(struct words *w, const struct vt_tokenizer *t, struct vt_err *err)
{
    uint32_t size = vt_tokenizer_facts(t)->vocab_size;
    struct vt_buf b = {0};
    struct vt_ids ids = {0};
    int rc = VT_OK;

    *w = (struct words){0};
    for (uint32_t id = 0; id < size && rc == VT_OK; id++) {
        rc = try_id(w, t, id, &b, &ids, err);
        if (w->n_words >= MOST_WORDS && w->n_first > 0)
            break;
    }
    vt_buf_free(&b);
    vt_ids_free(&ids);
    if (rc == VT_OK && (w->n_words < LEAST_WORDS || w->n_first == 0))
        return vt_fail(err, VT_EINPUT,
                       "the tokenizer knows too few words to make texts of");
    return rc;
}

void words_close(struct words *w)
{
    vt_arena_free(&w->arena);
    free(w->word);
    free(w->first);
    *w = (struct words){0};
}

void words_text(const struct words *w, struct vt_rng *rng, uint32_t n, struct vt_buf *b)
{
    if (n > 0)
        vt_buf_str(b, w->first[vt_rng_below(rng, w->n_first)]);
    for (uint32_t i = 1; i < n; i++)
        vt_buf_str(b, w->word[vt_rng_below(rng, w->n_words)]);
}
