/* buf.c - a byte buffer with a ceiling, and the texts written into it. */
#include "base/base.h"
#include "base/text.h"

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

void vt_buf_printf(struct vt_buf *b, const char *fmt, ...)
{
    va_list args, again;
    char small[256];
    int n;

    va_start(args, fmt);
    va_copy(again, args);
    n = vsnprintf(small, sizeof(small), fmt, args);
    va_end(args);
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

void vt_buf_u64(struct vt_buf *b, uint64_t v)
{
    char digits[20];
    size_t at = sizeof(digits);

    do {
        digits[--at] = (char)('0' + v % 10);
        v /= 10;
    } while (v > 0);
    vt_buf_add(b, digits + at, sizeof(digits) - at);
}

/* The magnitude, safe for INT64_MIN. */
static uint64_t magnitude(int64_t v)
{
    return v < 0 ? 0 - (uint64_t)v : (uint64_t)v;
}

void vt_buf_i64(struct vt_buf *b, int64_t v)
{
    if (v < 0)
        vt_buf_char(b, '-');
    vt_buf_u64(b, magnitude(v));
}

void vt_buf_f64(struct vt_buf *b, double v)
{
    char text[32];

    vt_buf_add(b, text, vt_fmt_f64(text, v));
}

void vt_buf_ms(struct vt_buf *b, vt_ns t)
{
    uint64_t ns = magnitude(t);
    uint64_t rest = ns % (uint64_t)VT_MS;
    char digits[7] = {'.'};
    size_t n = 7;

    if (t < 0)
        vt_buf_char(b, '-');
    vt_buf_u64(b, ns / (uint64_t)VT_MS);
    if (rest == 0)
        return;
    for (size_t i = 6; i >= 1; i--) {
        digits[i] = (char)('0' + rest % 10);
        rest /= 10;
    }
    while (digits[n - 1] == '0')
        n--;
    vt_buf_add(b, digits, n);
}

static void add_escape(struct vt_buf *b, unsigned char c)
{
    static const char short_form[] = {
        ['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n',  ['\f'] = 'f',
        ['\r'] = 'r', ['"'] = '"',  ['\\'] = '\\',
    };

    if (c < sizeof(short_form) && short_form[c]) {
        vt_buf_char(b, '\\');
        vt_buf_char(b, short_form[c]);
    } else {
        vt_buf_printf(b, "\\u%04x", (unsigned)c);
    }
}

/* Bytes that are not UTF-8 become U+FFFD: what we write is always JSON. */
void vt_buf_json_str(struct vt_buf *b, const char *text, size_t len)
{
    size_t from = 0, i = 0;

    vt_buf_char(b, '"');
    while (i < len) {
        unsigned char c = (unsigned char)text[i];
        size_t n = vt_utf8_len(text + i, len - i);

        if (n > 0 && c >= 0x20 && c != '"' && c != '\\') {
            i += n;
            continue;
        }
        vt_buf_add(b, text + from, i - from);
        if (n == 0)
            vt_buf_str(b, "\xef\xbf\xbd");
        else
            add_escape(b, c);
        from = ++i;
    }
    if (len > 0)
        vt_buf_add(b, text + from, len - from);
    vt_buf_char(b, '"');
}
