#include <unistd.h>

#include "testing.h"

static struct row {
    const char *name;
    const char *text;
    const char *want; /* the tree, or the message if bad */
    bool bad;
} rows[] = {
    {"empty text is an empty map", "", "{}", false},
    {"comments and blank lines", "# a\n\n  # b\r\n", "{}", false},
    {"keys of all kinds", "a_-1 = 1\n\"b c\" = 2\n'd\"' = 3\n1 = 4\n\"\" = 5",
     "{a_-1:1 b c:2 d\":3 1:4 :5}", false},
    {"dotted keys make tables", "a.b = 1\na . 'c' = 2\n", "{a:{b:1 c:2}}", false},
    {"tables", "[a]\nx = 1\n[b.c]\ny = 2\n[b]\nz = 3\n", "{a:{x:1} b:{c:{y:2} z:3}}",
     false},
    {"lists of tables", "[[g]]\nx = 1\n[g.t]\ny = 2\n[[g]]\n[[g.s]]\nz = 3\n",
     "{g:[{x:1 t:{y:2}} {s:[{z:3}]}]}", false},
    {"a header below dotted keys", "[f]\na.b = 1\n[f.a.c]\nd = 2\n",
     "{f:{a:{b:1 c:{d:2}}}}", false},
    {"inline tables", "a = { b = 1, c.d = 'x', c.e = {} }\n",
     "{a:{b:1 c:{d:\"x\" e:{}}}}", false},
    {"lists over lines", "a = [ 1, # one\n  [2, 'x'],\n\n {b = 3},\n]\nb = []\n",
     "{a:[1 [2 \"x\"] {b:3}] b:[]}", false},
    {"booleans", "a = true\nb = false", "{a:true b:false}", false},
    {"integers", "a = [1, -2, +3, 1_000, 0x1F, 0xdead_beef, 0o17, 0b101, -0]",
     "{a:[1 -2 3 1000 31 3735928559 15 5 0]}", false},
    {"integers are exact at the edges",
     "a = [9223372036854775807, -9223372036854775808, 18446744073709551615]",
     "{a:[9223372036854775807 -9223372036854775808 18446744073709551615u]}", false},
    {"floats", "a = [1.5, -0.25, 1e3, 1E+3, 6.02_2e2_0]",
     "{a:[1.5r -0.25r 1000r 1000r 6.022e+20r]}", false},
    {"basic strings", "a = \"\\b\\t\\n\\f\\r\\\"\\\\ \\u00e9 \\U0001F600 #\"",
     "{a:\"\\b\\t\\n\\f\\r\\\"\\\\ \xc3\xa9 \xf0\x9f\x98\x80 #\"}", false},
    {"literal strings", "a = 'C:\\n \"x\"'", "{a:\"C:\\\\n \\\"x\\\"\"}", false},
    {"strings of several lines", "a = \"\"\"\nx\r\ny\\\n\n   z\"\"\"\nb = '''\n\\\n'''",
     "{a:\"x\\nyz\" b:\"\\\\\\n\"}", false},
    {"quotes before the closing quotes", "a = \"\"\"\"x\"\"\"\"\"\nb = ''''x'''''",
     "{a:\"\\\"x\\\"\\\"\" b:\"'x''\"}", false},

    {"no value", "a =\n", "line 1: expected a value", true},
    {"no equals sign", "a\nb = 1", "line 1: expected '='", true},
    {"no key", "\n= 1", "line 2: expected a key, not '='", true},
    {"two pairs on a line", "a = 1 b = 2",
     "line 1: expected the end of the line, not 'b'", true},
    {"a word", "a = 1\nb = maybe\n", "line 2: 'maybe' is not a value", true},
    {"leading zero", "a = 007", "line 1: '007' is not a value", true},
    {"underscore in the wrong place", "a = 1__0", "line 1: '1__0' is not a value",
     true},
    {"half a float", "a = 1.", "line 1: '1.' is not a value", true},
    {"a digit too large", "a = 0o8", "line 1: '0o8' is not a value", true},
    {"date", "\na = 1979-05-27\n",
     "line 2: dates and times are not supported; write a string", true},
    {"time", "a = 07:32:00",
     "line 1: dates and times are not supported; write a string", true},
    {"infinity", "a = -inf", "line 1: not a finite number", true},
    {"overflow", "a = 1e999", "line 1: number out of range", true},
    {"integer beyond 64 bits", "a = 18446744073709551616",
     "line 1: integer does not fit 64 bits", true},
    {"duplicate key", "a = 1\nb = 2\na = 3\n", "line 3: key 'a' appears twice", true},
    {"duplicate table", "[a]\n[b]\n[a]\n", "line 3: key 'a' appears twice", true},
    {"table over a value", "a = 1\n[a.b]\n", "line 2: key 'a' appears twice", true},
    {"table over a list of tables", "[[a]]\n[a]\n", "line 2: key 'a' appears twice",
     true},
    {"adding to a list that was written whole", "a = [{}]\n[[a]]\n",
     "line 2: key 'a' appears twice", true},
    {"adding to an inline table", "a = {}\na.b = 1\n", "line 2: key 'a' appears twice",
     true},
    {"dotted keys into a table with a header", "[a.b]\n[a]\nb.c = 1\n",
     "line 3: key 'b' appears twice", true},
    {"a header for a table of dotted keys", "[f]\na.b = 1\n[f.a]\n",
     "line 3: key 'a' appears twice", true},
    {"unclosed list", "a = [1,\n", "line 2: expected a value", true},
    {"list without commas", "a = [1 2]", "line 1: expected ',' or ']', not '2'", true},
    {"inline table over lines", "a = {\nb = 1}", "line 1: expected a key", true},
    {"inline table with a last comma", "a = {b = 1,}",
     "line 1: expected a key, not '}'", true},
    {"unclosed header", "[a\n", "line 1: expected ']'", true},
    {"unclosed double header", "[[a]\n", "line 1: expected ']]'", true},
    {"string without end", "a = \"x\n", "line 1: a string does not end on its line",
     true},
    {"long string without end", "a = \"\"\"x\ny", "line 2: a string does not end",
     true},
    {"unknown escape", "a = \"\\q\"", "line 1: unknown escape in a string", true},
    {"lone surrogate", "a = \"\\ud800\"", "line 1: bad Unicode escape in a string",
     true},
    {"control character", "a = '\x01'", "line 1: control character in a string", true},
    {"bytes that are not UTF-8", "a = 1\nb = '\xff'",
     "line 2: bytes that are not UTF-8 in a string", true},
    {"a comment that is not UTF-8", "# \xff",
     "line 1: bytes that are not UTF-8 in a comment", true},
    {"a carriage return alone", "a = 1\rb = 2", "line 1: expected the end of the line",
     true},
    {"a byte that is nothing", "\x01", "line 1: expected a key, not byte 0x01", true},
    {"NUL in a key", "\"a\\u0000b\" = 1", "line 1: NUL in a key", true},
    {"a key on several lines", "\"\"\"a\"\"\" = 1", "line 1: a key on several lines",
     true},
};

