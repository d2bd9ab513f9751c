/* open.c - tokenizers opened, closed and asked for facts. */
#include <sys/stat.h>

#include "text/tokenizer.h"

#define MAX_FILE ((size_t)64 << 20)

/* ---- from texts ------------------------------------------------------- */

static int parse(struct vt_arena *a, const char *text, size_t len, const char *name,
                 const struct vt_node **out, struct vt_err *err)
{
    int rc = VT_OK;

    *out = NULL;
    if (text)
        rc = vt_json_parse(a, text, len, 1, out, err);
    return vt_within(err, rc, "%s", name);
}

static int load_beside(struct vt_tokenizer *t, struct vt_arena *a,
                       const struct vt_tokenizer_texts *texts, struct vt_err *err)
{
    const struct vt_node *config, *generation;
    int rc = parse(a, texts->config, texts->config_len, "tokenizer_config.json",
                   &config, err);

    if (rc == VT_OK)
        rc = parse(a, texts->generation, texts->generation_len,
                   "generation_config.json", &generation, err);
    return rc == VT_OK ? load_config(t, config, generation, err) : rc;
}

static int load(struct vt_tokenizer *t, const struct vt_tokenizer_texts *texts,
                struct vt_err *err)
{
    struct vt_arena a = {0};
    const struct vt_node *root;
    int rc =
        parse(&a, texts->tokenizer, texts->tokenizer_len, "tokenizer.json", &root, err);

    if (rc == VT_OK)
        rc = vt_within(err, load_tokenizer(t, root, err), "tokenizer.json");
    if (rc == VT_OK)
        rc = load_beside(t, &a, texts, err);
    vt_arena_free(&a);
    return rc == VT_OK ? list_special(t, err) : rc;
}

int vt_tokenizer_from(struct vt_tokenizer **out, const struct vt_tokenizer_texts *texts,
                      struct vt_err *err)
{
    struct vt_tokenizer *t = calloc(1, sizeof(*t));
    int rc = t ? load(t, texts, err) : vt_nomem(err);

    if (rc != VT_OK) {
        vt_tokenizer_close(t);
        t = NULL;
    }
    *out = t;
    return rc;
}

void vt_tokenizer_close(struct vt_tokenizer *t)
{
    if (!t)
        return;
    added_free(&t->added);
    added_free(&t->added_normal);
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

static bool is_directory(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static bool exists(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0;
}

/* Length of the path's directory part, with its slash. */
static size_t directory_len(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? (size_t)(slash + 1 - path) : 0;
}

struct files {
    const char *dir; /* borrowed */
    size_t dir_len;
    bool dir_slash; /* one is missing */
    struct vt_buf path, tokenizer, config, generation, template;
};

static int read_one(struct files *f, const char *name, struct vt_buf *out,
                    struct vt_err *err)
{
    vt_buf_clear(&f->path);
    vt_buf_add(&f->path, f->dir, f->dir_len);
    if (f->dir_slash)
        vt_buf_char(&f->path, '/');
    vt_buf_str(&f->path, name);
    if (f->path.failed)
        return vt_nomem(err);
    if (!exists(f->path.data))
        return VT_OK;
    return vt_read_file(f->path.data, MAX_FILE, out, err);
}

static int read_files(struct files *f, const char *path, struct vt_err *err)
{
    int rc;

    f->dir = path;
    if (is_directory(path)) {
        f->dir_len = strlen(path);
        f->dir_slash = f->dir_len > 0 && path[f->dir_len - 1] != '/';
        rc = read_one(f, "tokenizer.json", &f->tokenizer, err);
        if (rc == VT_OK && !f->tokenizer.data)
            rc = vt_fail(err, VT_EINPUT, "%s: no tokenizer.json in this directory",
                         path);
    } else {
        f->dir_len = directory_len(path);
        rc = vt_read_file(path, MAX_FILE, &f->tokenizer, err);
    }
    if (rc == VT_OK)
        rc = read_one(f, "tokenizer_config.json", &f->config, err);
    if (rc == VT_OK)
        rc = read_one(f, "generation_config.json", &f->generation, err);
    if (rc == VT_OK)
        rc = read_one(f, "chat_template.jinja", &f->template, err);
    return rc;
}

/* A template in a file of its own goes before that of tokenizer_config.json. */
static int open_files(struct vt_tokenizer **out, const struct files *f,
                      const char *path, struct vt_err *err)
{
    const struct vt_tokenizer_texts texts = {
        .tokenizer = f->tokenizer.data ? f->tokenizer.data : "",
        .tokenizer_len = f->tokenizer.len,
        .config = f->config.data,
        .config_len = f->config.len,
        .generation = f->generation.data,
        .generation_len = f->generation.len,
    };
    int rc = vt_tokenizer_from(out, &texts, err);

    if (rc == VT_OK && f->template.data) {
        struct vt_tokenizer *t = *out;

        rc =
            chat_recognise(&t->chat, f->template.data, f->template.len, &t->arena, err);
        t->facts.chat = t->chat.kind;
    }
    if (rc != VT_OK) {
        vt_tokenizer_close(*out);
        *out = NULL;
    }
    return vt_within(err, rc, "%s", path);
}

int vt_tokenizer_open(struct vt_tokenizer **out, const char *path, struct vt_err *err)
{
    struct files f = {0};
    int rc = read_files(&f, path, err);

    *out = NULL;
    if (rc == VT_OK)
        rc = open_files(out, &f, path, err);
    vt_buf_free(&f.path);
    vt_buf_free(&f.tokenizer);
    vt_buf_free(&f.config);
    vt_buf_free(&f.generation);
    vt_buf_free(&f.template);
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
