/* Capacity of an engine whose answer is known: one request at a time, 10 ms each, so
 * 100 a second, and not one more. */
#include <math.h>

#include "testing.h"

#define EVEN                                             \
    "requests: 400\n"                                    \
    "arrival: {process: constant, rate: 3}\nprompt: 8\n" \
    "output: 1\n"
#define RANDOM                                          \
    "requests: 400\n"                                   \
    "arrival: {process: poisson, rate: 3}\nprompt: 8\n" \
    "output: 1\n"

static int find(struct toy *t, struct vt_capacity_spec spec, struct vt_capacity *c,
                struct vt_err *err)
{
    spec.trial = t->trial;
    return vt_capacity_find(c, &spec, err);
}

static const struct {
    const char *workload;
    struct vt_capacity_spec spec;
    double low, high; /* of the answer */
    const char *binding;
} rows[] = {
    /* Evenly spaced: nothing waits up to 100, and then ever longer. */
    {EVEN, {.slo = {.ttft_p99 = 20}}, 97, 101, "TTFT p99"},
    {EVEN, {.slo = {.ttft_p99 = 20}, .tolerance = 0.001}, 99.5, 100.5, "TTFT p99"},
    {EVEN, {.slo = {.ttft_p99 = 20}, .low = 90, .high = 110}, 98, 101, "TTFT p99"},
    {EVEN, {.slo = {.ttft_p99 = 20}, .low = 10}, 97, 101, "TTFT p99"},
    {EVEN, {.slo = {.e2e_p99 = 20}, .seeds = 1}, 97, 101, "E2E p99"},
    /* Without limits it is the rate itself that is no longer borne: 95 %. */
    {EVEN, {.seeds = 2}, 102, 106, "rate"},
    /* Nothing is served within 5 ms. */
    {EVEN, {.slo = {.ttft_p99 = 5}}, 0, 0, "TTFT p99"},
    /* Chance arrivals queue below 100: M/D/1's p99 of 100 ms is at a load of 0.8. */
    {RANDOM, {.slo = {.ttft_p99 = 100}, .seeds = 5}, 70, 95, "TTFT p99"},
};

static void the_answer_is_what_can_be_served(void **state)
{
    (void)state;
    for (size_t i = 0; i < VT_COUNT(rows); i++) {
        struct vt_capacity_spec spec = rows[i].spec;
        struct vt_capacity c;
        struct vt_err err = {0};
        struct toy t;

        toy_open(&t, rows[i].workload);
        spec.workers = 1;
        assert_int_equal(find(&t, spec, &c, &err), VT_OK);
        assert_true(c.rate >= rows[i].low && c.rate <= rows[i].high);
        assert_string_equal(c.binding, rows[i].binding);
        assert_true(c.failed > c.rate);
        assert_int_equal(c.trials,
                         c.n * (rows[i].spec.seeds > 0 ? rows[i].spec.seeds : 3));
        if (rows[i].spec.seeds != 1)
            assert_true(c.low <= c.rate && c.rate <= c.high);
        for (size_t k = 1; k < c.n; k++)
            assert_true(c.point[k].rate > c.point[k - 1].rate);
        vt_capacity_free(&c);
        toy_close(&t);
    }
}

static void given_rates_are_tried_and_no_others(void **state)
{
    static const double rate[] = {20, 60, 99, 120, 300};
    struct vt_capacity_spec spec = {
        .slo.ttft_p99 = 20, .rate = rate, .n_rates = VT_COUNT(rate), .seeds = 2};
    struct vt_capacity c;
    struct vt_err err = {0};
    struct toy t;

    (void)state;
    toy_open(&t, EVEN);
    assert_int_equal(find(&t, spec, &c, &err), VT_OK);
    assert_int_equal(c.n, VT_COUNT(rate));
    for (size_t i = 0; i < c.n; i++) {
        bool kept = rate[i] <= 100;

        assert_true(c.point[i].rate == rate[i]);
        assert_int_equal(c.point[i].passed, kept ? 2 : 0);
        assert_true(c.point[i].saturated == !kept);
        assert_true((c.point[i].broken == NULL) == kept);
    }
    assert_true(c.rate == 99 && c.failed == 120);
    vt_capacity_free(&c);
    toy_close(&t);
}

