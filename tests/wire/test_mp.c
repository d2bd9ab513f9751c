/* MessagePack: every form of every value, lies about lengths, values shown as JSON. */
#include "codec_testing.h"

/* ---- forms of single values ------------------------------------------- */

enum put { NIL, BOOL, U64, I64, F64, F32, STR, BIN, EXT, ARRAY, MAP };

static struct form {
    const char *name;
    enum put put;
    int64_t i;
    double d;
    const char *hex; /* its beginning where there is more */
    size_t len;
} forms[] = {
    {"nil", NIL, 0, 0, "c0", 1},
    {"false", BOOL, 0, 0, "c2", 1},
    {"true", BOOL, 1, 0, "c3", 1},
    {"0", U64, 0, 0, "00", 1},
    {"127", U64, 127, 0, "7f", 1},
    {"128", U64, 128, 0, "cc80", 2},
    {"255", U64, 255, 0, "ccff", 2},
    {"256", U64, 256, 0, "cd0100", 3},
    {"65535", U64, 65535, 0, "cdffff", 3},
    {"65536", U64, 65536, 0, "ce00010000", 5},
    {"2^32-1", U64, UINT32_MAX, 0, "ceffffffff", 5},
    {"2^32", U64, 4294967296, 0, "cf0000000100000000", 9},
    {"2^64-1", U64, -1, 0, "cfffffffffffffffff", 9},
    {"-1", I64, -1, 0, "ff", 1},
    {"-32", I64, -32, 0, "e0", 1},
    {"-33", I64, -33, 0, "d0df", 2},
    {"-128", I64, -128, 0, "d080", 2},
    {"-129", I64, -129, 0, "d1ff7f", 3},
    {"-32768", I64, -32768, 0, "d18000", 3},
    {"-32769", I64, -32769, 0, "d2ffff7fff", 5},
    {"-2^31", I64, INT32_MIN, 0, "d280000000", 5},
    {"-2^31-1", I64, (int64_t)INT32_MIN - 1, 0, "d3ffffffff7fffffff", 9},
    {"-2^63", I64, INT64_MIN, 0, "d38000000000000000", 9},
    {"a signed number that is not negative", I64, 200, 0, "ccc8", 2},
    {"1.5 in 64 bits", F64, 0, 1.5, "cb3ff8000000000000", 9},
    {"1.5 in 32 bits", F32, 0, 1.5, "ca3fc00000", 5},
    {"text of 0", STR, 0, 0, "a0", 1},
    {"text of 31", STR, 31, 0, "bf61", 32},
    {"text of 32", STR, 32, 0, "d92061", 34},
    {"text of 255", STR, 255, 0, "d9ff61", 257},
    {"text of 256", STR, 256, 0, "da010061", 259},
    {"text of 65535", STR, 65535, 0, "daffff61", 65538},
    {"text of 65536", STR, 65536, 0, "db0001000061", 65541},
    {"bytes of 0", BIN, 0, 0, "c400", 2},
    {"bytes of 256", BIN, 256, 0, "c5010061", 259},
    {"bytes of 65536", BIN, 65536, 0, "c60001000061", 65541},
    {"extension of 0", EXT, 0, 0, "c70003", 3},
    {"extension of 1", EXT, 1, 0, "d40361", 3},
    {"extension of 2", EXT, 2, 0, "d50361", 4},
    {"extension of 3", EXT, 3, 0, "c7030361", 6},
    {"extension of 4", EXT, 4, 0, "d60361", 6},
    {"extension of 8", EXT, 8, 0, "d70361", 10},
    {"extension of 16", EXT, 16, 0, "d80361", 18},
    {"extension of 256", EXT, 256, 0, "c801000361", 260},
    {"extension of 65536", EXT, 65536, 0, "c9000100000361", 65542},
    {"array of 15", ARRAY, 15, 0, "9f", 1},
    {"array of 16", ARRAY, 16, 0, "dc0010", 3},
    {"array of 65536", ARRAY, 65536, 0, "dd00010000", 5},
    {"map of 15", MAP, 15, 0, "8f", 1},
    {"map of 16", MAP, 16, 0, "de0010", 3},
    {"map of 65536", MAP, 65536, 0, "df00010000", 5},
};

