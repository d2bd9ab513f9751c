/* JSON drawn by schemas fits them; texts drawn by expressions are matched by them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "http/reply/parts.h"
#include "schema_testing.h"

enum { DRAWS = 300 };

static const struct row {
    const char *name, *schema;
} fitting[] = {
    {"anything", "{}"},
    {"true", "true"},
    {"string", "{\"type\":\"string\"}"},
    {"string of a length", "{\"type\":\"string\",\"minLength\":7,\"maxLength\":9}"},
    {"long string", "{\"type\":\"string\",\"minLength\":500}"},
    {"empty string", "{\"type\":\"string\",\"maxLength\":0}"},
    {"pattern",
     "{\"type\":\"string\",\"pattern\":\"^[A-Z]{2}-\\\\d{3,5}(foo|bar)?$\"}"},
    {"pattern of a length",
     "{\"type\":\"string\",\"pattern\":\"^[a-z]+$\",\"minLength\":3,\"maxLength\":6}"},
    {"pattern of a length that is seldom drawn",
     "{\"type\":\"string\",\"pattern\":\"^([a-z]*|x)-?\\\\d{2}$\",\"minLength\":70,"
     "\"maxLength\":71}"},
    {"pattern that repeats what repeats",
     "{\"type\":\"string\",\"pattern\":\"^((ab)+c){2,}$\",\"minLength\":21}"},
    {"date", "{\"type\":\"string\",\"format\":\"date\"}"},
    {"date-time", "{\"type\":\"string\",\"format\":\"date-time\"}"},
    {"time", "{\"type\":\"string\",\"format\":\"time\"}"},
    {"email", "{\"type\":\"string\",\"format\":\"email\"}"},
    {"uuid", "{\"type\":\"string\",\"format\":\"uuid\"}"},
    {"uri", "{\"type\":\"string\",\"format\":\"uri\"}"},
    {"ipv4", "{\"type\":\"string\",\"format\":\"ipv4\"}"},
    {"format of no rule", "{\"type\":\"string\",\"format\":\"color\"}"},
    {"integer", "{\"type\":\"integer\"}"},
    {"integer between", "{\"type\":\"integer\",\"minimum\":-3,\"maximum\":4}"},
    {"integer strictly between",
     "{\"type\":\"integer\",\"exclusiveMinimum\":1,\"exclusiveMaximum\":3}"},
    {"integer by real bounds",
     "{\"type\":\"integer\",\"minimum\":1.2,\"maximum\":2.9}"},
    {"integer above", "{\"type\":\"integer\",\"minimum\":1000000}"},
    {"integer below", "{\"type\":\"integer\",\"maximum\":-5}"},
    {"integer of a step", "{\"type\":\"integer\",\"minimum\":5,\"multipleOf\":7}"},
    {"integer of half a step",
     "{\"type\":\"integer\",\"minimum\":3,\"maximum\":9,\"multipleOf\":1.5}"},
    {"number", "{\"type\":\"number\"}"},
    {"number between", "{\"type\":\"number\",\"minimum\":0.001,\"maximum\":0.002}"},
    {"number strictly between, draft 4",
     "{\"type\":\"number\",\"minimum\":0,\"exclusiveMinimum\":true,\"maximum\":1,"
     "\"exclusiveMaximum\":true}"},
    {"number of a step", "{\"type\":\"number\",\"minimum\":1,\"multipleOf\":0.25}"},
    {"boolean", "{\"type\":\"boolean\"}"},
    {"null", "{\"type\":\"null\"}"},
    {"several types", "{\"type\":[\"string\",\"null\",\"integer\"]}"},
    {"nullable", "{\"type\":\"integer\",\"nullable\":true}"},
    {"enum", "{\"enum\":[\"a\",2,null,{\"k\":[1]}]}"},
    {"enum of a type", "{\"type\":\"string\",\"enum\":[1,\"b\",\"c\"]}"},
    {"const", "{\"const\":{\"a\":[1,2.5,\"\\u00e9\"]}}"},
    {"array", "{\"type\":\"array\",\"items\":{\"type\":\"integer\"}}"},
    {"array of a length", "{\"type\":\"array\",\"items\":{\"type\":\"string\"},"
                          "\"minItems\":4,\"maxItems\":6}"},
    {"empty array", "{\"type\":\"array\",\"maxItems\":0}"},
    {"unique items",
     "{\"type\":\"array\",\"items\":{\"type\":\"integer\",\"minimum\":1,"
     "\"maximum\":4},\"minItems\":3,\"uniqueItems\":true}"},
    {"tuple", "{\"type\":\"array\",\"prefixItems\":[{\"type\":\"integer\"},{\"type\":"
              "\"string\"}],\"items\":false,\"minItems\":2}"},
    {"tuple with a tail",
     "{\"prefixItems\":[{\"type\":\"boolean\"}],\"items\":{\"type\":\"null\"},"
     "\"minItems\":3}"},
    {"object",
     "{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\"},\"b\":{"
     "\"type\":\"string\"}},\"required\":[\"a\"],\"additionalProperties\":false}"},
    {"required twice", "{\"type\":\"object\",\"required\":[\"x\",\"x\"],\"allOf\":[{"
                       "\"required\":[\"x\"]}]}"},
    {"required without a rule", "{\"type\":\"object\",\"required\":[\"x\",\"y\"]}"},
    {"additional properties of a type",
     "{\"type\":\"object\",\"additionalProperties\":{\"type\":\"number\"},"
     "\"minProperties\":3}"},
    {"few properties",
     "{\"type\":\"object\",\"properties\":{\"a\":{},\"b\":{},\"c\":{},\"d\":{}},"
     "\"required\":[\"b\"],\"maxProperties\":2}"},
    {"anyOf", "{\"anyOf\":[{\"type\":\"integer\"},{\"type\":\"array\",\"items\":{"
              "\"type\":\"boolean\"}}]}"},
    {"oneOf", "{\"oneOf\":[{\"type\":\"string\"},{\"type\":\"object\",\"properties\":{"
              "\"k\":{\"const\":1}},\"required\":[\"k\"]}]}"},
    {"oneOf by a tag",
     "{\"type\":\"object\",\"oneOf\":[{\"properties\":{\"kind\":{\"const\":\"a\"},"
     "\"x\":{\"type\":\"integer\"}},\"required\":[\"kind\",\"x\"]},{\"properties\":{"
     "\"kind\":{\"const\":\"b\"},\"y\":{\"type\":\"string\"}},\"required\":[\"kind\"]}]"
     "}"},
    {"allOf",
     "{\"allOf\":[{\"type\":\"object\",\"properties\":{\"a\":{\"type\":\"integer\","
     "\"minimum\":5}},\"required\":[\"a\"]},{\"properties\":{\"a\":{\"maximum\":7},"
     "\"b\":{\"type\":\"string\"}},\"required\":[\"b\"]}]}"},
    {"reference", "{\"$defs\":{\"p\":{\"type\":\"object\",\"properties\":{\"n\":{"
                  "\"type\":\"integer\"}},\"required\":[\"n\"]}},\"type\":\"array\","
                  "\"items\":{\"$ref\":\"#/$defs/p\"},\"minItems\":1}"},
    {"reference to definitions",
     "{\"definitions\":{\"s\":{\"type\":\"string\",\"maxLength\":3}},\"properties\":{"
     "\"v\":{\"$ref\":\"#/definitions/s\"}},\"required\":[\"v\"],\"type\":\"object\"}"},
    {"recursion",
     "{\"type\":\"object\",\"properties\":{\"v\":{\"type\":\"integer\"},\"next\":{"
     "\"anyOf\":[{\"$ref\":\"#\"},{\"type\":\"null\"}]}},\"required\":[\"v\",\"next\"]"
     "}"},
    {"tree", "{\"$defs\":{\"node\":{\"type\":\"object\",\"properties\":{\"children\":{"
             "\"type\":\"array\",\"items\":{\"$ref\":\"#/$defs/node\"}}},\"required\":["
             "\"children\"]}},\"$ref\":\"#/$defs/node\"}"},
    {"names to be escaped",
     "{\"type\":\"object\",\"properties\":{\"a\\\"b\\u0001\":{"
     "\"const\":\"q\\\"\\\\\\n\"}},\"required\":[\"a\\\"b\\u0001\"]}"},
    {"a tool as clients send it",
     "{\"type\":\"object\",\"properties\":{\"location\":{\"type\":\"string\","
     "\"description\":\"City\"},\"unit\":{\"type\":\"string\",\"enum\":[\"celsius\","
     "\"fahrenheit\"]},\"days\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":14},"
     "\"tags\":{\"type\":\"array\",\"items\":{\"type\":\"string\"}}},\"required\":["
     "\"location\",\"unit\"],\"additionalProperties\":false}"},
};

/* With `spent` work done already. */
static void check_draw(const struct row *row, const struct vt_node *schema,
                       uint64_t key, uint64_t spent)
{
    struct vt_buf b = {0};
    struct vt_arena a = {0};
    struct judge j = {.root = schema};
    const struct vt_node *value;
    struct vt_err err = {0};
    struct reply_forms forms = {.spent = spent, .before = spent};

    vt_buf_str(&b, "kept");
    if (!reply_schema_write(&forms, &b, schema, key))
        fail_msg("%s: nothing was made, key %u", row->name, (unsigned)key);
    vt_buf_char(&b, '\0');
    assert_memory_equal(b.data, "kept", 4);
    if (vt_json_parse(&a, b.data + 4, b.len - 5, 1, &value, &err) != VT_OK)
        fail_msg("%s: %s: %s", row->name, b.data, err.msg);
    if (!judge(&j, schema, value))
        fail_msg("%s: %s: %s", row->name, b.data + 4, j.why);
    reply_forms_free(&forms);
    vt_arena_free(&a);
    vt_buf_free(&b);
}

