/* replay.h - a case being replayed; shared by the files that compare its parts. */
#ifndef VT_SIM_REPLAY_H
#define VT_SIM_REPLAY_H

#include "sim/oracle/oracle.h"

#define IN_FLIGHT 2 /* steps at most */

struct moving { /* a transfer that was asked for */
    uint64_t job;
    uint32_t due;    /* the step whose result tells of it */
    int64_t load_of; /* request; -1: it is a store */
    bool begun;
};

struct flight {
    const struct vt_step_plan *plan;
    uint32_t *sampled;
    size_t cap;
    struct moving *done; /* transfers that its result tells of */
    size_t cap_done;
    uint32_t n_done;
};

struct known_hash { /* of a block that was stored */
    uint64_t key, hash;
};

struct replay {
    struct oracle_case *c;
    struct vt_sched *s;
    struct flight flight[IN_FLIGHT];
    uint32_t n_flights;
    uint32_t step;       /* as it is numbered, */
    uint32_t at;         /* and its place among the records */
    uint32_t next_event; /* of the recorded KV events */
    struct known_hash *hashes;
    size_t n_hashes, cap_hashes;
    struct moving *moving;
    size_t n_moving, cap_moving;
    struct vt_buf mine, theirs;
    struct vt_jw out;  /* writes `mine` */
    uint32_t *scratch; /* one cell for each request */
    uint32_t n_groups;
    uint32_t *n_told; /* blocks that plans have named, by request and group */
};

/* text.c: both sides of a comparison are written as compact JSON, so that one function
 * compares every field and a difference can be shown as it is. */
void put_tags(struct replay *r, const uint64_t *v, uint32_t n);
/* Compares the value that the caller has just written with a recorded field. */
int check_field(struct replay *r, const struct vt_node *rec, const char *field,
                const char *if_absent, struct vt_err *err);
int check_number(struct replay *r, const struct vt_node *rec, const char *field,
                 uint64_t v, struct vt_err *err);

/* plan.c: what was decided, and what its result changed. */
int replay_schedule(struct replay *r, const struct vt_node *rec, struct vt_err *err);
int replay_update(struct replay *r, const struct vt_node *upd, struct vt_err *err);

/* moves.c: what the plan moves, compared and handed over; and what is told before its
 * result. */
int replay_moves(struct replay *r, const struct vt_node *rec, struct flight *f,
                 struct vt_err *err);
int replay_moved(struct replay *r, const struct flight *f, struct vt_err *err);

/* events.c */
int replay_events(struct replay *r, struct vt_err *err);
int replay_events_seen(struct replay *r, struct vt_err *err);

#endif
