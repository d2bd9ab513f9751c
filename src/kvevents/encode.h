/* encode.h - events and batches of them as MessagePack; private to kvevents. */
#ifndef VT_KVEVENTS_ENCODE_H
#define VT_KVEVENTS_ENCODE_H

#include "kvevents/publisher.h"

struct kv_batch {         /* being made; zeroed to start */
    struct vt_buf events; /* one after the other; the caller frees it */
    uint32_t n_events;
    bool raw_hashes, session_ids; /* as in struct kv_events_config */
};

void kv_batch_stored(struct kv_batch *b, const struct kv_stored *s);
void kv_batch_removed(struct kv_batch *b, const uint8_t *hash, uint32_t n_hashes);
void kv_batch_cleared(struct kv_batch *b);
/* Writes [time, events, rank] to *out and starts the next batch. out->failed: some
 * event was lost for want of memory. */
void kv_batch_finish(struct kv_batch *b, struct vt_buf *out, double now_unix,
                     uint32_t dp_rank);

#endif
