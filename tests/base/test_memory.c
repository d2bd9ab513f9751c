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

static void arrays_shrink_to_what_is_used(void **state)
{
    uint32_t *v = NULL;
    size_t cap = 0;

    (void)state;
    assert_int_equal(vt_grow(&v, &cap, 1 << 20, sizeof(*v), NULL), VT_OK);
    for (uint32_t i = 0; i < 1000; i++)
        v[i] = i;
    vt_shrink(&v, &cap, cap / 4, sizeof(*v)); /* enough of it is used */
    assert_int_equal(cap, 1 << 20);
    vt_shrink(&v, &cap, 1000, sizeof(*v));
    assert_in_range(cap, 1000, VT_SMALL_ARRAY / sizeof(*v));
    for (uint32_t i = 0; i < 1000; i++)
        assert_int_equal(v[i], i);
    free(v);
}

static void a_buffer_gives_back_what_it_need_not_keep(void **state)
{
    struct vt_buf b = {.max = 1 << 20};

    (void)state;
    assert_non_null(vt_buf_room(&b, 5000));
    vt_buf_str(&b, "text");
    vt_buf_clear_most(&b, 1 << 16);
    assert_non_null(b.data);
    assert_int_equal(b.len, 0);
    vt_buf_clear_most(&b, 4096);
    assert_null(b.data);
    assert_int_equal(b.max, 1 << 20);
}

/* Against an array that says which are taken. */
static void seats_are_taken_once_and_low_ones_first(void **state)
{
    enum { MOST = 3000, STEPS = 100000 };
    static bool taken[MOST];
    static uint32_t seat[MOST];
    struct vt_seats s = {0};
    struct vt_rng r;
    uint32_t n = 0, cut = 0;

    (void)state;
    vt_rng_init(&r, 1, "seats");
    for (int step = 0; step < STEPS; step++) {
        bool grows = step / 10000 % 2 == 0; /* crowds come and go */
        bool take = n == 0 || (n < MOST && vt_rng_below(&r, 4) < (grows ? 3U : 1U));

        if (take) {
            assert_int_equal(vt_seats_take(&s, &seat[n], NULL), VT_OK);
            assert_true(seat[n] < MOST && !taken[seat[n]]);
            taken[seat[n++]] = true;
        } else {
            uint32_t i = (uint32_t)vt_rng_below(&r, n);

            taken[seat[i]] = false;
            vt_seats_give(&s, seat[i]);
            seat[i] = seat[--n];
            cut += vt_seats_cut(&s, 16, 4);
        }
        assert_int_equal(s.n_taken, n);
        for (uint32_t i = s.n; i < MOST && step % 1000 == 0; i++)
            assert_false(taken[i]);
    }
    while (n < 1000)
        assert_int_equal(vt_seats_take(&s, &seat[n++], NULL), VT_OK);
    while (n > 0)
        vt_seats_give(&s, seat[--n]);
    assert_int_equal(vt_seats_cut(&s, 16, 10), 10);
    while (vt_seats_cut(&s, 16, 1000) > 0)
        ;
    assert_int_equal(s.n, 16);
    assert_true(cut > 1000);
    vt_seats_free(&s);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(tables_of_any_size_are_zeroed_and_writable),
        cmocka_unit_test(arena_memory_is_zeroed_and_aligned),
        cmocka_unit_test(arena_copies_are_terminated),
        cmocka_unit_test(arena_refuses_the_impossible),
        cmocka_unit_test(grow_keeps_the_cells),
        cmocka_unit_test(arrays_shrink_to_what_is_used),
        cmocka_unit_test(seats_are_taken_once_and_low_ones_first),
        cmocka_unit_test(a_full_buffer_stays_failed),
        cmocka_unit_test(a_buffer_gives_back_what_it_need_not_keep),
        cmocka_unit_test(room_is_filled_by_hand),
        cmocka_unit_test(printf_grows_the_buffer),
        cmocka_unit_test(json_strings_are_always_json),
        cmocka_unit_test(messages_are_one_line),
        cmocka_unit_test(long_messages_are_cut_between_characters),
    };

    return cmocka_run_group_tests_name("memory", tests, NULL, NULL);
}
