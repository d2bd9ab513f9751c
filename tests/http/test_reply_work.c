/* However costly a schema or an expression is to follow, the work for a choice and for
 * all choices of a request is bounded, and what is written fits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "http/reply/parts.h"
#include "schema_testing.h"

enum {
    CHOICES = 64,
    SLACK = 1 << 16, /* the one piece of work that was refused */
};

static void add_times(struct vt_buf *b, unsigned n, const char *text)
{
    for (unsigned i = 0; i < n; i++)
        vt_buf_str(b, text);
}

/* ---- costly schemas --------------------------------------------------- */

static void anchors(struct vt_buf *b)
{
    vt_buf_str(b, "{\"type\":\"array\",\"uniqueItems\":true,\"minItems\":6,\"items\":{"
                  "\"type\":\"array\",\"uniqueItems\":true,\"minItems\":6,\"items\":{"
                  "\"type\":\"string\",\"pattern\":\"(?:");
    add_times(b, 1300, "^");
    vt_buf_str(b, "[ab]){900}\"}}}");
}

static void optional_letters(struct vt_buf *b)
{
    vt_buf_str(b, "{\"type\":\"array\",\"minItems\":40,\"items\":{\"type\":\"string\","
                  "\"pattern\":\"(?:");
    add_times(b, 300, "a?");
    vt_buf_str(b, "b){100}\"}}");
}

static void alternatives(struct vt_buf *b)
{
    vt_buf_str(b, "{\"type\":\"array\",\"minItems\":10,\"items\":{\"type\":\"string\","
                  "\"pattern\":\"(?:a");
    add_times(b, 1500, "|b");
    vt_buf_str(b, "){200}\"}}");
}

static void classes(struct vt_buf *b)
{
    vt_buf_str(b, "{\"type\":\"array\",\"minItems\":50,\"items\":{\"type\":\"string\","
                  "\"pattern\":\"");
    add_times(b, 300, "\\\\W[^a-c\\\\D]");
    vt_buf_str(b, "\"}}");
}

static void lengths_not_met(struct vt_buf *b)
{
    vt_buf_str(b, "{\"type\":\"array\",\"minItems\":20,\"items\":{\"type\":\"string\","
                  "\"pattern\":\"^[a-z]{0,600}$\",\"minLength\":590}}");
}

static void many_required(struct vt_buf *b)
{
    vt_buf_str(b, "{\"type\":\"object\",\"properties\":{");
    for (unsigned i = 0; i < 2000; i++)
        vt_buf_printf(b, "%s\"name_of_a_property_%u\":{\"type\":\"null\"}",
                      i > 0 ? "," : "", i);
    vt_buf_str(b, "},\"required\":[");
    for (unsigned i = 0; i < 2000; i++)
        vt_buf_printf(b, "%s\"name_of_a_property_%u\"", i > 0 ? "," : "", i);
    vt_buf_str(b, "]}");
}

static void many_parts(struct vt_buf *b)
{
    vt_buf_str(b, "{\"type\":\"array\",\"minItems\":60,\"items\":{\"allOf\":[{}");
    for (unsigned i = 0; i < 40; i++)
        vt_buf_printf(b, ",{\"type\":\"object\",\"properties\":{\"p%u\":{},\"q\":{}}}",
                      i);
    vt_buf_str(b, "]}}");
}

static void many_definitions(struct vt_buf *b)
{
    vt_buf_str(b, "{\"$defs\":{");
    for (unsigned i = 0; i < 3000; i++)
        vt_buf_printf(b, "\"d%u\":{\"type\":\"integer\"},", i);
    vt_buf_str(b, "\"last\":{\"type\":\"null\"}},\"type\":\"array\",\"minItems\":900,"
                  "\"items\":{\"$ref\":\"#/$defs/last\"}}");
}

