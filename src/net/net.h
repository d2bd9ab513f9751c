/* net.h - HTTP/1.1 on sockets: connections, requests in, responses out.
 *
 * Everything happens on the one thread that calls net_wait(), which is also the
 * engines': no locks, no hand-over for a token. Nothing waits for a peer: what a slow
 * reader does not take is kept up to a limit, then the connection is closed. */
#ifndef VT_NET_H
#define VT_NET_H

#include "base/base.h"

struct net;      /* opaque */
struct net_conn; /* opaque; good until its request is answered, or gone() told of it */

struct net_config {                          /* copied */
    const char *host;                        /* "127.0.0.1", "::", a name */
    uint16_t port;                           /* 0: any free one */
    const char *certfile, *keyfile;          /* PEM; NULL: no TLS */
    size_t max_body_bytes, max_header_bytes; /* beyond: 413, 431 */
    size_t max_unsent_bytes;                 /* of a connection; beyond: closed */
    uint32_t max_connections;                /* beyond: 503 and closed */
    /* Slow and silent peers; 0: no limit. A head has the first in all, a body the
     * second for every 16 KiB of it, and so has the end of a response to be taken;
     * between requests, the third. */
    vt_ns header_timeout_ns, body_timeout_ns, idle_timeout_ns;
};

struct net_header { /* of a request: the name in lower case */
    const char *name, *value;
};

struct net_request {           /* borrowed until the handler returns */
    const char *method, *path; /* without the query; percent-decoded */
    const char *query;         /* "" if none; still encoded */
    const struct net_header *header;
    size_t n_headers;
    const char *body; /* followed by a NUL that does not count */
    size_t body_len;
    size_t head_len;  /* bytes of request line and headers */
    const char *peer; /* address, for logs */
};
const char *net_header_value(const struct net_request *r, const char *name); /* NULL */
/* The value of a key in a query, decoded into out; false: not there or too long. */
bool net_query_value(const char *query, const char *key, char *out, size_t cap);

struct net_handler { /* all within net_wait() */
    void *user;
    /* A whole request has come. It is answered by one of the functions below, now or
     * later; the next one on the connection is not looked at before that. */
    void (*request)(void *user, struct net_conn *c, const struct net_request *r);
    /* The peer has gone (also: has closed its side, as uvicorn takes it) or was closed
     * while a response was due. Once for an unanswered request; nothing more may be
     * written and *c is no more when it returns. */
    void (*gone)(void *user, struct net_conn *c);
    /* A request was refused with this status before it was whole: for counting. */
    void (*refused)(void *user, int status);
};

int net_open(struct net **out, const struct net_config *c, const struct net_handler *h,
             struct vt_err *err) VT_MUST_CHECK;
void net_close(struct net *n); /* NULL is fine; gone() is not called any more */
uint16_t net_port(const struct net *n);

/* Sleeps until the wall clock (CLOCK_MONOTONIC) reads `until`, a peer or a watched
 * descriptor has something to say, or a signal comes; then deals with all that is
 * ready. A time that has passed: no sleep. precisely: the end of the wait is spent
 * awake. */
int net_wait(struct net *n, vt_ns until, bool precisely,
             struct vt_err *err) VT_MUST_CHECK;
/* Calls ready() within net_wait() while fd is readable. The descriptor stays the
 * caller's and outlives *n. */
int net_watch(struct net *n, int fd, void (*ready)(void *user), void *user,
              struct vt_err *err) VT_MUST_CHECK;
/* Sends what was put since the last time: once after each pass, so that what came
 * together leaves together. */
void net_flush(struct net *n);
/* No more connections are taken and idle ones are closed; requests under way go on, and
 * their connections close with the answer. */
void net_drain(struct net *n);

/* Within request() only: the body becomes the caller's to free(), so that a large one
 * is not copied. */
char *net_take_body(struct net_conn *c);
void net_set_data(struct net_conn *c, void *data);
void *net_data(const struct net_conn *c);

struct net_reply { /* borrowed; Date, Server, Content-Length and CORS are net's to add
                    */
    int status;
    const char *type;                /* Content-Type; NULL: none */
    const struct net_header *header; /* more of them */
    size_t n_headers;
    const void *body;
    size_t len;
    bool close; /* the connection after it */
    bool bare;  /* no CORS fields: an error that nobody in the application caught */
};
void net_answer(struct net_conn *c, const struct net_reply *r); /* a whole response */
void net_stream(struct net_conn *c,
                const struct net_reply *r); /* head of a chunked one,
                                             * whose body is ignored */
void net_put(struct net_conn *c, const void *bytes, size_t len); /* one chunk of it */
void net_end(struct net_conn *c);                                /* after the last */

struct net_stats {
    uint64_t connections, requests, refused, bytes_in, bytes_out, sends;
    uint32_t open;
};
struct net_stats net_stats(const struct net *n);

#endif
