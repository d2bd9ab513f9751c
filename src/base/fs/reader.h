/* reader.h - the bytes of a file or a block of memory, unpacked if they are gzip. */
#ifndef VT_READER_H
#define VT_READER_H

#define ZLIB_CONST
#include <zlib.h>

#include "base/base.h"

struct vt_reader {
    int fd;                    /* -1: memory */
    unsigned char *room;       /* what was read from fd */
    const unsigned char *next; /* packed or plain bytes not yet used */
    size_t left;
    bool at_end;          /* nothing more will be read into next */
    bool gzip, in_member; /* in_member: its trailer was not reached yet */
    bool cut;             /* the last member ends before its trailer */
    z_stream z;
};

/* Messages start with the path. After success, vt_reader_close() it. */
int vt_reader_open(struct vt_reader *r, const char *path, struct vt_err *err);
/* Borrows the bytes. */
int vt_reader_from(struct vt_reader *r, const void *bytes, size_t len,
                   struct vt_err *err);
/* *got is 0 only at the end. Messages do not name the file. Errors repeat. */
int vt_reader_read(struct vt_reader *r, void *out, size_t cap, size_t *got,
                   struct vt_err *err);
void vt_reader_close(struct vt_reader *r);

#endif
