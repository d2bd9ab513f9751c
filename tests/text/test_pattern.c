/* Oniguruma's patterns in PCRE2: what is rewritten, what is refused, what matches. */
#include "testing.h"
#include "text/pattern.h"

#define SPACES                                                                  \
    "\\t-\\r \\x85\\xa0\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}" \
    "\\x{205f}\\x{3000}"

static struct row {
    const char *name, *regex, *want;
    bool refused;
} rows[] = {
    {"plain text stays", "'s|'t", "'s|'t", false},
    {"white space outside a class", "\\s+", "[" SPACES "]+", false},
    {"white space inside one", "[^\\s]", "[^" SPACES "]", false},
    {"no white space", "(?!\\S)", "(?![^" SPACES "])", false},
    {"a property", "\\p{L}+", "[\\p{L}]+", false},
    {"a property inside a class", "[^\\r\\n\\p{L}\\p{N}]", "[^\\r\\n\\p{L}\\p{N}]",
     false},
    {"a negated property", "\\P{L}\\p{^N}", "[^\\p{L}][^\\p{N}]", false},
    {"digits", "\\d", "[\\p{Nd}]", false},
    {"groups and looks", "(?i:a)(?:b)(?=c)(?!d)(?<=e)(?<!f)(?>g)(h)",
     "(?i:a)(?:b)(?=c)(?!d)(?<=e)(?<!f)(?>g)(h)", false},
    {"repeats", "a{1,3}b{2}c{,4}d{5,}?", "a{1,3}b{2}c{0,4}d{5,}?", false},
    {"characters by number", "\\x{4e00}\\x41\\u0041", "\\x{4e00}\\x{41}\\x{0041}",
     false},
    {"a vertical tab", "\\v", "\\x0b", false},
    {"quoted punctuation", "\\[\\-\\/", "\\[\\-\\/", false},

    {"horizontal space means hex digits there", "\\h", "'\\h'", true},
    {"word boundaries", "\\bx", "'\\b'", true},
    {"back references", "(a)\\1", "'\\1'", true},
    {"bytes", "\\xff", "'\\xff'", true},
    {"classes inside classes", "[a[bc]]", "'[b'", true},
    {"intersections of classes", "[a-z&&b]", "'&&'", true},
    {"an empty class", "[]", "'[]'", true},
    {"a class that is not closed", "[abc", "not closed", true},
    {"repeats that would be possessive", "\\p{N}{1,3}+", "'{1,3}+'", true},
    {"options that PCRE2 reads otherwise", "(?m:.)", "'(?m:'", true},
    {"verbs", "(*UTF)", "'(*'", true},
    {"a backslash at the end", "a\\", "'\\'", true},
    {"a property without a name", "\\p{}", "'\\p{}'", true},
    {"a property that does not exist", "\\p{Nonsense}", "unknown property", true},
    {"a group that is not closed", "(a", "missing closing parenthesis", true},
};

static void translates(void **state)
{
    const struct row *r = *state;
    struct pattern p = {0};
    struct vt_buf out = {0};
    struct vt_err err = {0};

    if (r->refused) {
        assert_int_equal(pattern_open(&p, r->regex, strlen(r->regex), &err), VT_EINPUT);
        if (!strstr(err.msg, r->want))
            fail_msg("'%s' does not say '%s'", err.msg, r->want);
        assert_null(strchr(err.msg, '\n'));
        return;
    }
    assert_int_equal(pattern_translate(r->regex, strlen(r->regex), false, &out, &err),
                     VT_OK);
    assert_string_equal(out.data, r->want);
    assert_int_equal(pattern_open(&p, r->regex, strlen(r->regex), &err), VT_OK);
    pattern_close(&p);
    vt_buf_free(&out);
}

/* Cuts a text at its matches: "[match]rest[match]". */
static void matches_are(const char *regex, const char *text, bool newer,
                        const char *want)
{
    struct pattern p = {0};
    struct pattern_run run = {0};
    struct vt_buf out = {0};
    struct vt_err err;
    size_t at = 0, start, end;

    if (pattern_open(&p, regex, strlen(regex), &err) != VT_OK ||
        pattern_run_start(&run, &p, newer, text, strlen(text), &err) != VT_OK)
        fail_msg("%s", err.msg);
    vt_buf_str(&out, "");
    for (;;) {
        assert_int_equal(pattern_run_next(&run, &start, &end, &err), VT_OK);
        if (start == SIZE_MAX)
            break;
        vt_buf_add(&out, text + at, start - at);
        vt_buf_printf(&out, "[%.*s]", (int)(end - start), text + start);
        at = end;
    }
    vt_buf_str(&out, text + at);
    assert_string_equal(out.data, want);
    pattern_run_free(&run);
    pattern_close(&p);
    vt_buf_free(&out);
}

static void matches_as_oniguruma(void **state)
{
    (void)state;
    matches_are("\\s+(?!\\S)|\\s+", "a   b  ", false, "a[  ][ ]b[  ]");
    matches_are("\\s", "\u180e\xc2\x85\u2003", false, "\u180e[\xc2\x85][\u2003]");
    matches_are("\\w+", "e\u0301_9 \u24b6", false, "[e\u0301_9] [\u24b6]");
    matches_are("(?i:'s)", "'S'\u017f'x", false, "['S]['\u017f]'x");
    matches_are("x*", "axb", false, "[]a[x]b[]");
    matches_are("^a$", "a\na", false, "[a]\n[a]");
}

static void newer_characters_are_known(void **state)
{
    (void)state;
    matches_are("\\p{L}+", "\U00031350x", true, "[\U00031350x]");
    matches_are("[^\\p{L}]", "\U00031350-", true, "\U00031350[-]");
    matches_are("\\p{Lu}", "\ua7dc\U00031350", true, "[\ua7dc]\U00031350");
    matches_are("\\p{N}", "\U00011bf0", true, "[\U00011bf0]");
}

/* What nests too deep for the fast matcher is done by the slow one, within limits. */
static void explosions_end_in_an_error(void **state)
{
    static const char regex[] = "(?:(?:a|b)+)+c";
    static const char text[] =
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaadc";
    struct pattern p = {0};
    struct pattern_run run = {0};
    struct vt_err err;
    size_t start, end;

    (void)state;
    assert_int_equal(pattern_open(&p, regex, sizeof(regex) - 1, &err), VT_OK);
    assert_int_equal(pattern_run_start(&run, &p, false, text, sizeof(text) - 1, &err),
                     VT_OK);
    assert_int_equal(pattern_run_next(&run, &start, &end, &err), VT_EINPUT);
    assert_non_null(strstr(err.msg, "the tokenizer's pattern fails at byte 0"));
    pattern_run_free(&run);
    pattern_close(&p);
}

int main(void)
{
    struct CMUnitTest tests[VT_COUNT(rows) + 3] = {
        cmocka_unit_test(matches_as_oniguruma),
        cmocka_unit_test(newer_characters_are_known),
        cmocka_unit_test(explosions_end_in_an_error),
    };

    for (size_t i = 0; i < VT_COUNT(rows); i++)
        tests[i + 3] = (struct CMUnitTest){
            .name = rows[i].name, .test_func = translates, .initial_state = &rows[i]};
    return cmocka_run_group_tests_name("pattern", tests, NULL, NULL);
}
