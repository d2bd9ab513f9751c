/* probe.h - whether somebody is there at an address: connections that are tried and
 * closed again, on a thread that polls other things beside. Private to kvevents. */
#ifndef VT_KVEVENTS_PROBE_H
#define VT_KVEVENTS_PROBE_H

#include <zmq.h>

#include "kvevents/kvevents.h"

enum { PROBES = 64 }; /* at once; more wait */

struct probe {
    uint64_t tag;
    char host[256];
    uint16_t port;
    int fd;            /* -1: not now */
    vt_ns until, next; /* given up; tried (again) */
};

struct probes {
    struct probe *at;
    size_t n, cap;
    struct vt_map known; /* addresses that answered once */
};

/* "TAG PORT HOST". False: there is no such address, or no memory. */
bool probes_add(struct probes *p, const char *text, size_t len);
/* What to poll for, and how long at most; how many were put into `item`. */
size_t probes_poll(struct probes *p, zmq_pollitem_t item[PROBES]);
long probes_wait_ms(const struct probes *p);
/* After the poll: who answered or is given up is told of. */
void probes_go_on(struct probes *p, const zmq_pollitem_t item[PROBES],
                  vt_peers_heard *heard, void *user);
void probes_free(struct probes *p);

#endif
