/* net.h - HTTP/1.1 on sockets, plain or TLS: a server, a client, event streams.
 *
 * Everything but a server's TLS handshakes, which take long and have a thread of their
 * own, happens on the one thread that calls net_wait() or net_client_wait(): no locks,
 * no hand-over for a token. Nothing waits for a peer: what a slow reader does
 * not take is kept up to a limit, then the connection is closed. */
#ifndef VT_NET_H
#define VT_NET_H

#include "base/base.h"

struct net_header { /* of a request that came: the name in lower case */
    const char *name, *value;
};

/* ---- serving --------------------------------------------------------------- */

struct net;      /* opaque */
struct net_conn; /* opaque; good until its request is answered, or gone() told of it */

struct net_config {                          /* copied */
    const char *host;                        /* "127.0.0.1", "::", a name */
    uint16_t port;                           /* 0: any free one */
    const char *certfile, *keyfile;          /* PEM; NULL: no TLS */
    size_t max_body_bytes, max_header_bytes; /* beyond: 413, 431 */
    size_t max_unsent_bytes;                 /* of a connection; beyond: closed */
    uint32_t max_connections;                /* beyond: 503 and closed */
    bool request_ids; /* every answer has an X-Request-Id: the peer's, or a new one */
    /* Slow and silent peers; 0: no limit. A head has the first in all, a body the
     * second for every 16 KiB of it, and so has the end of a response to be taken;
     * between requests, the third. */
    vt_ns header_timeout_ns, body_timeout_ns, idle_timeout_ns;
};

struct net_request {           /* borrowed until the handler returns */
    const char *method, *path; /* without the query; percent-decoded */
    const char *query;         /* "" if none; still encoded */
    const struct net_header *header;
    size_t n_headers;
    const char *body; /* followed by a NUL that does not count */
    size_t body_len;
    size_t head_len; /* bytes of request line and headers */
};
const char *net_header_value(const struct net_request *r, const char *name); /* NULL */
/* The value of a key in a query, decoded into out; false: not there or too long. */
bool net_query_value(const char *query, const char *key, char *out, size_t cap);

