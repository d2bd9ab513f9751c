/* wirelog.h - a log of ZeroMQ messages: one JSON object per line, frames in hex;
 * private to wire.
 *
 *   {"frontend":"rust","seq":0,"t_mono_ns":4196768867113,"t_unix":1794714405.98,
 *    "phase":"start","sock":"handshake","dir":"E>F","kind":"HELLO","nframes":2,
 *    "frame_sizes":[2,31],"frames_hex":["0000","83..."],"decoded":{...},
 *    "identity":"0000","client":0}
 *
 * Reading needs only frames_hex; what is decoded is for people. */
#ifndef VT_WIRE_TAP_WIRELOG_H
#define VT_WIRE_TAP_WIRELOG_H

#include "base/base.h"

struct wirelog_entry {
    const char *frontend; /* whose session; "" where the log has none */
    uint64_t seq;         /* restarts with every session */
    int64_t t_mono_ns;
    double t_unix;        /* seconds */
    const char *phase;    /* what was going on; "" unknown */
    const char *sock;     /* "handshake", "input", "output", ... */
    const char *dir;      /* "E>F" or "F>E" */
    const char *kind;     /* "HELLO", "ADD", "OUTPUTS/REQ", ... */
    int64_t client;       /* -1: none */
    const char *identity; /* hex; NULL: none */
    struct mp_span *frame;
    uint32_t n_frames;
};

struct wirelog; /* opaque */
/* Plain or gzip. */
int wirelog_open(struct wirelog **out, const char *path,
                 struct vt_err *err) VT_MUST_CHECK;
/* *e is NULL at the end of the log; otherwise owned by the log, as all it points at,
 * and good until the next call. */
int wirelog_next(struct wirelog *log, const struct wirelog_entry **e,
                 struct vt_err *err) VT_MUST_CHECK;
void wirelog_close(struct wirelog *log); /* NULL is fine */

/* One line of a log; everything that *e points at lives in the arena. */
int wirelog_entry_read(struct wirelog_entry *e, struct vt_arena *a, const char *line,
                       size_t len, uint32_t line_no, struct vt_err *err) VT_MUST_CHECK;

#endif