static void draws_fit(void **state)
{
    const struct row *row = *state;
    struct vt_arena a = {0};
    const struct vt_node *schema;

    assert_int_equal(
        vt_json_parse(&a, row->schema, strlen(row->schema), 1, &schema, NULL), VT_OK);
    for (uint64_t key = 0; key < DRAWS; key++)
        check_draw(row, schema, key, 0);
    for (uint64_t key = 0; key < DRAWS / 10; key++) /* the simplest */
        check_draw(row, schema, key, REPLY_REQUEST_WORK);
    vt_arena_free(&a);
}

static const struct row impossible[] = {
    {"false", "false"},
    {"no value between", "{\"type\":\"integer\",\"minimum\":3,\"maximum\":2}"},
    {"no type at all", "{\"allOf\":[{\"type\":\"string\"},{\"type\":\"null\"}]}"},
    {"an endless reference", "{\"$ref\":\"#\"}"},
    {"an endless object",
     "{\"type\":\"object\",\"properties\":{\"a\":{\"$ref\":\"#\"}},"
     "\"required\":[\"a\"]}"},
    {"a reference elsewhere", "{\"$ref\":\"https://example.com/s.json\"}"},
    {"a reference to nothing", "{\"$ref\":\"#/$defs/none\"}"},
    {"more unique items than values",
     "{\"type\":\"array\",\"items\":{\"type\":\"boolean\"},\"minItems\":3,"
     "\"uniqueItems\":true}"},
    {"an expression not understood", "{\"type\":\"string\",\"pattern\":\"(?=a)b\"}"},
    {"a string", "\"type\""},
};