static void reads(void **state)
{
    const struct row *r = *state;
    struct vt_arena arena = {0};
    const struct vt_node *root;
    struct vt_err err = {0};
    int rc = vt_toml_parse(&arena, r->text, strlen(r->text), &root, &err);

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

/* n times `open`, then n times `close`. */
static int parse_nested(const char *before, const char *open, const char *close, int n,
                        struct vt_err *err)
{
    struct vt_arena arena = {0};
    const struct vt_node *root;
    struct vt_buf b = {0};
    int rc;

    vt_buf_str(&b, before);
    for (int i = 0; i < n; i++)
        vt_buf_str(&b, open);
    for (int i = 0; i < n; i++)
        vt_buf_str(&b, close);
    rc = vt_toml_parse(&arena, b.data, b.len, &root, err);
    vt_buf_free(&b);
    vt_arena_free(&arena);
    return rc;
}

static void depth_is_bounded(void **state)
{
    struct vt_err err;

    (void)state;
    assert_int_equal(parse_nested("a = ", "[", "]", 63, &err), VT_OK);
    assert_int_equal(parse_nested("a = ", "[", "]", 64, &err), VT_EINPUT);
    assert_string_equal(err.msg, "line 1: nested deeper than 64 levels");
    assert_int_equal(parse_nested("a = 1\n", "[[a]]\n", "", 1, &err), VT_EINPUT);
    assert_int_equal(parse_nested("", "a.", "", 70, &err), VT_EINPUT);
    assert_string_equal(err.msg, "line 1: nested deeper than 64 levels");
}

static void lines_are_those_of_the_keys(void **state)
{
    static const char text[] = "\n[a]\nb = \"\"\"\n\n\"\"\"\nc = 1\n[[d]]\n";
    struct vt_arena arena = {0};
    const struct vt_node *root, *a;
    struct vt_err err;

    (void)state;
    assert_int_equal(vt_toml_parse(&arena, text, strlen(text), &root, &err), VT_OK);
    a = vt_get(root, "a");
    assert_int_equal(a->line, 2);
    assert_int_equal(vt_get(a, "b")->line, 3);
    assert_int_equal(vt_get(a, "c")->line, 6);
    assert_int_equal(vt_get(root, "d")->u.item[0].line, 7);
    vt_arena_free(&arena);
}

static void many_keys_take_no_quadratic_time(void **state)
{
    enum { N = 200000 };
    struct vt_arena arena = {0};
    const struct vt_node *root;
    struct vt_buf b = {0};
    struct vt_err err;

    (void)state;
    for (int i = 0; i < N; i++)
        vt_buf_printf(&b, "k%d = %d\n", i, i);
    assert_int_equal(vt_toml_parse(&arena, b.data, b.len, &root, &err), VT_OK);
    assert_int_equal(root->n, N);
    assert_int_equal(root->u.item[N - 1].u.integer, N - 1);
    vt_buf_free(&b);
    vt_arena_free(&arena);
}

static void size_is_bounded(void **state)
{
    struct vt_arena arena = {0};
    const struct vt_node *root;
    struct vt_err err;

    (void)state;
    assert_int_equal(vt_toml_parse(&arena, "", ((size_t)4 << 20) + 1, &root, &err),
                     VT_EINPUT);
    assert_string_equal(err.msg, "TOML text is longer than 4 MiB");
    vt_arena_free(&arena);
}

/* Only the name tells: this text is good TOML and bad JSON. */
static void files_are_known_by_their_name(void **state)
{
    char dir[] = "/tmp/vt-toml-XXXXXX", path[64];
    FILE *f;
    struct vt_arena arena = {0};
    const struct vt_node *root;
    struct vt_err err = {0};

    (void)state;
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof(path), "%s/a.toml", dir);
    f = fopen(path, "w");
    assert_non_null(f);
    fputs("[[a]]\nb = 1\n", f);
    fclose(f);
    assert_int_equal(vt_tree_load(&arena, path, &root, &err), VT_OK);
    assert_dump(root, "{a:[{b:1}]}");
    unlink(path);
    rmdir(dir);
    vt_arena_free(&arena);
}

int main(void)
{
    static const struct CMUnitTest more[] = {
        cmocka_unit_test(depth_is_bounded),
        cmocka_unit_test(lines_are_those_of_the_keys),
        cmocka_unit_test(many_keys_take_no_quadratic_time),
        cmocka_unit_test(size_is_bounded),
        cmocka_unit_test(files_are_known_by_their_name),
    };
    struct CMUnitTest tests[VT_COUNT(rows)];
    int failed;

    for (size_t i = 0; i < VT_COUNT(rows); i++)
        tests[i] = (struct CMUnitTest){
            .name = rows[i].name, .test_func = reads, .initial_state = &rows[i]};
    failed = cmocka_run_group_tests_name("toml rows", tests, NULL, NULL);
    return failed + cmocka_run_group_tests_name("toml", more, NULL, NULL);
}
