/* Canonical composition, and the UTF-8 below it. */
#include "testing.h"
#include "text/unicode.h"

static struct row {
    const char *name, *text, *want;
} rows[] = {
    {"empty", "", ""},
    {"ASCII stays", "plain text", "plain text"},
    {"a letter and its accent join", "e\u0301", "\u00e9"},
    {"what is composed stays", "\u00e9t\u00e9", "\u00e9t\u00e9"},
    {"a second accent joins what the first made", "a\u0302\u0301", "\u1ea5"},
    {"marks come into order", "a\u0301\u0323", "\u1ea1\u0301"},
    {"equal classes block each other", "a\u0315\u0300\u05ae", "\u00e0\u05ae\u0315"},
    {"a singleton becomes its equal", "\u212b", "\u00c5"},
    {"an excluded composition falls apart", "\u0958", "\u0915\u093c"},
    {"a mark before any letter stays", "\u0301a", "\u0301a"},
    {"two starters join", "\u09c7\u09be", "\u09cb"},
    {"a composed letter takes one more mark", "\u1e0b\u0323", "\u1e0d\u0307"},
    {"Hangul: lead and vowel", "\u1100\u1161", "\uac00"},
    {"Hangul: lead, vowel and tail", "\u1100\u1161\u11a8", "\uac01"},
    {"Hangul: a syllable takes a tail", "\uac00\u11a8", "\uac01"},
    {"Hangul: a full syllable takes none", "\uac01\u11a8", "\uac01\u11a8"},
    {"a CJK compatibility ideograph", "\U0002f800", "\u4e3d"},
    {"musical symbols do not compose", "\U0001d15e", "\U0001d157\U0001d165"},
    {"beyond the plane of all text", "\U000110a5\U000110ba", "\U000110ab"},
    {"a mark younger than Unicode 9 keeps its place", "a\u0323\u1abf", "\u1ea1\u1abf"},
};

static void composes(void **state)
{
    const struct row *r = *state;
    struct vt_buf out = {0}, again = {0};
    struct vt_err err;

    assert_int_equal(uni_nfc(r->text, strlen(r->text), &out, &err), VT_OK);
    assert_string_equal(out.data, r->want);
    assert_int_equal(uni_nfc(out.data, out.len, &again, &err), VT_OK);
    assert_string_equal(again.data, r->want);
    vt_buf_free(&out);
    vt_buf_free(&again);
}

/* A hundred thousand marks on one letter, classes falling: no time to speak of. */
static void many_marks_are_sorted(void **state)
{
    enum { N = 100000 };
    struct vt_buf text = {0}, out = {0};
    struct vt_err err;

    (void)state;
    vt_buf_char(&text, 'x');
    for (int i = 0; i < N; i++)
        vt_buf_str(&text, i % 2 ? "\u0323" : "\u0315"); /* 220 and 232 */
    assert_int_equal(uni_nfc(text.data, text.len, &out, &err), VT_OK);
    assert_int_equal(out.len, text.len);
    assert_memory_equal(out.data + 1, "\u0323\u0323", 4);
    assert_memory_equal(out.data + 1 + N, "\u0315\u0315", 4);
    vt_buf_free(&text);
    vt_buf_free(&out);
}

static void bad_bytes_become_one_mark_each(void **state)
{
    static const struct {
        const char *bytes, *want;
    } cases[] = {
        {"a\xff"
         "b",
         "a\uFFFDb"},
        {"\xe4\xb8", "\uFFFD"}, /* cut short: one */
        {"\xe4\xb8x", "\uFFFDx"},
        {"\xf0\x9f\x98", "\uFFFD"},
        {"\xf0\x9f\xff", "\uFFFD\uFFFD"},
        {"\xc0\x80", "\uFFFD\uFFFD"},           /* overlong */
        {"\xed\xa0\x80", "\uFFFD\uFFFD\uFFFD"}, /* a surrogate */
        {"\xf4\x90\x80\x80", "\uFFFD\uFFFD\uFFFD\uFFFD"},
        {"\x80\x80", "\uFFFD\uFFFD"},
    };

    (void)state;
    for (size_t i = 0; i < VT_COUNT(cases); i++) {
        struct vt_buf out = {0};

        uni_add_lossy(&out, cases[i].bytes, strlen(cases[i].bytes));
        assert_string_equal(out.data, cases[i].want);
        vt_buf_free(&out);
    }
}

static void flags_tell_what_to_look_at(void **state)
{
    unsigned flags;
    size_t bad = 0;

    (void)state;
    assert_true(uni_scan("0123456789 \u00e9\u6771", 16, &flags, &bad));
    assert_int_equal(flags, 0);
    assert_true(uni_scan("e\u0301", 3, &flags, &bad));
    assert_int_equal(flags, UNI_NORMALIZES);
    assert_true(uni_scan("\U00031350", 4, &flags, &bad));
    assert_int_equal(flags, UNI_NEWER);
    assert_false(uni_scan("01234567\xc3", 9, &flags, &bad));
    assert_int_equal(bad, 8);
    assert_int_equal(uni_flags(0x10ffff), 0);
}

int main(void)
{
    struct CMUnitTest tests[VT_COUNT(rows) + 3] = {
        cmocka_unit_test(many_marks_are_sorted),
        cmocka_unit_test(bad_bytes_become_one_mark_each),
        cmocka_unit_test(flags_tell_what_to_look_at),
    };

    for (size_t i = 0; i < VT_COUNT(rows); i++)
        tests[i + 3] = (struct CMUnitTest){
            .name = rows[i].name, .test_func = composes, .initial_state = &rows[i]};
    return cmocka_run_group_tests_name("nfc", tests, NULL, NULL);
}
