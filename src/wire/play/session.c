/* session.c - remembers where the frontend is: the INIT message as it came. */
#include <string.h>
#include <unistd.h>

#include "wire/play/intake.h"

enum { MAX_SESSION = 1 << 20 };

int session_load(const char *path, char **bytes, size_t *len, struct vt_err *err)
{
    struct vt_buf b = {0};
    int rc;

    *bytes = NULL;
    if (access(path, F_OK) != 0)
        return VT_OK;
    rc = vt_read_file(path, MAX_SESSION, &b, err);
    if (rc != VT_OK || b.len == 0) {
        vt_buf_free(&b);
        return rc;
    }
    *bytes = b.data;
    *len = b.len;
    return VT_OK;
}

int session_save(const char *path, const void *bytes, size_t len, struct vt_err *err)
{
    struct vt_out *o;
    int rc = vt_out_open(&o, path, err);

    if (rc != VT_OK)
        return rc;
    return vt_out_end(o, vt_out_write(o, bytes, len, err), err);
}
