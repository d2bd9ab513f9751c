/* schema_scalar.c - strings and numbers that a schema allows. */

#include "http/reply/schema.h"

#include <math.h>
#include <string.h>

enum {
    MORE_CHARS = 24,    /* of a string whose greatest length is not stated */
    MAX_STRING = 16384, /* characters */
    PATTERN_TRIES = 16,
    MULTIPLE_WORK = 2,
};
#define SPAN      100.0 /* between numbers of which one bound is stated */
#define MAX_EXACT 9007199254740992.0

static const char *const words[] = {
    "alpha",  "amber",  "anchor", "birch",   "bridge", "cedar",  "cloud",   "copper",
    "coral",  "delta",  "ember",  "field",   "forest", "garden", "harbor",  "hollow",
    "island", "ivory",  "lake",   "lantern", "maple",  "meadow", "mirror",  "north",
    "ocean",  "orchid", "pebble", "pine",    "quiet",  "river",  "saffron", "silver",
    "stone",  "summer", "timber", "valley",  "velvet", "violet", "willow",  "winter",
};

const char *schema_word(struct schema_draw *d)
{
    return words[schema_below(d, VT_COUNT(words))];
}

/* ---- strings --------------------------------------------------------- */

/* Whole words where they fit; else the last is cut. */
static void write_words(struct schema_draw *d, struct vt_buf *b, uint32_t min,
                        uint32_t max)
{
    uint32_t room = max - min < MORE_CHARS ? max - min : MORE_CHARS;
    uint32_t want =
        d->simple ? min : min + (uint32_t)schema_below(d, (uint64_t)room + 1);

    if (want == 0 && max > 0 && !d->simple)
        want = max < MORE_CHARS / 2 ? max : MORE_CHARS / 2;
    while (b->len < want) {
        if (b->len > 0)
            vt_buf_char(b, ' ');
        vt_buf_str(b, schema_word(d));
        if (b->failed)
            return;
    }
    if (b->len <= max)
        return;
    b->len = want;
    if (want > min && b->data[want - 1] == ' ') /* no blank at the end, if it may be */
        b->len--;
}

/* False: a format that has no rule here. */
static bool write_format(struct schema_draw *d, struct vt_buf *b, const char *format)
{
    unsigned year = 2000 + (unsigned)schema_below(d, 30);
    unsigned month = 1 + (unsigned)schema_below(d, 12);
    unsigned day = 1 + (unsigned)schema_below(d, 28);
    unsigned hour = (unsigned)schema_below(d, 24),
             minute = (unsigned)schema_below(d, 60);
    uint64_t x = vt_rng_u64(&d->rng), y = vt_rng_u64(&d->rng);

    if (strcmp(format, "date") == 0)
        vt_buf_printf(b, "%04u-%02u-%02u", year, month, day);
    else if (strcmp(format, "date-time") == 0)
        vt_buf_printf(b, "%04u-%02u-%02uT%02u:%02u:00Z", year, month, day, hour,
                      minute);
    else if (strcmp(format, "time") == 0)
        vt_buf_printf(b, "%02u:%02u:00Z", hour, minute);
    else if (strcmp(format, "duration") == 0)
        vt_buf_printf(b, "PT%uM", 1 + minute);
    else if (strcmp(format, "email") == 0)
        vt_buf_printf(b, "%s.%s@example.com", schema_word(d), schema_word(d));
    else if (strcmp(format, "hostname") == 0)
        vt_buf_printf(b, "%s.example.com", schema_word(d));
    else if (strcmp(format, "uri") == 0)
        vt_buf_printf(b, "https://example.com/%s", schema_word(d));
    else if (strcmp(format, "ipv4") == 0)
        vt_buf_printf(b, "10.%u.%u.%u", (unsigned)(x & 255), (unsigned)(x >> 8 & 255),
                      (unsigned)(x >> 16 & 255));
    else if (strcmp(format, "ipv6") == 0)
        vt_buf_printf(b, "2001:db8::%x:%x", (unsigned)(x & 0xffff),
                      (unsigned)(y & 0xffff));
    else if (strcmp(format, "uuid") == 0)
        vt_buf_printf(b, "%08x-%04x-4%03x-%x%03x-%08x%04x", (unsigned)(x >> 32),
                      (unsigned)(x >> 16 & 0xffff), (unsigned)(x & 0xfff),
                      8 + (unsigned)(y >> 62), (unsigned)(y >> 48 & 0xfff),
                      (unsigned)(y >> 16), (unsigned)(y & 0xffff));
    else
        return false;
    return true;
}

