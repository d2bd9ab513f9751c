/* out.c - files that appear whole or not at all. */
#define _XOPEN_SOURCE 700 /* realpath */
#define ZLIB_CONST

#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

enum { ROOM = 256 << 10, MAX_STEP = 1 << 30 };

struct vt_out {
    char *path; /* final name */
    char *temp; /* NULL: written in place, because the target is a device or pipe */
    int fd;
    unsigned char *room;
    size_t n; /* bytes in room */
    bool gzip;
    z_stream z;
};

void vt_out_abandon(struct vt_out *o)
{
    if (!o)
        return;
    if (o->temp && o->fd >= 0)
        unlink(o->temp);
    if (o->gzip)
        deflateEnd(&o->z);
    if (o->fd >= 0)
        close(o->fd);
    free(o->room);
    free(o->temp);
    free(o->path);
    free(o);
}

bool vt_ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), n_end = strlen(end);

    return n >= n_end && strcmp(text + n - n_end, end) == 0;
}

bool vt_is_gz(const char *path)
{
    size_t n = strlen(path);

    return n > 3 && strcmp(path + n - 3, ".gz") == 0;
}

bool vt_is_named(const char *path, const char *end)
{
    size_t n = strlen(path) - (vt_is_gz(path) ? 3 : 0), n_end = strlen(end);

    return n >= n_end && memcmp(path + n - n_end, end, n_end) == 0;
}

/* A link is followed, so that renaming replaces the file and not the link. */
static char *real_target(const char *path)
{
    struct stat st;
    char *real = NULL;

    if (lstat(path, &st) == 0 && S_ISLNK(st.st_mode))
        real = realpath(path, NULL);
    return real ? real : strdup(path);
}

static int open_target(struct vt_out *o, struct vt_err *err)
{
    size_t cap = strlen(o->path) + 32;
    struct stat st;
    bool exists = stat(o->path, &st) == 0;

    if (exists && S_ISDIR(st.st_mode))
        return vt_fail(err, VT_EINPUT, "%s", strerror(EISDIR));
    if (exists && !S_ISREG(st.st_mode)) {
        o->fd = open(o->path, O_WRONLY | O_CLOEXEC);
    } else {
        o->temp = malloc(cap);
        if (!o->temp)
            return vt_nomem(err);
        snprintf(o->temp, cap, "%s.tmp.%ld", o->path, (long)getpid());
        o->fd = open(o->temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    }
    if (o->fd < 0)
        return vt_fail(err, VT_EINPUT, "cannot write: %s", strerror(errno));
    return VT_OK;
}

int vt_out_open(struct vt_out **out, const char *path, struct vt_err *err)
{
    struct vt_out *o = calloc(1, sizeof(*o));
    int rc;

    *out = NULL;
    if (!o)
        return vt_nomem(err);
    o->fd = -1;
    o->path = real_target(path);
    o->room = malloc(ROOM);
    if (vt_is_gz(path))
        o->gzip =
            deflateInit2(&o->z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) == Z_OK;
    if (!o->path || !o->room || o->gzip != vt_is_gz(path))
        rc = vt_nomem(err);
    else
        rc = open_target(o, err);
    if (rc != VT_OK) {
        vt_out_abandon(o);
        return vt_within(err, rc, "%s", path);
    }
    *out = o;
    return VT_OK;
}

static int write_fd(struct vt_out *o, const unsigned char *p, size_t n,
                    struct vt_err *err)
{
    while (n > 0) {
        ssize_t done = write(o->fd, p, n);

        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0)
            return vt_fail(err, VT_EIO, "%s: %s", o->path, strerror(errno));
        p += done;
        n -= (size_t)done;
    }
    return VT_OK;
}

static int flush_room(struct vt_out *o, struct vt_err *err)
{
    size_t n = o->n;

    o->n = 0;
    return write_fd(o, o->room, n, err);
}

/* Packs into room, emptying it whenever it is full. */
static int write_gzip(struct vt_out *o, const unsigned char *p, size_t n, int flush,
                      struct vt_err *err)
{
    int z;

    do {
        size_t in = n < MAX_STEP ? n : MAX_STEP;
        int rc = o->n == ROOM ? flush_room(o, err) : VT_OK;

        if (rc != VT_OK)
            return rc;
        o->z.next_in = p;
        o->z.avail_in = (uInt)in;
        o->z.next_out = o->room + o->n;
        o->z.avail_out = (uInt)(ROOM - o->n);
        z = deflate(&o->z, flush);
        o->n = ROOM - o->z.avail_out;
        p += in - o->z.avail_in;
        n -= in - o->z.avail_in;
    } while (n > 0 || (flush == Z_FINISH && z != Z_STREAM_END));
    return VT_OK;
}

int vt_out_write(struct vt_out *o, const void *bytes, size_t len, struct vt_err *err)
{
    if (o->gzip)
        return len > 0 ? write_gzip(o, bytes, len, Z_NO_FLUSH, err) : VT_OK;
    if (len > ROOM - o->n) {
        int rc = flush_room(o, err);

        if (rc != VT_OK)
            return rc;
    }
    if (len > ROOM)
        return write_fd(o, bytes, len, err);
    if (len > 0)
        memcpy(o->room + o->n, bytes, len);
    o->n += len;
    return VT_OK;
}

int vt_out_flush(struct vt_out *o, struct vt_buf *b, bool all, struct vt_err *err)
{
    enum { LONG = 1 << 16 };
    int rc;

    if (b->failed)
        return vt_nomem(err);
    if (b->len == 0 || (b->len < LONG && !all))
        return VT_OK;
    rc = vt_out_write(o, b->data, b->len, err);
    vt_buf_clear(b);
    return rc;
}

int vt_out_commit(struct vt_out *o, struct vt_err *err)
{
    int rc = o->gzip ? write_gzip(o, o->room, 0, Z_FINISH, err) : VT_OK;
    int fd = o->fd;

    if (rc != VT_OK || (rc = flush_room(o, err)) != VT_OK)
        goto out;
    if (o->temp && fsync(fd) != 0) {
        rc = vt_fail(err, VT_EIO, "%s: %s", o->path, strerror(errno));
        goto out;
    }
    o->fd = -1;
    /* Closing is checked too: some file systems report a full disk only then. */
    if (close(fd) != 0 || (o->temp && rename(o->temp, o->path) != 0)) {
        rc = vt_fail(err, VT_EIO, "%s: %s", o->path, strerror(errno));
        if (o->temp)
            unlink(o->temp);
    }
out:
    vt_out_abandon(o);
    return rc;
}

int vt_out_end(struct vt_out *o, int rc, struct vt_err *err)
{
    if (rc == VT_OK)
        return vt_out_commit(o, err);
    vt_out_abandon(o);
    return rc;
}

int vt_write_file(const char *path, const struct vt_buf *b, struct vt_err *err)
{
    struct vt_out *o;
    int rc = b->failed ? vt_nomem(err) : vt_out_open(&o, path, err);

    if (rc != VT_OK)
        return rc;
    if (b->len > 0)
        rc = vt_out_write(o, b->data, b->len, err);
    return vt_out_end(o, rc, err);
}

int vt_write_file_in(const char *dir, const char *name, const struct vt_buf *b,
                     struct vt_err *err)
{
    struct vt_buf path = {0};
    int rc;

    vt_buf_printf(&path, "%s/%s", dir, name);
    rc = path.failed ? vt_nomem(err) : vt_write_file(path.data, b, err);
    vt_buf_free(&path);
    return rc;
}
