/* toml_value.c - TOML's strings, numbers and booleans. */
#include "base/json/toml.h"

/* ---- strings ---------------------------------------------------------- */

static int bad_string(struct vt_toml *t, const char *what)
{
    return vt_fail(t->err, VT_EINPUT, "line %u: %s in a string", (unsigned)t->line,
                   what);
}

static bool starts_with(const struct vt_toml *t, const char *three)
{
    return t->end - t->p >= 3 && memcmp(t->p, three, 3) == 0;
}

/* Behind \u and \U: 4 or 8 digits. */
static int unicode_escape(struct vt_toml *t, int n_digits)
{
    char bytes[4];
    uint32_t c = 0;

    for (int i = 0; i < n_digits; i++, t->p++) {
        int digit = t->p < t->end ? vt_hex_value(*t->p) : -1;

        if (digit < 0 || c > 0x10ffff)
            return bad_string(t, "bad Unicode escape");
        c = c << 4 | (uint32_t)digit;
    }
    if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
        return bad_string(t, "bad Unicode escape");
    vt_buf_add(&t->text, bytes, vt_utf8_put(bytes, c));
    return VT_OK;
}

/* A backslash at the end of a line joins it with the next text. */
static bool joins_lines(struct vt_toml *t)
{
    const char *start = t->p;

    vt_toml_blank(t);
    if (!vt_toml_newline(t)) {
        t->p = start;
        return false;
    }
    do
        vt_toml_blank(t);
    while (vt_toml_newline(t));
    return true;
}

/* t->p is at the backslash. */
static int read_escape(struct vt_toml *t, bool many_lines)
{
    static const char from[] = "btnfr\"\\", to[] = "\b\t\n\f\r\"\\";
    const char *at;

    t->p++;
    if (many_lines && joins_lines(t))
        return VT_OK;
    if (t->p == t->end)
        return vt_toml_fail(t, "a string does not end");
    if (*t->p == 'u' || *t->p == 'U')
        return unicode_escape(t, *t->p++ == 'u' ? 4 : 8);
    at = *t->p ? strchr(from, *t->p) : NULL;
    if (!at)
        return bad_string(t, "unknown escape");
    t->p++;
    vt_buf_char(&t->text, to[at - from]);
    return VT_OK;
}

/* One character that stands for itself. */
static int copy_plain(struct vt_toml *t, bool many_lines)
{
    size_t n = vt_utf8_len(t->p, (size_t)(t->end - t->p));
    unsigned char c = (unsigned char)*t->p;

    if (many_lines && vt_toml_newline(t)) {
        vt_buf_char(&t->text, '\n');
        return VT_OK;
    }
    if (c == '\n' || c == '\r')
        return vt_toml_fail(t, "a string does not end on its line");
    if ((c < 0x20 && c != '\t') || c == 0x7f)
        return bad_string(t, "control character");
    if (n == 0)
        return bad_string(t, "bytes that are not UTF-8");
    vt_buf_add(&t->text, t->p, n);
    t->p += n;
    return VT_OK;
}

/* A string of many lines may end with one or two quotes of its own. */
static bool at_close(const struct vt_toml *t, const char *three, bool many_lines)
{
    if (!many_lines)
        return t->p < t->end && *t->p == three[0];
    return starts_with(t, three) && !(t->end - t->p > 3 && t->p[3] == three[0]);
}

static int read_text(struct vt_toml *t, const char *three, bool many_lines)
{
    int rc = VT_OK, own_quotes = 0;

    while (rc == VT_OK && !at_close(t, three, many_lines)) {
        if (t->p == t->end)
            rc = vt_toml_fail(t, "a string does not end");
        else if (*t->p == '\\' && three[0] == '"')
            rc = read_escape(t, many_lines);
        else if (many_lines && starts_with(t, three) && ++own_quotes > 2)
            rc = bad_string(t, "too many quotes");
        else
            rc = copy_plain(t, many_lines);
    }
    return rc;
}

int vt_toml_string(struct vt_toml *t, const char **text, uint32_t *len)
{
    const char three[] = {*t->p, *t->p, *t->p, '\0'};
    bool many_lines = starts_with(t, three);
    int rc;

    t->p += many_lines ? 3 : 1;
    if (many_lines)
        vt_toml_newline(t); /* the first one does not count */
    vt_buf_clear(&t->text);
    rc = read_text(t, three, many_lines);
    if (rc != VT_OK)
        return rc;
    t->p += many_lines ? 3 : 1;
    *len = (uint32_t)t->text.len;
    *text =
        t->text.failed ? NULL : vt_arena_copy(t->arena, *len ? t->text.data : "", *len);
    return *text ? VT_OK : vt_nomem(t->err);
}