static void put_form(struct vt_buf *b, const struct form *f)
{
    static char letters[65536];
    size_t n = (size_t)f->i;

    memset(letters, 'a', sizeof(letters));
    switch (f->put) {
    case NIL:
        mp_put_nil(b);
        break;
    case BOOL:
        mp_put_bool(b, f->i != 0);
        break;
    case U64:
        mp_put_u64(b, (uint64_t)f->i);
        break;
    case I64:
        mp_put_i64(b, f->i);
        break;
    case F64:
        mp_put_f64(b, f->d);
        break;
    case F32:
        mp_put_f32(b, (float)f->d);
        break;
    case STR:
        mp_put_strn(b, letters, n);
        break;
    case BIN:
        mp_put_bin(b, letters, n);
        break;
    case EXT:
        mp_put_ext(b, 3, letters, n);
        break;
    case ARRAY:
        mp_put_array(b, (uint32_t)n);
        break;
    case MAP:
        mp_put_map(b, (uint32_t)n);
        break;
    }
}

static void check_read(const struct form *f, struct mp_in *in)
{
    size_t n = (size_t)f->i;
    struct mp_span s;
    int type;

    switch (f->put) {
    case NIL:
        assert_true(mp_nil(in));
        break;
    case BOOL:
        assert_int_equal(mp_bool(in), f->i);
        break;
    case U64:
        assert_true(mp_u64(in) == (uint64_t)f->i);
        break;
    case I64:
        assert_true(mp_i64(in) == f->i);
        break;
    case F64:
    case F32:
        assert_true(mp_f64(in) == f->d);
        break;
    case STR:
        assert_int_equal(mp_str(in).len, n);
        break;
    case BIN:
        assert_int_equal(mp_bin(in).len, n);
        break;
    case EXT:
        s = mp_ext(in, &type);
        assert_int_equal(type, 3);
        assert_int_equal(s.len, n);
        break;
    case ARRAY:
    case MAP:
        return; /* their elements are missing here */
    }
    assert_null(in->bad);
    assert_ptr_equal(in->at, in->end);
}

static void shortest_form(void **state)
{
    const struct form *f = *state;
    struct mp_span want = unhex(f->hex), bytes;
    struct vt_buf b = {0};
    struct mp_in in;

    put_form(&b, f);
    assert_false(b.failed);
    assert_int_equal(b.len, f->len);
    assert_memory_equal(b.data, want.at, want.len);
    bytes = exact(b.data, b.len);
    mp_in_init(&in, bytes.at, bytes.len);
    check_read(f, &in);
    span_free(bytes);
    span_free(want);
    vt_buf_free(&b);
}

/* ---- numbers in other forms than the shortest ------------------------- */

static void integers_in_any_form(void **state)
{
    static const struct {
        const char *hex;
        int64_t want;
    } rows[] = {
        {"cc05", 5},  {"cd0005", 5},  {"ce00000005", 5},  {"cf0000000000000005", 5},
        {"d005", 5},  {"d10005", 5},  {"d200000005", 5},  {"d30000000000000005", 5},
        {"d0fb", -5}, {"d1fffb", -5}, {"d2fffffffb", -5}, {"d3fffffffffffffffb", -5},
    };

    (void)state;
    for (size_t i = 0; i < VT_COUNT(rows); i++) {
        struct mp_span s = unhex(rows[i].hex);
        struct mp_in in;

        mp_in_init(&in, s.at, s.len);
        assert_true(mp_i64(&in) == rows[i].want && !in.bad);
        mp_in_init(&in, s.at, s.len);
        assert_true(mp_f64(&in) == (double)rows[i].want && !in.bad);
        mp_in_init(&in, s.at, s.len);
        if (rows[i].want >= 0)
            assert_true(mp_u32(&in) == (uint32_t)rows[i].want && !in.bad);
        else
            assert_true(mp_u64(&in) == 0 && strcmp(in.bad, "negative") == 0);
        span_free(s);
    }
}

