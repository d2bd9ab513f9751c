/* MessagePack: libmsgpack as the judge of random values in both directions. */
#include "codec_testing.h"

#include <msgpack.h>

/* Numbers of every magnitude. */
static uint64_t any_bits(struct vt_rng *r)
{
    return vt_rng_u64(r) >> vt_rng_below(r, 64);
}

static void write_both(struct vt_rng *r, struct vt_buf *ours, msgpack_packer *theirs,
                       int depth);

static void write_text(struct vt_rng *r, struct vt_buf *ours, msgpack_packer *theirs)
{
    static const char bytes[70000];
    size_t len = vt_rng_below(r, 20) ? vt_rng_below(r, 40) : vt_rng_below(r, 70000);
    uint64_t kind = vt_rng_below(r, 3);
    int8_t type = (int8_t)vt_rng_u64(r);

    if (kind == 0) {
        mp_put_strn(ours, bytes, len);
        msgpack_pack_str_with_body(theirs, bytes, len);
    } else if (kind == 1) {
        mp_put_bin(ours, bytes, len);
        msgpack_pack_bin_with_body(theirs, bytes, len);
    } else {
        mp_put_ext(ours, type, bytes, len);
        msgpack_pack_ext_with_body(theirs, bytes, len, type);
    }
}

static void write_number(struct vt_rng *r, struct vt_buf *ours, msgpack_packer *theirs)
{
    uint64_t bits = any_bits(r);
    double d = (double)(int64_t)vt_rng_u64(r) * 1e-9;

    switch (vt_rng_below(r, 4)) {
    case 0:
        mp_put_u64(ours, bits);
        msgpack_pack_uint64(theirs, bits);
        break;
    case 1:
        mp_put_i64(ours, -(int64_t)(bits >> 1));
        msgpack_pack_int64(theirs, -(int64_t)(bits >> 1));
        break;
    case 2:
        mp_put_f64(ours, d);
        msgpack_pack_double(theirs, d);
        break;
    default:
        mp_put_f32(ours, (float)d);
        msgpack_pack_float(theirs, (float)d);
    }
}

static void write_list(struct vt_rng *r, struct vt_buf *ours, msgpack_packer *theirs,
                       int depth)
{
    uint32_t n = (uint32_t)vt_rng_below(r, depth > 3 ? 2 : 20);
    bool map = vt_rng_below(r, 2) == 0;

    if (map) {
        mp_put_map(ours, n);
        msgpack_pack_map(theirs, n);
    } else {
        mp_put_array(ours, n);
        msgpack_pack_array(theirs, n);
    }
    for (uint32_t i = 0; i < (map ? 2 * n : n); i++)
        write_both(r, ours, theirs, depth + 1);
}

static void write_both(struct vt_rng *r, struct vt_buf *ours, msgpack_packer *theirs,
                       int depth)
{
    uint64_t kind = vt_rng_below(r, 8);
    bool v = vt_rng_below(r, 2) == 0;

    if (depth == 0 || kind == 0) {
        write_list(r, ours, theirs, depth);
    } else if (kind == 1) {
        mp_put_nil(ours);
        msgpack_pack_nil(theirs);
    } else if (kind == 2) {
        mp_put_bool(ours, v);
        v ? msgpack_pack_true(theirs) : msgpack_pack_false(theirs);
    } else if (kind < 6) {
        write_number(r, ours, theirs);
    } else {
        write_text(r, ours, theirs);
    }
}

static void assert_same(struct mp_in *in, const msgpack_object *o);

static void assert_same_list(struct mp_in *in, const msgpack_object *o)
{
    if (o->type == MSGPACK_OBJECT_ARRAY) {
        assert_int_equal(mp_array(in), o->via.array.size);
        for (uint32_t i = 0; i < o->via.array.size; i++)
            assert_same(in, &o->via.array.ptr[i]);
        return;
    }
    assert_int_equal(mp_map(in), o->via.map.size);
    for (uint32_t i = 0; i < o->via.map.size; i++) {
        assert_same(in, &o->via.map.ptr[i].key);
        assert_same(in, &o->via.map.ptr[i].val);
    }
}

static void assert_same_bytes(struct mp_span s, const void *bytes, size_t len)
{
    assert_int_equal(s.len, len);
    if (len > 0)
        assert_memory_equal(s.at, bytes, len);
}

