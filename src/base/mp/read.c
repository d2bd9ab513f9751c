/* read.c - reading MessagePack. A problem moves the reader to the end of its bytes,
 * so that the quick paths need no test of their own for an earlier one. */
#include "base/mp/mp.h"

enum { MAX_DEPTH = 64 };

void mp_in_init(struct mp_in *in, const void *bytes, size_t len)
{
    static const uint8_t nothing[1];

    in->at = bytes ? bytes : nothing;
    in->end = in->at + (bytes ? len : 0);
    in->bad = NULL;
}

bool mp_fail(struct mp_in *in, const char *what)
{
    if (!in->bad)
        in->bad = what;
    in->at = in->end;
    return false;
}

/* ---- the first bytes of a value --------------------------------------- */

/* What the bytes c0 to df begin, and how many bytes after them hold the value of a
 * number or the length of the rest. */
static const struct form {
    uint8_t type, width;
} forms[32] = {
    {MP_NIL, 0},   {MP_END, 0},   {MP_BOOL, 0},  {MP_BOOL, 0},  /* c0 */
    {MP_BIN, 1},   {MP_BIN, 2},   {MP_BIN, 4},   {MP_EXT, 1},   /* c4 */
    {MP_EXT, 2},   {MP_EXT, 4},   {MP_FLOAT, 4}, {MP_FLOAT, 8}, /* c8 */
    {MP_INT, 1},   {MP_INT, 2},   {MP_INT, 4},   {MP_INT, 8},   /* cc */
    {MP_INT, 1},   {MP_INT, 2},   {MP_INT, 4},   {MP_INT, 8},   /* d0 */
    {MP_EXT, 0},   {MP_EXT, 0},   {MP_EXT, 0},   {MP_EXT, 0},   /* d4 */
    {MP_EXT, 0},   {MP_STR, 1},   {MP_STR, 2},   {MP_STR, 4},   /* d8 */
    {MP_ARRAY, 2}, {MP_ARRAY, 4}, {MP_MAP, 2},   {MP_MAP, 4},   /* dc */
};

static enum mp_type type_of(uint8_t c)
{
    if (c < 0x80 || c >= 0xe0)
        return MP_INT;
    if (c < 0x90)
        return MP_MAP;
    if (c < 0xa0)
        return MP_ARRAY;
    return c < 0xc0 ? MP_STR : (enum mp_type)forms[c - 0xc0].type;
}

enum mp_type mp_peek(const struct mp_in *in)
{
    return in->at < in->end ? type_of(*in->at) : MP_END;
}

static uint64_t big_endian(const uint8_t *p, uint32_t width)
{
    uint64_t v = 0;

    for (uint32_t i = 0; i < width; i++)
        v = v << 8 | p[i];
    return v;
}

struct head {
    enum mp_type type;
    uint32_t n; /* elements, pairs, or bytes that follow (an ext's type is one more) */
};

/* Where the head of a value says how long the rest is. */
static uint32_t head_length(uint8_t c, const uint8_t *after)
{
    if (c < 0x80 || c >= 0xe0)
        return 0;
    if (c < 0xa0)
        return c & 0x0f;
    if (c < 0xc0)
        return c & 0x1f;
    if (c >= 0xd4 && c <= 0xd8)
        return 1u << (c - 0xd4);
    return (uint32_t)big_endian(after, forms[c - 0xc0].width);
}

/* At least so many bytes follow the head. */
static uint64_t head_claims(const struct head *h)
{
    switch (h->type) {
    case MP_MAP:
        return (uint64_t)h->n * 2;
    case MP_EXT:
        return (uint64_t)h->n + 1;
    default:
        return h->n;
    }
}

/* Consumes the head; what it announces is there, as far as bytes can tell. */
static bool head_read(struct mp_in *in, struct head *h)
{
    size_t left = (size_t)(in->end - in->at), width = 0;
    uint8_t c;

    if (left == 0)
        return mp_fail(in, "ends too early");
    c = *in->at;
    h->type = type_of(c);
    if (h->type == MP_END)
        return mp_fail(in, "not MessagePack");
    if (c >= 0xc0 && c < 0xe0)
        width = forms[c - 0xc0].width;
    if (left - 1 < width)
        return mp_fail(in, "ends too early");
    if (h->type == MP_INT || h->type == MP_FLOAT) {
        h->n = (uint32_t)width;
        in->at++;
        return true;
    }
    h->n = head_length(c, in->at + 1);
    if (left - 1 - width < head_claims(h))
        return mp_fail(in, "ends too early");
    in->at += 1 + width;
    return true;
}

