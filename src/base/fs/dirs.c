/* dirs.c - directories made like mkdir -p, and taken back when that fails. */
#include "base/base.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

/* Removes `path` and its parents down to the length `keep`, deepest first. */
static void remove_made(char *path, size_t keep)
{
    for (size_t n = strlen(path); n >= keep && n > 0; n--) {
        if (path[n] != '\0' && path[n] != '/')
            continue;
        path[n] = '\0';
        rmdir(path);
    }
}

bool vt_is_directory(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* Makes every prefix of `path`; *first is the length of the first one made. */
static int make_all(char *path, size_t *first)
{
    for (size_t n = 1;; n++) {
        char end = path[n];
        struct stat st;
        bool made;
        int no;

        if (end != '/' && end != '\0')
            continue;
        path[n] = '\0';
        made = mkdir(path, 0777) == 0;
        no = made ? 0 : errno;
        if (!made && stat(path, &st) == 0)
            no = S_ISDIR(st.st_mode) ? 0 : ENOTDIR;
        if (no != 0) {
            if (*first > 0)
                remove_made(path, *first);
            return no;
        }
        path[n] = end;
        if (made && *first == 0)
            *first = n;
        if (end == '\0')
            return 0;
    }
}

int vt_make_dirs(const char *path, char **created_first, struct vt_err *err)
{
    char *copy;
    size_t first = 0;
    int no;

    if (created_first)
        *created_first = NULL;
    if (*path == '\0')
        return vt_fail(err, VT_EINPUT, "the name of a directory is empty");
    copy = strdup(path);
    if (!copy)
        return vt_nomem(err);
    no = make_all(copy, &first);
    if (no != 0) {
        free(copy);
        return vt_fail(err, VT_EINPUT, "%s: %s", path, strerror(no));
    }
    copy[first] = '\0';
    if (first > 0 && created_first)
        *created_first = copy;
    else
        free(copy);
    return VT_OK;
}
