/* tap.h - the insides of vt_tap(); private to wire.
 *
 * Two threads. The forwarder owns the sockets: it receives, stamps, forwards, and only
 * then hands the frames on. The recorder owns the files and all decoding. Between them
 * is an inbox that the forwarder never waits on: when the recorder lags too far behind,
 * messages are still forwarded but no longer decoded, and the recorder is told how many
 * it has missed. A durable recording turns this round where a request ends: that
 * message is handed on first, and forwarded when the recorder has written its line. */
#ifndef VT_WIRE_TAP_H
#define VT_WIRE_TAP_H

#include <pthread.h>

#include "kvevents/kvevents.h"
#include "live/live.h"
#include "wire/codec/codec.h"
#include "wire/tap/wirelog.h"

/* ---- what is said on the way (item.c) ----------------------------- */

struct tap_log {
    const struct vt_tap_config *config;
    pthread_mutex_t lock;
};
void tap_tell(struct tap_log *log, const char *fmt, ...) VT_PRINTF(2, 3);

/* ---- from forwarder to recorder (item.c) -------------------------- */

enum tap_what {
    TAP_HANDSHAKE, /* engine to frontend: HELLO, READY */
    TAP_INIT,      /* frontend to engine, as it came */
    TAP_INIT_REWRITTEN,
    TAP_REGISTER,      /* engine to frontend on an input socket */
    TAP_INPUT,         /* frontend to engine */
    TAP_OUTPUT,        /* engine to frontend */
    TAP_ENGINE_LOST,   /* no frames, as the next */
    TAP_FRONTEND_LOST, /* and so all engines */
};

#define TAP_NO_ENGINE UINT32_MAX

struct tap_stamp {
    vt_ns mono;
    int64_t unix_ns;
};

struct tap_item {
    struct vt_inbox_item link;
    enum tap_what what;
    uint32_t client, engine; /* TAP_NO_ENGINE: not known from outside */
    uint64_t seq;
    uint64_t missed; /* messages that should have come between this and the last one */
    struct tap_stamp at;
    size_t cost;     /* memory that waits with it */
    zmq_msg_t *held; /* n_frames of them, or NULL if the bytes follow the frames */
    uint32_t n_frames;
    struct mp_span frame[];
};

/* Takes the bytes of `in`, which is empty afterwards where they are many. NULL: out of
 * memory. */
struct tap_item *tap_item_new(struct sock_msg *in);
void tap_item_free(struct tap_item *item);
struct tap_stamp tap_stamp(void);

/* ---- requests in flight (request.c) ------------------------------- */

struct tap_gaps { /* of one request */
    vt_ns *gap;
    uint32_t *tokens, *running, *prefill;
    uint32_t n;
    size_t cap[4]; /* of each of them */
    bool all_ones; /* of tokens */
};

struct tap_request {
    struct tap_request *next, *before; /* in the order of arrival; next of the unused */
    uint64_t hash;                     /* of the id as it came */
    struct vt_buf id;
    uint32_t client, engine;
    struct tap_stamp arrival, first, last;
    uint32_t prompt_tokens, cached_tokens, output_tokens, max_tokens, concurrency;
    int32_t priority;
    bool remote_prefill;
    double first_ts, last_ts; /* of the engine's messages with tokens */
    double queued, scheduled; /* first events of their kind; 0: none */
    uint32_t preemptions;
    struct tap_gaps gaps;
    uint32_t *token;
    size_t n_tokens, cap_tokens;
    uint64_t *block_hash;
    size_t n_blocks, cap_blocks;
    struct vt_buf asked;  /* JSON members that its ADD gives, each after a comma */
    struct vt_buf events; /* JSON list without its brackets */
};

struct tap_requests {
    struct vt_map map; /* by id */
    struct tap_request *oldest, *newest, *unused;
};

struct tap_request *tap_requests_find(const struct tap_requests *t, struct mp_span id);
/* A new one, with nothing but its id; NULL: out of memory. */
struct tap_request *tap_requests_add(struct tap_requests *t, struct mp_span id);
void tap_requests_remove(struct tap_requests *t, struct tap_request *q);
void tap_requests_free(struct tap_requests *t);

