/* sock.h - thin helpers over libzmq with errors as values.
 *
 * A socket is libzmq's own void *: zmq_poll(), zmq_setsockopt() and zmq_close() work on
 * it. Queues are unbounded (HWM 0), as on both sides of vLLM, so that a send never
 * waits; nothing here blocks but sock_wait(). */
#ifndef VT_KVEVENTS_SOCK_H
#define VT_KVEVENTS_SOCK_H

#include <zmq.h>

#include "base/base.h"

enum { SOCK_ADDRESS = 256 }; /* bytes of an address, with its NUL */

/* One I/O thread. The caller ends it with zmq_ctx_term() after closing its sockets. */
int sock_ctx(void **out, struct vt_err *err) VT_MUST_CHECK;

/* What may rightly come in at a socket, so that nobody who can reach it makes us hold
 * more: bytes of a frame, beyond which the connection is closed. */
enum sock_gets {
    SOCK_GETS_LITTLE, /* 1 MiB: handshakes, registrations, counts, subscriptions */
    SOCK_GETS_MUCH,   /* 1 GiB: prompts and outputs, with their tensors */
};

struct sock_options {
    int type; /* ZMQ_DEALER... */
    enum sock_gets gets;
    const void *identity;
    size_t identity_len; /* 0: none */
    int linger_ms;       /* how long unsent messages survive zmq_close() */
    bool mandatory;      /* ROUTER: sending to an unknown peer is an error */
    bool handover; /* ROUTER: a peer that comes back replaces its old connection */
};
/* As frontends bind them: a ROUTER for requests, a PULL for outputs and reports. */
struct sock_options sock_as_frontend(int type);
int sock_open(void **out, void *ctx, const struct sock_options *o,
              struct vt_err *err) VT_MUST_CHECK;
void sock_close(void *sock); /* NULL is fine */

/* A message names the address. That the port is taken is VT_EINPUT, as is an address
 * that makes no sense. */
int sock_bind(void *sock, const char *address, struct vt_err *err) VT_MUST_CHECK;
int sock_connect(void *sock, const char *address, struct vt_err *err) VT_MUST_CHECK;
/* Where it was bound to: ports are numbers now. */
int sock_endpoint(void *sock, char out[SOCK_ADDRESS], struct vt_err *err) VT_MUST_CHECK;

/* What happens to the connections of a socket, for the events of libzmq asked for; to
 * be opened before it connects, so that nothing is missed. */
int sock_monitor_open(void **out, void *ctx, void *sock, int events,
                      struct vt_err *err) VT_MUST_CHECK;
bool sock_monitor_next(void *monitor, int *event, int *fd); /* false: nothing more */
void sock_close_monitored(void *sock, void *monitor);       /* NULL is fine for both */

/* ---- messages --------------------------------------------------------- */

/* All frames of one message. Zero-initialise to start; the frames are owned. */
struct sock_msg {
    zmq_msg_t *frame;
    size_t n, cap;
};
void sock_msg_clear(struct sock_msg *m); /* closes the frames, keeps the memory */
void sock_msg_free(struct sock_msg *m);
/* Frames hold libzmq's own memory: what they point to is good until clear. */
const void *sock_data(const struct sock_msg *m, size_t i, size_t *len);
size_t sock_msg_bytes(const struct sock_msg *m);

/* Clears m, then receives a message if one is there; m->n is 0 when none is. */
int sock_recv(void *sock, struct sock_msg *m, struct vt_err *err) VT_MUST_CHECK;

/* Sends frames [first, n) without copying: each shares its bytes with m, which stays
 * as it is. VT_EIO with errno EHOSTUNREACH: a mandatory ROUTER does not know the peer,
 * nothing was sent. `more`: the message goes on with the next send. */
int sock_send(void *sock, const struct sock_msg *m, size_t first, bool more,
              struct vt_err *err) VT_MUST_CHECK;
/* One frame: it shares its bytes with *frame, which stays as it is, or copies them. */
int sock_share(void *sock, zmq_msg_t *frame, bool more,
               struct vt_err *err) VT_MUST_CHECK;
int sock_put(void *sock, const void *bytes, size_t len, bool more,
             struct vt_err *err) VT_MUST_CHECK;

/* Waits until a message can be received: 1 yes, 0 time is up or a signal came. -1 as
 * timeout waits for ever. */
int sock_wait(void *sock, int timeout_ms);

#endif
