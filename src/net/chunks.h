/* chunks.h - chunked bodies, of requests and of responses; private to net. */
#ifndef VT_NET_CHUNKS_H
#define VT_NET_CHUNKS_H

#include "net/net.h"

struct net_limits { /* one for all connections of a server */
    size_t max_header_bytes, max_body_bytes;
    size_t held_bytes, max_held_bytes; /* of all bodies under way; beyond: 503 */
    struct net_waste *waste;           /* owned: of intake.c */
};

/* Reads on from *p up to `end`, and stops before data, behind the last trailer or at an
 * error. Returns 0 (all was read, or *n bytes of data lie at *p), NET_CHUNKS_END or the
 * status to refuse it with. */
enum { NET_CHUNKS_END = 1 };
int net_chunks_read(struct net_chunks *k, const struct net_limits *l, const char **p,
                    const char *end, size_t *n);

static inline int net_hex_digit(char c) /* -1: none */
{
    if (c >= '0' && c <= '9')
        return c - '0';
    return (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1;
}

#endif
