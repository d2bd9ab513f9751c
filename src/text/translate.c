/* translate.c - Oniguruma's regular expressions (Ruby syntax) in PCRE2's.
 *
 * The two mostly agree. Where they do not, the construct is rewritten, or refused: a
 * pattern that means something else here would give wrong tokens without a word.
 *   \s     is White_Space; PCRE2 would add U+180E
 *   \p{L}  is that of Unicode 16; PCRE2 10.42 knows 14
 *   \w     has marks in it
 *   x{2}+  repeats x{2}; in PCRE2 it would be possessive */
#include <ctype.h>

#include "text/pattern.h"
#include "text/unicode.h"

enum { MAX_LEN = 65536 };

#define SPACES                                                                  \
    "\\t-\\r \\x85\\xa0\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}" \
    "\\x{205f}\\x{3000}"

struct translation {
    const char *p, *end;
    bool newer;
    bool in_class;
    struct vt_buf *out;
    struct vt_err *err;
};

static int refuse(const struct translation *t, const char *from, size_t len)
{
    size_t left = (size_t)(t->end - from);

    return vt_fail(t->err, VT_EINPUT, "'%.*s' in a pattern is not supported",
                   (int)(len < left ? len : left), from);
}

static bool next_is(const struct translation *t, size_t ahead, char c)
{
    return (size_t)(t->end - t->p) > ahead && t->p[ahead] == c;
}

/* General categories are one letter or two: "L", "Lu". */
static void add_newer(struct translation *t, const char *name, size_t len)
{
    for (size_t i = 0; t->newer && i < uni_n_newer; i++)
        if (len <= 2 && len > 0 && memcmp(uni_newer[i].category, name, len) == 0)
            vt_buf_printf(t->out, "\\x{%x}-\\x{%x}", (unsigned)uni_newer[i].first,
                          (unsigned)uni_newer[i].last);
}

/* What stands inside the brackets of a class. */
static void add_property(struct translation *t, const char *name, size_t len)
{
    vt_buf_str(t->out, "\\p{");
    vt_buf_add(t->out, name, len);
    vt_buf_char(t->out, '}');
    add_newer(t, name, len);
}

static void open_set(struct translation *t, bool negated)
{
    if (!t->in_class)
        vt_buf_str(t->out, negated ? "[^" : "[");
}

static void close_set(struct translation *t)
{
    if (!t->in_class)
        vt_buf_char(t->out, ']');
}

/* \p{..}, \P{..}: t->p is at the letter. */
static int translate_property(struct translation *t)
{
    bool negated = *t->p == 'P';
    const char *from = t->p - 1, *name = t->p + 2, *close;

    close = memchr(t->p, '}', (size_t)(t->end - t->p));
    if (!next_is(t, 1, '{') || !close)
        return refuse(t, from, 2);
    if (*name == '^') {
        negated = !negated;
        name++;
    }
    if (name == close || close - name > 32)
        return refuse(t, from, (size_t)(close + 1 - from));
    /* Inside a class the newer characters cannot be taken out again; no tokenizer is
     * known to write that. */
    if (negated && t->in_class)
        vt_buf_printf(t->out, "\\P{%.*s}", (int)(close - name), name);
    else {
        open_set(t, negated);
        add_property(t, name, (size_t)(close - name));
        close_set(t);
    }
    t->p = close + 1;
    return VT_OK;
}

/* \s \S \d \D \w \W: t->p is at the letter. */
static int translate_shorthand(struct translation *t)
{
    bool negated = *t->p < 'a';
    char kind = negated ? (char)(*t->p + ('a' - 'A')) : *t->p;

    if (negated && t->in_class) {
        if (kind != 's')
            return refuse(t, t->p - 1, 2);
        vt_buf_str(t->out, "\\P{White_Space}");
    } else {
        open_set(t, negated);
        if (kind == 's')
            vt_buf_str(t->out, SPACES);
        else if (kind == 'd')
            add_property(t, "Nd", 2);
        else {
            vt_buf_str(t->out, "\\p{Alphabetic}");
            add_newer(t, "L", 1);
            add_property(t, "M", 1);
            add_property(t, "Nd", 2);
            add_property(t, "Pc", 2);
        }
        close_set(t);
    }
    t->p++;
    return VT_OK;
}

/* \x{H..}, \xHH and \uHHHH: t->p is at the letter. A lone \xHH is a byte to Oniguruma,
 * and only below 0x80 also a character. */
