/* Typed access to a tree, and its messages. */
#include "testing.h"

#include <math.h>

static const char text[] = "{\"n\": 8,\n"
                           "\"f\": 8.0,\n"
                           "\"half\": 0.5,\n"
                           "\"big\": 18446744073709551615,\n"
                           "\"huge\": 1e30,\n"
                           "\"minus\": -3,\n"
                           "\"s\": \"word\",\n"
                           "\"nul\": \"a\\u0000b\",\n"
                           "\"yes\": true,\n"
                           "\"none\": null,\n"
                           "\"list\": [1]}";

enum kind { F64, I64, U32, BOOL, STR };

static struct row {
    const char *name;
    enum kind kind;
    const char *key;
    enum vt_need need;
    double lo, hi;
    const char *want; /* NULL: fine */
} rows[] = {
    {"integer as f64", F64, "n", VT_REQUIRED, 0, 10, NULL},
    {"uint64 as f64", F64, "big", VT_REQUIRED, 0, 1e30, NULL},
    {"8.0 as integer", I64, "f", VT_REQUIRED, 0, 10, NULL},
    {"integer as u32", U32, "n", VT_REQUIRED, 8, 8, NULL},
    {"boolean", BOOL, "yes", VT_REQUIRED, 0, 0, NULL},
    {"string", STR, "s", VT_REQUIRED, 0, 0, NULL},
    {"absent and optional", F64, "zzz", VT_OPTIONAL, 0, 0, NULL},
    {"absent and required", F64, "zzz", VT_REQUIRED, 0, 0,
     "line 1: field 'zzz' is missing"},
    {"string as f64", F64, "s", VT_REQUIRED, 0, 1, "line 7: field 's' is not a number"},
    {"null as f64", F64, "none", VT_OPTIONAL, 0, 1,
     "line 10: field 'none' is not a number"},
    {"f64 below", F64, "half", VT_REQUIRED, 1, INFINITY,
     "line 3: field 'half' must be at least 1, not 0.5"},
    {"f64 above", F64, "half", VT_REQUIRED, -INFINITY, 0.25,
     "line 3: field 'half' must be at most 0.25, not 0.5"},
    {"f64 outside", F64, "n", VT_REQUIRED, 0, 7.5,
     "line 1: field 'n' must be from 0 to 7.5, not 8"},
    {"fraction as integer", I64, "half", VT_REQUIRED, 0, 1,
     "line 3: field 'half' is not a whole number"},
    {"uint64 as i64", I64, "big", VT_REQUIRED, 0, 10,
     "line 4: field 'big' must be from 0 to 10, not 18446744073709551615"},
    {"1e30 as i64", I64, "huge", VT_REQUIRED, 0, 10,
     "line 5: field 'huge' must be from 0 to 10, not 1e+30"},
    {"negative as u32", U32, "minus", VT_REQUIRED, 0, 10,
     "line 6: field 'minus' must be from 0 to 10, not -3"},
    {"number as boolean", BOOL, "n", VT_REQUIRED, 0, 0,
     "line 1: field 'n' is not true or false"},
    {"number as string", STR, "n", VT_REQUIRED, 0, 0,
     "line 1: field 'n' is not a string"},
    {"string with NUL", STR, "nul", VT_REQUIRED, 0, 0,
     "line 8: field 'nul' holds a NUL"},
};

static struct vt_arena arena;
static const struct vt_node *root;

static int get(const struct row *r, struct vt_err *err)
{
    const char *str = "";
    uint32_t u32 = 0;
    int64_t i64 = 0;
    double f64 = 0;
    bool flag = false;

    switch (r->kind) {
    case F64:
        return vt_get_f64(root, r->key, r->need, r->lo, r->hi, &f64, err);
    case I64:
        return vt_get_i64(root, r->key, r->need, (int64_t)r->lo, (int64_t)r->hi, &i64,
                          err);
    case U32:
        return vt_get_u32(root, r->key, r->need, (uint32_t)r->lo, (uint32_t)r->hi, &u32,
                          err);
    case BOOL:
        return vt_get_bool(root, r->key, r->need, &flag, err);
    default:
        return vt_get_str(root, r->key, r->need, &str, err);
    }
}

