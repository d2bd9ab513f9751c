/* load.c - tokenizer.json: added tokens, normalizer, post-processor, decoder. */
#include "text/tokenizer.h"
#include "text/unicode.h"

const char *load_type(const struct vt_node *node)
{
    const struct vt_node *type = vt_get(node, "type");

    return type && type->kind == VT_STR ? type->u.str : "";
}

int load_unsupported(const struct vt_node *node, const char *where, struct vt_err *err)
{
    return vt_fail(err, VT_EINPUT, "line %u: type '%.40s' of %s is not supported",
                   (unsigned)node->line, load_type(node), where);
}

bool load_id(const struct vt_node *node, uint32_t *id)
{
    uint64_t v;

    if (!vt_node_u64(node, MAX_ID, &v))
        return false;
    *id = (uint32_t)v;
    return true;
}

int load_bool(const struct vt_node *node, const char *key, bool *out,
              struct vt_err *err)
{
    const struct vt_node *v = vt_get(node, key);

    return v && v->kind == VT_NULL ? VT_OK
                                   : vt_get_bool(node, key, VT_OPTIONAL, out, err);
}

int load_each(struct vt_tokenizer *t, const struct vt_node *node, const char *key,
              load_part *each, struct vt_err *err)
{
    const struct vt_node *list;
    int rc = VT_OK;

    if (!node || node->kind == VT_NULL)
        return VT_OK;
    if (strcmp(load_type(node), "Sequence") != 0)
        return each(t, node, err);
    list = vt_get(node, key);
    if (!list || list->kind != VT_LIST)
        return vt_fail(err, VT_EINPUT, "line %u: a Sequence has no list '%s'",
                       (unsigned)node->line, key);
    for (uint32_t i = 0; i < list->n && rc == VT_OK; i++)
        rc = load_each(t, &list->u.item[i], key, each, err);
    return rc;
}

/* ---- normalizer, decoder, post-processor ------------------------------ */

static int load_normalizer(struct vt_tokenizer *t, const struct vt_node *node,
                           struct vt_err *err)
{
    if (strcmp(load_type(node), "NFC") != 0)
        return load_unsupported(node, "normalizer", err);
    t->nfc = true;
    return VT_OK;
}

/* Ours is that of byte-level vocabularies; Fuse changes nothing behind it. */
static int check_decoder(struct vt_tokenizer *t, const struct vt_node *node,
                         struct vt_err *err)
{
    (void)t;
    if (strcmp(load_type(node), "ByteLevel") != 0 &&
        strcmp(load_type(node), "Fuse") != 0)
        return load_unsupported(node, "decoder", err);
    return VT_OK;
}

static int bad_template(const struct vt_node *node, const char *what,
                        struct vt_err *err)
{
    return vt_fail(err, VT_EINPUT, "line %u: post_processor: %s", (unsigned)node->line,
                   what);
}

/* Appends the ids of special token `name` of the template. */
static int template_ids(const struct vt_node *processor, const struct vt_node *piece,
                        uint32_t *id, size_t *n, struct vt_err *err)
{
    const char *name = "";
    const struct vt_node *ids;
    int rc = vt_get_str(piece, "id", VT_REQUIRED, &name, err);

    if (rc != VT_OK)
        return rc;
    ids = vt_get(vt_get(vt_get(processor, "special_tokens"), name), "ids");
    if (!ids || ids->kind != VT_LIST)
        return bad_template(piece, "a special token has no ids", err);
    for (uint32_t i = 0; i < ids->n; i++) {
        if (*n == MAX_AROUND)
            return bad_template(&ids->u.item[i], "too many special tokens", err);
        if (!load_id(&ids->u.item[i], &id[*n]))
            return bad_template(&ids->u.item[i], "not a token id", err);
        (*n)++;
    }
    return VT_OK;
}

static int load_template(struct vt_tokenizer *t, const struct vt_node *node,
                         struct vt_err *err)
{
    const struct vt_node *single = vt_get(node, "single");
    uint32_t around[2][MAX_AROUND];
    size_t n[2] = {0}, behind = 0;

    if (!single || single->kind != VT_LIST)
        return bad_template(node, "no list 'single'", err);
    for (uint32_t i = 0; i < single->n; i++) {
        const struct vt_node *piece = &single->u.item[i];
        const struct vt_node *special = vt_get(piece, "SpecialToken");
        int rc = VT_OK;

        if (special)
            rc = template_ids(node, special, around[behind], &n[behind], err);
        else if (!vt_get(piece, "Sequence") || behind++ > 0)
            rc = bad_template(piece, "not a special token, nor the one sequence", err);
        if (rc != VT_OK)
            return rc;
    }
    if (behind == 0 || t->n_before + n[0] > MAX_AROUND ||
        t->n_behind + n[1] > MAX_AROUND)
        return bad_template(single, "no sequence, or too many special tokens", err);
    /* They go around what is there already. */
    memmove(t->before + n[0], t->before, t->n_before * sizeof(*t->before));
    memcpy(t->before, around[0], n[0] * sizeof(*t->before));
    memcpy(t->behind + t->n_behind, around[1], n[1] * sizeof(*t->behind));
    t->n_before += n[0];
    t->n_behind += n[1];
    return VT_OK;
}