static void numbers_out_of_range(void **state)
{
    struct mp_span big = unhex("cfffffffffffffffff"),
                   wide = unhex("cf0000000100000000");
    struct mp_in in;

    (void)state;
    mp_in_init(&in, big.at, big.len);
    assert_true(mp_u64(&in) == UINT64_MAX && !in.bad);
    mp_in_init(&in, big.at, big.len);
    assert_true(mp_f64(&in) == 0x1p64 && !in.bad);
    mp_in_init(&in, big.at, big.len);
    assert_true(mp_i64(&in) == 0);
    assert_string_equal(in.bad, "too large");
    mp_in_init(&in, wide.at, wide.len);
    assert_true(mp_u32(&in) == 0);
    assert_string_equal(in.bad, "too large");
    span_free(big);
    span_free(wide);
}

static void tokens_of_every_width(void **state)
{
    struct vt_buf b = {0};
    uint32_t want[1000], got[1000];
    struct vt_rng rng;
    struct mp_span bytes;
    struct mp_in in;

    (void)state;
    vt_rng_init(&rng, 7, "tokens");
    for (size_t i = 0; i < VT_COUNT(want); i++) {
        want[i] = (uint32_t)(vt_rng_u64(&rng) >> (32 + vt_rng_below(&rng, 32)));
        if (i % 10 == 3) { /* forms that nobody needs */
            char wide[9] = {(char)0xcf, 0, 0, 0, 0};

            for (int k = 0; k < 4; k++)
                wide[5 + k] = (char)(want[i] >> (24 - 8 * k));
            vt_buf_add(&b, wide, sizeof(wide));
        } else {
            mp_put_u64(&b, want[i]);
        }
    }
    bytes = exact(b.data, b.len);
    mp_in_init(&in, bytes.at, bytes.len);
    assert_true(mp_u32s(&in, got, VT_COUNT(got)));
    assert_ptr_equal(in.at, in.end);
    assert_memory_equal(got, want, sizeof(want));
    mp_in_init(&in, bytes.at, bytes.len - 1);
    assert_false(mp_u32s(&in, got, VT_COUNT(got)));
    span_free(bytes);
    vt_buf_free(&b);
}

static void a_token_that_is_none(void **state)
{
    static const char *const bad[] = {"01ff020304050607", "01c0020304050607",
                                      "01cb3ff0000000000000", "a0",
                                      "cf00000001000000000102030405060708"};
    uint32_t got[4];

    (void)state;
    for (size_t i = 0; i < VT_COUNT(bad); i++) {
        struct mp_span s = unhex(bad[i]);
        struct mp_in in;

        mp_in_init(&in, s.at, s.len);
        assert_false(mp_u32s(&in, got, 4));
        assert_non_null(in.bad);
        span_free(s);
    }
}

/* ---- lies ------------------------------------------------------------- */

static struct lie {
    const char *name, *hex;
} lies[] = {
    {"nothing at all", ""},
    {"array of 4e9", "ddee6b2800 00"},
    {"array of 2 that holds 1", "9200"},
    {"map of 2e9", "df77359400 0000"},
    {"map of 1 with a key alone", "8100"},
    {"text of 4 GB", "dbffffffff 6161"},
    {"text of 64 MB", "db04000000 6161"},
    {"bytes of 64 MB", "c604000000 6161"},
    {"extension of 64 MB", "c904000000 03 61"},
    {"extension without its type", "c700"},
    {"extension of 1 without its byte", "d403"},
    {"length cut off", "da01"},
    {"number cut off", "ce000000"},
    {"float cut off", "cb3ff8"},
    {"a byte that is never used", "c1"},
    {"an array in an array that is too long", "91dd10000000"},
};

