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
    if (d.point < -3 || d.point > 16)
        put_power(b, &d);
    else
        put_plain(b, &d);
}
