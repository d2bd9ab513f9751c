/* program.h - programs of others that are run to their end, and a place for their
 * files; private to validate. */
#ifndef VT_VALIDATE_PROGRAM_H
#define VT_VALIDATE_PROGRAM_H

#include "base/base.h"

enum { PROGRAM_ARGS = 64 };

/* A command line in the making; texts are on the arena. */
struct program {
    struct vt_arena arena;
    char *argv[PROGRAM_ARGS + 1]; /* ends with NULL */
    size_t n;
    bool failed;
    const char *directory;    /* to run in; NULL: here */
    const char *out;          /* file for its output; NULL: none */
    char *const *environment; /* NULL: none */
    uint32_t timeout_s;       /* 0: none */
};

void program_arg(struct program *p, const char *text);
void program_arg_u64(struct program *p, const char *flag, uint64_t v);
void program_arg_pair(struct program *p, const char *flag, const char *value);
/* VT_EIO: it could not be started, or failed; the message has the status and what it
 * said last. */
int program_run(const struct program *p, struct vt_err *err) VT_MUST_CHECK;
void program_free(struct program *p);

/* A new directory below `scratch`. */
int program_place(char *path, size_t size, const char *scratch,
                  struct vt_err *err) VT_MUST_CHECK;
void program_clear(const char *place); /* with all that is in it */

/* A CSV file with a header; columns by name. */
struct program_csv {
    struct vt_lines *lines;
    char *head; /* heap */
    char *name[64], *field[64];
    int n;
};
int program_csv_open(struct program_csv *c, const char *path,
                     struct vt_err *err) VT_MUST_CHECK;
/* False at the end. Rows with another number of fields are passed over. */
bool program_csv_next(struct program_csv *c);
/* NAN: there is no such column, or no number in it. */
double program_csv_number(const struct program_csv *c, const char *column);
const char *program_csv_text(const struct program_csv *c, const char *column);
void program_csv_close(struct program_csv *c);

#endif
