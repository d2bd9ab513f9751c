/* child.h - programs that a replay starts and stops; private to conform. */
#ifndef VT_CONFORM_CHILD_H
#define VT_CONFORM_CHILD_H

#include <sys/types.h>

#include "base/base.h"
#include "live/live.h"

struct child {
    pid_t pid; /* 0: none */
    int log;   /* what it says, a file without a name; -1: none */
    const char *name;
};

/* Starts argv[0] with its output kept for messages. It gets SIGKILL if we die. `name`
 * is borrowed. End it with child_stop(). */
int child_start(struct child *c, const char *name, char *const *argv,
                char *const *environment, struct vt_err *err) VT_MUST_CHECK;

/* False once it has ended, and then err says how and what its last line was. */
bool child_runs(struct child *c, struct vt_err *err);

/* SIGTERM, and SIGKILL if that does not help. A zeroed one is fine. */
void child_stop(struct child *c);

/* "context: the child's last line", for a failure that it may explain. */
int child_within(const struct child *c, struct vt_err *err, int rc);

/* A TCP port of the loopback interface that nobody uses at this moment. */
int free_port(uint16_t *port, struct vt_err *err) VT_MUST_CHECK;

/* The last line of what was said, as much as fits. */
enum { CHILD_LAST_LINE = 300 };
void child_last_line(int log, char out[CHILD_LAST_LINE]);

#endif
