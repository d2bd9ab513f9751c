/* abi.c - structs of callers that were compiled with another version of the headers. */
#include <string.h>

#include "lib/lib.h"

_Static_assert((int)VTWIN_OK == (int)VT_OK && (int)VTWIN_ECHECK == (int)VT_ECHECK &&
                   (int)VTWIN_EINPUT == (int)VT_EINPUT &&
                   (int)VTWIN_EIO == (int)VT_EIO && (int)VTWIN_ENOMEM == (int)VT_ENOMEM,
               "codes are handed out as they are");

const char *vtwin_version(void)
{
    return VT_VERSION;
}

int lib_struct_in(void *own, size_t own_size, const void *theirs, const char *name,
                  struct vt_err *err)
{
    const unsigned char *byte = theirs;
    size_t size;

    if (!theirs)
        return vt_fail(err, VT_EINPUT, "struct %s is NULL", name);
    memcpy(&size, theirs, sizeof(size)); /* the first member of each */
    if (size < sizeof(size))
        return vt_fail(err, VT_EINPUT, "struct %s: its size is not set (VTWIN_INIT)",
                       name);
    for (size_t i = own_size; i < size; i++)
        if (byte[i] != 0)
            return vt_fail(
                err, VT_EINPUT,
                "struct %s asks for what libvtwin " VT_VERSION " does not have", name);
    memcpy(own, theirs, size < own_size ? size : own_size);
    return VT_OK;
}

void lib_struct_out(void *theirs, const void *own, size_t own_size)
{
    size_t size, head = sizeof(size);

    memcpy(&size, theirs, head);
    if (size > own_size)
        memset((char *)theirs + own_size, 0, size - own_size);
    if (size > head)
        memcpy((char *)theirs + head, (const char *)own + head,
               (size < own_size ? size : own_size) - head);
}

int lib_end(struct vtwin_error *theirs, int rc, const struct vt_err *err)
{
    struct vtwin_error own = {.code = rc};

    if (rc != VT_OK)
        snprintf(own.message, sizeof(own.message), "%s", err->msg);
    if (theirs)
        lib_struct_out(theirs, &own, sizeof(own));
    return rc;
}
