/* sse.h - the stream of /v1/completions, as far as a replay needs it; private to
 * conform. */
#ifndef VT_CONFORM_SSE_H
#define VT_CONFORM_SSE_H

#include "net/net.h"

struct sse_chunk { /* one event; good until the next call */
    const uint32_t *token;
    uint32_t n_tokens;
    const char *finish; /* NULL: it goes on */
};

/* Zero-initialise to start. */
struct sse {
    struct net_sse lines;
    struct vt_arena arena;
    struct vt_err *err; /* of the call in progress */
    int rc;
    bool done; /* the server said that nothing follows */
    int (*on_chunk)(void *user, const struct sse_chunk *c, struct vt_err *err);
    void *user;
};

/* Feeds what came; events may be cut anywhere. VT_EIO: not such a stream, or an error
 * that the server reports in it. */
int sse_feed(struct sse *s, const char *bytes, size_t len,
             struct vt_err *err) VT_MUST_CHECK;
void sse_end(struct sse *s);

#endif
