#include "testing.h"

static void arena_memory_is_zeroed_and_aligned(void **state)
{
    struct vt_arena a = {0};

    (void)state;
    for (int round = 0; round < 3; round++) {
        for (size_t size = 0; size < 3000; size += 7) {
            unsigned char *p = vt_arena_alloc(&a, size);

            assert_non_null(p);
            assert_int_equal((uintptr_t)p % 16, 0);
            for (size_t i = 0; i < size; i++)
                assert_int_equal(p[i], 0);
            if (size > 0)
                memset(p, 0xff, size);
        }
        vt_arena_reset(&a);
        assert_int_equal(a.used_bytes, 0);
    }
    vt_arena_free(&a);
    assert_null(a.chunk);
}

static void arena_copies_are_terminated(void **state)
{
    struct vt_arena a = {0};
    char *copy = vt_arena_copy(&a, "abcdef", 3);

    (void)state;
    assert_string_equal(copy, "abc");
    assert_string_equal(vt_arena_copy(&a, NULL, 0), "");
    assert_true(a.used_bytes >= 5);
    vt_arena_free(&a);
}

static void arena_refuses_the_impossible(void **state)
{
    struct vt_arena a = {0};

    (void)state;
    assert_null(vt_arena_alloc(&a, SIZE_MAX));
    assert_null(vt_arena_copy(&a, "", SIZE_MAX));
    vt_arena_reset(&a);
    vt_arena_free(&a);
}

static void grow_keeps_the_cells(void **state)
{
    uint32_t *v = NULL;
    size_t cap = 0;
    struct vt_err err;

    (void)state;
    for (uint32_t i = 0; i < 1000; i++) {
        assert_int_equal(vt_grow(&v, &cap, i + 1, sizeof(*v), &err), VT_OK);
        v[i] = i;
    }
    for (uint32_t i = 0; i < 1000; i++)
        assert_int_equal(v[i], i);
    assert_int_equal(cap, 1024);
    assert_int_equal(vt_grow(&v, &cap, SIZE_MAX / 2, sizeof(*v), &err), VT_ENOMEM);
    assert_int_equal(vt_grow(&v, &cap, SIZE_MAX, sizeof(*v), &err), VT_ENOMEM);
    assert_string_equal(err.msg, "out of memory");
    assert_int_equal(cap, 1024);
    assert_int_equal(v[999], 999);
    free(v);
}

static void a_full_buffer_stays_failed(void **state)
{
    struct vt_buf b = {.max = 8};

    (void)state;
    vt_buf_str(&b, "12345");
    vt_buf_str(&b, "6789");
    assert_true(b.failed);
    vt_buf_char(&b, 'x');
    assert_string_equal(b.data, "12345");
    vt_buf_clear(&b);
    assert_false(b.failed);
    vt_buf_str(&b, "12345678");
    assert_false(b.failed);
    assert_int_equal(b.len, 8);
    vt_buf_printf(&b, "%d", 9);
    assert_true(b.failed);
    vt_buf_free(&b);
    assert_int_equal(b.max, 8);
}

static void room_is_filled_by_hand(void **state)
{
    struct vt_buf b = {.max = 10};
    char *p;

    (void)state;
    vt_buf_str(&b, "ab");
    p = vt_buf_room(&b, 8);
    assert_ptr_equal(p, b.data + 2);
    memcpy(p, "cde", 3);
    vt_buf_upto(&b, p + 3);
    assert_int_equal(b.len, 5);
    assert_string_equal(b.data, "abcde");
    assert_null(vt_buf_room(&b, 6));
    assert_true(b.failed);
    vt_buf_free(&b);
}

static void printf_grows_the_buffer(void **state)
{
    struct vt_buf b = {0};

    (void)state;
    vt_buf_printf(&b, "%d %s", 7, "small");
    assert_string_equal(b.data, "7 small");
    vt_buf_clear(&b);
    vt_buf_printf(&b, "%01000d", 5);
    assert_int_equal(b.len, 1000);
    assert_int_equal(strlen(b.data), 1000);
    vt_buf_clear(&b);
    vt_buf_u64(&b, UINT64_MAX);
    vt_buf_char(&b, ' ');
    vt_buf_i64(&b, INT64_MIN);
    vt_buf_char(&b, ' ');
    vt_buf_f64(&b, 0.25);
    assert_string_equal(b.data, "18446744073709551615 -9223372036854775808 0.25");
    vt_buf_free(&b);
}

