/* append.c - lines that are in the file as soon as they are written: a process that is
 * killed has lost none of them, and a full disk leaves none of them cut. */
#define ZLIB_CONST

#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

enum { MAX_STEP = 1 << 30 };

struct vt_append {
    char *path;
    int fd;
    bool gzip;
    bool torn; /* it ends in the middle of something: nothing may follow */
    z_stream z;
    unsigned char *room; /* packed bytes of one put: it becomes one write */
    size_t n, cap;
};

/* ---- what is there ---------------------------------------------------- */

static int cannot_append(struct vt_err *err, const char *path)
{
    return vt_fail(err, VT_EINPUT, "%s: cannot append: %s", path, strerror(errno));
}

/* Reads up to `n` bytes at `at`; fewer only at the end of the file. */
static int read_at(int fd, void *to, size_t n, off_t at)
{
    char *p = to;

    while (n > 0) {
        ssize_t got = pread(fd, p, n, at);

        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got < 0 ? -1 : 0;
        p += got;
        at += got;
        n -= (size_t)got;
    }
    return 0;
}

/* Where the last line begins that has no line end; `size` if there is none. */
static int find_last_line(int fd, off_t size, off_t *start)
{
    char part[4096];

    for (off_t end = size; end > 0;) {
        size_t n = end < (off_t)sizeof(part) ? (size_t)end : sizeof(part);

        if (read_at(fd, part, n, end - (off_t)n) != 0)
            return -1;
        for (; n > 0; n--, end--)
            if (part[n - 1] == '\n') {
                *start = end;
                return 0;
            }
    }
    *start = 0;
    return 0;
}

/* What a writer has left of a line goes; a whole one gets its line end. */
static int mend_plain(int fd, const char *path, off_t size, struct vt_err *err)
{
    char *line;
    off_t start;
    bool cut, ok;

    if (find_last_line(fd, size, &start) != 0)
        return cannot_append(err, path);
    if (start == size)
        return VT_OK;
    line = malloc((size_t)(size - start));
    if (!line)
        return vt_nomem(err);
    ok = read_at(fd, line, (size_t)(size - start), start) == 0;
    cut = ok && vt_json_is_cut(line, (size_t)(size - start));
    free(line);
    if (ok)
        ok = cut ? ftruncate(fd, start) == 0 : pwrite(fd, "\n", 1, size) == 1;
    return ok ? VT_OK : cannot_append(err, path);
}

/* Every whole line, to `to` if that is not NULL. *whole: nothing else is in the file.
 */
static int copy_lines(const char *path, struct vt_out *to, bool *whole,
                      struct vt_err *err)
{
    struct vt_lines *lines;
    bool complete = true;
    size_t len;
    char *line;
    int rc = vt_lines_open(&lines, path, err);

    if (rc != VT_OK)
        return rc;
    while ((rc = vt_lines_next(lines, &line, &len, &complete, err)) == VT_OK && line) {
        *whole = complete;
        if (!complete && vt_json_is_cut(line, len))
            break;
        if (to && ((rc = vt_out_write(to, line, len, err)) ||
                   (rc = vt_out_write(to, "\n", 1, err))))
            break;
    }
    if (vt_lines_cut(lines)) {
        *whole = false;
        rc = rc == VT_EINPUT ? VT_OK : rc; /* in the middle of a line */
    }
    vt_lines_close(lines);
    return rc;
}

/* A gzip stream that was cut cannot be gone on with: what can be read of it is packed
 * anew. */
static int mend_packed(const char *path, struct vt_err *err)
{
    struct vt_out *o;
    bool whole = true;
    int rc = copy_lines(path, NULL, &whole, err);

    if (rc != VT_OK || whole)
        return rc;
    rc = vt_out_open(&o, path, err);
    return rc ? rc : vt_out_end(o, copy_lines(path, o, &whole, err), err);
}

/* Makes a file end behind its last whole line. */
static int mend(const char *path, struct vt_err *err)
{
    static const unsigned char magic[2] = {0x1f, 0x8b};
    unsigned char first[sizeof(magic)] = {0};
    int rc = VT_OK, fd = open(path, O_RDWR | O_CLOEXEC);
    struct stat st;
    bool packed;

    if (fd < 0) /* it is not there, or opening it will tell */
        return VT_OK;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size == 0)
        goto out;
    if (read_at(fd, first, sizeof(first), 0) != 0) {
        rc = cannot_append(err, path);
        goto out;
    }
    packed = memcmp(first, magic, sizeof(magic)) == 0;
    if (vt_is_gz(path) && st.st_size == 1 && first[0] == magic[0])
        rc = ftruncate(fd, 0) == 0 ? VT_OK : cannot_append(err, path);
    else if (packed != vt_is_gz(path))
        rc = vt_fail(err, VT_EINPUT, "%s: cannot append: it is %sgzip", path,
                     packed ? "" : "no ");
    else
        rc = packed ? mend_packed(path, err) : mend_plain(fd, path, st.st_size, err);