static void field(void **state)
{
    const struct row *r = *state;
    struct vt_err err = {0};
    int rc = get(r, &err);

    assert_string_equal(err.msg, r->want ? r->want : "");
    assert_int_equal(rc, r->want ? VT_EINPUT : VT_OK);
}

static void absent_fields_leave_the_default(void **state)
{
    double f64 = 1.5;
    int64_t i64 = -7;
    uint32_t u32 = 9;
    bool flag = true;
    const char *str = "as it was";

    (void)state;
    assert_int_equal(vt_get_f64(root, "zzz", VT_OPTIONAL, 0, 1, &f64, NULL), VT_OK);
    assert_int_equal(vt_get_i64(root, "zzz", VT_OPTIONAL, 0, 1, &i64, NULL), VT_OK);
    assert_int_equal(vt_get_u32(root, "zzz", VT_OPTIONAL, 0, 1, &u32, NULL), VT_OK);
    assert_int_equal(vt_get_bool(NULL, "zzz", VT_OPTIONAL, &flag, NULL), VT_OK);
    assert_int_equal(vt_get_str(NULL, "zzz", VT_OPTIONAL, &str, NULL), VT_OK);
    assert_true(f64 == 1.5 && i64 == -7 && u32 == 9 && flag);
    assert_string_equal(str, "as it was");
}

static void fields_of_a_list_are_an_error(void **state)
{
    struct vt_err err;
    double v;

    (void)state;
    assert_int_equal(vt_get_f64(vt_get(root, "list"), "a", VT_OPTIONAL, 0, 1, &v, &err),
                     VT_EINPUT);
    assert_string_equal(err.msg, "line 11: expected a map with field 'a'");
}

static void unknown_fields_name_the_nearest(void **state)
{
    static const char *const some[] = {"n",   "f",   "halfs", "huge", "minus", "s",
                                       "nul", "yes", "none",  "list", NULL};
    static const char *const none[] = {"other", NULL};
    struct vt_err err;

    (void)state;
    assert_int_equal(vt_only_keys(root, some, &err), VT_EINPUT);
    assert_string_equal(err.msg,
                        "line 3: unknown field 'half' (did you mean 'halfs'?)");
    assert_int_equal(vt_only_keys(root, none, &err), VT_EINPUT);
    assert_string_equal(err.msg, "line 1: unknown field 'n'");
    assert_int_equal(vt_only_keys(NULL, none, &err), VT_OK);
}

static void nearest_is_near(void **state)
{
    static const char *const words[] = {"input", "output", "seed", "rate", "n", NULL};
    char longer[200];

    (void)state;
    memset(longer, 'x', sizeof(longer));
    longer[sizeof(longer) - 1] = '\0';
    assert_string_equal(vt_nearest("outptu", words), "output");
    assert_string_equal(vt_nearest("sed", words), "seed");
    assert_string_equal(vt_nearest("seed", words), "seed");
    assert_null(vt_nearest("banana", words));
    assert_null(vt_nearest("x", words));
    assert_null(vt_nearest("", words));
    assert_null(vt_nearest(longer, words));
}

int main(void)
{
    static const struct CMUnitTest more[] = {
        cmocka_unit_test(absent_fields_leave_the_default),
        cmocka_unit_test(fields_of_a_list_are_an_error),
        cmocka_unit_test(unknown_fields_name_the_nearest),
        cmocka_unit_test(nearest_is_near),
    };
    struct CMUnitTest tests[VT_COUNT(rows)];
    int failed;

    if (vt_json_parse(&arena, text, strlen(text), 1, &root, NULL) != VT_OK)
        return 1;
    for (size_t i = 0; i < VT_COUNT(rows); i++)
        tests[i] = (struct CMUnitTest){
            .name = rows[i].name, .test_func = field, .initial_state = &rows[i]};
    failed = cmocka_run_group_tests_name("field rows", tests, NULL, NULL);
    failed += cmocka_run_group_tests_name("fields", more, NULL, NULL);
    vt_arena_free(&arena);
    return failed;
}
