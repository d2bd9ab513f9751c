/* open.c - tokenizers opened, closed and asked for facts. */
#include <sys/stat.h>

#include "text/tokenizer.h"

#define MAX_FILE ((size_t)64 << 20)

/* ---- from texts ------------------------------------------------------- */

static int parse_text(struct vt_arena *a, const char *text, size_t len,
                      const char *name, const struct vt_node **out, struct vt_err *err)
{
    int rc = VT_OK;

    *out = NULL;
    if (text)
        rc = vt_json_parse(a, text, len, 1, out, err);
    return vt_within(err, rc, "%s", name);
}

static int fill_from_texts(struct vt_tokenizer *t, const void *from, struct vt_err *err)
{
    const struct vt_tokenizer_texts *x = from;
    const struct vt_node *root, *config, *generation;
    struct vt_arena a = {0};
    int rc =
        parse_text(&a, x->tokenizer, x->tokenizer_len, "tokenizer.json", &root, err);

    if (rc == VT_OK)
        rc = vt_within(err, load_tokenizer(t, root, err), "tokenizer.json");
    if (rc == VT_OK &&
        !(rc = parse_text(&a, x->config, x->config_len, "tokenizer_config.json",
                          &config, err)) &&
        !(rc = parse_text(&a, x->generation, x->generation_len,
                          "generation_config.json", &generation, err)) &&
        !(rc = load_config(t, config, generation, err)))
        rc = list_special(t, err);
    vt_arena_free(&a);
    return rc;
}

int tokenizer_make(struct vt_tokenizer **out, tokenizer_fill *fill, const void *from,
                   struct vt_err *err)
{
    struct vt_tokenizer *t = calloc(1, sizeof(*t));
    int rc = t ? fill(t, from, err) : vt_nomem(err);

    *out = NULL;
    if (rc == VT_OK)
        *out = t;
    else
        vt_tokenizer_close(t);
    return rc;
}

int vt_tokenizer_from(struct vt_tokenizer **out, const struct vt_tokenizer_texts *texts,
                      struct vt_err *err)
{
    return tokenizer_make(out, fill_from_texts, texts, err);
}

void vt_tokenizer_close(struct vt_tokenizer *t)
{
    if (!t)
        return;
    free(t->added.token);
    free(t->added_normal.token);
    pattern_close(&t->word);
    for (size_t i = 0; i < t->n_steps; i++)
        pattern_close(&t->step[i].pattern);
    bpe_close(&t->bpe);
    vocab_free(&t->vocab);
    free(t->special);
    vt_ids_free(&t->stop);
    vt_arena_free(&t->arena);
    free(t);
}

/* ---- from files ------------------------------------------------------- */

enum { TOKENIZER, CONFIG, GENERATION, TEMPLATE, FILES };

/* Those that exist of the files in the directory, which is the first dir_len bytes of
 * the path. */
static int read_beside(struct vt_buf file[FILES], const char *path, size_t dir_len,
                       struct vt_err *err)
{
    static const char *const names[] = {"tokenizer.json", "tokenizer_config.json",
                                        "generation_config.json",
                                        "chat_template.jinja"};
    struct vt_buf name = {0};
    struct stat st;
    int rc = VT_OK;

    for (int i = 0; i < FILES && rc == VT_OK; i++) {
        if (file[i].data)
            continue;
        vt_buf_clear(&name);
        vt_buf_add(&name, path, dir_len);
        if (dir_len > 0 && path[dir_len - 1] != '/')
            vt_buf_char(&name, '/');
        vt_buf_str(&name, names[i]);
        if (name.failed)
            rc = vt_nomem(err);
        else if (stat(name.data, &st) == 0)
            rc = vt_read_file(name.data, MAX_FILE, &file[i], err);
    }
    vt_buf_free(&name);
    return rc;
}

static int read_files(struct vt_buf file[FILES], const char *path, struct vt_err *err)
{
    const char *slash = strrchr(path, '/');
    struct stat st;
    int rc;

    if (stat(path, &st) != 0 || !S_ISDIR(st.st_mode)) {
        rc = vt_read_file(path, MAX_FILE, &file[TOKENIZER], err);
        return rc == VT_OK ? read_beside(file, path,
                                         slash ? (size_t)(slash + 1 - path) : 0, err)
                           : rc;
    }
    rc = read_beside(file, path, strlen(path), err);
    if (rc == VT_OK && !file[TOKENIZER].data)
        rc = vt_fail(err, VT_EINPUT, "%s: no tokenizer.json in this directory", path);
    return rc;
}

/* A template in a file of its own goes before that of tokenizer_config.json. */
int vt_tokenizer_open(struct vt_tokenizer **out, const char *path, struct vt_err *err)
{
    struct vt_buf file[FILES] = {0};
    const struct vt_buf *template = &file[TEMPLATE];
    int rc = read_files(file, path, err);

    *out = NULL;
    if (rc == VT_OK) {
        const struct vt_tokenizer_texts texts = {
            .tokenizer = file[TOKENIZER].data,
            .tokenizer_len = file[TOKENIZER].len,
            .config = file[CONFIG].data,
            .config_len = file[CONFIG].len,
            .generation = file[GENERATION].data,
            .generation_len = file[GENERATION].len,
        };

        rc = vt_tokenizer_from(out, &texts, err);
        if (rc == VT_OK && template->data) {
            struct vt_tokenizer *t = *out;

            rc =
                chat_recognise(&t->chat, template->data, template->len, &t->arena, err);
            t->facts.chat = t->chat.kind;
        }
        rc = vt_within(err, rc, "%s", path);
    }
    if (rc != VT_OK) {
        vt_tokenizer_close(*out);
        *out = NULL;
    }
    for (int i = 0; i < FILES; i++)
        vt_buf_free(&file[i]);
    return rc;
}

/* ---- facts ------------------------------------------------------------ */

const struct vt_token_facts *vt_tokenizer_facts(const struct vt_tokenizer *t)
{
    return &t->facts;
}

bool vt_tokenizer_id(const struct vt_tokenizer *t, const char *token, size_t len,
                     uint32_t *id)
{
    uint32_t found = vocab_find(&t->vocab, token, len);

    if (found == NO_ID)
        return false;
    *id = found;
    return true;
}

const char *vt_tokenizer_token(const struct vt_tokenizer *t, uint32_t id, size_t *len)
{
    const struct token *k = id < t->vocab.n ? &t->vocab.token[id] : NULL;

    if (!k || k->text == NO_ID)
        return NULL;
    if (len)
        *len = k->text_len;
    return t->vocab.pool.data + k->text;
}