static void nothing_is_made(void **state)
{
    const struct row *row = *state;
    struct vt_arena a = {0};
    const struct vt_node *schema;
    struct vt_buf b = {0};
    struct reply_forms forms = {0};

    assert_int_equal(
        vt_json_parse(&a, row->schema, strlen(row->schema), 1, &schema, NULL), VT_OK);
    vt_buf_str(&b, "kept");
    assert_false(reply_schema_write(&forms, &b, schema, 1));
    assert_int_equal(b.len, 4);
    reply_forms_free(&forms);
    vt_buf_free(&b);
    vt_arena_free(&a);
}

static const struct expression {
    const char *name, *regex;
} expressions[] = {
    {"digits", "[0-9]{3}"},
    {"plain", "abc"},
    {"nothing", ""},
    {"choice", "red|green|blue"},
    {"groups", "(ab|(?:cd)+)(?P<x>e?)(?<y>f*)"},
    {"escapes", "\\d\\D\\w\\W\\s\\.\\\\\\x41\\u0042\\t\\/"},
    {"classes", "[^a-z][\\w.-]+[]x]{2}[a\\-z]"},
    {"counts", "a{2}b{1,3}c{2,}d?e+?f*"},
    {"anchors", "^\\w+$"},
    {"any", "a.b"},
    {"other letters", "[\\u00e0-\\u00ef]{4}\xc3\xa9"},
    {"brace by itself", "a{b}"},
    {"phone", "\\+?\\d{1,3}[- ]?\\(?\\d{3}\\)?[- ]?\\d{3}[- ]?\\d{4}"},
    {"JSON by hand", "\\{\"a\": (true|false), \"n\": -?(0|[1-9]\\d*)\\}"},
    {"deep", "((((((((((a|b)|c)|d)|e)|f)|g)|h)|i)|j)|k)"},
};