int tap_request_token(struct tap_request *q, const uint32_t *token, uint32_t n,
                      struct vt_err *err) VT_MUST_CHECK;
int tap_request_gap(struct tap_request *q, vt_ns gap, uint32_t tokens, uint32_t running,
                    uint32_t prefill, struct vt_err *err) VT_MUST_CHECK;
/* vllm-vcr's hashes of the prompt's full blocks. */
int tap_request_blocks(struct tap_request *q, const uint32_t *prompt, uint32_t n,
                       uint32_t block_size, struct vt_err *err) VT_MUST_CHECK;

/* ---- lines of the trace (row.c) ----------------------------------- */

/* Fills q->asked and the rest of what a request brings along. */
void tap_row_asked(struct tap_request *q, const struct wire_request *r,
                   struct vt_arena *scratch);
void tap_row_events(struct tap_request *q, const struct wire_output *o);

struct tap_end { /* how a request ended */
    const char *finish_reason;
    const char *aborted_by;     /* NULL: it was not */
    struct mp_span stop_reason; /* value */
};
/* One line. zero: what arrival_ms counts from. */
void tap_row_write(struct vt_buf *b, const struct tap_request *q,
                   const struct tap_end *end, vt_ns zero, struct vt_arena *scratch);

struct tap_recorder;
void tap_meta_write(struct vt_buf *b, struct tap_recorder *r);
/* Of a registration; NULL: none stated. In the arena. */
const char *tap_vllm_version(struct mp_span registration, struct vt_arena *scratch);

/* ---- the recorder (recorder.c) ------------------------------------ */

struct tap_output {
    struct vt_append *file; /* NULL: not wanted, or not yet open */
    struct vt_buf lines;    /* not yet written */
};

struct tap_recorder {
    const struct vt_tap_config *config;
    struct tap_log *log;
    struct vt_inbox inbox;
    atomic_size_t waiting_bytes;
    size_t max_waiting;
    pthread_t thread;
    bool running;
    atomic_bool ending;
    /* Of a durable recording, else -1: something is waited for; it was written. */
    int hurry_fd, released_fd;
    _Atomic(uint64_t) n_written; /* items that were decoded, and their lines written */

    /* What follows is the thread's own while it runs. */
    struct tap_output trace, wire, stats;
    struct tap_stamp zero; /* when the first engine registered */
    struct tap_requests requests;
    uint32_t *in_flight; /* by engine */
    size_t cap_in_flight;
    struct vt_map written; /* hashes of all ids: they must not repeat in a trace */
    uint64_t n_rows;       /* of the trace, also those that were there */
    struct {               /* the trace that is gone on with */
        struct vt_arena arena;
        const struct vt_node *meta; /* NULL: there is none */
        int64_t start_unix_ns;
        double last_ms; /* after that: when its last request ended */
    } old;
    struct vt_buf registration; /* of the first engine */
    uint32_t n_engines;         /* that have registered, by number */
    bool meta_written;
    uint32_t block_size;
    struct vt_arena arena; /* of the message in hand */
    struct vt_tap_summary sum;
    uint32_t told;         /* kinds of undecodable messages, a bit for each */
    struct vt_err failure; /* the first; nothing is written after it */
};

/* Checks that its files can be made; makes none. */
int tap_recorder_new(struct tap_recorder **out, const struct vt_tap_config *c,
                     struct tap_log *log, struct vt_err *err) VT_MUST_CHECK;
/* False: the item is not taken, too many wait. */
bool tap_recorder_put(struct tap_recorder *r, struct tap_item *item);
/* Makes the files, or opens them to go on, and starts the thread; with the first
 * engine's registration. */
int tap_recorder_start(struct tap_recorder *r, struct tap_stamp now,
                       struct mp_span registration, struct vt_err *err) VT_MUST_CHECK;
/* Decodes what waits, finishes the files and frees the recorder. A discarded one
 * writes nothing. missed: messages that never came to it. */
int tap_recorder_end(struct tap_recorder *r, bool discard, uint64_t missed,
                     struct vt_tap_summary *sum, struct vt_err *err) VT_MUST_CHECK;

