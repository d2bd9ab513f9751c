/* json.c - a MessagePack value as JSON, for logs and people. */
#include "base/mp/mp.h"

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

static void put_text(struct vt_buf *b, struct mp_span s)
{
    vt_buf_json_str(b, (const char *)s.at, s.len);
}

/* What has no text of its own is a key by its bytes, in hex. */
static void put_key(struct vt_buf *b, struct mp_in *in)
{
    if (mp_peek(in) == MP_STR) {
        put_text(b, mp_str(in));
        return;
    }
    vt_buf_char(b, '"');
    if (mp_peek(in) == MP_INT)
        put_int(b, in);
    else
        put_hex(b, mp_raw(in));
    vt_buf_char(b, '"');
}

static void put_ext(struct vt_buf *b, struct mp_in *in)
{
    int type;
    struct mp_span bytes = mp_ext(in, &type);

    vt_buf_printf(b, "{\"__ext__\":%d,\"len\":%zu,\"hex\":\"", type, bytes.len);
    vt_buf_hex(b, bytes.at, bytes.len);
    vt_buf_str(b, "\"}");
}

static void put_value(struct vt_buf *b, struct mp_in *in);

static void put_array(struct vt_buf *b, struct mp_in *in)
{
    uint32_t n = mp_array(in);

    vt_buf_char(b, '[');
    for (uint32_t i = 0; i < n; i++) {
        if (i > 0)
            vt_buf_char(b, ',');
        put_value(b, in);
    }
    vt_buf_char(b, ']');
}

static void put_map(struct vt_buf *b, struct mp_in *in)
{
    uint32_t n = mp_map(in);

    vt_buf_char(b, '{');
    for (uint32_t i = 0; i < n; i++) {
        if (i > 0)
            vt_buf_char(b, ',');
        put_key(b, in);
        vt_buf_char(b, ':');
        put_value(b, in);
    }
    vt_buf_char(b, '}');
}

/* The value is well-formed and not too deep: mp_json() has walked over it. */
static void put_value(struct vt_buf *b, struct mp_in *in)
{
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
        put_text(b, mp_str(in));
        break;
    case MP_BIN:
        vt_buf_str(b, "{\"__bin__\":\"");
        put_hex(b, mp_bin(in));
        vt_buf_str(b, "\"}");
        break;
    case MP_ARRAY:
        put_array(b, in);
        break;
    case MP_MAP:
        put_map(b, in);
        break;
    case MP_EXT:
        put_ext(b, in);
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
