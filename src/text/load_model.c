/* load_model.c - tokenizer.json: vocabulary and merges. */
#include "text/tokenizer.h"

static int load_vocab(struct vt_tokenizer *t, const struct vt_node *vocab,
                      struct vt_err *err)
{
    if (!vocab || vocab->kind != VT_MAP)
        return vt_fail(err, VT_EINPUT, "the model has no map 'vocab'");
    for (uint32_t i = 0; i < vocab->n; i++) {
        const struct vt_node *v = &vocab->u.item[i];
        uint32_t id;
        int rc;

        if (!load_id(v, &id))
            return vt_fail(err, VT_EINPUT,
                           "line %u: the id of token '%.40s' is not one from 0 to %d",
                           (unsigned)v->line, v->key, MAX_ID);
        rc = vocab_add(&t->vocab, v->key, strlen(v->key), id, err);
        if (rc != VT_OK)
            return vt_within(err, rc, "line %u", (unsigned)v->line);
    }
    return VT_OK;
}

/* ---- merges ----------------------------------------------------------- */

struct halves {
    const char *left, *right;
    size_t n_left, n_right;
};

/* "a b", or ["a", "b"]. */
static bool split_merge(const struct vt_node *node, struct halves *h)
{
    const struct vt_node *item = node->u.item;
    const char *space;

    if (node->kind == VT_LIST) {
        if (node->n != 2 || item[0].kind != VT_STR || item[1].kind != VT_STR)
            return false;
        *h = (struct halves){item[0].u.str, item[1].u.str, item[0].n, item[1].n};
        return true;
    }
    space = node->kind == VT_STR ? memchr(node->u.str, ' ', node->n) : NULL;
    if (!space)
        return false;
    h->left = node->u.str;
    h->n_left = (size_t)(space - node->u.str);
    h->right = space + 1;
    h->n_right = node->n - h->n_left - 1;
    return !memchr(h->right, ' ', h->n_right);
}

static int add_merge(struct vt_tokenizer *t, const struct vt_node *node, uint32_t rank,
                     struct vt_buf *both, struct vt_err *err)
{
    struct halves h;
    uint32_t part[3]; /* left, right and both */

    if (!split_merge(node, &h))
        return vt_fail(err, VT_EINPUT, "line %u: a merge is not two tokens",
                       (unsigned)node->line);
    vt_buf_clear(both);
    vt_buf_add(both, h.left, h.n_left);
    vt_buf_add(both, h.right, h.n_right);
    if (both->failed)
        return vt_nomem(err);
    for (size_t i = 0; i < VT_COUNT(part); i++) {
        const char *text = i == 0 ? h.left : i == 1 ? h.right : both->data;
        size_t len = i == 0 ? h.n_left : i == 1 ? h.n_right : both->len;

        part[i] = vocab_find(&t->vocab, text, len);
        if (part[i] == NO_ID)
            return vt_fail(err, VT_EINPUT,
                           "line %u: a merge names '%.*s', which is no token",
                           (unsigned)node->line, (int)(len < 40 ? len : 40), text);
    }
    return bpe_add_merge(&t->bpe, part[0], part[1], rank, part[2], err);
}

static int load_merges(struct vt_tokenizer *t, const struct vt_node *merges,
                       struct vt_err *err)
{
    struct vt_buf both = {0};
    uint32_t rank = 0;
    int rc = VT_OK;

    if (!merges || merges->kind != VT_LIST || merges->n > MAX_MERGES)
        return vt_fail(err, VT_EINPUT, "the model has no list 'merges' of at most %d",
                       MAX_MERGES);
    for (uint32_t i = 0; i < merges->n && rc == VT_OK; i++) {
        const struct vt_node *m = &merges->u.item[i];

        /* Lists that were a merges.txt once may have its first line. */
        if (m->kind != VT_STR || strncmp(m->u.str, "#version", 8) != 0)
            rc = add_merge(t, m, rank++, &both, err);
    }
    vt_buf_free(&both);
    return rc;
}

/* ---- the model -------------------------------------------------------- */

static bool is_nothing(const struct vt_node *v)
{
    if (!v || v->kind == VT_NULL)
        return true;
    return (v->kind == VT_STR && v->n == 0) || (v->kind == VT_BOOL && !v->u.boolean) ||
           (v->kind == VT_INT && v->u.integer == 0) ||
           (v->kind == VT_REAL && v->u.real == 0.0);
}

/* Without a token for each byte, the rest becomes the unknown token. */
static int load_unknown(struct vt_tokenizer *t, const struct vt_node *model,
                        struct vt_err *err)
{
    const struct vt_node *v = vt_get(model, "unk_token");
    bool complete = true;

    if (is_nothing(v))
        return VT_OK;
    if (v->kind != VT_STR)
        return vt_fail(err, VT_EINPUT, "line %u: 'unk_token' is not a text",
                       (unsigned)v->line);
    for (int i = 0; i < 256; i++)
        complete = complete && t->bpe.byte_id[i] != NO_ID;
    t->bpe.unknown = vocab_find(&t->vocab, v->u.str, v->n);
    if (t->bpe.unknown == NO_ID && !complete)
        return vt_fail(err, VT_EINPUT, "line %u: unk_token '%.40s' is no token",
                       (unsigned)v->line, v->u.str);
    return VT_OK;
}

int load_model(struct vt_tokenizer *t, const struct vt_node *model, struct vt_err *err)
{
    /* What byte-level models do not use, and what would change the ids. */
    static const char *const unused[] = {"dropout", "continuing_subword_prefix",
                                         "end_of_word_suffix", "byte_fallback"};
    const char *type = load_type(model);
    int rc;

    /* Old files do not name the type; their merges do. */
    if (strcmp(type, "BPE") != 0 && (*type || !vt_get(model, "merges")))
        return load_unsupported(model, "model", err);
    for (size_t i = 0; i < VT_COUNT(unused); i++) {
        const struct vt_node *v = vt_get(model, unused[i]);

        if (!is_nothing(v))
            return vt_fail(err, VT_EINPUT,
                           "line %u: '%s' of the model is not supported",
                           (unsigned)v->line, unused[i]);
    }
    if ((rc = load_vocab(t, vt_get(model, "vocab"), err)) ||
        (rc = load_merges(t, vt_get(model, "merges"), err)) ||
        (rc = bpe_open(&t->bpe, &t->vocab, err)) ||
        (rc = load_unknown(t, model, err)) ||
        (rc = load_bool(model, "fuse_unk", &t->bpe.fuse_unknown, err)) ||
        (rc = load_bool(model, "ignore_merges", &t->bpe.whole_words, err)))
        return rc;
    return VT_OK;
}
