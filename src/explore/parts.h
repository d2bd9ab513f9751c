/* parts.h - what the parts of explore share: questions, processes that answer them,
 * files of the page. Private to explore. */
#ifndef VT_EXPLORE_PARTS_H
#define VT_EXPLORE_PARTS_H

#include "explore/explore.h"

/* ---- questions (question.c) ------------------------------------------------- */

struct question {
    const char *path; /* "/api/v1/capacity" */
    const char *about;
    const char *command[3]; /* and its subcommand; ends with NULL */
    const char *adds[4];    /* flags of its own; ends with NULL */
    const char *leaves;     /* a flag that means something else there; NULL: none */
    const char *type;       /* of a file, its Content-Type; NULL: JSON in an envelope */
    const char *file;       /* what it is saved as; NULL: no file */
    const char *writes;     /* the flag by which it writes the file; NULL: to stdout */
};
extern const struct question questions[]; /* ends with a row without path */
const struct question *question_find(const char *path); /* NULL: none */

/* A command line. Words are in the arena. */
struct argv_words {
    struct vt_arena arena;
    const char **word; /* heap; ends with NULL */
    size_t n, cap;
};
void argv_free(struct argv_words *w);
/* What q asks with the flags of a query and the fixed ones. VT_EINPUT: a flag that a
 * page may not set, or not to this. End *w with argv_free() whatever happens. */
int question_argv(struct argv_words *w, const struct vt_explore *x,
                  const struct question *q, const char *query,
                  struct vt_err *err) VT_MUST_CHECK;
/* The same for people: quoted as a shell wants it. */
void argv_text(struct vt_buf *b, const struct argv_words *w);
/* Whether a page may set that flag to that. */
bool flag_is_free(const struct vt_explore_flag *f);
/* What the page needs to begin: models, GPUs, traffic, the state, what flags there are.
 */
int question_start(struct vt_buf *b, const struct vt_explore *x,
                   struct vt_err *err) VT_MUST_CHECK;

/* ---- processes (work.c) ------------------------------------------------------ */

struct works; /* opaque */
struct work;  /* opaque: one command under way */

struct work_answer {        /* borrowed during the call */
    int status;             /* exit status; -1: it was killed */
    const char *out, *said; /* stdout and stderr; NUL-terminated */
    size_t out_len, said_len;
};
typedef void work_done(void *user, const struct work_answer *a);

int works_open(struct works **out, const struct vt_explore *x,
               struct vt_err *err) VT_MUST_CHECK;
/* Ends all without done(); drop() is told of each. NULL is fine. */
void works_close(struct works *w, void (*drop)(void *user));
int works_fd(const struct works *w); /* readable: works_hear() has something to do */
/* Takes what has come, and calls done() of those that have ended. */
void works_hear(struct works *w);
/* VT_ECHECK: too many are under way. writes: NULL, or the flag that takes a file, whose
 * bytes are then the answer in place of stdout's. */
int work_start(struct work **out, struct works *w, const struct argv_words *argv,
               const char *writes, work_done *done, void *user,
               struct vt_err *err) VT_MUST_CHECK;
/* Kills it and all that it has started; done() is not called. */
void work_cancel(struct work *k);

/* ---- the page's own files, compiled in by tools/embed ------------------------- */

extern const struct vt_builtin explore_file_table[];
extern const size_t explore_file_count;

#endif