struct net_handler { /* all within net_wait(), and none NULL */
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

struct net_reply { /* borrowed; Date, Server, Content-Length, CORS and X-Request-Id are
                    * net's to add */
    int status;
    const char *type;                /* Content-Type; NULL: none */
    const struct net_header *header; /* more of them */
    size_t n_headers;
    const void *body;
    size_t len;
    bool close; /* the connection after it */
    bool bare;  /* no CORS fields */
};
void net_answer(struct net_conn *c, const struct net_reply *r); /* a whole response */
void net_stream(struct net_conn *c,
                const struct net_reply *r); /* head of a chunked one,
                                             * whose body is ignored */
void net_put(struct net_conn *c, const void *bytes, size_t len); /* one chunk of it */
void net_end(struct net_conn *c);                                /* after the last */

struct net_stats {
    uint64_t connections, sends;
    uint32_t open;
};
struct net_stats net_stats(const struct net *n);

/* ---- event streams --------------------------------------------------------- */

struct net_sse { /* set data and user, zero the rest */
    /* Every data line; borrowed during the call. */
    void (*data)(void *user, const char *text, size_t len);
    void *user;
    struct vt_buf line; /* that has begun */
};
/* Takes bytes as they come, cut anywhere. false: out of memory, or a line without
 * end. */
bool net_sse_feed(struct net_sse *s, const char *bytes, size_t len) VT_MUST_CHECK;
void net_sse_end(struct net_sse *s); /* the last line may lack its end */
void net_sse_free(struct net_sse *s);

/* ---- asking ---------------------------------------------------------------- */

struct net_url {
    bool tls;
    char host[256]; /* without brackets */
    char port[8];
    char authority[272]; /* for Host: */
    char path[2048];     /* with the query; "" if there is none */
    size_t base_len;     /* of the path without query and slashes at its end */
};
int net_url_parse(struct net_url *u, const char *url, struct vt_err *err) VT_MUST_CHECK;

struct net_trust {       /* in the certificate of an https:// server */
    bool insecure;       /* any will do */
    const char *ca_file; /* PEM; NULL: the system's */
};

struct net_tls_context { /* private to net, as the next ones */
    struct ssl_ctx_st *ssl;
    struct bio_method_st *bio; /* how OpenSSL gets at a socket */
    bool any_peer;
};
struct net_tls {
    struct ssl_st *ssl; /* NULL: plain */
    bool broken, wants_write;
};
struct net_link { /* a connection that never waits */
    int fd;
    struct net_tls tls;
    bool connected;
    bool wants_write; /* before it can go on */
};

struct net_chunks { /* a chunked body; zero-initialise to start */
    bool lenient;   /* lines may lack their return, sizes may have blanks behind them */
    uint8_t state;
    uint8_t digits;
    uint32_t line, trailer; /* bytes of the present line, of all trailers */
    uint64_t left;          /* of the present chunk */
};

struct net_response { /* zero it once, then net_response_reset() for each */
    int status;       /* 0: none came */
    char reason[64];
    struct vt_buf body; /* of what is no stream of events */
    size_t max_body;    /* beyond it, bytes are dropped */
    /* In place of body where the status is 200; false: it is to end. NULL: none. */
    bool (*sink)(void *user, const char *bytes, size_t len);
    struct net_sse sse; /* no data(): an event stream is a body like others */
    /* Private to net. */
    int part; /* enum net_part */
    bool events, chunked, has_length, keep_alive, http_1_0;
    uint64_t left; /* of a body with a length */
    struct net_chunks chunks;
    size_t head_bytes; /* so far */
    char line[4096];   /* the beginning of a head's line */
    size_t line_len;
};

/* Requests to one server, on the thread that calls net_client_wait(). */
struct net_client {
    struct net_url url;
    struct net_tls_context trust;
    struct net_address *address; /* heap; of the host */
    size_t n_addresses, chosen;
    int epoll;
    char *buffer;          /* heap: what was read last */
    uint32_t connections;  /* made since net_client_find() */
    struct net_call *call; /* heap: of net_ask() */
};
/* Zeroes *n. Neither looks up the name nor connects; trust may be NULL. To be closed
 * also when it fails. */
int net_client_open(struct net_client *n, const char *url,
                    const struct net_trust *trust, struct vt_err *err) VT_MUST_CHECK;
/* Looks up the name and finds an address that takes a connection, which is closed
 * again. */
int net_client_find(struct net_client *n, struct vt_err *err) VT_MUST_CHECK;
/* Waits for at most ns until something has come, and deals with it. Returns when the
 * wait was over (vt_wall_ns()). */
vt_ns net_client_wait(struct net_client *n, vt_ns ns);
void net_client_close(struct net_client *n); /* all its calls must be freed */

enum net_ending {
    NET_WHOLE,     /* see its status */
    NET_NO_LINK,   /* no connection */
    NET_NO_TRUST,  /* no handshake, or no trust in the certificate */
    NET_CUT_OFF,   /* the connection ended before the response did */
    NET_MALFORMED, /* what came is no HTTP/1.1, or more than fits */
};

enum net_call_state {
    NET_FREE,       /* of no request; its connection may be open for the next one */
    NET_CONNECTING, /* also TLS */
    NET_ASKING,
    NET_HEARING, /* waits for the response or its end */
};

/* One request and its connection, which then serves the next one. */
struct net_call {
    enum net_call_state state;
    struct net_response response; /* good until the next one begins */
    bool reused;     /* the connection has served before, so it may have been closed */
    vt_ns opened_at; /* connect() was called, */
    vt_ns ready_at;  /* it could be used, */
    vt_ns sent_at;   /* and the request's last byte was handed to the kernel; 0: not */
    vt_ns read_at;   /* when the bytes being read came; 0: none */
    struct net_client *client;
    void *user;
    /* Once for each request; the next one may be begun in it. why: for people; NULL:
     * nothing to say. */
    void (*ended)(struct net_call *c, enum net_ending e, const char *why);
    /* Private to net. */
    struct net_link link;
    uint32_t interest; /* of epoll */
    bool heard;        /* a byte of the response has come */
    const char *bytes;
    size_t len, sent;
};
/* The caller then sets user, ended, and what it wants of response. */
void net_call_init(struct net_call *c, struct net_client *n);
void net_call_free(struct net_call *c); /* without ended() */
/* Sends a request of so many bytes, head and body, borrowed until it has ended. */
void net_call_begin(struct net_call *c, const char *bytes, size_t len);
/* The request is given up, and its connection with it; ended() is not called. */
void net_call_cancel(struct net_call *c);

/* One request that is waited for; all borrowed. */
struct net_ask {
    const char *method; /* NULL: GET, or POST if there is a body */
    const char *path;   /* put behind the URL's; NULL: the URL's as it is */
    const struct net_header *header;
    size_t n_headers;
    const void *body; /* NULL: none */
    size_t body_len;
    bool last;        /* the connection is not kept */
    vt_ns timeout_ns; /* in all */
    vt_ns silence_ns; /* without a byte; 0: no limit but the first */
    size_t max_reply; /* beyond it, bytes are dropped; 0: 64 MiB */
    /* See struct net_response; NULL: the body is added to reply. */
    bool (*sink)(void *user, const char *bytes, size_t len);
    bool (*stopped)(void *user); /* asked about ten times a second; NULL: never */
    void *user;
};
/* Head and body, at the end of *out. */
void net_ask_write(const struct net_client *n, const struct net_ask *a,
                   struct vt_buf *out);
/* VT_EIO: there was no whole response. */
int net_ask(struct net_client *n, const struct net_ask *a, int *status,
            struct vt_buf *reply, struct vt_err *err) VT_MUST_CHECK;
/* The same from a client of its own. */
int net_ask_once(const char *url, const struct net_trust *trust,
                 const struct net_ask *a, int *status, struct vt_buf *reply,
                 struct vt_err *err) VT_MUST_CHECK;

/* ---- gRPC --------------------------------------------------------------- */

/* Unary calls to one server, over HTTP/2 without TLS, one after the other; from any one
 * thread. */
struct net_grpc; /* opaque */

/* "http://HOST:PORT". Neither looks up the name nor connects. */
int net_grpc_open(struct net_grpc **out, const char *url,
                  struct vt_err *err) VT_MUST_CHECK;
void net_grpc_close(struct net_grpc *g); /* NULL is fine */

struct net_grpc_call { /* all borrowed */
    const char *path;  /* "/package.Service/Method" */
    const struct net_header *header;
    size_t n_headers;
    const void *body; /* the message */
    size_t len;
    vt_ns timeout_ns;
    bool (*stopped)(void *user); /* asked about ten times a second; NULL: never */
    void *user;
};
/* *status is gRPC's: 0 is OK. What a good answer says is not kept. VT_EIO: there was
 * none. */
int net_grpc_call(struct net_grpc *g, const struct net_grpc_call *c, int *status,
                  struct vt_err *err) VT_MUST_CHECK;

#endif
