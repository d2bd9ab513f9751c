/* python.c - numbers as Python writes them, so that files and answers of both can be
 * compared byte by byte. */
#include <math.h>
#include <stdlib.h>

#include "base/base.h"

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

/* With a fraction, for numbers of at most 17 digits from 1e-4 to 1e16. */
static void put_plain(struct vt_buf *b, const char *digit, int n, int point)
{
    char text[48], *p = text;

    if (point <= 0) {
        *p++ = '0';
        *p++ = '.';
    }
    for (int i = point; i < 0; i++)
        *p++ = '0';
    for (int i = 0; i < n || i <= point; i++) {
        if (i == point && point > 0)
            *p++ = '.';
        *p++ = i < n ? digit[i] : '0';
    }
    vt_buf_add(b, text, (size_t)(p - text));
}

void vt_buf_py_f64(struct vt_buf *b, double v)
{
    struct decimal d;
    char text[32];

    if (!isfinite(v)) {
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
    if (d.point >= -3 && d.point <= 16) {
        put_plain(b, d.digit, (int)d.n, d.point);
        return;
    }
    vt_buf_char(b, d.digit[0]);
    if (d.n > 1)
        vt_buf_char(b, '.');
    vt_buf_add(b, d.digit + 1, d.n - 1);
    vt_buf_printf(b, "e%c%02d", d.point < 1 ? '-' : '+', abs(d.point - 1));
}

/* ---- single precision ------------------------------------------------ */

__extension__ typedef unsigned __int128 wide;

struct digits { /* 0.ddd times 10^whole */
    uint64_t all;
    int n, whole;
};

/* mantissa / 2^shift, the mantissa of 24 bits, as n digits; true: they read back as the
 * same double. Of that the lower 29 bits are 0, so half its last place is 2^-30 of the
 * mantissa's, and half of that just below a power of two. */
static bool round_to(uint32_t mantissa, int shift, struct digits *d)
{
    wide half = (wide)1 << shift >> 1, scale = 1, exact, rounded, rest, off;

    for (int n = d->n - d->whole; n > 0; n--)
        scale *= 10;
    exact = scale * mantissa;
    rounded = exact >> shift;
    off = rest = exact - (rounded << shift);
    if (rest > half || (rest == half && (rounded & 1))) {
        rounded++;
        off = ((wide)1 << shift) - rest;
    }
    d->all = (uint64_t)rounded;
    return off << (mantissa == 1U << 23 ? 31 : 30) <= scale;
}

static void put_digits(struct vt_buf *b, struct digits d, bool negative)
{
    char digit[24] = {0};
    int n = 0;

    for (uint64_t rest = d.all; rest > 0; rest /= 10)
        n++;
    d.whole += n - d.n; /* rounded up to a power of ten */
    for (int i = n; i > 0; d.all /= 10)
        digit[--i] = (char)('0' + d.all % 10);
    while (n > 1 && digit[n - 1] == '0')
        n--;
    if (negative)
        vt_buf_char(b, '-');
    put_plain(b, digit, n, d.whole);
}

void vt_buf_py_f32(struct vt_buf *b, float v)
{
    static const double limit[] = {1e-3, 1e-2, 1e-1, 1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6};
    double size = fabs((double)v);
    struct digits d = {.n = 14, .whole = -3};
    int exponent;
    uint32_t mantissa;

    if (!(size >= 1e-4 && size < 1e6)) { /* rare, and not worth the care */
        vt_buf_py_f64(b, (double)v);
        return;
    }
    while (size >= limit[d.whole + 3])
        d.whole++;
    mantissa = (uint32_t)(frexp(size, &exponent) * (1 << 24));
    do
        d.n++;
    while (!round_to(mantissa, 24 - exponent, &d) && d.n < 17);
    put_digits(b, d, v < 0);
}
