/* tracker.h - how often content was asked for or offered, of the last so many.
 * Private to core/offload. */
#ifndef VT_CORE_OFFLOAD_TRACKER_H
#define VT_CORE_OFFLOAD_TRACKER_H

#include "base/base.h"

struct tracked {
    uint64_t key;
    uint32_t count, prev, next; /* 0: none */
    uint32_t seen;              /* the last call that counted it */
};

struct tracker { /* zero-initialise, then set most */
    uint32_t most;
    struct vt_map by_key;
    struct tracked *node; /* from 1 */
    size_t n, cap;
    uint32_t head, tail; /* the longest unseen first */
    uint32_t call;
    bool failed;
};

void tracker_free(struct tracker *t);
uint32_t tracker_count(const struct tracker *t, uint64_t key);
/* One look at one key. */
void tracker_look(struct tracker *t, uint64_t key);
/* Keys that are offered together don't push each other out. */
void tracker_offer(struct tracker *t, const uint64_t *key, uint32_t n);

#endif
