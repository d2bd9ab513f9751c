/* config.c - what stands beside tokenizer.json: which tokens open and close a text, and
 * how a chat is written. */
#include "text/tokenizer.h"

/* "bos_token" and its like: null, a text, or a map with its 'content'. */
static const struct vt_node *token_text(const struct vt_node *config, const char *key)
{
    const struct vt_node *v = vt_get(config, key);

    if (v && v->kind == VT_MAP)
        v = vt_get(v, "content");
    return v && v->kind == VT_STR && strlen(v->u.str) == v->n ? v : NULL;
}

static int64_t token_id(const struct vt_tokenizer *t, const struct vt_node *config,
                        const char *key)
{
    const struct vt_node *v = token_text(config, key);
    uint32_t id = v ? vocab_find(&t->vocab, v->u.str, v->n) : NO_ID;

    return id == NO_ID ? VT_NO_TOKEN : (int64_t)id;
}

/* "eos_token_id" of generation_config.json: null, one id, or a list of them. */
static int more_stops(struct vt_tokenizer *t, const struct vt_node *generation,
                      struct vt_err *err)
{
    const struct vt_node *v = vt_get_non_null(generation, "eos_token_id");
    const struct vt_node *item = v && v->kind == VT_LIST ? v->u.item : v;
    uint32_t n = v && v->kind == VT_LIST ? v->n : v != NULL;
    int rc = VT_OK;

    for (uint32_t i = 0; i < n && rc == VT_OK; i++) {
        size_t k = 0;
        uint32_t id;

        if (!load_id(&item[i], &id) || t->stop.n > MAX_AROUND)
            return vt_fail(err, VT_EINPUT, "line %u: field 'eos_token_id' is not an id",
                           (unsigned)item[i].line);
        while (k < t->stop.n && t->stop.id[k] != id)
            k++;
        if (k == t->stop.n)
            rc = ids_add(&t->stop, &id, 1, err);
    }
    return rc;
}

/* A text, or a list of named ones of which "default" is meant. */
static const struct vt_node *template_text(const struct vt_node *config)
{
    const struct vt_node *v = vt_get(config, "chat_template");

    for (uint32_t i = 0; v && v->kind == VT_LIST && i < v->n; i++) {
        const struct vt_node *name = vt_get(&v->u.item[i], "name");
        const struct vt_node *text = vt_get(&v->u.item[i], "template");

        if (name && name->kind == VT_STR && strcmp(name->u.str, "default") == 0 &&
            text && text->kind == VT_STR)
            return text;
    }
    return v && v->kind == VT_STR ? v : NULL;
}

int load_config(struct vt_tokenizer *t, const struct vt_node *config,
                const struct vt_node *generation, struct vt_err *err)
{
    const struct vt_node *text = template_text(config);
    const struct vt_node *bos = token_text(config, "bos_token");
    uint32_t eos;
    int rc;

    t->facts.bos = token_id(t, config, "bos_token");
    t->facts.eos = token_id(t, config, "eos_token");
    t->facts.pad = token_id(t, config, "pad_token");
    t->bos_text = vt_arena_copy(&t->arena, bos ? bos->u.str : "", bos ? bos->n : 0);
    if (!t->bos_text)
        return vt_nomem(err);
    eos = (uint32_t)t->facts.eos;
    if ((t->facts.eos != VT_NO_TOKEN && (rc = ids_add(&t->stop, &eos, 1, err))) ||
        (rc = more_stops(t, generation, err)) || !text)
        return rc;
    return chat_recognise(&t->chat, text->u.str, text->n, &t->arena, err);
}

static int by_id(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

int list_special(struct vt_tokenizer *t, struct vt_err *err)
{
    const struct added_set *sets[] = {&t->added, &t->added_normal};
    size_t n = 0;

    t->special = malloc((t->added.n + t->added_normal.n + 1) * sizeof(*t->special));
    if (!t->special)
        return vt_nomem(err);
    for (size_t k = 0; k < VT_COUNT(sets); k++)
        for (size_t i = 0; i < sets[k]->n; i++)
            if (sets[k]->token[i].special)
                t->special[n++] = sets[k]->token[i].id;
    qsort(t->special, n, sizeof(*t->special), by_id);
    t->facts.special = t->special;
    t->facts.n_special = n;
    t->facts.vocab_size = (uint32_t)t->vocab.n;
    t->facts.stop = t->stop.id;
    t->facts.n_stop = t->stop.n;
    t->facts.chat = t->chat.kind;
    return VT_OK;
}
