/* decode.c - ids to text, at once or as they come. */
#include "text/tokenizer.h"
#include "text/unicode.h"

/* More than this is not held back, whatever it is. */
enum { MAX_HELD = 65536 };

static void add_bytes(const struct vt_tokenizer *t, uint32_t id,
                      enum vt_decode_special special, struct vt_buf *out)
{
    const struct token *k = id < t->vocab.n ? &t->vocab.token[id] : NULL;

    if (!k || k->text == NO_ID || (k->special && special == VT_SKIP_SPECIAL))
        return;
    vt_buf_add(out, t->vocab.pool.data + k->bytes, k->n_bytes);
}

void vt_tokenizer_decode(const struct vt_tokenizer *t, const uint32_t *id, size_t n,
                         enum vt_decode_special special, struct vt_buf *out)
{
    struct vt_buf bytes = {0};

    for (size_t i = 0; i < n; i++)
        add_bytes(t, id[i], special, &bytes);
    if (bytes.failed)
        out->failed = true;
    uni_add_lossy(out, bytes.data, bytes.len);
    vt_buf_free(&bytes);
}

static void give_out(struct vt_detokenizer *d, struct vt_buf *out)
{
    if (d->held.failed || d->text.failed)
        out->failed = true;
    vt_buf_add(out, d->text.data, d->text.len);
    vt_buf_clear(&d->held);
}

void vt_detokenizer_add(struct vt_detokenizer *d, uint32_t id, struct vt_buf *out)
{
    add_bytes(d->tokenizer, id, d->special, &d->held);
    vt_buf_clear(&d->text);
    uni_add_lossy(&d->text, d->held.data, d->held.len);
    if (d->held.len > MAX_HELD || d->text.len < 3 || /* no U+FFFD at its end */
        memcmp(d->text.data + d->text.len - 3, "\xef\xbf\xbd", 3) != 0)
        give_out(d, out);
}

void vt_detokenizer_end(struct vt_detokenizer *d, struct vt_buf *out)
{
    vt_buf_clear(&d->text);
    uni_add_lossy(&d->text, d->held.data, d->held.len);
    give_out(d, out);
}

void vt_detokenizer_free(struct vt_detokenizer *d)
{
    vt_buf_free(&d->held);
    vt_buf_free(&d->text);
}
