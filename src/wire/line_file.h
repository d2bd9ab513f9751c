/* line_file.h - files of lines that survive a kill; private to wire. */
#ifndef VT_WIRE_LINE_FILE_H
#define VT_WIRE_LINE_FILE_H

#include "base/base.h"

struct line_file; /* opaque */
/* Whether a file may be made there: VT_EINPUT if not, or if there is one already. */
int line_file_check(const char *path, bool overwrite, struct vt_err *err) VT_MUST_CHECK;
/* Plain, or gzip of that level (1 fast to 9 small) if the name ends in .gz. */
int line_file_open(struct line_file **out, const char *path, int level,
                   struct vt_err *err) VT_MUST_CHECK;
/* Whole lines. When it returns, they are the system's: a kill does not lose them. */
int line_file_put(struct line_file *f, const struct vt_buf *lines,
                  struct vt_err *err) VT_MUST_CHECK;
int line_file_close(struct line_file *f, struct vt_err *err); /* NULL is fine */

#endif
