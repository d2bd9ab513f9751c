/* The writer of JSON: its layouts, its strings, its numbers. */
#include "testing.h"

static struct vt_buf out;

static void fresh(struct vt_jw *w, const struct vt_json_style *style)
{
    vt_buf_clear(&out);
    vt_jw_init(w, &out, style);
}

/* One of everything. */
static void tell(struct vt_jw *w)
{
    static const vt_ns gap[] = {1500000, 0, -2000001};
    static const uint32_t count[] = {1, UINT32_MAX};
    static const double share[] = {0.5, 1e-5};

    vt_jw_map(w, NULL);
    vt_jw_str(w, "s", "a\"\xc3\xa9");
    vt_jw_str(w, "none", NULL);
    vt_jw_list(w, "l");
    vt_jw_u64(w, NULL, UINT64_MAX);
    vt_jw_row(w, NULL);
    vt_jw_i64(w, "i", INT64_MIN);
    vt_jw_map(w, "m");
    vt_jw_bool(w, "t", true);
    vt_jw_bool(w, "f", false);
    vt_jw_end(w);
    vt_jw_end(w);
    vt_jw_end(w);
    vt_jw_map(w, "empty");
    vt_jw_end(w);
    vt_jw_list(w, "nothing");
    vt_jw_end(w);
    vt_jw_f64(w, "r", 2);
    vt_jw_printf(w, "p", "%.3f", 1.5);
    vt_jw_ms_list(w, "gaps", gap, VT_COUNT(gap));
    vt_jw_u32_list(w, "counts", count, VT_COUNT(count));
    vt_jw_f64_list(w, "shares", share, VT_COUNT(share));
    vt_jw_key(w, "own");
    vt_buf_str(w->b, "[]");
    vt_jw_ms(w, "ms", 1);
    vt_jw_end(w);
    assert_int_equal(w->depth, 0);
}

static void layouts(void **state)
{
    static const struct {
        const struct vt_json_style *style;
        const char *want;
    } rows[] = {
        {NULL, "{\"s\":\"a\\\"\xc3\xa9\",\"none\":null,\"l\":[18446744073709551615,"
               "{\"i\":-9223372036854775808,\"m\":{\"t\":true,\"f\":false}}],"
               "\"empty\":{},\"nothing\":[],\"r\":2,\"p\":1.500,"
               "\"gaps\":[1.5,0,-2.000001],\"counts\":[1,4294967295],"
               "\"shares\":[0.5,1e-05],\"own\":[],\"ms\":0.000001}"},
        {&vt_json_spaced,
         "{\"s\": \"a\\\"\xc3\xa9\", \"none\": null, \"l\": [18446744073709551615, "
         "{\"i\": -9223372036854775808, \"m\": {\"t\": true, \"f\": false}}], "
         "\"empty\": {}, \"nothing\": [], \"r\": 2, \"p\": 1.500, "
         "\"gaps\": [1.5, 0, -2.000001], \"counts\": [1, 4294967295], "
         "\"shares\": [0.5, 1e-05], \"own\": [], \"ms\": 0.000001}"},
        {&vt_json_python,
         "{\"s\": \"a\\\"\\u00e9\", \"none\": null, \"l\": [18446744073709551615, "
         "{\"i\": -9223372036854775808, \"m\": {\"t\": true, \"f\": false}}], "
         "\"empty\": {}, \"nothing\": [], \"r\": 2.0, \"p\": 1.500, "
         "\"gaps\": [1.5, 0, -2.000001], \"counts\": [1, 4294967295], "
         "\"shares\": [0.5, 1e-05], \"own\": [], \"ms\": 0.000001}"},
        {&vt_json_pretty,
         "{\n  \"s\": \"a\\\"\xc3\xa9\",\n  \"none\": null,\n  \"l\": [\n"
         "    18446744073709551615,\n"
         "    {\"i\": -9223372036854775808, \"m\": {\"t\": true, \"f\": false}}\n  ],\n"
         "  \"empty\": {},\n  \"nothing\": [],\n  \"r\": 2,\n  \"p\": 1.500,\n"
         "  \"gaps\": [1.5, 0, -2.000001],\n  \"counts\": [1, 4294967295],\n"
         "  \"shares\": [0.5, 1e-05],\n  \"own\": [],\n  \"ms\": 0.000001\n}"},
    };
    struct vt_jw w;

    (void)state;
    for (size_t i = 0; i < VT_COUNT(rows); i++) {
        fresh(&w, rows[i].style);
        tell(&w);
        assert_string_equal(out.data, rows[i].want);
    }
}

/* Rows that are flushed on the way, one on each line, with no indentation. */
static void the_buffer_may_be_emptied_on_the_way(void **state)
{
    static const struct vt_json_style lines = {vt_buf_f64, vt_buf_json_str, ", ", ": ",
                                               ""};
    struct vt_buf all = {0};
    struct vt_jw w;

    (void)state;
    fresh(&w, &lines);
    vt_jw_list(&w, NULL);
    for (int i = 0; i < 3; i++) {
        vt_jw_row(&w, NULL);
        vt_jw_i64(&w, "i", i);
        vt_jw_end(&w);
        vt_buf_add(&all, out.data, out.len);
        vt_buf_clear(&out);
    }
    vt_jw_end(&w);
    vt_buf_add(&all, out.data, out.len);
    assert_string_equal(all.data, "[\n{\"i\": 0},\n{\"i\": 1},\n{\"i\": 2}\n]");
    vt_buf_free(&all);
}

