/* serve.h - the insides of vt_serve(); private to http/serve.
 *
 * One thread, the loop, owns sockets and engines: a token crosses no thread on its way
 * from the step to the peer. Reading a large request (JSON, chat template, tokenizer)
 * would make others' tokens late, so that is done by a second thread, the worker, which
 * touches nothing but the exchange it was given. */
#ifndef VT_HTTP_SERVE_H
#define VT_HTTP_SERVE_H

#include <pthread.h>

#include "export/export.h"
#include "http/api/api.h"
#include "http/http.h"
#include "http/metrics/metrics.h"
#include "http/out/out.h"
#include "http/reply/reply.h"
#include "http/serve/plain.h"
#include "kvevents/kvevents.h"
#include "live/live.h"
#include "net/net.h"
#include "wire/wire.h"

struct server;
struct exchange;

/* ---- models (models.c) -------------------------------------------- */

enum { /* of adapters that clients load */
       MODELS_ADAPTERS = 1024,
       MODELS_NAME = 256,  /* bytes */
       MODELS_PATH = 1024, /* bytes */
};

struct models { /* served names, then adapters; any thread may ask */
    pthread_mutex_t lock;
    struct plain_model *model; /* strings are owned, but for base models' */
    size_t n, cap;
    uint32_t n_base;
    uint32_t n_adapters; /* that have ever been there */
};
int models_open(struct models *m, const struct vt_serve_config *c,
                struct vt_err *err) VT_MUST_CHECK;
void models_close(struct models *m);
bool models_find(void *models, const char *name, uint32_t *lora); /* for api_context */
/* An adapter's path, copied into the arena. NULL: it has been removed meanwhile, or
 * there is no memory. */
const char *models_path(struct models *m, const char *name, struct vt_arena *a);
/* False: there is one of that name. */
int models_add(struct models *m, const char *name, const char *path, bool *added,
               struct vt_err *err) VT_MUST_CHECK;
bool models_remove(struct models *m, const char *name); /* adapters only */
bool models_full(struct models *m, const char *name);   /* for one of that name */

/* ---- faults (fault.c) ---------------------------------------------- */

struct faults { /* the loop's */
    double rate;
    uint32_t first;
    uint32_t kinds; /* bits: rows of a table */
    uint64_t seed, n;
};
int faults_open(struct faults *f, const struct vt_serve_config *c,
                struct vt_err *err) VT_MUST_CHECK;
/* Asked once for each request for tokens. True: *e is its answer; with *midway the
 * answer breaks off in the middle with it. */
bool faults_next(struct faults *f, const char *model, struct api_error *e,
                 bool *midway);

/* ---- how many may come (gate.c) ----------------------------------------- */

enum gate_reason { GATE_REQUESTS, GATE_TOKENS, GATE_REASONS };

struct gate {
    uint64_t most_requests, most_tokens; /* UINT64_MAX: any number */
    atomic_uint_least64_t requests;      /* choices with an engine, */
    atomic_uint_least64_t tokens;        /* and prompts of those without a token yet */
    atomic_uint_least64_t refused[GATE_REASONS];
};
void gate_open(struct gate *g, const struct vt_serve_config *c);
/* Whether n choices may come; false: *e says why not. For api_context. */
bool gate_admits(void *gate, uint32_t n, struct api_error *e);
/* Whether all of a request may, prompt after prompt. */
bool gate_admits_all(struct gate *g, const struct api_request *r, struct api_error *e);
/* A choice comes, has its first token (or none when it goes), goes. */
void gate_enter(struct gate *g, uint32_t prompt_tokens);
void gate_first_token(struct gate *g, uint32_t prompt_tokens);
void gate_leave(struct gate *g);

/* ---- requests under way ---------------------------------------------- */

enum { CHOICE_EVENTS = 8 };

struct choice { /* one request to an engine; lives in its exchange's arena */
    struct exchange *x;
    struct reply reply;
    struct out_choice *out;
    const struct api_prompt *prompt;
    uint64_t tag; /* 0: not with an engine any more */
    uint32_t rank;
    uint32_t broken_at;          /* tokens after which it fails on purpose; 0: never */
    vt_ns queued, scheduled;     /* engines' time; scheduled -1: not yet */
    vt_ns first_wall, last_wall; /* when tokens were written; 0: none */
    uint32_t preemptions;
    struct vt_blocks blocks;
    struct vt_kv_ask kv; /* whose blocks it pulls, until they are told */
    struct export_event event[CHOICE_EVENTS];
    uint32_t n_events;
};