static bool expect_type(struct mp_in *in, struct head *h, enum mp_type type,
                        const char *bad)
{
    enum mp_type found = mp_peek(in);

    if (found != type && in->at < in->end && found != MP_END)
        return mp_fail(in, bad);
    return head_read(in, h);
}

/* ---- values ----------------------------------------------------------- */

uint32_t mp_array(struct mp_in *in)
{
    struct head h;

    return expect_type(in, &h, MP_ARRAY, "not an array") ? h.n : 0;
}

uint32_t mp_map(struct mp_in *in)
{
    struct head h;

    return expect_type(in, &h, MP_MAP, "not a map") ? h.n : 0;
}

bool mp_bool(struct mp_in *in)
{
    struct head h;

    return expect_type(in, &h, MP_BOOL, "not a boolean") && in->at[-1] == 0xc3;
}

bool mp_nil(struct mp_in *in)
{
    if (in->at == in->end || *in->at != 0xc0)
        return false;
    in->at++;
    return true;
}

/* Any integer: its 64 bits, and whether they are those of a negative one. */
static uint64_t read_integer(struct mp_in *in, bool *negative)
{
    struct head h;
    uint64_t v;
    uint8_t c;

    *negative = false;
    if (!expect_type(in, &h, MP_INT, "not an integer"))
        return 0;
    c = in->at[-1];
    if (h.n == 0) {
        *negative = c >= 0xe0;
        return (uint64_t)(int64_t)(int8_t)c;
    }
    v = big_endian(in->at, h.n);
    in->at += h.n;
    if (c >= 0xd0) {
        uint32_t unused = 64 - 8 * h.n;

        v = (uint64_t)((int64_t)(v << unused) >> unused);
        *negative = (int64_t)v < 0;
    }
    return v;
}

uint64_t mp_u64(struct mp_in *in)
{
    bool negative;
    uint64_t v = read_integer(in, &negative);

    return negative ? mp_fail(in, "negative") : v;
}

uint32_t mp_u32(struct mp_in *in)
{
    uint64_t v = mp_u64(in);

    return v > UINT32_MAX ? mp_fail(in, "too large") : (uint32_t)v;
}

int64_t mp_i64(struct mp_in *in)
{
    bool negative;
    uint64_t v = read_integer(in, &negative);

    return !negative && v > INT64_MAX ? mp_fail(in, "too large") : (int64_t)v;
}

static double read_real(struct mp_in *in)
{
    struct head h;
    uint64_t bits;
    uint32_t half;
    double d;
    float f;

    if (!head_read(in, &h))
        return 0.0;
    bits = big_endian(in->at, h.n);
    in->at += h.n;
    if (h.n == 8) {
        memcpy(&d, &bits, sizeof(d));
        return d;
    }
    half = (uint32_t)bits;
    memcpy(&f, &half, sizeof(f));
    return (double)f;
}

double mp_f64(struct mp_in *in)
{
    bool negative;
    uint64_t v;

    if (mp_peek(in) == MP_FLOAT)
        return read_real(in);
    if (in->at < in->end && mp_peek(in) != MP_INT)
        return mp_fail(in, "not a number");
    v = read_integer(in, &negative);
    return negative ? (double)(int64_t)v : (double)v;
}

static struct mp_span take_bytes(struct mp_in *in, uint32_t n)
{
    struct mp_span s = {in->at, n};

    in->at += n;
    return s;
}

struct mp_span mp_str(struct mp_in *in)
{
    struct head h;

    if (!expect_type(in, &h, MP_STR, "not text"))
        return (struct mp_span){0};
    return take_bytes(in, h.n);
}

struct mp_span mp_bin(struct mp_in *in)
{
    struct head h;

    if (mp_peek(in) == MP_STR)
        return mp_str(in);
    if (!expect_type(in, &h, MP_BIN, "not bytes"))
        return (struct mp_span){0};
    return take_bytes(in, h.n);
}

struct mp_span mp_ext(struct mp_in *in, int *type)
{
    struct head h;

    *type = 0;
    if (!expect_type(in, &h, MP_EXT, "not an extension"))
        return (struct mp_span){0};
    *type = (int8_t)*in->at++;
    return take_bytes(in, h.n);
}

