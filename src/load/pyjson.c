/* pyjson.c - texts as Python's json module writes them, so that files of both tools can
 * be compared byte by byte. */
#include <string.h>

#include "load/load.h"

static void put_unit(struct vt_buf *b, uint32_t unit)
{
    vt_buf_printf(b, "\\u%04x", (unsigned)unit);
}

/* One UTF-8 character; returns its length, 1 for what is none. */
static size_t character(const unsigned char *p, size_t n, uint32_t *c)
{
    size_t len = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : p[0] >= 0xc2 ? 2 : 1;

    *c = len == 1 ? 0xfffd : p[0] & (0xffU >> (len + 1));
    if (len > n)
        len = 1;
    for (size_t i = 1; i < len; i++) {
        if ((p[i] & 0xc0) != 0x80) {
            len = 1;
            break;
        }
        *c = *c << 6 | (p[i] & 0x3fU);
    }
    if (len == 1 || *c > 0x10ffff)
        *c = 0xfffd;
    return len;
}

void vt_load_py_str(struct vt_buf *b, const char *text, size_t len)
{
    static const char from[] = "\"\\\n\r\t\f\b", to[] = "\"\\nrtfb";
    const unsigned char *p = (const unsigned char *)text;

    vt_buf_char(b, '"');
    for (size_t i = 0; i < len;) {
        const char *known = p[i] ? memchr(from, p[i], sizeof(from) - 1) : NULL;
        uint32_t c = p[i];

        if (known) {
            vt_buf_char(b, '\\');
            vt_buf_char(b, to[known - from]);
            i++;
        } else if (c >= 0x80) {
            i += character(p + i, len - i, &c);
            if (c >= 0x10000) {
                put_unit(b, 0xd800 + ((c - 0x10000) >> 10));
                c = 0xdc00 + ((c - 0x10000) & 0x3ff);
            }
            put_unit(b, c);
        } else if (c < 0x20) {
            put_unit(b, c);
            i++;
        } else {
            vt_buf_char(b, (char)c);
            i++;
        }
    }
    vt_buf_char(b, '"');
}
