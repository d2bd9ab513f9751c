/* unicode.c - UTF-8 read with care. */
#include "text/unicode.h"

bool uni_scan(const char *text, size_t len, unsigned *flags, size_t *bad)
{
    size_t i = 0;
    uint64_t eight = 0;

    *flags = 0;
    while (i < len) {
        uint32_t c;
        bool good;
        size_t n;

        if (len - i >= 8) {
            memcpy(&eight, text + i, sizeof(eight));
            if ((eight & UINT64_C(0x8080808080808080)) == 0) { /* all ASCII */
                i += 8;
                continue;
            }
        }
        n = vt_utf8_step(text + i, len - i, &good);
        if (!good) {
            *bad = i;
            return false;
        }
        vt_utf8_get(text + i, &c);
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

size_t uni_front_spaces(const char *text, size_t len, uni_space *is_space)
{
    size_t n = 0;

    while (n < len) {
        uint32_t c;
        size_t step = vt_utf8_get(text + n, &c);

        if (!is_space(c))
            break;
        n += step;
    }
    return n;
}

size_t uni_back_spaces(const char *text, size_t len, uni_space *is_space)
{
    const char *p = text + len;

    while (p > text) {
        const char *last = uni_before(p);
        uint32_t c;

        vt_utf8_get(last, &c);
        if (!is_space(c))
            break;
        p = last;
    }
    return (size_t)(text + len - p);
}

void uni_add_lossy(struct vt_buf *out, const char *bytes, size_t len)
{
    size_t from = 0, i = 0;

    if (len == 0)
        return;
    while (i < len) {
        bool good;
        size_t n = vt_utf8_step(bytes + i, len - i, &good);

        if (!good) {
            vt_buf_add(out, bytes + from, i - from);
            vt_buf_str(out, "\xef\xbf\xbd");
            from = i + n;
        }
        i += n;
    }
    vt_buf_add(out, bytes + from, len - from);
}
