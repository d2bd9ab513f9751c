/* intake.h - what the intake thread of a play owns; private to wire. */
#ifndef VT_WIRE_PLAY_INTAKE_H
#define VT_WIRE_PLAY_INTAKE_H

#include "kvevents/kvevents.h"
#include "wire/play/play.h"

/* ---- one engine's way to its frontend (link.c) ----------------- */

enum link_state {
    LINK_ASKS,  /* HELLO is sent */
    LINK_GATED, /* the coordinator's READY is missing */
    LINK_UP,    /* registered */
};

struct link_client { /* a frontend process that sends requests */
    void *input;     /* DEALER; owned */
    void *monitor;   /* tells of lost connections; owned */
    bool connected;  /* has been, once */
    vt_ns lost_ns;   /* wall clock; 0: it is there */
};

struct link {
    struct play *p;
    uint32_t rank; /* within the process */
    enum link_state state;
    void *handshake, *handshake_monitor; /* NULL while not needed; owned */
    struct link_client *client;
    uint32_t n_clients;
    uint32_t from;                   /* the client whose message is at hand */
    void *waves;                     /* SUB at the coordinator; NULL: none; owned */
    const struct vt_wire_line *line; /* NULL: not known before the first request */
    struct vt_kv_publisher *kv;      /* borrowed; NULL: none */
    struct complaints complaints;    /* about INIT */
    struct sock_msg msg;             /* scratch */
};

int link_open(struct link *l, struct play *p, uint32_t rank, struct vt_kv_publisher *kv,
              struct vt_err *err) VT_MUST_CHECK;
void link_close(struct link *l);

enum { LINK_ITEMS = 3 }; /* that a link polls beside two for each client */
/* Fills items for zmq_poll(); returns how many. */
size_t link_items(const struct link *l, zmq_pollitem_t *item);
/* Takes what has come on handshake, coordinator and monitors. Messages on the inputs
 * are left to the caller. */
int link_attend(struct link *l, struct vt_err *err) VT_MUST_CHECK;
/* Before the engine thread stops: a frontend that is gone need not hear of it. */
void link_stopping(struct link *l);

/* ---- messages (message.c) -------------------------------------- */

/* One message of the input socket. Bad ones are told of and skipped. */
void intake_message(struct link *l, struct vt_arena *a, struct complaints *c);

/* ---- the whole -------------------------------------------------------- */

struct play_intake {
    struct play *p;
    struct link *link; /* one for each engine */
    struct vt_kv_publisher **kv;
    zmq_pollitem_t *item;
    size_t cap_items;
    struct vt_arena arena;
    struct complaints complaints;
    struct vt_append *stats_file; /* NULL: none */
    struct vt_buf stats;
    bool told_stop, over;
};

#endif
