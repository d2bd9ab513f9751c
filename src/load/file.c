/* file.c - writing a long text to a file. */
#include "load/file.h"

enum { LARGE = 1 << 16 };

int file_flush(struct vt_out *o, struct vt_buf *b, enum file_flush how,
               struct vt_err *err)
{
    int rc;

    if (b->failed)
        return vt_nomem(err);
    if (b->len == 0 || (how == FILE_IF_LARGE && b->len < LARGE))
        return VT_OK;
    rc = vt_out_write(o, b->data, b->len, err);
    vt_buf_clear(b);
    return rc;
}
