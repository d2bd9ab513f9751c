/* clock.h - what the clock thread of a play owns; private to wire. */
#ifndef VT_WIRE_PLAY_CLOCK_H
#define VT_WIRE_PLAY_CLOCK_H

#include "wire/play/logprobs.h"
#include "wire/play/play.h"

/* ---- live requests (clock_table.c) ------------------------------------ */

/* Found by tag in O(1) and by engine and id in O(1). Owns the requests in it. */
struct table {
    struct play_request **slot;
    size_t n_slots, cap_slots;
    uint32_t *spare;
    size_t n_spare, cap_spare;
    uint32_t *cell; /* open addressing by id: slot + 1; 0: empty */
    uint32_t mask;
    uint32_t n;
    uint64_t next; /* sequence number */
};

void table_free(struct table *t);
/* Sets the tag. VT_EINPUT: the id is in use, or there are too many. */
int table_add(struct table *t, struct play_request *r,
              struct vt_err *err) VT_MUST_CHECK;
void table_remove(struct table *t, struct play_request *r); /* now the caller's */
struct play_request *table_tagged(const struct table *t, uint64_t tag); /* NULL: gone */
struct play_request *table_find(const struct table *t, uint32_t engine,
                                struct mp_span id); /* NULL: none */

/* ---- ranks and messages ----------------------------------------------- */

struct parcel { /* an encoded message until its time comes */
    uint32_t rank, client;
    uint64_t session; /* of the rank: a message to a lost frontend is dropped */
    bool outputs;     /* it holds tokens: its lateness counts */
    zmq_msg_t *frame; /* owned */
    uint32_t n_frames;
    uint32_t next_spare;
};

struct held_call { /* a utility that is answered when the engine has come to rest */
    uint32_t client;
    char *id; /* call_id as it came; owned */
    size_t id_len;
    bool clear;
    uint32_t level; /* of sleep; 0: none */
};

struct rank {       /* one engine */
    uint32_t index; /* on the wire */
    struct vt_engine *core;
    const struct vt_wire_line *line;
    void **push; /* by client; owned */
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
};

struct play_clock {
    struct play *p;
    struct rank *rank; /* p->c->n_engines of them */
    struct table table;
    struct vt_agenda due; /* parcels by number */
    struct parcel *parcel;
    size_t n_parcels, cap_parcels;
    uint32_t spare_parcel; /* number + 1; 0: none */
    vt_ns restless_ns;     /* when ranks in a wave were last seen at work */
    bool stopping;
    vt_ns stop_ns; /* when to stop waiting for requests */

    struct vt_buf message, values; /* scratch, as what follows */
    struct logprobs_aux aux;
    uint32_t *token;
    size_t cap_tokens;
    uint32_t *order;
    size_t cap_order;
    struct mp_span *ids;
    size_t cap_ids;
    uint64_t *accepted, *drafted; /* by position */

    struct complaints complaints;
    struct play_sums sums;
    struct vt_late late;
};

/* clock.c: the one thing of an engine that is due next, with what follows from it. */
int clock_act(struct play_clock *k, struct rank *r, vt_ns now,
              struct vt_err *err) VT_MUST_CHECK;

/* clock_send.c: encodes what `o` says beside its rows, which are in k->message already,
 * and lets it leave at `at`. `client` beyond those known: nobody is told. */
int clock_post(struct play_clock *k, struct rank *r, uint32_t client, vt_ns at,
               const struct wire_outputs *o, struct vt_err *err) VT_MUST_CHECK;
/* The same for a message without rows. */
int clock_tell(struct play_clock *k, struct rank *r, uint32_t client,
               const struct wire_outputs *o, struct vt_err *err) VT_MUST_CHECK;
/* To the coordinator, now. */
int clock_tell_coordinator(struct play_clock *k, struct rank *r,
                           const struct wire_outputs *o,
                           struct vt_err *err) VT_MUST_CHECK;
void clock_flush(struct play_clock *k, vt_ns now); /* what is due */
void clock_say_dead(struct play_clock *k);
void clock_drop_parcels(struct play_clock *k); /* unsent */
/* One request ends without further tokens. */
int clock_finish(struct play_clock *k, struct rank *r, uint32_t client,
                 struct mp_span id, int finish, struct vt_err *err) VT_MUST_CHECK;

/* clock_emit.c: a finished step, and a request of its own pace, become messages. */
int clock_emit(struct play_clock *k, struct rank *r, const struct vt_step *s,
               struct vt_err *err) VT_MUST_CHECK;
struct wire_stats clock_stats(const struct play_clock *k, const struct rank *r);

/* clock_replay.c: requests that follow recorded times. */
int clock_replay_begin(struct play_clock *k, struct rank *r, struct play_request *q,
                       vt_ns now, struct vt_err *err) VT_MUST_CHECK;
int clock_replay_step(struct play_clock *k, struct rank *r, vt_ns now,
                      struct vt_err *err) VT_MUST_CHECK;
void clock_replay_drop(struct play_clock *k, struct rank *r, struct play_request *q);
/* One output row of it; part of clock_emit.c. Removes and frees a request that ends. */
int clock_emit_chunk(struct play_clock *k, struct rank *r, struct play_request *q,
                     uint32_t n_tokens, bool first, bool last, vt_ns at,
                     struct vt_err *err) VT_MUST_CHECK;

/* clock_calls.c: utilities. */
int clock_call(struct play_clock *k, struct rank *r, const struct wire_call *c,
               vt_ns now, struct vt_err *err) VT_MUST_CHECK;
int clock_answer_held(struct play_clock *k, struct rank *r, vt_ns now,
                      struct vt_err *err) VT_MUST_CHECK;
void clock_drop_held(struct rank *r);
struct mp_span clock_weight_version(const struct rank *r); /* a value */

/* clock_notes.c: what intake has to say. */
int clock_take_notes(struct play_clock *k, vt_ns now, struct vt_err *err) VT_MUST_CHECK;
/* Ends requests of a client (UINT32_MAX: of all); `tell` says whether they hear it. */
int clock_abort_all(struct play_clock *k, struct rank *r, uint32_t client, bool tell,
                    vt_ns now, struct vt_err *err) VT_MUST_CHECK;

/* clock_wave.c: what the coordinator wants to know. */
int clock_wave_start(struct play_clock *k, struct rank *r, int64_t wave,
                     int64_t exclude);
int clock_wave_request(struct play_clock *k, struct rank *r, int64_t wave,
                       struct vt_err *err) VT_MUST_CHECK;
int clock_coordinate(struct play_clock *k, vt_ns now, struct vt_err *err) VT_MUST_CHECK;
vt_ns clock_wave_due(const struct play_clock *k);

/* clock_kv.c: block events, on their way to intake. */
int clock_kv(struct play_clock *k, struct rank *r, struct vt_err *err) VT_MUST_CHECK;

#endif
