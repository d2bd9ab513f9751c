/* encode.c - a text to ids. */
#include "text/tokenizer.h"
#include "text/unicode.h"

/* A word as long as the text needs thirty times its memory. */
#define MAX_TEXT ((size_t)64 << 20)

void vt_ids_free(struct vt_ids *ids)
{
    free(ids->id);
    *ids = (struct vt_ids){0};
}

int ids_add(struct vt_ids *ids, const uint32_t *id, size_t n, struct vt_err *err)
{
    int rc = vt_grow(&ids->id, &ids->cap, ids->n + n, sizeof(*ids->id), err);

    if (rc != VT_OK)
        return rc;
    for (size_t i = 0; i < n; i++)
        ids->id[ids->n++] = id[i];
    return VT_OK;
}

/* Finds the set's tokens in a piece; what stands between them goes to `rest`. */
static int take_added(struct encoding *e, const struct added_set *set, const char *text,
                      size_t len,
                      int (*rest)(struct encoding *e, const char *text, size_t len))
{
    struct added_run run = {
        .set = set,
        .word = &e->t->word,
        .text = text,
        .len = len,
        .special_as_text = e->special_as_text,
        .err = e->err,
    };
    const struct added_token *k;

    do {
        size_t from, to;
        int rc;

        k = added_next(&run, &from, &to);
        if ((rc = run.rc) || (from < to && (rc = rest(e, text + from, to - from))) ||
            (k && (rc = ids_add(e->ids, &k->id, 1, e->err))))
            return rc;
    } while (k);
    return VT_OK;
}

static int encode_normal(struct encoding *e, const char *text, size_t len)
{
    return take_added(e, &e->t->added_normal, text, len, split_piece);
}

static int encode_raw(struct encoding *e, const char *text, size_t len)
{
    int rc;

    if (!e->t->nfc)
        return encode_normal(e, text, len);
    vt_buf_clear(&e->normal);
    rc = uni_nfc(text, len, &e->normal, e->err);
    return rc == VT_OK ? encode_normal(e, e->normal.data, e->normal.len) : rc;
}

int vt_tokenizer_encode(const struct vt_tokenizer *t, const char *text, size_t len,
                        unsigned flags, struct vt_ids *ids, struct vt_err *err)
{
    struct encoding e = {.t = t,
                         .ids = ids,
                         .err = err,
                         .special_as_text = flags & VT_ENCODE_SPECIAL_AS_TEXT};
    bool around = flags & VT_ENCODE_ADD_SPECIAL;
    size_t n = ids->n, bad;
    unsigned met;
    int rc;

    text = text ? text : "";
    if (len > MAX_TEXT)
        return vt_fail(err, VT_EINPUT, "text is longer than 64 MiB");
    if (!uni_scan(text, len, &met, &bad))
        return vt_fail(err, VT_EINPUT, "text is not UTF-8 at byte %zu", bad);
    e.newer = met & UNI_NEWER;
    if ((around && (rc = ids_add(ids, t->before, t->n_before, err))) ||
        (rc = take_added(&e, &t->added, text, len,
                         met & UNI_NORMALIZES ? encode_raw : encode_normal)) ||
        (around && (rc = ids_add(ids, t->behind, t->n_behind, err))))
        ids->n = n;
    for (size_t i = 0; i < t->n_steps; i++)
        pattern_run_free(&e.run[i]);
    vt_buf_free(&e.spaced);
    vt_buf_free(&e.normal);
    bpe_room_free(&e.room);
    return rc;
}