/* ---- lists of tokens -------------------------------------------------- */

/* A prompt is most of what an engine reads, and its ids come in three bytes (cd) or
 * five (ce) with no pattern that a processor could foresee. So widths are computed
 * instead of branched upon, and both places where a second id may begin are looked at
 * before the first one's width is known: half the time of one by one. */
enum { PAIR_BYTES = 10 };

static inline uint32_t wide_id(const uint8_t *after, uint32_t five)
{
    uint32_t be;

    memcpy(&be, after, sizeof(be));
    return __builtin_bswap32(be) >> (five ? 0 : 16);
}

/* Returns how many bytes two ids take; 0 when they are not both of these widths. */
static inline uint32_t pair_read(const uint8_t *p, uint32_t out[2])
{
    uint32_t after_three = p[3], after_five = p[5];
    uint32_t first = p[0] - 0xcdu, second;
    const uint8_t *next;

    if (first > 1)
        return 0;
    second = (first ? after_five : after_three) - 0xcdu;
    if (second > 1)
        return 0;
    next = p + 3 + 2 * first;
    out[0] = wide_id(p + 1, first);
    out[1] = wide_id(next + 1, second);
    return 6 + 2 * (first + second);
}

bool mp_u32s(struct mp_in *in, uint32_t *out, uint32_t n)
{
    uint32_t i = 0;

    while (i + 1 < n && in->end - in->at >= PAIR_BYTES) {
        uint32_t len = pair_read(in->at, out + i);

        if (len > 0) {
            in->at += len;
            i += 2;
        } else if (*in->at < 0x80) {
            out[i++] = *in->at++;
        } else {
            out[i++] = mp_u32(in);
        }
    }
    for (; i < n && !in->bad; i++)
        out[i] = mp_u32(in);
    return !in->bad;
}

/* ---- whole values ----------------------------------------------------- */

void mp_skip(struct mp_in *in)
{
    uint64_t left[MAX_DEPTH] = {1}, claims;
    uint32_t depth = 0;
    struct head h;

    for (;;) {
        while (left[depth] == 0)
            if (depth-- == 0)
                return;
        left[depth]--;
        if (!head_read(in, &h))
            return;
        claims = head_claims(&h);
        if (h.type != MP_ARRAY && h.type != MP_MAP) {
            in->at += claims;
        } else if (claims > 0) {
            if (++depth == MAX_DEPTH) {
                mp_fail(in, "nested too deeply");
                return;
            }
            left[depth] = claims;
        }
    }
}

struct mp_span mp_raw(struct mp_in *in)
{
    const uint8_t *from = in->at;

    if (mp_nil(in))
        return (struct mp_span){from, 1};
    mp_skip(in);
    if (in->bad)
        return (struct mp_span){0};
    return (struct mp_span){from, (size_t)(in->at - from)};
}

/* ---- values kept as spans --------------------------------------------- */

bool mp_is_nil(struct mp_span value)
{
    return !value.at || (value.len == 1 && value.at[0] == 0xc0);
}

struct mp_span mp_text(struct mp_span value)
{
    struct mp_in in;

    mp_in_init(&in, value.at, value.len);
    return mp_peek(&in) == MP_STR ? mp_str(&in) : (struct mp_span){0};
}

uint64_t mp_natural(struct mp_span value, uint64_t most, uint64_t fallback)
{
    struct mp_in in;
    uint64_t v;

    mp_in_init(&in, value.at, value.len);
    v = mp_u64(&in);
    return in.bad || v > most ? fallback : v;
}

bool mp_span_is(struct mp_span text, const char *word)
{
    size_t len = strlen(word);

    return text.at && text.len == len && memcmp(text.at, word, len) == 0;
}

struct mp_span mp_get(struct mp_span map, const char *key)
{
    struct mp_in in;
    uint32_t n;

    mp_in_init(&in, map.at, map.len);
    n = mp_peek(&in) == MP_MAP ? mp_map(&in) : 0;
    for (uint32_t i = 0; i < n && !in.bad; i++) {
        bool found = mp_peek(&in) == MP_STR;

        if (found)
            found = mp_span_is(mp_str(&in), key);
        else
            mp_skip(&in);
        if (found)
            return mp_raw(&in);
        mp_skip(&in);
    }
    return (struct mp_span){0};
}
