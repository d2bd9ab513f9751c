/* run.h - the loop that sends a plan; private to load. */
#ifndef VT_LOAD_RUN_H
#define VT_LOAD_RUN_H

#include "live/live.h"
#include "load/client.h"

struct load_conn { /* a request in flight, and the connection it uses */
    struct net_call call;
    struct load_run *run;
    bool bad_event, told;
    bool probe;
    size_t record, session; /* indices; not of a probe */
    struct vt_buf ask;      /* what is sent */
    vt_ns *stamp;           /* heap, kept for the next request */
    size_t n_stamps, cap_stamps;
    struct vt_buf text, finish, message;
};

struct load_state { /* of a session */
    uint32_t turn;  /* the one that is next or in flight */
    vt_ns planned;
    bool begun;            /* its first turn was sent */
    uint32_t before;       /* sessions that it still waits for */
    uint32_t open;         /* of a tree's first: sessions of it that have not ended */
    struct vt_buf built;   /* the next request, if it was written already */
    struct vt_buf history; /* what was said before */
};

struct load_fifo { /* of sessions; each is in it once at most */
    size_t *item;  /* heap; as many as there are sessions */
    size_t head, n, cap;
};

struct load_run {
    const struct vt_load_config *config;
    const struct vt_load_plan *plan;
    struct vt_load_records *out;
    struct net_client client;
    struct load_body body;
    struct load_state *state; /* heap; one for each session */
    struct vt_agenda due;     /* turns by when they are due */
    struct load_fifo lobby;   /* sessions that wait for one to end */
    struct load_fifo ready;   /* turns that wait for a place */
    struct load_conn **conn;  /* heap, and so is each; all there are */
    size_t n_conns, cap_conns;
    struct load_conn **idle; /* heap */
    size_t n_idle, cap_idle;
    vt_ns zero, now; /* now counts from zero, as all times here */
    vt_ns freed;     /* when a place became free last */
    vt_ns next_tick;
    size_t next_build; /* first session whose first request is not written */
    size_t built_bytes;
    uint32_t in_flight, sessions;
    uint64_t tokens;
    size_t done, failed;
    struct vt_late lag;
    vt_ns probe_due; /* VT_NEVER: none, or in flight */
    bool probing;    /* one is in flight */
    struct vt_load_record probe;
    struct vt_err *err;
    int rc; /* of what cannot be gone on from: memory */
};

static inline vt_ns load_now(struct load_run *r)
{
    return r->now = vt_wall_ns() - r->zero;
}

struct vt_load_record *load_record(struct load_conn *c);

/* ---- conn.c: one request ----------------------------------------------- */

/* Takes over what c->ask holds. Failure shows in the record. */
void load_conn_begin(struct load_conn *c, vt_ns begun);
void load_conn_fail(struct load_conn *c, enum vt_load_failure why, const char *detail);
struct load_conn *load_conn_take(struct load_run *r); /* NULL: see r->rc */
void load_conn_free(struct load_conn *c);

/* ---- run.c: all of them ------------------------------------------------ */

void load_run_ended(struct load_conn *c); /* its record is complete */

#endif
