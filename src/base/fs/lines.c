/* lines.c - text files line by line, and a line's fields. */
#include "base/base.h"
#include "base/fs/reader.h"

#define MAX_LINE ((size_t)256 << 20)
enum { STEP = 128 << 10 };

struct vt_lines {
    char *name;
    struct vt_reader reader;
    char *buf;
    size_t cap;
    size_t start;   /* of the next line */
    size_t scanned; /* no newline in [start, scanned) */
    size_t end;
    uint32_t number;
    bool at_end;
};

/* Of the file of that name, or of bytes in memory. */
static int open_lines(struct vt_lines **out, const char *name, bool in_file,
                      const void *bytes, size_t len, struct vt_err *err)
{
    struct vt_lines *l = calloc(1, sizeof(*l));
    int rc;

    *out = NULL;
    if (!l)
        return vt_nomem(err);
    l->name = strdup(name);
    if (!l->name)
        rc = vt_nomem(err);
    else
        rc = in_file ? vt_reader_open(&l->reader, name, err)
                     : vt_reader_from(&l->reader, bytes, len, err);
    if (rc != VT_OK) {
        free(l->name);
        free(l);
        return rc;
    }
    *out = l;
    return VT_OK;
}

int vt_lines_open(struct vt_lines **out, const char *path, struct vt_err *err)
{
    return open_lines(out, path, true, NULL, 0, err);
}

int vt_lines_from(struct vt_lines **out, const char *name, const void *bytes,
                  size_t len, struct vt_err *err)
{
    return open_lines(out, name, false, bytes, len, err);
}

static int within_line(const struct vt_lines *l, struct vt_err *err, int rc)
{
    return vt_within(err, rc, "%s: line %u", l->name, (unsigned)l->number + 1);
}

static int too_long(struct vt_err *err)
{
    return vt_fail(err, VT_EINPUT, "longer than %zu bytes", MAX_LINE);
}

/* Reads some more behind `end`, keeping one byte for a NUL. */
static int refill(struct vt_lines *l, struct vt_err *err)
{
    size_t got = 0;
    int rc;

    if (l->end - l->start > MAX_LINE)
        return too_long(err);
    if (l->start > 0) {
        memmove(l->buf, l->buf + l->start, l->end - l->start);
        l->end -= l->start;
        l->scanned -= l->start;
        l->start = 0;
    }
    rc = vt_grow(&l->buf, &l->cap, l->end + STEP + 1, 1, err);
    if (rc == VT_OK)
        rc =
            vt_reader_read(&l->reader, l->buf + l->end, l->cap - l->end - 1, &got, err);
    if (l->reader.cut && l->end == 0 && l->number > 0)
        rc = VT_OK; /* its writer was killed, but between two lines */
    if (rc != VT_OK)
        return rc;
    l->end += got;
    l->at_end = got == 0;
    return VT_OK;
}

/* Hands out [start, start + len); `used` bytes of the buffer are spent. */
static int hand_out(struct vt_lines *l, size_t len, size_t used, char **line,
                    size_t *len_out, struct vt_err *err)
{
    char *text = l->buf + l->start;

    if (used > len && len > 0 && text[len - 1] == '\r')
        len--;
    if (len > MAX_LINE)
        return within_line(l, err, too_long(err));
    if (memchr(text, '\0', len))
        return within_line(l, err, vt_fail(err, VT_EINPUT, "NUL byte"));
    text[len] = '\0';
    l->start += used;
    l->scanned = l->start;
    l->number++;
    *line = text;
    *len_out = len;
    return VT_OK;
}

int vt_lines_next(struct vt_lines *l, char **line, size_t *len, bool *complete,
                  struct vt_err *err)
{
    *line = NULL;
    *len = 0;
    for (;;) {
        char *newline = NULL;
        size_t left = l->end - l->start;
        int rc;

        if (l->end > l->scanned)
            newline = memchr(l->buf + l->scanned, '\n', l->end - l->scanned);
        if (complete)
            *complete = newline != NULL;
        if (newline) {
            size_t n = (size_t)(newline - l->buf) - l->start;

            return hand_out(l, n, n + 1, line, len, err);
        }
        l->scanned = l->end;
        if (l->at_end)
            return left > 0 ? hand_out(l, left, left, line, len, err) : VT_OK;
        rc = refill(l, err);
        if (rc != VT_OK)
            return within_line(l, err, rc);
    }
}

uint32_t vt_lines_number(const struct vt_lines *l)
{
    return l->number;
}

bool vt_lines_cut(const struct vt_lines *l)
{
    return l->reader.cut;
}

const char *vt_lines_name(const struct vt_lines *l)
{
    return l->name;
}

void vt_lines_close(struct vt_lines *l)
{
    if (!l)
        return;
    vt_reader_close(&l->reader);
    free(l->buf);
    free(l->name);
    free(l);
}

/* Unquotes the field at `p` in place. Returns its end in the source text, or NULL if
 * the closing quote is missing or something follows it. */
static char *csv_quoted(char *p)
{
    char *w = p++;

    for (;; p++) {
        if (*p == '\0')
            return NULL;
        if (*p == '"' && *++p != '"')
            break;
        *w++ = *p;
    }
    if (*p != ',' && *p != '\0')
        return NULL;
    *w = '\0';
    return p;
}

int vt_csv_split(char *line, char **field, int max)
{
    char *p = line;
    int n = 0;

    for (;;) {
        char *end;
        bool last;

        if (n == max)
            return -1;
        field[n++] = p;
        end = *p == '"' ? csv_quoted(p) : p + strcspn(p, ",");
        if (!end)
            return -1;
        last = *end == '\0';
        *end = '\0';
        if (last)
            return n;
        p = end + 1;
    }
}

void vt_buf_csv(struct vt_buf *b, const char *text, bool always)
{
    if (!always && !strpbrk(text, ",\"\r\n")) {
        vt_buf_str(b, text);
        return;
    }
    vt_buf_char(b, '"');
    for (; *text; text++) {
        if (*text == '"')
            vt_buf_char(b, '"');
        vt_buf_char(b, *text == '\n' || *text == '\r' ? ' ' : *text);
    }
    vt_buf_char(b, '"');
}
