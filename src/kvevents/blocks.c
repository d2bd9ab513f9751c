/* blocks.c - hashes of a request's blocks, as vLLM chains them, and their keys. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "kvevents/kvevents.h"

/* What is hashed beside the tokens; nothing where `extra` stays empty. */
static void put_extra(const struct vt_chain *c, uint64_t mark, struct vt_buf *extra)
{
    bool salted = c->n == 0 && c->salt;

    if (!c->lora && !salted && mark == 0)
        return;
    vt_cbor_array(extra, (c->lora ? 1U : 0U) + (mark != 0) + salted);
    if (c->lora) {
        if (c->tagged) {
            vt_cbor_array(extra, 2);
            vt_cbor_text(extra, "lora", 4);
        }
        vt_cbor_text(extra, c->lora, strlen(c->lora));
    }
    if (mark != 0)
        vt_cbor_text(extra, (const char *)&mark, sizeof(mark));
    if (salted)
        vt_cbor_text(extra, c->salt, strlen(c->salt));
}

int vt_chain_add(struct vt_chain *c, const uint32_t *token, uint32_t n_tokens,
                 uint64_t mark, struct vt_err *err)
{
    struct vt_buf extra = {0}, scratch = {0};
    struct vt_block_text t = {.token = token, .n_tokens = n_tokens};
    int rc = vt_grow(&c->hash, &c->cap, c->n + 1, sizeof(*c->hash), err);

    if (rc != VT_OK)
        return rc;
    put_extra(c, mark, &extra);
    t.parent = c->n > 0 ? c->hash[c->n - 1] : c->none_hash;
    t.extra = extra.len > 0 ? extra.data : NULL;
    t.extra_len = extra.len;
    rc = extra.failed ? vt_nomem(err) : vt_hash_block(&t, &scratch, c->hash[c->n], err);
    c->n += rc == VT_OK;
    vt_buf_free(&extra);
    vt_buf_free(&scratch);
    return rc;
}

void vt_chain_free(struct vt_chain *c)
{
    free(c->hash);
    *c = (struct vt_chain){0};
}

/* ---- tokens and keys -------------------------------------------------- */

uint32_t vt_blocks_token(const struct vt_blocks *b, uint32_t position)
{
    if (position >= b->n_prompt)
        return b->output(b->request, position - b->n_prompt);
    return b->prompt ? b->prompt[position] : 0;
}

/* The block's tokens: within the prompt where they lie, else gathered. */
static const uint32_t *block_tokens(const struct vt_blocks *b, uint32_t block,
                                    uint32_t room[VT_BLOCK_TOKENS])
{
    uint32_t first = block * b->size;

    assert(b->size <= VT_BLOCK_TOKENS);
    if (b->prompt && first + b->size <= b->n_prompt)
        return b->prompt + first;
    for (uint32_t i = 0; i < b->size; i++)
        room[i] = vt_blocks_token(b, first + i);
    return room;
}

uint64_t vt_blocks_key(void *blocks, uint32_t block, uint64_t parent)
{
    struct vt_blocks *b = blocks;
    uint32_t room[VT_BLOCK_TOKENS];
    uint64_t key = parent != 0 ? parent : b->first_key;

    if (!b->chain.none_hash) {
        key = b->mark ? b->mark(b->request, block, key) : key;
        return vt_hash_bytes(block_tokens(b, block, room), sizeof(*room) * b->size,
                             key);
    }
    /* With KV events the key is what subscribers are told, or they could not tell which
     * block was evicted. Blocks come in order, and out of memory ends in a miss. */
    while (b->chain.n <= block) {
        uint32_t next = (uint32_t)b->chain.n;

        if (vt_chain_add(&b->chain, block_tokens(b, next, room), b->size,
                         b->mark ? b->mark(b->request, next, 0) : 0, NULL) != VT_OK)
            return vt_hash2(key, (uintptr_t)b);
    }
    return vt_hash_short(b->chain.hash[block]);
}