static void few_of_many_listed(struct vt_buf *b)
{
    vt_buf_str(b, "{\"type\":\"array\",\"minItems\":900,\"items\":{\"type\":\"null\","
                  "\"enum\":[null");
    for (unsigned i = 0; i < 5000; i++)
        vt_buf_printf(b, ",%u", i);
    vt_buf_str(b, "]}}");
}

static void rare_multiples(struct vt_buf *b)
{
    vt_buf_str(b, "{\"type\":\"array\",\"minItems\":1000,\"items\":{\"type\":"
                  "\"integer\",\"multipleOf\":0.0009765625,\"minimum\":0}}");
}

static void hard_to_be_unlike(struct vt_buf *b)
{
    vt_buf_str(b, "{\"type\":\"array\",\"uniqueItems\":true,\"minItems\":200,\"items\":"
                  "{\"type\":\"array\",\"uniqueItems\":true,\"minItems\":4,\"items\":{"
                  "\"type\":\"integer\",\"minimum\":1,\"maximum\":9}}}");
}

static void long_names(struct vt_buf *b)
{
    vt_buf_str(b, "{\"type\":\"array\",\"minItems\":100,\"items\":{\"properties\":{");
    for (unsigned i = 0; i < 12; i++) {
        vt_buf_str(b, i > 0 ? ",\"" : "\"");
        add_times(b, 400, "a long name");
        vt_buf_printf(b, "%u\":{\"type\":\"null\"}", i);
    }
    vt_buf_str(b, "}}}");
}

static void large_constant(struct vt_buf *b)
{
    vt_buf_str(b, "{\"type\":\"array\",\"minItems\":1,\"items\":{\"const\":\"");
    add_times(b, 3000, "0123456789");
    vt_buf_str(b, "\"}}");
}

/* Values that are not even begun: more than may be written at all. */
static void endless_arrays(struct vt_buf *b)
{
    add_times(b, 3, "{\"type\":\"array\",\"minItems\":1000,\"items\":");
    vt_buf_str(b, "{\"type\":\"null\"}}}}");
}

static const struct costly {
    const char *name;
    void (*write)(struct vt_buf *b);
    bool met; /* each choice has a value */
    /* Patterns of an item that PCRE2 would say the same of, if it had room for them. */
    const char *pattern;
} rows[] = {
    {"a thousand anchors many times", anchors, true, "^[ab]{900}$"},
    {"letters that may be missing", optional_letters, false},
    {"alternatives by the thousand", alternatives, true, "^[ab]{200}$"},
    {"classes", classes, true},
    {"lengths that draws do not meet", lengths_not_met, true},
    {"thousands of required properties", many_required, true},
    {"parts", many_parts, true},
    {"thousands of definitions", many_definitions, true},
    {"an enum with one value of the type", few_of_many_listed, true},
    {"multiples that are seldom whole", rare_multiples, true},
    {"items that must differ", hard_to_be_unlike, true},
    {"long names that begin alike", long_names, true},
    {"a large constant", large_constant, true},
    {"arrays without an end", endless_arrays, false},
};

/* All strings in it match. */
static bool match_all(const char *pattern, const struct vt_node *value)
{
    if (value->kind == VT_STR)
        return pcre_matches(pattern, strlen(pattern), value->u.str, value->n);
    for (uint32_t i = 0; i < value->n; i++)
        if (!match_all(pattern, &value->u.item[i]))
            return false;
    return true;
}

static void check_fit(const struct costly *row, const struct vt_node *schema,
                      const struct vt_buf *b)
{
    struct vt_arena a = {0};
    struct judge j = {.root = schema};
    const struct vt_node *value;

    assert_int_equal(vt_json_parse(&a, b->data, b->len, 1, &value, NULL), VT_OK);
    if (row->pattern ? !match_all(row->pattern, value) : !judge(&j, schema, value))
        fail_msg("%s: %s", row->name, j.why);
    vt_arena_free(&a);
}

