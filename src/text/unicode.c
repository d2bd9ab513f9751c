/* unicode.c - UTF-8 read with care. */
#include "text/unicode.h"

/* Length that a lead byte announces, and what its second byte may be: there overlong
 * forms, surrogates and values above U+10FFFF show. 0: not a lead byte. */
static size_t lead(unsigned char c, unsigned char *lo, unsigned char *hi)
{
    *lo = 0x80;
    *hi = 0xbf;
    if (c >= 0xc2 && c <= 0xdf)
        return 2;
    if (c >= 0xe0 && c <= 0xef) {
        if (c == 0xe0)
            *lo = 0xa0;
        if (c == 0xed)
            *hi = 0x9f;
        return 3;
    }
    if (c >= 0xf0 && c <= 0xf4) {
        if (c == 0xf0)
            *lo = 0x90;
        if (c == 0xf4)
            *hi = 0x8f;
        return 4;
    }
    return 0;
}

size_t uni_step(const char *p, size_t left, bool *good)
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

static bool eight_ascii(const char *p)
{
    uint64_t word;

    memcpy(&word, p, sizeof(word));
    return (word & UINT64_C(0x8080808080808080)) == 0;
}

bool uni_scan(const char *text, size_t len, unsigned *flags, size_t *bad)
{
    size_t i = 0;

    *flags = 0;
    while (i < len) {
        uint32_t c;
        bool good;
        size_t n;

        if (len - i >= 8 && eight_ascii(text + i)) {
            i += 8;
            continue;
        }
        n = uni_step(text + i, len - i, &good);
        if (!good) {
            *bad = i;
            return false;
        }
        uni_get(text + i, &c);
        *flags |= uni_flags(c);
        i += n;
    }
    return true;
}

bool uni_is_space(uint32_t c)
{
    if (c < 0x80)
        return c == ' ' || (c >= '\t' && c <= '\r');
    return c == 0x85 || c == 0xa0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200a) ||
           c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
}

void uni_add_lossy(struct vt_buf *out, const char *bytes, size_t len)
{
    size_t from = 0, i = 0;

    if (len == 0)
        return;
    while (i < len) {
        bool good;
        size_t n = uni_step(bytes + i, len - i, &good);

        if (!good) {
            vt_buf_add(out, bytes + from, i - from);
            vt_buf_str(out, "\xef\xbf\xbd");
            from = i + n;
        }
        i += n;
    }
    vt_buf_add(out, bytes + from, len - from);
}
