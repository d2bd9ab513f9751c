/* buf.c - a byte buffer with a ceiling, and the texts written into it. */
#include <assert.h>

#include "base/base.h"

#define DEFAULT_MAX ((size_t)1 << 30)

void vt_buf_free(struct vt_buf *b)
{
    size_t max = b->max;

    free(b->data);
    *b = (struct vt_buf){.max = max};
}

void vt_buf_clear(struct vt_buf *b)
{
    b->len = 0;
    b->failed = false;
    if (b->data)
        b->data[0] = '\0';
}

void vt_buf_clear_most(struct vt_buf *b, size_t keep)
{
    if (b->cap > keep)
        vt_buf_free(b);
    else
        vt_buf_clear(b);
}

/* Room for `more` bytes and the NUL after them. */
static bool reserve(struct vt_buf *b, size_t more)
{
    size_t max = b->max ? b->max : DEFAULT_MAX;

    if (b->failed)
        return false;
    if (b->len > max || more > max - b->len ||
        vt_grow(&b->data, &b->cap, b->len + more + 1, 1, NULL) != VT_OK)
        b->failed = true;
    return !b->failed;
}

char *vt_buf_room(struct vt_buf *b, size_t more)
{
    return reserve(b, more) ? b->data + b->len : NULL;
}

void vt_buf_upto(struct vt_buf *b, const char *end)
{
    assert(end >= b->data + b->len && end < b->data + b->cap);
    b->len = (size_t)(end - b->data);
    b->data[b->len] = '\0';
}

void vt_buf_add(struct vt_buf *b, const void *bytes, size_t len)
{
    if (!reserve(b, len))
        return;
    if (len > 0)
        memcpy(b->data + b->len, bytes, len);
    b->len += len;
    b->data[b->len] = '\0';
}

void vt_buf_str(struct vt_buf *b, const char *text)
{
    vt_buf_add(b, text, strlen(text));
}

void vt_buf_char(struct vt_buf *b, char c)
{
    vt_buf_add(b, &c, 1);
}

void vt_buf_vprintf(struct vt_buf *b, const char *fmt, va_list args)
{
    va_list again;
    char small[256];
    int n;

    va_copy(again, args);
    n = vsnprintf(small, sizeof(small), fmt, args);
    if (n < 0) {
        b->failed = true;
    } else if ((size_t)n < sizeof(small)) {
        vt_buf_add(b, small, (size_t)n);
    } else if (reserve(b, (size_t)n)) {
        vsnprintf(b->data + b->len, (size_t)n + 1, fmt, again);
        b->len += (size_t)n;
    }
    va_end(again);
}

void vt_buf_printf(struct vt_buf *b, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    vt_buf_vprintf(b, fmt, args);
    va_end(args);
}

void vt_buf_hex(struct vt_buf *b, const void *bytes, size_t len)
{
    const unsigned char *at = bytes;
    char *p = vt_buf_room(b, 2 * len);

    if (!p)
        return;
    for (size_t i = 0; i < len; i++) {
        *p++ = "0123456789abcdef"[at[i] >> 4];
        *p++ = "0123456789abcdef"[at[i] & 15];
    }
    vt_buf_upto(b, p);
}

char *vt_u64_at(char *p, uint64_t v)
{
    char digits[20];
    size_t n = 0;

    do
        digits[n++] = (char)('0' + v % 10);
    while (v /= 10);
    while (n > 0)
        *p++ = digits[--n];
    return p;
}

char *vt_ms_at(char *p, vt_ns t)
{
    uint64_t ns = t < 0 ? 0 - (uint64_t)t : (uint64_t)t;
    uint32_t rest = (uint32_t)(ns % (uint64_t)VT_MS);

    if (t < 0)
        *p++ = '-';
    p = vt_u64_at(p, ns / (uint64_t)VT_MS);
    if (rest == 0)
        return p;
    p[0] = '.';
    for (int i = 6; i >= 1; i--, rest /= 10)
        p[i] = (char)('0' + rest % 10);
    for (p += 7; p[-1] == '0';)
        p--;
    return p;
}

void vt_buf_u64(struct vt_buf *b, uint64_t v)
{
    char text[20];

    vt_buf_add(b, text, (size_t)(vt_u64_at(text, v) - text));
}

void vt_buf_i64(struct vt_buf *b, int64_t v)
{
    char text[21], *p = text;

    if (v < 0)
        *p++ = '-';
    p = vt_u64_at(p, v < 0 ? 0 - (uint64_t)v : (uint64_t)v); /* INT64_MIN too */
    vt_buf_add(b, text, (size_t)(p - text));
}

void vt_buf_f64(struct vt_buf *b, double v)
{
    char text[32];

    vt_buf_add(b, text, vt_fmt_f64(text, v));
}
