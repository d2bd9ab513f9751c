/* model_dir.c - a model directory: its vocabulary, its sizes, its tokenizer. */
#include "cli/cmd/wall.h"

#include <string.h>
#include <unistd.h>

#include "model/model.h"

/* Special tokens, markup, and ids that stand for nothing: a frontend could not spell
 * them. */
static int collect_skips(struct model_dir *m, struct vt_err *err)
{
    const struct vt_token_facts *f = vt_tokenizer_facts(m->tokenizer);
    size_t k = 0;
    int rc = VT_OK;

    m->vocab_size = f->vocab_size;
    for (uint32_t id = 0; id < f->vocab_size && rc == VT_OK; id++) {
        bool special = k < f->n_special && f->special[k] == id;
        size_t len = 0;
        const char *token = vt_tokenizer_token(m->tokenizer, id, &len);

        k += special;
        /* <think>, <tool_call>: not special, but a frontend's parsers would act on
         * them. */
        if (!special && token && !(len > 2 && token[0] == '<' && token[len - 1] == '>'))
            continue;
        rc =
            vt_grow(&m->skip.id, &m->skip.cap, m->skip.n + 1, sizeof(*m->skip.id), err);
        if (rc == VT_OK)
            m->skip.id[m->skip.n++] = id;
    }
    return rc;
}

int model_dir_open(struct model_dir *m, const char *dir, struct vt_err *err)
{
    struct vt_buf path = {0};
    int rc;

    if ((rc = vt_tokenizer_open(&m->tokenizer, dir, err)) ||
        (rc = collect_skips(m, err)))
        return rc;
    vt_buf_printf(&path, "%s/config.json", dir);
    if (path.failed)
        rc = vt_nomem(err);
    else if ((m->has_arch = access(path.data, F_OK) == 0))
        rc = vt_arch_load(&m->arch, path.data, err);
    vt_buf_free(&path);
    return rc;
}

void model_dir_close(struct model_dir *m)
{
    vt_ids_free(&m->skip);
    vt_tokenizer_close(m->tokenizer);
}

int model_dir_encode(void *user, const char *text, size_t len, uint32_t **ids,
                     size_t *n, struct vt_err *err)
{
    const struct model_dir *m = user;
    struct vt_ids out = {0};
    int rc = vt_tokenizer_encode(m->tokenizer, text, len, VT_ENCODE_PLAIN, &out, err);

    if (rc != VT_OK) {
        vt_ids_free(&out);
        return rc;
    }
    *ids = out.id;
    *n = out.n;
    return VT_OK;
}
