#include "testing.h"

static struct row {
    const char *name;
    const char *text;
    const char *want; /* the tree, or the message if bad */
    bool bad;
} rows[] = {
    {"empty text is null", "", "null", false},
    {"only a comment is null", "# nothing\n", "null", false},
    {"map in block style", "a: 1\nb:\n  c: x\n", "{a:1 b:{c:\"x\"}}", false},
    {"list in block style", "- 1\n- [2, 3]\n- {a: 4}\n", "[1 [2 3] {a:4}]", false},
    {"nulls", "[~, null, Null, NULL, '']", "[null null null null \"\"]", false},
    {"an empty value is null", "a:\nb: 1\n", "{a:null b:1}", false},
    {"booleans", "[true, True, TRUE, false, False, FALSE]",
     "[true true true false false false]", false},
    {"yes and no are words", "[yes, no, on, off]", "[\"yes\" \"no\" \"on\" \"off\"]",
     false},
    {"integers", "[1, -2, +3, 007, 0x1F, 0o17]", "[1 -2 3 7 31 15]", false},
    {"integers are exact at the edges",
     "[9223372036854775807, -9223372036854775808, 18446744073709551615]",
     "[9223372036854775807 -9223372036854775808 18446744073709551615u]", false},
    {"floats", "[1.5, .5, 5., 1e3, -2.5E-1]", "[1.5r 0.5r 5r 1000r -0.25r]", false},
    {"things that only look like numbers", "[1.2.3, 0x, 0xg, 1e, -, 12:30, 1_000]",
     "[\"1.2.3\" \"0x\" \"0xg\" \"1e\" \"-\" \"12:30\" \"1_000\"]", false},
    {"quotes make strings", "['1', \"true\", \"\\u00e9\"]",
     "[\"1\" \"true\" \"\xc3\xa9\"]", false},
    {"literal block", "a: |\n  x\n  y\n", "{a:\"x\\ny\\n\"}", false},
    {"keys are text", "1: a\ntrue: b\n", "{1:\"a\" true:\"b\"}", false},
    {"one document with markers", "---\na: 1\n...\n", "{a:1}", false},

    {"anchor", "a: &x 1\n", "line 1: anchors are not supported", true},
    {"alias", "a: 1\nb: *x\n", "line 2: aliases are not supported", true},
    {"tag", "a: 1\nb: !!str 2\n", "line 2: tags are not supported", true},
    {"tag on a list", "!mine [1]", "line 1: tags are not supported", true},
    {"duplicate key", "a: 1\nb: 2\na: 3\n", "line 3: key 'a' appears twice", true},
    {"infinity", "a: 1\nb: .inf\n", "line 2: not a finite number", true},
    {"minus infinity", "[-.Inf]", "line 1: not a finite number", true},
    {"not a number", "[.nan]", "line 1: not a finite number", true},
    {"overflow", "[1e999]", "line 1: not a finite number", true},
    {"integer beyond 64 bits", "\n[18446744073709551616]",
     "line 2: integer does not fit 64 bits", true},
    {"list as a key", "? [a, b]\n: 1\n",
     "line 1: a key must be a word, not a list or map", true},
    {"two documents", "a: 1\n---\nb: 2\n",
     "line 2: a second document; only one is expected", true},
    {"bad indentation", "a:\n  b: 1\n c: 2\n", "line 3: did not find expected key",
     true},
    {"tab as indentation", "a:\n\tb: 1\n",
     "line 2: found character that cannot start any token", true},
    {"unclosed list", "a: [1, 2\n", "line 2: did not find expected ',' or ']'", true},
    {"bytes that are not UTF-8", "a: 1\nb: \xff\n",
     "line 2: invalid leading UTF-8 octet", true},
    {"NUL in a key", "\"a\\0b\": 1", "line 1: NUL in a key", true},
};

static void reads(void **state)
{
    const struct row *r = *state;
    struct vt_arena arena = {0};
    const struct vt_node *root;
    struct vt_err err = {0};
    int rc = vt_yaml_parse(&arena, r->text, strlen(r->text), &root, &err);

    if (r->bad) {
        assert_string_equal(err.msg, r->want);
        assert_int_equal(rc, VT_EINPUT);
        assert_null(root);
    } else {
        assert_string_equal(err.msg, "");
        assert_int_equal(rc, VT_OK);
        assert_dump(root, r->want);
    }
    vt_arena_free(&arena);
}

static int parse_nested(int depth, struct vt_err *err)
{
    struct vt_arena arena = {0};
    const struct vt_node *root;
    struct vt_buf b = {0};
    int rc;

    for (int i = 0; i < depth; i++)
        vt_buf_char(&b, '[');
    for (int i = 0; i < depth; i++)
        vt_buf_char(&b, ']');
    rc = vt_yaml_parse(&arena, b.data, b.len, &root, err);
    vt_buf_free(&b);
    vt_arena_free(&arena);
    return rc;
}

static void depth_is_bounded(void **state)
{
    struct vt_err err;

    (void)state;
    assert_int_equal(parse_nested(64, &err), VT_OK);
    assert_int_equal(parse_nested(65, &err), VT_EINPUT);
    assert_string_equal(err.msg, "line 1: nested deeper than 64 levels");
}

static void size_is_bounded(void **state)
{
    struct vt_arena arena = {0};
    const struct vt_node *root;
    struct vt_err err;

    (void)state;
    assert_int_equal(vt_yaml_parse(&arena, "", ((size_t)64 << 20) + 1, &root, &err),
                     VT_EINPUT);
    assert_string_equal(err.msg, "YAML text is longer than 64 MiB");
    vt_arena_free(&arena);
}

int main(void)
{
    static const struct CMUnitTest more[] = {
        cmocka_unit_test(depth_is_bounded),
        cmocka_unit_test(size_is_bounded),
    };
    struct CMUnitTest tests[VT_COUNT(rows)];
    int failed;

    for (size_t i = 0; i < VT_COUNT(rows); i++)
        tests[i] = (struct CMUnitTest){
            .name = rows[i].name, .test_func = reads, .initial_state = &rows[i]};
    failed = cmocka_run_group_tests_name("yaml rows", tests, NULL, NULL);
    return failed + cmocka_run_group_tests_name("yaml", more, NULL, NULL);
}