static void assert_same(struct mp_in *in, const msgpack_object *o)
{
    struct mp_span s;
    int type;

    switch (o->type) {
    case MSGPACK_OBJECT_NIL:
        assert_true(mp_nil(in));
        break;
    case MSGPACK_OBJECT_BOOLEAN:
        assert_int_equal(mp_bool(in), o->via.boolean);
        break;
    case MSGPACK_OBJECT_POSITIVE_INTEGER:
        assert_true(mp_u64(in) == o->via.u64);
        break;
    case MSGPACK_OBJECT_NEGATIVE_INTEGER:
        assert_true(mp_i64(in) == o->via.i64);
        break;
    case MSGPACK_OBJECT_FLOAT32:
    case MSGPACK_OBJECT_FLOAT64:
        assert_true(mp_f64(in) == o->via.f64);
        break;
    case MSGPACK_OBJECT_STR:
        assert_same_bytes(mp_str(in), o->via.str.ptr, o->via.str.size);
        break;
    case MSGPACK_OBJECT_BIN:
        assert_same_bytes(mp_bin(in), o->via.bin.ptr, o->via.bin.size);
        break;
    case MSGPACK_OBJECT_EXT:
        s = mp_ext(in, &type);
        assert_int_equal(type, o->via.ext.type);
        assert_same_bytes(s, o->via.ext.ptr, o->via.ext.size);
        break;
    default:
        assert_same_list(in, o);
    }
    assert_null(in->bad);
}

static void libmsgpack_agrees(void **state)
{
    struct vt_rng rng;
    struct vt_buf ours = {0};
    msgpack_sbuffer theirs;
    msgpack_packer packer;

    (void)state;
    vt_rng_init(&rng, 1, "msgpack");
    msgpack_sbuffer_init(&theirs);
    msgpack_packer_init(&packer, &theirs, msgpack_sbuffer_write);
    for (int round = 0; round < 300; round++) {
        msgpack_unpacked unpacked;
        struct mp_in in;
        size_t at = 0;

        vt_buf_clear(&ours);
        msgpack_sbuffer_clear(&theirs);
        write_both(&rng, &ours, &packer, 0);
        /* Both write the shortest forms, so their bytes are ours. */
        assert_int_equal(ours.len, theirs.size);
        assert_memory_equal(ours.data, theirs.data, ours.len);
        msgpack_unpacked_init(&unpacked);
        assert_int_equal(msgpack_unpack_next(&unpacked, ours.data, ours.len, &at),
                         MSGPACK_UNPACK_SUCCESS);
        assert_int_equal(at, ours.len);
        mp_in_init(&in, theirs.data, theirs.size);
        assert_same(&in, &unpacked.data);
        assert_ptr_equal(in.at, in.end);
        mp_in_init(&in, theirs.data, theirs.size);
        assert_int_equal(mp_raw(&in).len, theirs.size);
        msgpack_unpacked_destroy(&unpacked);
    }
    msgpack_sbuffer_destroy(&theirs);
    vt_buf_free(&ours);
}

/* Bytes below the long arrays and maps: for those libmsgpack allocates as many elements
 * as a head claims, 32 GB on account of five bytes. */
static char noise_byte(struct vt_rng *r)
{
    uint64_t c =
        vt_rng_below(r, 3) ? 0x80 + vt_rng_below(r, 0x5c) : vt_rng_u64(r) & 0xff;

    return (char)(c >= 0xdc && c <= 0xdf ? 0xc0 : c);
}

/* Whatever one of them accepts as one value, the other does, with equal length. */
static void libmsgpack_agrees_on_noise(void **state)
{
    struct vt_rng rng;
    size_t accepted = 0;

    (void)state;
    vt_rng_init(&rng, 2, "noise");
    for (int round = 0; round < 100000; round++) {
        char noise[24];
        size_t len = 1 + vt_rng_below(&rng, sizeof(noise)), at = 0;
        msgpack_unpacked unpacked;
        struct mp_in in;
        bool theirs;

        for (size_t i = 0; i < len; i++)
            noise[i] = noise_byte(&rng);
        msgpack_unpacked_init(&unpacked);
        theirs = msgpack_unpack_next(&unpacked, noise, len, &at) > 0;
        mp_in_init(&in, noise, len);
        mp_skip(&in);
        assert_int_equal(theirs, !in.bad);
        if (theirs) {
            assert_int_equal((const char *)in.at - noise, at);
            accepted++;
        }
        msgpack_unpacked_destroy(&unpacked);
    }
    assert_true(accepted > 10000);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(libmsgpack_agrees),
        cmocka_unit_test(libmsgpack_agrees_on_noise),
    };

    return cmocka_run_group_tests_name("mp judge", tests, NULL, NULL);
}
