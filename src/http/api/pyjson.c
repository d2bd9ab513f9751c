/* pyjson.c - where and why Python's json module gives up on a text.
 *
 * Used only for texts that are refused anyway: it says nothing about values. */
#include "http/api/api.h"

#include <ctype.h>
#include <string.h>

enum { MAX_DEPTH = 4096 };

struct scan {
    const char *p, *end;
    const char *error; /* NULL so far */
    const char *at;
};

static void fail_at(struct scan *s, const char *error, const char *at)
{
    if (!s->error) {
        s->error = error;
        s->at = at;
    }
}

static void skip_space(struct scan *s)
{
    while (s->p < s->end &&
           (*s->p == ' ' || *s->p == '\t' || *s->p == '\n' || *s->p == '\r'))
        s->p++;
}

/* s->p is at the opening quote. */
static void scan_string(struct scan *s)
{
    const char *open = s->p++;

    while (!s->error) {
        if (s->p >= s->end) {
            fail_at(s, "Unterminated string starting at", open);
        } else if (*s->p == '"') {
            s->p++;
            return;
        } else if ((unsigned char)*s->p < 0x20) {
            fail_at(s, "Invalid control character at", s->p);
        } else if (*s->p != '\\') {
            s->p++;
        } else if (s->end - s->p < 2) {
            fail_at(s, "Unterminated string starting at", open);
        } else if (s->p[1] == 'u') {
            /* Python points at the 'u', and wants more text behind the digits. */
            bool whole = s->end - s->p > 6;

            for (int i = 2; whole && i < 6; i++)
                whole = isxdigit((unsigned char)s->p[i]);
            if (whole)
                s->p += 6;
            else
                fail_at(s, "Invalid \\uXXXX escape", s->p + 1);
        } else if (!strchr("\"\\/bfnrt", s->p[1]) || s->p[1] == '\0') {
            fail_at(s, "Invalid \\escape", s->p);
        } else {
            s->p += 2;
        }
    }
}

static bool is_digit(const struct scan *s, const char *p)
{
    return p < s->end && *p >= '0' && *p <= '9';
}

/* As much of a number as there is: "1." and "1e" end before the point or the 'e'. */
static bool take_number(struct scan *s)
{
    const char *p = s->p;

    if (p < s->end && *p == '-')
        p++;
    if (!is_digit(s, p))
        return false;
    if (*p == '0')
        p++;
    else
        while (is_digit(s, p))
            p++;
    if (p < s->end && *p == '.' && is_digit(s, p + 1))
        for (p++; is_digit(s, p);)
            p++;
    if (p < s->end && (*p == 'e' || *p == 'E')) {
        const char *exp = p + 1;

        if (exp < s->end && (*exp == '+' || *exp == '-'))
            exp++;
        if (is_digit(s, exp)) {
            while (is_digit(s, exp))
                exp++;
            p = exp;
        }
    }
    s->p = p;
    return true;
}

struct levels {
    bool is_map[MAX_DEPTH];
    size_t n;
};

static void scan_key(struct scan *s)
{
    if (s->p >= s->end || *s->p != '"')
        fail_at(s, "Expecting property name enclosed in double quotes", s->p);
    else
        scan_string(s);
    if (s->error)
        return;
    skip_space(s);
    if (s->p >= s->end || *s->p != ':')
        fail_at(s, "Expecting ':' delimiter", s->p);
    else
        s->p++;
    skip_space(s);
}

/* Opens brackets until a value stands there whole, or an empty bracket has closed. */
static void scan_open(struct scan *s, struct levels *l)
{
    static const char *const words[] = {"null", "true",     "false",
                                        "NaN",  "Infinity", "-Infinity"};

    while (!s->error && s->p < s->end && (*s->p == '{' || *s->p == '[')) {
        bool is_map = *s->p == '{';

        if (l->n == MAX_DEPTH) {
            fail_at(s, "Nested too deeply", s->p);
            return;
        }
        l->is_map[l->n++] = is_map;
        s->p++;
        skip_space(s);
        if (s->p < s->end && *s->p == (is_map ? '}' : ']')) {
            l->n--;
            s->p++;
            return;
        }
        if (is_map)
            scan_key(s);
    }
    if (s->error)
        return;
    if (s->p < s->end && *s->p == '"') {
        scan_string(s);
        return;
    }
    for (size_t i = 0; i < VT_COUNT(words); i++) {
        size_t n = strlen(words[i]);

        if ((size_t)(s->end - s->p) >= n && memcmp(s->p, words[i], n) == 0) {
            s->p += n;
            return;
        }
    }
    if (!take_number(s))
        fail_at(s, "Expecting value", s->p);
}

/* Behind a value: what closes, and whether another value must follow. */
static bool scan_more(struct scan *s, struct levels *l)
{
    while (!s->error && l->n > 0) {
        bool is_map = l->is_map[l->n - 1];

        skip_space(s);
        if (s->p < s->end && *s->p == (is_map ? '}' : ']')) {
            s->p++;
            l->n--;
            continue;
        }
        if (s->p >= s->end || *s->p != ',') {
            fail_at(s, "Expecting ',' delimiter", s->p);
            return false;
        }
        s->p++;
        skip_space(s);
        if (is_map)
            scan_key(s);
        return !s->error;
    }
    return false;
}

const char *api_py_json_error(const char *text, size_t len, size_t *at)
{
    struct scan s = {.p = text, .end = text + len};
    struct levels levels = {.n = 0};

    skip_space(&s);
    do
        scan_open(&s, &levels);
    while (scan_more(&s, &levels));
    if (!s.error) {
        skip_space(&s);
        if (s.p < s.end)
            fail_at(&s, "Extra data", s.p);
    }
    *at = s.error ? api_characters(text, (size_t)(s.at - text)) : 0;
    return s.error;
}
