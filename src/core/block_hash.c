/* block_hash.c - vLLM's sha256_cbor: the name of a block's tokens and all before them
 * in KV-cache events. */
#include "core/core.h"

#include <openssl/sha.h>
#include <string.h>

enum { UINT = 0, BYTES = 2, TEXT = 3, ARRAY = 4 }; /* CBOR's major types */

/* Major type and argument in the shortest form. */
static void put_head(struct vt_buf *b, unsigned major, uint32_t n)
{
    unsigned extra = n < 24 ? 0 : n < 256 ? 1 : n < 65536 ? 2 : 4;
    char head[5];

    head[0] = (char)(major << 5 | (extra == 0   ? n
                                   : extra == 1 ? 24u
                                   : extra == 2 ? 25u
                                                : 26u));
    for (unsigned i = 0; i < extra; i++)
        head[1 + i] = (char)(n >> (8 * (extra - 1 - i)) & 0xff);
    vt_buf_add(b, head, 1 + extra);
}

void vt_cbor_array(struct vt_buf *b, uint32_t n)
{
    put_head(b, ARRAY, n);
}

void vt_cbor_text(struct vt_buf *b, const char *text, size_t len)
{
    put_head(b, TEXT, (uint32_t)len);
    vt_buf_add(b, text, len);
}

void vt_hash_none(const char *seed, uint8_t out[VT_HASH_BYTES])
{
    char room[256]; /* a seed is a word or a number */
    struct vt_buf b = {.data = room, .cap = sizeof(room)};
    const char *text = seed ? seed : "vllm-none-hash";
    size_t len = strlen(text);

    vt_cbor_text(&b, text, len < 200 ? len : 200);
    SHA256((const unsigned char *)b.data, b.len, out);
}

int vt_hash_block(const struct vt_block_text *t, struct vt_buf *scratch,
                  uint8_t out[VT_HASH_BYTES], struct vt_err *err)
{
    vt_buf_clear(scratch);
    put_head(scratch, ARRAY, 3);
    put_head(scratch, BYTES, VT_HASH_BYTES);
    vt_buf_add(scratch, t->parent, VT_HASH_BYTES);
    put_head(scratch, ARRAY, t->n_tokens);
    for (uint32_t k = 0; k < t->n_tokens; k++)
        put_head(scratch, UINT, t->token[k]);
    if (t->extra)
        vt_buf_add(scratch, t->extra, t->extra_len);
    else
        vt_buf_char(scratch, (char)0xf6); /* null */
    if (scratch->failed)
        return vt_nomem(err);
    SHA256((const unsigned char *)scratch->data, scratch->len, out);
    return VT_OK;
}

uint64_t vt_hash_short(const uint8_t hash[VT_HASH_BYTES])
{
    uint64_t v = 0;

    for (unsigned i = VT_HASH_BYTES - 8; i < VT_HASH_BYTES; i++)
        v = v << 8 | hash[i];
    return v;
}
