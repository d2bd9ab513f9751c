/* file.c - writing a whole text to a file. */
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

int file_end(struct vt_out *o, int rc, struct vt_err *err)
{
    if (rc == VT_OK)
        return vt_out_commit(o, err);
    vt_out_abandon(o);
    return rc;
}

int file_write(const char *path, const struct vt_buf *b, struct vt_err *err)
{
    struct vt_out *o;
    int rc = b->failed ? vt_nomem(err) : vt_out_open(&o, path, err);

    if (rc != VT_OK)
        return rc;
    if (b->len > 0)
        rc = vt_out_write(o, b->data, b->len, err);
    return file_end(o, rc, err);
}
