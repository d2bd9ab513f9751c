/* json.c - a MessagePack value as JSON, for logs and people. */
#include "base/mp/mp.h"

static void put_value(struct vt_buf *b, struct mp_in *in);

static void put_hex(struct vt_buf *b, struct mp_span bytes)
{
    vt_buf_hex(b, bytes.at, bytes.len);
}

static void put_int(struct vt_buf *b, struct mp_in *in)
{
    /* Negative: the fixed form, or d0 to d3 with the highest bit set. */
    bool negative = *in->at >= 0xe0 || (*in->at >= 0xd0 && (in->at[1] & 0x80));

    if (negative)
        vt_buf_i64(b, mp_i64(in));
    else
        vt_buf_u64(b, mp_u64(in));
}

/* What has no text of its own is a key by its bytes, in hex. */
static void put_key(struct vt_buf *b, struct mp_in *in)
{
    if (mp_peek(in) == MP_STR) {
        put_value(b, in);
        return;
    }
    vt_buf_char(b, '"');
    if (mp_peek(in) == MP_INT)
        put_int(b, in);
    else
        put_hex(b, mp_raw(in));
    vt_buf_char(b, '"');
}

static void put_children(struct vt_buf *b, struct mp_in *in)
{
    bool keyed = mp_peek(in) == MP_MAP;
    uint32_t n = keyed ? mp_map(in) : mp_array(in);

    vt_buf_char(b, keyed ? '{' : '[');
    for (uint32_t i = 0; i < n; i++) {
        if (i > 0)
            vt_buf_char(b, ',');
        if (keyed) {
            put_key(b, in);
            vt_buf_char(b, ':');
        }
        put_value(b, in);
    }
    vt_buf_char(b, keyed ? '}' : ']');
}

/* The value is well-formed and not too deep: mp_json() has walked over it. */
static void put_value(struct vt_buf *b, struct mp_in *in)
{
    struct mp_span s;
    int type;

    switch (mp_peek(in)) {
    case MP_BOOL:
        vt_buf_str(b, mp_bool(in) ? "true" : "false");
        break;
    case MP_INT:
        put_int(b, in);
        break;
    case MP_FLOAT:
        vt_buf_f64(b, mp_f64(in));
        break;
    case MP_STR:
        s = mp_str(in);
        vt_buf_json_str(b, (const char *)s.at, s.len);
        break;
    case MP_BIN:
        vt_buf_str(b, "{\"__bin__\":\"");
        put_hex(b, mp_bin(in));
        vt_buf_str(b, "\"}");
        break;
    case MP_ARRAY:
    case MP_MAP:
        put_children(b, in);
        break;
    case MP_EXT:
        s = mp_ext(in, &type);
        vt_buf_printf(b, "{\"__ext__\":%d,\"len\":%zu,\"hex\":\"", type, s.len);
        put_hex(b, s);
        vt_buf_str(b, "\"}");
        break;
    default:
        mp_skip(in);
        vt_buf_str(b, "null");
    }
}

bool mp_json(struct vt_buf *b, struct mp_span value)
{
    struct mp_in in;

    mp_in_init(&in, value.at, value.len);
    mp_skip(&in);
    if (in.bad || in.at != in.end)
        return false;
    mp_in_init(&in, value.at, value.len);
    put_value(b, &in);
    return true;
}
