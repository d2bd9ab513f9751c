/* proc.h - programs that we start; part of base.h. */
#ifndef VT_BASE_PROC_H
#define VT_BASE_PROC_H

#include "base/base.h"

enum vt_proc_out {
    VT_PROC_KEPT,      /* all that it says is kept for messages */
    VT_PROC_TO_FILE,   /* its output goes to the file `out`, its complaints are kept */
    VT_PROC_TALK,      /* its input and output are the socket `talk`, its complaints are
                          kept */
    VT_PROC_TO_STDERR, /* all goes where our messages go: stdout holds results */
};

/* A program that we start. Zero-initialise, set what is needed, add arguments (the
 * first is the program), start it, and end with vt_proc_stop() whatever happens. */
struct vt_proc {
    const char *name;         /* in messages; NULL: its first argument */
    const char *directory;    /* to run in; NULL: here */
    char *const *environment; /* NULL: none */
    bool our_environment;
    bool in_path;   /* look for it in PATH */
    bool own_group; /* what it starts is stopped with it */
    bool outlives;  /* otherwise it is killed when the thread that started it ends */
    enum vt_proc_out output;
    const char *out; /* NULL: /dev/null */
    int talk;        /* the caller's, and open until it is started */
    vt_ns grace;     /* from SIGTERM to SIGKILL; 0: two seconds */
    /* A failure tells the first line kept that holds one of these; they end with NULL.
     * NULL, or no such line: the last one. */
    const char *const *telling;

    struct vt_arena arena;
    char **argv; /* ends with NULL */
    size_t n_args, cap_args;
    bool failed; /* no memory for an argument */
    bool has_log;
    int log;    /* what was kept: a file without a name */
    int pid;    /* 0: it does not run */
    int status; /* as waitpid() has it, once it has ended */
};
void vt_proc_arg(struct vt_proc *p, const char *text);
void vt_proc_arg_pair(struct vt_proc *p, const char *flag, const char *value);
void vt_proc_arg_u64(struct vt_proc *p, const char *flag, uint64_t v);
void vt_proc_arg_printf(struct vt_proc *p, const char *fmt, ...) VT_PRINTF(2, 3);
/* VT_EINPUT: there is no such program, or directory, or it may not be run. */
int vt_proc_start(struct vt_proc *p, struct vt_err *err) VT_MUST_CHECK;
/* False once it has ended, and then err says how and what it said last. */
bool vt_proc_running(struct vt_proc *p, struct vt_err *err);
/* Waits for its end, but not longer than `limit` (0: as long as it takes): then it is
 * killed. VT_EIO unless it ended with status 0. */
int vt_proc_wait(struct vt_proc *p, vt_ns limit, struct vt_err *err) VT_MUST_CHECK;
int vt_proc_run(struct vt_proc *p, vt_ns limit,
                struct vt_err *err) VT_MUST_CHECK; /* starts it and waits */
/* SIGTERM if it runs, and SIGKILL if that does not help; frees everything. */
void vt_proc_stop(struct vt_proc *p);
/* Lines of what was kept that are not blank, as much as fits; "": none. */
enum { VT_PROC_LINE = 300 };
void vt_proc_first_line(const struct vt_proc *p, char line[VT_PROC_LINE]);
void vt_proc_last_line(const struct vt_proc *p, char line[VT_PROC_LINE]);
/* Adds to the message of a failure what the program said last, which may explain it. */
int vt_proc_within(const struct vt_proc *p, struct vt_err *err, int rc);

#endif
