/* event.c - what an event of a completion stream says.
 *
 * A stream's events are all alike, small and many: they are walked once, by key, and
 * what does not matter is stepped over. Brackets must close, strings must end and the
 * whole must be one object; what is stepped over is not looked at more closely. A
 * function for each object, since tables of members took an eighth more of the
 * generator's time (bench/client). */
#include <string.h>

#include "load/client.h"

struct walk {
    const char *p, *end;
    bool bad;
};

static void space(struct walk *w)
{
    while (w->p < w->end &&
           (*w->p == ' ' || *w->p == '\n' || *w->p == '\t' || *w->p == '\r'))
        w->p++;
}

static bool at(struct walk *w, char c)
{
    space(w);
    return w->p < w->end && *w->p == c;
}

static struct span string(struct walk *w)
{
    const char *from = w->p + 1, *q = from;

    for (;;) {
        const char *b;

        q = q < w->end ? memchr(q, '"', (size_t)(w->end - q)) : NULL;
        if (!q) {
            w->bad = true;
            return (struct span){0};
        }
        for (b = q; b > from && b[-1] == '\\'; b--)
            ;
        if ((q - b) % 2 == 0)
            break;
        q++;
    }
    w->p = q + 1;
    return (struct span){from, (size_t)(q - from)};
}

static void skip_scalar(struct walk *w)
{
    const char *from = w->p;

    while (w->p < w->end && *w->p != ',' && *w->p != '}' && *w->p != ']')
        w->p++;
    if (w->p == from)
        w->bad = true;
}

/* Over one value. A stack of brackets is not needed to find its end. */
static void skip(struct walk *w)
{
    size_t depth = 0;

    do {
        space(w);
        if (w->p >= w->end)
            w->bad = true;
        else if (*w->p == '"')
            (void)string(w);
        else if (*w->p == '{' || *w->p == '[')
            depth++, w->p++;
        else if (*w->p == '}' || *w->p == ']')
            w->bad = depth == 0, depth--, w->p++;
        else if (*w->p == ',' || *w->p == ':')
            w->bad = depth == 0, w->p++;
        else
            skip_scalar(w);
    } while (depth > 0 && !w->bad);
}

/* To the next member of the object that w stands in; *first on its '{'. The walk then
 * stands on the value, which must be stepped over. */
static bool member(struct walk *w, bool *first, struct span *key)
{
    if (w->bad)
        return false;
    if (*first)
        w->p++;
    space(w);
    if (w->p < w->end && *w->p == '}') {
        w->p++;
        return false;
    }
    if (!*first && w->p < w->end && *w->p == ',')
        w->p++;
    *first = false;
    if (!at(w, '"')) {
        w->bad = true;
        return false;
    }
    *key = string(w);
    if (w->bad || !at(w, ':')) {
        w->bad = true;
        return false;
    }
    w->p++;
    space(w);
    return true;
}

static bool opens(struct walk *w) /* an object; what is none is stepped over */
{
    if (at(w, '{'))
        return true;
    skip(w);
    return false;
}

static bool is(struct span s, const char *word, size_t len)
{
    return s.len == len && memcmp(s.p, word, len) == 0;
}
#define IS(s, word) is(s, "" word, sizeof(word) - 1)

/* Its text, or an empty one if the value is no string. */
static struct span text(struct walk *w)
{
    if (at(w, '"'))
        return string(w);
    skip(w);
    return (struct span){0};
}

static uint32_t number(struct walk *w)
{
    const char *from;
    uint64_t v = 0;

    space(w);
    from = w->p;
    skip(w);
    for (; !w->bad && from < w->p && *from >= '0' && *from <= '9'; from++)
        v = v < UINT32_MAX ? v * 10 + (uint64_t)(*from - '0') : v;
    return v > UINT32_MAX ? UINT32_MAX : (uint32_t)v;
}

static bool is_filled(struct walk *w) /* a list that is not empty */
{
    bool filled = at(w, '[');

    if (filled) {
        struct walk inner = {w->p + 1, w->end, false};

        filled = !at(&inner, ']');
    }
    skip(w);
    return filled;
}

static void delta(struct walk *w, struct load_event *e)
{
    bool first = true;
    struct span key;

    if (!opens(w))
        return;
    while (member(w, &first, &key))
        if (IS(key, "content"))
            e->text = text(w);
        else if (IS(key, "reasoning") || IS(key, "reasoning_content"))
            e->says |= text(w).len > 0;
        else if (IS(key, "tool_calls"))
            e->says |= is_filled(w);
        else
            skip(w);
}

