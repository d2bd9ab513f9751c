/* h2.h - HTTP/2 of a client: header fields and frames; private to net. */
#ifndef VT_NET_H2_H
#define VT_NET_H2_H

#include "net/net.h"

/* ---- header fields (hpack.c) ------------------------------------------------- */

void h2_field_put(struct vt_buf *b, const char *name, const char *value);
/* Borrowed during the call. */
typedef void h2_field(void *user, const char *name, const char *value);
/* All fields of a block. False: it is malformed, or uses a table that we allow none. */
bool h2_fields_get(const void *block, size_t len, h2_field *tell, void *user);

/* ---- one unary call (h2.c) ----------------------------------------------------- */

enum h2_state {
    H2_GOING,
    H2_DONE,   /* the response has ended: see what it said */
    H2_BROKEN, /* the connection is of no use any more */
};

/* A connection's state, without its socket. Zero it for a new connection. */
struct h2 {
    bool greeted;          /* the preface is out */
    bool leaving;          /* the peer takes no more calls */
    uint32_t stream;       /* of the call; the next is two more */
    uint32_t max_frame;    /* that the peer takes */
    int64_t window;        /* bytes that may be sent on the connection, */
    int64_t stream_window; /* on the stream, */
    int64_t first_window;  /* on a new stream */
    struct vt_buf in, out; /* bytes that have come, that are to be sent */
    struct vt_buf block;   /* header fields so far */
    bool ends_stream;      /* with that block */
    struct vt_buf body;    /* still to be sent, */
    size_t sent;           /* of which so many bytes are */
    enum h2_state state;
    int http_status, grpc_status; /* -1: not told */
    char message[200];
};
/* Begins a call; what is to be sent is put into `out`. */
void h2_begin(struct h2 *h, const struct net_url *url, const struct net_grpc_call *c);
/* Takes bytes that came, and goes on as far as they allow. */
void h2_feed(struct h2 *h, const void *bytes, size_t len);
void h2_free(struct h2 *h);

#endif
