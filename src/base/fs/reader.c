/* reader.c - plain or gzip bytes from a file or memory.
 *
 * zlib's inflate, not gzopen: gzopen passes a cut file off as a short one. */
#include "base/fs/reader.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ROOM = 256 << 10, MAX_STEP = 1 << 30 };

static int read_fd(int fd, void *out, size_t cap, size_t *got, struct vt_err *err)
{
    ssize_t n;

    do
        n = read(fd, out, cap);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return vt_fail(err, VT_EIO, "%s", strerror(errno));
    *got = (size_t)n;
    return VT_OK;
}

/* Appends to what is left in room. */
static int fill_room(struct vt_reader *r, struct vt_err *err)
{
    size_t got = 0;
    int rc;

    if (r->at_end)
        return VT_OK;
    if (r->left > 0)
        memmove(r->room, r->next, r->left);
    r->next = r->room;
    rc = read_fd(r->fd, r->room + r->left, ROOM - r->left, &got, err);
    if (rc != VT_OK)
        return rc;
    r->left += got;
    r->at_end = got == 0;
    return VT_OK;
}

/* A pipe may deliver the two magic bytes one by one. */
static int recognise(struct vt_reader *r, struct vt_err *err)
{
    while (r->left < 2 && !r->at_end) {
        int rc = fill_room(r, err);

        if (rc != VT_OK)
            return rc;
    }
    if (r->left < 2 || r->next[0] != 0x1f || r->next[1] != 0x8b)
        return VT_OK;
    if (inflateInit2(&r->z, 15 + 16) != Z_OK)
        return vt_nomem(err);
    r->gzip = r->in_member = true;
    return VT_OK;
}

static struct vt_buf *noted; /* see vt_note_inputs() */

void vt_note_inputs(struct vt_buf *names)
{
    noted = names;
}

/* Each name once: some files are looked into before they are read. */
static void note_input(const char *path)
{
    size_t len = strlen(path) + 1;

    for (size_t at = 0; at < noted->len; at += strlen(noted->data + at) + 1)
        if (strcmp(noted->data + at, path) == 0)
            return;
    vt_buf_add(noted, path, len);
}

int vt_reader_open(struct vt_reader *r, const char *path, struct vt_err *err)
{
    int rc, fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;

    if (fd < 0)
        return vt_fail(err, VT_EINPUT, "%s: %s", path, strerror(errno));
    if (fstat(fd, &st) == 0 && S_ISDIR(st.st_mode)) {
        close(fd);
        return vt_fail(err, VT_EINPUT, "%s: %s", path, strerror(EISDIR));
    }
    if (noted)
        note_input(path);
    *r = (struct vt_reader){.fd = fd, .room = malloc(ROOM)};
    rc = r->room ? recognise(r, err) : vt_nomem(err);
    if (rc != VT_OK)
        vt_reader_close(r);
    return vt_within(err, rc, "%s", path);
}

int vt_reader_from(struct vt_reader *r, const void *bytes, size_t len,
                   struct vt_err *err)
{
    *r = (struct vt_reader){
        .fd = -1, .next = bytes ? bytes : "", .left = len, .at_end = true};
    return recognise(r, err);
}

static int read_plain(struct vt_reader *r, void *out, size_t cap, size_t *got,
                      struct vt_err *err)
{
    if (r->left == 0 && !r->at_end) {
        int rc = read_fd(r->fd, out, cap, got, err);

        if (rc == VT_OK)
            r->at_end = *got == 0;
        return rc;
    }
    *got = r->left < cap ? r->left : cap;
    if (*got > 0)
        memcpy(out, r->next, *got);
    r->next += *got;
    r->left -= *got;
    return VT_OK;
}

/* One call of inflate on what is left; *got bytes came out. */
static int inflate_some(struct vt_reader *r, void *out, size_t cap, size_t *got)
{
    size_t in = r->left < MAX_STEP ? r->left : MAX_STEP;
    size_t room = cap < MAX_STEP ? cap : MAX_STEP;
    int z;

    r->z.next_in = r->next;
    r->z.avail_in = (uInt)in;
    r->z.next_out = out;
    r->z.avail_out = (uInt)room;
    z = inflate(&r->z, Z_NO_FLUSH);
    r->next += in - r->z.avail_in;
    r->left -= in - r->z.avail_in;
    *got = room - r->z.avail_out;
    return z;
}

static int read_gzip(struct vt_reader *r, void *out, size_t cap, size_t *got,
                     struct vt_err *err)
{
    for (;;) {
        int rc = r->left == 0 ? fill_room(r, err) : VT_OK, z;

        if (rc != VT_OK)
            return rc;
        if (r->left == 0 && !r->in_member)
            return VT_OK;
        if (!r->in_member && inflateReset(&r->z) != Z_OK)
            return vt_nomem(err);
        r->in_member = true;
        z = inflate_some(r, out, cap, got);
        if (z == Z_STREAM_END)
            r->in_member = false;
        /* What came out before a fault is still good; the fault comes up again. */
        if (*got > 0)
            return VT_OK;
        if (z == Z_MEM_ERROR)
            return vt_nomem(err);
        if (z == Z_BUF_ERROR && r->left == 0 && r->at_end) {
            r->cut = true;
            return vt_fail(err, VT_EINPUT, "truncated gzip data");
        }
        if (z != Z_OK && z != Z_STREAM_END && z != Z_BUF_ERROR)
            return vt_fail(err, VT_EINPUT, "damaged gzip data");
    }
}

int vt_reader_read(struct vt_reader *r, void *out, size_t cap, size_t *got,
                   struct vt_err *err)
{
    *got = 0;
    if (r->gzip)
        return read_gzip(r, out, cap, got, err);
    return read_plain(r, out, cap, got, err);
}

void vt_reader_close(struct vt_reader *r)
{
    if (r->gzip)
        inflateEnd(&r->z);
    if (r->fd >= 0)
        close(r->fd);
    free(r->room);
    *r = (struct vt_reader){.fd = -1};
}

int vt_read_file(const char *path, size_t max, struct vt_buf *out, struct vt_err *err)
{
    struct vt_reader r;
    size_t got, ceiling = out->max;
    char *room;
    int rc = vt_reader_open(&r, path, err);

    if (rc != VT_OK)
        return rc;
    vt_buf_clear(out);
    out->max = max < SIZE_MAX ? max + 1 : max; /* 0 would mean the default */
    vt_buf_str(out, ""); /* an empty file is an empty text, not NULL */
    room = malloc(ROOM);
    if (!room)
        rc = vt_nomem(err);
    while (room && rc == VT_OK) {
        rc = vt_reader_read(&r, room, ROOM, &got, err);
        if (rc != VT_OK || got == 0)
            break;
        if (got > max - out->len)
            rc = vt_fail(err, VT_EINPUT, "longer than %zu bytes", max);
        vt_buf_add(out, room, rc == VT_OK ? got : 0);
        if (out->failed)
            rc = vt_nomem(err);
    }
    out->max = ceiling;
    free(room);
    vt_reader_close(&r);
    return vt_within(err, rc, "%s", path);
}