out:
    close(fd);
    return rc;
}

/* ---- life ------------------------------------------------------------- */

static void append_free(struct vt_append *f)
{
    if (f->gzip)
        deflateEnd(&f->z);
    if (f->fd >= 0)
        close(f->fd);
    free(f->path);
    free(f->room);
    free(f);
}

int vt_append_open(struct vt_append **out, const char *path, int level, bool more,
                   struct vt_err *err)
{
    int flags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | (more ? 0 : O_TRUNC);
    struct vt_append *f = calloc(1, sizeof(*f));
    int rc = more && f ? mend(path, err) : VT_OK;

    *out = NULL;
    if (!f)
        return vt_nomem(err);
    f->fd = -1;
    f->path = strdup(path);
    f->gzip =
        f->path && vt_is_gz(path) &&
        deflateInit2(&f->z, level, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK;
    if (rc == VT_OK && (!f->path || (vt_is_gz(path) && !f->gzip)))
        rc = vt_nomem(err);
    if (rc == VT_OK && (f->fd = open(path, flags, 0666)) < 0)
        rc = vt_fail(err, VT_EINPUT, "%s: cannot write: %s", path, strerror(errno));
    if (rc != VT_OK)
        append_free(f);
    else
        *out = f;
    return rc;
}

/* ---- writing ---------------------------------------------------------- */

/* A write that failed half way is undone. Where it cannot be (no file with an end, or
 * other trouble), and where zlib has already counted what is gone, that was the end. */
static void take_back(struct vt_append *f, const struct stat *before, size_t done)
{
    bool undone = done == 0 ||
                  (S_ISREG(before->st_mode) && ftruncate(f->fd, before->st_size) == 0);

    f->torn = f->gzip || !undone;
}

/* All at once, so that a kill finds the lines whole or not at all. */
static int write_all(struct vt_append *f, const void *bytes, size_t n,
                     struct vt_err *err)
{
    const char *p = bytes;
    struct stat before;
    size_t done = 0;

    if (fstat(f->fd, &before) != 0)
        return vt_fail(err, VT_EIO, "%s: %s", f->path, strerror(errno));
    while (done < n) {
        ssize_t k = write(f->fd, p + done, n - done);

        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0) {
            vt_fail(err, VT_EIO, "%s: %s", f->path, strerror(errno));
            take_back(f, &before, done);
            return VT_EIO;
        }
        done += (size_t)k;
    }
    return VT_OK;
}

/* Flushed to a byte, so that what is in the file can be read without what follows. */
static int write_packed(struct vt_append *f, const void *bytes, size_t n, int flush,
                        struct vt_err *err)
{
    const unsigned char *p = bytes;

    f->n = 0;
    do {
        size_t in = n < MAX_STEP ? n : MAX_STEP, out;
        int rc = vt_grow(&f->room, &f->cap, f->n + in / 4 + 4096, 1, err);

        if (rc != VT_OK) {
            f->torn = true;
            return rc;
        }
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

int vt_append_put(struct vt_append *f, const struct vt_buf *lines, struct vt_err *err)
{
    if (lines->failed)
        return vt_within(err, vt_nomem(err), "%s", f->path);
    if (f->torn)
        return vt_fail(err, VT_EIO, "%s: an earlier line could not be written",
                       f->path);
    if (lines->len == 0)
        return VT_OK;
    return f->gzip ? write_packed(f, lines->data, lines->len, Z_SYNC_FLUSH, err)
                   : write_all(f, lines->data, lines->len, err);
}

int vt_append_close(struct vt_append *f, struct vt_err *err)
{
    int rc = VT_OK, fd;

    if (!f)
        return VT_OK;
    if (f->gzip && !f->torn)
        rc = write_packed(f, "", 0, Z_FINISH, err);
    fd = f->fd;
    f->fd = -1;
    if (close(fd) != 0 && rc == VT_OK)
        rc = vt_fail(err, VT_EIO, "%s: %s", f->path, strerror(errno));
    append_free(f);
    return rc;
}