static void texts_match(void **state)
{
    const struct expression *e = *state;
    struct vt_buf whole = {0}, text = {0};

    /* Both ends, so that a part that matches is not enough. */
    vt_buf_printf(&whole, "\\A(?:%s)\\z", e->regex);
    for (uint64_t key = 0; key < DRAWS; key++) {
        uint64_t spent = key % 2 == 1 ? REPLY_REQUEST_WORK : 0; /* also the simplest */
        struct reply_forms forms = {.spent = spent, .before = spent};
        char fixed[256], *u;

        vt_buf_clear(&text);
        vt_buf_str(&text, "");
        if (!reply_regex_write(&forms, &text, e->regex, strlen(e->regex), key))
            fail_msg("%s: nothing was made", e->name);
        reply_forms_free(&forms);
        snprintf(fixed, sizeof(fixed), "%s", whole.data);
        while ((u = strstr(fixed, "\\u"))) { /* PCRE2 spells them \x{...} */
            char code[5] = {u[2], u[3], u[4], u[5], 0};
            char tail[256];

            snprintf(tail, sizeof(tail), "%s", u + 6);
            snprintf(u, sizeof(fixed) - (size_t)(u - fixed), "\\x{%s}%s", code, tail);
        }
        if (!pcre_matches(fixed, strlen(fixed), text.len > 0 ? text.data : "",
                          text.len))
            fail_msg("%s: '%.*s' is not matched", e->name, (int)text.len, text.data);
    }
    vt_buf_free(&whole);
    vt_buf_free(&text);
}

static const struct expression foreign[] = {
    {"look ahead", "a(?!b)"},
    {"look behind", "(?<=a)b"},
    {"back reference", "(a)\\1"},
    {"word boundary", "\\ba"},
    {"unclosed group", "(a"},
    {"unclosed class", "[a"},
    {"nothing to repeat", "*a"},
    {"flags", "(?i)a"},
    {"too many", "a{999999}"},
    {"backwards", "a{3,2}"},
    {"property", "\\p{L}"},
    {"closed too often", "a)"},
    {"range backwards", "[z-a]"},
    {"backslash", "a\\"},
    {"text too long", "(a{4000}){4000}"},
};

static void not_understood(void **state)
{
    const struct expression *e = *state;
    struct vt_buf text = {0};
    struct reply_forms forms = {0};

    vt_buf_str(&text, "kept");
    assert_false(reply_regex_write(&forms, &text, e->regex, strlen(e->regex), 3));
    assert_int_equal(text.len, 4);
    reply_forms_free(&forms);
    vt_buf_free(&text);
}

static void depth_is_bounded(void **state)
{
    char deep[2001];
    struct vt_buf text = {0};
    struct reply_forms forms = {0};

    (void)state;
    memset(deep, '(', 1000);
    memset(deep + 1000, ')', 1000);
    assert_false(reply_regex_write(&forms, &text, deep, 2000, 1));
    reply_forms_free(&forms);
    vt_buf_free(&text);
}

static void an_object_of_any_kind(void **state)
{
    (void)state;
    for (uint64_t key = 0; key < DRAWS; key++) {
        struct vt_buf b = {0};
        struct vt_arena a = {0};
        const struct vt_node *n;

        reply_schema_any(&b, key);
        assert_int_equal(vt_json_parse(&a, b.data, b.len, 1, &n, NULL), VT_OK);
        assert_int_equal(n->kind, VT_MAP);
        vt_arena_free(&a);
        vt_buf_free(&b);
    }
}

enum {
    N_FITTING = VT_COUNT(fitting),
    N_IMPOSSIBLE = VT_COUNT(impossible),
    N_EXPRESSIONS = VT_COUNT(expressions),
    N_FOREIGN = VT_COUNT(foreign),
};

static void add(struct CMUnitTest *tests, size_t *n, const char *name,
                CMUnitTestFunction function, const void *row)
{
    void *state;

    memcpy(&state, &row, sizeof(state)); /* cmocka takes no const */
    tests[(*n)++] = (struct CMUnitTest){
        .name = name, .test_func = function, .initial_state = state};
}

int main(void)
{
    struct CMUnitTest tests[N_FITTING + N_IMPOSSIBLE + N_EXPRESSIONS + N_FOREIGN + 2];
    size_t n = 0;

    for (size_t i = 0; i < N_FITTING; i++)
        add(tests, &n, fitting[i].name, draws_fit, &fitting[i]);
    for (size_t i = 0; i < N_IMPOSSIBLE; i++)
        add(tests, &n, impossible[i].name, nothing_is_made, &impossible[i]);
    for (size_t i = 0; i < N_EXPRESSIONS; i++)
        add(tests, &n, expressions[i].name, texts_match, &expressions[i]);
    for (size_t i = 0; i < N_FOREIGN; i++)
        add(tests, &n, foreign[i].name, not_understood, &foreign[i]);
    add(tests, &n, "depth is bounded", depth_is_bounded, NULL);
    add(tests, &n, "an object of any kind", an_object_of_any_kind, NULL);
    return cmocka_run_group_tests_name("reply_schema", tests, NULL, NULL);
}