static int translate_number(struct translation *t)
{
    const char *from = t->p - 1, *digits = t->p + 1;
    bool braces = *t->p == 'x' && next_is(t, 1, '{');
    size_t n = 0, max = braces ? 6 : *t->p == 'u' ? 4 : 2;

    digits += braces;
    while (n < max && digits + n < t->end && isxdigit((unsigned char)digits[n]))
        n++;
    if (n == 0 || (!braces && n != max) ||
        (braces && (digits + n == t->end || digits[n] != '}')) ||
        (!braces && n == 2 && *digits > '7'))
        return refuse(t, from, 4);
    vt_buf_printf(t->out, "\\x{%.*s}", (int)n, digits);
    t->p = digits + n + braces;
    return VT_OK;
}

static bool is_punctuation(char c)
{
    return (c >= 0x20 && c < '0') || (c > '9' && c < 'A') || (c > 'Z' && c < 'a') ||
           (c > 'z' && c < 0x7f);
}

/* t->p is behind the backslash. */
static int translate_escape(struct translation *t)
{
    if (t->p == t->end)
        return refuse(t, t->p - 1, 1);
    if (strchr("sSdDwW", *t->p))
        return translate_shorthand(t);
    if (*t->p == 'p' || *t->p == 'P')
        return translate_property(t);
    if (*t->p == 'x' || *t->p == 'u')
        return translate_number(t);
    if (*t->p == 'v')
        vt_buf_str(t->out, "\\x0b");
    else if (is_punctuation(*t->p) || strchr("rntfae", *t->p)) {
        vt_buf_char(t->out, '\\');
        vt_buf_char(t->out, *t->p);
    } else {
        return refuse(t, t->p - 1, 2);
    }
    t->p++;
    return VT_OK;
}

/* t->p is at '('. */
static int translate_group(struct translation *t)
{
    static const char *const known[] = {"(?:", "(?=",  "(?!",   "(?<=", "(?<!",
                                        "(?>", "(?i:", "(?-i:", "(?i)"};

    if (next_is(t, 1, '*'))
        return refuse(t, t->p, 2);
    if (!next_is(t, 1, '?')) {
        vt_buf_char(t->out, *t->p++);
        return VT_OK;
    }
    for (size_t i = 0; i < VT_COUNT(known); i++) {
        size_t n = strlen(known[i]);

        if ((size_t)(t->end - t->p) >= n && memcmp(t->p, known[i], n) == 0) {
            vt_buf_add(t->out, t->p, n);
            t->p += n;
            return VT_OK;
        }
    }
    return refuse(t, t->p, 4);
}

/* t->p is at '{': {n}, {n,}, {n,m} or {,m}. */
static int translate_repeat(struct translation *t)
{
    const char *from = t->p, *p = from + 1;
    bool comma = false, digit = false;

    for (; p < t->end && *p != '}'; p++) {
        if (*p >= '0' && *p <= '9')
            digit = true;
        else if (*p == ',' && !comma)
            comma = true;
        else
            return refuse(t, from, (size_t)(p + 1 - from));
    }
    if (p == t->end || !digit || (p + 1 < t->end && p[1] == '+'))
        return refuse(t, from, (size_t)(p + 2 - from));
    vt_buf_str(t->out, from[1] == ',' ? "{0" : "{");
    vt_buf_add(t->out, from + 1, (size_t)(p - from));
    t->p = p + 1;
    return VT_OK;
}

static int translate_next(struct translation *t)
{
    const char *from = t->p;

    if (*t->p == '\\') {
        t->p++;
        return translate_escape(t);
    }
    if (t->in_class) {
        if (*t->p == '[' || (*t->p == '&' && next_is(t, 1, '&')))
            return refuse(t, t->p, 2);
        t->in_class = *t->p != ']';
    } else if (*t->p == '(') {
        return translate_group(t);
    } else if (*t->p == '{') {
        return translate_repeat(t);
    }
    vt_buf_char(t->out, *t->p++);
    if (*from != '[')
        return VT_OK;
    t->in_class = true;
    if (next_is(t, 0, '^'))
        vt_buf_char(t->out, *t->p++);
    return t->p == t->end || *t->p == ']' ? refuse(t, from, 3) : VT_OK;
}

int pattern_translate(const char *regex, size_t len, bool newer, struct vt_buf *out,
                      struct vt_err *err)
{
    struct translation t = {regex, regex + len, newer, false, out, err};
    int rc = VT_OK;

    if (len > MAX_LEN || memchr(regex, '\0', len))
        return vt_fail(err, VT_EINPUT,
                       "a pattern is longer than %d bytes or holds a NUL", MAX_LEN);
    while (t.p < t.end && rc == VT_OK)
        rc = translate_next(&t);
    if (rc == VT_OK && t.in_class)
        rc = vt_fail(err, VT_EINPUT, "a '[' in a pattern is not closed");
    if (rc == VT_OK && out->failed)
        rc = vt_nomem(err);
    return rc;
}
