/* blocks.c - a request's tokens, the hashes of its blocks and their keys. */
#include <assert.h>
#include <string.h>

#include "kvevents/kvevents.h"

enum { FIXED_SEED_SINCE = 29 }; /* chains begin alike where no seed is set */

void vt_none_hash(uint32_t vllm, const char *seed, uint8_t out[VT_HASH_BYTES])
{
    if (seed || vllm >= FIXED_SEED_SINCE || !vt_entropy(out, VT_HASH_BYTES))
        vt_hash_none(seed, out);
}

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

/* A key as vt_chain_add() has a hash, for who tells nobody. */
static uint64_t mix_items(const struct vt_blocks *b, uint32_t block, uint64_t key)
{
    const struct vt_chain *c = &b->chain;
    uint64_t first = (uint64_t)block * b->size;
    uint32_t from, n = vt_mm_within(c->mm, c->n_mm, first, first + b->size, &from);

    for (uint32_t i = from; i < from + n; i++)
        key = vt_hash_bytes(c->mm[i].id, strlen(c->mm[i].id),
                            vt_hash2(key, c->mm[i].offset));
    return key;
}

uint64_t vt_blocks_key(void *blocks, uint32_t block, uint64_t parent)
{
    struct vt_blocks *b = blocks;
    uint32_t room[VT_BLOCK_TOKENS];
    uint64_t key = parent != 0 ? parent : b->first_key;

    if (!b->chain.none_hash) {
        key = mix_items(b, block, key);
        return vt_hash_bytes(block_tokens(b, block, room), sizeof(*room) * b->size,
                             key);
    }
    /* With KV events the key is what subscribers are told, or they could not tell which
     * block was evicted. Blocks come in order, and out of memory ends in a miss. */
    while (b->chain.n <= block) {
        uint32_t next = (uint32_t)b->chain.n;

        if (vt_chain_add(&b->chain, block_tokens(b, next, room), b->size, NULL) !=
            VT_OK)
            return vt_hash2(key, (uintptr_t)b);
    }
    return vt_hash_short(b->chain.hash[block]);
}

int vt_blocks_check(const struct vt_engine_config *c, struct vt_err *err)
{
    uint32_t size = vt_hash_block_size(c);

    if (size <= VT_BLOCK_TOKENS || !c->enable_prefix_caching)
        return VT_OK;
    return vt_fail(err, VT_EINPUT, "block-size %u is above %d", size, VT_BLOCK_TOKENS);
}
