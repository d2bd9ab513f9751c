/* block_hash.c - vLLM's sha256_cbor: the name of a block's tokens and all before them
 * in KV-cache events. */
#include "core/core.h"

#include <openssl/sha.h>
#include <stdlib.h>
#include <string.h>

enum { TAGGED_SINCE = 31 }; /* what is hashed says what it is */

enum {
    UINT = 0,
    NEGATIVE = 1,
    BYTES = 2,
    TEXT = 3,
    ARRAY = 4
}; /* CBOR's major types */
enum { NOTHING = 0xf6 }; /* its null */

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

static void put_array(struct vt_buf *b, uint32_t n)
{
    put_head(b, ARRAY, n);
}

static void put_text(struct vt_buf *b, const char *text, size_t len)
{
    put_head(b, TEXT, (uint32_t)len);
    vt_buf_add(b, text, len);
}

static void put_word(struct vt_buf *b, const char *text)
{
    put_text(b, text, strlen(text));
}

static void put_bytes(struct vt_buf *b, const void *bytes, size_t len)
{
    put_head(b, BYTES, (uint32_t)len);
    vt_buf_add(b, bytes, len);
}

static void put_int(struct vt_buf *b, int64_t value)
{
    if (value < 0)
        put_head(b, NEGATIVE, (uint32_t)(-1 - value));
    else
        put_head(b, UINT, (uint32_t)value);
}

/* ---- what is hashed beside the tokens ---------------------------------- */

uint32_t vt_mm_within(const struct vt_mm_item *mm, uint32_t n, uint64_t first,
                      uint64_t end, uint32_t *from)
{
    uint32_t lo = 0, hi = n, count = 0;

    while (lo < hi) { /* the first item that ends behind the start */
        uint32_t mid = lo + (hi - lo) / 2;

        if ((uint64_t)mm[mid].offset + mm[mid].length <= first)
            lo = mid + 1;
        else
            hi = mid;
    }
    while (lo + count < n && mm[lo + count].offset < end)
        count++;
    *from = lo;
    return count;
}

/* The head of one of `n` values, and its tag where the release has them. */
static void put_tag(const struct vt_chain *c, const char *tag, uint32_t n,
                    struct vt_buf *extra)
{
    bool tagged = c->vllm >= TAGGED_SINCE;

    if (tagged || n > 1)
        put_array(extra, n + tagged);
    if (tagged)
        put_word(extra, tag);
}

static void put_lora(const struct vt_chain *c, struct vt_buf *extra)
{
    bool path = c->vllm >= TAGGED_SINCE; /* before, a name stood for any adapter */

    put_tag(c, "lora", 1 + path, extra);
    put_word(extra, c->lora);
    if (path)
        put_word(extra, c->lora_path ? c->lora_path : "");
}

/* Of the next block, which is [first, end). */
static void put_extra(const struct vt_chain *c, uint64_t first, uint64_t end,
                      struct vt_buf *extra)
{
    bool salted = c->n == 0 && c->salt;
    uint32_t from, n_mm = vt_mm_within(c->mm, c->n_mm, first, end, &from);
    uint32_t n = (c->lora != NULL) + n_mm + salted + (c->embedded != NULL);

    if (n == 0) {
        vt_buf_char(extra, (char)NOTHING);
        return;
    }
    put_array(extra, n);
    if (c->lora)
        put_lora(c, extra);
    for (uint32_t i = from; i < from + n_mm; i++) {
        put_tag(c, "mm", 2, extra);
        put_word(extra, c->mm[i].id);
        put_int(extra, (int64_t)c->mm[i].offset - (int64_t)first);
    }
    if (salted) {
        put_tag(c, "cache_salt", 1, extra);
        put_word(extra, c->salt);
    }
    if (c->embedded) { /* in place of the digest of vectors that are not looked at */
        put_tag(c, "prompt_embeds", 1, extra);
        put_bytes(extra, c->embedded, strlen(c->embedded));
    }
}

/* ---- the chain ---------------------------------------------------------- */

int vt_chain_add(struct vt_chain *c, const uint32_t *token, uint32_t n_tokens,
                 struct vt_err *err)
{
    struct vt_buf b = {0};
    uint64_t first = (uint64_t)c->n * n_tokens;
    int rc = vt_grow(&c->hash, &c->cap, c->n + 1, sizeof(*c->hash), err);

    if (rc != VT_OK)
        return rc;
    put_array(&b, 3);
    put_bytes(&b, c->n > 0 ? c->hash[c->n - 1] : c->none_hash, VT_HASH_BYTES);
    put_array(&b, n_tokens);
    for (uint32_t k = 0; k < n_tokens; k++)
        put_head(&b, UINT, token[k]);
    put_extra(c, first, first + n_tokens, &b);
    if (b.failed)
        rc = vt_nomem(err);
    else
        SHA256((const unsigned char *)b.data, b.len, c->hash[c->n++]);
    vt_buf_free(&b);
    return rc;
}

void vt_chain_free(struct vt_chain *c)
{
    free(c->hash);
    *c = (struct vt_chain){0};
}

void vt_hash_none(const char *seed, uint8_t out[VT_HASH_BYTES])
{
    char room[256]; /* a seed is a word or a number */
    struct vt_buf b = {.data = room, .cap = sizeof(room)};
    const char *text = seed ? seed : "vllm-none-hash";
    size_t len = strlen(text);

    put_text(&b, text, len < 200 ? len : 200);
    SHA256((const unsigned char *)b.data, b.len, out);
}

uint64_t vt_hash_short(const uint8_t hash[VT_HASH_BYTES])
{
    uint64_t v = 0;

    for (unsigned i = VT_HASH_BYTES - 8; i < VT_HASH_BYTES; i++)
        v = v << 8 | hash[i];
    return v;
}