/* ---- the rest --------------------------------------------------------- */

struct word { /* characters up to what cannot belong to a value */
    const char *at;
    size_t len;
};

static bool word_is(struct word w, const char *text)
{
    return vt_is_text(text, w.at, w.len);
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static int bad_value(struct vt_toml *t, struct word w)
{
    if (w.len == 0)
        return vt_toml_fail(t, "expected a value");
    return vt_fail(t->err, VT_EINPUT, "line %u: '%.*s' is not a value",
                   (unsigned)t->line, (int)(w.len < 40 ? w.len : 40), w.at);
}

/* 1979-05-27, 07:32:00 and all that begins like them. */
static bool is_date(struct word w)
{
    size_t n = 0;

    while (n < w.len && is_digit(w.at[n]))
        n++;
    return (n == 4 && w.len > 4 && w.at[4] == '-') ||
           (n == 2 && w.len > 2 && w.at[2] == ':');
}

static bool is_non_finite(struct word w)
{
    if (w.len == 4 && (w.at[0] == '-' || w.at[0] == '+'))
        w = (struct word){w.at + 1, 3};
    return word_is(w, "inf") || word_is(w, "nan");
}

/* 0x1f, 0o17, 0b1; underscores are gone. */
static int read_based(struct vt_toml *t, struct word w, struct vt_node *node)
{
    unsigned shift = w.at[1] == 'x' ? 4 : w.at[1] == 'o' ? 3 : 1;
    uint64_t v = 0;

    for (size_t i = 2; i < w.len; i++) {
        int digit = vt_hex_value(w.at[i]);

        if (digit < 0 || digit >> shift)
            return bad_value(t, w);
        if (v >> (64 - shift))
            return vt_toml_fail(t, "integer does not fit 64 bits");
        v = v << shift | (uint64_t)digit;
    }
    return w.len > 2 ? vt_node_integer(node, v, false, t->err) : bad_value(t, w);
}

/* An underscore stands between two digits; false where one does not. */
static bool drop_underscores(struct word *w, char *copy)
{
    bool hex = w->len > 2 && w->at[0] == '0' && w->at[1] == 'x';
    size_t n = 0;

    for (size_t i = 0; i < w->len; i++) {
        const char *c = &w->at[i];
        bool between =
            i > 0 && i + 1 < w->len &&
            (hex ? i > 2 && vt_hex_value(c[-1]) >= 0 && vt_hex_value(c[1]) >= 0
                 : is_digit(c[-1]) && is_digit(c[1]));

        if (*c == '_' && !between)
            return false;
        if (*c != '_')
            copy[n++] = *c;
    }
    *w = (struct word){copy, n};
    return true;
}

int vt_toml_scalar(struct vt_toml *t, struct vt_node *node)
{
    struct word w = {.at = t->p}, digits;
    struct vt_decimal d;
    char *copy;

    while (t->p < t->end && *t->p > ' ' && !strchr(",]}#\"'=[{", *t->p))
        t->p++;
    w.len = (size_t)(t->p - w.at);
    if (word_is(w, "true") || word_is(w, "false")) {
        node->kind = VT_BOOL;
        node->u.boolean = w.at[0] == 't';
        return VT_OK;
    }
    if (is_non_finite(w))
        return vt_toml_fail(t, "not a finite number");
    if (is_date(w))
        return vt_toml_fail(t, "dates and times are not supported; write a string");
    copy = vt_arena_alloc(t->arena, w.len + 1);
    if (!copy)
        return vt_nomem(t->err);
    digits = w;
    if (!drop_underscores(&digits, copy))
        return bad_value(t, w);
    w = digits;
    if (w.len > 1 && w.at[0] == '0' && w.at[1] && strchr("xob", w.at[1]))
        return read_based(t, w, node);
    if (vt_decimal_scan(w.at, w.at + w.len, &d) != w.at + w.len ||
        !vt_decimal_is_strict(&d))
        return bad_value(t, w);
    return vt_node_number(node, &d, "number out of range", t->err);
}
