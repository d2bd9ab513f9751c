/* line_file.c - lines that are in the file as soon as they are written: a recorder that
 * is killed has lost none of them. */
#define ZLIB_CONST

#include "wire/line_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

enum { MAX_STEP = 1 << 30 };

struct line_file {
    char *path;
    int fd;
    bool gzip;
    z_stream z;
    unsigned char *room; /* packed bytes of one put: it becomes one write */
    size_t n, cap;
};

int line_file_check(const char *path, bool overwrite, struct vt_err *err)
{
    const char *slash = strrchr(path, '/');
    struct stat st;

    if (stat(path, &st) != 0) { /* then its directory must take it */
        char *dir = slash ? strndup(path, slash > path ? (size_t)(slash - path) : 1)
                          : strdup(".");
        int rc = VT_OK;

        if (!dir)
            return vt_nomem(err);
        if (access(dir, W_OK | X_OK) != 0)
            rc = vt_fail(err, VT_EINPUT, "%s: cannot write: %s", path, strerror(errno));
        free(dir);
        return rc;
    }
    if (S_ISDIR(st.st_mode))
        return vt_fail(err, VT_EINPUT, "%s: %s", path, strerror(EISDIR));
    if (S_ISREG(st.st_mode) && !overwrite)
        return vt_fail(err, VT_EINPUT, "%s is there already; --overwrite replaces it",
                       path);
    if (access(path, W_OK) != 0)
        return vt_fail(err, VT_EINPUT, "%s: cannot write: %s", path, strerror(errno));
    return VT_OK;
}

static void file_free(struct line_file *f)
{
    if (f->gzip)
        deflateEnd(&f->z);
    if (f->fd >= 0)
        close(f->fd);
    free(f->path);
    free(f->room);
    free(f);
}

int line_file_open(struct line_file **out, const char *path, int level,
                   struct vt_err *err)
{
    struct line_file *f = calloc(1, sizeof(*f));
    int rc = VT_OK;

    *out = NULL;
    if (!f)
        return vt_nomem(err);
    f->fd = -1;
    f->path = strdup(path);
    f->gzip =
        f->path && vt_is_gz(path) &&
        deflateInit2(&f->z, level, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK;
    if (!f->path || (vt_is_gz(path) && !f->gzip))
        rc = vt_nomem(err);
    else if ((f->fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)) < 0)
        rc = vt_fail(err, VT_EINPUT, "%s: cannot write: %s", path, strerror(errno));
    if (rc != VT_OK)
        file_free(f);
    else
        *out = f;
    return rc;
}

/* All at once, so that a kill finds the line whole or not at all. */
static int write_all(struct line_file *f, const void *bytes, size_t n,
                     struct vt_err *err)
{
    const char *p = bytes;

    while (n > 0) {
        ssize_t done = write(f->fd, p, n);

        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return vt_fail(err, VT_EIO, "%s: %s", f->path, strerror(errno));
        p += done;
        n -= (size_t)done;
    }
    return VT_OK;
}

/* Flushed to a byte, so that what is in the file can be read without what follows. */
static int write_packed(struct line_file *f, const void *bytes, size_t n, int flush,
                        struct vt_err *err)
{
    const unsigned char *p = bytes;

    f->n = 0;
    do {
        size_t in = n < MAX_STEP ? n : MAX_STEP, out;
        int rc = vt_grow(&f->room, &f->cap, f->n + in / 4 + 4096, 1, err);

        if (rc != VT_OK)
            return rc;
        out = f->cap - f->n < MAX_STEP ? f->cap - f->n : MAX_STEP;
        f->z.next_in = p;
        f->z.avail_in = (uInt)in;
        f->z.next_out = f->room + f->n;
        f->z.avail_out = (uInt)out;
        deflate(&f->z, flush);
        f->n += out - f->z.avail_out;
        p += in - f->z.avail_in;
        n -= in - f->z.avail_in;
    } while (n > 0 || f->z.avail_out == 0);
    return write_all(f, f->room, f->n, err);
}

int line_file_put(struct line_file *f, const struct vt_buf *lines, struct vt_err *err)
{
    if (lines->failed)
        return vt_within(err, vt_nomem(err), "%s", f->path);
    if (lines->len == 0)
        return VT_OK;
    return f->gzip ? write_packed(f, lines->data, lines->len, Z_SYNC_FLUSH, err)
                   : write_all(f, lines->data, lines->len, err);
}

int line_file_close(struct line_file *f, struct vt_err *err)
{
    int rc = VT_OK, fd;

    if (!f)
        return VT_OK;
    if (f->gzip)
        rc = write_packed(f, "", 0, Z_FINISH, err);
    fd = f->fd;
    f->fd = -1;
    if (close(fd) != 0 && rc == VT_OK)
        rc = vt_fail(err, VT_EIO, "%s: %s", f->path, strerror(errno));
    file_free(f);
    return rc;
}
