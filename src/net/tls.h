/* tls.h - TLS for both directions, by OpenSSL and without waiting; private to net. */
#ifndef VT_NET_TLS_H
#define VT_NET_TLS_H

#include "net/net.h"

/* Receiving and sending return bytes, 0 at the end of the stream, or one of these. */
enum { NET_WAIT = -1, NET_BROKEN = -2 };

/* What a server shows, and what a client trusts. Both are to be closed also when they
 * fail. */
int net_tls_serve(struct net_tls_context *t, const char *certfile, const char *keyfile,
                  struct vt_err *err) VT_MUST_CHECK;
int net_tls_trust(struct net_tls_context *t, const struct net_trust *trust,
                  struct vt_err *err) VT_MUST_CHECK;
void net_tls_close(struct net_tls_context *t);

/* host: whose certificate is expected, and by whose name it is asked for; NULL: we are
 * the server. To be detached also when it fails. */
int net_tls_attach(struct net_tls *c, const struct net_tls_context *t, int fd,
                   const char *host) VT_MUST_CHECK;
ptrdiff_t net_tls_greet(struct net_tls *c); /* 1: the handshake is over */
/* On the socket itself where nothing is attached. */
ptrdiff_t net_receive(struct net_tls *c, int fd, char *to, size_t cap);
ptrdiff_t net_send(struct net_tls *c, int fd, const char *from, size_t len);
bool net_tls_holds(const struct net_tls *c); /* bytes that no event tells of */
/* With a farewell, if it can be sent. Nothing attached is fine. */
void net_tls_detach(struct net_tls *c);
/* Why the last call on this thread failed; NULL: errno knows. */
const char *net_tls_why(const struct net_tls *c);

#endif
