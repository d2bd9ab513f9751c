/* fuzz_msgpack.c - our MessagePack reader against libmsgpack: the same bytes accepted,
 * the same values read; what is written again reads equal. */
#include <msgpack.h>

#include "base/base.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define REQUIRE(x) ((x) ? (void)0 : fail(#x, __LINE__))

static _Noreturn void fail(const char *what, int line)
{
    fprintf(stderr, "fuzz_msgpack.c:%d: %s\n", line, what);
    abort();
}

static bool same_bits(double a, double b)
{
    return memcmp(&a, &b, sizeof(a)) == 0;
}

static void same_bytes(struct mp_span s, const void *bytes, size_t len)
{
    REQUIRE(s.at && s.len == len && (len == 0 || memcmp(s.at, bytes, len) == 0));
}

static void compare(struct mp_in *in, const msgpack_object *o, struct vt_buf *again);

static void compare_list(struct mp_in *in, const msgpack_object *o,
                         struct vt_buf *again)
{
    if (o->type == MSGPACK_OBJECT_ARRAY) {
        REQUIRE(mp_array(in) == o->via.array.size);
        mp_put_array(again, o->via.array.size);
        for (uint32_t i = 0; i < o->via.array.size; i++)
            compare(in, &o->via.array.ptr[i], again);
        return;
    }
    REQUIRE(o->type == MSGPACK_OBJECT_MAP && mp_map(in) == o->via.map.size);
    mp_put_map(again, o->via.map.size);
    for (uint32_t i = 0; i < o->via.map.size; i++) {
        compare(in, &o->via.map.ptr[i].key, again);
        compare(in, &o->via.map.ptr[i].val, again);
    }
}

/* Writes each value again, so that a second reading can be held against the first. */
static void compare(struct mp_in *in, const msgpack_object *o, struct vt_buf *again)
{
    struct mp_span s;
    int type;

    switch (o->type) {
    case MSGPACK_OBJECT_NIL:
        REQUIRE(mp_nil(in));
        mp_put_nil(again);
        break;
    case MSGPACK_OBJECT_BOOLEAN:
        REQUIRE(mp_bool(in) == o->via.boolean);
        mp_put_bool(again, o->via.boolean);
        break;
    case MSGPACK_OBJECT_POSITIVE_INTEGER:
        REQUIRE(mp_u64(in) == o->via.u64);
        mp_put_u64(again, o->via.u64);
        break;
    case MSGPACK_OBJECT_NEGATIVE_INTEGER:
        REQUIRE(mp_i64(in) == o->via.i64);
        mp_put_i64(again, o->via.i64);
        break;
    case MSGPACK_OBJECT_FLOAT32:
    case MSGPACK_OBJECT_FLOAT64:
        REQUIRE(same_bits(mp_f64(in), o->via.f64));
        mp_put_f64(again, o->via.f64);
        break;
    case MSGPACK_OBJECT_STR:
        same_bytes(mp_str(in), o->via.str.ptr, o->via.str.size);
        mp_put_strn(again, o->via.str.ptr, o->via.str.size);
        break;
    case MSGPACK_OBJECT_BIN:
        same_bytes(mp_bin(in), o->via.bin.ptr, o->via.bin.size);
        mp_put_bin(again, o->via.bin.ptr, o->via.bin.size);
        break;
    case MSGPACK_OBJECT_EXT:
        s = mp_ext(in, &type);
        same_bytes(s, o->via.ext.ptr, o->via.ext.size);
        REQUIRE(type == o->via.ext.type);
        mp_put_ext(again, type, s.at, s.len);
        break;
    default:
        compare_list(in, o, again);
    }
    REQUIRE(!in->bad);
}

static void check_again(const struct vt_buf *again)
{
    struct mp_span value = {(const uint8_t *)again->data, again->len};
    struct vt_buf json = {0};
    struct mp_in in;

    REQUIRE(!again->failed);
    mp_in_init(&in, again->data, again->len);
    mp_skip(&in);
    REQUIRE(!in.bad && in.at == in.end);
    REQUIRE(mp_json(&json, value) && json.len > 0);
    (void)mp_get(value, "a");
    vt_buf_free(&json);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct vt_buf again = {0};
    msgpack_unpacked theirs;
    struct mp_in in;
    size_t at = 0;
    int rc;

    mp_in_init(&in, data, size);
    mp_skip(&in);
    REQUIRE(!in.bad || in.at == in.end);
    /* Only what we accept goes to libmsgpack: it allocates whatever a head claims. */
    if (in.bad)
        return 0;
    msgpack_unpacked_init(&theirs);
    rc = msgpack_unpack_next(&theirs, (const char *)data, size, &at);
    REQUIRE(rc == MSGPACK_UNPACK_SUCCESS || rc == MSGPACK_UNPACK_EXTRA_BYTES ||
            rc == MSGPACK_UNPACK_NOMEM_ERROR);
    if (rc != MSGPACK_UNPACK_NOMEM_ERROR) { /* nested deeper than its 32 levels */
        REQUIRE(at == (size_t)(in.at - data));
        mp_in_init(&in, data, size);
        compare(&in, &theirs.data, &again);
        check_again(&again);
    }
    msgpack_unpacked_destroy(&theirs);
    vt_buf_free(&again);
    return 0;
}
