/* proto.c - OTLP's JSON as the protobuf that gRPC wants. One writer makes all spans;
 * this turns its trees over, by the fields' numbers in opentelemetry-proto. */
#include <inttypes.h>

#include "export/impl.h"

enum type { STRING, HEX, VARINT, BOOL, FIXED64, FIXED32, DOUBLE, MESSAGE };

struct field {
    const char *key;
    unsigned number;
    enum type type;
    const struct field *of; /* a message's, also of each in a list */
};

static const struct field any_value[] = {
    {"stringValue", 1, STRING, NULL},
    {"boolValue", 2, BOOL, NULL},
    {"intValue", 3, VARINT, NULL},
    {"doubleValue", 4, DOUBLE, NULL},
    {0},
};
static const struct field key_value[] = {
    {"key", 1, STRING, NULL},
    {"value", 2, MESSAGE, any_value},
    {0},
};
static const struct field event[] = {
    {"timeUnixNano", 1, FIXED64, NULL},
    {"name", 2, STRING, NULL},
    {"attributes", 3, MESSAGE, key_value},
    {0},
};
static const struct field status[] = {
    {"message", 2, STRING, NULL},
    {"code", 3, VARINT, NULL},
    {0},
};
static const struct field span[] = {
    {"traceId", 1, HEX, NULL},
    {"spanId", 2, HEX, NULL},
    {"parentSpanId", 4, HEX, NULL},
    {"flags", 16, FIXED32, NULL},
    {"name", 5, STRING, NULL},
    {"kind", 6, VARINT, NULL},
    {"startTimeUnixNano", 7, FIXED64, NULL},
    {"endTimeUnixNano", 8, FIXED64, NULL},
    {"attributes", 9, MESSAGE, key_value},
    {"events", 11, MESSAGE, event},
    {"status", 15, MESSAGE, status},
    {0},
};
static const struct field scope[] = {{"name", 1, STRING, NULL}, {0}};
static const struct field scope_spans[] = {
    {"scope", 1, MESSAGE, scope},
    {"spans", 2, MESSAGE, span},
    {0},
};
static const struct field resource[] = {{"attributes", 1, MESSAGE, key_value}, {0}};
static const struct field resource_spans[] = {
    {"resource", 1, MESSAGE, resource},
    {"scopeSpans", 2, MESSAGE, scope_spans},
    {0},
};
static const struct field request[] = {
    {"resourceSpans", 1, MESSAGE, resource_spans},
    {0},
};

/* ---- scalars ------------------------------------------------------------------ */

enum { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };

static size_t varint_at(char out[10], uint64_t v)
{
    size_t n = 0;

    for (; v >= 128; v >>= 7)
        out[n++] = (char)(128 | (v & 127));
    out[n++] = (char)v;
    return n;
}

static void put_varint(struct vt_buf *b, uint64_t v)
{
    char bytes[10];

    vt_buf_add(b, bytes, varint_at(bytes, v));
}

static void put_fixed(struct vt_buf *b, uint64_t v, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        vt_buf_char(b, (char)(v >> 8 * i));
}

static void put_hex(struct vt_buf *b, const struct vt_node *n)
{
    put_varint(b, n->n / 2);
    for (uint32_t i = 0; i + 1 < n->n; i += 2)
        vt_buf_char(
            b, (char)(vt_hex_value(n->u.str[i]) << 4 | vt_hex_value(n->u.str[i + 1])));
}

/* 64-bit integers are strings in OTLP's JSON. */
static uint64_t integer_of(const struct vt_node *n)
{
    int64_t v = 0;
    uint64_t u = 0;

    if (n->kind == VT_INT)
        return (uint64_t)n->u.integer;
    if (n->kind != VT_STR)
        return 0;
    if (vt_parse_i64(n->u.str, n->n, &v))
        return (uint64_t)v;
    return vt_parse_u64(n->u.str, n->n, &u) ? u : 0;
}

static void put_double(struct vt_buf *b, const struct vt_node *n)
{
    double v = 0;
    uint64_t bits;

    (void)vt_node_f64(n, &v);
    memcpy(&bits, &v, sizeof(bits));
    put_fixed(b, bits, sizeof(bits));
}

/* ---- messages -------------------------------------------------------------------- */

static void put_message(struct vt_buf *b, const struct vt_node *map,
                        const struct field *fields);

/* The length stands before what it is known from. */
static void put_nested(struct vt_buf *b, const struct field *f, const struct vt_node *n)
{
    size_t at, len, size;
    char bytes[10];

    put_varint(b, (uint64_t)f->number << 3 | WIRE_BYTES);
    at = b->len;
    put_message(b, n, f->of);
    len = b->len - at;
    size = varint_at(bytes, len);
    vt_buf_add(b, bytes, size); /* room for it */
    if (b->failed)
        return;
    memmove(b->data + at + size, b->data + at, len);
    memcpy(b->data + at, bytes, size);
}

static void put_field(struct vt_buf *b, const struct field *f, const struct vt_node *n)
{
    static const int wire[] = {
        [STRING] = WIRE_BYTES, [HEX] = WIRE_BYTES,  [VARINT] = WIRE_VARINT,
        [BOOL] = WIRE_VARINT,  [FIXED64] = WIRE_64, [FIXED32] = WIRE_32,
        [DOUBLE] = WIRE_64};

    if (f->type == MESSAGE) {
        for (uint32_t i = 0; n->kind == VT_LIST && i < n->n; i++)
            put_nested(b, f, &n->u.item[i]);
        if (n->kind == VT_MAP)
            put_nested(b, f, n);
        return;
    }
    if ((f->type == STRING || f->type == HEX) && n->kind != VT_STR)
        return;
    put_varint(b, (uint64_t)f->number << 3 | (uint64_t)wire[f->type]);
    if (f->type == STRING) {
        put_varint(b, n->n);
        vt_buf_add(b, n->u.str, n->n);
    } else if (f->type == HEX) {
        put_hex(b, n);
    } else if (f->type == VARINT) {
        put_varint(b, integer_of(n));
    } else if (f->type == BOOL) {
        put_varint(b, n->kind == VT_BOOL && n->u.boolean);
    } else if (f->type == DOUBLE) {
        put_double(b, n);
    } else {
        put_fixed(b, integer_of(n), f->type == FIXED64 ? 8 : 4);
    }
}

static void put_message(struct vt_buf *b, const struct vt_node *map,
                        const struct field *fields)
{
    for (uint32_t i = 0; map->kind == VT_MAP && i < map->n; i++)
        for (const struct field *f = fields; f->key; f++)
            if (strcmp(map->u.item[i].key, f->key) == 0)
                put_field(b, f, &map->u.item[i]);
}

int export_put_proto(struct vt_buf *b, const struct vt_buf *json, struct vt_err *err)
{
    struct vt_arena arena = {0};
    const struct vt_node *root;
    int rc = vt_json_parse(&arena, json->data, json->len, 1, &root, err);

    if (rc == VT_OK)
        put_message(b, root, request);
    vt_arena_free(&arena);
    return rc == VT_OK && b->failed ? vt_nomem(err) : rc;
}