static void lie_is_found(void **state)
{
    const struct lie *l = *state;
    struct mp_span s = unhex(l->hex), bytes = exact(s.at, s.len);
    struct mp_in in;
    struct mp_span value;
    struct vt_buf b = {0};

    mp_in_init(&in, bytes.at, bytes.len);
    value = mp_raw(&in);
    assert_non_null(in.bad);
    assert_null(value.at);
    assert_ptr_equal(in.at, in.end);
    assert_false(mp_json(&b, bytes));
    vt_buf_free(&b);
    span_free(bytes);
    span_free(s);
}

/* The count is refused before anybody can allocate for it. */
static void counts_are_bounded_by_bytes(void **state)
{
    struct mp_span s = unhex("ddee6b2800 00"), m = unhex("de0003 0000000000");
    struct mp_in in;

    (void)state;
    mp_in_init(&in, s.at, s.len);
    assert_int_equal(mp_array(&in), 0);
    assert_string_equal(in.bad, "ends too early");
    mp_in_init(&in, m.at, m.len);
    assert_int_equal(mp_map(&in), 0);
    assert_string_equal(in.bad, "ends too early");
    span_free(s);
    span_free(m);
}

static void nesting_is_bounded(void **state)
{
    uint8_t deep[4096];
    struct vt_buf b = {0};
    struct mp_in in;

    (void)state;
    memset(deep, 0x91, sizeof(deep));
    deep[63] = 0xc0;
    assert_true(mp_json(&b, (struct mp_span){deep, 64}));
    assert_int_equal(b.len, 63 + 4 + 63);
    deep[63] = 0x91;
    deep[sizeof(deep) - 1] = 0xc0;
    mp_in_init(&in, deep, sizeof(deep));
    mp_skip(&in);
    assert_string_equal(in.bad, "nested too deeply");
    vt_buf_free(&b);
}

static void first_problem_stays(void **state)
{
    struct mp_span s = unhex("93 01 02 03");
    struct mp_in in;
    int type;

    (void)state;
    mp_in_init(&in, s.at, s.len);
    assert_int_equal(mp_array(&in), 3);
    assert_null(mp_str(&in).at);
    assert_string_equal(in.bad, "not text");
    assert_int_equal(mp_peek(&in), MP_END);
    assert_int_equal(mp_u64(&in), 0);
    assert_int_equal(mp_i64(&in), 0);
    assert_true(mp_f64(&in) == 0.0);
    assert_false(mp_bool(&in));
    assert_false(mp_nil(&in));
    assert_int_equal(mp_array(&in) + mp_map(&in), 0);
    assert_null(mp_bin(&in).at);
    assert_null(mp_ext(&in, &type).at);
    assert_null(mp_raw(&in).at);
    assert_string_equal(in.bad, "not text");
    span_free(s);
}

static void wrong_types_are_named(void **state)
{
    static const char nil[] = "\xc0";
    struct mp_in in;
    int type;

    (void)state;
#define NAMED(call, words)                  \
    do {                                    \
        mp_in_init(&in, nil, 1);            \
        (void)(call);                       \
        assert_string_equal(in.bad, words); \
    } while (0)
    NAMED(mp_array(&in), "not an array");
    NAMED(mp_map(&in), "not a map");
    NAMED(mp_bool(&in), "not a boolean");
    NAMED(mp_u32(&in), "not an integer");
    NAMED(mp_i64(&in), "not an integer");
    NAMED(mp_f64(&in), "not a number");
    NAMED(mp_str(&in), "not text");
    NAMED(mp_bin(&in), "not bytes");
    NAMED(mp_ext(&in, &type), "not an extension");
}

/* ---- values kept as bytes --------------------------------------------- */

static void keys_are_found(void **state)
{
    /* {1: 2, "a": [1, 2], "b": nil, "a": 3} */
    struct mp_span map = unhex("84 0102 a161 920102 a162 c0 a161 03");
    struct mp_span cut = {map.at, map.len - 6}, a = mp_get(map, "a");

    (void)state;
    assert_int_equal(a.len, 3);
    assert_int_equal(a.at[0], 0x92);
    assert_non_null(mp_get(map, "b").at);
    assert_true(mp_is_nil(mp_get(map, "b")));
    assert_null(mp_get(map, "c").at);
    assert_null(mp_get(a, "a").at);
    assert_null(mp_get(cut, "b").at);
    assert_null(mp_get((struct mp_span){0}, "b").at);
    assert_true(mp_is_nil((struct mp_span){0}));
    assert_false(mp_is_nil(a));
    span_free(map);
}

