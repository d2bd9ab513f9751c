/* server.h - what the parts of the server share: the server, its connections, its
 * lists.
 *
 * A connection is told of by edges (EPOLLET): it is read until there is no more, unless
 * a response is due, and asked again when that is over. Nothing is freed while events
 * of one pass are dealt with, since a later one may name the same connection. */
#ifndef VT_NET_SERVER_H
#define VT_NET_SERVER_H

#include <pthread.h>

#include "live/live.h"
#include "net/net.h"
#include "net/server/intake.h"
#include "net/tls.h"

enum {
    NET_LISTENERS = 8,        /* a name may have several addresses */
    NET_READ = 16384,         /* bytes received at once, unless into a body */
    NET_CLASSES = 8,          /* sizes of pooled output buffers: 512 ... 64 Ki */
    NET_CLASS_0 = 512,        /* bytes */
    NET_POOL_BYTES = 4 << 20, /* of unused buffers kept */
};

enum net_kind { NET_LISTENER, NET_WATCH, NET_CONN };

struct net_source { /* first in whatever epoll knows */
    enum net_kind kind;
    int fd;
};

struct net_watch {
    struct net_source source;
    void (*ready)(void *user);
    void *user;
    struct net_watch *next;
};

enum net_phase {
    NET_HELLO,  /* TLS handshake */
    NET_IDLE,   /* between requests */
    NET_HEAD,   /* a head has begun */
    NET_BODY,   /* its body is on the way */
    NET_DUE,    /* the caller owes a response */
    NET_LAST,   /* closes once all is sent */
    NET_LINGER, /* all is sent; what the peer still says is thrown away */
    NET_CLOSED, /* freed with the next pass */
};

/* One kind, one duration: each list is in the order of its deadlines. */
enum net_timer {
    NET_NO_TIMER,
    NET_T_HEAD,
    NET_T_BODY,
    NET_T_IDLE,
    NET_T_LINGER,
    NET_TIMERS
};

struct net_conn {
    struct net_source source;
    uint8_t phase, timer;
    bool readable;        /* there may be something to receive */
    bool blocked;         /* the kernel took not all: EPOLLOUT will come */
    bool writable;        /* it came */
    bool peer_done;       /* the peer has closed its side, */
    bool at_end;          /* and all it said was read */
    bool lost;            /* broken: gone() or closing is due */
    bool linger;          /* with NET_LAST: the peer may still be sending */
    bool dirty, again;    /* on these lists */
    bool streaming;       /* a head was sent, chunks follow */
    bool surplus;         /* beyond max_connections */
    bool away;            /* at the greeter */
    struct net_traits is; /* of the present request */
    char *request_id;     /* of the same; owned; NULL: none is sent */
    struct net *net;
    void *data;               /* the caller's */
    struct net_tls tls;       /* nothing attached: plain */
    struct vt_inbox_item way; /* to the greeter and back */
    ptrdiff_t greeted;        /* what net_tls_greet() said there */
    struct net_intake in;
    char *out; /* owned: [from, len) is to be sent */
    size_t from, len, cap;
    uint64_t progress; /* bytes of body since its timer was set */
    vt_ns deadline;
    struct net_conn *prev, *next;             /* of all */
    struct net_conn *timer_prev, *timer_next; /* of the same timer */
    struct net_conn *dirty_next, *again_next;
};

struct net_list {
    struct net_conn *first, *last;
    vt_ns duration; /* 0: no limit */
};

struct net_spare { /* an output buffer nobody uses */
    struct net_spare *next;
};

struct net_greeter { /* greet.c */
    pthread_t thread;
    bool started;
    atomic_bool stop;
    struct vt_inbox to, from;
};

struct net {
    struct net_config config; /* its strings are not kept */
    struct net_handler handler;
    struct net_limits limits;
    int epoll, spare_fd; /* the latter is given up when descriptors run out */
    struct net_source listener[NET_LISTENERS];
    size_t n_listeners;
    uint16_t port;
    bool draining, sharp;
    uint32_t n_surplus;
    struct net_tls_context tls; /* owned; zero: plain */
    struct net_greeter greeter; /* with TLS only */
    vt_ns now;                  /* wall clock at the last waking */
    vt_ns until;                /* of the present wait */
    struct net_stats stats;
    struct net_watch *watch;             /* owned */
    struct net_conn *all;                /* owned */
    struct net_conn *dirty, *dirty_last; /* have something to send */
    struct net_conn *again, *again_last; /* have something to do */
    struct net_conn *closed;             /* owned; until bury */
    struct net_list timer[NET_TIMERS];
    struct net_spare *spare[NET_CLASSES];
    size_t pool_bytes;
    time_t date_s; /* what the next two say */
    size_t date_len, ok_len;
    char date[80];                     /* "date: ...", "server: ..." */
    char ok[112];                      /* the same behind a 200's status line */
    const struct net_request *request; /* while the handler has it */
    struct net_head head;              /* working memory of net_intake_read() */
    uint64_t id_seed, n_ids;           /* of request ids that are made */
    char *scratch;                     /* owned: what was received */
};

/* server.c: the wait is over, an engine may be due; the rest can wait for the next
 * pass.
 */
bool net_is_late(const struct net *n);

/* conn.c */
void net_conn_new(struct net *n, int fd, bool surplus);
void net_conn_event(struct net_conn *c, uint32_t events); /* only notes it */
void net_conn_serve(struct net_conn *c);  /* reads and goes on as far as it can */
void net_conn_settle(struct net_conn *c); /* all its output was sent */
void net_conn_expired(struct net_conn *c);
void net_conn_lose(struct net_conn *c);  /* no callback yet: the next pass calls */
void net_conn_close(struct net_conn *c); /* no callback; freed with the next pass */
void net_conn_bury(struct net *n);       /* frees the closed ones */
void net_conn_refuse(struct net_conn *c, int status);
void net_again(struct net_conn *c);

/* greet.c */
int net_greeter_open(struct net *n, struct vt_err *err);
void net_greeter_close(struct net *n); /* also after a failure, and without one */
void net_greet(struct net_conn *c);    /* goes on with its handshake */

/* listen.c */
int net_listen(struct net *n, const char *host, uint16_t port, struct vt_err *err);
void net_accept(struct net *n, int listener);

/* timer.c */
void net_timer_set(struct net_conn *c, enum net_timer t); /* NET_NO_TIMER: none */
vt_ns net_timer_due(const struct net *n);
void net_timer_expire(struct net *n);

/* send.c */
char *net_out_room(struct net_conn *c, size_t more); /* NULL: lost */
void net_out_wrote(struct net_conn *c, size_t n);
void net_out_free(struct net_conn *c);
void net_out_send(struct net_conn *c);
void net_pool_free(struct net *n);

/* answer.c */
void net_date_refresh(struct net *n);
void net_answer_plainly(struct net_conn *c, int status); /* a refusal; closes */
/* Keeps the id that the answer will have, if answers have any. */
void net_request_id(struct net_conn *c, const struct net_request *r);
/* true: it was a preflight, and is answered */
bool net_cors_preflight(struct net_conn *c, const struct net_request *r);

#endif