static void choice(struct walk *w, struct load_event *e)
{
    bool first = true;
    struct span key;

    while (member(w, &first, &key))
        if (IS(key, "text"))
            e->text = text(w);
        else if (IS(key, "delta"))
            delta(w, e);
        else if (IS(key, "finish_reason"))
            e->finish = text(w);
        else
            skip(w);
    e->says |= e->text.len > 0;
}

static void choices(struct walk *w, struct load_event *e)
{
    if (!at(w, '[')) {
        skip(w);
        return;
    }
    w->p++;
    if (at(w, '{')) {
        e->choice = true;
        choice(w, e);
    }
    while (!w->bad && !at(w, ']')) {
        if (at(w, ','))
            w->p++;
        skip(w);
    }
    w->p += !w->bad;
}

static void details(struct walk *w, struct load_event *e)
{
    bool first = true;
    struct span key;

    if (!opens(w))
        return;
    while (member(w, &first, &key))
        if (IS(key, "cached_tokens"))
            e->cached_tokens = number(w);
        else
            skip(w);
}

static void usage(struct walk *w, struct load_event *e)
{
    bool first = true;
    struct span key;

    if (!opens(w))
        return;
    e->usage = true;
    while (member(w, &first, &key))
        if (IS(key, "prompt_tokens"))
            e->prompt_tokens = number(w);
        else if (IS(key, "completion_tokens"))
            e->output_tokens = number(w);
        else if (IS(key, "prompt_tokens_details"))
            details(w, e);
        else
            skip(w);
}

static void error(struct walk *w, struct load_event *e)
{
    bool first = true;
    struct span key;

    e->error = !at(w, 'n'); /* ull */
    if (!at(w, '{')) {
        e->message = text(w);
        return;
    }
    while (member(w, &first, &key))
        if (IS(key, "message"))
            e->message = text(w);
        else
            skip(w);
}

bool load_event_scan(struct load_event *e, const char *p, size_t len)
{
    struct walk w = {p, p + len, false};
    bool first = true;
    struct span key;

    *e = (struct load_event){0};
    if (!at(&w, '{'))
        return false;
    while (member(&w, &first, &key))
        if (IS(key, "choices"))
            choices(&w, e);
        else if (IS(key, "usage"))
            usage(&w, e);
        else if (IS(key, "error"))
            error(&w, e);
        else
            skip(&w);
    space(&w);
    return !w.bad && w.p == w.end;
}

/* ---- escapes ----------------------------------------------------------- */

static bool hex4(struct span s, size_t at_byte, uint32_t *out)
{
    uint32_t v = 0;

    if (at_byte + 4 > s.len)
        return false;
    for (size_t i = 0; i < 4; i++) {
        int digit = vt_hex_value(s.p[at_byte + i]);

        if (digit < 0)
            return false;
        v = v * 16 + (uint32_t)digit;
    }
    *out = v;
    return true;
}

/* The character of the \u at `i`, and how many bytes say it. */
static size_t unicode(struct span s, size_t i, uint32_t *c)
{
    uint32_t low;

    if (!hex4(s, i + 2, c)) {
        *c = 0xfffd;
        return 2;
    }
    if (*c < 0xd800 || *c > 0xdfff)
        return 6;
    if (*c < 0xdc00 && i + 7 < s.len && s.p[i + 6] == '\\' && s.p[i + 7] == 'u' &&
        hex4(s, i + 8, &low) && low >= 0xdc00 && low <= 0xdfff) {
        *c = 0x10000 + ((*c - 0xd800) << 10) + (low - 0xdc00);
        return 12;
    }
    *c = 0xfffd;
    return 6;
}

void load_unescape(struct vt_buf *out, struct span s)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    const char *plain;
    size_t i = 0;

    while (i < s.len) {
        plain = memchr(s.p + i, '\\', s.len - i);
        if (!plain || (size_t)(plain - s.p) + 1 >= s.len) {
            vt_buf_add(out, s.p + i, s.len - i);
            return;
        }
        vt_buf_add(out, s.p + i, (size_t)(plain - s.p) - i);
        i = (size_t)(plain - s.p);
        if (s.p[i + 1] == 'u') {
            char utf8[4];
            uint32_t c;

            i += unicode(s, i, &c);
            vt_buf_add(out, utf8, vt_utf8_put(utf8, c));
        } else {
            const char *known = memchr(from, s.p[i + 1], sizeof(from) - 1);

            vt_buf_char(out, known ? to[known - from] : s.p[i + 1]);
            i += 2;
        }
    }
}
