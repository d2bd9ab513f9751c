/* intake.h - the bytes of one connection become whole requests; private to server.
 *
 * No sockets here: bytes come in pieces of any size, and the same bytes give the same
 * requests however they were cut. What could be read in two ways is refused, so that no
 * proxy before us sees other requests than we do. */
#ifndef VT_NET_INTAKE_H
#define VT_NET_INTAKE_H

#include "net/chunks.h"

enum {
    NET_MAX_HEADERS = 256, /* as vLLM's --h11-max-header-count */
};

struct net_traits { /* of a request, that matter to its answer */
    bool keep_alive, http_1_0, is_head, has_origin;
};

struct net_head { /* of one request; its strings lie in the text it was read from */
    struct net_request r; /* but for the body */
    struct net_header header[NET_MAX_HEADERS];
    uint64_t body_len;
    bool has_length, chunked, has_host, expects_continue;
    struct net_traits is;
    /* The byte behind a body that was not copied, which gave its place to a NUL. */
    char *under_nul, under;
};

/* Where the head at the beginning of the text ends. 0: more is needed; *line then says
 * where to look on (0 at first). -1: a line does not end as it should. */
ptrdiff_t net_head_end(const char *text, size_t len, size_t *line);
/* Takes a whole head apart, writing NULs into it. Returns 0 or the status to refuse it
 * with. */
int net_head_parse(struct net_head *h, char *text, size_t len);

/* A request whose body is on its way: opaque, of intake.c. */
struct net_partial;

struct net_intake {              /* of one connection; zero-initialise to start */
    char *held;                  /* owned: an unfinished head, or what comes after */
    size_t n_held, held_cap;     /* the request being answered */
    size_t line;                 /* in it: see net_head_end() */
    struct net_partial *partial; /* owned */
    bool continue_due;           /* "100 Continue" is awaited; the caller's to clear */
};

enum net_step { NET_MORE, NET_REQUEST, NET_REFUSE };

/* Reads the next request from the bytes, which may be written to, also one behind the
 * last. *used of them are done with. NET_MORE: what is left is the beginning of a head;
 * hand it in again with more behind it. NET_REQUEST: *r is good until
 * net_intake_done(). NET_REFUSE: *status says how. `h` is working memory; it and the
 * limits must be the same for all calls. */
enum net_step net_intake_read(struct net_intake *in, struct net_limits *l, char *bytes,
                              size_t len, size_t *used, struct net_head *h,
                              struct net_request *r, int *status);
/* The present request was handled. */
void net_intake_done(struct net_intake *in, struct net_limits *l, struct net_head *h);
/* While a body of known length is on its way: where to receive it, NULL otherwise. */
char *net_intake_room(struct net_intake *in, struct net_limits *l, size_t *room);
/* `n` bytes were received there. */
enum net_step net_intake_took(struct net_intake *in, size_t n, struct net_head *h,
                              struct net_request *r);
/* Keeps the beginning of a head, or what follows the request being answered. */
int net_intake_hold(struct net_intake *in, const char *bytes, size_t len) VT_MUST_CHECK;
/* The body as the caller's memory; NULL: out of memory. */
char *net_intake_take_body(struct net_intake *in, struct net_limits *l,
                           const struct net_request *r);
void net_intake_free(struct net_intake *in, struct net_limits *l);
/* Large bodies that nobody took are freed so many bytes at a time, since the kernel
 * takes milliseconds for all of one. They are counted until then. False: all are gone.
 */
bool net_intake_sweep(struct net_limits *l, size_t bytes);

#endif