enum exchange_task {
    TASK_TOKENS, /* a request for tokens is read, and its replies are made */
    TASK_PLAIN,  /* it is answered without an engine */
    TASK_ADMIN,  /* its body is read; the loop answers */
    TASK_WRITE,  /* its answer is written */
    TASK_FREE,   /* all that it held is freed */
};

/* Why an exchange ends before its choices do. */
enum exchange_end {
    END_NONE,
    END_GONE,   /* nobody waits for it any more */
    END_BROKEN, /* its peer is told why */
    END_CUT,    /* its peer gets what is out, as vLLM does when it is told to */
};

struct exchange {              /* one HTTP request that is not answered at once */
    struct vt_inbox_item item; /* first */
    struct server *s;
    struct exchange *spare; /* next in the pool */
    struct net_conn *conn;  /* NULL: the peer has gone */
    enum exchange_task task;
    bool at_worker;
    atomic_bool gone;  /* the worker need not do it any more */
    size_t held_bytes; /* counted as waiting for the worker, or as kept in the pool */
    vt_ns arrived_wall;
    uint64_t number;            /* of requests for tokens */
    const char *route, *method; /* static */
    size_t bytes_out;

    struct net_request request; /* with the connection's body, or `owned` */
    char *owned;                /* heap; NULL: none */
    enum api_kind kind;
    struct vt_arena copies; /* of headers, while the worker has it */
    struct api_headers headers;
    struct net_header type; /* TASK_PLAIN, as what follows */
    struct vt_buf answer;
    struct vt_buf kv_kept; /* what r.kv_kept points to */
    struct plain_answer plain;
    const struct plain_row *row; /* TASK_ADMIN, as what follows */
    const struct vt_node *tree;  /* of `copies`; NULL: `why` says why not */
    struct vt_err *why;          /* of `copies` */
    const char *retry_after; /* of a 503, in seconds; static; NULL: nothing is said */

    bool bad;                      /* error says why */
    const struct api_error *error; /* of `copies`, or static; NULL: none */
    bool midway;                   /* it fails with `error` half way */
    struct api_request r;
    struct choice *choice;
    struct out_choice *out;
    uint32_t n_choices, n_open;
    uint32_t rank;       /* all of them have it */
    uint32_t n_admitted; /* the first ones, which an engine has or had */
    uint32_t n_ended;    /* the first ones, once `end` is set */
    uint32_t most_told;  /* tokens of the one that has most */
    enum exchange_end end;
    bool streaming; /* the head has been sent */
    bool in_turns;  /* it waits for its next turn */
    bool named;     /* server.by_id knows it */

    /* What answers it once the engines are drained; NULL: it does not wait for that. */
    admin_fn *then;
    struct exchange *next; /* that waits for the same, or for a turn */
};

/* Keeps what is wrong with it; large, and few have any. */
void exchange_error(struct exchange *x, const struct api_error *e);
struct exchange *exchange_new(struct server *s,
                              struct net_conn *conn); /* NULL: memory */
void exchange_free(struct exchange *x);               /* back to the pool */
void exchange_destroy(struct exchange *x); /* with all its memory; either thread */
void exchange_pool_free(struct server *s);
/* Finds those with that id again; it need not be theirs alone. */
void exchange_name(struct exchange *x);
struct exchange *exchange_by_id(struct server *s, const char *id); /* NULL: none */

/* ---- the worker (worker.c) ------------------------------------- */

/* JSON values that routes for operators read: ids to be ended at once, above all. */
enum { ADMIN_VALUES = 65536 };

struct worker {
    pthread_t thread;
    bool started;
    atomic_bool stop;
    struct vt_inbox to, from;
    size_t held_bytes; /* of what is with it; the loop's */
};
int worker_open(struct worker *w, struct vt_err *err) VT_MUST_CHECK;
void worker_close(struct worker *w);
void worker_give(struct worker *w, struct exchange *x);
/* Reads the request and makes its replies; either thread. `all`: however long it may
 * take; else false says that the worker should do it. */
bool exchange_prepare(struct exchange *x, bool all);
/* Writes the answer to a request for tokens, all at once; either thread. */
void exchange_write(struct exchange *x);
/* Would that keep others waiting? */
bool exchange_writes_long(const struct exchange *x);

/* ---- the whole ------------------------------------------------------- */

struct rank {                   /* one engine */
    struct vt_engine *core;     /* the driver's */
    uint32_t held;              /* requests with it */
    struct vt_kv_publisher *kv; /* NULL: none */
};

