/* frontend.h - the insides of struct vt_frontend; private to wire. */
#ifndef VT_WIRE_FRONTEND_H
#define VT_WIRE_FRONTEND_H

#include "kvevents/kvevents.h"
#include "live/live.h"
#include "wire/codec/codec.h"

struct frontend_client {
    void *input, *output; /* ROUTER and PULL, both bound */
    char input_address[SOCK_ADDRESS], output_address[SOCK_ADDRESS];
};

struct frontend_engine {
    struct vt_frontend_engine said;
    struct vt_buf registration, hash; /* what `said` points to */
    bool greeted, ready;
    bool *registered; /* with each client */
};

struct vt_frontend {
    void *ctx, *handshake; /* ROUTER, bound */
    char address[SOCK_ADDRESS];
    struct frontend_client *client;
    struct frontend_engine *engine;
    uint32_t n_clients, n_engines;
    const struct vt_wire_line *line;

    void *waves, *reports; /* the coordinator's XPUB and PULL; NULL: there is none */
    char waves_address[SOCK_ADDRESS], reports_address[SOCK_ADDRESS];
    uint32_t n_subscribed;

    struct vt_buf init;   /* what engines are told */
    zmq_pollitem_t *item; /* sockets that outputs come from */
    int n_items;
    uint32_t turn; /* whose output is looked at first: all get theirs */

    struct vt_buf out;
    struct vt_arena out_arena; /* of what is being sent */
    struct sock_msg in;
    struct vt_arena arena; /* of the message in hand */
    struct vt_frontend_message message;
    struct vt_err bad; /* of the message in hand */
};

/* Fills f->message from f->in. VT_OK also for a message that cannot be decoded. */
int frontend_decode(struct vt_frontend *f, struct vt_err *err) VT_MUST_CHECK;

#endif