/* Writes what has piled up. */
void tap_output_flush(struct tap_recorder *r, struct tap_output *f);
void tap_recorder_failed(struct tap_recorder *r, const struct vt_err *err);

/* ---- a trace that is gone on with (resume.c) ---------------------- */

/* Ids and times of the trace that is there, and its meta line. VT_EINPUT: that cannot
 * be gone on with. */
int tap_resume_read(struct tap_recorder *r, const char *path,
                    struct vt_err *err) VT_MUST_CHECK;
/* VT_EINPUT: its meta line is not what would be written now. */
int tap_resume_check(struct tap_recorder *r, struct vt_err *err) VT_MUST_CHECK;
struct tap_stamp tap_resume_zero(const struct tap_recorder *r, struct tap_stamp now);

/* ---- what messages mean (decode.c) -------------------------------- */

/* The first engine's, for the meta line. */
void tap_decode_registration(struct tap_recorder *r, struct mp_span registration);
/* How often the text that stands for an id is in the trace; NULL: out of memory. */
uint64_t *tap_id_count(struct tap_recorder *r, const char *id);

void tap_decode(struct tap_recorder *r, struct tap_item *item);
/* Requests in flight end here, as aborted; of one engine, or (TAP_NO_ENGINE) of all. */
void tap_abort_all(struct tap_recorder *r, uint32_t engine, const char *by);
/* Messages are missing: what they said of requests in flight is not known. */
void tap_decode_missed(struct tap_recorder *r);
void tap_decode_meta(struct tap_recorder *r); /* unless it is written */

/* ---- the forwarder's sockets (link.c) ----------------------------- */

struct tap_client {                    /* one of the frontend's */
    void *input, *output;              /* to engines: ROUTER and PULL, bound */
    void *monitor;                     /* of input */
    void *push;                        /* to the frontend */
    struct vt_buf address;             /* of the frontend's output, with a NUL */
    struct tap_held *held, *last_held; /* outputs that may not leave yet (hold.c) */
    char input_address[SOCK_ADDRESS], output_address[SOCK_ADDRESS];
};

struct tap_link { /* one engine, and what speaks for it to the frontend */
    uint8_t identity[255];
    uint8_t identity_len;
    uint32_t number; /* engine index */
    bool
        asked; /* its hello waits for an answer; what it had before goes on meanwhile */
    bool ready; /* it has said READY since the answer */
    bool registered;
    int fd;              /* of its connection to client 0's input; -1: not known */
    vt_ns lost_at;       /* when that was closed; VT_NEVER: it is open */
    struct vt_buf hello; /* what it said, for a frontend that comes later */
    void *handshake, *handshake_monitor; /* DEALER */
    bool handshake_up;
    void **input, **input_monitor; /* DEALER for each client */
    bool *up;                      /* whether the frontend is at its end */
    uint32_t n_inputs;             /* 0: the frontend has not answered yet */
};

/* "tcp://host:port" of client i. VT_EINPUT: engines could not use it. */
int tap_client_address(char out[SOCK_ADDRESS], const char *base, uint32_t i,
                       struct vt_err *err) VT_MUST_CHECK;
/* Whether a socket can listen there: VT_EINPUT if not. */
int tap_client_try(void *ctx, const char *base, struct vt_err *err) VT_MUST_CHECK;
int tap_client_open(struct tap_client *c, void *ctx, const struct vt_tap_config *config,
                    uint32_t i, struct mp_span frontend_output,
                    struct vt_err *err) VT_MUST_CHECK;
void tap_client_close(struct tap_client *c, bool frontend_is_there);

/* Says hello, on a new socket if need be. */
int tap_link_hello(struct tap_link *l, void *ctx, const char *frontend,
                   struct vt_err *err) VT_MUST_CHECK;
bool tap_link_is_up(struct tap_link *l, bool *lost);
/* Opens a socket to each of the frontend's inputs. */
int tap_link_inputs(struct tap_link *l, void *ctx, const struct wire_init *init,
                    struct vt_err *err) VT_MUST_CHECK;
void tap_link_close_inputs(struct tap_link *l); /* those are the frontend's again */
void tap_link_close(struct tap_link *l);        /* all but the identity */

