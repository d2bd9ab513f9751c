/* told.h - lists of what is over, in the order of its ends, until it is told of: of
 * transfers, pulls and leases. Private to core. */
#ifndef VT_CORE_TOLD_H
#define VT_CORE_TOLD_H

#include "core/core.h"

/* How many of n cells, each with its end at that offset, are over by then. */
static inline uint32_t told_until(const void *list, size_t n, size_t cell, size_t ended,
                                  vt_ns at)
{
    const char *cells = list; /* NULL where there are none */
    uint32_t k = 0;

    while (k < n && *(const vt_ns *)(const void *)(cells + k * cell + ended) <= at)
        k++;
    return k;
}

/* The first k of them were told of. */
static inline void told_drop(void *list, size_t *n, uint32_t k, size_t cell)
{
    *n -= k;
    if (k > 0)
        memmove(list, (char *)list + k * cell, *n * cell);
}

#endif
