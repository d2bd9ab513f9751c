/* blocks.h - block events on their way from the clock to who publishes them; private to
 * wire. */
#ifndef VT_WIRE_PLAY_BLOCKS_H
#define VT_WIRE_PLAY_BLOCKS_H

#include "base/base.h"
#include "core/core.h"

struct blocks_event {
    enum vt_kv_kind kind;
    uint8_t (*hash)[VT_HASH_BYTES]; /* REMOVED: zeroes, but for what vt_hash_short()
                                     * takes of it */
    uint32_t n_hashes;
    bool has_parent; /* STORED, as what follows */
    uint8_t parent[VT_HASH_BYTES];
    uint32_t *token;                   /* n_hashes * block size */
    const char *lora, *salt, *session; /* NULL: none */
    int64_t lora_id;
};

struct play_blocks { /* owned whole by its arena */
    struct vt_arena arena;
    struct blocks_event *event;
    size_t n;
    double unix_s;
};

void blocks_free(struct play_blocks *b); /* NULL is fine */

#endif
