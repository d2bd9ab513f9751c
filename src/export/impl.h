/* impl.h - what the files of the exporter share; private to export.
 *
 * The thread that serves notes records, plain numbers and a few strings, in a buffer;
 * the exporter's own thread takes the whole buffer, writes JSON and sends it. The lock
 * between them is held for as long as it takes to copy a record or to swap buffers. */
#ifndef VT_EXPORT_IMPL_H
#define VT_EXPORT_IMPL_H

#include <pthread.h>
#include <stdatomic.h>

#include "export/export.h"
#include "net/net.h"

enum {
    EXPORT_QUEUE_BYTES = 32 << 20,
    EXPORT_BODY_BYTES = 1 << 20, /* a body is sent when it has grown so long */
    EXPORT_MAX_ENGINES = 1024,
};

/* ---- records ------------------------------------------------------------ */

enum export_kind { EXPORT_A_REQUEST, EXPORT_A_STEP };

struct export_head { /* sizes are multiples of 8, so that records stay aligned */
    uint32_t kind, size;
};

struct export_note { /* a request; its events follow, then id and finish */
    struct export_head head;
    uint64_t trace[2], parent; /* parent 0: none */
    struct export_request r;   /* its pointers mean nothing here */
    uint32_t id_bytes;         /* with the NUL, as the rest */
    uint32_t finish_bytes;
};

struct export_item { /* a request's part of a step */
    uint64_t tag;
    uint32_t prompt, computed, output, tokens;
    uint32_t blocks, effective; /* UINT32_MAX: not told */
    uint32_t cached_blocks, preemptions;
    bool decodes;
};

struct export_move { /* a transfer between GPU and host that is over */
    uint64_t id, tag;
    int64_t given_ns, ended_ns; /* unix */
    uint32_t blocks;
    bool store;
};

struct export_step_note { /* items follow, then moves */
    struct export_head head;
    uint64_t id;
    int64_t start_ns, end_ns; /* unix */
    uint32_t engine, n_items, n_moves;
    uint32_t running, waiting, prefills, decodes, prefill_tokens, decode_tokens;
    uint32_t finished, preempted, blocks, free_blocks; /* blocks 0: not known */
    double kv_usage;
};

/* ---- JSON --------------------------------------------------------------- */

struct export_part {      /* of one engine in a body */
    struct vt_buf core;   /* spans */
    struct vt_buf events; /* of steps */
    uint64_t first, last; /* step ids */
    int64_t start_ns, end_ns;
    uint64_t trace[2];
    uint64_t n_spans; /* of steps, so far */
    bool has_steps;
};

struct export_body { /* what will be sent at once */
    struct vt_buf api;
    struct export_part *part;
    size_t n_parts, cap_parts;
    size_t n; /* requests and steps */
    struct vt_buf text;
};

struct export_names { /* constant while the thread runs */
    const char *model;
    char instance[17]; /* of this run */
    int64_t base_ns;   /* unix time at which the monotonic clock is 0 */
    bool journey, core_only;
    uint32_t in_flight; /* steps at once: 1 or 2 */
};

void export_put_request(struct export_body *b, const struct export_names *names,
                        const struct export_note *n, struct vt_rng *rng);
void export_put_step(struct export_body *b, const struct export_names *names,
                     const struct export_step_note *n);
/* Makes b->text, without a line end, and empties the rest. */
void export_put_body(struct export_body *b, const struct export_names *names,
                     struct vt_rng *rng);
void export_body_free(struct export_body *b);
size_t export_body_bytes(const struct export_body *b);
/* The engine's part; NULL: no memory. */
struct export_part *export_part_of(struct export_body *b, uint32_t engine);

/* The body's JSON as protobuf. */
int export_put_proto(struct vt_buf *b, const struct vt_buf *json,
                     struct vt_err *err) VT_MUST_CHECK;

/* ---- its pieces ---------------------------------------------------------- */

struct export_span {
    uint64_t trace[2], id, parent; /* parent 0: none */
    const char *name;
    int kind; /* 1: internal, 2: server */
    int64_t start_ns, end_ns;
};
/* Goes on with a list that someone else puts into brackets. */
static inline void export_continue(struct vt_jw *w, struct vt_buf *list)
{
    vt_jw_members(w, list, NULL, list->len > 0);
}
/* Up to its attributes, which are open. */
void export_span_begin(struct vt_jw *w, const struct export_span *s);
void export_events_begin(struct vt_jw *w); /* ends the attributes */
void export_span_end(struct vt_jw *w);     /* ends the events */
/* Up to its attributes, which are open. */
void export_event_begin(struct vt_jw *w, const char *name, int64_t unix_ns);
void export_event_end(struct vt_jw *w);

void export_attr_str(struct vt_jw *w, const char *key, const char *value);
void export_attr_u64(struct vt_jw *w, const char *key, uint64_t value);
void export_attr_f64(struct vt_jw *w, const char *key, double value);
int64_t export_unix_ns(double unix_s);
int64_t export_mono_ns(const struct export_names *names, int64_t unix_ns);

/* ---- sending ------------------------------------------------------------ */

struct export_sink {        /* a file, or a collector */
    struct vt_append *file; /* NULL: none */
    struct net_grpc *grpc;  /* NULL: it is not asked so */
    struct net_client client;
    bool has_client;
    struct net_header *header; /* heap; as the texts they point into */
    size_t n_headers, cap_headers;
    char *texts;
};
int export_sink_open(struct export_sink *s, const struct export_config *c,
                     struct vt_err *err) VT_MUST_CHECK;
void export_sink_close(struct export_sink *s);

enum export_outcome { EXPORT_TAKEN, EXPORT_LATER, EXPORT_REFUSED };
struct export
{
    struct export_names names;
    struct export_sink sink;
    struct export_config c; /* with what holds by default */

    pthread_t thread;
    bool has_thread;
    pthread_mutex_t lock; /* of what follows, but for atomics */
    pthread_cond_t wake;
    struct vt_buf queue; /* records */
    size_t n_queued;
    struct vt_map lives; /* of requests that run: cached blocks, preemptions; only the
                          * thread that serves looks at it */
    _Atomic(int64_t) deadline_ns; /* not 0: closing */
    atomic_uint_fast64_t sent, dropped, failed;
};

void *export_thread(void *arg); /* a struct export's */

#endif