struct parcel_row { /* tokens that leave together */
    uint64_t tag;
    uint32_t upto;
    uint32_t cached, written; /* of the prompt; with the first token */
    uint32_t external;        /* of those cached: from the host's memory */
    bool first;
    uint8_t finish; /* enum vt_finish */
};
struct parcel {
    struct parcel_row *row; /* heap; kept for the next */
    size_t n, cap;
};

struct server {
    const struct vt_serve_config *c;
    struct vt_axis axis;
    double zero_unix_s;
    struct net *net;
    struct metrics *metrics;
    struct export *export;  /* NULL: none */
    struct vt_peers *peers; /* NULL: prompts and answers are of one engine */
    struct vt_inbox told;   /* what they say */
    struct reply_source *replies;
    struct api_context api;
    char fingerprint[64];
    struct models models;
    struct faults faults;
    struct gate gate;
    struct worker worker;
    struct vt_driver *driver; /* knows choices by tag */
    struct rank *rank;
    uint32_t sleep_level; /* of all ranks, as the next */
    bool paused;
    struct exchange *spare;
    struct exchange *waits; /* owned: until the engines are drained */
    struct exchange *turn,
        *turn_last;      /* owned: who has more to do than one turn takes */
    struct vt_map by_id; /* of requests for tokens, to exchanges */
    uint32_t n_spare, n_exchanges;
    size_t spare_bytes;

    uint8_t none_hash[VT_HASH_BYTES];
    struct vt_buf text, tokens; /* scratch */
    struct vt_serve_summary sums;
};

void serve_log(const struct server *s, const char *fmt, ...) VT_PRINTF(2, 3);

/* request.c: a request has come, or its peer has gone. */
void serve_request(void *server, struct net_conn *c, const struct net_request *r);
void serve_gone(void *server, struct net_conn *c);
void serve_refused(void *server, int status);
/* Headers of an answer besides those of every answer; how many. */
enum { SERVE_HEADERS = 3 };
size_t serve_headers(const struct exchange *x, struct net_header out[SERVE_HEADERS]);
/* A whole answer, counted. */
void serve_answer(struct exchange *x, int status, const char *type, const void *body,
                  size_t len);
void serve_error(struct exchange *x, const struct api_error *e);
void serve_stream_over(struct exchange *x);

/* admit.c: prepared exchanges go to an engine, or are answered. */
void serve_prepared(struct exchange *x);
void serve_worker_done(void *server); /* what the worker has prepared */
int choice_admit(struct choice *c, vt_ns now, struct vt_err *err) VT_MUST_CHECK;
void choice_take_back(struct choice *c, enum metrics_finish finish);
/* A choice has ended and is with no engine any more. */
void choice_over(struct choice *c, enum metrics_finish finish);
void choice_event(struct choice *c, enum export_stage stage, vt_ns at, uint64_t step);

/* turns.c: choices go to an engine; or the exchange ends, as enum exchange_end says,
 * and is freed. What takes longer than a turn goes on in serve_turns(). */
void serve_turn(struct exchange *x);
void serve_turns(struct server *s);
void serve_abort(struct exchange *x);
void serve_break(struct exchange *x, const struct api_error *e);
void serve_cut(struct exchange *x); /* with the next serve_turns() */
/* All of them, however long it takes; e NULL: nobody is told. */
void serve_end_all(struct server *s, const struct api_error *e);

/* step.c: steps become tokens on sockets. */
extern const struct vt_driver_ops serve_driver_ops;
/* Ends a choice with the tokens that are out: the reason is "abort". */
void choice_cut(struct choice *c, bool admitted);
/* All choices are over: what is left to say is said, and the exchange freed. */
void serve_finish(struct exchange *x);
struct metrics_load serve_load(const struct rank *r);

/* admin.c: who waits until the engines are drained is answered if they are, or told why
 * that will not be. */
void serve_drained(struct server *s);
void serve_waits_end(struct server *s, const struct api_error *e);

/* kv.c: keys of blocks, and events about them. */
void serve_blocks(struct choice *c); /* fills its blocks */
/* peers.c: prefills for others, and answers to prompts that others have computed. */
int serve_peers_open(struct server *s, struct vt_err *err) VT_MUST_CHECK;
void serve_peers_close(struct server *s);
void serve_peers_heard(void *server); /* what others said */
int serve_peers_step(struct server *s, struct rank *r, const struct vt_step *step,
                     struct vt_err *err) VT_MUST_CHECK;

int serve_kv_open(struct server *s, struct vt_err *err) VT_MUST_CHECK;
void serve_kv_close(struct server *s);
int serve_kv_publish(struct server *s, struct rank *r,
                     struct vt_err *err) VT_MUST_CHECK;
void serve_kv_replay(struct server *s);

#endif
