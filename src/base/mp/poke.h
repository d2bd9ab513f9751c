/* poke.h - MessagePack written straight to memory that has room for it. Each returns
 * where it stopped. */
#ifndef VT_BASE_MP_POKE_H
#define VT_BASE_MP_POKE_H

#include <string.h>

#include "base/mp/mp.h"

enum { POKE_NUMBER = 9, POKE_HEAD = 5 }; /* the most that one takes */

static inline uint8_t *poke_byte(uint8_t *p, uint32_t v)
{
    *p = (uint8_t)v;
    return p + 1;
}

static inline uint8_t *poke_16(uint8_t *p, uint32_t head, uint32_t v)
{
    uint16_t be = __builtin_bswap16((uint16_t)v);

    *p = (uint8_t)head;
    memcpy(p + 1, &be, sizeof(be));
    return p + 3;
}

static inline uint8_t *poke_32(uint8_t *p, uint32_t head, uint32_t v)
{
    uint32_t be = __builtin_bswap32(v);

    *p = (uint8_t)head;
    memcpy(p + 1, &be, sizeof(be));
    return p + 5;
}

static inline uint8_t *poke_64(uint8_t *p, uint32_t head, uint64_t v)
{
    uint64_t be = __builtin_bswap64(v);

    *p = (uint8_t)head;
    memcpy(p + 1, &be, sizeof(be));
    return p + 9;
}

static inline uint8_t *poke_nil(uint8_t *p)
{
    return poke_byte(p, 0xc0);
}

static inline uint8_t *poke_bool(uint8_t *p, bool v)
{
    return poke_byte(p, v ? 0xc3 : 0xc2);
}

static inline uint8_t *poke_u64(uint8_t *p, uint64_t v)
{
    if (v < 0x80)
        return poke_byte(p, (uint32_t)v);
    if (v <= UINT8_MAX)
        return poke_byte(poke_byte(p, 0xcc), (uint32_t)v);
    if (v <= UINT16_MAX)
        return poke_16(p, 0xcd, (uint32_t)v);
    if (v <= UINT32_MAX)
        return poke_32(p, 0xce, (uint32_t)v);
    return poke_64(p, 0xcf, v);
}

static inline uint8_t *poke_i64(uint8_t *p, int64_t v)
{
    if (v >= 0)
        return poke_u64(p, (uint64_t)v);
    if (v >= -32)
        return poke_byte(p, (uint32_t)v);
    if (v >= INT8_MIN)
        return poke_byte(poke_byte(p, 0xd0), (uint32_t)v);
    if (v >= INT16_MIN)
        return poke_16(p, 0xd1, (uint32_t)v);
    if (v >= INT32_MIN)
        return poke_32(p, 0xd2, (uint32_t)v);
    return poke_64(p, 0xd3, (uint64_t)v);
}

static inline uint8_t *poke_f64(uint8_t *p, double v)
{
    uint64_t bits;

    memcpy(&bits, &v, sizeof(bits));
    return poke_64(p, 0xcb, bits);
}

static inline uint8_t *poke_array(uint8_t *p, uint32_t n)
{
    if (n < 16)
        return poke_byte(p, 0x90 | n);
    return n <= UINT16_MAX ? poke_16(p, 0xdc, n) : poke_32(p, 0xdd, n);
}

static inline uint8_t *poke_map(uint8_t *p, uint32_t n)
{
    if (n < 16)
        return poke_byte(p, 0x80 | n);
    return n <= UINT16_MAX ? poke_16(p, 0xde, n) : poke_32(p, 0xdf, n);
}

static inline uint8_t *poke_bytes(uint8_t *p, const void *bytes, size_t len)
{
    if (len > 0)
        memcpy(p, bytes, len);
    return p + len;
}

static inline uint8_t *poke_str(uint8_t *p, const void *text, uint32_t len)
{
    if (len < 32)
        p = poke_byte(p, 0xa0 | len);
    else if (len <= UINT8_MAX)
        p = poke_byte(poke_byte(p, 0xd9), len);
    else
        p = len <= UINT16_MAX ? poke_16(p, 0xda, len) : poke_32(p, 0xdb, len);
    return poke_bytes(p, text, len);
}

/* A key that is known when compiling. */
#define POKE_KEY(p, literal) poke_str(p, literal, (uint32_t)sizeof(literal) - 1)

static inline uint8_t *poke_raw(uint8_t *p, struct mp_span value)
{
    return value.at ? poke_bytes(p, value.at, value.len) : poke_nil(p);
}

static inline uint8_t *poke_room(struct vt_buf *b, size_t more)
{
    return (uint8_t *)vt_buf_room(b, more);
}

static inline void poke_done(struct vt_buf *b, const uint8_t *end)
{
    vt_buf_upto(b, (const char *)end);
}

#endif
