#include "testing.h"

static struct row {
    const char *name;
    const char *text;
    const char *want; /* the tree, or the message if bad */
    bool bad;
} rows[] = {
    {"words", "[true,false,null]", "[true false null]", false},
    {"white space everywhere", " \t\r\n[ 1 , 2 ]\n", "[1 2]", false},
    {"a lone value", "7", "7", false},
    {"empty list and map", "[[],{}]", "[[] {}]", false},
    {"nested maps keep the order of the file", "{\"b\":{\"z\":1,\"a\":2},\"a\":[]}",
     "{b:{z:1 a:2} a:[]}", false},
    {"integers are exact at the edges",
     "[9223372036854775807,-9223372036854775808,9007199254740993]",
     "[9223372036854775807 -9223372036854775808 9007199254740993]", false},
    {"integers above int64 are marked", "[9223372036854775808,18446744073709551615]",
     "[9223372036854775808u 18446744073709551615u]", false},
    {"minus zero is the integer zero", "-0", "0", false},
    {"reals", "[0.5,-1.25e2,1E+2,1e-2,123456789.012345678]",
     "[0.5r -125r 100r 0.01r 123456789.01234567r]", false},
    {"the smallest double", "5e-324", "5e-324r", false},
    {"underflow is zero", "1e-999", "0r", false},
    {"the largest double", "1.7976931348623157e308", "1.7976931348623157e+308r", false},
    {"short escapes", "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\\"\\\\/\\b\\f\\n\\r\\t\"",
     false},
    {"unicode escapes", "\"\\u0041\\u00e9\\u20AC\\ud83d\\ude00\"",
     "\"A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"", false},
    {"a NUL inside a string", "\"a\\u0000b\"", "\"a\\u0000b\"", false},
    {"raw UTF-8", "\"\xc3\xa9\xf0\x9f\x98\x80\"", "\"\xc3\xa9\xf0\x9f\x98\x80\"",
     false},
    {"long strings with one escape", "\"0123456789abcdef\\n0123456789abcdef\"",
     "\"0123456789abcdef\\n0123456789abcdef\"", false},

    {"empty text", "", "line 1: unexpected end of text", true},
    {"only white space", "\n\n", "line 3: unexpected end of text", true},
    {"a cut list names its last line", "[1,\n2,\n", "line 3: unexpected end of text",
     true},
    {"a cut word", "tru", "line 1: unexpected end of text", true},
    {"a cut string", "\"abc", "line 1: unexpected end of text", true},
    {"a string cut in an escape", "\"abc\\", "line 1: unexpected end of text", true},
    {"a misspelt word", "nul!", "line 1: expected a value, not 'n'", true},
    {"garbage behind the value", "{}\n x", "line 2: expected the end of text, not 'x'",
     true},
    {"missing comma", "[1 2]", "line 1: expected ',' or ']', not '2'", true},
    {"trailing comma in a list", "[1,]", "line 1: expected a value, not ']'", true},
    {"trailing comma in a map", "{\"a\":1,}",
     "line 1: expected a key in quotes, not '}'", true},
    {"missing colon", "{\"a\" 1}", "line 1: expected ':', not '1'", true},
    {"wrong bracket", "[1}", "line 1: expected ',' or ']', not '}'", true},
    {"key without quotes", "{a:1}", "line 1: expected a key in quotes, not 'a'", true},
    {"duplicate key", "{\"a\":1,\n\"b\":2,\n\"a\":3}", "line 3: key 'a' appears twice",
     true},
    {"duplicate key by escape", "{\"a\":1,\"\\u0061\":3}",
     "line 1: key 'a' appears twice", true},
    {"NUL in a key", "{\"a\\u0000\":1}", "line 1: NUL in a key", true},
    {"leading zero", "01", "line 1: malformed number", true},
    {"point without digits", "[1.]", "line 1: malformed number", true},
    {"exponent without digits", "1e+", "line 1: malformed number", true},
    {"lone minus", "-", "line 1: malformed number", true},
    {"plus", "+1", "line 1: expected a value, not '+'", true},
    {"point first", ".5", "line 1: expected a value, not '.'", true},
    {"NaN", "NaN", "line 1: expected a value, not 'N'", true},
    {"Infinity", "-Infinity", "line 1: malformed number", true},
    {"overflow", "1e309", "line 1: number out of range", true},
    {"integer beyond 64 bits", "18446744073709551616",
     "line 1: integer does not fit 64 bits", true},
    {"negative integer beyond 64 bits", "-9223372036854775809",
     "line 1: integer does not fit 64 bits", true},
    {"raw control character", "\"a\nb\"", "line 1: control character in a string",
     true},
    {"unknown escape", "\"\\x\"", "line 1: unknown escape in a string", true},
    {"short unicode escape", "\"\\u12\"", "line 1: bad \\u escape in a string", true},
    {"lone high surrogate", "\"\\ud800x\"", "line 1: lone surrogate in a string", true},
    {"lone low surrogate", "\"\\udc00\"", "line 1: lone surrogate in a string", true},
    {"two high surrogates", "\"\\ud800\\ud800\"", "line 1: lone surrogate in a string",
     true},
    {"overlong UTF-8", "\"\xc0\xaf\"", "line 1: bytes that are not UTF-8 in a string",
     true},
    {"UTF-8 surrogate", "\"\xed\xa0\x80\"",
     "line 1: bytes that are not UTF-8 in a string", true},
    {"UTF-8 beyond Unicode", "\"\xf4\x90\x80\x80\"",
     "line 1: bytes that are not UTF-8 in a string", true},
    {"cut UTF-8", "\"\xe2\x82\"", "line 1: bytes that are not UTF-8 in a string", true},
    {"odd byte outside strings", "[\x01]", "line 1: expected a value, not byte 0x01",
     true},
};

static void reads(void **state)
{
    const struct row *r = *state;
    struct vt_arena arena = {0};
    const struct vt_node *root;
    struct vt_err err = {0};
    /* An exact copy on the heap, so that reading past the end is caught. */
    size_t len = strlen(r->text);
    char *text = malloc(len ? len : 1);
    int rc;

    assert_non_null(text);
    memcpy(text, r->text, len);
    rc = vt_json_parse(&arena, text, len, 1, &root, &err);
    free(text);
    if (r->bad) {
        assert_int_equal(rc, VT_EINPUT);
        assert_string_equal(err.msg, r->want);
        assert_null(root);
    } else {
        assert_string_equal(err.msg, "");
        assert_int_equal(rc, VT_OK);
        assert_dump(root, r->want);
    }
    vt_arena_free(&arena);
}

static int parse_repeated(struct vt_arena *a, const char *piece, int times,
                          const char *tail, const struct vt_node **root,
                          struct vt_err *err)
{
    struct vt_buf b = {0};
    int rc;

    for (int i = 0; i < times; i++)
        vt_buf_str(&b, piece);
    vt_buf_str(&b, tail);
    rc = vt_json_parse(a, b.data, b.len, 1, root, err);
    vt_buf_free(&b);
    return rc;
}

static void depth_is_bounded(void **state)
{
    struct vt_arena arena = {0};
    const struct vt_node *root;
    struct vt_err err;
    char close[65];

    (void)state;
    memset(close, ']', 64);
    close[64] = '\0';
    assert_int_equal(parse_repeated(&arena, "[", 64, close, &root, &err), VT_OK);
    assert_int_equal(parse_repeated(&arena, "[", 65, close, &root, &err), VT_EINPUT);
    assert_string_equal(err.msg, "line 1: nested deeper than 64 levels");
    assert_int_equal(parse_repeated(&arena, "[", 1000000, "", &root, &err), VT_EINPUT);
    vt_arena_free(&arena);
}

static void every_value_knows_its_line(void **state)
{
    static const char text[] = "{\"a\":\n[1,\n2],\n\"b\":\n\n\"x\"}";
    struct vt_arena arena = {0};
    const struct vt_node *root, *a;

    (void)state;
    assert_int_equal(vt_json_parse(&arena, text, strlen(text), 10, &root, NULL), VT_OK);
    a = vt_get(root, "a");
    assert_int_equal(root->line, 10);
    assert_int_equal(a->line, 11);
    assert_int_equal(a->u.item[0].line, 11);
    assert_int_equal(a->u.item[1].line, 12);
    assert_int_equal(vt_get(root, "b")->line, 15);
    vt_arena_free(&arena);
}

/* Above the size where keys are sorted instead of compared in pairs. */
static void large_maps_reject_duplicates_too(void **state)
{
    struct vt_arena arena = {0};
    const struct vt_node *root;
    struct vt_buf b = {0};
    struct vt_err err;

    (void)state;
    for (int i = 0; i < 5000; i++)
        vt_buf_printf(&b, "%c\"key%d\":%d\n", i ? ',' : '{', i, i);
    vt_buf_char(&b, '}');
    assert_int_equal(vt_json_parse(&arena, b.data, b.len, 1, &root, &err), VT_OK);
    assert_int_equal(root->n, 5000);
    assert_int_equal(vt_get(root, "key4321")->u.integer, 4321);
    b.data[b.len - 1] = ',';
    vt_buf_str(&b, "\"key17\":0}");
    assert_int_equal(vt_json_parse(&arena, b.data, b.len, 1, &root, &err), VT_EINPUT);
    assert_string_equal(err.msg, "line 5001: key 'key17' appears twice");
    vt_buf_free(&b);
    vt_arena_free(&arena);
}

static void a_cut_anywhere_is_a_clean_error(void **state)
{
    static const char text[] =
        "{\"s\":\"a\\u00e9\\ud83d\\ude00\xc3\xa9\",\"n\":[-1.5e+3,true,null],\"m\":{}}";
    struct vt_err err;

    (void)state;
    for (size_t len = 0; len < strlen(text); len++) {
        struct vt_arena arena = {0};
        const struct vt_node *root;
        char *copy = malloc(len ? len : 1);

        assert_non_null(copy);
        memcpy(copy, text, len);
        assert_int_equal(vt_json_parse(&arena, copy, len, 1, &root, &err), VT_EINPUT);
        assert_memory_equal(err.msg, "line 1: ", 8);
        free(copy);
        vt_arena_free(&arena);
    }
}

static void numbers_of_absurd_length_are_refused(void **state)
{
    struct vt_arena arena = {0};
    const struct vt_node *root;
    struct vt_err err;

    (void)state;
    assert_int_equal(parse_repeated(&arena, "1", 900, ".5e-850", &root, &err), VT_OK);
    assert_true(root->u.real > 1e49 && root->u.real < 1e50);
    assert_int_equal(parse_repeated(&arena, "1", 2000, ".5e-1990", &root, &err),
                     VT_EINPUT);
    assert_string_equal(err.msg, "line 1: number out of range");
    vt_arena_free(&arena);
}

static void what_was_read_can_be_written_again(void **state)
{
    static const char text[] =
        "{\"a\":[1,-2,18446744073709551615,0.00001,1e300,true,false,null],"
        "\"b\":{\"c\":\"\\u0001\\\"\303\251\"},\"d\":[],\"e\":{}}";
    static const struct vt_json_style python = {vt_buf_py_f64, vt_buf_json_str, ", ",
                                                ": ", NULL};
    struct vt_arena arena = {0};
    struct vt_buf b = {0};
    const struct vt_node *root;

    (void)state;
    assert_int_equal(vt_json_parse(&arena, text, sizeof(text) - 1, 1, &root, NULL),
                     VT_OK);
    vt_buf_json_node(&b, root, NULL);
    assert_non_null(strstr(b.data, "\"a\":[1,-2,18446744073709551615,"));
    assert_int_equal(vt_json_parse(&arena, b.data, b.len, 1, &root, NULL), VT_OK);
    vt_buf_clear(&b);
    vt_buf_json_node(&b, root, &python);
    assert_string_equal(
        b.data,
        "{\"a\": [1, -2, 18446744073709551615, 1e-05, 1e+300, true, false, "
        "null], \"b\": {\"c\": \"\\u0001\\\"\303\251\"}, \"d\": [], \"e\": {}}");
    vt_buf_free(&b);
    vt_arena_free(&arena);
}

/* Long lists of ids keep both ends, in order, and the number of the others. */
static struct bounded {
    const char *name, *text, *want;
    uint32_t left_out;
} bounded[] = {
    {"a short list is whole", "{\"p\":[1,2,3,4,5,6]}", "{p:[1 2 3 4 5 6]}", 0},
    {"one is left out", "{\"p\":[1,2,3,4,5,6,7]}", "{p:[1 2 3 5 6 7]}", 1},
    {"two are", "{\"p\":[1,2,3,4,5,6,7,8]}", "{p:[1 2 3 6 7 8]}", 2},
    {"as many as an end has", "{\"p\":[1,2,3,4,5,6,7,8,9]}", "{p:[1 2 3 7 8 9]}", 3},
    {"more", "{\"p\":[1,2,3,4,5,6,7,8,9,10]}", "{p:[1 2 3 8 9 10]}", 4},
    {"in a list within", "{\"p\":[[1],[1,2,3,4,5,6,7,8]]}", "{p:[[1] [1 2 3 6 7 8]]}",
     0},
    {"elsewhere all stay", "{\"q\":[1,2,3,4,5,6,7,8]}", "{q:[1 2 3 4 5 6 7 8]}", 0},
    {"deeper too", "{\"q\":{\"p\":[1,2,3,4,5,6,7]}}", "{q:{p:[1 2 3 4 5 6 7]}}", 0},
    {"and where there are no keys", "[[1,2,3,4,5,6,7]]", "[[1 2 3 4 5 6 7]]", 0},
    {"what is no id stays", "{\"p\":[1,2,3,4,5,6,7,-1,\"x\"]}",
     "{p:[1 2 3 5 6 7 -1 \"x\"]}", 1},
};

static void keeps_both_ends(void **state)
{
    const struct bounded *row = *state;
    struct vt_json_bounds b = {.values = 20, .key = "p", .ends = 3};
    struct vt_arena arena = {0};
    struct vt_buf text = {0};
    const struct vt_node *root;

    assert_int_equal(
        vt_json_parse_bounded(&arena, row->text, strlen(row->text), &b, &root, NULL),
        VT_OK);
    dump(&text, root);
    assert_string_equal(text.data, row->want);
    assert_int_equal(root->u.item[0].left_out, row->left_out);
    vt_buf_free(&text);
    vt_arena_free(&arena);
}

static void a_tree_may_be_no_larger_than_allowed(void **state)
{
    struct vt_json_bounds b = {.values = 5, .key = "p", .ends = 1};
    struct vt_arena arena = {0};
    const struct vt_node *root;
    struct vt_err err = {0};

    (void)state;
    assert_int_equal(vt_json_parse_bounded(&arena, "[1,2,3,4]", 9, &b, &root, &err),
                     VT_OK);
    assert_false(b.passed);
    assert_int_equal(
        vt_json_parse_bounded(&arena, "[1,2,3,\n4,5]", 12, &b, &root, &err), VT_EINPUT);
    assert_string_equal(err.msg, "line 2: more than 5 values");
    assert_true(b.passed);
    b.passed = false; /* what is left out does not count */
    assert_int_equal(
        vt_json_parse_bounded(&arena, "{\"p\":[1,2,3,4,5,6,7]}", 21, &b, &root, &err),
        VT_OK);
    assert_int_equal(root->u.item[0].left_out, 5);
    vt_arena_free(&arena);
}

int main(void)
{
    static const struct CMUnitTest more[] = {
        cmocka_unit_test(a_tree_may_be_no_larger_than_allowed),
        cmocka_unit_test(what_was_read_can_be_written_again),
        cmocka_unit_test(depth_is_bounded),
        cmocka_unit_test(every_value_knows_its_line),
        cmocka_unit_test(large_maps_reject_duplicates_too),
        cmocka_unit_test(a_cut_anywhere_is_a_clean_error),
        cmocka_unit_test(numbers_of_absurd_length_are_refused),
    };
    struct CMUnitTest tests[VT_COUNT(rows)], ends[VT_COUNT(bounded)];
    int failed;

    for (size_t i = 0; i < VT_COUNT(rows); i++)
        tests[i] = (struct CMUnitTest){
            .name = rows[i].name, .test_func = reads, .initial_state = &rows[i]};
    failed = cmocka_run_group_tests_name("json rows", tests, NULL, NULL);
    for (size_t i = 0; i < VT_COUNT(bounded); i++)
        ends[i] = (struct CMUnitTest){.name = bounded[i].name,
                                      .test_func = keeps_both_ends,
                                      .initial_state = &bounded[i]};
    failed += cmocka_run_group_tests_name("lists of ids", ends, NULL, NULL);
    return failed + cmocka_run_group_tests_name("json", more, NULL, NULL);
}
