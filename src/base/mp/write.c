/* write.c - writing MessagePack, each value in its shortest form. */
#include "base/mp/poke.h"

/* One value of at most `most` bytes. */
#define PUT(b, most, poke)               \
    do {                                 \
        uint8_t *p = poke_room(b, most); \
                                         \
        if (p)                           \
            poke_done(b, poke);          \
    } while (0)

void mp_put_nil(struct vt_buf *b)
{
    PUT(b, 1, poke_nil(p));
}

void mp_put_bool(struct vt_buf *b, bool v)
{
    PUT(b, 1, poke_bool(p, v));
}

void mp_put_u64(struct vt_buf *b, uint64_t v)
{
    PUT(b, POKE_NUMBER, poke_u64(p, v));
}

void mp_put_i64(struct vt_buf *b, int64_t v)
{
    PUT(b, POKE_NUMBER, poke_i64(p, v));
}

void mp_put_f64(struct vt_buf *b, double v)
{
    PUT(b, POKE_NUMBER, poke_f64(p, v));
}

void mp_put_f32(struct vt_buf *b, float v)
{
    uint32_t bits;

    memcpy(&bits, &v, sizeof(bits));
    PUT(b, POKE_NUMBER, poke_32(p, 0xca, bits));
}

void mp_put_array(struct vt_buf *b, uint32_t n)
{
    PUT(b, POKE_HEAD, poke_array(p, n));
}

void mp_put_map(struct vt_buf *b, uint32_t n)
{
    PUT(b, POKE_HEAD, poke_map(p, n));
}

/* A length that MessagePack cannot say: nothing is written that could be misread. */
static bool too_long(struct vt_buf *b, size_t len)
{
    if (len > UINT32_MAX)
        b->failed = true;
    return b->failed;
}

void mp_put_strn(struct vt_buf *b, const void *text, size_t len)
{
    if (!too_long(b, len))
        PUT(b, POKE_HEAD + len, poke_str(p, text, (uint32_t)len));
}

void mp_put_str(struct vt_buf *b, const char *text)
{
    mp_put_strn(b, text, strlen(text));
}

/* The head of bin or ext in three widths. */
static uint8_t *poke_sized(uint8_t *p, uint32_t head8, uint32_t len)
{
    if (len <= UINT8_MAX)
        return poke_byte(poke_byte(p, head8), len);
    if (len <= UINT16_MAX)
        return poke_16(p, head8 + 1, len);
    return poke_32(p, head8 + 2, len);
}

void mp_put_bin(struct vt_buf *b, const void *bytes, size_t len)
{
    if (!too_long(b, len))
        PUT(b, POKE_HEAD + len,
            poke_bytes(poke_sized(p, 0xc4, (uint32_t)len), bytes, len));
}

void mp_put_ext(struct vt_buf *b, int type, const void *bytes, size_t len)
{
    bool fixed = len > 0 && len <= 16 && (len & (len - 1)) == 0;
    uint8_t *p = too_long(b, len) ? NULL : poke_room(b, POKE_HEAD + 1 + len);

    if (!p)
        return;
    p = fixed ? poke_byte(p, 0xd4 + (uint32_t)__builtin_ctz((uint32_t)len))
              : poke_sized(p, 0xc7, (uint32_t)len);
    poke_done(b, poke_bytes(poke_byte(p, (uint32_t)type), bytes, len));
}

void mp_put_raw(struct vt_buf *b, struct mp_span value)
{
    PUT(b, value.at ? value.len : 1, poke_raw(p, value));
}

void mp_put_node(struct vt_buf *b, const struct vt_node *n)
{
    switch (n->kind) {
    case VT_BOOL:
        mp_put_bool(b, n->u.boolean);
        break;
    case VT_INT:
        if (n->is_u64)
            mp_put_u64(b, (uint64_t)n->u.integer);
        else
            mp_put_i64(b, n->u.integer);
        break;
    case VT_REAL:
        mp_put_f64(b, n->u.real);
        break;
    case VT_STR:
        mp_put_strn(b, n->u.str, n->n);
        break;
    case VT_LIST:
        mp_put_array(b, n->n);
        for (uint32_t i = 0; i < n->n; i++)
            mp_put_node(b, &n->u.item[i]);
        break;
    case VT_MAP:
        mp_put_map(b, n->n);
        for (uint32_t i = 0; i < n->n; i++) {
            mp_put_str(b, n->u.item[i].key);
            mp_put_node(b, &n->u.item[i]);
        }
        break;
    default:
        mp_put_nil(b);
    }
}
