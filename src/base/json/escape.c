/* escape.c - texts as JSON strings. */
#include "base/json/reader.h"

/* What stands behind the backslash; 'u': a code; 0: the byte is itself; 1: the first of
 * a longer character. */
#define X8(v)  v, v, v, v, v, v, v, v
#define X32(v) X8(v), X8(v), X8(v), X8(v)
static const char escape[256] = {
    'u',    'u',    'u',     'u',     'u',         'u',           'u',
    'u',    'b',    't',     'n',     'u',         'f',           'r',
    'u',    'u',    X8('u'), X8('u'), ['"'] = '"', ['\\'] = '\\', [0x80] = X32(1),
    X32(1), X32(1), X32(1),
};

static char *put_unit(char *p, uint32_t unit)
{
    static const char digits[] = "0123456789abcdef";

    *p++ = '\\';
    *p++ = 'u';
    for (int shift = 12; shift >= 0; shift -= 4)
        *p++ = digits[unit >> shift & 15];
    return p;
}

/* The character of n bytes, or U+FFFD for n == 0: what we write is always JSON. */
static char *put_long(char *p, const unsigned char *s, size_t n, bool ascii)
{
    const char *from = n ? (const char *)s : "\xef\xbf\xbd";
    uint32_t c;

    if (!ascii) {
        memcpy(p, from, n ? n : 3);
        return p + (n ? n : 3);
    }
    (void)vt_utf8_get(from, &c);
    if (c < 0x10000)
        return put_unit(p, c);
    p = put_unit(p, 0xd800 + ((c - 0x10000) >> 10));
    return put_unit(p, 0xdc00 + ((c - 0x10000) & 0x3ff));
}

/* Escapes from *at until at least `stop`, by whole characters. Inlined where `ascii` is
 * known: tokens are short, and this is called for each. */
__attribute__((always_inline)) static inline char *
escape_some(char *p, const unsigned char **at, const unsigned char *stop,
            const unsigned char *end, bool ascii)
{
    const unsigned char *s = *at;

    while (s < stop) {
        char how = 0;

        while (stop - s >= 8 && !vt_json_any_special((const char *)s)) {
            memcpy(p, s, 8);
            p += 8;
            s += 8;
        }
        while (s < stop && (how = escape[*s]) == 0)
            *p++ = (char)*s++;
        if (how == 0)
            break;
        if (how == 1) {
            size_t n = vt_utf8_len((const char *)s, (size_t)(end - s));

            p = put_long(p, s, n, ascii);
            s += n ? n : 1;
        } else if (how == 'u') {
            p = put_unit(p, *s++);
        } else {
            *p++ = '\\';
            *p++ = how;
            s++;
        }
    }
    *at = s;
    return p;
}

/* Copies what has nothing to escape and no longer characters, most keys and many texts,
 * by words, the last of which may overlap; false: something is in it, or it is very
 * short. */
static bool copy_plain(char *p, const char *text, size_t len)
{
    char ends[8];

    if (len < 4)
        return false;
    if (len < 8) {
        memcpy(ends, text, 4);
        memcpy(ends + 4, text + len - 4, 4);
        if (vt_json_any_special(ends))
            return false;
        memcpy(p, ends, 4);
        memcpy(p + len - 4, ends + 4, 4);
        return true;
    }
    for (size_t i = 0; i < len; i += 8) {
        size_t at = i + 8 <= len ? i : len - 8;

        if (vt_json_any_special(text + at))
            return false;
        memcpy(p + at, text + at, 8);
    }
    return true;
}

char *vt_json_str_at(char *p, const char *text, size_t len)
{
    const unsigned char *s = (const unsigned char *)text;

    *p++ = '"';
    if (copy_plain(p, text, len))
        p += len;
    else
        p = escape_some(p, &s, s + len, s + len, false);
    *p++ = '"';
    return p;
}

/* Piece by piece: nothing beyond the result counts against the buffer's ceiling. */
static void add_escaped(struct vt_buf *b, const char *text, size_t len, bool ascii)
{
    enum { PIECE = 160 };
    const unsigned char *s = (const unsigned char *)text, *end = s + len;
    char room[6 * (PIECE + 4) + 2], *p = room;

    *p++ = '"';
    while (end - s > PIECE) {
        p = escape_some(p, &s, s + PIECE, end, ascii);
        vt_buf_add(b, room, (size_t)(p - room));
        p = room;
    }
    p = escape_some(p, &s, end, end, ascii);
    *p++ = '"';
    vt_buf_add(b, room, (size_t)(p - room));
}

void vt_buf_json_str(struct vt_buf *b, const char *text, size_t len)
{
    add_escaped(b, text, len, false);
}

void vt_buf_json_ascii(struct vt_buf *b, const char *text, size_t len)
{
    add_escaped(b, text, len, true);
}