static void workers_change_nothing(void **state)
{
    static const uint32_t workers[] = {1, 2, 4, 0};
    struct vt_capacity first = {0};
    struct toy t;

    (void)state;
    toy_open(&t, RANDOM);
    for (size_t i = 0; i < VT_COUNT(workers); i++) {
        struct vt_capacity_spec spec = {
            .slo.ttft_p99 = 100, .seeds = 4, .workers = workers[i]};
        struct vt_capacity c;
        struct vt_err err = {0};

        assert_int_equal(find(&t, spec, &c, &err), VT_OK);
        if (i == 0) {
            first = c;
            continue;
        }
        assert_int_equal(c.n, first.n);
        assert_true(c.rate == first.rate && c.failed == first.failed);
        assert_true(c.low == first.low && c.high == first.high);
        for (size_t k = 0; k < c.n; k++) {
            assert_true(c.point[k].rate == first.point[k].rate);
            assert_true(c.point[k].achieved == first.point[k].achieved);
            assert_memory_equal(&c.point[k].mean, &first.point[k].mean,
                                sizeof(c.point[k].mean));
        }
        vt_capacity_free(&c);
    }
    vt_capacity_free(&first);
    toy_close(&t);
}

static void how_far_the_answer_went_comes_back_from_workers(void **state)
{
    static const uint32_t workers[] = {1, 3};
    struct toy t;

    (void)state;
    toy_open(&t, RANDOM);
    for (size_t i = 0; i < VT_COUNT(workers); i++) {
        struct vt_capacity_spec spec = {
            .slo.ttft_p99 = 100, .seeds = 2, .workers = workers[i]};
        struct vt_capacity c;
        struct vt_err err = {0};

        assert_int_equal(find(&t, spec, &c, &err), VT_OK);
        assert_int_equal(c.extent.running, 1); /* max_num_seqs */
        assert_true(c.extent.step_tokens > 0);
        for (size_t k = 0; k < c.n; k++)
            assert_int_equal(c.point[k].mean.extent.running, 1);
        vt_capacity_free(&c);
    }
    toy_close(&t);
}

static void seeds_that_differ_widen_the_interval(void **state)
{
    struct vt_capacity even, chance;
    struct vt_err err = {0};
    struct toy t;

    (void)state;
    toy_open(&t, EVEN);
    assert_int_equal(
        find(&t, (struct vt_capacity_spec){.slo.ttft_p99 = 20}, &even, &err), VT_OK);
    toy_close(&t);
    toy_open(&t, RANDOM);
    assert_int_equal(
        find(&t, (struct vt_capacity_spec){.slo.ttft_p99 = 100}, &chance, &err), VT_OK);
    toy_close(&t);
    assert_true(even.high - even.low < 0.02 * even.rate);
    assert_true(chance.high - chance.low > 2 * (even.high - even.low));
    vt_capacity_free(&even);
    vt_capacity_free(&chance);
}

static void a_failing_trial_is_the_answer(void **state)
{
    struct vt_capacity c;
    struct vt_err err = {0};
    struct toy t;

    (void)state;
    toy_open(&t, "requests: 4\narrival: {process: constant, rate: 1}\nprompt: 5000\n"
                 "output: 1\n"); /* more than max_model_len */
    assert_int_equal(find(&t, (struct vt_capacity_spec){.seeds = 2}, &c, &err),
                     VT_EINPUT);
    assert_true(err.msg[0] != '\0');
    vt_capacity_free(&c);
    toy_close(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_answer_is_what_can_be_served),
        cmocka_unit_test(given_rates_are_tried_and_no_others),
        cmocka_unit_test(workers_change_nothing),
        cmocka_unit_test(how_far_the_answer_went_comes_back_from_workers),
        cmocka_unit_test(seeds_that_differ_widen_the_interval),
        cmocka_unit_test(a_failing_trial_is_the_answer),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