/* INIT with other inputs and outputs, everything else as it came. False: malformed. */
bool tap_init_rewrite(struct vt_buf *b, struct mp_span init, const struct tap_client *c,
                      uint32_t n);

/* ---- the forwarder (tap.c, handshake.c, watch.c) --------------- */

enum { TAP_TICK_MS = 100 }; /* how often connections are looked at */

struct tap_source { /* what a socket of the poll list is */
    enum {
        AT_HANDSHAKE,
        AT_INIT,
        AT_REGISTER,
        AT_INPUT,
        AT_OUTPUT,
        AT_RELEASE,
    } kind;
    uint32_t client;
    uint32_t link;
};

struct tap { /* the forwarder */
    const struct vt_tap_config *config;
    struct tap_log log;
    struct vt_tap_summary *sum;
    void *ctx, *handshake; /* ROUTER for engines, bound */
    char address[SOCK_ADDRESS];
    struct tap_client *client;
    uint32_t n_clients;
    struct tap_link *link;
    size_t n_links, cap_links;
    zmq_pollitem_t *item;
    struct tap_source *source; /* parallel to item */
    size_t n_items, cap_items, cap_sources;
    bool changed;  /* sockets were opened or closed: both lists are out of date */
    bool was_up;   /* the frontend has been seen */
    vt_ns lost_at; /* when it was gone; VT_NEVER: it is there */
    vt_ns next_tick;
    struct tap_recorder *recorder;
    bool started; /* the recorder's files are open */
    uint64_t seq, missed;
    uint64_t n_put; /* items that the recorder has got */
    bool told_unroutable, told_backlog;
    struct sock_msg in; /* the message in hand */
    struct tap_stamp at;
    struct vt_arena arena; /* of the message in hand, where that is looked into */
    struct vt_buf init;
};

/* What was forwarded goes to the recorder. */
void tap_post(struct tap *t, enum tap_what what, uint32_t client, uint32_t engine);
void tap_post_item(struct tap *t, struct tap_item *item, enum tap_what what,
                   uint32_t client, uint32_t engine);
/* Something happened that no message says. */
void tap_post_event(struct tap *t, enum tap_what what, uint32_t engine);
void tap_unroutable(struct tap *t, const char *what);    /* one more message */
struct mp_span tap_frame(const struct tap *t, size_t i); /* of the message in hand */
int tap_send_to_engine(void *router, const struct tap_link *l, const struct sock_msg *m,
                       struct vt_err *err) VT_MUST_CHECK;

/* The message in hand, from an engine or the frontend on a handshake socket, or from an
 * engine on an input socket. */
int tap_from_engine(struct tap *t, struct vt_err *err) VT_MUST_CHECK;
int tap_from_frontend(struct tap *t, struct tap_link *l,
                      struct vt_err *err) VT_MUST_CHECK;
int tap_from_input(struct tap *t, uint32_t client, struct vt_err *err) VT_MUST_CHECK;

/* Looks at connections, ten times a second. */
int tap_watch(struct tap *t, struct vt_err *err) VT_MUST_CHECK;
void tap_link_lost(struct tap *t, struct tap_link *l); /* its requests end */
void tap_close_clients(struct tap *t, bool frontend_is_there);
/* The frontend is gone: engines see their connections close, as if they had been its
 * own, and those that know how say hello again. */
void tap_reset(struct tap *t);

/* ---- outputs of a durable recording (hold.c) --------------------- */

/* The message in hand goes to the recorder, and to the frontend when it may. */
int tap_held_put(struct tap *t, uint32_t client, struct vt_err *err) VT_MUST_CHECK;
/* Those leave whose requests are in the file. */
int tap_held_release(struct tap *t, struct vt_err *err) VT_MUST_CHECK;
/* Waits until all have left. */
int tap_held_finish(struct tap *t, struct vt_err *err) VT_MUST_CHECK;
void tap_held_drop(struct tap_client *c); /* the frontend is gone */

/* ---- logs of messages (wirelog.c) ------------------------------- */

/* One line. Kind and decoded value follow from socket, direction and frames, but for
 * e->kind if that is given. */
void wirelog_write(struct vt_buf *b, const struct wirelog_entry *e,
                   struct vt_arena *scratch);

#endif
