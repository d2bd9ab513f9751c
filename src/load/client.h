/* client.h - the parts of a client that asks for streams; private to load. */
#ifndef VT_LOAD_CLIENT_H
#define VT_LOAD_CLIENT_H

#include <netdb.h>
#include <sys/socket.h>

#include "load/load.h"

typedef struct ssl_st SSL;
typedef struct ssl_ctx_st SSL_CTX;

/* ---- one event --------------------------------------------------------- */

struct span { /* borrowed */
    const char *p;
    size_t len;
};

/* What matters of an event. Texts are as they stand in the JSON: without their quotes,
 * escapes not undone. */
struct load_event {
    bool choice;      /* there is at least one; what follows is of the first */
    bool says;        /* with something new to read: text, reasoning, a tool call */
    struct span text; /* of text or delta.content */
    struct span finish;
    bool usage;
    uint32_t prompt_tokens, output_tokens, cached_tokens;
    bool error;
    struct span message;
};
/* Reads `len` bytes once, without a tree and without memory. false: no JSON object. */
bool load_event_scan(struct load_event *e, const char *p, size_t len);
/* Appends a JSON string's text with its escapes undone; halves of surrogate pairs that
 * stand alone become U+FFFD. */
void load_unescape(struct vt_buf *out, struct span text);

/* ---- a response -------------------------------------------------------- */

enum load_part {
    LOAD_STATUS_LINE,
    LOAD_HEADERS,
    LOAD_LENGTH,
    LOAD_CHUNK_SIZE,
    LOAD_CHUNK,
    LOAD_CHUNK_END,
    LOAD_TRAILERS,
    LOAD_TO_CLOSE,
    LOAD_WHOLE,
    LOAD_BROKEN,
};

struct load_response { /* zero it once, then load_response_reset() for each */
    enum load_part part;
    int status;
    char reason[64];
    bool events; /* of text/event-stream */
    bool chunked, has_length, keep_alive, http_1_0;
    uint64_t left;      /* of a chunk, or of the body */
    size_t head_bytes;  /* so far */
    char framing[4096]; /* the beginning of a head's or chunk's line */
    size_t framing_len;
    struct vt_buf line; /* the beginning of an event's */
    struct vt_buf body; /* of what is no stream of events */
    size_t max_body;    /* beyond it, bytes are dropped */
    /* Every data line of the stream; borrowed during the call. */
    void (*data)(void *user, const char *p, size_t len);
    void *user;
};
void load_response_reset(struct load_response *r); /* keeps memory, data and user */
void load_response_free(struct load_response *r);
/* Takes bytes as they come, cut anywhere. Returns how many were taken: all of them
 * unless the response is whole or broken. */
size_t load_response_feed(struct load_response *r, const char *p, size_t n);
/* The peer has closed. */
void load_response_close(struct load_response *r);

/* ---- where to ---------------------------------------------------------- */

struct load_target { /* zero-initialise; end with load_target_close() */
    bool tls;
    char host[256]; /* without brackets */
    char port[8];
    char authority[272]; /* for Host: */
    char path[512];      /* before the endpoint; without a slash at its end */
    struct sockaddr_storage address;
    socklen_t address_len;
    SSL_CTX *context;
    bool insecure;
};
int load_url_parse(struct load_target *t, const char *url,
                   struct vt_err *err) VT_MUST_CHECK;
/* Parses, looks up the name, and finds an address that answers. */
int load_target_open(struct load_target *t, const struct vt_load_config *c,
                     struct vt_err *err) VT_MUST_CHECK;
void load_target_close(struct load_target *t);

/* A connection that never waits. */
struct load_link {
    int fd;
    SSL *ssl;
    bool connected;
    bool wants_write; /* before it can go on */
};
enum { LOAD_AGAIN = -1, LOAD_GONE = -2 };
bool load_link_open(struct load_link *l, const struct load_target *t); /* see errno */
/* 1: ready to be used; or LOAD_AGAIN, LOAD_GONE. *tls_failed says where. */
int load_link_ready(struct load_link *l, bool *tls_failed);
ssize_t load_link_read(struct load_link *l, void *p, size_t n); /* 0: end */
ssize_t load_link_write(struct load_link *l, const void *p, size_t n);
bool load_link_holds(const struct load_link *l); /* bytes that no event tells of */
void load_link_close(struct load_link *l);
/* Why the last step of this thread failed, for people. */
const char *load_link_error(const struct load_link *l);

/* ---- bodies ------------------------------------------------------------ */

struct load_body { /* what all requests have in common; zero-initialise */
    const struct vt_load_config *config;
    const struct load_target *target;
    const char *path;
    struct vt_arena arena;
    const struct vt_node *extra; /* NULL: none */
    bool ignore_eos;
    struct vt_buf scratch;
};
int load_body_open(struct load_body *b, const struct vt_load_config *c,
                   const struct load_target *t, const struct vt_load_plan *plan,
                   struct vt_err *err) VT_MUST_CHECK;
void load_body_close(struct load_body *b);

struct load_ask {                          /* one request to write */
    const struct vt_load_session *session; /* NULL: a probe */
    const struct vt_load_turn *turn;
    size_t session_no;
    uint32_t turn_no;
    const struct vt_buf *history; /* what was said before; NULL: nothing */
};
/* Head and body, ready to be sent, at the end of *out. */
void load_ask_write(struct load_body *b, const struct load_ask *a, struct vt_buf *out);
/* Adds a turn and the reply to it to a session's history. */
void load_history_add(const struct load_body *b, const struct load_ask *a,
                      struct span reply, struct vt_buf *history);
void load_request_id(const struct vt_load_config *c, const struct load_ask *a,
                     struct vt_buf *out);

#endif
