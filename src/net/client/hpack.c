/* hpack.c - the header fields of HTTP/2, as far as a client needs them that allows no
 * dynamic table: what it writes is literal, and of what it reads it knows literal names
 * and the status. */
#include "net/client/h2.h"

#include <string.h>

/* ---- writing -------------------------------------------------------------- */

/* An integer whose first octet has so many bits left, behind `first`. */
static void put_integer(struct vt_buf *b, uint8_t first, unsigned bits, size_t v)
{
    size_t most = ((size_t)1 << bits) - 1;

    if (v < most) {
        vt_buf_char(b, (char)(first | v));
        return;
    }
    vt_buf_char(b, (char)(first | most));
    for (v -= most; v >= 128; v >>= 7)
        vt_buf_char(b, (char)(128 | (v & 127)));
    vt_buf_char(b, (char)v);
}

void h2_field_put(struct vt_buf *b, const char *name, const char *value)
{
    vt_buf_char(b, 0); /* literal, never indexed by us, a new name */
    put_integer(b, 0, 7, strlen(name));
    for (; *name; name++) /* names are in lower case */
        vt_buf_char(b, *name >= 'A' && *name <= 'Z' ? (char)(*name | 32) : *name);
    put_integer(b, 0, 7, strlen(value));
    vt_buf_str(b, value);
}

/* ---- Huffman ---------------------------------------------------------------- */

/* Bits of each octet's code, RFC 7541, appendix B. The code is canonical: codes ascend
 * by their bits, and by octet where these are equal. */
static const uint8_t code_bits[257] = {
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28,
    28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28, 6,  10, 10, 12, 13, 6,  8,  11,
    10, 10, 8,  11, 8,  6,  6,  6,  5,  5,  5,  6,  6,  6,  6,  6,  6,  6,  7,  8,
    15, 6,  12, 10, 13, 6,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,
    7,  7,  7,  7,  7,  7,  7,  7,  8,  7,  8,  13, 19, 13, 14, 6,  15, 5,  6,  5,
    6,  5,  6,  6,  6,  5,  7,  7,  6,  6,  6,  5,  6,  7,  6,  5,  5,  6,  7,  7,
    7,  7,  7,  15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23,
    23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24,
    22, 21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21,
    23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23, 26, 26, 20, 19, 22, 23, 22, 25,
    26, 26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26,
    28, 27, 27, 27, 20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
    26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26, 30,
};
enum { LEAST_BITS = 5, MOST_BITS = 30, END_OF_TEXT = 256 };

/* Adds the text; false: no such code. */
static bool huffman_get(struct vt_buf *out, const uint8_t *p, size_t len)
{
    uint32_t code = 0, first = 0;
    unsigned bits = 0;

    /* first: the first code of that many bits; codes of fewer are used up before. */
    for (size_t i = 0; i < 8 * len; i++) {
        uint32_t n = 0;

        code = code << 1 | (p[i / 8] >> (7 - i % 8) & 1);
        first <<= 1;
        bits++;
        if (bits > MOST_BITS)
            return false;
        for (int c = 0; c <= END_OF_TEXT && bits >= LEAST_BITS; c++)
            n += code_bits[c] == bits;
        if (n > 0 && code >= first && code - first < n) {
            uint32_t nth = code - first;
            int c = -1;

            for (uint32_t k = 0; k <= nth; k++)
                do
                    c++;
                while (code_bits[c] != bits);
            if (c == END_OF_TEXT)
                return false;
            vt_buf_char(out, (char)c);
            code = first = 0;
            bits = 0;
        } else {
            first += n;
        }
    }
    /* What is left over is the beginning of the end's code: ones, less than an octet.
     */
    return bits < 8 && code == ((uint32_t)1 << bits) - 1;
}

/* ---- reading ------------------------------------------------------------------ */

struct cursor {
    const uint8_t *at, *end;
};

static bool get_integer(struct cursor *c, unsigned bits, uint32_t *out)
{
    uint32_t most = (1U << bits) - 1, v;
    unsigned shift = 0;

    if (c->at >= c->end)
        return false;
    v = *c->at++ & most;
    if (v < most) {
        *out = v;
        return true;
    }
    while (c->at < c->end && shift <= 21) {
        uint8_t octet = *c->at++;

        v += (uint32_t)(octet & 127) << shift;
        shift += 7;
        if (!(octet & 128)) {
            *out = v;
            return true;
        }
    }
    return false;
}

static bool get_text(struct cursor *c, struct vt_buf *out)
{
    bool huffman = c->at < c->end && (*c->at & 128);
    uint32_t len;

    vt_buf_clear(out);
    if (!get_integer(c, 7, &len) || len > (size_t)(c->end - c->at))
        return false;
    if (!huffman)
        vt_buf_add(out, c->at, len);
    else if (!huffman_get(out, c->at, len))
        return false;
    c->at += len;
    vt_buf_char(out, '\0');
    return !out->failed;
}

/* Of the static table only the status has a value that matters. */
enum { STATUS_FIRST = 8, STATUS_LAST = 14, STATIC_LAST = 61 };
static const char *const statuses[] = {"200", "204", "206", "304", "400", "404", "500"};

static bool is_status(uint32_t index)
{
    return index >= STATUS_FIRST && index <= STATUS_LAST;
}

static bool get_literal(struct cursor *c, unsigned bits, struct vt_buf *name,
                        struct vt_buf *value, h2_field *tell, void *user)
{
    uint32_t index;

    if (!get_integer(c, bits, &index) || index > STATIC_LAST ||
        (index == 0 && !get_text(c, name)) || !get_text(c, value))
        return false;
    if (index == 0)
        tell(user, name->data, value->data);
    else if (is_status(index))
        tell(user, ":status", value->data);
    return true;
}

bool h2_fields_get(const void *block, size_t len, h2_field *tell, void *user)
{
    struct cursor c = {block, (const uint8_t *)block + len};
    struct vt_buf name = {0}, value = {0};
    bool good = true;
    uint32_t index;

    while (good && c.at < c.end) {
        uint8_t first = *c.at;

        if (first & 128) { /* a whole field of a table */
            good = get_integer(&c, 7, &index) && index > 0 && index <= STATIC_LAST;
            if (good && is_status(index))
                tell(user, ":status", statuses[index - STATUS_FIRST]);
        } else if (first & 64) {
            good = get_literal(&c, 6, &name, &value, tell, user);
        } else if (first & 32) { /* the dynamic table's size: it may only be none */
            good = get_integer(&c, 5, &index) && index == 0;
        } else {
            good = get_literal(&c, 4, &name, &value, tell, user);
        }
    }
    vt_buf_free(&name);
    vt_buf_free(&value);
    return good;
}
