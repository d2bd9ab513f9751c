/* string.c - JSON strings: escapes decoded, UTF-8 checked. */
#include "base/json/reader.h"

/* To what ends the plain run of a string: its closing quote, a backslash, a control
 * character, or a byte that starts or continues a longer character. */
static const char *skip_plain(const char *p, const char *end)
{
    while (end - p >= 8 && !vt_json_any_special(p))
        p += 8;
    while (p < end && (unsigned char)*p >= 0x20 && (unsigned char)*p < 0x80 &&
           *p != '"' && *p != '\\')
        p++;
    return p;
}

static int bad_string(struct vt_json *j, const char *what)
{
    return vt_fail(j->build.err, VT_EINPUT, "line %u: %s in a string",
                   (unsigned)j->line, what);
}

/* The four hex digits at p, or -1. */
static int32_t hex4(const char *p, const char *end)
{
    int32_t v = 0;

    if (end - p < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        int digit = vt_hex_value(p[i]);

        if (digit < 0)
            return -1;
        v = v * 16 + digit;
    }
    return v;
}

static bool is_low(int32_t unit)
{
    return unit >= 0xdc00 && unit < 0xe000;
}

/* j->p is behind "\u". Six bytes of input give at most three of output, twelve
 * give four, so decoding never outgrows the raw text. */
static int unicode_escape(struct vt_json *j, char **out)
{
    int32_t unit = hex4(j->p, j->end), low;
    uint32_t c = (uint32_t)unit;

    if (unit < 0)
        return bad_string(j, "bad \\u escape");
    j->p += 4;
    if (is_low(unit))
        return bad_string(j, "lone surrogate");
    if (unit >= 0xd800 && unit < 0xdc00) {
        if (j->end - j->p < 6 || j->p[0] != '\\' || j->p[1] != 'u')
            return bad_string(j, "lone surrogate");
        low = hex4(j->p + 2, j->end);
        if (!is_low(low))
            return bad_string(j, "lone surrogate");
        j->p += 6;
        c = 0x10000 + ((uint32_t)(unit - 0xd800) << 10) + (uint32_t)(low - 0xdc00);
    }
    *out += vt_utf8_put(*out, c);
    return VT_OK;
}

static int read_escape(struct vt_json *j, char **out)
{
    static const char from[] = "bfnrt\"\\/", to[] = "\b\f\n\r\t\"\\/";
    const char *at;
    char c;

    if (j->end - j->p < 2) {
        j->p = j->end;
        return vt_json_unexpected(j, NULL);
    }
    c = j->p[1];
    j->p += 2;
    if (c == 'u')
        return unicode_escape(j, out);
    at = c ? strchr(from, c) : NULL;
    if (!at)
        return bad_string(j, "unknown escape");
    *(*out)++ = to[at - from];
    return VT_OK;
}

static int decode_special(struct vt_json *j, char **out)
{
    size_t n;

    if (j->p == j->end)
        return vt_json_unexpected(j, NULL);
    if (*j->p == '\\')
        return read_escape(j, out);
    if ((unsigned char)*j->p < 0x20)
        return bad_string(j, "control character");
    n = vt_utf8_len(j->p, (size_t)(j->end - j->p));
    if (n == 0)
        return bad_string(j, "bytes that are not UTF-8");
    memcpy(*out, j->p, n);
    *out += n;
    j->p += n;
    return VT_OK;
}

/* The closing quote, or the end of the text. */
static const char *find_quote(const char *p, const char *end)
{
    for (; p < end && *p != '"'; p++)
        if (*p == '\\' && end - p > 1)
            p++;
    return p;
}

int vt_json_string(struct vt_json *j, const char **text, uint32_t *len)
{
    const char *start = ++j->p;
    char *out, *w;

    j->p = skip_plain(start, j->end);
    if (j->p < j->end && *j->p == '"') {
        *len = (uint32_t)(j->p - start);
        *text = vt_arena_copy(j->build.arena, start, *len);
        j->p++;
        return *text ? VT_OK : vt_nomem(j->build.err);
    }
    /* Decoding never lengthens the text, so its raw length is room enough. */
    out =
        vt_arena_alloc(j->build.arena, (size_t)(find_quote(j->p, j->end) - start) + 1);
    if (!out)
        return vt_nomem(j->build.err);
    memcpy(out, start, (size_t)(j->p - start));
    w = out + (j->p - start);
    while (j->p == j->end || *j->p != '"') {
        const char *from;
        int rc = decode_special(j, &w);

        if (rc != VT_OK)
            return rc;
        from = j->p;
        j->p = skip_plain(from, j->end);
        memcpy(w, from, (size_t)(j->p - from));
        w += j->p - from;
    }
    j->p++;
    *text = out;
    *len = (uint32_t)(w - out);
    return VT_OK;
}
