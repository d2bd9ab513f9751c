/* explore.h - a page on this machine on which one moves sliders and sees the answer
 * move: its server, its API and its script.
 *
 * What is asked is a command line of this program, made of flags in a query, and what
 * is answered is what that command prints: the page has no numbers of its own. Each
 * command runs in a process of its own, which ends when who asked has gone. */
#ifndef VT_EXPLORE_H
#define VT_EXPLORE_H

#include "base/base.h"

/* A flag and its value; name NULL: the model. value NULL: a flag without one. */
struct vt_explore_flag {
    const char *name, *value;
};

struct vt_explore { /* everything is borrowed */
    uint16_t port;  /* on 127.0.0.1; 0: any free one */
    /* What the page begins with. Of these, flags that a page may not set (files,
     * servers, directories) stand on every command line. */
    const struct vt_explore_flag *start;
    size_t n_start;
    /* Whether a command of this program takes the flag. */
    bool (*takes)(void *user, const char *command, const char *flag);
    /* Runs a command line in this process, which is a fork: it prints the answer to
     * stdout and what people should know to stderr. Returns the exit status. */
    int (*command)(void *user, int argc, const char *const *argv);
    const char *scratch;                        /* where temporary files may be */
    void (*ready)(void *user, const char *url); /* it listens */
    bool (*stopped)(void *user);                /* asked after each signal */
    void *user;
};
/* Serves until it is stopped. */
int vt_explore(const struct vt_explore *x, struct vt_err *err) VT_MUST_CHECK;

#endif
