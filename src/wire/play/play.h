/* play.h - the insides of vt_play(); private to wire.
 *
 * Two threads. The intake thread owns the sockets that receive: it shakes hands,
 * decodes requests, and passes what it has learned on as notes. The engine thread owns
 * the engines, the requests and the sockets that send: it sleeps until something is due
 * or a note comes. Neither waits for the other, and neither waits for a peer: a
 * frontend that stops reading costs memory, not time.
 *
 * From there to intake goes what need not be punctual: KV-cache events and lines of
 * --step-stats-out. */
#ifndef VT_WIRE_PLAY_H
#define VT_WIRE_PLAY_H

#include <stdatomic.h>

#include "export/export.h"
#include "kvevents/kvevents.h"
#include "live/live.h"
#include "wire/codec/codec.h"
#include "wire/play/failure.h"
#include "wire/script/script.h"

/* ---- requests (request.c) ---------------------------------------- */

enum {
    PLAY_EVENTS = 8, /* that may pile up before an output takes them along */
};

/* Made by intake, then the engine thread's. One block of memory, but for the script's
 * own. */
enum { PLAY_STAGES = 8 };
struct play_way { /* of a request through the engine, for its span */
    struct export_event event[PLAY_STAGES];
    uint32_t n, output;
    double queued_s, scheduled_s, first_s, last_s; /* unix; 0: not yet */
    char parent[64];                               /* traceparent; "": none */
    bool is_told;
};

struct play_request {
    uint64_t tag; /* the driver's */
    uint32_t engine, client;
    const char *id;
    uint32_t id_len;
    struct vt_blocks blocks; /* with the prompt, LoRA, salt, images and session */
    bool skip_cache, greedy, abort_at_once;
    int32_t logprobs, prompt_logprobs; /* as struct wire_sampling has them */
    int32_t priority;
    double arrival_time;
    int64_t wave;
    int fail; /* enum wire_finish: it ends at once so; -1: it is served */
    struct script script;
    const struct play *play;

    struct wire_event event[PLAY_EVENTS];
    uint32_t n_events;
    uint32_t told;  /* output tokens that have left */
    uint32_t chunk; /* of its recorded times: the next one */
    vt_ns next_ns;  /* when that leaves */
    struct play_way way;
    struct vt_kv_ask kv; /* whose blocks it pulls, until they are told */
};

struct play;

/* VT_EINPUT: an engine like this could never serve it. */
int play_request_new(struct play_request **out, struct play *p,
                     const struct wire_request *w, struct vt_err *err) VT_MUST_CHECK;
void play_request_free(struct play_request *r); /* NULL is fine */
/* Its blocks are hashed as by engines of that release, if they are. */
void play_request_release(struct play_request *r, uint32_t vllm);
void play_request_event(struct play_request *r, int type, double timestamp);
static inline struct mp_span play_request_id(const struct play_request *r)
{
    return (struct mp_span){(const uint8_t *)r->id, r->id_len};
}

/* ---- spans (spans.c) -------------------------------------------------- */

int play_spans_open(struct play *p, struct vt_err *err) VT_MUST_CHECK;
void spans_parent(struct play_request *q, struct mp_span headers);
void spans_stage(struct play_request *q, enum export_stage stage, vt_ns at,
                 uint64_t step);
void spans_gone(struct play_request *q);

/* ---- notes ------------------------------------------------------------ */

enum note_kind {
    /* to the engine thread */
    NOTE_ADD,     /* request */
    NOTE_REJECT,  /* bytes: an id; finish: how it ends */
    NOTE_ABORT,   /* id, n_ids, in bytes */
    NOTE_CALL,    /* call, in bytes */
    NOTE_WAVE,    /* wave, exclude */
    NOTE_SESSION, /* sockets to an engine's new frontend */
    NOTE_LOST,    /* a client's requests are nobody's; UINT32_MAX: all clients' */
    NOTE_PEER,    /* bytes: what another engine calls a prefill; exclude: renewed */
    NOTE_STOP,
    /* to intake */
    NOTE_KV,    /* bytes: n_events block events; unix_s */
    NOTE_STATS, /* bytes: one message with statistics; at_ns */
    NOTE_OVER,  /* the engine thread has come to its end */
};

struct note {
    struct vt_inbox_item item; /* first */
    enum note_kind kind;
    uint32_t engine, client;
    const struct vt_wire_line *line;
    struct play_request *request;
    int finish;
    char *bytes; /* owned, as the lists */
    size_t n_bytes;
    struct mp_span *id;
    uint32_t n_ids;
    struct wire_call call;
    int64_t wave, exclude;
    struct vt_heard heard; /* its id: the bytes */
    void **push;           /* n_push clients' sockets; the engine thread closes them */
    uint32_t n_push;
    void *coordinator; /* NULL: none */
    uint32_t n_events;
    double unix_s;
    vt_ns at_ns;
};
struct note *note_new(enum note_kind kind, uint32_t engine); /* NULL: no memory */
/* With a copy of the bytes. */
struct note *note_with(enum note_kind kind, uint32_t engine, const void *bytes,
                       size_t len);
void note_free(struct note *n); /* with all that it still holds; NULL is fine */

/* ---- the whole -------------------------------------------------------- */

struct play {
    const struct vt_play_config *c;
    struct vt_engine_config engine; /* as the engines have it */
    void *ctx;
    struct vt_inbox to_engines, to_intake;
    atomic_bool failed;            /* a note found no memory: both threads end */
    struct script_source *scripts; /* intake's */
    struct failure *failures;      /* intake's */
    /* What chains of block hashes begin with, by release. */
    uint8_t none_hash[VT_VLLM_NEWEST - VT_VLLM_OLDEST + 1][VT_HASH_BYTES];
    struct vt_axis axis;  /* of the engines */
    struct export *spans; /* NULL: nobody is told */
    double zero_unix_s;   /* at time 0 of the axis */

    struct play_engines *engines;
    struct play_intake *intake;
    int engines_rc; /* of the engine thread, once it has ended */
    struct vt_err engines_err;
};

void play_log(const struct play *p, const char *fmt, ...) VT_PRINTF(2, 3);

struct complaints { /* so that a hostile peer cannot fill the log; one thread's */
    uint64_t n;
};
/* The first few are told one by one, then ever fewer. */
void play_complain(const struct play *p, struct complaints *c, const char *fmt, ...)
    VT_PRINTF(3, 4);

/* Seconds, monotonic, at a time of the engines'. */
double play_timestamp(const struct play *p, vt_ns at);

/* To p->to_engines or p->to_intake; NULL marks the play as failed. */
void play_send_note(struct play *p, struct vt_inbox *to, struct note *n);

/* ---- the two threads -------------------------------------------------- */

int play_engines_open(struct play *p, struct vt_err *err) VT_MUST_CHECK;
void play_engines_close(struct play *p);
/* Until a NOTE_STOP is done with, or something fatal. */
int play_engines_run(struct play *p, struct vt_err *err) VT_MUST_CHECK;
void play_engines_sums(const struct play *p, struct vt_play_summary *out);

int play_intake_open(struct play *p, struct vt_err *err) VT_MUST_CHECK;
void play_intake_close(struct play *p);
int play_intake_run(struct play *p, struct vt_err *err) VT_MUST_CHECK;

#endif
