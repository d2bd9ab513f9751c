/* file.h - writing a long text to a file; private to load. */
#ifndef VT_LOAD_FILE_H
#define VT_LOAD_FILE_H

#include "load/load.h"

/* Writes what is in the buffer once it is large, or `all` of it, and empties it. */
enum file_flush { FILE_IF_LARGE, FILE_ALL };
int file_flush(struct vt_out *o, struct vt_buf *b, enum file_flush how,
               struct vt_err *err) VT_MUST_CHECK;

#endif
