/* What turns took, by their number. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>

#include "make_records.h"

/* Two sessions: first turns after 20 ms, second ones after 60, and one of them fails.
 */
static void make_talk(struct vt_load_records *r)
{
    for (uint32_t i = 0; i < 4; i++) {
        const struct made m = {.session = i % 2,
                               .turn = i / 2,
                               .begun = 1000.0 * i,
                               .ttft = i < 2 ? 19 : 59,
                               .gap = 10,
                               .events = i == 3 ? 0 : 5,
                               .prompt = i < 2 ? 100 : 300,
                               .output = 5,
                               .cached = i < 2 ? 0 : 96,
                               .fails = i == 3};

        add_made(r, &m);
    }
}

static double get(const struct vt_node *turn, const char *key)
{
    const struct vt_node *v = vt_get(turn, key);

    assert_non_null(v);
    return v->kind == VT_INT ? (double)v->u.integer : v->u.real;
}

static void assert_near(double got, double want)
{
    if (!(fabs(got - want) < 1e-6))
        fail_msg("%.9g is not %.9g", got, want);
}

static void turns_are_told_apart(void **state)
{
    struct vt_load_records r = {0};
    struct vt_load_asks asks;
    struct vt_arena arena = {0};
    struct vt_err err = {0};
    struct vt_buf b = {0};
    const struct vt_node *root, *first, *second;

    (void)state;
    vt_load_asks_init(&asks);
    make_talk(&r);
    assert_int_equal(vt_load_turns_json(&b, &r, &asks, &err), VT_OK);
    assert_int_equal(vt_json_parse(&arena, b.data, b.len, 1, &root, &err), VT_OK);
    assert_int_equal(root->n, 2);
    first = &root->u.item[0];
    second = &root->u.item[1];
    assert_near(get(first, "turn_index"), 0);
    assert_near(get(first, "num_samples"), 2);
    assert_near(get(first, "mean_ttft_ms"), 20);
    assert_near(get(first, "p99_itl_ms"), 10);
    assert_near(get(first, "mean_tpot_ms"), 10);
    assert_near(get(second, "completed"), 1);
    assert_near(get(second, "failed"), 1);
    assert_near(get(second, "median_ttft_ms"), 60);
    assert_near(get(second, "total_input_tokens"), 300);
    assert_near(get(second, "total_cached_tokens"), 96);
    vt_arena_free(&arena);
    vt_buf_free(&b);
    vt_load_records_free(&r);
}

static void the_table_has_a_row_for_each(void **state)
{
    struct vt_load_records r = {0};
    struct vt_load_asks asks;
    struct vt_err err = {0};
    struct vt_buf b = {0};
    const char *row;

    (void)state;
    vt_load_asks_init(&asks);
    make_talk(&r);
    assert_int_equal(vt_load_turns_table(&b, &r, &asks, &err), VT_OK);
    row = strstr(b.data, "\n   2 ");
    assert_non_null(row);
    assert_non_null(strstr(row, "60.00"));
    vt_buf_free(&b);
    vt_load_records_free(&r);
}

static void single_requests_have_no_turns(void **state)
{
    const struct made m = {.ttft = 3, .events = 1, .prompt = 5, .output = 1};
    struct vt_load_records r = {0};
    struct vt_load_asks asks;
    struct vt_err err = {0};
    struct vt_buf b = {0};

    (void)state;
    vt_load_asks_init(&asks);
    add_made(&r, &m);
    assert_int_equal(vt_load_turns_table(&b, &r, &asks, &err), VT_OK);
    assert_int_equal(b.len, 0);
    assert_int_equal(vt_load_turns_json(&b, &r, &asks, &err), VT_OK);
    assert_string_equal(b.data, "null");
    vt_buf_free(&b);
    vt_load_records_free(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(turns_are_told_apart),
        cmocka_unit_test(the_table_has_a_row_for_each),
        cmocka_unit_test(single_requests_have_no_turns),
    };

    return cmocka_run_group_tests_name("turns", tests, NULL, NULL);
}