static void work_is_bounded(void **state)
{
    const struct costly *row = *state;
    struct reply_forms forms = {0};
    struct vt_arena a = {0};
    struct vt_buf text = {0}, b = {0};
    const struct vt_node *schema;

    row->write(&text);
    assert_int_equal(vt_json_parse(&a, text.data, text.len, 1, &schema, NULL), VT_OK);
    for (uint64_t key = 0; key < CHOICES; key++) {
        uint64_t before = forms.spent;
        bool made;

        vt_buf_clear(&b);
        reply_forms_choice(&forms);
        made = reply_schema_write(&forms, &b, schema, key);
        if (!made && row->met)
            fail_msg("%s: nothing was made, key %u", row->name, (unsigned)key);
        if (made && key % 8 == 0)
            check_fit(row, schema, &b);
        assert_in_range(forms.spent - before, 1, 2 * REPLY_CHOICE_WORK + SLACK);
        assert_true(forms.arena.used_bytes < 32 << 20);
        if (row->met && reply_forms_spent(&forms))
            break; /* a batch would say that value again and again */
    }
    assert_true(forms.spent <=
                REPLY_REQUEST_WORK + REPLY_SIMPLE_WORK + (uint64_t)CHOICES * SLACK);
    vt_buf_free(&b);
    vt_buf_free(&text);
    vt_arena_free(&a);
    reply_forms_free(&forms);
}

/* The simplest value of a large schema is found within the budget for a cheap one. */
static void the_simplest_has_only_what_must_be(void **state)
{
    static const struct {
        const char *schema, *simplest;
    } simple[] = {
        {"{\"type\":\"array\",\"items\":{\"type\":\"integer\"}}", "[]"},
        {"{\"type\":\"object\",\"properties\":{\"a\":{},\"b\":{\"type\":\"string\"}},"
         "\"required\":[\"b\"]}",
         "{\"b\": \"\"}"},
        {"{\"type\":\"string\",\"pattern\":\"^x{2,9}(yy|z|)(q*)$\"}", "\"xx\""},
        {"{\"type\":\"string\",\"pattern\":\"^x*(yy|z)?$\",\"minLength\":5}",
         "\"xxxxx\""},
        {"{\"anyOf\":[{\"type\":\"array\"},{\"type\":\"null\"}]}", "null"},
        {"{\"anyOf\":[{\"const\":1},{\"const\":2}]}", "1"},
        {"{\"prefixItems\":[{},{},{\"const\":3}],\"minItems\":0}", "[]"},
    };

    (void)state;
    for (size_t i = 0; i < VT_COUNT(simple); i++) {
        struct reply_forms forms = {.spent = REPLY_REQUEST_WORK,
                                    .before = REPLY_REQUEST_WORK};
        struct vt_arena a = {0};
        struct vt_buf b = {0};
        const struct vt_node *schema;

        assert_int_equal(vt_json_parse(&a, simple[i].schema, strlen(simple[i].schema),
                                       1, &schema, NULL),
                         VT_OK);
        assert_true(reply_schema_write(&forms, &b, schema, 7));
        vt_buf_char(&b, '\0');
        assert_string_equal(b.data, simple[i].simplest);
        vt_buf_free(&b);
        vt_arena_free(&a);
        reply_forms_free(&forms);
    }
}

int main(void)
{
    struct CMUnitTest tests[VT_COUNT(rows) + 1] = {
        cmocka_unit_test(the_simplest_has_only_what_must_be),
    };

    for (size_t i = 0; i < VT_COUNT(rows); i++) {
        const void *row = &rows[i];

        tests[i + 1] =
            (struct CMUnitTest){.name = rows[i].name, .test_func = work_is_bounded};
        memcpy(&tests[i + 1].initial_state, &row, sizeof(row)); /* cmocka: no const */
    }
    return cmocka_run_group_tests_name("reply_work", tests, NULL, NULL);
}
