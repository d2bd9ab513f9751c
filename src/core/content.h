/* content.h - what a request's tokens are, block by block.
 *
 * A block's key stands for its tokens and everything before them: it chains the
 * previous block's key with the runs of content inside the block. Keys are made when
 * first asked for and kept. */
#ifndef VT_CORE_CONTENT_H
#define VT_CORE_CONTENT_H

#include "core/core.h"

struct content {
    struct vt_segment *seg; /* the prompt, then one endless segment of output */
    size_t n_seg, cap_seg;
    uint64_t *key; /* n_keys of them */
    size_t n_keys, cap_keys;
    size_t at_seg; /* where the next key's first token lies */
    uint32_t at_token;
    uint64_t salt;
    uint64_t (*block_key)(void *tokens, uint32_t j, uint64_t parent); /* or NULL */
    void *tokens;
};

int content_init(struct content *c, const struct vt_request *r, struct vt_err *err);
void content_free(struct content *c);

/* Key of block j; the tokens up to its end must exist. False: out of memory. */
bool content_key(struct content *c, uint32_t j, uint32_t block_size, uint64_t *key);

#endif
