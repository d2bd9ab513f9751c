/* json.c - strings, numbers and trees as JSON. */
#include "http/json.h"

#include <math.h>
#include <string.h>

/* What stands behind the backslash; 'u': a code; 0: the byte is itself. */
static const char escape[128] = {
    'u', 'u', 'u', 'u', 'u', 'u', 'u', 'u', 'b',         't',           'n', 'u',
    'f', 'r', 'u', 'u', 'u', 'u', 'u', 'u', 'u',         'u',           'u', 'u',
    'u', 'u', 'u', 'u', 'u', 'u', 'u', 'u', ['"'] = '"', ['\\'] = '\\',
};

char *json_text_at(char *p, const char *text, size_t len)
{
    static const char digits[] = "0123456789abcdef";

    *p++ = '"';
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)text[i];

        if (c >= 128 || escape[c] == 0) {
            *p++ = (char)c;
            continue;
        }
        *p++ = '\\';
        *p++ = escape[c];
        if (escape[c] == 'u') {
            memcpy(p, "00", 2);
            p[2] = digits[c >> 4];
            p[3] = digits[c & 15];
            p += 4;
        }
    }
    *p++ = '"';
    return p;
}

void json_text(struct vt_buf *b, const char *text, size_t len)
{
    char *p = vt_buf_room(b, json_room(len));

    if (p)
        vt_buf_upto(b, json_text_at(p, text, len));
}

/* ---- single precision ------------------------------------------------ */

__extension__ typedef unsigned __int128 wide;

struct digits { /* 0.ddd times 10^whole */
    uint64_t all;
    int n, whole;
};

static wide power_of_ten(int n)
{
    wide p = 1;

    while (n-- > 0)
        p *= 10;
    return p;
}

/* mantissa / 2^shift, the mantissa of 24 bits, as n digits; true: they read back as the
 * same double. Of that the lower 29 bits are 0, so half its last place is 2^-30 of the
 * mantissa's, and half of that just below a power of two. */
static bool round_to(uint32_t mantissa, int shift, struct digits *d)
{
    wide scale = power_of_ten(d->n - d->whole), exact = scale * mantissa;
    wide rounded = exact >> shift, rest = exact - (rounded << shift);
    wide half = (wide)1 << shift >> 1, off = rest;

    if (rest > half || (rest == half && (rounded & 1))) {
        rounded++;
        off = ((wide)1 << shift) - rest;
    }
    d->all = (uint64_t)rounded;
    return off << (mantissa == 1U << 23 ? 31 : 30) <= scale;
}

static char *put_small(char *p, const char *digit, int n, int whole)
{
    *p++ = '0';
    *p++ = '.';
    for (; whole < 0; whole++)
        *p++ = '0';
    for (int i = 0; i < n; i++)
        *p++ = digit[i];
    return p;
}

static char *put_large(char *p, const char *digit, int n, int whole)
{
    for (int i = 0; i < n || i <= whole; i++) {
        if (i == whole)
            *p++ = '.';
        *p++ = i < n ? digit[i] : '0';
    }
    return p;
}

static void put_digits(struct vt_buf *b, struct digits d, bool negative)
{
    char digit[24] = {0}, text[48], *p = text;
    int n = 0;

    for (uint64_t rest = d.all; rest > 0; rest /= 10)
        n++;
    d.whole += n - d.n; /* rounded up to a power of ten */
    for (int i = n; i > 0; d.all /= 10)
        digit[--i] = (char)('0' + d.all % 10);
    while (n > 1 && digit[n - 1] == '0')
        n--;
    if (negative)
        *p++ = '-';
    p = d.whole > 0 ? put_large(p, digit, n, d.whole) : put_small(p, digit, n, d.whole);
    vt_buf_add(b, text, (size_t)(p - text));
}

void json_float32(struct vt_buf *b, float v)
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

void json_node(struct vt_buf *b, const struct vt_node *n, enum json_spacing spacing)
{
    static const struct vt_json_style style[] = {
        [JSON_TIGHT] = {vt_buf_py_f64, json_text, ",", ":"},
        [JSON_SPACED] = {vt_buf_py_f64, json_text, ", ", ": "},
    };

    vt_buf_json_node(b, n, &style[spacing]);
}

void json_node_or_null(struct vt_buf *b, const struct vt_node *n)
{
    if (n)
        json_node(b, n, JSON_TIGHT);
    else
        vt_buf_str(b, "null");
}
