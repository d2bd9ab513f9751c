/* text.c - UTF-8. */

#include "base/base.h"

#include <stdbool.h>

static bool is_tail(unsigned char c)
{
    return (c & 0xc0) == 0x80;
}

size_t vt_utf8_len(const char *p, size_t left)
{
    const unsigned char *s = (const unsigned char *)p;
    unsigned char lo = 0x80, hi = 0xbf;
    size_t n;

    if (left == 0)
        return 0;
    if (s[0] < 0x80)
        return 1;
    if (s[0] < 0xc2 || s[0] > 0xf4)
        return 0;
    n = s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : 4;
    /* Only the second byte's range depends on the first (Unicode table 3-7). */
    if (s[0] == 0xe0)
        lo = 0xa0;
    else if (s[0] == 0xed)
        hi = 0x9f;
    else if (s[0] == 0xf0)
        lo = 0x90;
    else if (s[0] == 0xf4)
        hi = 0x8f;
    if (left < n || s[1] < lo || s[1] > hi)
        return 0;
    for (size_t i = 2; i < n; i++)
        if (!is_tail(s[i]))
            return 0;
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
    size_t lead = len;

    while (lead > 0 && len - lead < 3 && is_tail((unsigned char)text[lead - 1]))
        lead--;
    if (lead == 0 || (unsigned char)text[lead - 1] < 0xc0)
        return len;
    return vt_utf8_len(text + lead - 1, len - lead + 1) ? len : lead - 1;
}
