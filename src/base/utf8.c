/* utf8.c - UTF-8. */
#include "base/base.h"

/* Length that a lead byte announces, and what its second byte may be: there overlong
 * forms, surrogates and values above U+10FFFF show. 0: not a lead byte. */
static size_t lead(unsigned char c, unsigned char *lo, unsigned char *hi)
{
    *lo = c == 0xe0 ? 0xa0 : c == 0xf0 ? 0x90 : 0x80;
    *hi = c == 0xed ? 0x9f : c == 0xf4 ? 0x8f : 0xbf;
    if (c < 0xc2 || c > 0xf4)
        return 0;
    return c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
}

size_t vt_utf8_step(const char *p, size_t left, bool *good)
{
    const unsigned char *u = (const unsigned char *)p;
    unsigned char lo, hi;
    size_t want, n = 1;

    *good = u[0] < 0x80;
    if (*good)
        return 1;
    want = lead(u[0], &lo, &hi);
    while (n < want && n < left && u[n] >= lo && u[n] <= hi) {
        lo = 0x80;
        hi = 0xbf;
        n++;
    }
    *good = n == want;
    return n;
}

size_t vt_utf8_put(char *out, uint32_t c)
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        out[0] = (char)(0xc0 | c >> 6);
        out[1] = (char)(0x80 | (c & 0x3f));
        return 2;
    }
    if (c < 0x10000) {
        out[0] = (char)(0xe0 | c >> 12);
        out[1] = (char)(0x80 | (c >> 6 & 0x3f));
        out[2] = (char)(0x80 | (c & 0x3f));
        return 3;
    }
    out[0] = (char)(0xf0 | c >> 18);
    out[1] = (char)(0x80 | (c >> 12 & 0x3f));
    out[2] = (char)(0x80 | (c >> 6 & 0x3f));
    out[3] = (char)(0x80 | (c & 0x3f));
    return 4;
}

size_t vt_utf8_trim(const char *text, size_t len)
{
    size_t n = len;

    while (n > 0 && len - n < 3 && ((unsigned char)text[n - 1] & 0xc0) == 0x80)
        n--;
    if (n == 0 || (unsigned char)text[n - 1] < 0xc0)
        return len;
    return vt_utf8_len(text + n - 1, len - n + 1) ? len : n - 1;
}
