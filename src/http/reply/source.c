/* source.c - what replies are made of, prepared once: words, lengths, answers. */
#include "http/reply/parts.h"

#include <stdlib.h>
#include <string.h>

#include "trace/trace.h"

/* ---- lengths --------------------------------------------------------- */

static int open_lengths(struct reply_source *s, const char *path, struct vt_err *err)
{
    struct vt_records file = {0};
    int rc = vt_records_load(&file, path, err);

    if (rc != VT_OK)
        return rc;
    s->length = malloc((file.n > 0 ? file.n : 1) * sizeof(*s->length));
    if (file.n == 0)
        rc = vt_fail(err, VT_EINPUT, "%s: there is no request in it", file.source);
    else if (!s->length)
        rc = vt_nomem(err);
    for (size_t i = 0; rc == VT_OK && i < file.n; i++)
        s->length[s->n_lengths++] = file.rec[i].output_tokens;
    if (rc == VT_OK)
        qsort(s->length, s->n_lengths, sizeof(*s->length), reply_by_u32);
    vt_records_free(&file);
    return rc;
}

/* ---- the dataset ----------------------------------------------------- */

static int encode_text(void *user, const char *text, size_t len, uint32_t **ids,
                       size_t *n, struct vt_err *err)
{
    const struct reply_source *s = user;
    struct vt_ids made = {0};
    int rc = vt_tokenizer_encode(s->c.tokenizer, text, len, VT_ENCODE_SPECIAL_AS_TEXT,
                                 &made, err);

    *ids = made.id;
    *n = made.n;
    return rc;
}

struct sought { /* a prompt among the dataset's */
    const struct reply_source *s;
    const uint32_t *id;
    size_t n;
};

static bool is_prompt(const void *sought, uint64_t turn)
{
    const struct sought *a = sought;
    const struct vt_dataset_turn *t = &a->s->data.turn[turn];

    return t->n_prompt == a->n &&
           (a->n == 0 || memcmp(t->prompt, a->id, a->n * sizeof(*a->id)) == 0);
}

const struct vt_dataset_turn *reply_turn_find(const struct reply_source *s,
                                              const uint32_t *id, size_t n)
{
    const struct sought a = {s, id, n};
    const uint64_t *turn = vt_map_find(
        &s->turns, vt_hash_bytes(id, n * sizeof(*id), s->c.seed), is_prompt, &a);

    return turn ? &s->data.turn[*turn] : NULL;
}

static int open_dataset(struct reply_source *s, const char *path, struct vt_err *err)
{
    size_t n_rows;
    int rc;

    if (!path)
        return vt_fail(err, VT_EINPUT, "answers from a dataset need a dataset");
    rc = vt_dataset_load(&s->data, path, encode_text, s, err);
    if (rc != VT_OK)
        return rc;
    n_rows = s->data.n_rows;
    s->row = malloc((n_rows > 0 ? n_rows : 1) * sizeof(*s->row));
    if (!s->row)
        return vt_nomem(err);
    for (size_t i = 0; i < s->data.n_turns; i++) {
        const struct vt_dataset_turn *t = &s->data.turn[i];
        uint64_t *place,
            hash =
                vt_hash_bytes(t->prompt, t->n_prompt * sizeof(*t->prompt), s->c.seed);

        if (reply_turn_find(s, t->prompt, t->n_prompt))
            continue;
        place = vt_map_add(&s->turns, hash);
        if (!place)
            return vt_nomem(err);
        *place = i;
    }
    for (size_t i = 0; i < n_rows; i++)
        if (s->data.row[i].n_answer > 0)
            s->row[s->n_rows++] = (uint32_t)i;
    if (s->n_rows == 0)
        return vt_fail(err, VT_EINPUT, "%s: no row has an answer", path);
    return VT_OK;
}

/* ---- tokens ---------------------------------------------------------- */

/* As spelt, so never less than its text has; U+FFFD stands for single bytes. */
static size_t longest_token(const struct vt_tokenizer *t,
                            const struct vt_token_facts *f)
{
    size_t most = 4, len;

    for (uint32_t id = 0; id < f->vocab_size; id++)
        if (vt_tokenizer_token(t, id, &len) && len > most)
            most = len;
    return most;
}

/* ---- all of it ------------------------------------------------------- */

int reply_source_open(struct reply_source **out, const struct vt_serve_config *c,
                      struct vt_err *err)
{
    struct reply_source *s = calloc(1, sizeof(*s));
    int rc;

    *out = NULL;
    if (!s)
        return vt_nomem(err);
    s->c = *c;
    s->facts = vt_tokenizer_facts(c->tokenizer);
    s->token_bytes = longest_token(c->tokenizer, s->facts);
    rc = reply_words_open(&s->words, c->tokenizer, err);
    if (rc == VT_OK && c->lengths_from)
        rc = open_lengths(s, c->lengths_from, err);
    if (rc == VT_OK && c->answers == VT_ANSWER_DATASET)
        rc = open_dataset(s, c->dataset, err);
    if (rc != VT_OK) {
        reply_source_close(s);
        return rc;
    }
    *out = s;
    return VT_OK;
}

void reply_source_close(struct reply_source *s)
{
    if (!s)
        return;
    reply_words_close(&s->words);
    vt_dataset_free(&s->data);
    free(s->length);
    vt_map_free(&s->turns);
    free(s->row);
    free(s);
}