static void json_strings_are_always_json(void **state)
{
    static const struct {
        const char *text;
        size_t len;
        const char *want;
    } rows[] = {
        {"", 0, "\"\""},
        {"plain", 5, "\"plain\""},
        {"a\"b\\c", 5, "\"a\\\"b\\\\c\""},
        {"\n\t\x01\x7f", 4, "\"\\n\\t\\u0001\x7f\""},
        {"a\0b", 3, "\"a\\u0000b\""},
        {"\xc3\xa9", 2, "\"\xc3\xa9\""},
        {"x\xffy", 3, "\"x\xef\xbf\xbdy\""},
        {"\xe2\x82", 2, "\"\xef\xbf\xbd\xef\xbf\xbd\""},
        {"\xed\xa0\x80", 3, "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""},
    };

    (void)state;
    for (size_t i = 0; i < VT_COUNT(rows); i++) {
        struct vt_buf b = {0};

        vt_buf_json_str(&b, rows[i].text, rows[i].len);
        assert_string_equal(b.data, rows[i].want);
        vt_buf_free(&b);
    }
}

static void messages_are_one_line(void **state)
{
    struct vt_err err;

    (void)state;
    assert_int_equal(vt_fail(&err, VT_EINPUT, "a\nb\tc\x01%s", "\r"), VT_EINPUT);
    assert_string_equal(err.msg, "a b c? ");
    assert_int_equal(vt_within(&err, VT_EINPUT, "file %d", 7), VT_EINPUT);
    assert_string_equal(err.msg, "file 7: a b c? ");
    assert_int_equal(vt_within(&err, VT_OK, "never"), VT_OK);
    assert_string_equal(err.msg, "file 7: a b c? ");
    assert_int_equal(vt_fail(&err, VT_EIO, "again: %s", err.msg), VT_EIO);
    assert_string_equal(err.msg, "again: file 7: a b c? ");
    assert_int_equal(vt_fail(NULL, VT_EIO, "nobody listens"), VT_EIO);
    assert_int_equal(vt_within(NULL, VT_EIO, "nobody listens"), VT_EIO);
}

static void long_messages_are_cut_between_characters(void **state)
{
    char text[1024];
    struct vt_err err;

    (void)state;
    for (size_t i = 0; i + 2 < sizeof(text); i += 2)
        memcpy(text + i, "\xc3\xa9", 3);
    assert_int_equal(vt_fail(&err, VT_EINPUT, "%s", text), VT_EINPUT);
    assert_int_equal(strlen(err.msg), 510);
    assert_int_equal(vt_within(&err, VT_EINPUT, "%s", "x"), VT_EINPUT);
    assert_int_equal(strlen(err.msg), 511);
    assert_int_equal(vt_within(&err, VT_EINPUT, "%s", text), VT_EINPUT);
    assert_int_equal(strlen(err.msg), 510);
}

static void tables_of_any_size_are_zeroed_and_writable(void **state)
{
    static const size_t sizes[] = {1, 4096, 4 << 20, (4 << 20) + 1, 40 << 20};

    (void)state;
    for (size_t i = 0; i < VT_COUNT(sizes); i++) {
        unsigned char *t = vt_table_alloc(sizes[i], 1);

        assert_non_null(t);
        assert_int_equal(t[0] | t[sizes[i] / 2] | t[sizes[i] - 1], 0);
        t[0] = t[sizes[i] - 1] = 7;
        vt_table_free(t, sizes[i], 1);
    }
    vt_table_free(NULL, 100, 1);
    vt_table_free(NULL, 40 << 20, 1);
    assert_null(vt_table_alloc(SIZE_MAX / 2, 4));
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables_of_any_size_are_zeroed_and_writable),
        cmocka_unit_test(arena_memory_is_zeroed_and_aligned),
        cmocka_unit_test(arena_copies_are_terminated),
        cmocka_unit_test(arena_refuses_the_impossible),
        cmocka_unit_test(grow_keeps_the_cells),
        cmocka_unit_test(a_full_buffer_stays_failed),
        cmocka_unit_test(room_is_filled_by_hand),
        cmocka_unit_test(printf_grows_the_buffer),
        cmocka_unit_test(json_strings_are_always_json),
        cmocka_unit_test(messages_are_one_line),
        cmocka_unit_test(long_messages_are_cut_between_characters),
    };

    return cmocka_run_group_tests_name("memory", tests, NULL, NULL);
}
