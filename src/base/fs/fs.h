/* fs.h - files; part of base.h. */
#ifndef VT_BASE_FS_H
#define VT_BASE_FS_H

#include "base/base.h"

/* Reads lines of a text file, plain or gzip (recognised by its magic, several
 * members accepted). A truncated or damaged gzip stream is an error that names
 * the line reached, unless it ends behind a whole line: so does the file of a recorder
 * that was killed. Lines longer than 256 MiB are errors, and so are NUL bytes. */
struct vt_lines; /* opaque */
int vt_lines_open(struct vt_lines **out, const char *path,
                  struct vt_err *err) VT_MUST_CHECK;
/* The same over bytes in memory, which must outlive it; name is for messages. */
int vt_lines_from(struct vt_lines **out, const char *name, const void *bytes,
                  size_t len, struct vt_err *err) VT_MUST_CHECK;
/* *line is NULL at the end of the file; otherwise NUL-terminated, without its
 * line end, owned by the reader and good until the next call. *complete (may be
 * NULL) says whether the line ended with a newline. */
int vt_lines_next(struct vt_lines *l, char **line, size_t *len, bool *complete,
                  struct vt_err *err) VT_MUST_CHECK;
uint32_t vt_lines_number(const struct vt_lines *l); /* of the line last returned */
/* At the end of the file: it is gzip without its trailer, lines may be missing. */
bool vt_lines_cut(const struct vt_lines *l);
const char *vt_lines_name(const struct vt_lines *l);
void vt_lines_close(struct vt_lines *l); /* NULL is fine */

/* Reads a whole file, plain or gzip, at most max bytes. The buffer's memory is the
 * caller's to free. */
int vt_read_file(const char *path, size_t max, struct vt_buf *out,
                 struct vt_err *err) VT_MUST_CHECK;

/* From now on the name of every file that is opened for reading goes to `names`, once,
 * with a NUL behind it: for those who take a command to another machine. Borrowed;
 * NULL, as it is at first: nobody asks. Not for threads. */
void vt_note_inputs(struct vt_buf *names);

/* Splits one CSV line in place (RFC 4180 quotes, no embedded newlines). Returns
 * the number of fields, at most max; -1 when there are more or a quote is
 * unbalanced. field[i] points into the line. */
int vt_csv_split(char *line, char **field, int max);
/* Appends one field, in quotes where it needs them, or always. Line ends in it become
 * blanks: vt_csv_split() could not read them. */
void vt_buf_csv(struct vt_buf *b, const char *text, bool always);

/* A file that tools/embed has compiled in. */
struct vt_builtin {
    const char *name; /* file name without directory */
    const char *text; /* ends with a NUL that does not count */
    size_t len;
};

bool vt_is_directory(const char *path);
bool vt_is_gz(const char *path); /* its name ends in ".gz" */
bool vt_ends_with(const char *text, const char *end);
/* Hands on the path of every entry of a directory, sorted by name. */
int vt_each_entry(const char *path,
                  int (*take)(void *user, const char *file, struct vt_err *err),
                  void *user, struct vt_err *err) VT_MUST_CHECK;
bool vt_is_named(const char *path, const char *end); /* it ends so, before any ".gz" */

/* Writes a file that appears whole or not at all: bytes go to a temporary file
 * beside it, commit renames. Plain, or gzip if the path ends in ".gz". A device or
 * pipe is written in place. */
struct vt_out; /* opaque */
int vt_out_open(struct vt_out **out, const char *path,
                struct vt_err *err) VT_MUST_CHECK;
int vt_out_write(struct vt_out *o, const void *bytes, size_t len,
                 struct vt_err *err) VT_MUST_CHECK;
/* Writes what a buffer holds and empties it, once it is long or `all` is to go. */
int vt_out_flush(struct vt_out *o, struct vt_buf *b, bool all,
                 struct vt_err *err) VT_MUST_CHECK;
/* Flushes, syncs and closes the temporary file under its final name; frees o
 * whatever happens. */
int vt_out_commit(struct vt_out *o, struct vt_err *err) VT_MUST_CHECK;
void vt_out_abandon(struct vt_out *o); /* removes the temporary file; NULL is fine */
/* Ends a file that was written with `rc` so far: commits it, or abandons it and returns
 * rc. */
int vt_out_end(struct vt_out *o, int rc, struct vt_err *err) VT_MUST_CHECK;
/* A whole file at once, whose path is `path`, or `name` in the directory `dir`. */
int vt_write_file(const char *path, const struct vt_buf *b,
                  struct vt_err *err) VT_MUST_CHECK;
int vt_write_file_in(const char *dir, const char *name, const struct vt_buf *b,
                     struct vt_err *err) VT_MUST_CHECK;

/* Appends lines, each put all of it or nothing: when it returns they are the system's,
 * so that a kill does not lose them, and what a full disk has cut is taken back. Plain,
 * or gzip of that level (1 fast to 9 small) if the name ends in ".gz", which can be
 * read up to the last put. */
struct vt_append; /* opaque */
/* more: behind what is there, where the rest of a line of JSON that was cut goes first;
 * otherwise all of it is gone. */
int vt_append_open(struct vt_append **out, const char *path, int level, bool more,
                   struct vt_err *err) VT_MUST_CHECK;
int vt_append_put(struct vt_append *f, const struct vt_buf *lines,
                  struct vt_err *err) VT_MUST_CHECK;
int vt_append_close(struct vt_append *f, struct vt_err *err); /* NULL is fine */

/* Like mkdir -p. Sets *created_first (may be NULL; caller frees) to the topmost
 * directory it made, or NULL, so that a failing caller can take it back. When it
 * fails itself, it has taken back what it made. */
int vt_make_dirs(const char *path, char **created_first,
                 struct vt_err *err) VT_MUST_CHECK;

#endif
