/* client.h - the parts of a client: requests and responses; private to net. */
#ifndef VT_NET_CLIENT_H
#define VT_NET_CLIENT_H

#include <assert.h>
#include <netdb.h>
#include <sys/socket.h>

#include "net/chunks.h"
#include "net/tls.h"

struct net_address {
    struct sockaddr_storage at;
    socklen_t len;
};

/* ---- a response ------------------------------------------------------------ */

/* Of struct net_response: what comes next. */
enum net_part {
    NET_PART_STATUS_LINE,
    NET_PART_HEADERS,
    NET_PART_LENGTH,
    NET_PART_CHUNKS,
    NET_PART_TO_CLOSE,
    NET_PART_WHOLE,
    NET_PART_BROKEN,
};
void net_response_reset(struct net_response *r); /* keeps memory and what was set */
void net_response_free(struct net_response *r);
/* Takes bytes as they come, cut anywhere. Returns how many were taken: all of them
 * unless the response is whole or broken. */
size_t net_response_feed(struct net_response *r, const char *p, size_t len);
void net_response_close(struct net_response *r); /* the peer has closed */

/* ---- the client ------------------------------------------------------------ */

enum {
    NET_TRY_S = 5, /* for an address to take a connection */
    NET_READ_BYTES = 256 << 10,
};
/* Looks the host up unless that was done. */
int net_client_lookup(struct net_client *n, struct vt_err *err) VT_MUST_CHECK;
struct net_outcome { /* of a call that is waited for */
    bool over;
    enum net_ending ending;
    char why[256];
};
/* As ended() of a call whose user is an outcome. */
void net_note_end(struct net_call *c, enum net_ending e, const char *why);
void net_call_event(struct net_call *c, uint32_t events); /* of epoll */

#endif