static void members_of_a_map_that_others_open(void **state)
{
    struct vt_jw w;

    (void)state;
    vt_buf_clear(&out);
    vt_jw_members(&w, &out, NULL, true);
    vt_jw_u64(&w, "a", 1);
    vt_jw_raw(&w, "b", "[2]", 3);
    assert_string_equal(out.data, ",\"a\":1,\"b\":[2]");
}

static void nests_as_deep_as_trees_do_and_more(void **state)
{
    struct vt_jw w;

    (void)state;
    fresh(&w, NULL);
    for (int i = 0; i < VT_JW_DEPTH; i++)
        (i % 3 ? vt_jw_list : vt_jw_map)(&w, i > 0 && (i - 1) % 3 == 0 ? "k" : NULL);
    for (int i = 0; i < VT_JW_DEPTH; i++)
        vt_jw_end(&w);
    assert_false(out.failed);
    assert_memory_equal(out.data, "{\"k\":[[{\"k\":[[", 14);
    assert_string_equal(out.data + out.len - 6, "]]}]]}");
}

/* ---- strings ------------------------------------------------------------ */

static void every_byte_becomes_a_valid_string(void **state)
{
    (void)state;
    for (int c = 0; c < 256; c++) {
        char text[1] = {(char)c}, want[8], at[8];
        struct vt_arena arena = {0};
        const struct vt_node *node;

        vt_buf_clear(&out);
        vt_buf_json_str(&out, text, 1);
        assert_int_equal(vt_json_parse(&arena, out.data, out.len, 1, &node, NULL),
                         VT_OK);
        if (c < 128) {
            assert_int_equal(node->n, 1);
            assert_int_equal((unsigned char)node->u.str[0], c);
        } else {
            assert_string_equal(node->u.str, "\xef\xbf\xbd");
        }
        assert_true(vt_json_str_at(at, text, 1) == at + out.len);
        assert_memory_equal(at, out.data, out.len);
        snprintf(want, sizeof(want), "\\u%04x", (unsigned)c);
        if (c < 0x20 && !strchr("\b\t\n\f\r", c))
            assert_memory_equal(out.data + 1, want, 6);
        vt_arena_free(&arena);
    }
}

/* Long texts go piece by piece: no character may be cut, wherever the pieces end. */
static void long_strings_read_back(void **state)
{
    static const char *const sign[] = {
        "a", "\xc3\xa9", "\xe2\x9d\x8c", "\xf0\x9f\x98\x80", "\"", "\x01"};
    struct vt_buf text = {0};
    struct vt_rng r;

    (void)state;
    vt_rng_init(&r, 1, "signs");
    for (int round = 0; round < 50; round++) {
        void (*const how[])(struct vt_buf *, const char *,
                            size_t) = {vt_buf_json_str, vt_buf_json_ascii};

        vt_buf_clear(&text);
        for (int i = 0; i < 500 + round; i++)
            vt_buf_str(&text, vt_rng_below(&r, 3) ? "a" : sign[vt_rng_below(&r, 6)]);
        for (size_t k = 0; k < VT_COUNT(how); k++) {
            struct vt_arena arena = {0};
            const struct vt_node *node;

            vt_buf_clear(&out);
            how[k](&out, text.data, text.len);
            assert_int_equal(vt_json_parse(&arena, out.data, out.len, 1, &node, NULL),
                             VT_OK);
            assert_string_equal(node->u.str, text.data);
            for (size_t i = 0; k == 1 && i < out.len; i++)
                assert_true((unsigned char)out.data[i] < 0x80);
            vt_arena_free(&arena);
        }
    }
    vt_buf_free(&text);
}

static void a_string_that_just_fits_does(void **state)
{
    struct vt_buf b = {.max = 7};

    (void)state;
    vt_buf_json_str(&b, "abcde", 5);
    assert_false(b.failed);
    assert_string_equal(b.data, "\"abcde\"");
    vt_buf_free(&b);
    vt_buf_json_str(&b, "abcdef", 6);
    assert_true(b.failed);
    vt_buf_free(&b);
}

/* ---- numbers ------------------------------------------------------------ */

static void floats_of_single_precision_as_of_double(void **state)
{
    struct vt_buf want = {0};
    struct vt_rng r;

    (void)state;
    vt_rng_init(&r, 1, "floats");
    for (int i = 0; i < 200000; i++) {
        uint32_t bits = (uint32_t)vt_rng_u64(&r);
        float v;

        if (i % 2) /* mostly in the range of the fast way */
            v = (float)((vt_rng_f64(&r) - 0.5) * 100);
        else
            memcpy(&v, &bits, sizeof(v));
        vt_buf_clear(&out);
        vt_buf_clear(&want);
        vt_buf_py_f32(&out, v);
        vt_buf_py_f64(&want, (double)v);
        assert_string_equal(out.data, want.data);
    }
    vt_buf_free(&want);
}

static void bytes_as_hex(void **state)
{
    (void)state;
    vt_buf_clear(&out);
    vt_buf_hex(&out, "\x00\x7f\xff\xa5", 4);
    assert_string_equal(out.data, "007fffa5");
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(layouts),
        cmocka_unit_test(the_buffer_may_be_emptied_on_the_way),
        cmocka_unit_test(members_of_a_map_that_others_open),
        cmocka_unit_test(nests_as_deep_as_trees_do_and_more),
        cmocka_unit_test(every_byte_becomes_a_valid_string),
        cmocka_unit_test(long_strings_read_back),
        cmocka_unit_test(a_string_that_just_fits_does),
        cmocka_unit_test(floats_of_single_precision_as_of_double),
        cmocka_unit_test(bytes_as_hex),
    };
    int failed = cmocka_run_group_tests_name("writing JSON", tests, NULL, NULL);

    vt_buf_free(&out);
    return failed;
}
