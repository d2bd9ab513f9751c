/* dir.c - what is in a directory. */
#include <dirent.h>
#include <errno.h>

#include "base/base.h"

int vt_each_entry(const char *path,
                  int (*take)(void *user, const char *file, struct vt_err *err),
                  void *user, struct vt_err *err)
{
    struct dirent **entry;
    int n = scandir(path, &entry, NULL, alphasort), rc = VT_OK;

    if (n < 0)
        return vt_fail(err, VT_EINPUT, "%s: %s", path, strerror(errno));
    for (int i = 0; i < n; i++) {
        char file[4096];

        if (rc == VT_OK && (size_t)snprintf(file, sizeof(file), "%s/%s", path,
                                            entry[i]->d_name) < sizeof(file))
            rc = take(user, file, err);
        free(entry[i]);
    }
    free(entry);
    return rc;
}
