/* pyjson.c - numbers and texts as Python's json module writes them, so that files of
 * both tools can be compared byte by byte. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "load/load.h"

struct decimal { /* 0.d1d2d3... times ten to the power of `point` */
    char digit[24];
    size_t n;
    int point;
};

/* From any way of writing a number: 12, 0.012, 1.2e-5. */
static void split(struct decimal *d, const char *text)
{
    bool behind = false;

    *d = (struct decimal){0};
    for (; *text && *text != 'e'; text++) {
        if (*text == '.')
            behind = true;
        if (*text < '0' || *text > '9')
            continue;
        if (d->n > 0 || *text != '0')
            d->digit[d->n < sizeof(d->digit) ? d->n++ : d->n - 1] = *text;
        if (!behind && d->n > 0)
            d->point++;
        if (behind && d->n == 0)
            d->point--;
    }
    if (*text == 'e')
        d->point += (int)strtol(text + 1, NULL, 10);
    while (d->n > 1 && d->digit[d->n - 1] == '0')
        d->n--;
}

static void put_power(struct vt_buf *b, const struct decimal *d)
{
    int e = d->point - 1;

    vt_buf_char(b, d->digit[0]);
    if (d->n > 1)
        vt_buf_char(b, '.');
    vt_buf_add(b, d->digit + 1, d->n - 1);
    vt_buf_printf(b, "e%c%02d", e < 0 ? '-' : '+', e < 0 ? -e : e);
}

static void put_plain(struct vt_buf *b, const struct decimal *d)
{
    int n = (int)d->n;

    if (d->point <= 0)
        vt_buf_char(b, '0');
    for (int i = 0; i < d->point; i++)
        vt_buf_char(b, i < n ? d->digit[i] : '0');
    vt_buf_char(b, '.');
    for (int i = d->point; i < 0; i++)
        vt_buf_char(b, '0');
    for (int i = d->point > 0 ? d->point : 0; i < n; i++)
        vt_buf_char(b, d->digit[i]);
    if (n <= d->point)
        vt_buf_char(b, '0');
}

/* repr(): the shortest digits that read back equal; as 1e-05 or 1e+16 outside of
 * [1e-4, 1e16), with a fraction otherwise. */
void vt_load_py_f64(struct vt_buf *b, double v)
{
    struct decimal d;
    char text[32];

    if (isnan(v) || isinf(v)) {
        vt_buf_str(b, isnan(v) ? "NaN" : v > 0 ? "Infinity" : "-Infinity");
        return;
    }
    if (signbit(v))
        vt_buf_char(b, '-');
    if (v == 0) {
        vt_buf_str(b, "0.0");
        return;
    }
    (void)vt_fmt_f64(text, v);
    split(&d, text);
    if (d.point < -3 || d.point > 16)
        put_power(b, &d);
    else
        put_plain(b, &d);
}

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