static void failed_buffer_stays_failed(void **state)
{
    struct vt_buf b = {.max = 20};

    (void)state;
    mp_put_strn(&b, "0123456789", 10);
    assert_false(b.failed);
    mp_put_strn(&b, "0123456789", 10);
    assert_true(b.failed);
    mp_put_nil(&b);
    assert_int_equal(b.len, 11);
    vt_buf_free(&b);
}

static struct json {
    const char *name, *hex, *want;
} jsons[] = {
    {"scalars", "95 c0 c2 c3 ff cb3ff8000000000000", "[null,false,true,-1,1.5]"},
    {"64 bits", "92 cfffffffffffffffff d38000000000000000",
     "[18446744073709551615,-9223372036854775808]"},
    {"signed forms", "94 d07f d080 d100ff d3ffffffffffffffff", "[127,-128,255,-1]"},
    {"text", "a3 61220a", "\"a\\\"\\n\""},
    {"text that is no UTF-8", "a2 61ff", "\"a\xef\xbf\xbd\""},
    {"bytes", "c402 00ff", "{\"__bin__\":\"00ff\"}"},
    {"extension", "d503 0a0b", "{\"__ext__\":3,\"len\":2,\"hex\":\"0a0b\"}"},
    {"extension below zero", "d4ff 0a", "{\"__ext__\":-1,\"len\":1,\"hex\":\"0a\"}"},
    {"map", "82 a161 01 a162 90", "{\"a\":1,\"b\":[]}"},
    {"keys that are no text", "83 05 01 ff 02 9101 03",
     "{\"5\":1,\"-1\":2,\"9101\":3}"},
    {"infinity has no JSON", "ca7f800000", "null"},
};

static void shown_as_json(void **state)
{
    const struct json *j = *state;
    struct mp_span s = unhex(j->hex);
    struct vt_buf b = {0};

    assert_true(mp_json(&b, s));
    assert_string_equal(b.data, j->want);
    vt_buf_clear(&b);
    for (size_t len = 0; len < s.len; len++) {
        struct mp_span cut = exact(s.at, len);

        assert_false(mp_json(&b, cut));
        span_free(cut);
    }
    vt_buf_free(&b);
    span_free(s);
}

/* ---- main ------------------------------------------------------------- */

int main(void)
{
    static const struct CMUnitTest single[] = {
        cmocka_unit_test(integers_in_any_form),
        cmocka_unit_test(numbers_out_of_range),
        cmocka_unit_test(tokens_of_every_width),
        cmocka_unit_test(a_token_that_is_none),
        cmocka_unit_test(counts_are_bounded_by_bytes),
        cmocka_unit_test(nesting_is_bounded),
        cmocka_unit_test(first_problem_stays),
        cmocka_unit_test(wrong_types_are_named),
        cmocka_unit_test(keys_are_found),
        cmocka_unit_test(failed_buffer_stays_failed),
    };
    enum {
        N_SINGLE = VT_COUNT(single),
        N = VT_COUNT(forms) + VT_COUNT(lies) + VT_COUNT(jsons) + N_SINGLE
    };
    struct CMUnitTest tests[N];
    size_t n = 0;

    for (size_t i = 0; i < VT_COUNT(forms); i++)
        tests[n++] = row(forms[i].name, shortest_form, &forms[i]);
    for (size_t i = 0; i < VT_COUNT(lies); i++)
        tests[n++] = row(lies[i].name, lie_is_found, &lies[i]);
    for (size_t i = 0; i < VT_COUNT(jsons); i++)
        tests[n++] = row(jsons[i].name, shown_as_json, &jsons[i]);
    memcpy(tests + n, single, sizeof(single));
    return cmocka_run_group_tests_name("mp", tests, NULL, NULL);
}
