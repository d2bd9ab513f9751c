/* engines.h - what the engine thread of a play owns; private to play. */
#ifndef VT_WIRE_PLAY_ENGINES_H
#define VT_WIRE_PLAY_ENGINES_H

#include "wire/play/logprobs.h"
#include "wire/play/play.h"

/* ---- ranks and messages ----------------------------------------------- */

struct parcel { /* an encoded message until its time comes */
    uint32_t rank, client;
    uint64_t session; /* of the rank: a message to a lost frontend is dropped */
    bool outputs;     /* it holds tokens: its lateness counts */
    zmq_msg_t *frame; /* owned */
    uint32_t n_frames;
};

struct held_call { /* a utility that is answered when the engine has come to rest */
    uint32_t client;
    char *id; /* call_id as it came; owned */
    size_t id_len;
    bool clear;
    uint32_t level; /* of sleep; 0: none */
};

struct rank {               /* one engine */
    uint32_t number;        /* within the process */
    uint32_t index;         /* on the wire */
    struct vt_engine *core; /* the driver's */
    const struct vt_wire_line *line;
    uint32_t release; /* of vLLM, whose scheduler it has */
    void **push;      /* by client; owned */
    uint32_t n_push;
    void *coordinator; /* NULL: none; owned */
    uint64_t session;  /* counts frontends */

    enum vt_pause pause;
    bool weights_away, cache_away; /* by sleep */
    struct held_call *held;
    size_t n_held, cap_held;
    int64_t *lora;
    size_t n_loras, cap_loras;
    struct vt_buf weight_version; /* as a value; empty: "default" */

    struct vt_agenda replays; /* requests that follow recorded times, by slot */
    uint64_t replay_blocks;   /* that they would hold */

    int64_t wave;
    uint64_t step_counter;
    bool awake;                          /* a wave is on */
    uint32_t told_waiting, told_running; /* to the coordinator */
    uint64_t told_no_room;               /* stores, to frontends */
};

struct play_engines {
    struct play *p;
    struct rank *rank;      /* p->c->n_engines of them */
    struct vt_peers *peers; /* NULL: prompts and answers are of one engine */
    struct vt_driver *driver;
    struct vt_map ids; /* requests by engine and id, as frontends name them */
    vt_ns restless_ns; /* when ranks in a wave were last seen at work */

    struct vt_kv_batch kv; /* scratch, as what follows */
    struct vt_buf message, values, kept, connector;
    struct logprobs_aux aux;
    uint32_t *token;
    size_t cap_tokens;
    struct outgoing { /* rows of a step in the order of leaving */
        const struct vt_row *row;
        struct play_request *q;
    } *order;
    size_t cap_order;
    struct mp_span *ended;
    size_t cap_ended;
    uint64_t *accepted, *drafted; /* by position */

    struct complaints complaints;
    struct vt_play_summary sums; /* what this thread counts of it */
};

/* Requests by id; tags are the driver's business. VT_EINPUT: the id is in use. */
int engines_claim_id(struct play_engines *k, struct play_request *q,
                     struct vt_err *err) VT_MUST_CHECK;
struct play_request *engines_find(const struct play_engines *k, uint32_t engine,
                                  struct mp_span id); /* NULL: none */
/* Takes a request from the tables; it is the caller's now. */
void engines_forget(struct play_engines *k, struct play_request *q);

/* connector.c: kv_connector_stats of a step, good until the next; absent: nil. */
struct mp_span engines_connector_stats(struct play_engines *k, struct rank *r,
                                       const struct vt_step *s);

/* send.c: a message of the rank's at that time, up to its rows, which are written if
 * `o` has them; who has not writes them next. */
void engines_begin(struct play_engines *k, const struct rank *r, struct wire_outputs *o,
                   vt_ns at);
/* Encodes what `o` says beside its rows, which are in k->message already,
 * and lets it leave at `at`. `client` beyond those known: nobody is told. */
int engines_post(struct play_engines *k, struct rank *r, uint32_t client, vt_ns at,
                 const struct wire_outputs *o, struct vt_err *err) VT_MUST_CHECK;
/* All of it, now; to a client or to the coordinator. */
int engines_tell(struct play_engines *k, struct rank *r, uint32_t client,
                 struct wire_outputs *o, struct vt_err *err) VT_MUST_CHECK;
int engines_tell_coordinator(struct play_engines *k, struct rank *r,
                             struct wire_outputs *o, struct vt_err *err) VT_MUST_CHECK;
/* Faces of struct vt_driver_ops. */
bool engines_leave(void *engines, void *parcel, vt_ns at);
void engines_drop_parcel(void *parcel);
void engines_say_dead(struct play_engines *k);
/* One request ends without further tokens. */
int engines_finish(struct play_engines *k, struct rank *r, uint32_t client,
                   struct mp_span id, int finish, struct vt_err *err) VT_MUST_CHECK;

/* emit.c: a finished step, and a request of its own pace, become messages. */
int engines_emit(struct play_engines *k, struct rank *r, const struct vt_step *s,
                 struct vt_err *err) VT_MUST_CHECK;
struct wire_stats engines_stats(const struct play_engines *k, const struct rank *r);

/* replay.c: requests that follow recorded times. */
int engines_replay_begin(struct play_engines *k, struct rank *r, struct play_request *q,
                         vt_ns now, struct vt_err *err) VT_MUST_CHECK;
int engines_replay_step(struct play_engines *k, struct rank *r, vt_ns now,
                        struct vt_err *err) VT_MUST_CHECK;
void engines_replay_drop(struct play_engines *k, struct rank *r,
                         struct play_request *q);
/* One output row of it; part of emit.c. Removes and frees a request that ends.
 */
int engines_emit_chunk(struct play_engines *k, struct rank *r, struct play_request *q,
                       uint32_t n_tokens, bool first, bool last, vt_ns at,
                       struct vt_err *err) VT_MUST_CHECK;

/* calls.c: utilities. */
int engines_call(struct play_engines *k, struct rank *r, const struct wire_call *c,
                 vt_ns now, struct vt_err *err) VT_MUST_CHECK;
int engines_answer_held(struct play_engines *k, struct rank *r, vt_ns now,
                        struct vt_err *err) VT_MUST_CHECK;
void engines_drop_held(struct rank *r);
struct mp_span engines_weight_version(const struct rank *r); /* a value */

/* notes.c: what intake has to say. */
int engines_take_notes(struct play_engines *k, vt_ns now,
                       struct vt_err *err) VT_MUST_CHECK;
/* All requests end, their frontends hear it, and what has been posted leaves. */
int engines_end_all(struct play_engines *k, vt_ns now,
                    struct vt_err *err) VT_MUST_CHECK;
/* Ends requests of a client (UINT32_MAX: of all); `tell` says whether they hear it. */
int engines_abort_all(struct play_engines *k, struct rank *r, uint32_t client,
                      bool tell, vt_ns now, struct vt_err *err) VT_MUST_CHECK;

/* wave.c: what the coordinator wants to know. */
int engines_wave_start(struct play_engines *k, struct rank *r, int64_t wave,
                       int64_t exclude);
int engines_wave_request(struct play_engines *k, struct rank *r, int64_t wave,
                         struct vt_err *err) VT_MUST_CHECK;
int engines_coordinate(struct play_engines *k, vt_ns now,
                       struct vt_err *err) VT_MUST_CHECK;
vt_ns engines_wave_due(const struct play_engines *k);

/* Tells of a step, and of requests that it ended (spans.c). */
void spans_step(struct play_engines *k, const struct rank *r, const struct vt_step *s);

#endif
