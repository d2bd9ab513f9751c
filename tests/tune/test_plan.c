/* Tuning plans: what is read, what is refused, and what the shipped one predicts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "model/model.h"
#include "tune/tune.h"

#define HEAD                                                           \
    "name: p\nprofile: llama-70b-fp8-h200\nhf_config: llama-70b-fp8\n" \
    "gpu: H200\nworkload: multiturn-starters\nslo: {tpot_p99_ms: 60}\n"

static struct vt_tuning_plan plan; /* too large for some stacks */

static struct refused {
    const char *name, *text, *says;
} refused[] = {
    {"a list", "[1, 2]", "a plan is a map"},
    {"no rates", HEAD "rows: [{name: a}]\n", "field 'rates'"},
    {"rates that do not ascend", HEAD "rates: [1, 1]\nrows: [{name: a}]\n", "ascend"},
    {"a rate of 0", HEAD "rates: [0]\nrows: [{name: a}]\n", "'rates'"},
    {"no rows", HEAD "rates: [1]\n", "field 'rows'"},
    {"a row without name", HEAD "rates: [1]\nrows: [{phase: 1}]\n", "'name'"},
    {"a field with a slip", HEAD "rates: [1]\nrows: [{name: a, max_num_seq: 8}]\n",
     "did you mean 'max_num_seqs'?"},
    {"too much memory",
     HEAD "rates: [1]\nrows: [{name: a, gpu_memory_utilization: 1.5}]\n",
     "gpu_memory_utilization"},
    {"no such routing",
     HEAD "rates: [1]\nrows: [{name: a, data_parallel_size: 2, routing: by-luck}]\n",
     "by-luck"},
    {"an acceptance above 1",
     HEAD "rates: [1]\nspeculative: {acceptance: [1.5]}\nrows: [{name: a}]\n",
     "acceptance"},
    {"a gain over a row that comes later",
     HEAD "rates: [1]\nrows: [{name: a, over: b}, {name: b}]\n",
     "row 'a': no row before it is called 'b'"},
    {"measured that is a number", HEAD "rates: [1]\nrows: [{name: a, measured: 3}]\n",
     "'measured'"},
};

static void is_refused(void **state)
{
    const struct refused *r = *state;
    struct vt_err err;

    assert_int_equal(
        vt_tuning_plan_parse(&plan, "p.yaml", r->text, strlen(r->text), &err),
        VT_EINPUT);
    assert_non_null(strstr(err.msg, "p.yaml"));
    assert_non_null(strstr(err.msg, r->says));
}

static void rows_take_over_what_the_first_says(void **state)
{
    static const char text[] = HEAD "rates: [1, 2]\nrows:\n"
                                    "  - {name: a, max_num_seqs: 77}\n"
                                    "  - {name: b, gpu_memory_utilization: 0.95}\n";
    struct vt_err err;

    (void)state;
    assert_int_equal(vt_tuning_plan_parse(&plan, "p", text, strlen(text), &err), VT_OK);
    assert_int_equal(plan.n, 2);
    assert_int_equal(plan.row[1].setting.max_num_seqs, 77);
    assert_true(plan.row[1].setting.gpu_memory_utilization > 0.94);
    vt_tuning_plan_free(&plan);
}

static void the_shipped_plan_has_its_kv_caches_within_3_percent(void **state)
{
    struct vt_err err;
    struct vt_tuning_result r;
    int checked = 0;

    (void)state;
    assert_int_equal(vt_tuning_plan_load(&plan, "tuning-plan.yaml", &err), VT_OK);
    plan.seeds = 1;
    plan.requests = 10;
    plan.n_rates = 1;
    assert_int_equal(vt_tuning_plan_run(&r, &plan, 1, 1, &err), VT_OK);
    for (size_t i = 0; i < plan.n; i++) {
        double measured = plan.row[i].measured.kv_gib;

        if (!(measured > 0))
            continue;
        assert_true(r.kv_gib[i] > 0.97 * measured && r.kv_gib[i] < 1.03 * measured);
        checked++;
    }
    assert_int_equal(checked, 7);
    vt_tuning_result_free(&r);
    vt_tuning_plan_free(&plan);
}

/* Only the rates around the edge, one seed: the whole plan is bench/tune's. */
static void engine_limits_bear_2_and_fail_at_2_5_on_tpot(void **state)
{
    struct vt_err err;
    struct vt_tuning_result r;

    (void)state;
    assert_int_equal(vt_tuning_plan_load(&plan, "tuning-plan.yaml", &err), VT_OK);
    plan.seeds = 1;
    plan.rate[0] = 2;
    plan.rate[1] = 2.5;
    plan.n_rates = 2;
    plan.n = 7;
    assert_int_equal(vt_tuning_plan_run(&r, &plan, 1, 0, &err), VT_OK);
    for (size_t i = 0; i < plan.n; i++) {
        assert_int_equal(r.best[i], 0);
        assert_non_null(strstr(r.at[2 * i + 1].broken, "TPOT p99"));
    }
    vt_tuning_result_free(&r);
    vt_tuning_plan_free(&plan);
}

int main(void)
{
    enum { N = VT_COUNT(refused) };
    struct CMUnitTest tests[N + 3] = {
        cmocka_unit_test(rows_take_over_what_the_first_says),
        cmocka_unit_test(the_shipped_plan_has_its_kv_caches_within_3_percent),
        cmocka_unit_test(engine_limits_bear_2_and_fail_at_2_5_on_tpot),
    };

    for (size_t i = 0; i < N; i++)
        tests[3 + i] = (struct CMUnitTest){
            .name = refused[i].name,
            .test_func = is_refused,
            .initial_state = &refused[i],
        };
    return cmocka_run_group_tests_name("plan", tests, NULL, NULL);
}