static bool write_pattern(struct schema_draw *d, struct vt_buf *b,
                          const struct vt_node *pattern, uint32_t min, uint32_t max)
{
    const struct reply_lengths l = {min, max, PATTERN_TRIES, d->simple};

    return reply_regex_text(d->forms, b, pattern->u.str, pattern->n, &l,
                            vt_rng_u64(&d->rng));
}

void schema_string(struct schema_draw *d, const struct schema_view *v)
{
    const struct vt_node *pattern = schema_get(v, "pattern");
    const struct vt_node *format = schema_get(v, "format");
    uint32_t min = schema_count(v, "minLength", true, 0, MAX_STRING + 1);
    uint32_t max = schema_count(v, "maxLength", false, MAX_STRING, MAX_STRING);
    struct vt_buf text = {0};

    if (min > max || min > MAX_STRING)
        d->failed = true;
    else if (pattern && pattern->kind == VT_STR)
        d->failed |= !write_pattern(d, &text, pattern, min, max);
    else if (!format || format->kind != VT_STR ||
             !write_format(d, &text, format->u.str))
        write_words(d, &text, min, max);
    if (!d->failed)
        vt_buf_json_str(d->b, text.len > 0 ? text.data : "", text.len);
    schema_spend(d, text.len / 4);
    d->b->failed |= text.failed;
    d->failed |= text.failed;
    vt_buf_free(&text);
}

/* ---- numbers --------------------------------------------------------- */

struct bounds {
    double low, high;
    bool above, below; /* the bound itself is out */
};

static bool is_true(const struct schema_view *v, const char *key)
{
    const struct vt_node *n = schema_get(v, key);

    return n && n->kind == VT_BOOL && n->u.boolean;
}

/* "exclusiveMinimum" is a bound, or (draft 4) says so of "minimum". */
static struct bounds bounds_of(const struct schema_view *v)
{
    struct bounds b = {0, 0, is_true(v, "exclusiveMinimum"),
                       is_true(v, "exclusiveMaximum")};
    double x;
    bool low = schema_bound(v, "minimum", true, &b.low);
    bool high = schema_bound(v, "maximum", false, &b.high);

    if (schema_bound(v, "exclusiveMinimum", true, &x) && (!low || x >= b.low)) {
        b.low = x;
        low = b.above = true;
    }
    if (schema_bound(v, "exclusiveMaximum", false, &x) && (!high || x <= b.high)) {
        b.high = x;
        high = b.below = true;
    }
    if (!high)
        b.high = low ? b.low + SPAN + fabs(b.low) : SPAN;
    if (!low)
        b.low = high ? b.high - SPAN - fabs(b.high) : 0;
    if (high && !low && b.high >= 0)
        b.low = fmin(0, b.high);
    return b;
}

static bool within(const struct bounds *b, double x)
{
    return (b->above ? x > b->low : x >= b->low) &&
           (b->below ? x < b->high : x <= b->high);
}

static void write_number(struct schema_draw *d, double x)
{
    if (x == floor(x) && fabs(x) < MAX_EXACT)
        vt_buf_i64(d->b, (int64_t)x);
    else
        vt_buf_f64(d->b, x);
}

/* A multiple of the step within the bounds; whole: and an integer. */
static bool write_multiple(struct schema_draw *d, const struct bounds *b, double step,
                           bool whole)
{
    double first = ceil(b->low / step), last = floor(b->high / step);
    double span = fmin(last - first, 1e6);
    double from = first;

    if (span > 0 && !d->simple)
        from += (double)schema_below(d, (uint64_t)span + 1);
    for (int i = 0; span >= 0 && i < 2048 && (double)i <= span && !d->failed; i++) {
        double k = first + fmod(from - first + i, span + 1);
        double x = k * step;

        schema_spend(d, MULTIPLE_WORK);
        if (!within(b, x) || (whole && x != floor(x)))
            continue;
        write_number(d, x);
        return true;
    }
    return false;
}

void schema_numeric(struct schema_draw *d, const struct schema_view *v, bool integer)
{
    struct bounds b = bounds_of(v);
    double step = 0, x, hundredths;
    bool stepped = schema_bound(v, "multipleOf", true, &step) && step > 0;

    if (!isfinite(b.low) || !isfinite(b.high) || b.low > b.high) {
        d->failed = true;
        return;
    }
    if (stepped || integer) {
        d->failed |= !write_multiple(d, &b, stepped ? step : 1, integer);
        return;
    }
    x = b.low + (b.high - b.low) * vt_rng_f64(&d->rng);
    hundredths = floor(x * 100) / 100;
    if (within(&b, hundredths) && fabs(x) < 1e12)
        x = hundredths;
    if (!within(&b, x))
        x = b.low + (b.high - b.low) / 2;
    if (within(&b, x))
        write_number(d, x);
    else
        d->failed = true;
}