static int load_post_processor(struct vt_tokenizer *t, const struct vt_node *node,
                               struct vt_err *err)
{
    if (strcmp(load_type(node), "ByteLevel") == 0)
        return VT_OK; /* moves offsets, and we have none */
    if (strcmp(load_type(node), "TemplateProcessing") == 0)
        return load_template(t, node, err);
    return load_unsupported(node, "post_processor", err);
}

/* ---- added tokens ----------------------------------------------------- */

/* A token to be found in normalized text is itself normalized; spelt anew, it is no
 * longer one that decoding may skip, as `tokenizers` has it. */
static int normalize(struct vt_tokenizer *t, struct added_token *k, struct vt_err *err)
{
    struct vt_buf text = {0};
    int rc = uni_nfc(k->text, k->len, &text, err);

    if (rc == VT_OK &&
        (text.len != k->len || memcmp(text.data, k->text, k->len) != 0)) {
        k->text = vt_arena_copy(&t->arena, text.data, text.len);
        k->len = (uint32_t)text.len;
        t->vocab.token[k->id].special = false;
        rc = k->text ? vocab_respell(&t->vocab, k->id, k->text, k->len, err)
                     : vt_nomem(err);
    }
    vt_buf_free(&text);
    return rc;
}

/* As in `tokenizers`: a token that the model has keeps its id, others are numbered on
 * from the size of the vocabulary; what the file says of ids is not asked. */
static int add_token(struct vt_tokenizer *t, const struct vt_node *node,
                     uint32_t *next_id, struct vt_err *err)
{
    const struct vt_node *content = vt_get(node, "content");
    static const char word[] = "[\\w\\x{200c}\\x{200d}]"; /* \w of Rust's `regex` */
    struct added_token k = {0};
    bool normalized = false;
    int rc;

    if ((rc = vt_get_bool(node, "special", VT_OPTIONAL, &k.special, err)) ||
        (rc = vt_get_bool(node, "single_word", VT_OPTIONAL, &k.single_word, err)) ||
        (rc = vt_get_bool(node, "lstrip", VT_OPTIONAL, &k.lstrip, err)) ||
        (rc = vt_get_bool(node, "rstrip", VT_OPTIONAL, &k.rstrip, err)) ||
        (rc = vt_get_bool(node, "normalized", VT_OPTIONAL, &normalized, err)))
        return rc;
    if (!content || content->kind != VT_STR || strlen(content->u.str) != content->n)
        return vt_fail(err, VT_EINPUT, "line %u: an added token has no 'content'",
                       (unsigned)node->line);
    if (content->n == 0)
        return VT_OK;
    k.len = content->n;
    k.text = vt_arena_copy(&t->arena, content->u.str, content->n);
    if (!k.text)
        return vt_nomem(err);
    k.id = vocab_find(&t->vocab, k.text, k.len);
    if (k.id == NO_ID) {
        k.id = (*next_id)++;
        rc = vocab_add(&t->vocab, k.text, k.len, k.id, err);
        if (rc != VT_OK)
            return vt_within(err, rc, "line %u", (unsigned)node->line);
    }
    t->vocab.token[k.id].special = k.special;
    if ((normalized && t->nfc && (rc = normalize(t, &k, err))) ||
        (k.single_word && !t->word.usual &&
         (rc = pattern_open(&t->word, word, sizeof(word) - 1, err))))
        return rc;
    return added_push(normalized ? &t->added_normal : &t->added, &k, err);
}

static int load_added(struct vt_tokenizer *t, const struct vt_node *list,
                      struct vt_err *err)
{
    struct added_set *const sets[] = {&t->added, &t->added_normal};
    uint32_t next_id = (uint32_t)t->vocab.by_text.n;
    int rc = VT_OK;

    if (list && list->kind != VT_LIST && list->kind != VT_NULL)
        return vt_fail(err, VT_EINPUT, "line %u: 'added_tokens' is not a list",
                       (unsigned)list->line);
    for (uint32_t i = 0; rc == VT_OK && list && list->kind == VT_LIST && i < list->n;
         i++)
        rc = add_token(t, &list->u.item[i], &next_id, err);
    for (size_t k = 0; rc == VT_OK && k < VT_COUNT(sets); k++) {
        const struct added_token *a = sets[k]->token;

        added_seal(sets[k]);
        for (size_t i = 1; i < sets[k]->n; i++)
            if (a[i].len == a[i - 1].len &&
                memcmp(a[i].text, a[i - 1].text, a[i].len) == 0)
                return vt_fail(err, VT_EINPUT, "added token '%.40s' appears twice",
                               a[i].text);
    }
    return rc;
}

/* ---- the file --------------------------------------------------------- */

int load_tokenizer(struct vt_tokenizer *t, const struct vt_node *root,
                   struct vt_err *err)
{
    const struct vt_node *model = vt_get(root, "model");
    int rc;

    if (root->kind != VT_MAP || !model || model->kind != VT_MAP)
        return vt_fail(err, VT_EINPUT, "not a tokenizer.json: it has no 'model'");
    if ((rc = load_model(t, model, err)) ||
        (rc = load_each(t, vt_get(root, "normalizer"), "normalizers", load_normalizer,
                        err)) ||
        (rc = load_added(t, vt_get(root, "added_tokens"), err)) ||
        (rc = load_steps(t, vt_get(root, "pre_tokenizer"), err)) ||
        (rc = load_each(t, vt_get(root, "post_processor"), "processors",
                        load_post_processor, err)) ||
        (rc = load_each(t, vt_get(root, "decoder"), "decoders", check_decoder, err)))
        return rc;
    return VT_OK;
}
